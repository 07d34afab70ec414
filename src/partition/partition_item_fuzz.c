/* partition_item_fuzz.c - any bytes as a stored item, and any JSON as an item that a client sends.
 *
 * What is stored was checked when it was written, and blocks have checksums, so item_decode looks
 * at the header only: what it refuses must do no harm, and what it accepts is used here only if the
 * document in it is one. What item_prepare accepts can be stored, read and printed.
 */
#include "partition/item.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { HEADER_BYTES = 32 };

static void check_print(const PartitionSchema *schema, Arena *arena, const Item *item)
{
    AUTO(buf_done) Buf text;
    buf_init(&text, (size_t)64 << 20);
    item_print(schema, item, &text);
    ASSERT(!buf_full(&text));
    Error err;
    Json parsed;
    ASSERT(json_parse(arena, buf_view(&text), &parsed, &err) == STATUS_OK);
    ASSERT(json_equal(parsed, item_document(arena, schema, item)));
}

static void check_stored(const PartitionSchema *schema, Arena *arena, Slice bytes)
{
    Error err;
    Item item;
    if (item_decode(bytes, &item, &err) != STATUS_OK) {
        ASSERT(err.status == STATUS_CORRUPT);
        return;
    }
    Json document;
    if (json_open(slice_from(bytes, HEADER_BYTES), &document, &err) != STATUS_OK)
        return;
    Slice again = item_encode(arena, &item);
    ASSERT(slice_equal(slice_from(again, HEADER_BYTES), slice_from(bytes, HEADER_BYTES)));
    (void)item_expires_at_s(schema, &item);
    Slice id;
    int32_t ttl_s;
    if (json_depth(document) <= JSON_DEPTH_MAX &&
        item_prepare(arena, document, &item.document, &id, &ttl_s, &err) == STATUS_OK)
        check_print(schema, arena, &item);
}

static void check_sent(const PartitionSchema *schema, Arena *arena, Slice text)
{
    Error err = {.message = ""};
    Json body;
    if (json_parse(arena, text, &body, &err) != STATUS_OK)
        return;
    Item item = {.number = item_number(1, 2), .lsn = 3, .ts_s = 4};
    Slice id;
    if (item_prepare(arena, body, &item.document, &id, &item.ttl_s, &err) != STATUS_OK) {
        ASSERT(err.status == STATUS_BAD_REQUEST);
        ASSERT(err.message[0] != '\0');
        return;
    }
    ASSERT(id.len > 0);
    ASSERT(id.len <= ITEM_ID_BYTES_MAX);
    ASSERT(item.ttl_s >= -1);
    ASSERT(json_is(json_get(item.document, SLICE("_etag")), JSON_UNDEFINED));
    Item stored;
    ASSERT(item_decode(item_encode(arena, &item), &stored, &err) == STATUS_OK);
    ASSERT(json_equal(stored.document, item.document));
    check_print(schema, arena, &stored);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 1 << 16);
    AUTO(schema_unref) PartitionSchema *schema = schema_new();
    schema->self = SLICE("dbs/AAAAAA==/colls/AAAAAAAAAAA=/");
    schema->default_ttl_s = -1;
    check_stored(schema, &arena, slice_make(data, size));
    check_sent(schema, &arena, slice_make(data, size));
    return 0;
}
