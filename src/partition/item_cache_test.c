/* item_cache_test.c - what is in the cache is the newest, and not more than was asked for. */
#include "partition/item_cache.h"

#include "base/mem.h"
#include "base/random.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
/* cmocka needs the above. */
#include <cmocka.h>

#define MB ((size_t)1 << 20)

static const HashKey KEY = {1, 2};

static bool has(ItemCache *cache, StoreSpace space, Slice key, Slice expected)
{
    StoreValue value = {0};
    uint32_t ticket = 0;
    uint64_t hash = item_cache_hash(cache, space, key);
    if (!item_cache_get(cache, hash, space, key, &value, &ticket))
        return false;
    assert_true(slice_equal(value.data, expected));
    store_value_release(&value);
    return true;
}

static void put(ItemCache *cache, StoreSpace space, Slice key, Slice value)
{
    StoreValue old = {0};
    uint32_t ticket = 0;
    uint64_t hash = item_cache_hash(cache, space, key);
    assert_false(item_cache_get(cache, hash, space, key, &old, &ticket));
    item_cache_put(cache, hash, space, key, value, ticket);
}

static void what_is_put_is_found_under_its_own_key_and_space(void **state)
{
    (void)state;
    ItemCache *cache = item_cache_open(4 * MB, KEY);
    put(cache, 1, SLICE("a"), SLICE("one"));
    put(cache, 2, SLICE("a"), SLICE("two"));
    put(cache, 1, SLICE("empty"), SLICE_EMPTY);
    assert_true(has(cache, 1, SLICE("a"), SLICE("one")));
    assert_true(has(cache, 2, SLICE("a"), SLICE("two")));
    assert_true(has(cache, 1, SLICE("empty"), SLICE_EMPTY));
    assert_false(has(cache, 3, SLICE("a"), SLICE_EMPTY));
    assert_false(has(cache, 1, SLICE("b"), SLICE_EMPTY));
    item_cache_close(cache);
}

static void forgotten_is_gone_and_only_that(void **state)
{
    (void)state;
    ItemCache *cache = item_cache_open(4 * MB, KEY);
    put(cache, 1, SLICE("a"), SLICE("one"));
    put(cache, 1, SLICE("b"), SLICE("two"));
    item_cache_forget(cache, item_cache_hash(cache, 1, SLICE("a")));
    assert_false(has(cache, 1, SLICE("a"), SLICE_EMPTY));
    assert_true(has(cache, 1, SLICE("b"), SLICE("two")));
    item_cache_close(cache);
}

/* I10 */
static void what_was_read_before_a_change_is_not_put_after_it(void **state)
{
    (void)state;
    ItemCache *cache = item_cache_open(4 * MB, KEY);
    uint64_t hash = item_cache_hash(cache, 1, SLICE("a"));
    StoreValue value = {0};
    uint32_t ticket = 0;
    assert_false(item_cache_get(cache, hash, 1, SLICE("a"), &value, &ticket));
    item_cache_forget(cache, hash);
    item_cache_put(cache, hash, 1, SLICE("a"), SLICE("old"), ticket);
    assert_false(has(cache, 1, SLICE("a"), SLICE_EMPTY));
    item_cache_close(cache);
}

static CachedItem *prepare(ItemCache *cache, Slice key, Slice value)
{
    return item_cache_prepare(cache, item_cache_hash(cache, 1, key), 1, key, value);
}

/* I10 */
static void what_is_renewed_is_there_at_once_and_nothing_older_comes_back(void **state)
{
    (void)state;
    ItemCache *cache = item_cache_open(4 * MB, KEY);
    put(cache, 1, SLICE("a"), SLICE("one"));
    uint64_t hash = item_cache_hash(cache, 1, SLICE("b"));
    StoreValue value = {0};
    uint32_t ticket = 0;
    assert_false(item_cache_get(cache, hash, 1, SLICE("b"), &value, &ticket));
    CachedItem *a = prepare(cache, SLICE("a"), SLICE("two"));
    CachedItem *b = prepare(cache, SLICE("b"), SLICE("three"));
    cached_item_free(prepare(cache, SLICE("c"), SLICE("never was")));
    assert_true(has(cache, 1, SLICE("a"), SLICE("one"))); /* not yet */
    item_cache_renew(cache, a);
    item_cache_renew(cache, b);
    item_cache_put(cache, hash, 1, SLICE("b"), SLICE("old"), ticket);
    assert_true(has(cache, 1, SLICE("a"), SLICE("two")));
    assert_true(has(cache, 1, SLICE("b"), SLICE("three")));
    assert_false(has(cache, 1, SLICE("c"), SLICE_EMPTY));
    item_cache_close(cache);
}

