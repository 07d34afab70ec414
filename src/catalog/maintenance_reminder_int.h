/* maintenance_reminder_int.h - reminds partitions, once a second, of their work in the background.
 * Sleeps as long as no partition can have any. */
#pragma once

#include "catalog/catalog.h"

#include <pthread.h>

typedef struct MaintenanceReminder {
    Catalog *catalog;     /* immutable after open */
    pthread_mutex_t lock; /* guards the two flags */
    pthread_cond_t changed;
    bool stop;
    bool is_needed;
    pthread_t thread;
    bool is_running; /* opening thread only */
} MaintenanceReminder;

MUST_USE Status reminder_open(MaintenanceReminder *reminder, Catalog *catalog, Error *err);
void reminder_notice(MaintenanceReminder *reminder); /* a container was created or replaced */
void reminder_close(MaintenanceReminder *reminder);
