/* change_swap.c - the changes with which a copy of a container takes its name over.
 *
 *     name             begin                    end
 *     orders           1 ---> 1, held ----------------> 2, knows the key of 1
 *     orders-copy      2      2
 *     orders-old                                 \----> 1, next generation
 *
 * What makes a client that knew the container 1 go on with 2, without an answer that is wrong:
 *
 *   - no range of 2 has an id that 1 ever had, so that what a client knows of ranges and LSNs
 * (maps, session tokens, positions) is found to be of ranges that are gone, never of others;
 *   - the ranges of 2 are newer than anything that was said about 1, for clients that ask for what
 *     has changed in the map;
 *   - 2 remembers the partition key of 1, by which such clients still address items.
 *
 * The sender holds the writes of 1 from begin to end (partition/write_hold.h). Runs on the
 * catalogue's thread.
 */
#include "catalog/change_int.h"

static Status find_container(const Work *work, uint32_t database, uint32_t number,
                             const Container **out, Error *err)
{
    *out = snapshot_container(work->snapshot, database, number);
    return *out != NULL ? STATUS_OK : change_not_found(err, "container");
}

/* The same container, held or not. */
static Status set_held(Work *work, CatalogChange *change, const Container *old, bool is_held,
                       Error *err)
{
    ContainerRecord record = container_record(old);
    record.is_held = is_held;
    AUTO(container_unref) Container *container = NULL;
    TRY(container_new(&record, work->host, NULL, old, &container, err));
    record_put_container(work->txn, &record); /* as it is stored already */
    bool put = snapshot_put_container(work->snapshot, container_ref(container));
    ASSERT(put); /* the name is the old one's */
    change->result_container = TAKE(container);
    return STATUS_OK;
}

Status change_begin_swap(Work *work, CatalogChange *change, Error *err)
{
    const Container *old = NULL;
    TRY(find_container(work, change->database, change->container, &old, err));
    if (old->is_held)
        return error_set(err, STATUS_CONFLICT, SUB_NONE, "Another swap is under way.");
    if (old->pending_count > 0)
        return error_set(err, STATUS_CONFLICT, SUB_NONE,
                         "Ranges of the container are being split or merged; try again later.");
    return set_held(work, change, old, true, err);
}

Status change_undo_swap(Work *work, CatalogChange *change, Error *err)
{
    const Container *old = NULL;
    TRY(find_container(work, change->database, change->container, &old, err));
    return old->is_held ? set_held(work, change, old, false, err) : STATUS_OK;
}

/* The definition with another id. */
static Json rename_definition(Arena *arena, Json definition, Slice id)
{
    JsonBuilder b;
    json_build(&b, arena);
    json_begin_object(&b);
    json_key(&b, SLICE("id"));
    json_add_string(&b, id);
    for (JsonIter it = json_iter(definition); json_next(&it);) {
        if (slice_equal(it.name, SLICE("id")))
            continue;
        json_key(&b, it.name);
        json_add(&b, it.value);
    }
    json_end(&b);
    return json_built(&b);
}

/* What is kept of the container whose name is taken over: its partition key, if it has one, and
 * when that was. */
static Json describe_before(Arena *arena, Json definition, uint64_t lsn)
{
    JsonBuilder b;
    json_build(&b, arena);
    json_begin_object(&b);
    json_key(&b, SLICE("lsn"));
    json_add_i64(&b, (int64_t)lsn);
    Json key = json_get(definition, SLICE("partitionKey"));
    if (!json_is(key, JSON_UNDEFINED)) {
        json_key(&b, SLICE("partitionKey"));
        json_add(&b, key);
    }
    json_end(&b);
    return json_built(&b);
}

static Status check_swap(const Work *work, const CatalogChange *change, const Container *old,
                         const Container *copy, Error *err)
{
    if (!old->is_held)
        return error_set(err, STATUS_CONFLICT, SUB_NONE, "The swap was not begun.");
    if (old == copy || copy->is_held)
        return error_set(err, STATUS_CONFLICT, SUB_NONE,
                         "A container cannot take its own name over, or while it is swapped "
                         "itself.");
    const Container *taken = snapshot_container_by_id(work->snapshot, change->database, change->id);
    if (taken != NULL)
        return change_id_exists(err, "container", change->id);
    for (size_t i = 0; i < copy->range_count; i++) {
        if (copy->ranges[i].id < old->range_next)
            return error_set(err, STATUS_CONFLICT, SUB_NONE,
                             "The copy has a partition key range '%u', which clients of the "
                             "container could take for its own: it has used ids up to %u. Make "
                             "the copy with a higher x-orrery-first-range.",
                             copy->ranges[i].id, old->range_next - 1);
    }
    return STATUS_OK;
}

Status change_end_swap(Work *work, CatalogChange *change, Error *err)
{
    const Container *old = NULL;
    const Container *copy = NULL;
    TRY(find_container(work, change->database, change->container, &old, err));
    TRY(find_container(work, change->database, change->copy, &copy, err));
    TRY(check_swap(work, change, old, copy, err));
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 4096);
    uint64_t lsn = ++work->counters->lsn;

    ContainerRecord retired = container_record(old);
    retired.definition = rename_definition(&arena, old->definition, change->id);
    retired.lsn = lsn;
    retired.ts_s = work->now_s;
    retired.is_held = false;
    retired.generation++;

    ContainerRecord named = container_record(copy);
    named.definition = rename_definition(&arena, copy->definition, old->info.id);
    named.lsn = lsn;
    named.ts_s = work->now_s;
    named.before = describe_before(&arena, old->definition, lsn);
    PartitionRange *ranges = ARENA_NEW_ARRAY(&arena, PartitionRange, copy->range_count);
    for (size_t i = 0; i < copy->range_count; i++) {
        ranges[i] = copy->ranges[i];
        ranges[i].lsn = lsn;
    }
    named.ranges = ranges;
    named.ranges_lsn = lsn;

    AUTO(container_unref) Container *first = NULL;
    AUTO(container_unref) Container *second = NULL;
    TRY(container_new(&retired, work->host, NULL, old, &first, err));
    TRY(container_new(&named, work->host, NULL, copy, &second, err));
    if (!snapshot_swap_containers(work->snapshot, container_ref(first), container_ref(second)))
        return change_name_collision(err);
    record_put_container(work->txn, &retired);
    record_put_container(work->txn, &named);
    change->before = TAKE(first);
    change->result_container = TAKE(second);
    return STATUS_OK;
}
