/* catalog_start_test.c - a system that has no thread to give: the catalogue does not open, and says
 * so.
 *
 * The function below takes the place of the library's. */
#include "base/thread.h"
#include "catalog/testing_int.h"

#define NONE MANUAL(0)

enum { ALWAYS = 1000 };
static _Atomic int threads_left = ALWAYS; /* that can still be started */

Status thread_start(pthread_t *thread, const char *name, void *(*run)(void *ctx), void *ctx,
                    Error *err)
{
    if (atomic_fetch_sub(&threads_left, 1) <= 0 || pthread_create(thread, NULL, run, ctx) != 0)
        return error_set(err, STATUS_IO, SUB_NONE, "cannot start the thread '%s'", name);
    return STATUS_OK;
}

static void without_a_thread_the_catalogue_does_not_open(void **state)
{
    (void)state;
    static const char *const names[] = {"test", "orrery-cleaner", "orrery-reminder",
                                        "orrery-catalog", "orrery-moves"};
    static const MoveRules moves = {0};
    TestCatalog t;
    test_open(&t, TEST_MEMORY);
    t.moves = &moves;
    uint32_t database = make_database(&t, "db", NONE);
    (void)make_container(&t, database, "c", NONE);
    test_close_catalog(&t);
    for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
        Error err;
        atomic_store(&threads_left, (int)i);
        assert_int_equal(test_try_open(&t, &err), STATUS_IO);
        assert_non_null(strstr(err.message, names[i]));
        assert_null(t.catalog);
    }
    /* One thread of each suffices: more writers are optional. */
    Error err;
    atomic_store(&threads_left, (int)ARRAY_COUNT(names));
    assert_int_equal(test_try_open(&t, &err), STATUS_OK);
    const Container *container = snapshot_container_by_id(test_read(&t), database, SLICE("c"));
    for (size_t i = 0; i < container->range_count; i++)
        make_item(handle_local(container_handle_at(container, i)), "{'id':'1'}");
    test_close(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_a_thread_the_catalogue_does_not_open),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
