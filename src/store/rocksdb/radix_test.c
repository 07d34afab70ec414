/* radix_test.c - against a sorted array, and with readers beside the writer. */
#include "store/rocksdb/radix_testing_int.h"

#include "base/random.h"

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>

#include <cmocka.h>

enum { KEY_MAX = 300, READERS = 3 };

/* Many of the same beginnings, many that end where others go on, and every byte. */
static Version random_version(Arena *arena, Random *random, unsigned variety)
{
    size_t len = (size_t)random_below(random, variety < 4 ? 12 : 6);
    if (random_below(random, 50) == 0)
        len = (size_t)random_below(random, KEY_MAX);
    char *key = arena_alloc(arena, len + 1);
    for (size_t i = 0; i < len; i++)
        key[i] = (char)(random_below(random, variety) * (256 / variety));
    return (Version){slice_make(key, len), 1 + random_below(random, 40)};
}

static void it_is_a_sorted_array(void **state)
{
    (void)state;
    static const unsigned varieties[] = {1, 2, 3, 8, 32, 256};
    enum { STEPS = 3000 };
    for (size_t i = 0; i < ARRAY_COUNT(varieties); i++) {
        AUTO(arena_done) Arena arena;
        arena_init(&arena, 64 << 10);
        Random random;
        random_init(&random, 20 + i);
        Radix *radix = radix_new(allocate_askew, &arena);
        Model model = {.list = ARENA_NEW_ARRAY(&arena, Version, STEPS + 1)};
        RadixPath path;
        assert_null(radix_first(radix, &path));
        assert_null(radix_last(radix, &path));
        for (int step = 0; step < STEPS; step++) {
            Version v = random_version(&arena, &random, varieties[i]);
            assert_int_equal(insert(radix, v), model_insert(&model, v));
            assert_true(agrees_around(radix, &arena, &model, v));
            v = random_version(&arena, &random, varieties[i]);
            assert_true(agrees_around(radix, &arena, &model, v));
        }
        assert_true(agrees_from_end_to_end(radix, &model));
    }
}

/* Where each key goes on from the one before, or parts from it a byte earlier: as many nodes on the
 * way to a key as it has bytes, more than a path knows. */
static void deep_trees_are_sorted_too(void **state)
{
    (void)state;
    enum { KEYS = 600 };
    for (int kind = 0; kind < 6; kind++) {
        AUTO(arena_done) Arena arena;
        arena_init(&arena, 64 << 10);
        Radix *radix = radix_new(allocate_askew, &arena);
        Model model = {.list = ARENA_NEW_ARRAY(&arena, Version, KEYS + 1)};
        AUTO(arena_done) Arena scratch;
        arena_init(&scratch, 4096);
        for (size_t i = 0; i < KEYS; i++) {
            size_t len = kind < 3 ? i : KEYS - i;
            char *key = arena_alloc(&arena, len + 1);
            memset(key, kind % 3 == 2 ? 0xFF : 0, len);
            if (kind % 3 == 1 && len > 0)
                key[len - 1] = 'b'; /* they part instead of going on */
            Version v = {slice_make(key, len), i + 1};
            assert_int_equal(insert(radix, v), model_insert(&model, v));
        }
        for (size_t i = 0; i < KEYS; i += 7) {
            arena_reset(&scratch);
            assert_true(agrees_around(radix, &scratch, &model, model.list[i]));
            Version v = {slice_first(model.list[i].key, i / 2), 5};
            assert_true(agrees_around(radix, &scratch, &model, v));
        }
        assert_true(agrees_from_end_to_end(radix, &model));
    }
}

/* In order, in reverse and at random; between two neighbours, too. */
static void many_versions_of_a_key_are_sorted(void **state)
{
    (void)state;
    enum { VERSIONS = 2000 };
    for (int kind = 0; kind < 3; kind++) {
        AUTO(arena_done) Arena arena;
        arena_init(&arena, 64 << 10);
        Random random;
        random_init(&random, 5);
        Radix *radix = radix_new(allocate_askew, &arena);
        Model model = {.list = ARENA_NEW_ARRAY(&arena, Version, VERSIONS + 3)};
        static const char *const neighbours[] = {"", "ke", "keys"};
        for (size_t i = (size_t)kind; i < ARRAY_COUNT(neighbours); i++) {
            Version v = {slice_from_cstr(neighbours[i]), 3};
            assert_int_equal(insert(radix, v), model_insert(&model, v));
        }
        for (uint64_t i = 1; i <= VERSIONS; i++) {
            uint64_t tag = kind == 0   ? i
                           : kind == 1 ? VERSIONS - i
                                       : random_below(&random, VERSIONS);
            Version v = {SLICE("key"), 2 * tag};
            assert_int_equal(insert(radix, v), model_insert(&model, v));
            assert_true(agrees_around(radix, &arena, &model, v));
            v.tag = random_below(&random, 2 * VERSIONS + 2);
            assert_true(agrees_around(radix, &arena, &model, v));
        }
        assert_true(agrees_around(radix, &arena, &model, (Version){SLICE("key"), UINT64_MAX}));
        assert_true(agrees_around(radix, &arena, &model, (Version){SLICE("key"), 0}));
        assert_true(agrees_from_end_to_end(radix, &model));
    }
}