/* Writes of items that are never read. */
static void when_it_is_full_few_come_in_by_being_written(void **state)
{
    (void)state;
    ItemCache *cache = item_cache_open(MB, KEY);
    char body[1024] = {0};
    Slice bytes = slice_make(body, sizeof(body));
    enum { WRITES = 20000 };
    int kept = 0;
    for (int i = 0; i < WRITES; i++) {
        char text[16];
        Slice key = slice_make(text, (size_t)snprintf(text, sizeof(text), "%d", i));
        CachedItem *item = prepare(cache, key, bytes);
        if (item != NULL)
            item_cache_renew(cache, item);
        else
            item_cache_forget(cache, item_cache_hash(cache, 1, key));
        kept += item != NULL;
        assert_int_equal(has(cache, 1, key, bytes), item != NULL);
    }
    assert_in_range(kept, WRITES / 10, WRITES / 5);
    assert_true(item_cache_bytes(cache) <= MB);
    /* What is there stays there, as it is now. */
    put(cache, 1, SLICE("hot"), SLICE("0"));
    for (int i = 1; i < 100; i++) {
        char text[16];
        Slice value = slice_make(text, (size_t)snprintf(text, sizeof(text), "%d", i));
        CachedItem *item = prepare(cache, SLICE("hot"), value);
        assert_non_null(item);
        item_cache_renew(cache, item);
        assert_true(has(cache, 1, SLICE("hot"), value));
    }
    AUTO(mem_free) void *large = mem_alloc(MB / 4);
    assert_null(prepare(cache, SLICE("large"), slice_make(large, MB / 4)));
    item_cache_close(cache);
}

static void a_value_in_hand_outlives_its_entry(void **state)
{
    (void)state;
    ItemCache *cache = item_cache_open(4 * MB, KEY);
    put(cache, 1, SLICE("a"), SLICE("one"));
    StoreValue value = {0};
    uint32_t ticket = 0;
    uint64_t hash = item_cache_hash(cache, 1, SLICE("a"));
    assert_true(item_cache_get(cache, hash, 1, SLICE("a"), &value, &ticket));
    item_cache_forget(cache, hash);
    assert_true(slice_equal(value.data, SLICE("one")));
    store_value_release(&value);
    assert_int_equal(item_cache_bytes(cache), 0);
    item_cache_close(cache);
}

static void it_stays_within_its_bytes_and_keeps_what_is_read(void **state)
{
    (void)state;
    ItemCache *cache = item_cache_open(2 * MB, KEY);
    char body[1024] = {0};
    put(cache, 1, SLICE("hot"), SLICE("read all the time"));
    for (int i = 0; i < 20000; i++) {
        char key[16];
        int len = snprintf(key, sizeof(key), "%d", i);
        put(cache, 1, slice_make(key, (size_t)len), slice_make(body, sizeof(body)));
        assert_true(has(cache, 1, SLICE("hot"), SLICE("read all the time")));
    }
    assert_true(item_cache_bytes(cache) <= 2 * MB);
    assert_true(item_cache_bytes(cache) > MB);
    assert_false(has(cache, 1, SLICE("0"), SLICE_EMPTY));
    item_cache_close(cache);
}

static void a_large_item_does_not_push_out_the_others(void **state)
{
    (void)state;
    ItemCache *cache = item_cache_open(MB, KEY);
    AUTO(mem_free) void *large = mem_alloc(MB / 4);
    put(cache, 1, SLICE("small"), SLICE("1"));
    put(cache, 1, SLICE("large"), slice_make(large, MB / 4));
    assert_false(has(cache, 1, SLICE("large"), SLICE_EMPTY));
    assert_true(has(cache, 1, SLICE("small"), SLICE("1")));
    item_cache_close(cache);
}

