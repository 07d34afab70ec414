/* item_maker_test.c - the requests for items: size, names, and what belongs together. */
#include "load/item_maker.h"

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
    ItemOptions options = {.count = 1000, .first = 5000, .seed = 1};
    options.percent[operation] = 100;
    return options;
}

static ItemRequest next_of(ItemMaker *maker)
{
    ItemTurn turn;
    item_maker_choose(maker, &turn);
    return item_maker_print(maker, &turn, SLICE_EMPTY);
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
        {LOAD_ITEM_READ, SLICE_INIT("GET"), true, 0, "partitionkey: [\"", NULL},
        {LOAD_ITEM_SWEEP, SLICE_INIT("GET"), true, 0, "partitionkey: [\"", NULL},
        {LOAD_ITEM_CREATE, SLICE_INIT("POST"), false, LOAD_ITEM_BYTES, "partitionkey: [\"",
         "{\"id\":\""},
        {LOAD_ITEM_UPSERT, SLICE_INIT("POST"), false, LOAD_ITEM_BYTES, "is-upsert: true\r\n",
         "{\"id\":\""},
        {LOAD_ITEM_PATCH, SLICE_INIT("PATCH"), true, 0, "partitionkey: [\"", "{\"operations\":["},
        {LOAD_ITEM_BATCH, SLICE_INIT("POST"), false, 0, "batch-atomic: True\r\n",
         "[{\"operationType\""},
        {LOAD_ITEM_EXECUTE, SLICE_INIT("POST"), false, LOAD_ITEM_NAME_LEN + 4, "partitionkey: [\"",
         "[\""},
        {LOAD_ITEM_EXECUTE_NEW, SLICE_INIT("POST"), false, 0, "partitionkey: [\"", "[[{\"id\":\""},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        ItemOptions options = options_of(rows[i].operation);
        AUTO(item_maker_done) ItemMaker maker;
        item_maker_init(&maker, &options);
        ItemRequest request = next_of(&maker);
        assert_true(slice_equal(request.method, rows[i].method));
        assert_int_equal(request.id.len, rows[i].has_id ? LOAD_ITEM_NAME_LEN : 0);
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
    ItemOptions options = options_of(LOAD_ITEM_CREATE);
    AUTO(item_maker_done) ItemMaker maker;
    item_maker_init(&maker, &options);
    Slice body = next_of(&maker).body;
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
    ItemOptions options = options_of(LOAD_ITEM_CREATE);
    AUTO(item_maker_done) ItemMaker maker;
    item_maker_init(&maker, &options);
    char last[LOAD_ITEM_BYTES] = "";
    for (int i = 0; i < 1000; i++) {
        Slice body = next_of(&maker).body;
        assert_memory_not_equal(body.ptr + 7, last + 7, LOAD_ITEM_NAME_LEN);
        assert_memory_not_equal(body.ptr + 600, last + 600, 400);
        memcpy(last, body.ptr, body.len);
    }
}

static void a_batch_makes_the_items_that_reads_ask_for(void **state)
{
    (void)state;
    ItemOptions options = options_of(LOAD_ITEM_BATCH);
    options.first = 0;
    options.count = LOAD_ITEMS_PER_KEY;
    AUTO(item_maker_done) ItemMaker writer;
    item_maker_init(&writer, &options);
    ItemRequest batch = next_of(&writer);
    assert_int_equal(count_of(batch.body, "{\"operationType\":\"Create\""), LOAD_ITEMS_PER_KEY);
    Slice key = slice_first(slice_from(batch.headers, strlen("x-ms-documentdb-partitionkey: [\"")),
                            LOAD_ITEM_NAME_LEN);
    char text[64];
    (void)snprintf(text, sizeof(text), "\"pk\":\"%.*s\"", SLICE_ARG(key));
    assert_int_equal(count_of(batch.body, text), LOAD_ITEMS_PER_KEY);

    options.percent[LOAD_ITEM_BATCH] = 0;
    options.percent[LOAD_ITEM_READ] = 100;
    AUTO(item_maker_done) ItemMaker reader;
    item_maker_init(&reader, &options);
    for (int i = 0; i < 1000; i++) {
        ItemRequest read = next_of(&reader);
        (void)snprintf(text, sizeof(text), "\"id\":\"%.*s\"", SLICE_ARG(read.id));
        assert_int_equal(count_of(batch.body, text), 1);
        assert_true(slice_starts_with(batch.headers, read.headers));
    }
}

static void a_procedure_gets_a_list_of_what_a_batch_has(void **state)
{
    (void)state;
    ItemOptions options = options_of(LOAD_ITEM_EXECUTE_NEW);
    AUTO(item_maker_done) ItemMaker maker;
    item_maker_init(&maker, &options);
    ItemRequest request = next_of(&maker);
    assert_int_equal(count_of(request.body, "{\"id\":\""), LOAD_ITEMS_PER_KEY);
    assert_false(has(request.body, "operationType"));
    assert_true(slice_ends_with(request.body, SLICE("}]]")));
    assert_int_equal(maker.next, 5000 + LOAD_ITEMS_PER_KEY);
}

