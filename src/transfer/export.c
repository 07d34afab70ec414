/* export.c - see export.h. */
#include "transfer/export.h"

#include "base/clock.h"
#include "base/mem.h"
#include "transfer/export_int.h"
#include "transfer/page_body.h"
#include "transfer/stop_signal.h"

enum {
    CHECKPOINT_EVERY_US = 2000000,
    POLL_MS_MAX = 200, /* the progress is shown as often */
    DRAIN_US = 10 * 1000000,
};
#define ITEM_TEXT_BYTES_MAX ((size_t)16 << 20)

/* ---- items ---- */

static Json without_system(Json item, Arena *arena)
{
    JsonBuilder b;
    json_build(&b, arena);
    json_begin_object(&b);
    JsonIter it = json_iter(item);
    while (json_next(&it)) {
        if (item_is_system_name(it.name))
            continue;
        json_key(&b, it.name);
        json_add(&b, it.value);
    }
    json_end(&b);
    return json_built(&b);
}

/* Whether the text of an item is enough. */
static bool needs_value(const ExportOptions *o, Slice text)
{
    return o->has_digest || o->strips_system || o->format == ROW_FORMAT_CSV ||
           slice_find(text, '\n') < text.len;
}

static Status write_item(Export *export, Slice text, Error *err)
{
    Json value = JSON_NONE;
    ItemHash hash = {0};
    if (needs_value(export->options, text)) {
        arena_reset(&export->item_arena);
        if (json_parse(&export->item_arena, text, &value, err) != STATUS_OK)
            return error_context(err, "an item of the server's answer");
        bool is_object = json_is(value, JSON_OBJECT);
        if (export->options->has_digest)
            hash = item_hash(value);
        if (export->options->strips_system && is_object)
            value = without_system(value, &export->item_arena);
        if (export->options->format == ROW_FORMAT_CSV && !is_object)
            return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                             "a result of the query is not an object, so it cannot be a row of "
                             "CSV: %.*s",
                             SLICE_CUT(text, 100));
        buf_reset(&export->item_text);
        json_print(value, &export->item_text);
        text = buf_view(&export->item_text);
    }
    TRY(output_item(export->output, text, value, err));
    item_digest_add(&export->digest, hash);
    return STATUS_OK;
}

static Status bad_page(Error *err)
{
    return error_set(err, STATUS_UNAVAILABLE, SUB_NONE,
                     "a page of the server's answer is not complete; does it speak the protocol?");
}

Status export_page(Export *export, const ClientCall *call, Error *err)
{
    Slice rest;
    if (!page_body_documents(call->body, &rest))
        return bad_page(err);
    AUTO(row_reader_free)
    RowReader *reader = row_reader_new(&(RowOptions){.format = ROW_FORMAT_JSON});
    uint64_t count = 0;
    for (;; count++) {
        Row row;
        size_t used = 0;
        RowResult result =
            row_reader_next(reader, ROW_SKIP, rest, true, &export->item_arena, &used, &row);
        if (result == ROW_END)
            break;
        if (result != ROW_READ || row.error.status != STATUS_OK)
            return bad_page(err);
        TRY(write_item(export, row.text, err));
        rest = slice_from(rest, used);
    }
    uint64_t expected = 0;
    if (slice_to_u64(client_header(call, SLICE("x-ms-item-count")), &expected) && expected != count)
        return bad_page(err);
    return STATUS_OK;
}

/* ---- the checkpoint ---- */

/* Everything that decides what is written. */
static void name_job(Export *export)
{
    const ExportOptions *o = export->options;
    AUTO(buf_done) Buf text;
    buf_init(&text, (size_t)4 << 20);
    buf_format(&text, "%s\n%s\n%s\n%s\n%d %d %d %d\n", o->database, o->container,
               o->path == NULL ? "" : o->path, o->query == NULL ? "" : o->query, (int)o->format,
               (int)o->compression, o->strips_system, o->has_digest);
    checkpoint_job(buf_view(&text), export->job);
}

