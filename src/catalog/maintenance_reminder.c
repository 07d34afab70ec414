/* maintenance_reminder.c - reminds partitions of their background work: to remove items that have
 * expired or were purged, and to rebuild an index.
 *
 * Readers never see expired items, so this only frees room: one round of reminders a second is
 * enough, and none is needed while no container has a time to live. More would cost too much,
 * however often the catalogue changes, because a round visits every container. The first round,
 * after the start, also resumes purges and rebuilds that a stop interrupted. Rounds are repeated
 * while a partition has such work, so that work which the disk has failed is resumed.
 */
#include "catalog/maintenance_reminder_int.h"

#include "base/cond.h"
#include "base/thread.h"

/* Reminds every partition that this process serves. True if another round will be needed. */
static bool remind(CatalogReader *reader)
{
    const Snapshot *snapshot = catalog_read(reader);
    bool again = false;
    SnapshotWalk walk = {0};
    while (snapshot_next(snapshot, &walk)) {
        for (size_t i = 0; i < walk.container->range_count; i++) {
            Partition *partition = handle_local(container_handle_at(walk.container, i));
            again = (partition != NULL && partition_maintain(partition)) || again;
        }
    }
    return again;
}

/* Only the stop ends the wait earlier, not a notice. */
static void wait_a_second(MaintenanceReminder *reminder)
{
    uint64_t until_us = cond_after_ms(1000);
    while (!reminder->stop && cond_wait_until(&reminder->changed, &reminder->lock, until_us))
        continue;
}

static void *run(void *arg)
{
    MaintenanceReminder *reminder = arg;
    (void)pthread_mutex_lock(&reminder->lock);
    while (!reminder->stop) {
        reminder->is_needed = false;
        (void)pthread_mutex_unlock(&reminder->lock);
        /* A reader for this round only: a snapshot keeps dropped containers alive. */
        CatalogReader reader;
        catalog_reader_init(&reader, reminder->catalog);
        bool again = remind(&reader);
        catalog_reader_done(&reader);
        (void)pthread_mutex_lock(&reminder->lock);
        wait_a_second(reminder);
        while (!again && !reminder->stop && !reminder->is_needed)
            (void)pthread_cond_wait(&reminder->changed, &reminder->lock);
    }
    (void)pthread_mutex_unlock(&reminder->lock);
    return NULL;
}

static void destroy_lock(MaintenanceReminder *reminder)
{
    (void)pthread_cond_destroy(&reminder->changed);
    (void)pthread_mutex_destroy(&reminder->lock);
}

Status reminder_open(MaintenanceReminder *reminder, Catalog *catalog, Error *err)
{
    reminder->catalog = catalog;
    int failed = pthread_mutex_init(&reminder->lock, NULL);
    ASSERT(failed == 0);
    failed = pthread_cond_init(&reminder->changed, NULL);
    ASSERT(failed == 0);
    Status status = thread_start(&reminder->thread, "orrery-reminder", run, reminder, err);
    reminder->is_running = status == STATUS_OK;
    if (!reminder->is_running)
        destroy_lock(reminder);
    return status;
}

void reminder_notice(MaintenanceReminder *reminder)
{
    (void)pthread_mutex_lock(&reminder->lock);
    reminder->is_needed = true;
    (void)pthread_cond_signal(&reminder->changed);
    (void)pthread_mutex_unlock(&reminder->lock);
}

void reminder_close(MaintenanceReminder *reminder)
{
    if (!reminder->is_running)
        return;
    (void)pthread_mutex_lock(&reminder->lock);
    reminder->stop = true;
    (void)pthread_cond_signal(&reminder->changed);
    (void)pthread_mutex_unlock(&reminder->lock);
    (void)pthread_join(reminder->thread, NULL);
    destroy_lock(reminder);
    reminder->is_running = false;
}
