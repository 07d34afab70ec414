/* trie_test.c - the trie against a plain array, with copies that must not change: I8. */
#include "base/mem.h"
#include "base/random.h"
#include "base/testing.h"
#include "base/trie.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

typedef struct Value {
    _Atomic uint32_t refs;
    _Atomic int *alive;
    uint64_t key;
    uint64_t number;
} Value;

static Value *value_new(uint64_t key, uint64_t number, _Atomic int *alive)
{
    Value *value = MEM_NEW(Value);
    atomic_init(&value->refs, 1);
    value->alive = alive;
    value->key = key;
    value->number = number;
    atomic_fetch_add(alive, 1);
    return value;
}

static void value_unref(void *p)
{
    Value *value = p;
    if (atomic_fetch_sub(&value->refs, 1) == 1) {
        atomic_fetch_sub(value->alive, 1);
        mem_free(value);
    }
}

/* Keys that share prefixes of every length, and the ends of the range. */
static uint64_t key_make(Random *random)
{
    uint64_t base = random_below(random, 4) == 0 ? UINT64_MAX : 0;
    return base ^ (random_below(random, 40) << random_below(random, 64));
}

typedef struct Model {
    uint64_t keys[512];
    uint64_t numbers[512];
    size_t count;
} Model;

static size_t model_find(const Model *model, uint64_t key)
{
    size_t i = 0;
    while (i < model->count && model->keys[i] < key)
        i++;
    return i;
}

static void model_put(Model *model, uint64_t key, uint64_t number)
{
    size_t i = model_find(model, key);
    if (i == model->count || model->keys[i] != key) {
        memmove(&model->keys[i + 1], &model->keys[i], sizeof(uint64_t) * (model->count - i));
        memmove(&model->numbers[i + 1], &model->numbers[i], sizeof(uint64_t) * (model->count - i));
        model->count++;
    }
    model->keys[i] = key;
    model->numbers[i] = number;
}

static bool model_remove(Model *model, uint64_t key)
{
    size_t i = model_find(model, key);
    if (i == model->count || model->keys[i] != key)
        return false;
    model->count--;
    memmove(&model->keys[i], &model->keys[i + 1], sizeof(uint64_t) * (model->count - i));
    memmove(&model->numbers[i], &model->numbers[i + 1], sizeof(uint64_t) * (model->count - i));
    return true;
}

static void assert_same(const Trie *trie, const Model *model)
{
    assert_int_equal(trie->count, model->count);
    uint64_t key = 0;
    for (size_t i = 0; i < model->count; i++) {
        const Value *value = trie_next(trie, &key);
        assert_non_null(value);
        assert_true(key == model->keys[i] && value->key == key);
        assert_true(value->number == model->numbers[i]);
        assert_ptr_equal(trie_get(trie, key), value);
        if (key == UINT64_MAX)
            return;
        key++;
    }
    assert_null(trie_next(trie, &key));
}

static void random_changes_match_a_model_and_leave_copies_alone(void **state)
{
    (void)state;
    _Atomic int alive = 0;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        Random random;
        random_init(&random, seed);
        Trie trie;
        Trie copies[8];
        Model model = {.count = 0};
        Model models[8];
        size_t copy_count = 0;
        trie_init(&trie, value_unref);
        for (uint64_t step = 0; step < 2000; step++) {
            uint64_t key = key_make(&random);
            if (random_below(&random, 3) > 0 && model.count < 500) {
                trie_put(&trie, key, value_new(key, step, &alive));
                model_put(&model, key, step);
            } else {
                assert_int_equal(trie_remove(&trie, key), model_remove(&model, key));
            }
            if (step % 250 == 0) {
                copies[copy_count] = trie_copy(&trie);
                models[copy_count++] = model;
            }
        }
        assert_same(&trie, &model);
        for (size_t i = 0; i < copy_count; i++) {
            assert_same(&copies[i], &models[i]);
            trie_done(&copies[i]);
        }
        trie_done(&trie);
        assert_int_equal(atomic_load(&alive), 0);
    }
}

static void an_empty_trie_answers_nothing(void **state)
{
    (void)state;
    Trie trie;
    trie_init(&trie, value_unref);
    uint64_t key = 0;
    assert_null(trie_get(&trie, 0));
    assert_null(trie_next(&trie, &key));
    assert_false(trie_remove(&trie, 7));
    trie_done(&trie);
}

static void *read_copy(void *arg)
{
    Trie *copy = arg;
    for (int round = 0; round < 200; round++) {
        uint64_t key = 0;
        size_t seen = 0;
        for (const Value *v; (v = trie_next(copy, &key)) != NULL; key++) {
            assert_true(v->key == key);
            seen++;
        }
        assert_int_equal(seen, copy->count);
    }
    trie_done(copy);
    return NULL;
}

static void readers_walk_copies_while_the_writer_goes_on(void **state)
{
    (void)state;
    _Atomic int alive = 0;
    Trie trie;
    Trie copies[4];
    pthread_t threads[4];
    trie_init(&trie, value_unref);
    for (uint64_t i = 0; i < 4; i++) {
        for (uint64_t k = 0; k < 100; k++)
            trie_put(&trie, k * 977 + i, value_new(k * 977 + i, k, &alive));
        copies[i] = trie_copy(&trie);
        assert_int_equal(pthread_create(&threads[i], NULL, read_copy, &copies[i]), 0);
    }
    for (uint64_t k = 0; k < 100; k++)
        assert_true(trie_remove(&trie, k * 977));
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    trie_done(&trie);
    assert_int_equal(atomic_load(&alive), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_trie_answers_nothing),
        cmocka_unit_test(random_changes_match_a_model_and_leave_copies_alone),
        cmocka_unit_test(readers_walk_copies_while_the_writer_goes_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
