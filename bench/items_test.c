/* items_test.c - the requests for items: size, names, and what belongs together. */
#include "bench/items.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static size_t count_of(Slice text, const char *part)
{
    size_t count = 0;
    size_t len = strlen(part);
    for (const char *at = text.ptr;
         (at = memmem(at, (size_t)(text.ptr + text.len - at), part, len)) != NULL; at += len)
        count++;
    return count;
}

static bool has(Slice text, const char *part)
{
    return count_of(text, part) > 0;
}

static ItemOptions options_of(ItemOperation operation)
{
    return (ItemOptions){.operation = operation, .count = 1000, .first = 5000, .seed = 1};
}

static void operations_have_names(void **state)
{
    (void)state;
    ItemOperation operation;
    assert_true(item_operation_parse(SLICE("batch"), &operation));
    assert_int_equal(operation, ITEM_BATCH);
    assert_false(item_operation_parse(SLICE("batches"), &operation));
    assert_false(item_operation_parse(SLICE(""), &operation));
}

static void requests_have_the_form_of_their_operation(void **state)
{
    (void)state;
    static const struct {
        ItemOperation operation;
        Slice method;
        bool has_id;
        size_t body_len; /* 0 if it is not checked */
        const char *header;
        const char *body;
    } rows[] = {
        {ITEM_READ, SLICE_INIT("GET"), true, 0, "partitionkey: [\"", NULL},
        {ITEM_SWEEP, SLICE_INIT("GET"), true, 0, "partitionkey: [\"", NULL},
        {ITEM_CREATE, SLICE_INIT("POST"), false, ITEM_BYTES, "partitionkey: [\"", "{\"id\":\""},
        {ITEM_UPSERT, SLICE_INIT("POST"), false, ITEM_BYTES, "is-upsert: true\r\n", "{\"id\":\""},
        {ITEM_PATCH, SLICE_INIT("PATCH"), true, 0, "partitionkey: [\"", "{\"operations\":["},
        {ITEM_BATCH, SLICE_INIT("POST"), false, 0, "batch-atomic: True\r\n", "[{\"operationType\""},
        {ITEM_EXECUTE, SLICE_INIT("POST"), false, ITEM_NAME_LEN + 4, "partitionkey: [\"", "[\""},
        {ITEM_EXECUTE_NEW, SLICE_INIT("POST"), false, 0, "partitionkey: [\"", "[[{\"id\":\""},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        ItemOptions options = options_of(rows[i].operation);
        AUTO(item_maker_done) ItemMaker maker;
        item_maker_init(&maker, &options);
        ItemRequest request = item_next(&maker);
        assert_true(slice_equal(request.method, rows[i].method));
        assert_int_equal(request.id.len, rows[i].has_id ? ITEM_NAME_LEN : 0);
        assert_true(has(request.headers, rows[i].header));
        assert_true(slice_ends_with(request.headers, SLICE("\r\n")));
        if (rows[i].body == NULL)
            assert_int_equal(request.body.len, 0);
        else
            assert_true(slice_starts_with(request.body, slice_from_cstr(rows[i].body)));
        if (rows[i].body_len > 0)
            assert_int_equal(request.body.len, rows[i].body_len);
    }
}

static void an_item_has_20_values(void **state)
{
    (void)state;
    ItemOptions options = options_of(ITEM_CREATE);
    AUTO(item_maker_done) ItemMaker maker;
    item_maker_init(&maker, &options);
    Slice body = item_next(&maker).body;
    size_t objects = count_of(body, "\":{");
    size_t arrays = count_of(body, "\":[");
    assert_int_equal(objects, 2);
    assert_int_equal(arrays, 1);
    size_t elements = 3;
    assert_int_equal(count_of(body, "\":") - objects - arrays + elements, 20);
}

static void new_items_are_never_the_same(void **state)
{
    (void)state;
    ItemOptions options = options_of(ITEM_CREATE);
    AUTO(item_maker_done) ItemMaker maker;
    item_maker_init(&maker, &options);
    char last[ITEM_BYTES] = "";
    for (int i = 0; i < 1000; i++) {
        Slice body = item_next(&maker).body;
        assert_memory_not_equal(body.ptr + 7, last + 7, ITEM_NAME_LEN);
        assert_memory_not_equal(body.ptr + 600, last + 600, 400);
        memcpy(last, body.ptr, body.len);
    }
}

