/* import.c - see import.h. */
#include "transfer/import.h"

#include "base/clock.h"
#include "base/mem.h"
#include "transfer/bulk_body.h"
#include "transfer/import_int.h"
#include "transfer/stop_signal.h"

#include <stdio.h>

enum {
    CHECKPOINT_EVERY_US = 1000000,
    POLL_MS_MAX = 200, /* the progress is shown as often */
    REJECTS_PRINTED_MAX = 10,
    DRAIN_US = 10 * 1000000, /* how long requests under way may take after a signal */
};

/* ---- the container ---- */

static Status create(Import *import, RemoteFeed feed, Slice body, Error *err)
{
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 4096);
    ClientCall call = remote_call(&import->remote, feed, &arena);
    ClientHeader headers[2] = {{"content-type", SLICE("application/json")}};
    call.method = CLIENT_POST;
    call.content = body;
    call.headers = headers;
    call.header_count = 1;
    if (feed == REMOTE_DATABASE && import->options->create_ru > 0) {
        headers[1] = (ClientHeader){"x-ms-offer-throughput",
                                    arena_format(&arena, "%u", import->options->create_ru)};
        call.header_count = 2;
    }
    TRY(remote_ask(&import->remote, &call, err));
    bool is_there = call.http_status == 201 || call.http_status == 409;
    return is_there ? STATUS_OK : remote_refused(&call, err);
}

static void print_id(Slice id, Buf *out)
{
    buf_slice(out, SLICE("{\"id\":"));
    json_print_string(id, out);
}

/* Makes the database and the container, unless they exist. */
static Status create_all(Import *import, Error *err)
{
    AUTO(buf_done) Buf body;
    buf_init(&body, 64 << 10);
    print_id(import->remote.database, &body);
    buf_byte(&body, '}');
    TRY(create(import, REMOTE_ROOT, buf_view(&body), err));
    buf_reset(&body);
    print_id(import->remote.container, &body);
    buf_slice(&body, SLICE(",\"partitionKey\":{\"paths\":["));
    Slice paths = slice_from_cstr(import->options->partition_key);
    bool is_first = true;
    while (paths.len > 0) {
        buf_slice(&body, is_first ? SLICE("") : SLICE(","));
        json_print_string(slice_trim(slice_cut(&paths, ',')), &body);
        is_first = false;
    }
    bool is_many = strchr(import->options->partition_key, ',') != NULL;
    buf_format(&body, "],\"kind\":\"%s\",\"version\":2}}", is_many ? "MultiHash" : "Hash");
    return create(import, REMOTE_DATABASE, buf_view(&body), err);
}

/* The partition key that was named must be the container's. */
static Status check_key(Import *import, Error *err)
{
    if (import->options->partition_key == NULL)
        return STATUS_OK;
    Slice paths = slice_from_cstr(import->options->partition_key);
    bool is_same = true;
    size_t count = 0;
    while (paths.len > 0) {
        PropertyPath path;
        size_t position = 0;
        Slice text = slice_trim(slice_cut(&paths, ','));
        if (!property_path_parse(&import->arena, text, &path, &position))
            return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                             "--partition-key: '%.*s' is not a path such as /pk",
                             SLICE_CUT(text, 100));
        is_same = is_same && count < import->key.path_count &&
                  property_path_equal(path, import->key.paths[count]);
        count++;
    }
    if (is_same && count == import->key.path_count)
        return STATUS_OK;
    return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                     "the container's partition key is not %.200s; leave --partition-key out, or "
                     "name another container",
                     import->options->partition_key);
}

static Status open_container(Import *import, Error *err)
{
    Json body;
    if (import->options->is_create)
        TRY(create_all(import, err));
    TRY(remote_read(&import->remote, REMOTE_CONTAINER, &import->arena, &body, err));
    TRY(container_key_parse(&import->arena, body, &import->key, err));
    return check_key(import, err);
}

/* ---- the checkpoint ---- */

