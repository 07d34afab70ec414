/* tree_test.c - the map whose copies are references: content, order, balance, independence. */
#include "store/store_testing_int.h"

#include "base/random.h"
#include "base/test_seed.h"
#include "store/tree_int.h"

enum { KEYS = 400 };

static Slice key_of(uint32_t number, char buffer[16])
{
    return slice_make(buffer, (size_t)snprintf(buffer, 16, "%05u", number));
}

static void put(Tree *tree, uint32_t number, const char *value)
{
    char buffer[16];
    tree_put(tree, key_of(number, buffer), slice_from_cstr(value));
}

static void drop(Tree *tree, uint32_t number)
{
    char buffer[16];
    tree_remove(tree, key_of(number, buffer));
}

static void expect(const Tree *tree, uint32_t number, const char *expected)
{
    char buffer[16];
    const TreeEntry *entry = tree_find(tree, key_of(number, buffer));
    assert_int_equal(entry != NULL, expected != NULL);
    if (entry != NULL && expected != NULL)
        assert_slice(tree_entry_value(entry), slice_from_cstr(expected));
}

static void an_empty_tree_finds_nothing(void **state)
{
    (void)state;
    Tree tree = {0};
    assert_null(tree_find(&tree, SLICE("a")));
    assert_null(tree_at_or_after(&tree, SLICE_EMPTY));
    assert_null(tree_after(&tree, SLICE_EMPTY));
    assert_null(tree_before(&tree, SLICE("z")));
    tree_remove(&tree, SLICE("a"));
    tree_done(&tree);
}

static void neighbours_are_found_from_keys_and_from_gaps(void **state)
{
    (void)state;
    AUTO(tree_done) Tree tree = {0};
    for (uint32_t i = 10; i <= 30; i += 10)
        put(&tree, i, "v");
    static const struct {
        uint32_t from;
        int at_or_after, after, before; /* -1: none */
    } rows[] = {{5, 10, 10, -1},  {10, 10, 20, -1}, {15, 20, 20, 10},
                {20, 20, 30, 10}, {30, 30, -1, 20}, {31, -1, -1, 30}};
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        char from[16], buffer[16];
        Slice key = key_of(rows[i].from, from);
        const TreeEntry *found[] = {tree_at_or_after(&tree, key), tree_after(&tree, key),
                                    tree_before(&tree, key)};
        const int expected[] = {rows[i].at_or_after, rows[i].after, rows[i].before};
        for (size_t j = 0; j < ARRAY_COUNT(found); j++) {
            assert_int_equal(found[j] == NULL, expected[j] < 0);
            if (found[j] != NULL)
                assert_slice(tree_entry_key(found[j]), key_of((uint32_t)expected[j], buffer));
        }
    }
}

static void count_and_bytes_follow_every_change(void **state)
{
    (void)state;
    AUTO(tree_done) Tree tree = {0};
    put(&tree, 1, "abc");
    put(&tree, 2, "");
    assert_int_equal(tree.count, 2);
    assert_int_equal(tree.bytes, 5 + 3 + 5);
    put(&tree, 1, "a");
    assert_int_equal(tree.count, 2);
    assert_int_equal(tree.bytes, 5 + 1 + 5);
    tree_mark_deleted(&tree, SLICE("00001"));
    assert_int_equal(tree.bytes, 5 + 5);
    drop(&tree, 1);
    drop(&tree, 7);
    assert_int_equal(tree.count, 1);
    assert_int_equal(tree.bytes, 5);
}

static void a_copy_keeps_what_it_was_when_the_original_changes(void **state)
{
    (void)state;
    AUTO(tree_done) Tree tree = {0};
    for (uint32_t i = 0; i < KEYS; i++)
        put(&tree, i, "old");
    AUTO(tree_done) Tree copy = tree_copy(&tree);
    for (uint32_t i = 0; i < KEYS; i++) {
        if (i % 3 == 0)
            drop(&tree, i);
        else
            put(&tree, i, "new");
        put(&tree, KEYS + i, "more");
    }
    assert_int_equal(copy.count, KEYS);
    for (uint32_t i = 0; i < KEYS; i++) {
        expect(&copy, i, "old");
        expect(&tree, i, i % 3 == 0 ? NULL : "new");
        expect(&copy, KEYS + i, NULL);
    }
}

