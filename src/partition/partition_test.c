/* partition_test.c - every operation and every refusal, alone: statuses, ETags, numbers, LSNs, what
 * comes back after a reopen. Batches are in write_batch_test.c, groups and faults in group_test.c.
 */
#include "partition/partition_check_testing_int.h"

/* One operation with If-Match, on the item that is there. */
static Status run_matching(TestPartition *t, ItemOp op, const char *row, Slice if_match,
                           ItemWrite *out)
{
    AUTO(test_write_done) TestWrite w;
    test_write_init(&w, t, WRITE_ATOMIC);
    add_document(&w, op, row)->if_match = if_match;
    test_run(t, &w);
    *out = w.items[0];
    return w.items[0].status;
}

static Slice etag_of(TestPartition *t, const Item *item)
{
    char etag[ITEM_ETAG_LEN];
    item_etag(item, etag);
    return arena_copy(&t->arena, slice_make(etag, sizeof(etag)));
}

static void a_new_partition_is_empty(TestPartition *t)
{
    expect_item(t, "p", "a", NULL);
    expect_scan(t, "");
    assert_int_equal(partition_lsn(t->partition), 1);
    assert_int_equal(partition_usage(t->partition).items, 0);
    assert_int_equal(partition_usage(t->partition).bytes, 0);
    assert_int_equal(count_keys(t, 0), 0);
    check_space(t);
}

static void a_created_item_is_there(TestPartition *t)
{
    AUTO(test_write_done) TestWrite w;
    test_write_init(&w, t, WRITE_ATOMIC);
    const ItemWrite *op = add_document(&w, ITEM_CREATE, "{'id':'a','pk':'p','n':1}");
    test_run(t, &w);
    assert_status(op->status, STATUS_OK);
    assert_true(op->created);
    assert_int_equal(op->item.number, item_number(TEST_PARTITION, 1));
    assert_int_equal(op->item.lsn, 2);
    assert_int_equal(op->item.ts_s, TEST_BEGIN_S);
    assert_int_equal(op->bytes_before, 0);
    assert_int_equal(w.write.lsn, 2);
    assert_int_equal(partition_lsn(t->partition), 2);

    Item item;
    assert_true(test_get(t, "p", "a", &item));
    assert_int_equal(item.number, op->item.number);
    assert_int_equal(item.lsn, 2);
    assert_int_equal(item.ts_s, TEST_BEGIN_S);
    assert_int_equal(op->bytes_after, item.bytes);
    assert_int_equal(partition_usage(t->partition).items, 1);
    assert_int_equal(partition_usage(t->partition).bytes, item.bytes + 1 + 16 + 1);
    expect_item(t, "p", "a", "{'id':'a','pk':'p','n':1}");
    expect_item(t, "q", "a", NULL);
    expect_item(t, "p", "b", NULL);
    /* counters, item, number, size, latest change */
    assert_int_equal(count_keys(t, 0), 5);
    check_space(t);
}

static void an_id_is_taken_once_per_partition_key(TestPartition *t)
{
    assert_status(run_document(t, ITEM_CREATE, "{'id':'a','pk':'p','n':1}"), STATUS_OK);
    assert_status(run_document(t, ITEM_CREATE, "{'id':'a','pk':'p','n':2}"), STATUS_CONFLICT);
    assert_int_equal(partition_lsn(t->partition), 2);
    assert_status(run_document(t, ITEM_CREATE, "{'id':'a','pk':'q','n':3}"), STATUS_OK);
    assert_status(run_document(t, ITEM_CREATE, "{'id':'a','n':4}"), STATUS_OK); /* no key at all */
    assert_int_equal(partition_lsn(t->partition), 4);
    expect_item(t, "p", "a", "{'id':'a','pk':'p','n':1}");
    expect_item(t, "q", "a", "{'id':'a','pk':'q','n':3}");
    expect_item(t, "[{}]", "a", "{'id':'a','n':4}");
    check_space(t);
}

