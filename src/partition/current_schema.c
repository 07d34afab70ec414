/* current_schema.c - see current_schema_int.h. */
#include "partition/current_schema_int.h"

void current_schema_init(CurrentSchema *current, PartitionSchema *schema)
{
    int failed = pthread_mutex_init(&current->lock, NULL);
    ASSERT(failed == 0);
    current->schema = schema_ref(schema);
}

void current_schema_done(CurrentSchema *current)
{
    schema_unref(current->schema);
    index_state_unref(current->index);
    (void)pthread_mutex_destroy(&current->lock);
}

PartitionSchema *current_schema_ref(CurrentSchema *current)
{
    (void)pthread_mutex_lock(&current->lock);
    PartitionSchema *schema = schema_ref(current->schema);
    (void)pthread_mutex_unlock(&current->lock);
    return schema;
}

IndexState *current_schema_index_ref(CurrentSchema *current)
{
    (void)pthread_mutex_lock(&current->lock);
    IndexState *state = index_state_ref(current->index);
    (void)pthread_mutex_unlock(&current->lock);
    return state;
}

void current_schema_publish_index(CurrentSchema *current, IndexState *state, unsigned percent)
{
    ASSERT(percent <= 100);
    (void)pthread_mutex_lock(&current->lock);
    IndexState *old = current->index;
    current->index = index_state_ref(state);
    current->index_percent = percent;
    (void)pthread_mutex_unlock(&current->lock);
    index_state_unref(old);
}

/* Whether the index follows the schema's policy, or is on the way there without another stop. The
 * lock is held. */
static bool follows_schema(const CurrentSchema *current)
{
    const IndexState *state = current->index;
    return state->samples != SAMPLES_UNSURE &&
           slice_equal(state->new_text, current->schema->index_text);
}

/* The lock is held. Of a damaged partition there is nothing to work on. */
static bool is_stale(const CurrentSchema *current)
{
    return current->index != NULL && (current->index_percent < 100 || !follows_schema(current));
}

bool current_schema_replace(CurrentSchema *current, PartitionSchema *schema)
{
    (void)pthread_mutex_lock(&current->lock);
    PartitionSchema *old = current->schema;
    current->schema = schema_ref(schema);
    bool result = is_stale(current);
    (void)pthread_mutex_unlock(&current->lock);
    schema_unref(old);
    return result;
}

bool current_schema_has_work(CurrentSchema *current)
{
    (void)pthread_mutex_lock(&current->lock);
    bool result = current->schema->default_ttl_s != 0 || is_stale(current);
    (void)pthread_mutex_unlock(&current->lock);
    return result;
}

bool current_schema_keeps_history(CurrentSchema *current)
{
    (void)pthread_mutex_lock(&current->lock);
    bool result = current->schema->retention_s > 0;
    (void)pthread_mutex_unlock(&current->lock);
    return result;
}

unsigned current_schema_index_progress(CurrentSchema *current)
{
    (void)pthread_mutex_lock(&current->lock);
    bool is_known = current->index != NULL && follows_schema(current);
    unsigned percent = is_known ? current->index_percent : 0;
    (void)pthread_mutex_unlock(&current->lock);
    return percent;
}
