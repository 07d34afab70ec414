/* item_test.c - what is stored of an item, what clients see of it, and what they may send. */
#include "partition/partition_testing_int.h"

static PartitionSchema *default_schema(int64_t ttl_s)
{
    return test_schema((TestSchema){.kind = PARTITION_HASH_V2, .paths = "/pk", .ttl_s = ttl_s});
}

static Item example(Arena *arena)
{
    return (Item){
        .number = item_number(5, 0x0102030405),
        .lsn = 0x1122334455667788,
        .ts_s = 1700000000,
        .ttl_s = -1,
        .document = row_json(arena, "{'id':'a','pk':'p','n':[1,{'x':null}]}"),
    };
}

static void what_is_stored_comes_back(void **state)
{
    (void)state;
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 4096);
    Item item = example(&arena);
    Slice bytes = item_encode(&arena, &item);
    Item back;
    assert_ok(item_decode(bytes, &back, err));
    assert_int_equal(back.number, item.number);
    assert_int_equal(back.lsn, item.lsn);
    assert_int_equal(back.ts_s, item.ts_s);
    assert_int_equal(back.ttl_s, item.ttl_s);
    assert_int_equal(back.bytes, bytes.len);
    assert_true(json_equal(back.document, item.document));
}

static void the_format_is_fixed(void **state)
{
    (void)state;
    static const uint8_t header[] = {1,    0, 0,    0,    0x00, 0xF1, 0x53, 0x65, 0xFF, 0xFF, 0xFF,
                                     0xFF, 0, 0,    0,    0,    0x05, 0x04, 0x03, 0x02, 0x01, 0x05,
                                     0,    0, 0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11};
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 4096);
    Item item = example(&arena);
    Slice bytes = item_encode(&arena, &item);
    assert_memory_equal(bytes.ptr, header, sizeof(header));
    assert_slice(slice_from(bytes, sizeof(header)), json_bytes(&arena, item.document));
}

static void damaged_bytes_are_refused(void **state)
{
    (void)state;
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 4096);
    Item item = example(&arena);
    Slice bytes = item_encode(&arena, &item);
    for (size_t len = 0; len <= 33; len++) {
        Item out;
        Error err = {0};
        assert_status(item_decode(slice_first(bytes, len), &out, &err), STATUS_CORRUPT);
    }
    char *other = mem_copy(bytes.ptr, bytes.len);
    other[0] = 2;
    Item out;
    Error err = {0};
    assert_status(item_decode(slice_make(other, bytes.len), &out, &err), STATUS_CORRUPT);
    mem_free(other);
}

static void clients_see_the_system_properties_last(void **state)
{
    (void)state;
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 4096);
    AUTO(schema_unref) PartitionSchema *schema = default_schema(0);
    Item item = example(&arena);
    AUTO(buf_done) Buf text;
    buf_init(&text, 4096);
    item_print(schema, &item, &text);
    /* 44332211 80556677 and the number, little-endian. */
    static const char expected[] =
        "{\"id\":\"a\",\"pk\":\"p\",\"n\":[1,{\"x\":null}],"
        "\"_rid\":\"RDMiEYBVZncFBAMCAQUAAA==\","
        "\"_self\":\"dbs/RDMiEQ==/colls/RDMiEYBVZnc=/docs/RDMiEYBVZncFBAMCAQUAAA==/\","
        "\"_etag\":\"\\\"55667788-3344-0005-0000-6553f1000000\\\"\","
        "\"_attachments\":\"attachments/\",\"_ts\":1700000000}";
    assert_slice(buf_view(&text), SLICE(expected));
    Json parsed = JSON_NONE;
    assert_ok(json_parse(&arena, buf_view(&text), &parsed, err));
    assert_true(json_equal(parsed, item_document(&arena, schema, &item)));
}

static void printing_into_too_little_room_says_so(void **state)
{
    (void)state;
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 4096);
    AUTO(schema_unref) PartitionSchema *schema = default_schema(0);
    Item item = example(&arena);
    AUTO(buf_done) Buf whole;
    buf_init(&whole, 4096);
    item_print(schema, &item, &whole);
    for (size_t room = 1; room <= whole.len; room++) {
        AUTO(buf_done) Buf text;
        buf_init(&text, room);
        item_print(schema, &item, &text);
        assert_int_equal(buf_full(&text), room < whole.len);
    }
}