static void an_entry_outlives_its_tree_while_it_is_referred_to(void **state)
{
    (void)state;
    Tree tree = {0};
    put(&tree, 1, "kept");
    char buffer[16];
    TreeEntry *entry = tree_entry_ref(tree_find(&tree, key_of(1, buffer)));
    put(&tree, 1, "replaced");
    tree_done(&tree);
    assert_slice(tree_entry_value(entry), SLICE("kept"));
    tree_entry_unref(entry);
}

typedef struct Walk {
    uint32_t next;
    uint32_t step;
} Walk;

static void what_is_replaced_is_handed_out(void **state)
{
    (void)state;
    AUTO(tree_done) Tree tree = {0};
    TreeEntry *before = NULL;
    const TreeEntry *first = tree_replace(&tree, SLICE("k"), &SLICE("one"), &before);
    assert_null(before);
    assert_ptr_equal(tree_find(&tree, SLICE("k")), first);
    AUTO(tree_done) Tree copy = tree_copy(&tree);
    const TreeEntry *second = tree_replace(&tree, SLICE("k"), NULL, &before);
    assert_ptr_equal(before, first);
    assert_true(second->deleted);
    assert_int_equal(tree.count, 1);
    assert_int_equal(tree.bytes, 1);
    tree_put_entry(&tree, before);
    tree_entry_unref(before);
    assert_ptr_equal(tree_find(&tree, SLICE("k")), first);
    assert_ptr_equal(tree_find(&copy, SLICE("k")), first);
    assert_int_equal(tree.bytes, 4);
    tree_remove(&tree, tree_entry_key(first)); /* as a rollback does */
    assert_int_equal(tree.count, 0);
}

static void expect_in_order(void *ctx, TreeEntry *entry)
{
    Walk *walk = ctx;
    char buffer[16];
    assert_slice(tree_entry_key(entry), key_of(walk->next, buffer));
    walk->next += walk->step;
}

static void ascending_and_descending_inserts_are_visited_in_order(void **state)
{
    (void)state;
    for (int down = 0; down <= 1; down++) {
        AUTO(tree_done) Tree tree = {0};
        for (uint32_t i = 0; i < KEYS; i++)
            put(&tree, down ? KEYS - 1 - i : i, "v");
        Walk walk = {0, 1};
        tree_each(&tree, expect_in_order, &walk);
        assert_int_equal(walk.next, KEYS);
        for (uint32_t i = 1; i < KEYS; i += 2)
            drop(&tree, i);
        walk = (Walk){0, 2};
        tree_each(&tree, expect_in_order, &walk);
        assert_int_equal(walk.next, KEYS);
    }
}

/* Random puts, removals and copies against an array of what each copy must hold. */
static void random_changes_of_many_copies_stay_apart(void **state)
{
    (void)state;
    enum { COPIES = 5, SPAN = 64, STEPS = 20000 };
    Random random;
    random_init(&random, test_seed());

    Tree trees[COPIES] = {0};
    uint32_t models[COPIES][SPAN] = {0}; /* 0: absent */
    for (uint32_t step = 1; step <= STEPS; step++) {
        size_t which = random_below(&random, COPIES);
        uint32_t number = (uint32_t)random_below(&random, SPAN);
        char value[16];
        switch (random_below(&random, 8)) {
        case 0: {
            size_t from = random_below(&random, COPIES);
            Tree copy = tree_copy(&trees[from]);
            tree_done(&trees[which]);
            trees[which] = copy;
            memmove(models[which], models[from], sizeof(models[which]));
            break;
        }
        case 1:
        case 2:
        case 3:
            drop(&trees[which], number);
            models[which][number] = 0;
            break;
        default:
            (void)snprintf(value, sizeof(value), "%u", step);
            put(&trees[which], number, value);
            models[which][number] = step;
            break;
        }
        which = random_below(&random, COPIES);
        number = (uint32_t)random_below(&random, SPAN);
        (void)snprintf(value, sizeof(value), "%u", models[which][number]);
        expect(&trees[which], number, models[which][number] == 0 ? NULL : value);
    }
    for (size_t i = 0; i < COPIES; i++)
        tree_done(&trees[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_tree_finds_nothing),
        cmocka_unit_test(neighbours_are_found_from_keys_and_from_gaps),
        cmocka_unit_test(count_and_bytes_follow_every_change),
        cmocka_unit_test(a_copy_keeps_what_it_was_when_the_original_changes),
        cmocka_unit_test(an_entry_outlives_its_tree_while_it_is_referred_to),
        cmocka_unit_test(what_is_replaced_is_handed_out),
        cmocka_unit_test(ascending_and_descending_inserts_are_visited_in_order),
        cmocka_unit_test(random_changes_of_many_copies_stay_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
