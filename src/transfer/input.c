/* input.c - see input.h. */
#include "transfer/input.h"

#include "base/array.h"
#include "base/buf.h"
#include "base/mem.h"
#include "transfer/compression.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    READ_BYTES = 256 << 10,
    GROW_BYTES = 256 << 10, /* of text from one fill */
};
/* A row of the largest size, what was read behind it, and room to spare. */
#define TEXT_BYTES_MAX ((size_t)16 << 20)

struct Input {
    int fd;
    bool is_own;  /* to be closed */
    bool is_file; /* which is always readable */
    bool is_ended;
    const char *path;
    Slice begun; /* bytes that were read before, not yet in 'raw' */
    bool is_only_begun;
    uint64_t position;
    char raw[READ_BYTES]; /* as it is in the file */
    Slice left;           /* of 'raw', not yet decompressed */
    bool has_begun;       /* the first bytes have told the compression */
    Decompressor *stream; /* NULL if there is no compression */
    Buf text;
    size_t used; /* bytes of 'text' that are done with */
};

/* ---- the list ---- */

static Status add_path(Arena *arena, const char *path, uint32_t depth, bool is_named,
                       InputList *list, Error *err);

static Status add_file(Arena *arena, InputFile file, InputList *list, Error *err)
{
    if (list->count == INPUT_FILES_MAX)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE, "more than %d files", INPUT_FILES_MAX);
    ARRAY_GROW_IN(arena, list->files, list->count, list->capacity, 16);
    list->files[list->count++] = file;
    return STATUS_OK;
}

static int skip_hidden(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static Status add_folder(Arena *arena, const char *path, uint32_t depth, InputList *list,
                         Error *err)
{
    if (depth == INPUT_DEPTH_MAX)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE, "'%.200s' is %d folders deep", path,
                         INPUT_DEPTH_MAX);
    struct dirent **entries = NULL;
    int count = scandir(path, &entries, skip_hidden, by_name);
    if (count < 0)
        return error_set_errno(err, errno, "cannot read the folder '%.200s'", path);
    Status status = STATUS_OK;
    bool has_slash = slice_ends_with(slice_from_cstr(path), SLICE("/"));
    for (int i = 0; i < count; i++) {
        Slice below = arena_format(arena, "%s%s%s", path, has_slash ? "" : "/", entries[i]->d_name);
        if (status == STATUS_OK)
            status = add_path(arena, arena_cstr(arena, below), depth + 1, false, list, err);
        free(entries[i]); /* scandir has it from malloc */
    }
    free(entries);
    return status;
}

static Status add_path(Arena *arena, const char *path, uint32_t depth, bool is_named,
                       InputList *list, Error *err)
{
    struct stat info;
    if (is_named && strcmp(path, "-") == 0)
        return add_file(arena, (InputFile){.path = path}, list, err);
    if (stat(path, &info) != 0)
        return error_set_errno(err, errno, "cannot read '%.200s'", path);
    if (S_ISDIR(info.st_mode))
        return add_folder(arena, path, depth, list, err);
    bool is_file = S_ISREG(info.st_mode);
    if (!is_file && !is_named)
        return STATUS_OK; /* a socket or the like in a folder */
    InputFile file = {.path = path,
                      .bytes = is_file ? (uint64_t)info.st_size : 0,
                      .changed_s = is_file ? info.st_mtime : 0};
    return add_file(arena, file, list, err);
}

Status input_list(Arena *arena, const char *const *names, size_t count, InputList *out, Error *err)
{
    InputList list = {0};
    bool is_known = true;
    for (size_t i = 0; i < count; i++)
        TRY(add_path(arena, names[i], 0, true, &list, err));
    for (size_t i = 0; i < list.count; i++) {
        struct stat info;
        bool is_file = strcmp(list.files[i].path, "-") != 0 &&
                       stat(list.files[i].path, &info) == 0 && S_ISREG(info.st_mode);
        is_known = is_known && is_file;
        list.bytes += list.files[i].bytes;
    }
    list.bytes = is_known ? list.bytes : 0;
    *out = list;
    return STATUS_OK;
}

/* ---- one file ---- */

Status input_open(const InputFile *file, Input **out, Error *err)
{
    AUTO(input_close) Input *input = MEM_NEW(Input);
    input->path = file->path;
    input->begun = file->begun;
    input->is_only_begun = file->is_only_begun;
    input->is_own = strcmp(file->path, "-") != 0;
    buf_init(&input->text, TEXT_BYTES_MAX);
    if (file->is_only_begun) {
        input->fd = -1;
        input->is_file = true;
        *out = TAKE(input);
        return STATUS_OK;
    }
    input->fd = input->is_own ? open(file->path, O_RDONLY | O_CLOEXEC) : STDIN_FILENO;
    if (input->fd < 0)
        return error_set_errno(err, errno, "cannot open '%.200s'", file->path);
    struct stat info;
    if (fstat(input->fd, &info) != 0)
        return error_set_errno(err, errno, "cannot read '%.200s'", file->path);
    if (S_ISDIR(info.st_mode))
        return error_set(err, STATUS_IO, SUB_NONE, "'%.200s' is a folder", file->path);
    input->is_file = S_ISREG(info.st_mode);
    if (input->is_file)
        (void)posix_fadvise(input->fd, 0, 0, POSIX_FADV_SEQUENTIAL); /* only a hint */
    *out = TAKE(input);
    return STATUS_OK;
}

