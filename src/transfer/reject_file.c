/* reject_file.c - see reject_file.h. */
#include "transfer/reject_file.h"

#include "base/buf.h"
#include "base/mem.h"
#include "json/json.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#define PENDING_BYTES_MAX ((size_t)4 << 20)
enum { FLUSH_BYTES = 64 << 10 };

struct RejectFile {
    int fd;
    const char *path;
    uint64_t bytes; /* in the file */
    Buf pending;
};

Status reject_file_open(const char *path, uint64_t bytes, RejectFile **out, Error *err)
{
    AUTO(reject_file_close) RejectFile *file = MEM_NEW(RejectFile);
    *file = (RejectFile){.path = path, .bytes = bytes};
    buf_init(&file->pending, PENDING_BYTES_MAX);
    file->fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    if (file->fd < 0)
        return error_set_errno(err, errno, "cannot open '%.200s'", path);
    if (ftruncate(file->fd, (off_t)bytes) != 0 || lseek(file->fd, 0, SEEK_END) < 0)
        return error_set_errno(err, errno, "cannot write '%.200s'", path);
    *out = TAKE(file);
    return STATUS_OK;
}

void reject_file_close(RejectFile *file)
{
    if (file == NULL)
        return;
    if (file->fd >= 0)
        (void)close(file->fd);
    buf_done(&file->pending);
    mem_free(file);
}

static Status flush(RejectFile *file, Error *err)
{
    Slice left = buf_view(&file->pending);
    while (left.len > 0) {
        ssize_t put = write(file->fd, left.ptr, left.len);
        if (put < 0 && errno != EINTR)
            return error_set_errno(err, errno, "cannot write '%.200s'", file->path);
        file->bytes += put > 0 ? (uint64_t)put : 0;
        left = slice_from(left, put > 0 ? (size_t)put : 0);
    }
    buf_reset(&file->pending);
    return STATUS_OK;
}

/* The text with '?' for bytes that are not UTF-8; a JSON file can hold nothing else. */
static void print_text(Slice text, Buf *out)
{
    if (json_utf8_valid(text)) {
        json_print_string(text, out);
        return;
    }
    char *safe = mem_copy(text.ptr, text.len);
    for (size_t i = 0; i < text.len; i++)
        safe[i] = (char)(((uint8_t)safe[i] & 0x80) != 0 ? '?' : safe[i]);
    json_print_string(slice_make(safe, text.len), out);
    mem_free(safe);
}

Status reject_file_add(RejectFile *file, Slice path, uint64_t line, Slice reason, Slice row,
                       Error *err)
{
    Buf *out = &file->pending;
    buf_slice(out, SLICE("{\"file\":"));
    print_text(path, out);
    buf_format(out, ",\"line\":%llu,\"reason\":", (unsigned long long)line);
    print_text(reason, out);
    buf_slice(out, SLICE(",\"row\":"));
    print_text(row, out);
    buf_slice(out, SLICE("}\n"));
    if (buf_full(out))
        return error_set(err, STATUS_INTERNAL, SUB_NONE, "a rejected row is too long");
    return out->len >= FLUSH_BYTES ? flush(file, err) : STATUS_OK;
}

Status reject_file_sync(RejectFile *file, uint64_t *bytes, Error *err)
{
    TRY(flush(file, err));
    if (fsync(file->fd) != 0 && errno != EINVAL && errno != EROFS) /* /dev/null and pipes */
        return error_set_errno(err, errno, "cannot sync '%.200s'", file->path);
    *bytes = file->bytes;
    return STATUS_OK;
}