static void what_is_not_there_is_not_found(TestPartition *t)
{
    static const ItemOp ops[] = {ITEM_READ, ITEM_DELETE};
    for (size_t i = 0; i < ARRAY_COUNT(ops); i++)
        assert_status(run_id(t, ops[i], "p", "a"), STATUS_NOT_FOUND);
    assert_status(run_document(t, ITEM_REPLACE, "{'id':'a','pk':'p'}"), STATUS_NOT_FOUND);
    AUTO(test_write_done) TestWrite w;
    test_write_init(&w, t, WRITE_ATOMIC);
    (void)add_patch(&w, "p", "a", "[{'op':'set','path':'/n','value':1}]");
    test_run(t, &w);
    assert_status(w.items[0].status, STATUS_NOT_FOUND);
    assert_int_equal(w.items[0].error.sub, SUB_NONE);
    assert_int_equal(w.write.lsn, 1);
    assert_int_equal(count_keys(t, 0), 0);
}

/* Ids come from the path of a request, too, where nothing has checked them. */
static void an_id_that_cannot_be_is_not_found(TestPartition *t)
{
    static const size_t lengths[] = {ITEM_ID_BYTES_MAX + 1, 4096, 10000};
    for (size_t i = 0; i < ARRAY_COUNT(lengths); i++) {
        char *id = arena_zalloc(&t->arena, lengths[i] + 1);
        memset(id, 'x', lengths[i]);
        expect_item(t, "p", id, NULL);
        assert_status(run_id(t, ITEM_READ, "p", id), STATUS_NOT_FOUND);
        assert_status(run_id(t, ITEM_DELETE, "p", id), STATUS_NOT_FOUND);
        AUTO(test_write_done) TestWrite w;
        test_write_init(&w, t, WRITE_ATOMIC);
        (void)add_replace(&w, id, "{'id':'a','pk':'p'}");
        test_run(t, &w);
        assert_status(w.items[0].status, STATUS_NOT_FOUND);
    }
    expect_item(t, "p", "", NULL);
}

static void the_longest_id_and_key_are_kept(TestPartition *t)
{
    char id[ITEM_ID_BYTES_MAX + 1] = {0};
    char pk[PARTITION_KEY_BYTES_MAX + 1] = {0};
    memset(id, 'i', ITEM_ID_BYTES_MAX);
    memset(pk, 'p', PARTITION_KEY_BYTES_MAX);
    const char *row = arena_format(&t->arena, "{'id':'%s','pk':'%s'}", id, pk).ptr;
    assert_status(run_document(t, ITEM_CREATE, row), STATUS_OK);
    expect_item(t, pk, id, row);
    check_space(t);
}

static void a_replaced_item_keeps_its_number(TestPartition *t)
{
    assert_status(run_document(t, ITEM_CREATE, "{'id':'a','pk':'p','n':1}"), STATUS_OK);
    Item first;
    assert_true(test_get(t, "p", "a", &first));
    test_advance_s(t, 5);
    static const ItemOp ops[] = {ITEM_REPLACE, ITEM_UPSERT};
    for (size_t i = 0; i < ARRAY_COUNT(ops); i++) {
        ItemWrite w;
        assert_status(
            run_matching(t, ops[i], "{'id':'a','pk':'p','more':[1,2,3]}", SLICE_EMPTY, &w),
            STATUS_OK);
        assert_false(w.created);
        assert_int_equal(w.item.number, first.number);
        assert_int_equal(w.item.lsn, 3 + i);
        assert_int_equal(w.item.ts_s, TEST_BEGIN_S + 5);
        assert_int_equal(w.bytes_before, i == 0 ? first.bytes : w.bytes_after);
        assert_true(w.bytes_after > first.bytes);
    }
    expect_item(t, "p", "a", "{'id':'a','pk':'p','more':[1,2,3]}");
    assert_int_equal(partition_usage(t->partition).items, 1);
    check_space(t);
}

