/* radix_test.c - against a sorted array, and with readers beside the writer. */
#include "store/rocksdb/radix_int.h"

#include "base/arena.h"
#include "base/mem.h"
#include "base/random.h"
#include "base/slice.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>

#include <cmocka.h>

enum { TAG_BYTES = 8, KEY_MAX = 300, READERS = 3 };

typedef struct Version {
    Slice key;
    uint64_t tag;
} Version;

static void *allocate(void *ctx, size_t bytes)
{
    char *room = arena_alloc(ctx, bytes + 8);
    return room + bytes % 8; /* not aligned */
}

static Slice target_of(Arena *arena, Version v)
{
    char *target = arena_alloc(arena, v.key.len + TAG_BYTES);
    if (v.key.len > 0)
        memcpy(target, v.key.ptr, v.key.len);
    memcpy(target + v.key.len, &v.tag, TAG_BYTES);
    return slice_make(target, v.key.len + TAG_BYTES);
}

static bool insert(Radix *radix, Version v)
{
    size_t len = v.key.len + TAG_BYTES;
    RadixEntry *entry = radix_entry_new(radix, len + 2);
    char *data = radix_data(entry);
    size_t at = 0;
    if (len >= 0x80)
        data[at++] = (char)(0x80 | (len & 0x7F));
    data[at++] = (char)(len >= 0x80 ? len >> 7 : len);
    if (v.key.len > 0)
        memcpy(data + at, v.key.ptr, v.key.len);
    memcpy(data + at + v.key.len, &v.tag, TAG_BYTES);
    return radix_insert(radix, entry);
}

static Version version_of(const RadixEntry *entry)
{
    const char *data = radix_read(entry);
    size_t len = (uint8_t)*data++;
    if (len >= 0x80)
        len = (len & 0x7F) | (size_t)(uint8_t)*data++ << 7;
    Version v = {.key = slice_make(data, len - TAG_BYTES)};
    memcpy(&v.tag, data + v.key.len, TAG_BYTES);
    return v;
}

static int compare(const void *a, const void *b)
{
    const Version *left = a;
    const Version *right = b;
    int order = slice_compare(left->key, right->key);
    if (order != 0)
        return order;
    return left->tag > right->tag ? -1 : left->tag < right->tag;
}

static void expect(const RadixEntry *found, const Version *wanted)
{
    assert_int_equal(found != NULL, wanted != NULL);
    if (found == NULL)
        return;
    Version v = version_of(found);
    assert_int_equal(compare(&v, wanted), 0);
}

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

typedef struct Model {
    Version *list; /* sorted */
    size_t count;
} Model;

static size_t model_find(const Model *model, const Version *v, bool *found)
{
    size_t low = 0;
    size_t high = model->count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (compare(&model->list[middle], v) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    *found = low < model->count && compare(&model->list[low], v) == 0;
    return low;
}

static bool model_insert(Model *model, Version v)
{
    bool found = false;
    size_t at = model_find(model, &v, &found);
    if (found)
        return false;
    memmove(&model->list[at + 1], &model->list[at], sizeof(v) * (model->count - at));
    model->list[at] = v;
    model->count++;
    return true;
}

static const Version *model_at(const Model *model, size_t at)
{
    return at < model->count ? &model->list[at] : NULL; /* also for -1 */
}

static void expect_around(const Radix *radix, Arena *arena, const Model *model, Version v)
{
    bool found = false;
    size_t at = model_find(model, &v, &found);
    Slice target = target_of(arena, v);
    const RadixEntry *after = radix_at_or_after(radix, target.ptr, target.len);
    expect(after, model_at(model, at));
    expect(radix_at_or_before(radix, target.ptr, target.len), model_at(model, found ? at : at - 1));
    if (after == NULL)
        return;
    assert_int_equal(radix_is(after, target.ptr, target.len), found);
    expect(radix_next(radix, after), model_at(model, at + 1));
    expect(radix_prev(radix, after), model_at(model, at - 1));
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
        Radix *radix = radix_new(allocate, &arena);
        Model model = {.list = ARENA_NEW_ARRAY(&arena, Version, STEPS + 1)};
        assert_null(radix_first(radix));
        assert_null(radix_last(radix));
        for (int step = 0; step < STEPS; step++) {
            Version v = random_version(&arena, &random, varieties[i]);
            assert_int_equal(insert(radix, v), model_insert(&model, v));
            expect_around(radix, &arena, &model, v);
            expect_around(radix, &arena, &model, random_version(&arena, &random, varieties[i]));
        }
        expect(radix_first(radix), model_at(&model, 0));
        expect(radix_last(radix), model_at(&model, model.count - 1));
        size_t at = 0;
        for (const RadixEntry *e = radix_first(radix); e != NULL; e = radix_next(radix, e))
            expect(e, model_at(&model, at++));
        assert_int_equal(at, model.count);
        for (const RadixEntry *e = radix_last(radix); e != NULL; e = radix_prev(radix, e))
            expect(e, model_at(&model, --at));
        assert_int_equal(at, 0);
    }
}

/* ---- readers beside the writer ---- */

enum { SHARED_KEYS = 20000 };

typedef struct Shared {
    Radix *radix;
    Version *all;           /* in the order in which they are inserted */
    _Atomic size_t written; /* of those */
    _Atomic size_t failures;
} Shared;

/* What was there when the reader began is found, and walks go in order. */
static bool check_once(const Shared *shared, Arena *arena, Random *random)
{
    size_t written = atomic_load_explicit(&shared->written, memory_order_acquire);
    if (written == 0)
        return true;
    Version v = shared->all[random_below(random, written)];
    Slice target = target_of(arena, v);
    const RadixEntry *entry = radix_at_or_after(shared->radix, target.ptr, target.len);
    if (entry == NULL || !radix_is(entry, target.ptr, target.len))
        return false;
    bool forward = random_below(random, 2) == 0;
    Version last = v;
    for (int i = 0; i < 50; i++) {
        entry = forward ? radix_next(shared->radix, entry) : radix_prev(shared->radix, entry);
        if (entry == NULL)
            return true;
        Version next = version_of(entry);
        int order = compare(&last, &next);
        if (forward ? order >= 0 : order <= 0)
            return false;
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
    Shared shared = {.radix = radix_new(allocate, &arena),
                     .all = ARENA_NEW_ARRAY(&keys, Version, SHARED_KEYS)};
    pthread_t readers[READERS];
    for (size_t i = 0; i < READERS; i++)
        assert_int_equal(pthread_create(&readers[i], NULL, read_beside, &shared), 0);
    for (size_t i = 0; i < SHARED_KEYS; i++) {
        shared.all[i] = random_version(&keys, &random, i % 2 == 0 ? 256 : 16);
        shared.all[i].tag = i + 1; /* as in RocksDB, each is newer than all before */
        assert_true(insert(shared.radix, shared.all[i]));
        atomic_store_explicit(&shared.written, i + 1, memory_order_release);
    }
    for (size_t i = 0; i < READERS; i++)
        assert_int_equal(pthread_join(readers[i], NULL), 0);
    assert_int_equal(shared.failures, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_is_a_sorted_array),
        cmocka_unit_test(readers_find_what_was_there_when_they_began),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
