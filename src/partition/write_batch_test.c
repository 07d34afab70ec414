/* write_batch_test.c - several operations in one write: atomic, one after the other, or each alone.
 */
#include "partition/partition_check_testing_int.h"

static void add_all(TestWrite *w)
{
    (void)add_document(w, ITEM_CREATE, "{'id':'c','pk':'p','u':3}");
    (void)add_document(w, ITEM_REPLACE, "{'id':'a','pk':'p','u':10,'n':1}");
    (void)add_document(w, ITEM_UPSERT, "{'id':'d','pk':'p','u':4,'ttl':5}");
    (void)add_id(w, ITEM_DELETE, "p", "b");
    (void)add_patch(w, "p", "c", "[{'op':'set','path':'/u','value':30}]");
    (void)add_replace(w, "d", "{'id':'e','pk':'p','u':4,'ttl':7}");
}

/* The items a and b, on which the batches work. */
static void make_two(TestPartition *t)
{
    assert_status(run_document(t, ITEM_CREATE, "{'id':'a','pk':'p','u':1}"), STATUS_OK);
    assert_status(run_document(t, ITEM_CREATE, "{'id':'b','pk':'p','u':2,'ttl':9}"), STATUS_OK);
}

/* I2 */
static void an_atomic_batch_has_one_lsn(TestPartition *t)
{
    make_two(t);
    AUTO(test_write_done) TestWrite w;
    test_write_init(&w, t, WRITE_ATOMIC);
    add_all(&w);
    test_run(t, &w);
    for (size_t i = 0; i < w.write.count; i++) {
        assert_status(w.items[i].status, STATUS_OK);
        if (w.items[i].op != ITEM_DELETE)
            assert_int_equal(w.items[i].item.lsn, 4);
    }
    assert_int_equal(w.write.lsn, 4);
    expect_scan(t, "a c e");
    expect_item(t, "p", "c", "{'id':'c','pk':'p','u':30}");
    check_space(t);
}

/* Every place at which it can fail leaves what was there before, to the last key (I3). */
static void a_failed_atomic_batch_leaves_no_trace(TestPartition *t)
{
    make_two(t);
    size_t keys = count_keys(t, 0);
    PartitionUsage usage = partition_usage(t->partition);
    for (size_t at = 0; at <= 6; at++) {
        AUTO(test_write_done) TestWrite w, all;
        test_write_init(&w, t, WRITE_ATOMIC);
        test_write_init(&all, t, WRITE_ATOMIC);
        add_all(&all);
        memcpy(w.items, all.items, at * sizeof(ItemWrite));
        w.write.count = at;
        (void)add_id(&w, ITEM_DELETE, "p", "none");
        memcpy(&w.items[at + 1], &all.items[at], (6 - at) * sizeof(ItemWrite));
        w.write.count = 7;
        test_run(t, &w);
        for (size_t i = 0; i < w.write.count; i++)
            assert_status(w.items[i].status, i == at ? STATUS_NOT_FOUND : STATUS_FAILED_DEPENDENCY);
        assert_int_equal(w.write.lsn, 3);
        assert_int_equal(count_keys(t, 0), keys);
        assert_int_equal(partition_usage(t->partition).bytes, usage.bytes);
        expect_scan(t, "a b");
        expect_item(t, "p", "a", "{'id':'a','pk':'p','u':1}");
        expect_item(t, "p", "b", "{'id':'b','pk':'p','u':2,'ttl':9}");
        check_space(t);
    }
    /* The numbers that were used in vain are lost (I2). */
    assert_status(run_document(t, ITEM_CREATE, "{'id':'c','pk':'p','u':3}"), STATUS_OK);
    Item item;
    assert_true(test_get(t, "p", "c", &item));
    assert_true(item.number >= item_number(TEST_PARTITION, 3));
    assert_int_equal(item.lsn, 4);
}

