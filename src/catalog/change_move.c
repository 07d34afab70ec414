/* change_move.c - the changes that begin a move of ranges, and end or undo it.
 *
 * While a move is under way, its targets are in the container's record beside the map (I10), so
 * that a start after a crash finds them and a drop of the container removes them, too:
 *
 *     ranges   | 0      | 1      | 2      |       | 0      | 3  | 4      | 2      |
 *     pending           | 3  | 4      |      -->
 *                                             end
 *
 * The sender of these changes (move_driver.c) copies the data from the sources to the targets, and
 * fences writes while the map changes (I13). Runs on the catalogue's thread.
 */
#include "base/mem.h"
#include "catalog/change_int.h"
#include "catalog/epk_range.h"

#include <stdlib.h>

/* Neighbouring ranges of one map, in order. */
typedef struct Run {
    const PartitionRange *ranges;
    size_t count;
} Run;

static Status find_container(const Work *work, const CatalogChange *change, const Container **out,
                             Error *err)
{
    *out = snapshot_container(work->snapshot, change->database, change->container);
    return *out != NULL ? STATUS_OK : change_not_found(err, "container");
}

static Status find_moving(const Work *work, const CatalogChange *change, const Container **out,
                          Error *err)
{
    TRY(find_container(work, change, out, err));
    return (*out)->pending_count > 0 ? STATUS_OK : change_not_found(err, "move");
}

static Status range_gone(Error *err, uint32_t id)
{
    return error_set(err, STATUS_GONE, SUB_PARTITION_KEY_RANGE_GONE,
                     "The container has no partition key range '%u' (any more).", id);
}

static Status find_sources(const Container *container, const CatalogChange *change, Run *out,
                           Error *err)
{
    const PartitionRange *first = container_range(container, change->range_first);
    const PartitionRange *last = container_range(container, change->range_last);
    if (first == NULL)
        return range_gone(err, change->range_first);
    if (last == NULL)
        return range_gone(err, change->range_last);
    if (last < first)
        return error_set(err, STATUS_GONE, SUB_PARTITION_KEY_RANGE_GONE,
                         "Partition key range '%u' is not before range '%u'.", first->id, last->id);
    *out = (Run){.ranges = first, .count = (size_t)(last - first) + 1};
    return STATUS_OK;
}

static Status check_counts(const Container *container, const Run *sources, size_t targets,
                           Error *err)
{
    if (sources->count == 1 && targets == 1)
        return error_set(
            err, STATUS_BAD_REQUEST, SUB_NONE,
            "A move of one range to one range changes nothing; ask for 2 parts or more.");
    if (sources->count > RANGE_PARENTS_MAX)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "A merge of %zu ranges was asked for; the maximum is %d.", sources->count,
                         RANGE_PARENTS_MAX);
    if (container->range_count - sources->count + targets > RANGES_MAX)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "A container has at most %d physical partitions.", RANGES_MAX);
    if (targets > RANGE_IDS_MAX - container->range_next)
        return error_set(err, STATUS_UNAVAILABLE, SUB_NONE,
                         "The container has used up all numbers of partition key ranges.");
    return STATUS_OK;
}

/* Each cut lies inside of what is taken over, and after the one before it. */
static Status check_cuts(const Container *container, const Run *sources, const Slice *cuts,
                         size_t count, Error *err)
{
    if (count > 0 && container->partition_key.kind == PARTITION_NONE)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "A container without a partition key has one physical partition.");
    Slice low = sources->ranges[0].min;
    Slice high = sources->ranges[sources->count - 1].max;
    for (size_t i = 0; i < count; i++) {
        if (!epk_is_bound(cuts[i]) || slice_compare(cuts[i], low) <= 0 ||
            slice_compare(cuts[i], high) >= 0)
            return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                             "'%.*s' is not a bound between '%.*s' and '%.*s'.",
                             SLICE_CUT(cuts[i], 80), SLICE_CUT(low, 80), SLICE_CUT(high, 80));
        low = cuts[i];
    }
    return STATUS_OK;
}

static int compare_ids(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a;
    uint32_t y = *(const uint32_t *)b;
    return x < y ? -1 : x > y ? 1 : 0;
}

/* Sorts the ids, and removes duplicates. */
static size_t sort_ids(uint32_t *ids, size_t count)
{
    if (count == 0)
        return 0;
    qsort(ids, count, sizeof(*ids), compare_ids);
    size_t kept = 1;
    for (size_t i = 1; i < count; i++) {
        if (ids[i] != ids[kept - 1])
            ids[kept++] = ids[i];
    }
    return kept;
}

/* The sources that overlap a target. */
static Run find_parents(const Run *sources, const PartitionRange *target)
{
    size_t first = 0;
    while (slice_compare(sources->ranges[first].max, target->min) <= 0)
        first++;
    size_t end = first + 1;
    while (end < sources->count && slice_compare(sources->ranges[end].min, target->max) < 0)
        end++;
    return (Run){.ranges = sources->ranges + first, .count = end - first};
}