static void an_upsert_creates_what_is_missing(TestPartition *t)
{
    ItemWrite w;
    /* If-Match is about an item that is there. */
    assert_status(run_matching(t, ITEM_UPSERT, "{'id':'a','pk':'p'}", SLICE("\"x\""), &w),
                  STATUS_OK);
    assert_true(w.created);
    assert_int_equal(w.item.number, item_number(TEST_PARTITION, 1));
    expect_item(t, "p", "a", "{'id':'a','pk':'p'}");
    check_space(t);
}

static void a_deleted_item_leaves_nothing(TestPartition *t)
{
    assert_status(run_document(t, ITEM_CREATE, "{'id':'a','pk':'p','ttl':9,'u':1}"), STATUS_OK);
    assert_int_equal(count_keys(t, 0), 7);
    AUTO(test_write_done) TestWrite w;
    test_write_init(&w, t, WRITE_ATOMIC);
    (void)add_id(&w, ITEM_DELETE, "p", "a");
    test_run(t, &w);
    assert_status(w.items[0].status, STATUS_OK);
    assert_true(w.items[0].bytes_before > 0);
    assert_int_equal(w.write.lsn, 3);
    expect_item(t, "p", "a", NULL);
    expect_scan(t, "");
    assert_int_equal(count_keys(t, 0), 1); /* the counters */
    assert_int_equal(partition_usage(t->partition).items, 0);
    assert_int_equal(partition_usage(t->partition).bytes, 0);
    assert_status(run_id(t, ITEM_DELETE, "p", "a"), STATUS_NOT_FOUND);
    /* It gets a new number when it is made again. */
    assert_status(run_document(t, ITEM_CREATE, "{'id':'a','pk':'p'}"), STATUS_OK);
    Item item;
    assert_true(test_get(t, "p", "a", &item));
    assert_int_equal(item.number, item_number(TEST_PARTITION, 2));
    check_space(t);
}

static void a_patched_item_is_a_new_version(TestPartition *t)
{
    assert_status(run_document(t, ITEM_CREATE, "{'id':'a','pk':'p','n':1}"), STATUS_OK);
    AUTO(test_write_done) TestWrite w;
    test_write_init(&w, t, WRITE_ATOMIC);
    const ItemWrite *op =
        add_patch(&w, "p", "a",
                  "[{'op':'incr','path':'/n','value':2},{'op':'add','path':'/ttl','value':60}]");
    test_run(t, &w);
    assert_status(op->status, STATUS_OK);
    assert_int_equal(op->item.number, item_number(TEST_PARTITION, 1));
    assert_int_equal(op->item.lsn, 3);
    assert_int_equal(op->item.ttl_s, 60);
    assert_true(op->bytes_after > op->bytes_before);
    expect_item(t, "p", "a", "{'id':'a','pk':'p','n':3,'ttl':60}");
    check_space(t);
}

/* I3 */
static void a_patch_that_cannot_be_applied_changes_nothing(TestPartition *t)
{
    static const char *const rows[] = {
        "[{'op':'set','path':'/m','value':1},{'op':'remove','path':'/none'}]",
        "[{'op':'set','path':'/m','value':1},{'op':'incr','path':'/s','value':1}]",
        /* applied well, but not an item any more */
        "[{'op':'set','path':'/ttl','value':'soon'}]",
        "[{'op':'set','path':'/ttl','value':0}]",
    };
    assert_status(run_document(t, ITEM_CREATE, "{'id':'a','pk':'p','s':'x'}"), STATUS_OK);
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        AUTO(test_write_done) TestWrite w;
        test_write_init(&w, t, WRITE_ATOMIC);
        (void)add_patch(&w, "p", "a", rows[i]);
        test_run(t, &w);
        assert_status(w.items[0].status, STATUS_BAD_REQUEST);
        assert_int_equal(w.write.lsn, 2);
    }
    expect_item(t, "p", "a", "{'id':'a','pk':'p','s':'x'}");
    check_space(t);
}

typedef struct Condition {
    PatchCondition condition;
    Status status;
    bool holds;
    unsigned asked;
} Condition;