static void a_batch_reads_its_own_writes(TestPartition *t)
{
    make_two(t);
    AUTO(test_write_done) TestWrite w;
    test_write_init(&w, t, WRITE_ATOMIC);
    (void)add_id(&w, ITEM_READ, "p", "a");
    (void)add_document(&w, ITEM_REPLACE, "{'id':'a','pk':'p','u':1,'n':7}");
    (void)add_id(&w, ITEM_READ, "p", "a");
    (void)add_document(&w, ITEM_CREATE, "{'id':'c','pk':'p','u':3}");
    (void)add_id(&w, ITEM_READ, "p", "c");
    test_run(t, &w);
    static const char *const rows[] = {"{'id':'a','pk':'p','u':1}", NULL,
                                       "{'id':'a','pk':'p','u':1,'n':7}", NULL,
                                       "{'id':'c','pk':'p','u':3}"};
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        assert_status(w.items[i].status, STATUS_OK);
        if (rows[i] != NULL)
            assert_true(json_equal(w.items[i].item.document, row_json(&t->arena, rows[i])));
    }
    assert_int_equal(w.items[0].item.lsn, 2);
    assert_int_equal(w.items[2].item.lsn, 4);
    check_space(t);
}

/* I2 */
static void reading_raises_no_lsn(TestPartition *t)
{
    make_two(t);
    static const WriteMode modes[] = {WRITE_ATOMIC, WRITE_ORDERED, WRITE_CONTINUE};
    for (size_t i = 0; i < ARRAY_COUNT(modes); i++) {
        AUTO(test_write_done) TestWrite w;
        test_write_init(&w, t, modes[i]);
        (void)add_id(&w, ITEM_READ, "p", "a");
        (void)add_id(&w, ITEM_READ, "p", "b");
        test_run(t, &w);
        assert_status(w.items[1].status, STATUS_OK);
        assert_int_equal(w.write.lsn, 3);
    }
}

static void not_modified_is_no_failure(TestPartition *t)
{
    make_two(t);
    Item item;
    assert_true(test_get(t, "p", "a", &item));
    char etag[ITEM_ETAG_LEN];
    item_etag(&item, etag);
    static const WriteMode modes[] = {WRITE_ATOMIC, WRITE_ORDERED, WRITE_CONTINUE};
    for (size_t i = 0; i < ARRAY_COUNT(modes); i++) {
        AUTO(test_write_done) TestWrite w;
        test_write_init(&w, t, modes[i]);
        add_id(&w, ITEM_READ, "p", "a")->if_none_match = slice_make(etag, sizeof(etag));
        (void)add_document(&w, ITEM_UPSERT, "{'id':'b','pk':'p','u':2}");
        test_run(t, &w);
        assert_status(w.items[0].status, STATUS_NOT_MODIFIED);
        assert_status(w.items[1].status, STATUS_OK);
    }
    check_space(t);
}

static void an_ordered_batch_stops_at_the_first_failure(TestPartition *t)
{
    make_two(t);
    AUTO(test_write_done) TestWrite w;
    test_write_init(&w, t, WRITE_ORDERED);
    (void)add_document(&w, ITEM_CREATE, "{'id':'c','pk':'p','u':3}");
    (void)add_document(&w, ITEM_CREATE, "{'id':'d','pk':'q','u':3}"); /* any partition key */
    (void)add_document(&w, ITEM_CREATE, "{'id':'a','pk':'p','u':9}");
    (void)add_id(&w, ITEM_DELETE, "p", "b");
    (void)add_id(&w, ITEM_READ, "p", "a");
    test_run(t, &w);
    static const Status statuses[] = {STATUS_OK, STATUS_OK, STATUS_CONFLICT,
                                      STATUS_FAILED_DEPENDENCY, STATUS_FAILED_DEPENDENCY};
    for (size_t i = 0; i < ARRAY_COUNT(statuses); i++)
        assert_status(w.items[i].status, statuses[i]);
    assert_int_equal(w.items[0].item.lsn, 4);
    assert_int_equal(w.items[1].item.lsn, 5);
    assert_int_equal(w.write.lsn, 5);
    expect_scan(t, "a b c d");
    check_space(t);
}