static void a_batch_makes_the_items_that_reads_ask_for(void **state)
{
    (void)state;
    ItemOptions options = options_of(ITEM_BATCH);
    options.first = 0;
    options.count = ITEMS_PER_KEY;
    AUTO(item_maker_done) ItemMaker writer;
    item_maker_init(&writer, &options);
    ItemRequest batch = item_next(&writer);
    assert_int_equal(count_of(batch.body, "{\"operationType\":\"Create\""), ITEMS_PER_KEY);
    Slice key = slice_first(slice_from(batch.headers, strlen("x-ms-documentdb-partitionkey: [\"")),
                            ITEM_NAME_LEN);
    char text[64];
    (void)snprintf(text, sizeof(text), "\"pk\":\"%.*s\"", SLICE_ARG(key));
    assert_int_equal(count_of(batch.body, text), ITEMS_PER_KEY);

    options.operation = ITEM_READ;
    AUTO(item_maker_done) ItemMaker reader;
    item_maker_init(&reader, &options);
    for (int i = 0; i < 1000; i++) {
        ItemRequest read = item_next(&reader);
        (void)snprintf(text, sizeof(text), "\"id\":\"%.*s\"", SLICE_ARG(read.id));
        assert_int_equal(count_of(batch.body, text), 1);
        assert_true(slice_starts_with(batch.headers, read.headers));
    }
}

static void a_procedure_gets_a_list_of_what_a_batch_has(void **state)
{
    (void)state;
    ItemOptions options = options_of(ITEM_EXECUTE_NEW);
    AUTO(item_maker_done) ItemMaker maker;
    item_maker_init(&maker, &options);
    ItemRequest request = item_next(&maker);
    assert_int_equal(count_of(request.body, "{\"id\":\""), ITEMS_PER_KEY);
    assert_false(has(request.body, "operationType"));
    assert_true(slice_ends_with(request.body, SLICE("}]]")));
    assert_int_equal(maker.next, 5000 + ITEMS_PER_KEY);
}

static void a_batch_begins_with_a_new_partition_key(void **state)
{
    (void)state;
    ItemOptions options = options_of(ITEM_BATCH);
    options.first = 1;
    AUTO(item_maker_done) ItemMaker maker;
    item_maker_init(&maker, &options);
    (void)item_next(&maker);
    assert_int_equal(maker.next, 2 * ITEMS_PER_KEY);
}

/* The same requests, about other items. */
static void items_may_be_orders(void **state)
{
    (void)state;
    ItemOptions options = options_of(ITEM_BATCH);
    options.is_orders = true;
    options.first = 0;
    options.count = ITEMS_PER_KEY;
    AUTO(item_maker_done) ItemMaker writer;
    item_maker_init(&writer, &options);
    ItemRequest batch = item_next(&writer);
    assert_int_equal(count_of(batch.body, "\"resourceBody\":{\"id\":\"o"), ITEMS_PER_KEY);
    assert_int_equal(count_of(batch.body, "\"pk\":\"c0\""), ITEMS_PER_KEY);
    assert_true(has(batch.headers, "partitionkey: [\"c0\"]\r\n"));

    static const ItemOperation rows[] = {ITEM_READ, ITEM_PATCH, ITEM_UPSERT};
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        options.operation = rows[i];
        AUTO(item_maker_done) ItemMaker maker;
        item_maker_init(&maker, &options);
        ItemRequest request = item_next(&maker);
        Slice id = request.id;
        if (rows[i] == ITEM_UPSERT)
            assert_true(slice_starts_with(request.body, SLICE("{\"id\":\"o")));
        else
            assert_true(slice_starts_with(id, SLICE("o")));
        assert_true(has(request.headers, "partitionkey: [\"c0\"]\r\n"));
    }
}

static void a_mix_has_the_share_of_writes_that_was_asked_for(void **state)
{
    (void)state;
    static const uint32_t rows[] = {0, 5, 50, 100};
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        ItemOptions options = options_of(ITEM_MIX);
        options.writes_percent = rows[i];
        AUTO(item_maker_done) ItemMaker maker;
        item_maker_init(&maker, &options);
        uint32_t writes = 0;
        for (int n = 0; n < 10000; n++)
            writes += item_next(&maker).id.len == 0;
        assert_in_range(writes, rows[i] * 90, rows[i] * 110);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(operations_have_names),
        cmocka_unit_test(requests_have_the_form_of_their_operation),
        cmocka_unit_test(an_item_has_20_values),
        cmocka_unit_test(new_items_are_never_the_same),
        cmocka_unit_test(a_batch_makes_the_items_that_reads_ask_for),
        cmocka_unit_test(a_procedure_gets_a_list_of_what_a_batch_has),
        cmocka_unit_test(a_batch_begins_with_a_new_partition_key),
        cmocka_unit_test(items_may_be_orders),
        cmocka_unit_test(a_mix_has_the_share_of_writes_that_was_asked_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
