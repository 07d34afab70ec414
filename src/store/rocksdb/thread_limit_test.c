/* thread_limit_test.c - a system that has no thread to give: the store does not open, and says so.
 *
 * The function below takes the place of the library's. */
#include "base/thread.h"
#include "store/rocksdb/rocksdb_testing_int.h"

enum { STARTED_AND_ENDED = 4, MANY = 1000 };
static _Atomic int threads_left; /* that can be had */

Status thread_start(pthread_t *thread, const char *name, void *(*run)(void *ctx), void *ctx,
                    Error *err)
{
    if (atomic_fetch_sub(&threads_left, 1) <= 0 || pthread_create(thread, NULL, run, ctx) != 0)
        return error_set(err, STATUS_IO, SUB_NONE, "cannot start the thread '%s'", name);
    return STATUS_OK;
}

static void without_a_thread_the_store_does_not_open(void **state)
{
    (void)state;
    char path[] = "/tmp/orrery_threads_XXXXXX";
    assert_non_null(mkdtemp(path));
    for (int i = 0; i <= STARTED_AND_ENDED; i++) {
        Store *store = NULL;
        Error err;
        atomic_store(&threads_left, i);
        assert_int_equal(try_open(path, STORE_DURABILITY_SYNC, &store, &err), STATUS_IO);
        assert_non_null(
            strstr(err.message, i < STARTED_AND_ENDED ? "orrery-rocksdb" : "orrery-commit"));
    }
    atomic_store(&threads_left, MANY);
    store_close(open_at(path)); /* nothing was left behind that would keep it from that */
    test_remove_folder(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_a_thread_the_store_does_not_open),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