/* A transaction shows an item before it knows the LSN. */
static void a_stamped_etag_does_not_depend_on_the_lsn(void **state)
{
    (void)state;
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 512);
    Item item = {.number = item_number(1, 9), .lsn = 2, .ts_s = 10, .stamp = 77};
    item.document = row_json(&arena, "{'id':'a'}");
    char shown[ITEM_ETAG_LEN];
    item_etag(&item, shown);
    item.lsn = 3000;
    Item stored;
    assert_ok(item_decode(item_encode(&arena, &item), &stored, err));
    assert_int_equal(stored.stamp, 77);
    char found[ITEM_ETAG_LEN];
    item_etag(&stored, found);
    assert_memory_equal(shown, found, ITEM_ETAG_LEN);
}

static void every_version_has_its_own_etag(void **state)
{
    (void)state;
    Item versions[] = {
        {.number = item_number(1, 1), .lsn = 2, .ts_s = 10},
        {.number = item_number(1, 1), .lsn = 3, .ts_s = 10},
        {.number = item_number(2, 1), .lsn = 2, .ts_s = 10},
        {.number = item_number(1, 1), .lsn = 2, .ts_s = 11},
        {.number = item_number(1, 1), .lsn = UINT64_C(1) << 32 | 2, .ts_s = 10},
        {.number = item_number(1, 1), .lsn = UINT64_C(1) << 47 | 2, .ts_s = 10},
        {.number = item_number(1, 1), .lsn = 2, .ts_s = 10, .stamp = 2},
        {.number = item_number(1, 1), .lsn = 2, .ts_s = 10, .stamp = 3},
        {.number = item_number(1, 1), .lsn = 2, .ts_s = 11, .stamp = 3},
        {.number = item_number(1, 2), .lsn = 2, .ts_s = 10, .stamp = 3},
    };
    for (size_t i = 0; i < ARRAY_COUNT(versions); i++) {
        char a[ITEM_ETAG_LEN];
        item_etag(&versions[i], a);
        assert_int_equal(a[0], '"');
        assert_int_equal(a[ITEM_ETAG_LEN - 1], '"');
        for (size_t j = 0; j < i; j++) {
            char b[ITEM_ETAG_LEN];
            item_etag(&versions[j], b);
            assert_memory_not_equal(a, b, ITEM_ETAG_LEN);
        }
    }
}

static void expiry_follows_the_items_own_ttl_before_the_default(void **state)
{
    (void)state;
    static const struct {
        int64_t default_s;
        int32_t own_s;
        uint64_t expires_at_s;
    } rows[] = {
        {0, 0, UINT64_MAX},   {0, 5, UINT64_MAX},
        {0, -1, UINT64_MAX},  {-1, 0, UINT64_MAX},
        {-1, -1, UINT64_MAX}, {-1, 5, 105},
        {10, 0, 110},         {10, 5, 105},
        {10, -1, UINT64_MAX}, {INT32_MAX, 0, 100 + (uint64_t)INT32_MAX},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        AUTO(schema_unref) PartitionSchema *schema = default_schema(rows[i].default_s);
        Item item = {.ts_s = 100, .ttl_s = rows[i].own_s};
        assert_int_equal(item_expires_at_s(schema, &item), rows[i].expires_at_s);
    }
    AUTO(schema_unref) PartitionSchema *schema = default_schema(INT32_MAX);
    Item late = {.ts_s = UINT32_MAX};
    assert_int_equal(item_expires_at_s(schema, &late), (uint64_t)UINT32_MAX + INT32_MAX);
}