static void a_batch_begins_with_a_new_partition_key(void **state)
{
    (void)state;
    ItemOptions options = options_of(LOAD_ITEM_BATCH);
    options.first = 1;
    AUTO(item_maker_done) ItemMaker maker;
    item_maker_init(&maker, &options);
    (void)next_of(&maker);
    assert_int_equal(maker.next, 2 * LOAD_ITEMS_PER_KEY);
}

/* The same requests, about other items. */
static void items_may_be_orders(void **state)
{
    (void)state;
    ItemOptions options = options_of(LOAD_ITEM_BATCH);
    options.shape = LOAD_ITEM_SHAPE_ORDER;
    options.first = 0;
    options.count = LOAD_ITEMS_PER_KEY;
    AUTO(item_maker_done) ItemMaker writer;
    item_maker_init(&writer, &options);
    ItemRequest batch = next_of(&writer);
    assert_int_equal(count_of(batch.body, "\"resourceBody\":{\"id\":\"o"), LOAD_ITEMS_PER_KEY);
    assert_int_equal(count_of(batch.body, "\"pk\":\"c0\""), LOAD_ITEMS_PER_KEY);
    assert_true(has(batch.headers, "partitionkey: [\"c0\"]\r\n"));

    static const ItemOperation rows[] = {LOAD_ITEM_READ, LOAD_ITEM_PATCH, LOAD_ITEM_UPSERT};
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        memset(options.percent, 0, sizeof(options.percent));
        options.percent[rows[i]] = 100;
        AUTO(item_maker_done) ItemMaker maker;
        item_maker_init(&maker, &options);
        ItemRequest request = next_of(&maker);
        Slice id = request.id;
        if (rows[i] == LOAD_ITEM_UPSERT)
            assert_true(slice_starts_with(request.body, SLICE("{\"id\":\"o")));
        else
            assert_true(slice_starts_with(id, SLICE("o")));
        assert_true(has(request.headers, "partitionkey: [\"c0\"]\r\n"));
    }
}

static void a_mix_has_the_shares_that_were_asked_for(void **state)
{
    (void)state;
    static const uint8_t rows[] = {0, 5, 50, 100};
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        ItemOptions options = {.count = 1000, .first = 5000, .seed = 1};
        options.percent[LOAD_ITEM_READ] = (uint8_t)(100 - rows[i]);
        options.percent[LOAD_ITEM_UPSERT] = rows[i];
        AUTO(item_maker_done) ItemMaker maker;
        item_maker_init(&maker, &options);
        uint32_t writes = 0;
        for (int n = 0; n < 10000; n++)
            writes += next_of(&maker).id.len == 0;
        assert_in_range(writes, rows[i] * 90, rows[i] * 110);
    }
}

static void items_have_the_size_that_was_asked_for(void **state)
{
    (void)state;
    static const uint32_t sizes[] = {LOAD_ITEM_BYTES_MIN, 599, 600, 1024, 70000,
                                     LOAD_ITEM_BYTES_MAX};
    for (size_t i = 0; i < ARRAY_COUNT(sizes); i++) {
        ItemOptions options = options_of(LOAD_ITEM_CREATE);
        options.item_bytes = sizes[i];
        AUTO(item_maker_done) ItemMaker maker;
        item_maker_init(&maker, &options);
        assert_int_equal(next_of(&maker).body.len, sizes[i]);
        /* Ten equal fields leave up to nine bytes. */
        options.shape = LOAD_ITEM_SHAPE_FIELDS;
        AUTO(item_maker_done) ItemMaker fields;
        item_maker_init(&fields, &options);
        Slice body = next_of(&fields).body;
        assert_in_range(body.len, sizes[i] - 9, sizes[i]);
        assert_int_equal(count_of(body, "\"field"), LOAD_ITEM_FIELD_COUNT);
        assert_true(slice_ends_with(body, SLICE("\"}")));
        assert_int_equal(count_of(body, "\""), 4 * (LOAD_ITEM_FIELD_COUNT + 2));
    }
}

/* Whatever the items of a key and of a batch are, filling makes each item once. */
static void batches_make_every_item_once(void **state)
{
    (void)state;
    static const struct {
        uint64_t count;
        uint32_t items_per_key;
        uint32_t item_bytes;
    } rows[] = {
        {1000, 100, 1024}, {1, 100, 1024},  {250, 100, 1024}, {1001, 1000, 1024},
        {7, 1, 1024},      {5, 2, 1000000}, {3, 3, 1900000},  {333, 250, 60000},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        ItemOptions options = options_of(LOAD_ITEM_BATCH);
        options.first = 0;
        options.count = rows[i].count;
        options.end = rows[i].count;
        options.items_per_key = rows[i].items_per_key;
        options.item_bytes = rows[i].item_bytes;
        AUTO(item_maker_done) ItemMaker maker;
        item_maker_init(&maker, &options);
        uint64_t next = 0;
        for (uint64_t batches = item_maker_batches(&maker); batches > 0; batches--) {
            ItemTurn turn;
            item_maker_choose(&maker, &turn);
            assert_int_equal(turn.number, next);
            assert_in_range(turn.length, 1, LOAD_ITEM_BATCH_MAX);
            next += turn.length;
            assert_int_equal(turn.number / rows[i].items_per_key,
                             (next - 1) / rows[i].items_per_key);
            assert_true(item_maker_print(&maker, &turn, SLICE_EMPTY).body.len < 2000000);
        }
        assert_int_equal(next, rows[i].count);
    }
}

