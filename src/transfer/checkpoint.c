/* checkpoint.c - see checkpoint.h. */
#include "transfer/checkpoint.h"

#include "base/encoding.h"
#include "base/murmur.h"
#include "json/json.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <unistd.h>

void checkpoint_job(Slice what, char out[CHECKPOINT_JOB_LEN])
{
    uint64_t hash[2];
    murmur3_128(what, hash);
    static_assert(CHECKPOINT_JOB_LEN == 2 * sizeof(hash), "two characters a byte");
    hex_encode(hash, sizeof(hash), out);
}

/* ---- reading ---- */

static Status get_number(Json object, Slice name, uint64_t *out, Error *err)
{
    int64_t value = 0;
    if (!json_to_i64(json_get(object, name), &value) || value < 0)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "the file to resume from has no whole number '%.*s'", SLICE_ARG(name));
    *out = (uint64_t)value;
    return STATUS_OK;
}

static Status get_text(Json object, Slice name, Slice *out, Error *err)
{
    Json value = json_get(object, name);
    if (!json_is(value, JSON_STRING))
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "the file to resume from has no text '%.*s'", SLICE_ARG(name));
    *out = json_string(value);
    return STATUS_OK;
}

static Status open_object(Arena *arena, Slice text, Slice kind, Slice job, Json *out, Error *err)
{
    Json object;
    Slice found_kind;
    Slice found_job;
    if (json_parse(arena, text, &object, err) != STATUS_OK)
        return error_context(err, "the file to resume from");
    TRY(get_text(object, SLICE("orrery"), &found_kind, err));
    TRY(get_text(object, SLICE("job"), &found_job, err));
    if (!slice_equal(found_kind, kind))
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "the file to resume from is of '%.*s', not of '%.*s'",
                         SLICE_CUT(found_kind, 40), SLICE_ARG(kind));
    if (!slice_equal(found_job, job))
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "the file to resume from is of a job with other options or files; give "
                         "the same ones again, or remove it to begin anew");
    *out = object;
    return STATUS_OK;
}

static Status get_digest(Json object, ItemDigest *out, Error *err)
{
    Slice text;
    ItemDigest digest;
    TRY(get_number(object, SLICE("written"), &digest.count, err));
    TRY(get_text(object, SLICE("digest"), &text, err));
    if (!item_digest_parse(text, &digest.sum))
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "the file to resume from has no good 'digest'");
    *out = digest;
    return STATUS_OK;
}

Status import_checkpoint_parse(Arena *arena, Slice text, Slice job, ImportCheckpoint *out,
                               Error *err)
{
    Json object;
    ImportCheckpoint checkpoint;
    TRY(open_object(arena, text, SLICE("import"), job, &object, err));
    TRY(get_number(object, SLICE("file"), &checkpoint.file, err));
    TRY(get_number(object, SLICE("row"), &checkpoint.row, err));
    TRY(get_number(object, SLICE("rejected"), &checkpoint.rejected, err));
    TRY(get_number(object, SLICE("rejectBytes"), &checkpoint.reject_bytes, err));
    TRY(get_digest(object, &checkpoint.digest, err));
    *out = checkpoint;
    return STATUS_OK;
}

static bool is_bound(Slice text)
{
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        if (!((c >= '0' && c <= '9') || (c >= 'A' && c <= 'F')))
            return false;
    }
    return true;
}

/* Goes into a header, so it must not end one. */
static bool is_token(Slice text)
{
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] < ' ' || text.ptr[i] == 0x7f)
            return false;
    }
    return true;
}

Status export_checkpoint_parse(Arena *arena, Slice text, Slice job, ExportCheckpoint *out,
                               Error *err)
{
    Json object;
    ExportCheckpoint checkpoint;
    TRY(open_object(arena, text, SLICE("export"), job, &object, err));
    TRY(get_number(object, SLICE("bytes"), &checkpoint.bytes, err));
    TRY(get_digest(object, &checkpoint.digest, err));
    Json parts = json_get(object, SLICE("parts"));
    if (!json_is(parts, JSON_ARRAY) || json_count(parts) > CHECKPOINT_PARTS_MAX)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "the file to resume from has no list 'parts'");
    checkpoint.part_count = json_count(parts);
    checkpoint.parts = ARENA_NEW_ARRAY(arena, ExportPart, checkpoint.part_count);
    JsonIter it = json_iter(parts);
    for (size_t i = 0; json_next(&it); i++) {
        ExportPart *part = &checkpoint.parts[i];
        TRY(get_text(it.value, SLICE("min"), &part->min, err));
        TRY(get_text(it.value, SLICE("max"), &part->max, err));
        TRY(get_text(it.value, SLICE("token"), &part->token, err));
        if (!is_bound(part->min) || !is_bound(part->max) || !is_token(part->token) ||
            slice_compare(part->min, part->max) >= 0)
            return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                             "the file to resume from has a part that is none");
    }
    *out = checkpoint;
    return STATUS_OK;
}