static void the_others_go_on_after_a_failure_if_they_may(TestPartition *t)
{
    make_two(t);
    AUTO(test_write_done) TestWrite w;
    test_write_init(&w, t, WRITE_CONTINUE);
    (void)add_document(&w, ITEM_CREATE, "{'id':'a','pk':'p','u':9}");
    (void)add_document(&w, ITEM_CREATE, "{'id':'c','pk':'p','u':3}");
    (void)add_document(&w, ITEM_REPLACE, "{'id':'c','pk':'p','u':2}");
    (void)add_id(&w, ITEM_DELETE, "p", "none");
    (void)add_id(&w, ITEM_DELETE, "p", "b");
    (void)add_document(&w, ITEM_REPLACE, "{'id':'c','pk':'p','u':2}"); /* free now */
    test_run(t, &w);
    static const Status statuses[] = {STATUS_CONFLICT,  STATUS_OK, STATUS_CONFLICT,
                                      STATUS_NOT_FOUND, STATUS_OK, STATUS_OK};
    for (size_t i = 0; i < ARRAY_COUNT(statuses); i++)
        assert_status(w.items[i].status, statuses[i]);
    assert_int_equal(w.write.lsn, 6);
    expect_scan(t, "a c");
    expect_item(t, "p", "c", "{'id':'c','pk':'p','u':2}");
    check_space(t);
}

static void an_item_may_change_often_in_one_batch(TestPartition *t)
{
    AUTO(test_write_done) TestWrite w;
    test_write_init(&w, t, WRITE_ATOMIC);
    (void)add_document(&w, ITEM_CREATE, "{'id':'a','pk':'p','u':1,'ttl':5}");
    (void)add_id(&w, ITEM_DELETE, "p", "a");
    (void)add_document(&w, ITEM_CREATE, "{'id':'a','pk':'p','u':2}");
    (void)add_replace(&w, "a", "{'id':'b','pk':'p','u':1}");
    (void)add_document(&w, ITEM_CREATE, "{'id':'a','pk':'p','u':2}");
    (void)add_document(&w, ITEM_UPSERT, "{'id':'b','pk':'p','u':7,'ttl':6}");
    (void)add_id(&w, ITEM_DELETE, "p", "a");
    test_run(t, &w);
    for (size_t i = 0; i < w.write.count; i++)
        assert_status(w.items[i].status, STATUS_OK);
    expect_scan(t, "b");
    expect_item(t, "p", "b", "{'id':'b','pk':'p','u':7,'ttl':6}");
    check_space(t);
}

/* How long the text of an item is. */
static size_t text_bytes(TestPartition *t, const char *pk, const char *id)
{
    Item item;
    assert_true(test_get(t, pk, id, &item));
    AUTO(buf_done) Buf text;
    buf_init(&text, 1 << 20);
    item_print(t->schema, &item, &text);
    return text.len;
}

static void reads_hand_out_as_much_as_they_may(TestPartition *t)
{
    make_two(t);
    assert_status(run_document(t, ITEM_CREATE, "{'id':'n','pk':'p','u':3,'list':[1e20,1e20,1e20]}"),
                  STATUS_OK);
    size_t a = text_bytes(t, "p", "a");
    size_t b = text_bytes(t, "p", "b");
    size_t n = text_bytes(t, "p", "n"); /* longer than it is stored */
    const struct {
        WriteMode mode;
        size_t bytes_max;
        Status statuses[4]; /* a write, and the reads of n, b and a */
    } rows[] = {
        {WRITE_ATOMIC, n + b + a, {STATUS_OK, STATUS_OK, STATUS_OK, STATUS_OK}},
        {WRITE_ATOMIC,
         n + b + a - 1,
         {STATUS_FAILED_DEPENDENCY, STATUS_FAILED_DEPENDENCY, STATUS_FAILED_DEPENDENCY,
          STATUS_TOO_LARGE}},
        {WRITE_ORDERED,
         n - 1,
         {STATUS_OK, STATUS_TOO_LARGE, STATUS_FAILED_DEPENDENCY, STATUS_FAILED_DEPENDENCY}},
        {WRITE_CONTINUE, n + b, {STATUS_OK, STATUS_OK, STATUS_OK, STATUS_TOO_LARGE}},
        {WRITE_CONTINUE, n + a, {STATUS_OK, STATUS_OK, STATUS_TOO_LARGE, STATUS_OK}},
        {WRITE_CONTINUE, 0, {STATUS_OK, STATUS_TOO_LARGE, STATUS_TOO_LARGE, STATUS_TOO_LARGE}},
    };
    assert_true(b > a);
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        AUTO(test_write_done) TestWrite w;
        test_write_init(&w, t, rows[i].mode);
        w.write.read_bytes_max = rows[i].bytes_max;
        (void)add_document(&w, ITEM_UPSERT, "{'id':'w','pk':'p','u':4}");
        (void)add_id(&w, ITEM_READ, "p", "n");
        (void)add_id(&w, ITEM_READ, "p", "b");
        (void)add_id(&w, ITEM_READ, "p", "a");
        uint64_t lsn = partition_lsn(t->partition);
        test_run(t, &w);
        for (size_t j = 0; j < ARRAY_COUNT(rows[i].statuses); j++) {
            assert_status(w.items[j].status, rows[i].statuses[j]);
            if (rows[i].statuses[j] == STATUS_TOO_LARGE)
                assert_int_equal(w.items[j].error.sub, SUB_RESPONSE_TOO_LARGE);
        }
        assert_int_equal(partition_lsn(t->partition),
                         lsn + (rows[i].statuses[0] == STATUS_OK ? 1 : 0));
    }
    check_space(t);
}

