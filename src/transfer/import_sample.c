/* import_sample.c - see import_sample.h. */
#include "transfer/import_sample.h"

#include "base/clock.h"
#include "transfer/import_int.h"

#include <errno.h>
#include <poll.h>
#include <unistd.h>

enum { FILE_BYTES_MIN = 1 << 20 }; /* that each file may give, however many there are */

typedef struct Sampler {
    const ImportOptions *options;
    const RowMapping *mapping;
    ImportSampleTake take;
    void *context;
    Arena row_arena;
    uint64_t bytes_left; /* of all files */
} Sampler;

/* ---- standard input ---- */

static bool is_late(uint64_t begun_us)
{
    return clock_monotonic_us(clock_real()) - begun_us > (uint64_t)IMPORT_SAMPLE_WAIT_MS * 1000;
}

/* Reads until there is enough, the end, or nothing more for a while. */
static Status read_stdin(Buf *out, Error *err)
{
    uint64_t begun_us = 0;
    while (out->len < IMPORT_SAMPLE_STDIN_MAX && (out->len == 0 || !is_late(begun_us))) {
        char piece[64 << 10];
        struct pollfd ready = {.fd = STDIN_FILENO, .events = POLLIN};
        int count = poll(&ready, 1, out->len == 0 ? -1 : IMPORT_SAMPLE_WAIT_MS);
        if (count == 0)
            return STATUS_OK;
        size_t room = IMPORT_SAMPLE_STDIN_MAX - out->len;
        ssize_t got =
            count < 0 ? -1 : read(STDIN_FILENO, piece, room < sizeof(piece) ? room : sizeof(piece));
        if (got < 0 && errno != EINTR && errno != EAGAIN)
            return error_set_errno(err, errno, "cannot read standard input");
        if (got == 0)
            return STATUS_OK;
        if (got > 0 && out->len == 0)
            begun_us = clock_monotonic_us(clock_real());
        if (got > 0)
            buf_bytes(out, piece, (size_t)got);
    }
    return STATUS_OK;
}

/* ---- rows ---- */

static Status take_row(Sampler *s, const InputFile *file, uint64_t number, const Row *row,
                       Error *err)
{
    char id[ROW_ID_LEN];
    Json item;
    bool is_changed = false;
    Error ignored;
    if (row->error.status != STATUS_OK)
        return STATUS_OK;
    row_id_make(slice_from_cstr(file->path), number, row->text, id);
    if (row_mapping_apply(s->mapping, row->value, slice_make(id, sizeof(id)), &s->row_arena, &item,
                          &is_changed, &ignored) != STATUS_OK)
        return STATUS_OK;
    return s->take(s->context, item, err);
}

/* What was wrong with a file, or with the items of it: only the latter ends the sample. */
typedef enum FileEnd { FILE_READ, FILE_BROKEN, FILE_REFUSED } FileEnd;

static FileEnd read_rows(Sampler *s, const InputFile *file, uint64_t bytes_max, Error *err)
{
    AUTO(input_close) Input *input = NULL;
    AUTO(row_reader_free) RowReader *reader = NULL;
    uint64_t bytes = 0;
    uint64_t number = 0;
    bool is_ended = false;
    if (input_open(file, &input, err) != STATUS_OK)
        return FILE_BROKEN;
    while (bytes < bytes_max) {
        Row row;
        size_t used = 0;
        RowResult result = ROW_MORE;
        if (reader == NULL)
            reader = import_open_reader(s->options, file->path, input_bytes(input), is_ended);
        if (reader != NULL)
            result = row_reader_next(reader, ROW_PARSE, input_bytes(input), is_ended, &s->row_arena,
                                     &used, &row);
        if (result == ROW_END)
            return FILE_READ;
        if (result == ROW_READ && take_row(s, file, ++number, &row, err) != STATUS_OK)
            return FILE_REFUSED;
        arena_reset(&s->row_arena);
        input_skip(input, used);
        bytes += used;
        InputState state = INPUT_READY;
        if (result == ROW_MORE && input_fill(input, &state, err) != STATUS_OK)
            return FILE_BROKEN;
        is_ended = is_ended || state == INPUT_END;
    }
    return FILE_READ;
}

static Status sample_files(Sampler *s, const InputList *files, Slice begun, Error *err)
{
    uint64_t each = IMPORT_SAMPLE_BYTES_MAX / (files->count > 0 ? files->count : 1);
    for (size_t i = 0; i < files->count && s->bytes_left > 0; i++) {
        InputFile file = files->files[i];
        if (strcmp(file.path, "-") == 0) {
            file.begun = begun;
            file.is_only_begun = true;
        }
        uint64_t bytes_max = each > FILE_BYTES_MIN ? each : FILE_BYTES_MIN;
        bytes_max = bytes_max < s->bytes_left ? bytes_max : s->bytes_left;
        s->bytes_left -= bytes_max;
        if (read_rows(s, &file, bytes_max, err) == FILE_REFUSED)
            return err->status;
    }
    return STATUS_OK;
}

Status import_sample(const ImportOptions *options, ImportSampleTake take, void *context, Buf *begun,
                     Error *err)
{
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 64 << 10);
    InputList files;
    Sampler s = {.options = options,
                 .take = take,
                 .context = context,
                 .bytes_left = IMPORT_SAMPLE_BYTES_MAX};
    TRY(input_list(&arena, options->sources, options->source_count, &files, err));
    TRY(row_mapping_parse(&arena, options->sets, options->set_count, options->id_from, &s.mapping,
                          err));
    bool has_stdin = false;
    for (size_t i = 0; i < files.count; i++)
        has_stdin = has_stdin || strcmp(files.files[i].path, "-") == 0;
    if (has_stdin)
        TRY(read_stdin(begun, err));
    arena_init(&s.row_arena, 64 << 10);
    Status status = sample_files(&s, &files, buf_view(begun), err);
    arena_done(&s.row_arena);
    return status;
}