static Slice job_of(const Export *export)
{
    return slice_make(export->job, sizeof(export->job));
}

static Status save_checkpoint(Export *export, Error *err)
{
    /* With half a page in the output, the checkpoint before it is the one to go on from. */
    if (export->options->resume_path == NULL || export->is_torn)
        return STATUS_OK;
    ExportCheckpoint checkpoint = {.digest = export->digest};
    TRY(output_sync(export->output, &checkpoint.bytes, err));
    checkpoint.parts = MEM_NEW_ARRAY(ExportPart, export->part_count + 1);
    for (size_t i = 0; i < export->part_count; i++) {
        const Part *part = export->parts[i];
        if (part->state == PART_FINISHED || part->state == PART_REPLACED)
            continue;
        checkpoint.parts[checkpoint.part_count++] =
            (ExportPart){.min = slice_from_cstr(part->min),
                         .max = slice_from_cstr(part->max),
                         .token = slice_from_cstr(part->token)};
    }
    AUTO(buf_done) Buf text;
    buf_init(&text, CHECKPOINT_BYTES_MAX);
    export_checkpoint_print(&checkpoint, job_of(export), &text);
    mem_free(checkpoint.parts);
    if (buf_full(&text) || checkpoint.part_count > CHECKPOINT_PARTS_MAX)
        return error_set(err, STATUS_TOO_LARGE, SUB_NONE,
                         "the container has too many ranges to be resumed; leave --resume out");
    return checkpoint_write(export->options->resume_path, buf_view(&text), err);
}

/* Opens the output at the place of the checkpoint, if there is one, and makes the parts. */
static Status open_all(Export *export, Error *err)
{
    const ExportOptions *o = export->options;
    Slice text;
    bool found = false;
    ExportCheckpoint checkpoint = {0};
    name_job(export);
    if (o->resume_path != NULL)
        TRY(checkpoint_read(o->resume_path, &export->arena, &text, &found, err));
    if (found)
        TRY(export_checkpoint_parse(&export->arena, text, job_of(export), &checkpoint, err));
    if (found && checkpoint.part_count == 0)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "this export is finished; remove '%.200s' to begin anew", o->resume_path);
    export->summary.is_resumed = found;
    export->digest = checkpoint.digest;
    TRY(export_parts_open(export, found ? &checkpoint : NULL, err));
    OutputOptions output = {
        .path = o->path,
        .format = o->format,
        .compression = o->compression,
        .is_resumed = found,
        .bytes = checkpoint.bytes,
        .items = checkpoint.digest.count,
    };
    return output_open(&output, &export->output, err);
}

/* How many items there are, for the progress; 0 if the server does not say. */
static Status count_items(Export *export, Error *err)
{
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 16 << 10);
    const ClientHeader header = {"x-ms-documentdb-populatequotainfo", SLICE("True")};
    ClientCall call = remote_call(&export->remote, REMOTE_CONTAINER, &arena);
    call.headers = &header;
    call.header_count = 1;
    TRY(remote_ask(&export->remote, &call, err));
    if (call.http_status != 200)
        return remote_refused(&call, err);
    Slice usage = client_header(&call, SLICE("x-ms-resource-usage"));
    while (usage.len > 0 && export->options->query == NULL) {
        Slice entry = slice_trim(slice_cut(&usage, ';'));
        Slice name = slice_cut(&entry, '=');
        uint64_t count = 0;
        if (slice_equal_nocase(name, SLICE("documentsCount")) && slice_to_u64(entry, &count))
            export->total = count;
    }
    return STATUS_OK;
}

/* ---- the loop ---- */

static void show(Export *export, uint64_t now_us)
{
    bool is_silent = export->active_count > 0 && now_us > export->answered_us;
    ProgressNow now = {
        .items = export->digest.count,
        .done = export->digest.count,
        .total = export->total,
        .ru = export->summary.ru,
        .throttled = export->summary.throttled,
        .silent_us = is_silent ? now_us - export->answered_us : 0,
    };
    progress_show(&export->progress, &now, now_us);
}