/* A small request could otherwise make items of hundreds of megabytes anew. */
static void patches_change_as_much_as_they_may(TestPartition *t)
{
    enum { TEXT_BYTES = 1900000, FIT = PARTITION_PATCHED_BYTES_MAX / (TEXT_BYTES + 100) };
    AUTO(buf_done) Buf row;
    buf_init(&row, 2 * TEXT_BYTES);
    buf_slice(&row, SLICE("{'id':'a','pk':'p','u':1,'text':'"));
    for (size_t i = 0; i < TEXT_BYTES; i++)
        buf_byte(&row, 'x');
    buf_bytes(&row, "'}", 3);
    assert_status(run_document(t, ITEM_CREATE, row.ptr), STATUS_OK);
    for (size_t count = FIT; count <= FIT + 1; count++) {
        AUTO(test_write_done) TestWrite w;
        test_write_init(&w, t, WRITE_ATOMIC);
        for (size_t i = 0; i < count; i++)
            (void)add_patch(&w, "p", "a", "[{'op':'incr','path':'/u','value':1}]");
        test_run(t, &w);
        assert_status(w.items[count - 1].status, count == FIT ? STATUS_OK : STATUS_TOO_LARGE);
        assert_status(w.items[0].status, count == FIT ? STATUS_OK : STATUS_FAILED_DEPENDENCY);
    }
    Item item;
    assert_true(test_get(t, "p", "a", &item));
    assert_int_equal(json_number(json_get(item.document, SLICE("u"))), 1 + FIT);
    check_space(t);
}

static void an_empty_batch_is_answered(TestPartition *t)
{
    static const WriteMode modes[] = {WRITE_ATOMIC, WRITE_ORDERED, WRITE_CONTINUE};
    for (size_t i = 0; i < ARRAY_COUNT(modes); i++) {
        AUTO(test_write_done) TestWrite w;
        test_write_init(&w, t, modes[i]);
        test_run(t, &w);
        assert_int_equal(w.write.lsn, 1);
    }
    assert_int_equal(count_keys(t, 0), 0);
}

#define UNIQUE_U .ttl_s = -1, .unique = {"/u"}

/* Creates items of the key 'n'; 'ids' has one letter for each. Returns how many were created before
 * one was refused. */
static size_t create_all(TestPartition *t, const char *ids)
{
    AUTO(test_write_done) TestWrite w;
    test_write_init(&w, t, WRITE_ATOMIC);
    char row[64];
    for (const char *id = ids; *id != 0; id++) {
        (void)snprintf(row, sizeof(row), "{'id':'%c','pk':'n','ttl':50}", *id);
        (void)add_document(&w, ITEM_CREATE, row);
    }
    test_run(t, &w);
    size_t created = 0;
    while (created < w.write.count && w.items[created].status != STATUS_CONFLICT)
        created++;
    for (size_t i = 0; i < w.write.count && created < w.write.count; i++)
        assert_status(w.items[i].status, i == created ? STATUS_CONFLICT : STATUS_FAILED_DEPENDENCY);
    check_space(t);
    return created;
}

