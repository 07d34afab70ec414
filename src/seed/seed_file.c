/* seed_file.c - see seed_file.h. */
#include "seed/seed_file.h"

#include "base/buf.h"
#include "catalog/definition.h"
#include "seed/seed_body.h"
#include "seed/seed_items.h"
#include "seed/seed_place.h"
#include "seed/seed_shape.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define THROUGHPUT_MAX 1000000000

typedef struct Check {
    Arena *arena;
    const char *folder; /* NULL if no file is looked at */
} Check;

/* ---- what resources have in common ---- */

static bool is_absent(Json resource)
{
    Json absent = json_get(resource, SLICE("absent"));
    return json_is(absent, JSON_BOOL) && json_bool(absent);
}

/* What must not exist has no properties. */
static Status check_absent(Json resource, const SeedPlace *place, Error *err)
{
    for (JsonIter it = json_iter(resource); json_next(&it);) {
        if (!slice_equal(it.name, SLICE("id")) && !slice_equal(it.name, SLICE("absent")))
            return seed_refuse(place, err,
                               "'absent' is true, so '%.*s' has no meaning; leave one of them out",
                               SLICE_CUT(it.name, 80));
    }
    return STATUS_OK;
}

static Status check_throughput(Json resource, const SeedPlace *place, Error *err)
{
    static const char *const NAMES[] = {"throughput", "maxThroughput"};
    size_t count = 0;
    for (size_t i = 0; i < ARRAY_COUNT(NAMES); i++) {
        Json value = json_get(resource, slice_from_cstr(NAMES[i]));
        int64_t ru = 0;
        if (json_is(value, JSON_UNDEFINED))
            continue;
        count++;
        if (!json_to_i64(value, &ru) || ru < 1 || ru > THROUGHPUT_MAX) {
            SeedPlace inner = seed_place_member(place, slice_from_cstr(NAMES[i]));
            return seed_refuse(&inner, err, "expected a whole number of request units a second");
        }
    }
    if (count > 1)
        return seed_refuse(place, err,
                           "'throughput' (manual) and 'maxThroughput' (autoscale) exclude each "
                           "other");
    return STATUS_OK;
}

typedef struct NumberedId {
    Slice id;
    size_t index;
} NumberedId;

static int compare_ids(const void *a, const void *b)
{
    const NumberedId *x = a, *y = b;
    int order = slice_compare(x->id, y->id);
    return order != 0 ? order : (x->index > y->index) - (x->index < y->index);
}

/* No two resources of a list have the same id. */
static Status check_ids(Check *check, Json list, const SeedPlace *place, Error *err)
{
    size_t count = json_is(list, JSON_ARRAY) ? json_count(list) : 0;
    if (count < 2)
        return STATUS_OK;
    NumberedId *ids = ARENA_NEW_ARRAY(check->arena, NumberedId, count);
    size_t i = 0;
    for (JsonIter it = json_iter(list); json_next(&it); i++)
        ids[i] = (NumberedId){json_string(json_get(it.value, SLICE("id"))), i};
    qsort(ids, count, sizeof(*ids), compare_ids);
    for (i = 1; i < count; i++) {
        if (!slice_equal(ids[i].id, ids[i - 1].id))
            continue;
        SeedPlace element = seed_place_element(place, ids[i].index);
        return seed_refuse(&element, err, "the id '%.*s' was used before, in element %zu",
                           SLICE_CUT(ids[i].id, 100), ids[i - 1].index);
    }
    return STATUS_OK;
}

typedef Status (*CheckFunction)(Check *check, Json resource, const SeedPlace *place, Error *err);

