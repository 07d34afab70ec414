/* seed_body.c - see seed_body.h. */
#include "seed/seed_body.h"

#include "base/buf.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_one_of(Slice name, const char *const *names)
{
    for (; *names != NULL; names++) {
        if (slice_equal(name, slice_from_cstr(*names)))
            return true;
    }
    return false;
}

static void add_partition_key(JsonBuilder *b, Json key)
{
    if (json_is(key, JSON_OBJECT)) {
        json_add(b, key);
        return;
    }
    bool is_many = json_is(key, JSON_ARRAY) && json_count(key) > 1;
    json_begin_object(b);
    json_key(b, SLICE("paths"));
    if (json_is(key, JSON_ARRAY)) {
        json_add(b, key);
    } else {
        json_begin_array(b);
        json_add(b, key);
        json_end(b);
    }
    json_key(b, SLICE("kind"));
    json_add_string(b, is_many ? SLICE("MultiHash") : SLICE("Hash"));
    json_key(b, SLICE("version"));
    json_add_i64(b, 2);
    json_end(b);
}

/* The object without those names. */
static Json copy_without(Arena *arena, Json object, const char *const *names)
{
    JsonBuilder b;
    json_build(&b, arena);
    json_begin_object(&b);
    for (JsonIter it = json_iter(object); json_next(&it);) {
        if (slice_starts_with(it.name, SLICE("_")) || is_one_of(it.name, names))
            continue;
        json_key(&b, it.name);
        if (slice_equal(it.name, SLICE("partitionKey")))
            add_partition_key(&b, it.value);
        else
            json_add(&b, it.value);
    }
    json_end(&b);
    return json_built(&b);
}

Json seed_container_body(Arena *arena, Json container)
{
    static const char *const NAMES[] = {
        "throughput", "maxThroughput", "storedProcedures", "triggers", "userDefinedFunctions",
        "items",      "itemsFrom",     "absent",           NULL,
    };
    return copy_without(arena, container, NAMES);
}

Json seed_plain_body(Arena *arena, Json object)
{
    static const char *const NAMES[] = {"absent", "permissions", NULL};
    return copy_without(arena, object, NAMES);
}

/* A file belongs to its seed file, so it is in the same folder or below: a seed file from somebody
 * else cannot bring the files of this machine into a database. Links are followed, since they are
 * made by the owner of the folder. */
static Status check_name(Slice name, Error *err)
{
    bool is_good = name.len > 0 && name.len <= SEED_PATH_BYTES_MAX && name.ptr[0] != '/' &&
                   memchr(name.ptr, '\0', name.len) == NULL;
    for (Slice rest = name; is_good && rest.ptr != NULL;) {
        Slice part = slice_cut(&rest, '/');
        is_good = part.len > 0 && !slice_equal(part, SLICE(".."));
    }
    if (is_good)
        return STATUS_OK;
    return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                     "'%.*s' is not the name of a file in the folder of the seed file, or in a "
                     "folder below it",
                     SLICE_CUT(name, 200));
}

Status seed_file_path(Arena *arena, const char *folder, Slice name, const char **out, Error *err)
{
    TRY(check_name(name, err));
    if (folder == NULL) {
        *out = arena_cstr(arena, name);
        return STATUS_OK;
    }
    const char *path = arena_format(arena, "%s/%.*s", folder, SLICE_ARG(name)).ptr;
    struct stat info;
    if (stat(path, &info) != 0)
        return error_set_errno(err, errno, "cannot read '%.200s'", path);
    if (!S_ISREG(info.st_mode))
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE, "'%.200s' is not a file", path);
    *out = path;
    return STATUS_OK;
}

static Status read_script(Arena *arena, const char *path, Slice *out, Error *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return error_set_errno(err, errno, "cannot read '%.200s'", path);
    AUTO(buf_done) Buf text;
    buf_init(&text, SEED_SCRIPT_BYTES_MAX);
    char piece[16384];
    ssize_t got = 0;
    while ((got = read(fd, piece, sizeof(piece))) > 0 && !buf_full(&text))
        buf_bytes(&text, piece, (size_t)got);
    int code = errno;
    (void)close(fd); /* it was only read */
    if (got < 0)
        return error_set_errno(err, code, "cannot read '%.200s'", path);
    if (buf_full(&text))
        return error_set(err, STATUS_TOO_LARGE, SUB_NONE,
                         "'%.200s' has more than %zu bytes, which is too much for a script", path,
                         SEED_SCRIPT_BYTES_MAX);
    if (!json_utf8_valid(buf_view(&text)))
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE, "'%.200s' is not UTF-8", path);
    *out = arena_copy(arena, buf_view(&text));
    return STATUS_OK;
}

Status seed_script_body(Arena *arena, const char *folder, Json script, Json *out, Error *err)
{
    Json file = json_get(script, SLICE("file"));
    bool has_body = !json_is(json_get(script, SLICE("body")), JSON_UNDEFINED);
    if (json_is(file, JSON_STRING) == has_body)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "expected either 'body', the text of the script, or 'file', where it is");
    Slice text = SLICE_EMPTY;
    if (!has_body) {
        const char *path = NULL;
        TRY(seed_file_path(arena, folder, json_string(file), &path, err));
        if (folder != NULL)
            TRY(read_script(arena, path, &text, err));
    }
    JsonBuilder b;
    json_build(&b, arena);
    json_begin_object(&b);
    static const char *const NAMES[] = {"absent", "file", NULL};
    for (JsonIter it = json_iter(script); json_next(&it);) {
        if (slice_starts_with(it.name, SLICE("_")) || is_one_of(it.name, NAMES))
            continue;
        json_key(&b, it.name);
        json_add(&b, it.value);
    }
    if (!has_body) {
        json_key(&b, SLICE("body"));
        json_add_string(&b, text);
    }
    json_end(&b);
    *out = json_built(&b);
    return STATUS_OK;
}