/* Everything that decides what is written. */
static void name_job(Import *import)
{
    const ImportOptions *o = import->options;
    AUTO(buf_done) Buf text;
    buf_init(&text, (size_t)1 << 30);
    buf_format(&text, "%s\n%s\n%d %d %d\n%s\n%d\n", o->database, o->container, (int)o->format,
               o->csv.delimiter, o->csv.all_are_text, o->id_from == NULL ? "" : o->id_from,
               o->has_digest);
    for (size_t i = 0; i < o->set_count; i++)
        buf_format(&text, "%s\n", o->sets[i]);
    for (size_t i = 0; i < import->files.count; i++) {
        const InputFile *file = &import->files.files[i];
        buf_format(&text, "%s\n%llu %lld\n", file->path, (unsigned long long)file->bytes,
                   (long long)file->changed_s);
    }
    checkpoint_job(buf_view(&text), import->job);
}

static Slice job_of(const Import *import)
{
    return slice_make(import->job, sizeof(import->job));
}

static Status open_checkpoint(Import *import, Error *err)
{
    const char *path = import->options->resume_path;
    Slice text;
    bool found = false;
    name_job(import);
    if (path != NULL)
        TRY(checkpoint_read(path, &import->arena, &text, &found, err));
    if (found)
        TRY(import_checkpoint_parse(&import->arena, text, job_of(import), &import->checkpoint,
                                    err));
    import->summary.is_resumed = found;
    if (import->options->rejects_path != NULL)
        TRY(reject_file_open(import->options->rejects_path, import->checkpoint.reject_bytes,
                             &import->rejects, err));
    return STATUS_OK;
}

static Status save_checkpoint(Import *import, Error *err)
{
    if (import->rejects != NULL)
        TRY(reject_file_sync(import->rejects, &import->checkpoint.reject_bytes, err));
    if (import->options->resume_path == NULL)
        return STATUS_OK;
    AUTO(buf_done) Buf text;
    buf_init(&text, 4096);
    import_checkpoint_print(&import->checkpoint, job_of(import), &text);
    return checkpoint_write(import->options->resume_path, buf_view(&text), err);
}

/* ---- rows that are done ---- */

static Status report_reject(Import *import, const WindowRow *row, Error *err)
{
    Slice path = slice_from_cstr(import->files.files[row->file].path);
    Slice text = slice_make(row->text, row->text_len);
    Slice reason = slice_from_cstr(row->reason);
    import->checkpoint.rejected++;
    if (import->rejects != NULL)
        return reject_file_add(import->rejects, path, row->line, reason, text, err);
    if (import->options->rejects.report != NULL) {
        import->options->rejects.report(import->options->rejects.ctx,
                                        import->files.files[row->file].path, row->line,
                                        row->reason);
        return STATUS_OK;
    }
    if (import->checkpoint.rejected <= REJECTS_PRINTED_MAX) {
        progress_clear(&import->progress);
        (void)fprintf(stderr, "orrery: %.*s:%llu: %s\n", SLICE_ARG(path),
                      (unsigned long long)row->line, row->reason);
    }
    if (import->checkpoint.rejected == REJECTS_PRINTED_MAX)
        (void)fprintf(stderr, "orrery: more rejects are only counted; --rejects FILE keeps them\n");
    return STATUS_OK;
}

/* Takes the rows that are done from the front of the window. */
static Status settle(Import *import, Error *err)
{
    const WindowRow *row = NULL;
    while ((row = row_window_first(import->window)) != NULL) {
        if (row->state == WINDOW_REJECTED)
            TRY(report_reject(import, row, err));
        else
            item_digest_add(&import->checkpoint.digest, row->hash);
        import->checkpoint.file = row->file;
        import->checkpoint.row = row->number;
        import->position = row->position;
        row_window_pop(import->window);
    }
    return STATUS_OK;
}

/* ---- the loop ---- */

static void show(Import *import, uint64_t now_us)
{
    bool is_silent = import->active_count > 0 && now_us > import->answered_us;
    ProgressNow now = {
        .items = import->checkpoint.digest.count,
        .done = import->position,
        .total = import->files.bytes,
        .ru = import->summary.ru,
        .throttled = import->summary.throttled,
        .rejected = import->checkpoint.rejected,
        .silent_us = is_silent ? now_us - import->answered_us : 0,
    };
    progress_show(&import->progress, &now, now_us);
}

