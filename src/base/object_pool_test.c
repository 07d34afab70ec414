/* object_pool_test.c - what is given is taken once, by any thread: I9. Run under the thread
 * sanitizer too. */
#include "base/object_pool.h"

#include "base/testing.h"

#include <pthread.h>

static void what_is_given_can_be_taken(void **state)
{
    (void)state;
    ObjectPool spares = {.slots[0].object = NULL};
    int object = 0;
    assert_null(object_pool_take(&spares));
    assert_true(object_pool_give(&spares, &object));
    assert_ptr_equal(object_pool_take(&spares), &object);
    assert_null(object_pool_take(&spares));
}

static void no_more_are_kept_than_there_is_room_for(void **state)
{
    (void)state;
    ObjectPool spares = {.slots[0].object = NULL};
    int objects[OBJECT_POOL_MAX + 1];
    for (size_t i = 0; i < OBJECT_POOL_MAX; i++)
        assert_true(object_pool_give(&spares, &objects[i]));
    assert_false(object_pool_give(&spares, &objects[OBJECT_POOL_MAX]));
    size_t count = 0;
    while (object_pool_take(&spares) != NULL)
        count++;
    assert_int_equal(count, OBJECT_POOL_MAX);
    assert_true(object_pool_give(&spares, &objects[OBJECT_POOL_MAX]));
}

/* Not atomic: if two threads ever had one object at once, its count would come out too low. */
typedef struct Counted {
    int uses;
} Counted;

enum { THREADS = 4, ROUNDS = 20000, OBJECTS = 3 };

static void *use_them(void *arg)
{
    ObjectPool *spares = arg;
    size_t used = 0;
    while (used < ROUNDS) {
        Counted *counted = object_pool_take(spares);
        if (counted == NULL)
            continue;
        counted->uses++;
        used++;
        if (!object_pool_give(spares, counted))
            return counted; /* there is room for all of them */
    }
    return NULL;
}

static void one_thread_at_a_time_has_an_object(void **state)
{
    (void)state;
    ObjectPool spares = {.slots[0].object = NULL};
    Counted objects[OBJECTS] = {0};
    for (size_t i = 0; i < OBJECTS; i++)
        assert_true(object_pool_give(&spares, &objects[i]));
    pthread_t threads[THREADS];
    for (size_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, use_them, &spares), 0);
    for (size_t i = 0; i < THREADS; i++) {
        void *lost = NULL;
        assert_int_equal(pthread_join(threads[i], &lost), 0);
        assert_null(lost);
    }
    int uses = 0;
    for (size_t i = 0; i < OBJECTS; i++)
        uses += objects[i].uses;
    assert_int_equal(uses, THREADS * ROUNDS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_given_can_be_taken),
        cmocka_unit_test(no_more_are_kept_than_there_is_room_for),
        cmocka_unit_test(one_thread_at_a_time_has_an_object),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