static Status condition_holds(void *ctx, Json document, bool *out, Error *err)
{
    Condition *c = ctx;
    c->asked++;
    ASSERT(json_is(json_get(document, SLICE("id")), JSON_STRING));
    *out = c->holds;
    return c->status == STATUS_OK ? STATUS_OK : error_set(err, c->status, SUB_NONE, "no");
}

static void a_patch_asks_its_condition(TestPartition *t)
{
    static const struct {
        Status status;
        bool holds;
        Status expected;
    } rows[] = {
        {STATUS_OK, false, STATUS_PRECONDITION_FAILED},
        {STATUS_BAD_REQUEST, true, STATUS_BAD_REQUEST},
        {STATUS_OK, true, STATUS_OK},
    };
    assert_status(run_document(t, ITEM_CREATE, "{'id':'a','pk':'p'}"), STATUS_OK);
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        Condition c = {.status = rows[i].status, .holds = rows[i].holds};
        c.condition = (PatchCondition){condition_holds, &c};
        AUTO(test_write_done) TestWrite w;
        test_write_init(&w, t, WRITE_ATOMIC);
        add_patch(&w, "p", "a", "[{'op':'set','path':'/n','value':1}]")->condition = &c.condition;
        test_run(t, &w);
        assert_status(w.items[0].status, rows[i].expected);
        assert_int_equal(c.asked, 1);
        expect_item(t, "p", "a",
                    rows[i].expected == STATUS_OK ? "{'id':'a','pk':'p','n':1}"
                                                  : "{'id':'a','pk':'p'}");
    }
}

static void if_match_lets_only_the_right_version_through(TestPartition *t)
{
    assert_status(run_document(t, ITEM_CREATE, "{'id':'a','pk':'p','n':0}"), STATUS_OK);
    Item old;
    assert_true(test_get(t, "p", "a", &old));
    assert_status(run_document(t, ITEM_REPLACE, "{'id':'a','pk':'p','n':1}"), STATUS_OK);
    Slice stale[] = {etag_of(t, &old), SLICE("x"), SLICE("\"\""), SLICE("**")};
    for (size_t i = 0; i < ARRAY_COUNT(stale); i++) {
        ItemWrite w;
        const char *row = "{'id':'a','pk':'p','n':9}";
        assert_status(run_matching(t, ITEM_REPLACE, row, stale[i], &w), STATUS_PRECONDITION_FAILED);
        assert_status(run_matching(t, ITEM_UPSERT, row, stale[i], &w), STATUS_PRECONDITION_FAILED);
        AUTO(test_write_done) TestWrite other;
        test_write_init(&other, t, WRITE_CONTINUE);
        add_id(&other, ITEM_DELETE, "p", "a")->if_match = stale[i];
        add_patch(&other, "p", "a", "[{'op':'set','path':'/n','value':9}]")->if_match = stale[i];
        test_run(t, &other);
        assert_status(other.items[0].status, STATUS_PRECONDITION_FAILED);
        assert_status(other.items[1].status, STATUS_PRECONDITION_FAILED);
        assert_int_equal(other.write.lsn, 3);
    }
    expect_item(t, "p", "a", "{'id':'a','pk':'p','n':1}");

    ItemWrite w;
    Item item;
    assert_true(test_get(t, "p", "a", &item));
    assert_status(run_matching(t, ITEM_REPLACE, "{'id':'a','pk':'p','n':2}", etag_of(t, &item), &w),
                  STATUS_OK);
    assert_status(
        run_matching(t, ITEM_UPSERT, "{'id':'a','pk':'p','n':3}", etag_of(t, &w.item), &w),
        STATUS_OK);
    assert_status(run_matching(t, ITEM_UPSERT, "{'id':'a','pk':'p','n':4}", SLICE("*"), &w),
                  STATUS_OK);
    expect_item(t, "p", "a", "{'id':'a','pk':'p','n':4}");
    AUTO(test_write_done) TestWrite last;
    test_write_init(&last, t, WRITE_ATOMIC);
    add_id(&last, ITEM_DELETE, "p", "a")->if_match = etag_of(t, &w.item);
    test_run(t, &last);
    assert_status(last.items[0].status, STATUS_OK);
    check_space(t);
}