static void delete_all(TestPartition *t, const char *ids)
{
    for (const char *id = ids; *id != 0; id++)
        assert_status(run_id(t, ITEM_DELETE, "n", (char[]){*id, 0}), STATUS_OK);
}

/* After a few items of a key that holds nothing, the others are not looked for in the store
 * (group_holds_nothing). */
static void a_batch_that_fills_a_key_finds_what_is_there(TestPartition *t)
{
    assert_int_equal(create_all(t, "abcdefc"), 6); /* in the batch itself */
    expect_scan(t, "");
    assert_int_equal(create_all(t, "abcdef"), 6);
    assert_int_equal(create_all(t, "ghijka"), 5); /* in the store */
    assert_int_equal(create_all(t, "ghijk"), 5);
    delete_all(t, "abcdefghij");
    assert_int_equal(create_all(t, "abcdek"), 5); /* one item is left */
    delete_all(t, "k");
    assert_int_equal(create_all(t, "abcdek"), 6);
    test_reopen(t);
    assert_int_equal(create_all(t, "ghijk"), 4);
    test_advance_s(t, 100); /* all have expired, and are still stored */
    assert_int_equal(create_all(t, "zyxwabcdek"), 10);
    assert_status(run_purge(t, "n"), STATUS_OK);
    assert_int_equal(create_all(t, "zyxwabcdek"), 10);
    expect_scan(t, "z y x w a b c d e k");
}

/* A create that was undone does not count, and one of the same group does. */
static void what_a_group_has_written_is_found_in_it(TestPartition *t)
{
    AUTO(test_write_done) TestWrite w;
    test_write_init(&w, t, WRITE_CONTINUE);
    static const struct {
        const char *row;
        Status status;
    } rows[] = {
        {"{'id':'a','pk':'n','u':1}", STATUS_OK},
        {"{'id':'b','pk':'n','u':2}", STATUS_OK},
        {"{'id':'c','pk':'n','u':3}", STATUS_OK},
        {"{'id':'a','pk':'n','u':4}", STATUS_CONFLICT},
        {"{'id':'d','pk':'n','u':3}", STATUS_CONFLICT},
        {"{'id':'d','pk':'n','u':5}", STATUS_OK},
        {"{'id':'d','pk':'n','u':6}", STATUS_CONFLICT},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++)
        (void)add_document(&w, ITEM_CREATE, rows[i].row);
    test_run(t, &w);
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++)
        assert_status(w.items[i].status, rows[i].status);
    expect_scan(t, "a b c d");
    check_space(t);
}

int main(void)
{
    static const EngineTest tests[] = {
        ENGINE_TEST(an_atomic_batch_has_one_lsn, UNIQUE_U),
        ENGINE_TEST(a_batch_that_fills_a_key_finds_what_is_there, .ttl_s = -1),
        ENGINE_TEST(what_a_group_has_written_is_found_in_it, UNIQUE_U),
        ENGINE_TEST(a_failed_atomic_batch_leaves_no_trace, UNIQUE_U),
        ENGINE_TEST(a_batch_reads_its_own_writes, UNIQUE_U),
        ENGINE_TEST(reading_raises_no_lsn, UNIQUE_U),
        ENGINE_TEST(not_modified_is_no_failure, UNIQUE_U),
        ENGINE_TEST(an_ordered_batch_stops_at_the_first_failure, UNIQUE_U),
        ENGINE_TEST(the_others_go_on_after_a_failure_if_they_may, UNIQUE_U),
        ENGINE_TEST(an_item_may_change_often_in_one_batch, UNIQUE_U),
        ENGINE_TEST(reads_hand_out_as_much_as_they_may, UNIQUE_U),
        ENGINE_TEST(patches_change_as_much_as_they_may, UNIQUE_U),
        ENGINE_TEST(an_empty_batch_is_answered, UNIQUE_U),
    };
    return run_on_every_engine("batch", tests, ARRAY_COUNT(tests));
}