static void a_good_body_is_taken_apart(void **state)
{
    (void)state;
    static const struct {
        const char *body;
        const char *document;
        const char *id;
        int32_t ttl_s;
    } rows[] = {
        {"{'id':'a'}", "{'id':'a'}", "a", 0},
        {"{'id':' .#?%\xC3\xA9','x':null}", "{'id':' .#?%\xC3\xA9','x':null}", " .#?%\xC3\xA9", 0},
        {"{'id':'a','ttl':-1}", "{'id':'a','ttl':-1}", "a", -1},
        {"{'id':'a','ttl':2147483647}", "{'id':'a','ttl':2147483647}", "a", INT32_MAX},
        {"{'ttl':60.0,'id':'a'}", "{'ttl':60,'id':'a'}", "a", 60},
        /* What the server writes itself is left out, wherever it stands; the rest keeps its order.
         */
        {"{'_ts':1,'z':{'_ts':2},'_rid':'x','id':'a','_etag':null,'_self':[],'_attachments':{},"
         "'_own':1}",
         "{'z':{'_ts':2},'id':'a','_own':1}", "a", 0},
    };
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 4096);
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        Json document = JSON_NONE;
        Slice id;
        int32_t ttl_s = 99;
        assert_ok(
            item_prepare(&arena, row_json(&arena, rows[i].body), &document, &id, &ttl_s, err));
        assert_slice(json_print_arena(&arena, document),
                     json_print_arena(&arena, row_json(&arena, rows[i].document)));
        assert_slice(id, slice_from_cstr(rows[i].id));
        assert_int_equal(ttl_s, rows[i].ttl_s);
    }
}

static void a_bad_body_is_refused_with_a_reason(void **state)
{
    (void)state;
    static const struct {
        const char *body;
        const char *reason;
    } rows[] = {
        {"[]", "object"},
        {"'id'", "object"},
        {"null", "object"},
        {"{}", "'id'"},
        {"{'ID':'a'}", "'id'"},
        {"{'id':7}", "'id'"},
        {"{'id':null}", "'id'"},
        {"{'id':['a']}", "'id'"},
        {"{'id':''}", "0 bytes"},
        {"{'id':'a/b'}", "'a/b'"},
        {"{'id':'a\\\\b'}", "'a\\b'"},
        {"{'id':'a','ttl':0}", "'ttl'"},
        {"{'id':'a','ttl':-2}", "'ttl'"},
        {"{'id':'a','ttl':1.5}", "'ttl'"},
        {"{'id':'a','ttl':2147483648}", "'ttl'"},
        {"{'id':'a','ttl':1e300}", "'ttl'"},
        {"{'id':'a','ttl':'60'}", "'ttl'"},
        {"{'id':'a','ttl':true}", "'ttl'"},
        {"{'id':'a','ttl':{}}", "'ttl'"},
        {"{'id':'a','ttl':null}", "'ttl'"},
    };
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 4096);
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        Json document;
        Slice id;
        int32_t ttl_s;
        Error err = {0};
        Status status =
            item_prepare(&arena, row_json(&arena, rows[i].body), &document, &id, &ttl_s, &err);
        assert_status(status, STATUS_BAD_REQUEST);
        if (strstr(err.message, rows[i].reason) == NULL)
            fail_msg("%s: %s", rows[i].body, err.message);
    }
}

static void an_id_has_at_most_1023_bytes(void **state)
{
    (void)state;
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 4096);
    for (size_t len = ITEM_ID_BYTES_MAX; len <= ITEM_ID_BYTES_MAX + 1; len++) {
        char text[ITEM_ID_BYTES_MAX + 2] = {0};
        memset(text, 'x', len);
        Json body = row_json(&arena, arena_format(&arena, "{'id':'%s'}", text).ptr);
        Json document;
        Slice id;
        int32_t ttl_s;
        Error err = {0};
        assert_status(item_prepare(&arena, body, &document, &id, &ttl_s, &err),
                      len <= ITEM_ID_BYTES_MAX ? STATUS_OK : STATUS_BAD_REQUEST);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_stored_comes_back),
        cmocka_unit_test(the_format_is_fixed),
        cmocka_unit_test(damaged_bytes_are_refused),
        cmocka_unit_test(clients_see_the_system_properties_last),
        cmocka_unit_test(printing_into_too_little_room_says_so),
        cmocka_unit_test(every_version_has_its_own_etag),
        cmocka_unit_test(a_stamped_etag_does_not_depend_on_the_lsn),
        cmocka_unit_test(expiry_follows_the_items_own_ttl_before_the_default),
        cmocka_unit_test(a_good_body_is_taken_apart),
        cmocka_unit_test(a_bad_body_is_refused_with_a_reason),
        cmocka_unit_test(an_id_has_at_most_1023_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