static void if_none_match_spares_a_read(TestPartition *t)
{
    assert_status(run_document(t, ITEM_CREATE, "{'id':'a','pk':'p'}"), STATUS_OK);
    Item item;
    assert_true(test_get(t, "p", "a", &item));
    AUTO(test_write_done) TestWrite w;
    test_write_init(&w, t, WRITE_CONTINUE);
    add_id(&w, ITEM_READ, "p", "a")->if_none_match = etag_of(t, &item);
    add_id(&w, ITEM_READ, "p", "a")->if_none_match = SLICE("\"other\"");
    test_run(t, &w);
    assert_status(w.items[0].status, STATUS_NOT_MODIFIED);
    assert_status(w.items[1].status, STATUS_OK);
    assert_int_equal(w.items[1].item.number, item.number);
    assert_int_equal(w.write.lsn, 2);
}

static void a_replace_may_rename(TestPartition *t)
{
    assert_status(run_document(t, ITEM_CREATE, "{'id':'a','pk':'p','u':1}"), STATUS_OK);
    assert_status(run_document(t, ITEM_CREATE, "{'id':'taken','pk':'p','u':2}"), STATUS_OK);
    assert_status(run_document(t, ITEM_CREATE, "{'id':'b','pk':'q','u':1}"), STATUS_OK);
    Item before;
    assert_true(test_get(t, "p", "a", &before));
    AUTO(test_write_done) TestWrite w;
    test_write_init(&w, t, WRITE_CONTINUE);
    (void)add_replace(&w, "a", "{'id':'taken','pk':'p','u':1}");
    (void)add_replace(&w, "a", "{'id':'b','pk':'p','u':2}"); /* the unique value is taken */
    (void)add_replace(&w, "a", "{'id':'a much longer id','pk':'p','u':1}");
    (void)add_replace(&w, "a", "{'id':'c','pk':'p','u':1}");
    test_run(t, &w);
    assert_status(w.items[0].status, STATUS_CONFLICT);
    assert_status(w.items[1].status, STATUS_CONFLICT);
    assert_status(w.items[2].status, STATUS_OK);
    assert_status(w.items[3].status, STATUS_NOT_FOUND);
    expect_item(t, "p", "a", NULL);
    expect_item(t, "p", "b", NULL);
    expect_item(t, "p", "a much longer id", "{'id':'a much longer id','pk':'p','u':1}");
    Item after;
    assert_true(test_get(t, "p", "a much longer id", &after));
    assert_int_equal(after.number, before.number);
    expect_scan(t, "a much longer id taken b");
    check_space(t);
    /* And back, to a shorter one. */
    test_write_done(&w);
    test_write_init(&w, t, WRITE_ATOMIC);
    (void)add_replace(&w, "a much longer id", "{'id':'a','pk':'p','u':1}");
    test_run(t, &w);
    assert_status(w.items[0].status, STATUS_OK);
    expect_scan(t, "a taken b");
    check_space(t);
}

static void a_number_leads_to_its_item(TestPartition *t)
{
    assert_status(run_document(t, ITEM_CREATE, "{'id':'a','pk':'p'}"), STATUS_OK);
    Slice epk, id;
    bool found = false;
    assert_ok(partition_locate(t->partition, item_number(TEST_PARTITION, 1), &t->arena, &epk, &id,
                               &found, err));
    assert_true(found);
    assert_slice(id, SLICE("a"));
    Epk expected;
    make_epk(&t->arena, t->schema, "p", &expected);
    assert_true(slice_equal(epk, epk_slice(&expected)));
    assert_ok(partition_locate(t->partition, item_number(TEST_PARTITION, 2), &t->arena, &epk, &id,
                               &found, err));
    assert_false(found);
}

