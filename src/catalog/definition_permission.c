/* definition_permission.c - the bodies of users and permissions: see definition.h. */
#include "catalog/definition_int.h"
#include "catalog/permission_link.h"

static const Slice MODES[] = {
    [PERMISSION_READ] = SLICE_INIT("Read"),
    [PERMISSION_ALL] = SLICE_INIT("All"),
};

Status user_definition_create(Arena *arena, Json body, Slice *id, Error *err)
{
    Slice text;
    TRY(body_read_id(body, "user", &text, err));
    *id = arena_copy(arena, text);
    return STATUS_OK;
}

/* The values of a partition key as its header has them: "{}" stands for a missing value. */
static bool read_key(Json list, PartitionKey *out)
{
    out->count = 0;
    if (!json_is(list, JSON_ARRAY) || json_count(list) > PARTITION_KEY_PARTS_MAX)
        return false;
    for (JsonIter it = json_iter(list); json_next(&it);) {
        bool is_none = json_is(it.value, JSON_OBJECT) && json_count(it.value) == 0;
        if (json_is(it.value, JSON_ARRAY) || (json_is(it.value, JSON_OBJECT) && !is_none))
            return false;
        out->parts[out->count++] = is_none ? JSON_NONE : it.value;
    }
    Error ignored;
    return partition_key_check(out, &ignored) == STATUS_OK;
}

static Status check_link(Arena *arena, Slice link, Error *err)
{
    PermissionTarget target;
    if (permission_link_parse(arena, link, &target))
        return STATUS_OK;
    return REFUSE(err,
                  "'resource' of a permission must be the link of a container, or of an item, "
                  "stored procedure, trigger or user-defined function in one, like "
                  "'dbs/{database}/colls/{container}'; found '%.*s'.",
                  SHOWN(link));
}

Status permission_definition_create(Arena *arena, Json body, Json *normal, Error *err)
{
    const char *what = "a permission";
    Slice id;
    Slice link;
    size_t mode;
    TRY(body_read_id(body, "permission", &id, err));
    TRY(body_read_word(body, SLICE("permissionMode"), what, WORDS(MODES), WORD_REQUIRED, &mode,
                       err));
    TRY(body_read_text(body, SLICE("resource"), what, SLICE_EMPTY, &link, err));
    TRY(check_link(arena, link, err));
    Json key = body_member(body, SLICE("resourcePartitionKey"));
    PartitionKey parts;
    if (!json_is(key, JSON_UNDEFINED) && !read_key(key, &parts))
        return REFUSE(err, "Message: {\"Errors\":[\"Partition key supplied is not valid.\"]}");
    JsonBuilder b;
    json_build(&b, arena);
    json_begin_object(&b);
    body_add_text(&b, SLICE("id"), id);
    body_add_text(&b, SLICE("permissionMode"), MODES[mode]);
    body_add_text(&b, SLICE("resource"), link);
    if (!json_is(key, JSON_UNDEFINED))
        body_add_member(&b, SLICE("resourcePartitionKey"), key);
    json_end(&b);
    *normal = json_built(&b);
    return STATUS_OK;
}

Status permission_definition_read(Json normal, PermissionMode *mode, Slice *resource, bool *has_key,
                                  PartitionKey *key, Error *err)
{
    Json word = json_get(normal, SLICE("permissionMode"));
    Json link = json_get(normal, SLICE("resource"));
    Json list = json_get(normal, SLICE("resourcePartitionKey"));
    size_t at;
    *has_key = !json_is(list, JSON_UNDEFINED);
    key->count = 0;
    if (!json_is(word, JSON_STRING) || !body_find_word(json_string(word), WORDS(MODES), &at) ||
        !json_is(link, JSON_STRING) || (*has_key && !read_key(list, key)))
        return error_set(err, STATUS_CORRUPT, SUB_NONE,
                         "a stored permission does not say what it allows");
    *mode = (PermissionMode)at;
    *resource = json_string(link);
    return STATUS_OK;
}
