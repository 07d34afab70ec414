/* page_transaction_test.c - queries in a transaction, which see its own writes. */
#include "query/page/page_testing_int.h"

static const char POLICY[] =
    "{\"includedPaths\":[{\"path\":\"/*\"}],\"excludedPaths\":[],\"compositeIndexes\":[[{\"path\":"
    "\"/a\",\"order\":\"ascending\"},{\"path\":\"/b\",\"order\":\"descending\"}]]}";

static void apply_in(TestContainer *t, ItemOp op, const char *text, Arena *arena)
{
    ItemWrite *w = ARENA_NEW(arena, ItemWrite);
    test_fill_write(t, arena, op, parse_json(arena, text), w);
    transaction_apply(t->transaction, w, arena);
    assert_int_equal(w->status, STATUS_OK);
}

/* The index does not know of own writes. */
static void a_transaction_finds_its_own_writes(void **state)
{
    TestContainer *t = *state;
    test_container_open(t, (TestOptions){.policy = POLICY});
    test_insert(t, "{\"id\":\"1\",\"pk\":\"p\",\"a\":1,\"b\":1}");
    test_insert(t, "{\"id\":\"2\",\"pk\":\"p\",\"a\":2,\"b\":1}");
    test_insert(t, "{\"id\":\"3\",\"pk\":\"p\",\"a\":2,\"b\":2}");
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 4096);
    ItemWrite any;
    test_fill_write(t, &arena, ITEM_READ, parse_json(&arena, "{\"id\":\"1\",\"pk\":\"p\"}"), &any);
    Error err;
    test_check(
        transaction_begin(t->partitions[0], t->schema, &any.epk, UINT64_MAX, &t->transaction, &err),
        &err);
    expect(t, "SELECT VALUE COUNT(1) FROM c", "[3]");
    apply_in(t, ITEM_DELETE, "{\"id\":\"1\",\"pk\":\"p\"}", &arena);
    apply_in(t, ITEM_UPSERT, "{\"id\":\"3\",\"pk\":\"p\",\"a\":9,\"b\":2}", &arena);
    apply_in(t, ITEM_CREATE, "{\"id\":\"4\",\"pk\":\"p\",\"a\":2,\"b\":5}", &arena);
    apply_in(t, ITEM_CREATE, "{\"id\":\"5\",\"pk\":\"p\",\"a\":0,\"b\":5}", &arena);
    static const QueryCase ROWS[] = {
        {"SELECT VALUE COUNT(1) FROM c", "[4]"},
        {"SELECT VALUE COUNT(c.a) FROM c WHERE c.b = 5", "[2]"},
        {"SELECT VALUE MAX(c.a) FROM c", "[9]"},
        {"SELECT VALUE c.id FROM c", "[\"2\",\"3\",\"4\",\"5\"]"},
        {"SELECT VALUE c.id FROM c WHERE c.a = 2", "[\"2\",\"4\"]"},
        {"SELECT VALUE c.id FROM c WHERE c.a = 1", "[]"},
        {"SELECT VALUE c.id FROM c WHERE c.a > 1 AND c.pk = \"p\"", "[\"2\",\"3\",\"4\"]"},
        {"SELECT VALUE c.id FROM c WHERE c.id = \"4\"", "[\"4\"]"},
        {"SELECT VALUE c.a FROM c ORDER BY c.a DESC", "[9,2,2,0]"},
        {"SELECT VALUE c.id FROM c ORDER BY c.a, c.b DESC", "[\"5\",\"4\",\"2\",\"3\"]"},
        {"SELECT VALUE SUM(c.a) FROM c WHERE c.a < 5", "[4]"},
        {"SELECT VALUE c.id FROM c WHERE NOT IS_DEFINED(c.z) OFFSET 1 LIMIT 2", "[\"3\",\"4\"]"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(ROWS); i++)
        expect(t, ROWS[i].query, ROWS[i].expected);
    uint64_t lsn = 0;
    test_check(transaction_commit(t->transaction, &lsn, &err), &err);
    transaction_end(TAKE(t->transaction));
    for (size_t i = 0; i < ARRAY_COUNT(ROWS); i++)
        expect(t, ROWS[i].query, ROWS[i].expected);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        PAGE_TEST(a_transaction_finds_its_own_writes),
    };
    return cmocka_run_group_tests_name("queries in a transaction", tests, NULL, NULL);
}
