/* index_update.c - from the items that a group changes to the terms that it writes.
 *
 * Each change of an item is noted: as it was, and as it will be. When everything is applied, all
 * notes become operands together: a chunk that many items of the group are in is written once, and
 * what a later change takes back is not written at all. Of a failed operation only the notes have
 * to be taken back. Runs on a writer thread.
 */
#include "base/array.h"
#include "base/mem.h"
#include "index/set.h"
#include "index/terms.h"
#include "partition/group_int.h"

/* Beyond this much memory for terms the operands are written and the rest begins anew: a chunk may
 * then be written more than once. */
#define BATCH_BYTES_MAX ((size_t)16 << 20)

static const IndexPolicy *policy_of(const Group *group, const Item *item)
{
    if (item == NULL || item->is_unindexed)
        return NULL;
    const IndexState *state = group->index.state;
    return item->number <= group->index.position ? state->new_policy : state->old_policy;
}

static IndexChange *add_change(Group *group)
{
    GroupIndex *index = &group->index;
    ARRAY_GROW(index->changes, index->change_count, index->change_capacity, 32);
    return &index->changes[index->change_count++];
}

/* A document that was read lives as long as its operation; a new one until its sender is answered.
 */
static Json keep_document(Group *group, const Item *item)
{
    return item == NULL ? JSON_NONE : json_trust(json_bytes(&group->keep, item->document));
}

void group_index_change(Group *group, const Item *old, const Item *item, uint32_t *terms)
{
    ASSERT(old != NULL || item != NULL);
    ASSERT(old == NULL || item == NULL || old->number == item->number);
    if (UNLIKELY(group->is_private))
        return;
    const IndexPolicy *before = policy_of(group, old);
    const IndexPolicy *after = policy_of(group, item);
    if (before == NULL && after == NULL)
        return;
    *add_change(group) = (IndexChange){
        .number = item != NULL ? item->number : old->number,
        .old_policy = before,
        .new_policy = after,
        .old_document = before != NULL ? keep_document(group, old) : JSON_NONE,
        .new_document = item != NULL ? item->document : JSON_NONE,
        .old_ts_s = old != NULL ? old->ts_s : 0,
        .new_ts_s = item != NULL ? item->ts_s : 0,
        .terms = terms,
    };
}

void group_index_rebuild(Group *group, const Item *item)
{
    if (item->is_unindexed)
        return;
    Json document = keep_document(group, item);
    *add_change(group) = (IndexChange){
        .number = item->number,
        .old_policy = group->index.state->old_policy,
        .new_policy = group->index.state->new_policy,
        .old_document = document,
        .new_document = document,
        .old_ts_s = item->ts_s,
        .new_ts_s = item->ts_s,
        .adds_samples = group->index.state->samples == SAMPLES_TO_POSITION,
    };
}

static bool has_composite_of_time(const IndexPolicy *policy)
{
    size_t count = 0;
    const CompositeIndex *indexes = index_policy_composites(policy, &count);
    for (size_t i = 0; i < count; i++) {
        for (size_t j = 0; j < indexes[i].part_count; j++) {
            if (indexes[i].parts[j].is_time)
                return true;
        }
    }
    return false;
}

/* Returns how many terms a client pays for. */
static size_t add_terms(TermsBatch *batch, const IndexChange *c, uint32_t old_ts_s)
{
    TermSystem before = {.ts_s = old_ts_s};
    TermSystem after = {.ts_s = c->new_ts_s};
    if (c->adds_samples) {
        if (c->new_policy != NULL)
            terms_batch_add_samples(batch, c->number, c->new_policy, c->new_document, &after);
        return 0;
    }
    (void)terms_batch_change(batch, c->number, c->old_policy, c->old_document, &before,
                             c->new_policy, c->new_document, &after);
    return terms_batch_values(batch);
}

/* How many of 'values' would also be written within the same second: a client does not pay for the
 * change of _ts. */
static size_t count_charged(const Partition *partition, const IndexChange *c, size_t values)
{
    if (c->old_policy == NULL || c->new_policy == NULL || c->old_ts_s == c->new_ts_s)
        return values;
    if (!has_composite_of_time(c->old_policy) && !has_composite_of_time(c->new_policy))
        return values;
    AUTO(arena_done) Arena arena;
    arena_init(&arena, ARENA_SMALL_BYTES);
    return add_terms(terms_batch_new(&arena, partition->index_key), c, c->new_ts_s);
}

static void finish_batch(Group *group, TermsBatch *batch, Arena *arena)
{
    terms_batch_finish(batch, group->txn, group->partition->space);
    arena_reset(arena);
}

static void write_terms(Group *group)
{
    const Partition *partition = group->partition;
    AUTO(arena_done) Arena arena;
    arena_init(&arena, ARENA_LARGE_BYTES);
    TermsBatch *batch = NULL;
    for (size_t i = 0; i < group->index.change_count; i++) {
        const IndexChange *c = &group->index.changes[i];
        bool is_other = i > 0 && c->adds_samples != c[-1].adds_samples; /* see terms.h */
        if (is_other && batch != NULL)
            finish_batch(group, TAKE(batch), &arena);
        if (batch == NULL)
            batch = terms_batch_new(&arena, partition->index_key);
        size_t values = add_terms(batch, c, c->old_ts_s);
        if (c->terms != NULL)
            *c->terms = (uint32_t)count_charged(partition, c, values);
        if (arena_used(&arena) > BATCH_BYTES_MAX)
            finish_batch(group, TAKE(batch), &arena);
    }
    if (batch != NULL)
        finish_batch(group, batch, &arena);
}

void group_gather_terms(Group *group, TermsBatch *batch)
{
    for (size_t i = 0; i < group->index.change_count; i++) {
        const IndexChange *c = &group->index.changes[i];
        (void)add_terms(batch, c, c->old_ts_s); /* no client pays for them */
    }
    group->index.change_count = 0;
}

void group_finish_index(Group *group)
{
    Partition *partition = group->partition;
    if (group->index.change_count > 0)
        write_terms(group);
    if (partition->writer.index_is_stored && !group->index.is_changed)
        return;
    static const uint8_t key[] = {KEY_INDEX_STATE};
    Slice record = index_state_encode(&group->arena, group->index.state, partition->index_key,
                                      group->index.position);
    store_txn_put(group->txn, partition->space, slice_make(key, sizeof(key)), record);
    /* Before the commit, if readers must know before it: see current_schema_publish_index. */
    bool is_begun =
        group->index.position != INDEX_COMPLETE && group->index.state != partition->writer.index;
    if (is_begun)
        current_schema_publish_index(&partition->current, group->index.state, 0);
}