static void the_smallest_cache_holds_nothing_but_works(void **state)
{
    (void)state;
    ItemCache *cache = item_cache_open(1, KEY);
    put(cache, 1, SLICE("a"), SLICE("one"));
    item_cache_forget(cache, item_cache_hash(cache, 1, SLICE("a")));
    assert_false(has(cache, 1, SLICE("a"), SLICE_EMPTY));
    item_cache_close(cache);
}

/* A store of numbers that only grow, read through the cache by many while one writes: no reader
 * may see a number that is older than the one published before it asked. */
enum { RACE_KEYS = 8, RACE_WRITES = 20000, RACE_READERS = 3 };
typedef struct Race {
    ItemCache *cache;
    _Atomic uint64_t stored[RACE_KEYS];
    _Atomic uint64_t published[RACE_KEYS];
    _Atomic bool is_over;
    _Atomic uint64_t hits;
} Race;

static uint64_t race_read(Race *race, uint8_t k)
{
    Slice key = slice_make(&k, 1);
    uint64_t hash = item_cache_hash(race->cache, 1, key);
    StoreValue value = {0};
    uint32_t ticket = 0;
    uint64_t number = 0;
    if (item_cache_get(race->cache, hash, 1, key, &value, &ticket)) {
        memcpy(&number, value.data.ptr, sizeof(number));
        store_value_release(&value);
        atomic_fetch_add(&race->hits, 1);
        return number;
    }
    number = atomic_load(&race->stored[k]);
    item_cache_put(race->cache, hash, 1, key, slice_make(&number, sizeof(number)), ticket);
    return number;
}

static void *race_reader(void *ctx)
{
    Race *race = ctx;
    uint64_t stale = 0;
    for (uint8_t k = 0; !atomic_load(&race->is_over); k = (uint8_t)((k + 1) % RACE_KEYS)) {
        uint64_t published = atomic_load(&race->published[k]);
        stale += race_read(race, k) < published;
    }
    return (void *)(uintptr_t)stale;
}

/* I10 */
static void readers_never_see_less_than_what_was_published(void **state)
{
    (void)state;
    Race race = {.cache = item_cache_open(MB, KEY)};
    pthread_t readers[RACE_READERS];
    for (int i = 0; i < RACE_READERS; i++)
        assert_int_equal(pthread_create(&readers[i], NULL, race_reader, &race), 0);
    for (uint64_t n = 1; n <= RACE_WRITES || atomic_load(&race.hits) == 0; n++) {
        uint8_t k = (uint8_t)(n % RACE_KEYS);
        CachedItem *item =
            n % 3 == 0 ? prepare(race.cache, slice_make(&k, 1), slice_make(&n, sizeof(n))) : NULL;
        atomic_store(&race.stored[k], n);
        if (item != NULL)
            item_cache_renew(race.cache, item);
        else
            item_cache_forget(race.cache, item_cache_hash(race.cache, 1, slice_make(&k, 1)));
        atomic_store(&race.published[k], n);
    }
    atomic_store(&race.is_over, true);
    for (int i = 0; i < RACE_READERS; i++) {
        void *stale = NULL;
        (void)pthread_join(readers[i], &stale);
        assert_null(stale);
    }
    item_cache_close(race.cache);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_put_is_found_under_its_own_key_and_space),
        cmocka_unit_test(forgotten_is_gone_and_only_that),
        cmocka_unit_test(what_was_read_before_a_change_is_not_put_after_it),
        cmocka_unit_test(what_is_renewed_is_there_at_once_and_nothing_older_comes_back),
        cmocka_unit_test(when_it_is_full_few_come_in_by_being_written),
        cmocka_unit_test(a_value_in_hand_outlives_its_entry),
        cmocka_unit_test(it_stays_within_its_bytes_and_keeps_what_is_read),
        cmocka_unit_test(a_large_item_does_not_push_out_the_others),
        cmocka_unit_test(the_smallest_cache_holds_nothing_but_works),
        cmocka_unit_test(readers_never_see_less_than_what_was_published),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
