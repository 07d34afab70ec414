/* index_update.c - from the items that a group changes to the terms that it writes.
 *
 * Whoever changes an item notes it as it was and as it will be. Once, when everything is applied,
 * all of them become operands together: a chunk that many items of the group are in is written
 * once, and what a later change takes back is not written at all. So a failed operation costs
 * nothing here but the notes that it leaves behind. Runs on a writer thread.
 */
#include "base/mem.h"
#include "index/set.h"
#include "index/terms.h"
#include "partition/partition_int.h"

/* Beyond this much memory for terms the operands are written and the rest begins anew: a chunk may
 * then be written more than once. */
#define BATCH_BYTES_MAX ((size_t)16 << 20)

static const IndexPolicy *policy_of(const Group *group, const Item *item)
{
    if (item == NULL || item->is_unindexed)
        return NULL;
    const IndexState *state = group->index;
    return item->number <= group->index_position ? state->new_policy : state->old_policy;
}

static IndexChange *add_change(Group *group)
{
    if (group->index_change_count == group->index_change_capacity) {
        size_t capacity = group->index_change_capacity;
        capacity = capacity == 0 ? 32 : capacity * 2;
        group->index_changes = mem_realloc(group->index_changes, capacity * sizeof(IndexChange));
        group->index_change_capacity = capacity;
    }
    return &group->index_changes[group->index_change_count++];
}

/* What was read for one operation is gone with it; new documents live as long as their senders. */
static Json keep_document(Group *group, const Item *item)
{
    return item == NULL ? JSON_NONE : json_trust(json_bytes(&group->keep, item->document));
}

void group_index_change(Group *group, const Item *old, const Item *item, uint32_t *terms)
{
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
        .old_policy = group->index->old_policy,
        .new_policy = group->index->new_policy,
        .old_document = document,
        .new_document = document,
        .old_ts_s = item->ts_s,
        .new_ts_s = item->ts_s,
        .adds_samples = group->index->samples == SAMPLES_TO_POSITION,
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

/* Returns those that a client pays for. */
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

/* Of these those that it would also write within the same second: whether one began in between is
 * nothing that a client should be charged for. */
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
    for (size_t i = 0; i < group->index_change_count; i++) {
        const IndexChange *c = &group->index_changes[i];
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
    for (size_t i = 0; i < group->index_change_count; i++) {
        const IndexChange *c = &group->index_changes[i];
        (void)add_terms(batch, c, c->old_ts_s); /* nobody pays for them */
    }
    group->index_change_count = 0;
}

void group_finish_index(Group *group)
{
    Partition *partition = group->partition;
    if (group->index_change_count > 0)
        write_terms(group);
    if (partition->index_is_stored && !group->index_is_changed)
        return;
    static const uint8_t key[] = {KEY_INDEX_STATE};
    Slice record = index_state_encode(&group->arena, group->index, partition->index_key,
                                      group->index_position);
    store_txn_put(group->txn, partition->space, slice_make(key, sizeof(key)), record);
    /* Before the commit, if readers must know before it: see partition_publish_index. */
    bool is_begun = group->index_position != INDEX_COMPLETE && group->index != partition->index;
    if (is_begun)
        partition_publish_index(partition, group->index, 0);
}
