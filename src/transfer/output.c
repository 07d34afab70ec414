/* output.c - see output.h. */
#include "transfer/output.h"

#include "base/buf.h"
#include "base/mem.h"
#include "transfer/csv_writer.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

enum { FLUSH_BYTES = 256 << 10 };
#define TEXT_BYTES_MAX   ((size_t)32 << 20) /* an item of the largest size, and what waits */
#define PACKED_BYTES_MAX ((size_t)64 << 20)

struct Output {
    OutputOptions options;
    const char *name; /* for messages */
    int fd;
    uint64_t bytes; /* written to the file */
    uint64_t items;
    Buf text;
    Buf packed;
    Compressor *compressor; /* NULL if there is no compression */
    CsvWriter *csv;         /* NULL unless the format is CSV */
};

Status output_open(const OutputOptions *options, Output **out, Error *err)
{
    ASSERT(options->format != ROW_FORMAT_AUTO);
    AUTO(output_close) Output *output = MEM_NEW(Output);
    *output = (Output){.options = *options,
                       .name = options->path == NULL ? "standard output" : options->path,
                       .fd = STDOUT_FILENO,
                       .bytes = options->is_resumed ? options->bytes : 0,
                       .items = options->is_resumed ? options->items : 0};
    buf_init(&output->text, TEXT_BYTES_MAX);
    buf_init(&output->packed, PACKED_BYTES_MAX);
    if (options->compression != COMPRESSION_NONE)
        output->compressor = compressor_new(options->compression);
    if (options->format == ROW_FORMAT_CSV)
        TRY(csv_writer_new(&output->csv, err));
    if (options->path != NULL) {
        output->fd = open(options->path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
        if (output->fd < 0)
            return error_set_errno(err, errno, "cannot open '%.200s'", options->path);
        off_t size = lseek(output->fd, 0, SEEK_END);
        if (size >= 0 && (uint64_t)size < output->bytes)
            return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                             "'%.200s' has %lld bytes, but %llu were written; it is not the file "
                             "of this export",
                             options->path, (long long)size, (unsigned long long)output->bytes);
        /* A pipe or a terminal cannot be cut, and has nothing to be cut. */
        if (ftruncate(output->fd, (off_t)output->bytes) != 0 && errno != EINVAL)
            return error_set_errno(err, errno, "cannot write '%.200s'", options->path);
        (void)lseek(output->fd, (off_t)output->bytes, SEEK_SET);
    }
    if (options->format == ROW_FORMAT_JSON && !options->is_resumed)
        buf_byte(&output->text, '[');
    *out = TAKE(output);
    return STATUS_OK;
}

void output_close(Output *output)
{
    if (output == NULL)
        return;
    if (output->fd >= 0 && output->options.path != NULL)
        (void)close(output->fd);
    buf_done(&output->text);
    buf_done(&output->packed);
    compressor_free(output->compressor);
    csv_writer_free(output->csv);
    mem_free(output);
}

static Status write_all(Output *output, Slice bytes, Error *err)
{
    while (bytes.len > 0) {
        ssize_t put = write(output->fd, bytes.ptr, bytes.len);
        if (put < 0 && errno != EINTR)
            return error_set_errno(err, errno, "cannot write '%.200s'", output->name);
        output->bytes += put > 0 ? (uint64_t)put : 0;
        bytes = slice_from(bytes, put > 0 ? (size_t)put : 0);
    }
    return STATUS_OK;
}

/* Hands the text on to the file, through the compressor. */
static Status flush(Output *output, bool is_end, Error *err)
{
    if (buf_full(&output->text))
        return error_set(err, STATUS_TOO_LARGE, SUB_NONE, "an item is too large to be written");
    Slice bytes = buf_view(&output->text);
    if (output->compressor != NULL) {
        compressor_write(output->compressor, bytes, &output->packed);
        if (is_end)
            compressor_end(output->compressor, &output->packed);
        bytes = buf_view(&output->packed);
    }
    TRY(write_all(output, bytes, err));
    buf_reset(&output->text);
    buf_reset(&output->packed);
    return STATUS_OK;
}

static Status flush_some(Output *output, Error *err)
{
    return output->text.len >= FLUSH_BYTES ? flush(output, false, err) : STATUS_OK;
}

Status output_item(Output *output, Slice text, Json value, Error *err)
{
    if (output->csv != NULL)
        return csv_writer_add(output->csv, value, err);
    bool is_array = output->options.format == ROW_FORMAT_JSON;
    if (is_array)
        buf_slice(&output->text, output->items == 0 ? SLICE("\n") : SLICE(",\n"));
    buf_slice(&output->text, text);
    if (!is_array)
        buf_byte(&output->text, '\n');
    output->items++;
    return flush_some(output, err);
}

Status output_sync(Output *output, uint64_t *bytes, Error *err)
{
    ASSERT(output->csv == NULL);
    TRY(flush(output, true, err));
    /* A pipe or a terminal cannot be synced. */
    if (fsync(output->fd) != 0 && errno != EINVAL && errno != EROFS && errno != ENOTSUP)
        return error_set_errno(err, errno, "cannot sync '%.200s'", output->name);
    *bytes = output->bytes;
    return STATUS_OK;
}

static Status finish_csv(Output *output, Error *err)
{
    bool is_last = false;
    csv_writer_header(output->csv, &output->text);
    while (!is_last) {
        TRY(csv_writer_row(output->csv, &output->text, &is_last, err));
        TRY(flush_some(output, err));
    }
    csv_writer_free(TAKE(output->csv));
    return STATUS_OK;
}

Status output_finish(Output *output, uint64_t *bytes, Error *err)
{
    if (output->csv != NULL)
        TRY(finish_csv(output, err));
    else if (output->options.format == ROW_FORMAT_JSON)
        buf_slice(&output->text, SLICE("\n]\n"));
    return output_sync(output, bytes, err);
}
