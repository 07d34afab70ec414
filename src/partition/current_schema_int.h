/* current_schema_int.h - the container's definition as a partition follows it now, and the state of
 * the index that readers may rely on (I13).
 *
 * Both are immutable and replaced whole: a reader takes a reference and keeps what it has.
 *
 * Threads    Any thread reads and replaces the schema. The holder of the turn publishes the index.
 */
#pragma once

#include "partition/index_state_int.h"
#include "partition/schema.h"

#include <pthread.h>

typedef struct CurrentSchema {
    pthread_mutex_t lock; /* guards the rest; held for a few instructions */
    PartitionSchema *schema;
    IndexState *index;      /* NULL if the partition is damaged */
    unsigned index_percent; /* how much of the new policy of 'index' is done */
} CurrentSchema;

void current_schema_init(CurrentSchema *current, PartitionSchema *schema);
void current_schema_done(CurrentSchema *current);

PartitionSchema *current_schema_ref(CurrentSchema *current);

/* True if the index is not as the new one wants it. */
bool current_schema_replace(CurrentSchema *current, PartitionSchema *schema);

IndexState *current_schema_index_ref(CurrentSchema *current);

/* Makes a group's state (before its commit) or the partition's (after it) what readers go by. A
 * reader must never rely on what is not yet, or no longer, in its snapshot: so the beginning of a
 * rebuild is published before it is committed, and its end afterwards. */
void current_schema_publish_index(CurrentSchema *current, IndexState *state, unsigned percent);

/* Whether maintenance has work that follows from the definition: a time to live, or an index that
 * is not as the newest policy wants it. */
bool current_schema_has_work(CurrentSchema *current);

/* Whether it keeps all versions of items for a time. */
bool current_schema_keeps_history(CurrentSchema *current);

/* How much of the index follows the newest policy, in percent. */
unsigned current_schema_index_progress(CurrentSchema *current);