/* Checks each resource of the list that is the member 'name' of 'object'. */
static Status check_list(Check *check, Json object, const SeedPlace *up, const char *name,
                         CheckFunction function, Error *err)
{
    SeedPlace place = seed_place_member(up, slice_from_cstr(name));
    Json list = json_get(object, place.name);
    TRY(check_ids(check, list, &place, err));
    size_t i = 0;
    for (JsonIter it = json_iter(list); json_next(&it); i++) {
        SeedPlace element = seed_place_element(&place, i);
        if (resource_id_check(json_string(json_get(it.value, SLICE("id"))), RESOURCE_ID_NAMED,
                              err) != STATUS_OK)
            return seed_place_context(&element, err);
        if (is_absent(it.value))
            TRY(check_absent(it.value, &element, err));
        else
            TRY(function(check, it.value, &element, err));
    }
    return STATUS_OK;
}

/* ---- each kind ---- */

static Status check_script(Check *check, StoredScriptKind kind, Json script, const SeedPlace *place,
                           Error *err)
{
    Json body, normal;
    Status status = seed_script_body(check->arena, check->folder, script, &body, err);
    if (status == STATUS_OK)
        status = stored_script_definition_create(check->arena, kind, body, &normal, err);
    return status == STATUS_OK ? STATUS_OK : seed_place_context(place, err);
}

static Status check_procedure(Check *check, Json script, const SeedPlace *place, Error *err)
{
    return check_script(check, STORED_PROCEDURE, script, place, err);
}

static Status check_trigger(Check *check, Json script, const SeedPlace *place, Error *err)
{
    return check_script(check, STORED_TRIGGER, script, place, err);
}

static Status check_function(Check *check, Json script, const SeedPlace *place, Error *err)
{
    return check_script(check, STORED_FUNCTION, script, place, err);
}

static Status check_items(Check *check, Json container, const SeedPlace *up, Error *err)
{
    SeedPlace place = seed_place_member(up, SLICE("items"));
    size_t i = 0;
    for (JsonIter it = json_iter(json_get(container, place.name)); json_next(&it); i++) {
        SeedPlace element = seed_place_element(&place, i);
        Json id = json_get(it.value, SLICE("id"));
        if (!json_is(id, JSON_STRING) || json_string(id).len == 0)
            return seed_refuse(&element, err,
                               "an item needs an 'id', which is text: by it a second run knows "
                               "which item is meant");
        if (resource_id_check(json_string(id), RESOURCE_ID_ITEM, err) != STATUS_OK)
            return seed_place_context(&element, err);
    }
    place = seed_place_member(up, SLICE("itemsFrom"));
    i = 0;
    for (JsonIter it = json_iter(json_get(container, place.name)); json_next(&it); i++) {
        SeedPlace element = seed_place_element(&place, i);
        SeedItemFile file;
        if (seed_item_file_parse(check->arena, check->folder, it.value, &file, err) != STATUS_OK)
            return seed_place_context(&element, err);
    }
    return STATUS_OK;
}

static Status check_container(Check *check, Json container, const SeedPlace *place, Error *err)
{
    Json normal;
    ContainerRules rules = {.allow_no_partition_key = false};
    TRY(check_throughput(container, place, err));
    Json body = seed_container_body(check->arena, container);
    if (container_definition_create(check->arena, body, rules, &normal, err) != STATUS_OK)
        return seed_place_context(place, err);
    TRY(check_list(check, container, place, "storedProcedures", check_procedure, err));
    TRY(check_list(check, container, place, "triggers", check_trigger, err));
    TRY(check_list(check, container, place, "userDefinedFunctions", check_function, err));
    return check_items(check, container, place, err);
}

static Status check_encryption_key(Check *check, Json key, const SeedPlace *place, Error *err)
{
    Json normal;
    Json body = seed_plain_body(check->arena, key);
    if (encryption_key_definition_create(check->arena, body, &normal, err) != STATUS_OK)
        return seed_place_context(place, err);
    return STATUS_OK;
}

static Status check_permission(Check *check, Json permission, const SeedPlace *place, Error *err)
{
    Json normal;
    Json body = seed_plain_body(check->arena, permission);
    if (permission_definition_create(check->arena, body, &normal, err) != STATUS_OK)
        return seed_place_context(place, err);
    return STATUS_OK;
}

