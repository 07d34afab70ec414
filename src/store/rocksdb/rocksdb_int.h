/* rocksdb_int.h - what the files of this folder share; the only ones that know RocksDB. */
#pragma once

#include "base/mailbox.h"
#include "store/engine_int.h"
#include "store/rocksdb/rocksdb_store.h"

#include <pthread.h>
#include <rocksdb/c.h>

/* Gives the space of dropped keys back to the disk: see reclaim.c. */
typedef struct Reclaimer {
    /* Immutable after reclaimer_init. */
    rocksdb_t *db;

    /* Any thread posts, the reclaimer's own takes. */
    Mailbox mailbox;
    QueueNode stop;
    _Atomic bool stopping;

    /* Guarded by 'lock'. */
    pthread_mutex_t lock;
    bool started; /* by the first drop that is worth it: most processes never need the thread */
    pthread_t thread;
} Reclaimer;

void reclaimer_init(Reclaimer *reclaimer, rocksdb_t *db);

/* About how many bytes of files the keys in ['from', 'to'] take. */
uint64_t reclaimer_bytes(Reclaimer *reclaimer, Slice from, Slice to);

/* The keys in ['from', 'to'], which took 'bytes', are gone; the bytes are given back later. Does
 * not wait. */
void reclaimer_push(Reclaimer *reclaimer, Slice from, Slice to, uint64_t bytes);

/* Breaks off what is under way. RocksDB takes no more writes afterwards. */
void reclaimer_stop(Reclaimer *reclaimer);

/* How much RocksDB gathers in memory before it writes a file. */
size_t rocksdb_memtable_bytes(size_t cache_bytes);

/* Sizes and habits of the database, thought through in options.c. The caller destroys it. */
rocksdb_options_t *rocksdb_tuned_options(size_t cache_bytes, rocksdb_cache_t *cache);

/* Turns RocksDB's words into an Error: "'what': 'text'". Takes 'text' over. */
MUST_USE Status rocksdb_error(Error *err, const char *what, char *text);
