/* index_rebuild.c - the index follows a change of the policy, a bounded piece per group.
 *
 *     complete under A --> A and B, position 0 --> ... position n ... --> complete under B
 *
 * A rebuild begins with a group that only says so, because readers must know of it before the first
 * item loses terms. Then it walks the items in the order of their numbers; the position is stored
 * with the terms of each piece, so that it goes on there after a stop. A write
 * meanwhile gives its item the terms of the policy that its number has (I12). New items have higher
 * numbers than all others, so the walk meets them, too, and ends when no number is left.
 *
 * An index from before there were samples gets them first, by a rebuild from its policy to itself:
 *
 *     complete under A, unsure --> A and A, position 0 --> ... position n ... --> complete under A
 *
 * Runs on a writer thread, as part of a group's maintenance.
 */
#include "partition/group_int.h"

/* A piece ends earlier when its items are large. */
#define PIECE_BYTES_MAX ((size_t)2 << 20)

static bool are_equal(const IndexPolicy *a, const IndexPolicy *b)
{
    if (a == NULL || b == NULL)
        return a == b;
    return index_policy_equal(a, b);
}

static void set_state(Group *group, IndexState *state, uint64_t position)
{
    index_state_unref(group->index.state);
    group->index.state = state;
    group->index.position = position;
    group->index.is_changed = true;
    group->is_changed = true;
}

static Status begin_samples(Group *group, Error *err)
{
    AUTO(index_state_unref) IndexState *next = NULL;
    Slice text = group->index.state->new_text;
    TRY(index_state_new(&group->schema->key, text, text, SAMPLES_TO_POSITION, &next, err));
    set_state(group, TAKE(next), 0);
    group->has_more = true;
    return STATUS_OK;
}

/* A policy that has the same meaning is taken over without a rebuild. */
static Status begin(Group *group, Error *err)
{
    if (group->index.state->samples == SAMPLES_UNSURE)
        return begin_samples(group, err);
    const PartitionSchema *schema = group->schema;
    Slice text = group->index.state->new_text;
    if (slice_equal(text, schema->index_text))
        return STATUS_OK;
    AUTO(index_state_unref) IndexState *next = NULL;
    TRY(index_state_new(&schema->key, text, schema->index_text, SAMPLES_ALL, &next, err));
    if (!are_equal(next->old_policy, next->new_policy)) {
        set_state(group, TAKE(next), 0);
        group->has_more = true;
        return STATUS_OK;
    }
    AUTO(index_state_unref) IndexState *same = NULL;
    TRY(index_state_new(&schema->key, schema->index_text, schema->index_text, SAMPLES_ALL, &same,
                        err));
    set_state(group, TAKE(same), INDEX_COMPLETE);
    return STATUS_OK;
}

/* Gives items the terms of the new policy, or their samples. '*position' is the last one done. */
static Status rebuild_items(Group *group, const FoundKeys *keys, uint64_t *position, Error *err)
{
    size_t bytes = 0;
    for (size_t i = 0; i < keys->count && bytes < PIECE_BYTES_MAX; i++) {
        if (keys->keys[i].len != KEY_NUMBER_BYTES)
            return error_set(err, STATUS_CORRUPT, SUB_NONE, "the number of an item is damaged");
        uint64_t number = be64_get(keys->keys[i].ptr + 1);
        Slice epk;
        Slice id;
        Item item;
        bool found = false;
        arena_reset(&group->arena); /* what the index needs of an item is kept elsewhere */
        TRY(group_find_item(group, number, &epk, &id, &item, &found, err));
        if (found)
            group_index_rebuild(group, &item);
        bytes += found ? item.bytes : 0;
        *position = number;
    }
    return STATUS_OK;
}

static Status end(Group *group, Error *err)
{
    AUTO(index_state_unref) IndexState *next = NULL;
    Slice text = group->index.state->new_text;
    /* A rebuild that an earlier version began says nothing about samples. */
    IndexSamples samples =
        group->index.state->samples == SAMPLES_UNSURE ? SAMPLES_UNSURE : SAMPLES_ALL;
    TRY(index_state_new(&group->schema->key, text, text, samples, &next, err));
    set_state(group, TAKE(next), INDEX_COMPLETE);
    return STATUS_OK;
}

Status group_rebuild_index(Group *group, Error *err)
{
    if (group->index.position == INDEX_COMPLETE)
        return begin(group, err);
    ASSERT(group->index.state != NULL);
    Key from;
    Key to = {.bytes = {KEY_NUMBER + 1}, .len = 1};
    key_number(&from, group->index.position + 1);
    FoundKeys keys;
    TRY(group_find_keys(group, key_slice(&from), key_slice(&to), &keys, err));
    uint64_t position = group->index.position;
    TRY(rebuild_items(group, &keys, &position, err));
    bool is_finished = !keys.is_full &&
                       (keys.count == 0 || position == be64_get(keys.keys[keys.count - 1].ptr + 1));
    if (is_finished)
        TRY(end(group, err));
    else
        group->index.position = position;
    group->index.is_changed = true;
    group->is_changed = true;
    group->has_more = true; /* also at the end: another policy may be waiting */
    return STATUS_OK;
}
