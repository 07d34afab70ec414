/* copy_compare.c - both containers beside each other; see copy_int.h. */
#include "base/array.h"
#include "transfer/copy_int.h"

/* A walk over all items of a side, page by page, all ranges at the same time. */
typedef struct Walk {
    Copy *copy;
    CopySide *side;
    Status (*page)(struct Walk *walk, Json documents, Arena *arena, Error *err);
    ItemDigest digest;
} Walk;

static void fill_list(const CopySide *side, Slice range, Slice token, Arena *arena, CopyCall *call)
{
    copy_call_init(call, side, REMOTE_ITEMS, arena);
    copy_call_header(call, "x-ms-max-item-count", arena_format(arena, "%d", COPY_PAGE_ITEMS));
    copy_call_header(call, "x-ms-documentdb-partitionkeyrangeid", range);
    if (token.len > 0)
        copy_call_header(call, "x-ms-continuation", token);
}

/* One range. '*is_gone' if it is not there any more: the walk begins anew. */
static Status walk_range(Walk *walk, Slice range, bool *is_gone, Error *err)
{
    AUTO(arena_done) Arena kept;
    arena_init(&kept, 4096);
    Slice token = SLICE_EMPTY;
    do {
        AUTO(arena_done) Arena arena;
        arena_init(&arena, 256 << 10);
        CopyCall call;
        fill_list(walk->side, range, token, &arena, &call);
        TRY(copy_calls_run(walk->side, &call, 1, err));
        *is_gone = call.wave.call.http_status == 410;
        if (*is_gone)
            return STATUS_OK;
        if (call.wave.call.http_status != 200)
            return remote_refused(&call.wave.call, err);
        Json page;
        TRY(json_parse(&arena, call.wave.call.body, &page, err));
        Json documents = json_get(page, SLICE("Documents"));
        if (!json_is(documents, JSON_ARRAY))
            return error_set(err, STATUS_UNAVAILABLE, SUB_NONE, "a page has no 'Documents'");
        TRY(walk->page(walk, documents, &arena, err));
        token = client_header(&call.wave.call, SLICE("x-ms-continuation"));
        arena_reset(&kept);
        token = arena_copy(&kept, token);
    } while (token.len > 0);
    return STATUS_OK;
}

static Status walk_all(Walk *walk, Error *err)
{
    enum { TRIES_MAX = 100 };
    for (int i = 0; i < TRIES_MAX; i++) {
        bool is_gone = false;
        walk->digest = (ItemDigest){0};
        TRY(copy_read_map(walk->side, err));
        for (size_t j = 0; j < walk->side->map.count && !is_gone; j++)
            TRY(walk_range(walk, walk->side->map.ranges[j].id, &is_gone, err));
        if (!is_gone)
            return STATUS_OK;
    }
    return error_set(err, STATUS_UNAVAILABLE, SUB_NONE,
                     "the partitions are split and merged too often to be compared");
}

static Status add_page(Walk *walk, Json documents, Arena *arena, Error *err)
{
    (void)arena;
    (void)err;
    for (JsonIter it = json_iter(documents); json_next(&it);)
        item_digest_add(&walk->digest, item_hash(it.value));
    return STATUS_OK;
}

Status copy_digest(Copy *copy, CopySide *side, ItemDigest *out, Error *err)
{
    Walk walk = {.copy = copy, .side = side, .page = add_page};
    TRY(walk_all(&walk, err));
    *out = walk.digest;
    return STATUS_OK;
}

/* ---- what the source does not have any more ---- */

static bool is_in_source(const CopyItem *items, size_t count, const CopyChange *change)
{
    for (size_t i = 0; i < count; i++) {
        if (slice_equal(items[i].id, change->id) &&
            partition_key_equal(&items[i].found.source_key, &change->key))
            return true;
    }
    return false;
}

static Status remove_page(Walk *walk, Json documents, Arena *arena, Error *err)
{
    Copy *copy = walk->copy;
    size_t most = json_count(documents);
    CopyChange *changes = ARENA_NEW_ARRAY(arena, CopyChange, most + 1);
    size_t count = 0;
    for (JsonIter it = json_iter(documents); json_next(&it);) {
        Json id = json_get(it.value, SLICE("id"));
        if (!json_is(id, JSON_STRING))
            continue;
        changes[count].id = json_string(id);
        partition_key_extract(&copy->keys.source, it.value, &changes[count++].key);
    }
    CopyItem *items = NULL;
    size_t item_count = 0;
    TRY(copy_look_up(copy, &copy->source, arena, changes, count, &items, &item_count, err));
    CopyChange *gone = ARENA_NEW_ARRAY(arena, CopyChange, most + 1);
    size_t gone_count = 0;
    for (size_t i = 0; i < count; i++) {
        if (!is_in_source(items, item_count, &changes[i]))
            gone[gone_count++] = changes[i];
    }
    copy->summary.removed += gone_count;
    return copy_apply(copy, arena, gone, gone_count, true, err);
}

Status copy_remove_others(Copy *copy, Error *err)
{
    Walk walk = {.copy = copy, .side = &copy->target, .page = remove_page};
    return walk_all(&walk, err);
}

/* ---- counts ---- */

Status copy_count(const CopySide *side, uint64_t *out, bool *found, Error *err)
{
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 16 << 10);
    const ClientHeader header = {"x-ms-documentdb-populatequotainfo", SLICE("True")};
    ClientCall call = remote_call(&side->remote, REMOTE_CONTAINER, &arena);
    call.headers = &header;
    call.header_count = 1;
    *found = false;
    TRY(remote_ask(&side->remote, &call, err));
    if (call.http_status != 200)
        return remote_refused(&call, err);
    Slice usage = client_header(&call, SLICE("x-ms-resource-usage"));
    while (usage.len > 0) {
        Slice entry = slice_trim(slice_cut(&usage, ';'));
        Slice name = slice_cut(&entry, '=');
        if (slice_equal_nocase(name, SLICE("documentsCount")) && slice_to_u64(entry, out))
            *found = true;
    }
    return STATUS_OK;
}