static void the_second_step_writes_the_item_that_the_first_has_read(void **state)
{
    (void)state;
    ItemOptions options = options_of(LOAD_ITEM_MODIFY);
    options.shape = LOAD_ITEM_SHAPE_FIELDS;
    AUTO(item_maker_done) ItemMaker maker;
    item_maker_init(&maker, &options);
    ItemTurn turn;
    char id[LOAD_ITEM_NAME_LEN];
    item_maker_choose(&maker, &turn);
    ItemRequest read = item_maker_print(&maker, &turn, SLICE_EMPTY);
    assert_true(slice_equal(read.method, SLICE("GET")));
    assert_int_equal(read.body.len, 0);
    memcpy(id, read.id.ptr, sizeof(id));
    turn.step = 1;
    ItemRequest write = item_maker_print(&maker, &turn, SLICE_EMPTY);
    assert_true(slice_equal(write.method, SLICE("PATCH")));
    assert_true(slice_equal(write.id, slice_make(id, sizeof(id))));
    assert_true(has(write.body, "{\"op\":\"set\",\"path\":\"/field"));
    assert_true(slice_ends_with(write.body, SLICE("\"}]}")));
    assert_true(write.body.len > 80);
}

static void a_scan_goes_on_at_a_continuation(void **state)
{
    (void)state;
    ItemOptions options = options_of(LOAD_ITEM_SCAN);
    options.scan_length = 7;
    AUTO(item_maker_done) ItemMaker maker;
    item_maker_init(&maker, &options);
    for (int i = 0; i < 100; i++) {
        ItemTurn turn;
        char expected[100];
        item_maker_choose(&maker, &turn);
        assert_in_range(turn.length, 1, 7);
        ItemRequest request = item_maker_print(&maker, &turn, SLICE("next"));
        (void)snprintf(expected, sizeof(expected), "SELECT TOP %u * FROM c WHERE c.id >= @a ",
                       turn.length);
        assert_true(request.is_query);
        assert_true(has(request.body, expected));
        assert_true(has(request.headers, "x-ms-continuation: next\r\n"));
        assert_true(has(request.headers, "x-ms-documentdb-partitionkey: [\""));
    }
}

/* Only a row of answers without a gap makes new items available. */
static void new_items_are_chosen_when_they_have_been_answered(void **state)
{
    (void)state;
    ItemOptions options = options_of(LOAD_ITEM_CREATE);
    options.distribution = KEY_LATEST;
    AUTO(item_maker_done) ItemMaker maker;
    item_maker_init(&maker, &options);
    ItemTurn turns[3];
    for (int i = 0; i < 3; i++)
        item_maker_choose(&maker, &turns[i]);
    item_maker_ended(&maker, &turns[1]);
    assert_int_equal(maker.added, 0);
    item_maker_ended(&maker, &turns[0]);
    assert_int_equal(maker.added, 2);
    item_maker_ended(&maker, &turns[2]);
    assert_int_equal(maker.added, 3);
    for (int i = 0; i < 3 * LOAD_ITEM_ADDED_MAX; i++) {
        item_maker_choose(&maker, &turns[0]);
        item_maker_ended(&maker, &turns[0]);
    }
    assert_int_equal(maker.added, 3 + 3 * LOAD_ITEM_ADDED_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_have_the_form_of_their_operation),
        cmocka_unit_test(an_item_has_20_values),
        cmocka_unit_test(new_items_are_never_the_same),
        cmocka_unit_test(a_batch_makes_the_items_that_reads_ask_for),
        cmocka_unit_test(a_procedure_gets_a_list_of_what_a_batch_has),
        cmocka_unit_test(a_batch_begins_with_a_new_partition_key),
        cmocka_unit_test(items_may_be_orders),
        cmocka_unit_test(a_mix_has_the_shares_that_were_asked_for),
        cmocka_unit_test(items_have_the_size_that_was_asked_for),
        cmocka_unit_test(batches_make_every_item_once),
        cmocka_unit_test(the_second_step_writes_the_item_that_the_first_has_read),
        cmocka_unit_test(a_scan_goes_on_at_a_continuation),
        cmocka_unit_test(new_items_are_chosen_when_they_have_been_answered),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