void input_close(Input *input)
{
    if (input == NULL)
        return;
    if (input->is_own && input->fd >= 0)
        (void)close(input->fd);
    decompressor_free(input->stream);
    buf_done(&input->text);
    mem_free(input);
}

/* Moves what is left to the front, if that is worth it. */
static void compact(Input *input)
{
    if (input->used == 0 || input->used < input->text.len / 2)
        return;
    size_t left = input->text.len - input->used;
    memmove(input->text.ptr, input->text.ptr + input->used, left);
    input->text.len = left;
    input->used = 0;
}

/* Takes bytes that were read before into 'raw'; there is room for 'room'. */
static ssize_t take_begun(Input *input, size_t room)
{
    size_t count = input->begun.len < room ? input->begun.len : room;
    memcpy(input->raw + input->left.len, input->begun.ptr, count);
    input->begun = slice_from(input->begun, count);
    return (ssize_t)count;
}

/* Reads from the file behind what is left in 'raw'. */
static Status read_raw(Input *input, InputState *out, Error *err)
{
    struct pollfd ready = {.fd = input->fd, .events = POLLIN};
    bool is_begun = input->begun.len > 0;
    bool is_over = !is_begun && input->is_only_begun;
    *out = INPUT_READY;
    if (!input->is_file && !is_begun && !is_over && poll(&ready, 1, 0) == 0) {
        *out = INPUT_WAIT;
        return STATUS_OK;
    }
    if (input->left.len > 0)
        memmove(input->raw, input->left.ptr, input->left.len);
    size_t room = sizeof(input->raw) - input->left.len;
    ssize_t got = is_over    ? 0
                  : is_begun ? take_begun(input, room)
                             : read(input->fd, input->raw + input->left.len, room);
    input->left = slice_make(input->raw, input->left.len);
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) {
        *out = INPUT_WAIT;
        return STATUS_OK;
    }
    if (got < 0)
        return error_set_errno(err, errno, "cannot read '%.200s'", input->path);
    input->is_ended = got == 0;
    input->left.len += (size_t)got;
    input->position += (uint64_t)got;
    return STATUS_OK;
}

static Status expand(Input *input, Error *err)
{
    if (!input->has_begun) {
        if (input->left.len < COMPRESSION_MAGIC_BYTES && !input->is_ended)
            return STATUS_OK;
        Compression kind = compression_of_bytes(input->left);
        input->has_begun = true;
        if (kind != COMPRESSION_NONE)
            input->stream = decompressor_new(kind);
    }
    if (input->stream == NULL) {
        buf_slice(&input->text, input->left);
        input->left = SLICE_EMPTY;
    } else if (decompressor_feed(input->stream, &input->left, GROW_BYTES, &input->text, err) !=
               STATUS_OK) {
        return error_context(err, "'%.200s'", input->path);
    }
    return STATUS_OK;
}

Status input_fill(Input *input, InputState *out, Error *err)
{
    compact(input);
    size_t before = input->text.len;
    if (!input->is_ended && input->left.len < sizeof(input->raw) / 2) {
        TRY(read_raw(input, out, err));
        if (*out == INPUT_WAIT)
            return STATUS_OK;
    }
    TRY(expand(input, err));
    if (buf_full(&input->text))
        return error_set(err, STATUS_INTERNAL, SUB_NONE, "'%.200s' was read faster than used",
                         input->path);
    *out = INPUT_READY;
    bool is_drained = input->is_ended && input->left.len == 0 && input->text.len == before;
    if (!is_drained)
        return STATUS_OK;
    if (input->stream != NULL && !decompressor_is_whole(input->stream))
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "'%.200s' ends in the middle of its compressed data", input->path);
    *out = INPUT_END;
    return STATUS_OK;
}

Slice input_bytes(const Input *input)
{
    return slice_from(buf_view(&input->text), input->used);
}

void input_skip(Input *input, size_t count)
{
    ASSERT(count <= input->text.len - input->used);
    input->used += count;
}

int input_fd(const Input *input)
{
    return input->fd;
}

uint64_t input_position(const Input *input)
{
    size_t unused = input->left.len;
    if (input->stream == NULL)
        unused += input->text.len - input->used;
    return input->position - unused;
}
