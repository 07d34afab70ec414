/* thread_limit.c - whether the system has the threads that RocksDB is about to start.
 *
 * RocksDB starts its threads when it opens, and a thread that cannot be started ends the process
 * with an exception that names no reason. So as many are started here first, all at once, and ended
 * again: if one cannot be started, the open fails with an Error.
 */
#include "base/thread.h"
#include "store/rocksdb/rocksdb_int.h"

/* Two for background jobs and one that deletes files, see set_threads(); one that helps opening
 * files, and ends again. */
enum { THREADS = 4 };

static void *wait_for_end(void *arg)
{
    pthread_mutex_t *until = arg;
    (void)pthread_mutex_lock(until);
    (void)pthread_mutex_unlock(until);
    return NULL;
}

Status rocksdb_check_thread_limit(Error *err)
{
    pthread_mutex_t until = PTHREAD_MUTEX_INITIALIZER;
    pthread_t threads[THREADS];
    size_t count = 0;
    Status status = STATUS_OK;
    (void)pthread_mutex_lock(&until);
    while (count < THREADS && status == STATUS_OK) {
        status = thread_start(&threads[count], "orrery-rocksdb", wait_for_end, &until, err);
        count += status == STATUS_OK ? 1 : 0;
    }
    (void)pthread_mutex_unlock(&until);
    for (size_t i = 0; i < count; i++)
        (void)pthread_join(threads[i], NULL);
    return status;
}
