/* spill_test.c - sorted runs against a sorted array: order, both parts, long values, no runs. */
#include "store/rocksdb/rocksdb_testing_int.h"

#include "store/rocksdb/spill_int.h"

#include <stdio.h>
#include <stdlib.h>

enum { RUNS = 20, RECORDS = 300, KEYS = 400 };

typedef struct Expected {
    char key[24];
    size_t run;
    size_t value_len;
    bool is_deleted;
} Expected;

static int compare_expected(const void *a, const void *b)
{
    const Expected *x = a;
    const Expected *y = b;
    int order = strcmp(x->key, y->key);
    return order != 0 ? order : x->run < y->run ? -1 : x->run > y->run;
}

static Spill *open_spill(const TestFolder *folder)
{
    char path[512];
    (void)snprintf(path, sizeof(path), "%s/spill", folder->path);
    Spill *spill = NULL;
    assert_ok(spill_open(path, &spill, err));
    return spill;
}

/* Keys that rise within the run; a few values are longer than what is read at a time. */
static size_t add_run(Spill *spill, Random *random, size_t run, Expected *expected)
{
    static char value[400000];
    memset(value, (int)('a' + run), sizeof(value));
    size_t count = 0;
    for (unsigned k = 0; k < KEYS && count < RECORDS; k++) {
        if (random_below(random, 3) != 0)
            continue;
        Expected *e = &expected[count];
        (void)snprintf(e->key, sizeof(e->key), "space..k%s%u", k % 7 == 0 ? "same" : "s", k);
        e->run = run;
        e->is_deleted = random_below(random, 5) == 0;
        e->value_len = random_below(random, 100) == 0 ? sizeof(value) : random_below(random, 30);
        count++;
    }
    qsort(expected, count, sizeof(*expected), compare_expected);
    spill_begin_run(spill, slice_from_cstr(expected[count / 2].key));
    for (size_t i = 0; i < count; i++)
        spill_add(spill,
                  &(SpillRecord){slice_from_cstr(expected[i].key),
                                 slice_make(value, expected[i].value_len), expected[i].is_deleted});
    assert_ok(spill_end_run(spill, err));
    return count;
}

static size_t expect_part(const Spill *spill, unsigned part, const Expected *expected)
{
    SpillWalk *walk = NULL;
    assert_ok(spill_walk_open(spill, part, &walk, err));
    size_t count = 0;
    for (;; count++) {
        SpillRecord record;
        bool found = false;
        assert_ok(spill_walk_next(walk, &record, &found, err));
        if (!found)
            break;
        const Expected *e = &expected[count];
        assert_int_equal(record.key.len, strlen(e->key));
        assert_memory_equal(record.key.ptr, e->key, record.key.len);
        assert_int_equal(record.value.len, e->value_len);
        assert_true(record.value.len == 0 || record.value.ptr[0] == (char)('a' + e->run));
        assert_true(record.is_deleted == e->is_deleted);
    }
    spill_walk_close(walk);
    return count;
}

static void all_runs_are_walked_in_the_order_of_keys_and_runs(void **state)
{
    (void)state;
    AUTO(test_folder_done) TestFolder folder;
    test_folder_init(&folder);
    Random random;
    random_init(&random, 7);
    Spill *spill = open_spill(&folder);
    Expected *expected = calloc((size_t)RUNS * RECORDS, sizeof(*expected));
    assert_non_null(expected);
    size_t count = 0;
    for (size_t run = 0; run < RUNS; run++)
        count += add_run(spill, &random, run, expected + count);
    qsort(expected, count, sizeof(*expected), compare_expected);
    size_t first = expect_part(spill, 0, expected);
    assert_true(first > 0 && first < count);
    assert_int_equal(first + expect_part(spill, 1, expected + first), count);
    free(expected);
    spill_close(spill);
}

static void without_runs_there_is_nothing(void **state)
{
    (void)state;
    AUTO(test_folder_done) TestFolder folder;
    test_folder_init(&folder);
    Spill *spill = open_spill(&folder);
    for (unsigned part = 0; part < SPILL_PARTS; part++)
        assert_int_equal(expect_part(spill, part, NULL), 0);
    spill_close(spill);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_runs_are_walked_in_the_order_of_keys_and_runs),
        cmocka_unit_test(without_runs_there_is_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
