/* unique.c - unique keys: within a logical partition no two items have the same values.
 *
 * Each unique key of the container has one key in the store per item, made of the values at its
 * paths, each with a tag and, where its length varies, its length, so that no two lists of values
 * look the same. A path that is missing counts as null.
 */
#include "partition/group_int.h"

enum { TAG_NULL, TAG_FALSE, TAG_TRUE, TAG_NUMBER, TAG_STRING, TAG_OTHER };

#define UNIQUE_BYTES_MAX (KEY_BYTES_MAX - 2 - EPK_BYTES_MAX)

static bool add_bytes(Key *key, const void *bytes, size_t len)
{
    if (len > KEY_BYTES_MAX - key->len)
        return false;
    if (len > 0)
        memcpy(key->bytes + key->len, bytes, len);
    key->len += len;
    return true;
}

static bool add_tagged(Key *key, uint8_t tag, Slice bytes)
{
    uint32_t len = (uint32_t)bytes.len;
    return add_bytes(key, &tag, 1) && add_bytes(key, &len, sizeof(len)) &&
           add_bytes(key, bytes.ptr, bytes.len);
}

static bool add_value(Group *group, Key *key, Json value)
{
    uint8_t tag = TAG_NULL;
    switch (json_type(value)) {
    case JSON_UNDEFINED:
    case JSON_NULL:
        return add_bytes(key, &tag, 1);
    case JSON_BOOL:
        tag = json_bool(value) ? TAG_TRUE : TAG_FALSE;
        return add_bytes(key, &tag, 1);
    case JSON_NUMBER: {
        double number = json_number(value) + 0.0; /* -0 becomes 0 */
        tag = TAG_NUMBER;
        return add_bytes(key, &tag, 1) && add_bytes(key, &number, sizeof(number));
    }
    case JSON_STRING:
        return add_tagged(key, TAG_STRING, json_string(value));
    case JSON_ARRAY:
    case JSON_OBJECT:
        return add_tagged(key, TAG_OTHER, json_bytes(&group->arena, value));
    }
    return false;
}

static Status make_key(Group *group, size_t which, Slice epk, Json document, Key *key, Error *err)
{
    const UniqueKey *unique = &group->schema->unique_keys[which];
    uint8_t head[2] = {KEY_UNIQUE, (uint8_t)which};
    key->len = 0;
    bool fits = add_bytes(key, head, sizeof(head)) && add_bytes(key, epk.ptr, epk.len);
    for (size_t i = 0; i < unique->path_count && fits; i++)
        fits = add_value(group, key, property_path_get(unique->paths[i], document));
    if (!fits)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "The values of unique key %zu are longer than %zu bytes.", which + 1,
                         (size_t)UNIQUE_BYTES_MAX);
    return STATUS_OK;
}

/* Whether the item with this number still counts. One that has expired is removed, so that its
 * values are free. */
static Status holder_lives(Group *group, uint64_t number, bool *lives, Error *err)
{
    Key key;
    key_number(&key, number);
    AUTO(store_value_release) StoreValue value = {0};
    bool found = false;
    *lives = false;
    TRY(store_txn_get(group->txn, group->partition->space, key_slice(&key), &value, &found, err));
    if (!found)
        return STATUS_OK;
    Slice epk;
    Slice id;
    TRY(location_decode(arena_copy(&group->arena, value.data), &epk, &id, err));
    Item holder;
    TRY(group_get_living(group, epk, id, &holder, lives, err));
    return STATUS_OK;
}

static Status take_values(Group *group, const Key *key, uint64_t number, Error *err)
{
    AUTO(store_value_release) StoreValue value = {0};
    bool found = false;
    StoreSpace space = group->partition->space;
    TRY(store_txn_get(group->txn, space, key_slice(key), &value, &found, err));
    uint64_t holder = 0;
    if (found && value.data.len == sizeof(holder))
        memcpy(&holder, value.data.ptr, sizeof(holder));
    store_value_release(&value);
    /* An imported item owns its values: an item that still seems to hold them has changed since,
     * and its newer version is imported later. */
    if (found && holder != number && !group->is_import) {
        bool lives = false;
        TRY(holder_lives(group, holder, &lives, err));
        if (lives)
            return error_set(err, STATUS_CONFLICT, SUB_NONE, "Unique index constraint violation.");
    }
    store_txn_put(group->txn, space, key_slice(key), slice_make(&number, sizeof(number)));
    return STATUS_OK;
}

/* Whether the values are no longer this item's: an imported one has taken them, see above. */
static bool are_taken(Group *group, const Key *key, uint64_t number)
{
    AUTO(store_value_release) StoreValue value = {0};
    bool found = false;
    Error err;
    return store_txn_get(group->txn, group->partition->space, key_slice(key), &value, &found,
                         &err) != STATUS_OK ||
           !found || !slice_equal(value.data, slice_make(&number, sizeof(number)));
}

Status unique_update(Group *group, Slice epk, const Item *old, const Item *item, Error *err)
{
    for (size_t i = 0; i < group->schema->unique_key_count; i++) {
        Key before;
        Key after;
        if (old != NULL)
            TRY(make_key(group, i, epk, old->document, &before, err));
        if (item != NULL)
            TRY(make_key(group, i, epk, item->document, &after, err));
        if (old != NULL && item != NULL && slice_equal(key_slice(&before), key_slice(&after)))
            continue;
        if (item != NULL)
            TRY(take_values(group, &after, item->number, err));
        if (old != NULL && !(group->is_import && are_taken(group, &before, old->number)))
            store_txn_delete(group->txn, group->partition->space, key_slice(&before));
    }
    return STATUS_OK;
}