static Status check_user(Check *check, Json user, const SeedPlace *place, Error *err)
{
    return check_list(check, user, place, "permissions", check_permission, err);
}

static Status check_database(Check *check, Json database, const SeedPlace *place, Error *err)
{
    TRY(check_throughput(database, place, err));
    TRY(check_list(check, database, place, "clientEncryptionKeys", check_encryption_key, err));
    TRY(check_list(check, database, place, "containers", check_container, err));
    return check_list(check, database, place, "users", check_user, err);
}

/* ---- the file ---- */

/* Syntax errors name a byte; an editor shows lines. */
static Status locate_syntax_error(Slice text, Error *err)
{
    static const char WORDS[] = "at byte ";
    const char *at = strstr(err->message, WORDS);
    Slice rest = at == NULL ? SLICE_EMPTY : slice_from_cstr(at + strlen(WORDS));
    uint64_t position = 0;
    if (!slice_to_u64(slice_cut(&rest, ':'), &position) || position > text.len)
        return err->status;
    size_t line = 1, start = 0;
    for (size_t i = 0; i < position; i++) {
        if (text.ptr[i] == '\n') {
            line++;
            start = i + 1;
        }
    }
    return error_context(err, "line %zu, column %zu", line, (size_t)position - start + 1);
}

Status seed_file_parse(Arena *arena, Slice text, const char *folder, Json *out, Error *err)
{
    Check check = {.arena = arena, .folder = folder};
    const SeedPlace root = {0};
    Json value;
    if (json_parse(arena, text, &value, err) != STATUS_OK)
        return locate_syntax_error(text, err);
    TRY(seed_shape_check(value, err));
    TRY(check_list(&check, value, &root, "databases", check_database, err));
    *out = value;
    return STATUS_OK;
}

static Status read_all(Arena *arena, int fd, Slice *out, Error *err)
{
    AUTO(buf_done) Buf text;
    buf_init(&text, SEED_FILE_BYTES_MAX);
    char piece[65536];
    ssize_t got = 0;
    while ((got = read(fd, piece, sizeof(piece))) > 0 && !buf_full(&text))
        buf_bytes(&text, piece, (size_t)got);
    if (got < 0)
        return error_set_errno(err, errno, "cannot be read");
    if (buf_full(&text))
        return error_set(err, STATUS_TOO_LARGE, SUB_NONE,
                         "has more than %zu bytes; put items into files of their own "
                         "('itemsFrom')",
                         SEED_FILE_BYTES_MAX);
    *out = arena_copy(arena, buf_view(&text));
    return STATUS_OK;
}

static Status read_file(Arena *arena, const char *path, Slice *out, Error *err)
{
    if (strcmp(path, "-") == 0)
        return read_all(arena, STDIN_FILENO, out, err);
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return error_set_errno(err, errno, "cannot be opened");
    struct stat info;
    Status status = STATUS_OK;
    if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode))
        status = error_set(err, STATUS_BAD_REQUEST, SUB_NONE, "is not a file");
    if (status == STATUS_OK)
        status = read_all(arena, fd, out, err);
    (void)close(fd); /* it was only read */
    return status;
}

Status seed_file_open(Arena *arena, const char *path, SeedFile *out, Error *err)
{
    SeedFile file = {.path = arena_cstr(arena, slice_from_cstr(path))};
    const char *slash = strrchr(file.path, '/');
    file.folder = slash == NULL ? "."
                  : slash == file.path
                      ? "/"
                      : arena_format(arena, "%.*s", (int)(slash - file.path), file.path).ptr;
    Slice text;
    Status status = read_file(arena, path, &text, err);
    if (status == STATUS_OK)
        status = seed_file_parse(arena, text, file.folder, &file.root, err);
    if (status != STATUS_OK)
        return error_context(err, "%.200s", path);
    *out = file;
    return STATUS_OK;
}
