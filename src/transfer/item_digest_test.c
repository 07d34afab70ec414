/* item_digest_test.c - equal items have equal digests, and others have not. */
#include "transfer/item_digest.h"

#include "json/json_testing.h"

static ItemHash hash_of(const char *row)
{
    return item_hash(row_json(&test_arena, row));
}

static bool same(ItemHash a, ItemHash b)
{
    return a.low == b.low && a.high == b.high;
}

static void equal_items_have_one_hash(void **state)
{
    (void)state;
    static const struct {
        const char *a, *b;
    } rows[] = {
        {"{'id':'1','a':1}", "{'a':1,'id':'1'}"},
        {"{'id':'1'}", "{'id':'1','_rid':'x','_self':'y','_etag':'z','_attachments':'','_ts':5}"},
        {"{'a':{'b':1,'c':[1,2]}}", "{'a':{'c':[1,2],'b':1.0}}"},
        {"{'a':0}", "{'a':-0.0}"},
        {"{'a':'\\u0041'}", "{'a':'A'}"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        if (!same(hash_of(rows[i].a), hash_of(rows[i].b)))
            fail_msg("row %zu: %s and %s differ", i, rows[i].a, rows[i].b);
    }
}

static void different_items_have_different_hashes(void **state)
{
    (void)state;
    static const char *const rows[] = {
        "{}",
        "{'a':null}",
        "{'a':false}",
        "{'a':true}",
        "{'a':0}",
        "{'a':1}",
        "{'a':''}",
        "{'a':'0'}",
        "{'a':[]}",
        "{'a':{}}",
        "{'a':[null]}",
        "{'a':[1,2]}",
        "{'a':[2,1]}",
        "{'a':[[1],2]}",
        "{'a':[1,[2]]}",
        "{'b':0}",
        "{'a':{'b':0}}",
        "{'a':{'_ts':0}}",
        "{'_lsn':1}",
        "{'a':1,'b':2}",
        "{'a':2,'b':1}",
        "{'a':'b','c':'d'}",
        "{'a':'d','c':'b'}",
        "{'a':{},'b':[]}",
        "{'a':1e300}",
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        for (size_t k = 0; k < i; k++) {
            if (same(hash_of(rows[i]), hash_of(rows[k])))
                fail_msg("%s and %s have one hash", rows[i], rows[k]);
        }
    }
}

static void the_order_of_items_does_not_matter(void **state)
{
    (void)state;
    ItemDigest forward = {0};
    ItemDigest backward = {0};
    for (int i = 0; i < 100; i++) {
        Arena *arena = &test_arena;
        Slice up = arena_format(arena, "{\"id\":\"%d\"}", i);
        Slice down = arena_format(arena, "{\"id\":\"%d\"}", 99 - i);
        item_digest_add(&forward, item_hash(text_json(arena, up)));
        item_digest_add(&backward, item_hash(text_json(arena, down)));
    }
    assert_true(same(forward.sum, backward.sum));
    assert_int_equal(forward.count, 100);
    char text[ITEM_DIGEST_LEN];
    item_digest_print(&forward, text);
    ItemHash again;
    assert_true(item_digest_parse(slice_make(text, sizeof(text)), &again));
    assert_true(same(again, forward.sum));
    assert_false(item_digest_parse(slice_make(text, sizeof(text) - 1), &again));
    text[3] = 'x';
    assert_false(item_digest_parse(slice_make(text, sizeof(text)), &again));
}

static void a_sum_carries_into_its_upper_half(void **state)
{
    (void)state;
    ItemDigest digest = {.sum = {.low = UINT64_MAX}};
    item_digest_add(&digest, (ItemHash){.low = 1});
    assert_true(same(digest.sum, (ItemHash){.high = 1}));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, test_arena_setup, test_arena_teardown)
        TEST(equal_items_have_one_hash),
        TEST(different_items_have_different_hashes),
        TEST(the_order_of_items_does_not_matter),
        TEST(a_sum_carries_into_its_upper_half),
#undef TEST
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