static Status wait_and_answer(Export *export, uint32_t wait_ms, Error *err)
{
    ClientWake stop = {.fd = export->options->stop_fd};
    size_t count = export->options->stop_fd >= 0 && !export->is_stopping ? 1 : 0;
    for (;;) {
        ClientCall *ended = NULL;
        TRY(client_poll(export->remote.client, &stop, count, wait_ms, &ended, err));
        if (count > 0 && stop.is_ready && !export->is_stopping) {
            stop_signal_taken(export->options->stop_fd);
            export->is_stopping = true;
            export->summary.is_interrupted = true;
        }
        if (ended == NULL)
            return STATUS_OK;
        TRY(export_parts_answer(export, ended, clock_monotonic_us(clock_real()), err));
        wait_ms = 0;
    }
}

static Status turn(Export *export, uint64_t *stopped_us, bool *is_done, Error *err)
{
    uint32_t wait_ms = POLL_MS_MAX;
    uint64_t now_us = clock_monotonic_us(clock_real());
    if (!export->is_stopping)
        TRY(export_parts_send(export, now_us, &wait_ms, err));
    TRY(wait_and_answer(export, wait_ms, err));
    now_us = clock_monotonic_us(clock_real());
    if (export->is_stopping && *stopped_us == 0)
        *stopped_us = now_us;
    bool is_drained =
        export->active_count == 0 || (*stopped_us != 0 && now_us - *stopped_us > DRAIN_US);
    *is_done = export->is_stopping ? is_drained : export->finished_count == export->part_count;
    if (now_us - export->checkpoint_us > CHECKPOINT_EVERY_US) {
        TRY(save_checkpoint(export, err));
        export->checkpoint_us = clock_monotonic_us(clock_real());
    }
    show(export, now_us);
    return STATUS_OK;
}

static Status run(Export *export, Error *err)
{
    TRY(count_items(export, err));
    TRY(open_all(export, err));
    uint64_t stopped_us = 0;
    bool is_done = false;
    Status status = STATUS_OK;
    while (status == STATUS_OK && !is_done)
        status = turn(export, &stopped_us, &is_done, err);
    if (status != STATUS_OK || export->is_stopping) {
        /* What was done is kept, also if it ends badly. */
        Error late;
        Status saved = save_checkpoint(export, &late);
        if (status == STATUS_OK && saved != STATUS_OK) {
            *err = late;
            status = saved;
        }
        return status;
    }
    TRY(output_finish(export->output, &export->summary.bytes, err));
    /* Without parts: the export is finished. */
    return save_checkpoint(export, err);
}

static void export_done(Export *export)
{
    export_parts_close(export);
    output_close(export->output);
    buf_done(&export->item_text);
    arena_done(&export->item_arena);
    arena_done(&export->arena);
}
DEFINE_AUTO_VALUE(Export, export_done)

Status export_run(const ExportOptions *options, ExportSummary *out, Error *err)
{
    ASSERT(options->concurrency > 0);
    ASSERT(options->concurrency <= EXPORT_CONCURRENCY_MAX);
    ASSERT(options->resume_path == NULL || options->format != ROW_FORMAT_CSV);
    AUTO(export_done) Export export = {.options = options};
    uint64_t begun_us = clock_monotonic_us(clock_real());
    arena_init(&export.arena, 64 << 10);
    arena_init(&export.item_arena, 64 << 10);
    buf_init(&export.item_text, ITEM_TEXT_BYTES_MAX);
    remote_init(&export.remote, &export.arena, options->client, options->stop_fd, options->database,
                options->container);
    export.checkpoint_us = begun_us;
    progress_init(&export.progress, options->is_quiet, begun_us);
    Status status = run(&export, err);
    progress_clear(&export.progress);
    export.summary.digest = export.digest;
    export.summary.seconds = (double)(clock_monotonic_us(clock_real()) - begun_us) / 1e6;
    *out = export.summary;
    return status;
}