/* ---- writing ---- */

static void print_digest(const ItemDigest *digest, Buf *out)
{
    char text[ITEM_DIGEST_LEN];
    item_digest_print(digest, text);
    buf_format(out, "\"written\":%llu,\"digest\":\"%.*s\"", (unsigned long long)digest->count,
               ITEM_DIGEST_LEN, text);
}

void import_checkpoint_print(const ImportCheckpoint *checkpoint, Slice job, Buf *out)
{
    buf_format(out,
               "{\"orrery\":\"import\",\"job\":\"%.*s\",\"file\":%llu,\"row\":%llu,"
               "\"rejected\":%llu,\"rejectBytes\":%llu,",
               SLICE_ARG(job), (unsigned long long)checkpoint->file,
               (unsigned long long)checkpoint->row, (unsigned long long)checkpoint->rejected,
               (unsigned long long)checkpoint->reject_bytes);
    print_digest(&checkpoint->digest, out);
    buf_slice(out, SLICE("}\n"));
}

void export_checkpoint_print(const ExportCheckpoint *checkpoint, Slice job, Buf *out)
{
    buf_format(out, "{\"orrery\":\"export\",\"job\":\"%.*s\",\"bytes\":%llu,", SLICE_ARG(job),
               (unsigned long long)checkpoint->bytes);
    print_digest(&checkpoint->digest, out);
    buf_slice(out, SLICE(",\"parts\":["));
    for (size_t i = 0; i < checkpoint->part_count; i++) {
        const ExportPart *part = &checkpoint->parts[i];
        buf_format(out, "%s\n{\"min\":\"%.*s\",\"max\":\"%.*s\",\"token\":", i == 0 ? "" : ",",
                   SLICE_ARG(part->min), SLICE_ARG(part->max));
        json_print_string(part->token, out);
        buf_byte(out, '}');
    }
    buf_slice(out, SLICE("]}\n"));
}

Status checkpoint_read(const char *path, Arena *arena, Slice *text, bool *found, Error *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    *found = fd >= 0;
    if (fd < 0 && errno == ENOENT)
        return STATUS_OK;
    if (fd < 0)
        return error_set_errno(err, errno, "cannot open '%.200s'", path);
    char *bytes = arena_alloc(arena, CHECKPOINT_BYTES_MAX + 1);
    size_t len = 0;
    ssize_t got = 1;
    while (got > 0 && len <= CHECKPOINT_BYTES_MAX) {
        got = read(fd, bytes + len, CHECKPOINT_BYTES_MAX + 1 - len);
        len += got > 0 ? (size_t)got : 0;
    }
    int code = errno;
    (void)close(fd);
    if (got < 0)
        return error_set_errno(err, code, "cannot read '%.200s'", path);
    if (len > CHECKPOINT_BYTES_MAX)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "'%.200s' is too large to be a file to resume from", path);
    *text = slice_make(bytes, len);
    return STATUS_OK;
}

static Status write_synced(const char *path, Slice text, Error *err)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd < 0)
        return error_set_errno(err, errno, "cannot open '%.200s'", path);
    while (text.len > 0) {
        ssize_t put = write(fd, text.ptr, text.len);
        if (put < 0 && errno != EINTR)
            break;
        text = slice_from(text, put > 0 ? (size_t)put : 0);
    }
    int code = text.len > 0 || fsync(fd) != 0 ? errno : 0;
    if (close(fd) != 0 && code == 0)
        code = errno;
    return code == 0 ? STATUS_OK : error_set_errno(err, code, "cannot write '%.200s'", path);
}

Status checkpoint_write(const char *path, Slice text, Error *err)
{
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 1024);
    const char *temporary = arena_cstr(&arena, arena_format(&arena, "%s.new", path));
    TRY(write_synced(temporary, text, err));
    if (rename(temporary, path) != 0)
        return error_set_errno(err, errno, "cannot replace '%.200s'", path);
    /* The rename itself is durable with the folder; without that, an older file is found after a
     * power failure, which is true as well. */
    char *folder = dirname(arena_cstr(&arena, slice_from_cstr(path)));
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0) {
        (void)fsync(fd);
        (void)close(fd);
    }
    return STATUS_OK;
}