/* I2 */
static void everything_is_there_after_a_reopen(TestPartition *t)
{
    assert_status(run_document(t, ITEM_CREATE, "{'id':'a','pk':'p'}"), STATUS_OK);
    assert_status(run_document(t, ITEM_CREATE, "{'id':'b','pk':'p'}"), STATUS_OK);
    assert_status(run_id(t, ITEM_DELETE, "p", "b"), STATUS_OK);
    PartitionUsage usage = partition_usage(t->partition);
    for (int i = 0; i < 3; i++) {
        test_reopen(t);
        assert_int_equal(partition_lsn(t->partition), 4);
        assert_int_equal(partition_usage(t->partition).items, usage.items);
        assert_int_equal(partition_usage(t->partition).bytes, usage.bytes);
        expect_item(t, "p", "a", "{'id':'a','pk':'p'}");
        expect_item(t, "p", "b", NULL);
        check_space(t);
    }
    /* Neither the LSN nor the number of what was deleted comes again. */
    assert_status(run_document(t, ITEM_CREATE, "{'id':'b','pk':'p'}"), STATUS_OK);
    Item item;
    assert_true(test_get(t, "p", "b", &item));
    assert_int_equal(item.number, item_number(TEST_PARTITION, 3));
    assert_int_equal(item.lsn, 5);
}

static void other_kinds_of_keys_work_alike(TestPartition *t)
{
    static const struct {
        TestSchema schema;
        const char *pk;
        const char *row;
    } rows[] = {
        {{.kind = PARTITION_HASH_V1, .paths = "/pk"}, "['p']", "{'id':'a','pk':'p'}"},
        {{.kind = PARTITION_HASH_V1, .paths = "/pk"}, "[-1.5]", "{'id':'a','pk':-1.5}"},
        {{.kind = PARTITION_MULTI_HASH, .paths = "/x /y/z"},
         "[1,true]",
         "{'id':'a','x':1,'y':{'z':true}}"},
        {{.kind = PARTITION_NONE, .paths = ""}, "[]", "{'id':'b'}"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        test_set_schema(t, rows[i].schema);
        assert_status(run_document(t, ITEM_CREATE, rows[i].row), STATUS_OK);
        assert_status(run_document(t, ITEM_CREATE, rows[i].row), STATUS_CONFLICT);
        expect_item(t, rows[i].pk, i < 3 ? "a" : "b", rows[i].row);
        check_space(t);
        assert_status(run_id(t, ITEM_DELETE, rows[i].pk, i < 3 ? "a" : "b"), STATUS_OK);
    }
}

#define UNIQUE_U .ttl_s = -1, .unique = {"/u"}

int main(void)
{
    static const EngineTest tests[] = {
        ENGINE_TEST(a_new_partition_is_empty),
        ENGINE_TEST(a_created_item_is_there),
        ENGINE_TEST(an_id_is_taken_once_per_partition_key),
        ENGINE_TEST(what_is_not_there_is_not_found),
        ENGINE_TEST(an_id_that_cannot_be_is_not_found),
        ENGINE_TEST(the_longest_id_and_key_are_kept),
        ENGINE_TEST(a_replaced_item_keeps_its_number),
        ENGINE_TEST(an_upsert_creates_what_is_missing),
        ENGINE_TEST(a_deleted_item_leaves_nothing, UNIQUE_U),
        ENGINE_TEST(a_patched_item_is_a_new_version, UNIQUE_U),
        ENGINE_TEST(a_patch_that_cannot_be_applied_changes_nothing, UNIQUE_U),
        ENGINE_TEST(a_patch_asks_its_condition),
        ENGINE_TEST(if_match_lets_only_the_right_version_through),
        ENGINE_TEST(if_none_match_spares_a_read),
        ENGINE_TEST(a_replace_may_rename, UNIQUE_U),
        ENGINE_TEST(a_number_leads_to_its_item),
        ENGINE_TEST(everything_is_there_after_a_reopen),
        ENGINE_TEST(other_kinds_of_keys_work_alike),
    };
    return run_on_every_engine("partition", tests, ARRAY_COUNT(tests));
}