/* Waits for an answer, a signal, or bytes of a pipe; handles all answers that there are. */
static Status wait_and_answer(Import *import, uint32_t wait_ms, Error *err)
{
    ClientWake wakes[2];
    size_t count = 0;
    if (import->options->stop_fd >= 0 && !import->is_stopping)
        wakes[count++].fd = import->options->stop_fd;
    if (import->supply == SUPPLY_WAIT && import->input != NULL)
        wakes[count++].fd = input_fd(import->input);
    for (;;) {
        ClientCall *ended = NULL;
        TRY(client_poll(import->remote.client, wakes, count, wait_ms, &ended, err));
        if (import->options->stop_fd >= 0 && !import->is_stopping && wakes[0].is_ready) {
            stop_signal_taken(import->options->stop_fd);
            import->is_stopping = true;
            import->summary.is_interrupted = true;
        }
        if (ended == NULL)
            return STATUS_OK;
        TRY(import_answer(import, ended, clock_monotonic_us(clock_real()), err));
        wait_ms = 0;
    }
}

/* One turn of the loop; '*is_done' if it was the last one. */
static Status turn(Import *import, uint64_t *stopped_us, bool *is_done, Error *err)
{
    uint32_t wait_ms = POLL_MS_MAX;
    uint64_t now_us = clock_monotonic_us(clock_real());
    if (!import->is_stopping) {
        import_rows_read(import);
        TRY(import_send(import, now_us, &wait_ms, err));
        if (import->supply == SUPPLY_MORE)
            wait_ms = 0;
        /* Rows can leave the window without an answer, if all of them were rejected. */
        if (row_window_first(import->window) != NULL)
            wait_ms = 0;
    }
    TRY(wait_and_answer(import, wait_ms, err));
    TRY(settle(import, err));
    now_us = clock_monotonic_us(clock_real());
    if (import->is_stopping && *stopped_us == 0)
        *stopped_us = now_us;
    bool is_drained =
        import->active_count == 0 || (*stopped_us != 0 && now_us - *stopped_us > DRAIN_US);
    *is_done = import->is_stopping
                   ? is_drained
                   : import->supply == SUPPLY_ENDED && row_window_is_empty(import->window);
    if (now_us - import->checkpoint_us > CHECKPOINT_EVERY_US) {
        TRY(save_checkpoint(import, err));
        import->checkpoint_us = clock_monotonic_us(clock_real());
    }
    show(import, now_us);
    return STATUS_OK;
}

static Status run(Import *import, Error *err)
{
    TRY(import_rows_open(import, err));
    TRY(open_container(import, err));
    TRY(open_checkpoint(import, err));
    TRY(import_send_open(import, err));
    uint64_t stopped_us = 0;
    bool is_done = false;
    Status status = STATUS_OK;
    while (status == STATUS_OK && !is_done)
        status = turn(import, &stopped_us, &is_done, err);
    /* What was done is kept, also if it ends badly. */
    Error late;
    Status saved = save_checkpoint(import, &late);
    if (status == STATUS_OK && saved != STATUS_OK) {
        *err = late;
        status = saved;
    }
    return status;
}

static void import_done(Import *import)
{
    import_send_close(import);
    import_rows_close(import);
    row_window_free(import->window);
    reject_file_close(import->rejects);
    arena_done(&import->arena);
}
DEFINE_AUTO_VALUE(Import, import_done)

Status import_run(const ImportOptions *options, ImportSummary *out, Error *err)
{
    ASSERT(options->concurrency > 0);
    ASSERT(options->concurrency <= IMPORT_CONCURRENCY_MAX);
    AUTO(import_done) Import import = {.options = options};
    uint64_t begun_us = clock_monotonic_us(clock_real());
    arena_init(&import.arena, 64 << 10);
    remote_init(&import.remote, &import.arena, options->client, options->stop_fd, options->database,
                options->container);
    import.window = row_window_new();
    import.checkpoint_us = begun_us;
    progress_init(&import.progress, options->is_quiet, begun_us);
    Status status = run(&import, err);
    progress_clear(&import.progress);
    import.summary.digest = import.checkpoint.digest;
    import.summary.rejected = import.checkpoint.rejected;
    import.summary.seconds = (double)(clock_monotonic_us(clock_real()) - begun_us) / 1e6;
    *out = import.summary;
    return status;
}