/* ---- readers beside the writer ---- */

enum { SHARED_KEYS = 20000 };

typedef struct Shared {
    Radix *radix;
    Version *all;           /* in the order in which they are inserted, with tags from 1 on */
    Version *sorted;        /* the same */
    size_t *ranks;          /* where they are there, by their tags */
    _Atomic size_t written; /* of 'all' */
    _Atomic size_t failures;
} Shared;

/* A step from one to another is in the right direction and leaves out only what was not there when
 * the reader began. */
static bool is_step(const Shared *shared, size_t written, size_t from, size_t to, bool forward)
{
    if (forward ? to <= from : to >= from && to != SIZE_MAX)
        return false;
    for (size_t at = forward ? from + 1 : from - 1; at != to; at += forward ? 1 : SIZE_MAX) {
        if (shared->sorted[at].tag <= written)
            return false;
    }
    return true;
}

static bool check_once(const Shared *shared, Arena *arena, Random *random)
{
    size_t written = atomic_load_explicit(&shared->written, memory_order_acquire);
    if (written == 0)
        return true;
    Version v = shared->all[random_below(random, written)];
    Slice target = target_of(arena, v);
    RadixPath path;
    const RadixEntry *entry = radix_at_or_after(shared->radix, target.ptr, target.len, &path);
    if (entry == NULL || !radix_is(entry, target.ptr, target.len))
        return false;
    bool forward = random_below(random, 2) == 0;
    size_t last = shared->ranks[v.tag];
    for (int i = 0; i < 50; i++) {
        entry = forward ? radix_next(shared->radix, entry, &path)
                        : radix_prev(shared->radix, entry, &path);
        size_t end = forward ? SHARED_KEYS : SIZE_MAX;
        size_t next = entry != NULL ? shared->ranks[version_of(entry).tag] : end;
        if (!is_step(shared, written, last, next, forward))
            return false;
        if (entry == NULL)
            return true;
        last = next;
    }
    return true;
}

static void *read_beside(void *ctx)
{
    Shared *shared = ctx;
    Random random;
    random_init(&random, (uint64_t)(uintptr_t)&random);
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 4096);
    while (atomic_load(&shared->written) < SHARED_KEYS) {
        arena_reset(&arena);
        if (!check_once(shared, &arena, &random))
            atomic_fetch_add(&shared->failures, 1);
    }
    return NULL;
}

static void readers_find_what_was_there_when_they_began(void **state)
{
    (void)state;
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 64 << 10);
    AUTO(arena_done) Arena keys;
    arena_init(&keys, 64 << 10);
    Random random;
    random_init(&random, 7);
    Shared shared = {.radix = radix_new(allocate_askew, &arena),
                     .all = ARENA_NEW_ARRAY(&keys, Version, SHARED_KEYS),
                     .sorted = ARENA_NEW_ARRAY(&keys, Version, SHARED_KEYS),
                     .ranks = ARENA_NEW_ARRAY(&keys, size_t, SHARED_KEYS + 1)};
    for (size_t i = 0; i < SHARED_KEYS; i++) {
        shared.all[i] = random_version(&keys, &random, i % 2 == 0 ? 256 : 16);
        shared.all[i].tag = i + 1; /* as in RocksDB, each is newer than all before */
    }
    memcpy(shared.sorted, shared.all, sizeof(Version) * SHARED_KEYS);
    qsort(shared.sorted, SHARED_KEYS, sizeof(Version), compare_versions);
    for (size_t i = 0; i < SHARED_KEYS; i++)
        shared.ranks[shared.sorted[i].tag] = i;
    pthread_t readers[READERS];
    for (size_t i = 0; i < READERS; i++)
        assert_int_equal(pthread_create(&readers[i], NULL, read_beside, &shared), 0);
    for (size_t i = 0; i < SHARED_KEYS; i++) {
        assert_true(insert(shared.radix, shared.all[i]));
        atomic_store_explicit(&shared.written, i + 1, memory_order_release);
        if (i % 64 == 0)
            (void)sched_yield(); /* or it is done before a reader has begun */
    }
    for (size_t i = 0; i < READERS; i++)
        assert_int_equal(pthread_join(readers[i], NULL), 0);
    assert_int_equal(shared.failures, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_is_a_sorted_array),
        cmocka_unit_test(deep_trees_are_sorted_too),
        cmocka_unit_test(many_versions_of_a_key_are_sorted),
        cmocka_unit_test(readers_find_what_was_there_when_they_began),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
