/* server_answer_fuzz.c - any answer of a server: to bulk, pages, containers and their ranges. The
 * first byte chooses which. */
#include "transfer/bulk_body.h"
#include "transfer/container_map.h"
#include "transfer/page_body.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_map(Arena *arena, Json feed)
{
    ContainerMap map;
    Error err;
    if (container_map_parse(arena, feed, &map, &err) != STATUS_OK)
        return;
    ASSERT(map.count > 0);
    for (size_t i = 0; i < map.count; i++) {
        const MapRange *range = &map.ranges[i];
        ASSERT(container_map_find(&map, range->min) == range);
        ASSERT(i + 1 == map.count || slice_equal(range->max, range[1].min));
    }
}

static void check_key(Arena *arena, Json container)
{
    PartitionKeyDefinition definition;
    PartitionKey key;
    Epk epk;
    Error err;
    if (container_key_parse(arena, container, &definition, &err) != STATUS_OK)
        return;
    /* The container itself serves as an item. */
    partition_key_extract(&definition, container, &key);
    if (partition_key_check(&key, &err) != STATUS_OK)
        return;
    epk_make(definition.kind, &key, &epk);
    AUTO(buf_done) Buf text;
    buf_init(&text, 1 << 20);
    container_key_print(&key, KEY_TEXT_ASCII, &text);
    for (size_t i = 0; i < text.len; i++)
        ASSERT((text.ptr[i] & 0x80) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 64 << 10);
    Slice body = slice_make(data + 1, size - 1);
    Json value;
    Error err;
    Slice list;
    BulkResult results[3];
    switch (data[0] % 4) {
    case 0:
        (void)answer_message(&arena, body);
        if (bulk_answer_parse(&arena, body, 3, results, &err) != STATUS_OK)
            ASSERT(err.status == STATUS_UNAVAILABLE);
        break;
    case 1:
        if (page_body_documents(body, &list))
            ASSERT(slice_starts_with(list, SLICE("[")));
        break;
    case 2:
        if (json_parse(&arena, body, &value, &err) == STATUS_OK)
            check_map(&arena, value);
        break;
    default:
        if (json_parse(&arena, body, &value, &err) == STATUS_OK)
            check_key(&arena, value);
        break;
    }
    return 0;
}
