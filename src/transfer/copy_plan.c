/* copy_plan.c - see copy_plan.h. */
#include "transfer/copy_plan.h"

#include "base/hash.h"
#include "base/random.h"
#include "transfer/item_digest.h"

bool copy_keys_are_same(const CopyKeys *keys)
{
    const PartitionKeyDefinition *a = &keys->source;
    const PartitionKeyDefinition *b = &keys->target;
    if (a->path_count != b->path_count || a->path_count == 0)
        return false;
    for (size_t i = 0; i < a->path_count; i++) {
        if (!property_path_equal(a->paths[i], b->paths[i]))
            return false;
    }
    return true;
}

bool copy_plan(const CopyKeys *keys, const CopyChange *change, const CopyFound *found, size_t count,
               CopyStep *steps, size_t *step_count)
{
    bool is_delete = json_is(change->item, JSON_UNDEFINED);
    CopyStep write = {.act = COPY_CREATE};
    bool is_taken = false;
    size_t used = 0;
    if (!is_delete)
        partition_key_extract(&keys->target, change->item, &write.key);
    for (size_t i = 0; i < count; i++) {
        bool is_own = partition_key_equal(&found[i].source_key, &change->key);
        bool is_here = !is_delete && partition_key_equal(&found[i].target_key, &write.key);
        if (is_own && is_here) {
            write.act = COPY_REPLACE;
            write.etag = found[i].etag;
        } else if (is_own) {
            steps[used++] =
                (CopyStep){.act = COPY_DELETE, .key = found[i].target_key, .etag = found[i].etag};
        }
        is_taken = is_taken || (is_here && !is_own);
    }
    *step_count = 0;
    if (is_taken)
        return false;
    if (!is_delete)
        steps[used++] = write;
    *step_count = used;
    return true;
}

/* ---- pages ---- */

static Status bad_page(const char *what, Error *err)
{
    return error_set(err, STATUS_UNAVAILABLE, SUB_NONE,
                     "a page of the change feed has %s; does the server speak the protocol?", what);
}

/* {"tenant":"a","user/name":"b"}, by the names of the paths. */
static void read_key(const PartitionKeyDefinition *definition, Json values, PartitionKey *out)
{
    *out = (PartitionKey){.count = definition->path_count};
    for (size_t i = 0; i < definition->path_count; i++) {
        AUTO(buf_done) Buf name;
        buf_init(&name, 64 << 10);
        property_path_print(definition->paths[i], &name);
        Slice text = buf_view(&name);
        Json value = json_get(values, slice_from(text, text.len > 0 ? 1 : 0));
        bool is_part = !json_is(value, JSON_OBJECT) && !json_is(value, JSON_ARRAY);
        out->parts[i] = is_part ? value : JSON_NONE;
    }
}

static Status read_delete(const CopyKeys *keys, Json entry, Json metadata, CopyChange *out,
                          Error *err)
{
    Json previous = json_get(entry, SLICE("previous"));
    Json values = json_get(metadata, SLICE("partitionKey"));
    Json id = json_get(metadata, SLICE("id"));
    if (!json_is(id, JSON_STRING))
        id = json_get(previous, SLICE("id"));
    if (!json_is(id, JSON_STRING))
        return bad_page("a delete without an id", err);
    *out = (CopyChange){.id = json_string(id)};
    if (json_is(previous, JSON_OBJECT))
        partition_key_extract(&keys->source, previous, &out->key);
    else if (json_is(values, JSON_OBJECT) || keys->source.path_count == 0)
        read_key(&keys->source, values, &out->key);
    else
        return bad_page("a delete without a partition key", err);
    return STATUS_OK;
}

static Status read_change(const CopyKeys *keys, Json entry, CopyChange *out, Error *err)
{
    Json metadata = json_get(entry, SLICE("metadata"));
    Json current = json_get(entry, SLICE("current"));
    bool is_wrapped = json_is(metadata, JSON_OBJECT) &&
                      !json_is(json_get(metadata, SLICE("lsn")), JSON_UNDEFINED);
    Json operation = is_wrapped ? json_get(metadata, SLICE("operationType")) : JSON_NONE;
    if (json_is(operation, JSON_STRING) &&
        slice_equal_nocase(json_string(operation), SLICE("delete")))
        return read_delete(keys, entry, metadata, out, err);
    Json item = is_wrapped ? current : entry;
    Json id = json_get(item, SLICE("id"));
    if (!json_is(id, JSON_STRING))
        return bad_page("an item without an id", err);
    *out = (CopyChange){.id = json_string(id), .item = item, .has_lsn = !is_wrapped};
    partition_key_extract(&keys->source, item, &out->key);
    return STATUS_OK;
}

/* A table of the changes of a page by id; a page may have many versions of one item. */
typedef struct ChangeTable {
    uint32_t *slots; /* position + 1; 0 if it is free */
    size_t mask;
    HashKey key;
} ChangeTable;

static size_t find_slot(const ChangeTable *table, const CopyChange *changes,
                        const CopyChange *change)
{
    size_t at = (size_t)hash_keyed(table->key, change->id) & table->mask;
    for (; table->slots[at] != 0; at = (at + 1) & table->mask) {
        const CopyChange *other = &changes[table->slots[at] - 1];
        if (slice_equal(other->id, change->id) && partition_key_equal(&other->key, &change->key))
            break;
    }
    return at;
}

Status copy_changes_parse(Arena *arena, Json page, const CopyKeys *keys, CopyChange **out,
                          size_t *count, Error *err)
{
    Json list = json_get(page, SLICE("Documents"));
    if (!json_is(list, JSON_ARRAY))
        return bad_page("no 'Documents'", err);
    size_t most = json_count(list);
    size_t size = 16;
    while (size < 2 * most)
        size *= 2;
    ChangeTable table = {.slots = ARENA_NEW_ARRAY(arena, uint32_t, size), .mask = size - 1};
    random_secret(&table.key, sizeof(table.key));
    CopyChange *changes = ARENA_NEW_ARRAY(arena, CopyChange, most + 1);
    size_t used = 0;
    for (JsonIter it = json_iter(list); json_next(&it);) {
        CopyChange change;
        TRY(read_change(keys, it.value, &change, err));
        size_t at = find_slot(&table, changes, &change);
        if (table.slots[at] == 0)
            table.slots[at] = (uint32_t)++used;
        changes[table.slots[at] - 1] = change;
    }
    *out = changes;
    *count = used;
    return STATUS_OK;
}

void copy_item_print(const CopyChange *change, Buf *out)
{
    bool is_first = true;
    buf_byte(out, '{');
    for (JsonIter it = json_iter(change->item); json_next(&it);) {
        if (item_is_system_name(it.name) ||
            (change->has_lsn && slice_equal(it.name, SLICE("_lsn"))))
            continue;
        if (!is_first)
            buf_byte(out, ',');
        is_first = false;
        json_print_string(it.name, out);
        buf_byte(out, ':');
        json_print(it.value, out);
    }
    buf_byte(out, '}');
}
