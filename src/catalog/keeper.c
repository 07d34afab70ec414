/* keeper.c - reminds partitions of their background work: to take away what has expired or was
 * purged, and to rebuild an index.
 *
 * Expired items are invisible at once, so this is about room, not about answers: a reminder a
 * second is enough, and none at all while no container has a time to live. More than one would be
 * too much, however often the catalogue changes, because a round looks at every container. The
 * first round, after the start, also wakes purges and rebuilds that a stop interrupted; rounds go
 * on as long as a partition has such work, which goes on by itself unless the disk fails.
 */
#include "base/cond.h"
#include "base/thread.h"
#include "catalog/catalog_int.h"

/* True if another round will be needed. */
static bool remind(CatalogReader *reader)
{
    const Snapshot *snapshot = catalog_read(reader);
    bool again = false;
    const Database *database;
    for (uint32_t d = 0; (database = snapshot_next_database(snapshot, d)) != NULL;
         d = database->info.number + 1) {
        const Container *container;
        for (uint32_t c = 0;
             (container = snapshot_next_container(snapshot, database->info.number, c)) != NULL;
             c = container->info.number + 1) {
            for (size_t i = 0; i < container->range_count; i++)
                again = partition_maintain(container->ranges[i].partition) || again;
        }
    }
    return again;
}

/* Whatever is noticed meanwhile: only the stop ends it earlier. */
static void wait_a_second(Keeper *keeper)
{
    uint64_t until_us = cond_after_ms(1000);
    while (!keeper->stop && cond_wait_until(&keeper->changed, &keeper->lock, until_us))
        continue;
}

static void *run(void *arg)
{
    Keeper *keeper = arg;
    (void)pthread_mutex_lock(&keeper->lock);
    while (!keeper->stop) {
        keeper->is_needed = false;
        (void)pthread_mutex_unlock(&keeper->lock);
        /* A reader of this round: what was dropped lives as long as a snapshot that shows it. */
        CatalogReader reader;
        catalog_reader_init(&reader, keeper->catalog);
        bool again = remind(&reader);
        catalog_reader_done(&reader);
        (void)pthread_mutex_lock(&keeper->lock);
        wait_a_second(keeper);
        while (!again && !keeper->stop && !keeper->is_needed)
            (void)pthread_cond_wait(&keeper->changed, &keeper->lock);
    }
    (void)pthread_mutex_unlock(&keeper->lock);
    return NULL;
}

static void destroy_lock(Keeper *keeper)
{
    (void)pthread_cond_destroy(&keeper->changed);
    (void)pthread_mutex_destroy(&keeper->lock);
}

Status keeper_open(Keeper *keeper, Catalog *catalog, Error *err)
{
    keeper->catalog = catalog;
    int failed = pthread_mutex_init(&keeper->lock, NULL);
    ASSERT(failed == 0);
    failed = pthread_cond_init(&keeper->changed, NULL);
    ASSERT(failed == 0);
    Status status = thread_start(&keeper->thread, "orrery-keeper", run, keeper, err);
    keeper->is_running = status == STATUS_OK;
    if (!keeper->is_running)
        destroy_lock(keeper);
    return status;
}

void keeper_notice(Keeper *keeper)
{
    (void)pthread_mutex_lock(&keeper->lock);
    keeper->is_needed = true;
    (void)pthread_cond_signal(&keeper->changed);
    (void)pthread_mutex_unlock(&keeper->lock);
}

void keeper_close(Keeper *keeper)
{
    if (!keeper->is_running)
        return;
    (void)pthread_mutex_lock(&keeper->lock);
    keeper->stop = true;
    (void)pthread_cond_signal(&keeper->changed);
    (void)pthread_mutex_unlock(&keeper->lock);
    (void)pthread_join(keeper->thread, NULL);
    destroy_lock(keeper);
    keeper->is_running = false;
}