/* All parents are kept, and of older ancestors the newest (I11). */
static void set_parents(Arena *arena, const Run *sources, PartitionRange *target)
{
    Run parents = find_parents(sources, target);
    size_t count = 0;
    for (size_t i = 0; i < parents.count; i++)
        count += parents.ranges[i].parent_count;
    uint32_t *older = ARENA_NEW_ARRAY(arena, uint32_t, count);
    count = 0;
    for (size_t i = 0; i < parents.count; i++) {
        for (size_t j = 0; j < parents.ranges[i].parent_count; j++)
            older[count++] = parents.ranges[i].parents[j];
    }
    count = sort_ids(older, count);
    size_t room = RANGE_PARENTS_MAX - parents.count;
    size_t kept = count < room ? count : room;
    uint32_t *all = ARENA_NEW_ARRAY(arena, uint32_t, kept + parents.count);
    for (size_t i = 0; i < kept; i++)
        all[i] = older[count - kept + i];
    for (size_t i = 0; i < parents.count; i++)
        all[kept + i] = parents.ranges[i].id;
    target->parents = all;
    target->parent_count = sort_ids(all, kept + parents.count);
}

static const PartitionRange *make_targets(Arena *arena, const ContainerRecord *record,
                                          const Run *sources, const CatalogChange *change,
                                          StoreSpace space, uint64_t lsn)
{
    size_t count = change->cut_count + 1;
    PartitionRange *targets = ARENA_NEW_ARRAY(arena, PartitionRange, count);
    for (size_t i = 0; i < count; i++) {
        targets[i] = (PartitionRange){
            .id = record->range_next + (uint32_t)i,
            .min = i == 0 ? sources->ranges[0].min : change->cuts[i - 1],
            .max = i + 1 == count ? sources->ranges[sources->count - 1].max : change->cuts[i],
            .space = space + i,
            .lsn = lsn,
        };
        set_parents(arena, sources, &targets[i]);
    }
    return targets;
}

/* Replaces 'old' by the container that the record describes. */
static Status replace(Work *work, const ContainerRecord *record, const Container *old,
                      Container **out, Error *err)
{
    const Database *database = snapshot_database(work->snapshot, record->database);
    Container *container = NULL;
    TRY(container_new(record, work->host, database, old, &container, err));
    record_put_container(work->txn, record);
    bool put = snapshot_put_container(work->snapshot, container_ref(container));
    ASSERT(put); /* the name is the old one's */
    *out = container;
    return STATUS_OK;
}

Status change_begin_move(Work *work, CatalogChange *change, Error *err)
{
    const Container *old = NULL;
    Run sources = {0};
    TRY(find_container(work, change, &old, err));
    if (old->pending_count > 0)
        return error_set(err, STATUS_CONFLICT, SUB_NONE,
                         "Ranges of the container are being split or merged already.");
    if (old->is_held)
        return error_set(err, STATUS_CONFLICT, SUB_NONE,
                         "The container is about to give its name to a copy.");
    TRY(find_sources(old, change, &sources, err));
    TRY(check_counts(old, &sources, change->cut_count + 1, err));
    TRY(check_cuts(old, &sources, change->cuts, change->cut_count, err));

    AUTO(arena_done) Arena arena;
    arena_init(&arena, 4096);
    StoreSpace space = 0;
    TRY(change_take_spaces(work, change->cut_count + 1, &space, err));
    TRY(change_place_spaces(work, space, change->cut_count + 1, sources.ranges[0].space, err));
    ContainerRecord record = container_record(old);
    record.pending = make_targets(&arena, &record, &sources, change, space, ++work->counters->lsn);
    record.pending_count = change->cut_count + 1;
    record.range_next += (uint32_t)record.pending_count;
    return replace(work, &record, old, &change->result_container, err);
}

Status change_end_move(Work *work, CatalogChange *change, Error *err)
{
    const Container *old = NULL;
    TRY(find_moving(work, change, &old, err));
    Run sources = {0};
    sources.ranges = container_sources(old, &sources.count);
    ASSERT(sources.ranges != NULL);
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 4096);
    ContainerRecord record = container_record(old);
    record.range_count = old->range_count - sources.count + old->pending_count;
    record.ranges_lsn = ++work->counters->lsn;
    PartitionRange *ranges = ARENA_NEW_ARRAY(&arena, PartitionRange, record.range_count);
    size_t count = 0;
    for (const PartitionRange *r = old->ranges; r < sources.ranges; r++)
        ranges[count++] = *r;
    for (size_t i = 0; i < old->pending_count; i++) {
        ranges[count] = old->pending[i];
        ranges[count++].lsn = record.ranges_lsn;
    }
    for (const PartitionRange *r = sources.ranges + sources.count;
         r < old->ranges + old->range_count; r++)
        ranges[count++] = *r;
    ASSERT(count == record.range_count);
    record.ranges = ranges;
    record.pending = NULL;
    record.pending_count = 0;

    AUTO(container_unref) Container *before = container_ref(old); /* the snapshot lets go of it */
    change_note_storage(work, old);
    TRY(replace(work, &record, old, &change->result_container, err));
    /* One piece for each: it is emptied after its own last reader (I12). */
    for (size_t i = 0; i < sources.count; i++)
        change_put_garbage(work, &sources.ranges[i], 1);
    change->before = TAKE(before);
    return STATUS_OK;
}

Status change_undo_move(Work *work, CatalogChange *change, Error *err)
{
    const Container *old = NULL;
    TRY(find_moving(work, change, &old, err));
    ContainerRecord record = container_record(old);
    record.pending = NULL;
    record.pending_count = 0;
    AUTO(container_unref) Container *before = container_ref(old);
    TRY(replace(work, &record, old, &change->result_container, err));
    change_put_garbage(work, before->pending, before->pending_count);
    change->before = TAKE(before);
    return STATUS_OK;
}
