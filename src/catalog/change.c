/* change.c - what each kind of change does, and when it is refused.
 *
 * Each function checks everything first and then changes the snapshot and the transaction, so a
 * refused change leaves no trace in its group. Runs on the catalogue's thread.
 */
#include "base/array.h"
#include "base/mem.h"
#include "catalog/change_int.h"
#include "catalog/cleaner_int.h"
#include "catalog/epk_range.h"
#include "catalog/offer_budgets_int.h"
#include "catalog/placement.h"

Status catalog_check_etag(Slice if_match, Slice etag, Error *err)
{
    if (if_match.len == 0 || slice_equal(if_match, SLICE("*")) || slice_equal(if_match, etag))
        return STATUS_OK;
    return error_set(err, STATUS_PRECONDITION_FAILED, SUB_NONE,
                     "One of the specified pre-condition is not met: If-Match is %.*s, the "
                     "resource's ETag is %.*s.",
                     SLICE_CUT(if_match, 80), SLICE_ARG(etag));
}

Status change_not_found(Error *err, const char *what)
{
    return error_set(err, STATUS_NOT_FOUND, SUB_NONE,
                     "Resource Not Found: the %s does not exist (any more).", what);
}

Status change_owner_not_found(Error *err, const char *what)
{
    return error_set(err, STATUS_NOT_FOUND, SUB_OWNER_NOT_FOUND,
                     "Owner resource does not exist: the %s was deleted.", what);
}

Status change_id_exists(Error *err, const char *what, Slice id)
{
    return error_set(err, STATUS_CONFLICT, SUB_NONE,
                     "Resource with specified id or name already exists: %s '%.*s'.", what,
                     SLICE_CUT(id, 260));
}

Status change_name_collision(Error *err)
{
    return error_set(err, STATUS_INTERNAL, SUB_NONE,
                     "The hash of the name is taken by another name; restart the server and try "
                     "again.");
}

Status change_take_number(uint32_t *next, uint32_t max, uint32_t *out, Error *err)
{
    ASSERT(*next > 0);
    if (*next >= max)
        return error_set(err, STATUS_UNAVAILABLE, SUB_NONE,
                         "This data folder has used up all resource numbers of this kind.");
    *out = (*next)++;
    return STATUS_OK;
}

/* Makes the offer that a new database or container asked for. */
static Status create_offer(Work *work, Provision provision, uint32_t database, uint32_t container,
                           Offer **out, Error *err)
{
    uint32_t number = 0;
    TRY(change_take_number(&work->counters->offer_next, RID_OFFER_MAX, &number, err));
    OfferRecord record = {
        .number = number,
        .database = database,
        .container = container,
        .lsn = work->counters->lsn,
        .ts_s = work->now_s,
        .provision = provision,
        .ru_ever = provision.ru,
        .replaced_at_s = work->now_s,
    };
    *out = offer_new(&record);
    return STATUS_OK;
}

static void put_offer(Work *work, Offer *offer)
{
    OfferRecord record = offer_record(offer);
    record_put_offer(work->txn, &record);
    snapshot_put_offer(work->snapshot, offer_ref(offer));
}

/* The budgets are set at once: no request finds the owner before the group is durable (I1). */
static void put_new_offer(Work *work, Offer *offer)
{
    put_offer(work, offer);
    offer_budgets_set(work->snapshot, offer, work->rules, work->now_us);
}

void change_drop_offer(Work *work, uint32_t number)
{
    if (number == 0)
        return;
    record_delete_offer(work->txn, number);
    snapshot_remove_offer(work->snapshot, number);
}

static Status create_database(Work *work, CatalogChange *change, Error *err)
{
    if (snapshot_database_by_id(work->snapshot, change->id) != NULL)
        return change_id_exists(err, "database", change->id);
    if (change->has_provision && work->rules->is_serverless)
        return error_set(
            err, STATUS_BAD_REQUEST, SUB_NONE,
            "Shared throughput database creation is not supported for serverless accounts.");
    if (change->has_provision)
        TRY(provision_check(&change->provision, &(ProvisionHistory){0}, err));
    DatabaseRecord record = {.id = change->id, .lsn = ++work->counters->lsn, .ts_s = work->now_s};
    TRY(change_take_number(&work->counters->database_next, RID_DATABASE_MAX, &record.number, err));
    AUTO(offer_unref) Offer *offer = NULL;
    if (change->has_provision) {
        TRY(create_offer(work, change->provision, record.number, 0, &offer, err));
        record.offer = offer->info.number;
        record.partitions = provision_partitions(&change->provision, work->rules);
    }
    AUTO(database_unref) Database *database = database_new(&record);
    if (!snapshot_put_database(work->snapshot, database_ref(database)))
        return change_name_collision(err);
    record_put_database(work->txn, &record);
    if (offer != NULL)
        put_new_offer(work, offer);
    change->result_offer = TAKE(offer);
    change->result_database = TAKE(database);
    return STATUS_OK;
}

void container_list_add(ContainerList *list, const Container *container)
{
    ARRAY_GROW(list->items, list->count, list->capacity, 16);
    list->items[list->count++] = container_ref(container);
}

void container_list_cut(ContainerList *list, size_t count)
{
    while (list->count > count)
        container_unref(list->items[--list->count]);
}

void container_list_clear(ContainerList *list)
{
    container_list_cut(list, 0);
}

void change_put_garbage(Work *work, const PartitionRange *ranges, size_t count)
{
    Garbage garbage;
    for (size_t from = 0; garbage_next(ranges, count, &from, &garbage);)
        record_put_garbage(work->txn, garbage);
}

/* The garbage records are of the same commit (I5). */
void change_drop_container(Work *work, const Container *container)
{
    record_delete_container(work->txn, container->database, container->info.number);
    change_drop_scripts(work, container);
    change_drop_offer(work, container->offer);
    change_put_garbage(work, container->pending, container->pending_count);
    if (snapshot_is_saved(work->snapshot, container->database, container->info.number)) {
        ContainerRecord record = container_record(container);
        record.pending_count = 0;
        record_put_kept(work->txn, &record);
        container_list_add(work->kept, container);
        return;
    }
    change_put_garbage(work, container->ranges, container->range_count);
    container_list_add(work->dropped, container);
}

void change_drop_database(Work *work, const Database *database)
{
    uint32_t number = database->info.number;
    const EncryptionKey *key;
    for (uint32_t from = 0; (key = snapshot_next_key(work->snapshot, number, from)) != NULL;
         from = key->info.number + 1)
        record_delete_key(work->txn, number, key->info.number);
    change_drop_users(work, number);
    record_delete_database(work->txn, number);
    change_drop_offer(work, database->offer);
    snapshot_remove_database(work->snapshot, number);
}

static Status delete_database(Work *work, CatalogChange *change, Error *err)
{
    const Database *database = snapshot_database(work->snapshot, change->database);
    if (database == NULL)
        return change_not_found(err, "database");
    TRY(catalog_check_etag(change->if_match, database->info.etag, err));
    work->counters->lsn++;
    const Container *container;
    for (uint32_t from = 0;
         (container = snapshot_next_container(work->snapshot, change->database, from)) != NULL;
         from = container->info.number + 1)
        change_drop_container(work, container);
    change_drop_database(work, database);
    return STATUS_OK;
}

Status change_take_spaces(Work *work, size_t count, StoreSpace *first, Error *err)
{
    ASSERT(count > 0);
    ASSERT(count <= RANGES_MAX);
    ASSERT(work->counters->space_next >= SPACE_PARTITION_FIRST);
    if (work->counters->space_next > (UINT64_C(1) << 52))
        return error_set(err, STATUS_UNAVAILABLE, SUB_NONE,
                         "This data folder has used up all space numbers.");
    *first = work->counters->space_next;
    work->counters->space_next += count;
    return STATUS_OK;
}

Status change_place_spaces(const Work *work, StoreSpace first, size_t count, StoreSpace beside,
                           Error *err)
{
    const CatalogPlacement *placement = work->placement;
    return placement == NULL ? STATUS_OK
                             : placement->create(placement->ctx, first, count, beside, err);
}

/* The space of a range, in another container of the database, that spends its budget number 'at'. 0
 * if there is none. */
static StoreSpace find_sharing(const Work *work, uint32_t database, size_t at)
{
    const Container *container;
    for (uint32_t from = 0;
         (container = snapshot_next_container(work->snapshot, database, from)) != NULL;
         from = container->info.number + 1) {
        if (container->offer == 0 && at < container->range_count)
            return container->ranges[at].space;
    }
    return 0;
}

/* Ranges that share the throughput of their database are placed one by one: see I9. */
static Status place_ranges(const Work *work, const ContainerRecord *record, bool is_sharing,
                           Error *err)
{
    StoreSpace first = record->ranges[0].space;
    if (work->placement == NULL || !is_sharing)
        return change_place_spaces(work, first, record->range_count, 0, err);
    for (size_t i = 0; i < record->range_count; i++)
        TRY(change_place_spaces(work, first + i, 1, find_sharing(work, record->database, i), err));
    return STATUS_OK;
}

/* Divides the whole range of hashes evenly and gives each part a space of its own. */
static Status make_ranges(Work *work, Arena *arena, PartitionKind kind, uint32_t first,
                          uint32_t count, ContainerRecord *record, Error *err)
{
    ASSERT(count > 0 && count <= RANGES_MAX);
    ASSERT(first <= RANGE_IDS_MAX / 2);
    StoreSpace space = 0;
    TRY(change_take_spaces(work, count, &space, err));
    const Slice *bounds = epk_initial_bounds(arena, kind, count);
    PartitionRange *ranges = ARENA_NEW_ARRAY(arena, PartitionRange, count);
    for (uint32_t i = 0; i < count; i++) {
        ranges[i] = (PartitionRange){
            .id = first + i,
            .min = bounds[i],
            .max = bounds[i + 1],
            .space = space + i,
            .lsn = record->lsn,
        };
    }
    record->ranges = ranges;
    record->range_count = count;
    record->range_next = first + count;
    record->ranges_lsn = record->lsn;
    return STATUS_OK;
}

typedef struct NewThroughput {
    bool is_own; /* false if it shares the database's, or if nothing is provisioned */
    Provision provision;
    uint32_t partitions;
} NewThroughput;

/* Which throughput a new container gets, and how many partitions: its own if it asked or if there
 * is none to share. */
static Status choose_provision(Work *work, const CatalogChange *change, const Database *database,
                               bool is_fixed, NewThroughput *out, Error *err)
{
    *out = (NewThroughput){.partitions = 1};
    if (work->rules->is_serverless && change->has_provision)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "Setting offer throughput or autopilot on container is not supported for "
                         "serverless accounts.");
    if (work->rules->is_serverless)
        return STATUS_OK;
    out->is_own = change->has_provision || database->offer == 0 || is_fixed;
    if (out->is_own) {
        out->provision = change->has_provision ? change->provision : work->rules->fallback;
        if (!is_fixed)
            out->partitions = provision_partitions_new(&out->provision, work->rules);
        return provision_check(&out->provision, &(ProvisionHistory){.is_fixed = is_fixed}, err);
    }
    if (snapshot_shared_count(work->snapshot, database->info.number) >= SHARED_CONTAINERS_MAX)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "The database's throughput is shared by %d containers, which is the most "
                         "there can be; give this container throughput of its own "
                         "(x-ms-offer-throughput).",
                         SHARED_CONTAINERS_MAX);
    out->partitions = database->partitions;
    return STATUS_OK;
}

static Status create_container(Work *work, CatalogChange *change, Error *err)
{
    const Database *database = snapshot_database(work->snapshot, change->database);
    if (database == NULL)
        return change_owner_not_found(err, "database");
    Slice id = json_string(json_get(change->definition, SLICE("id")));
    if (snapshot_container_by_id(work->snapshot, change->database, id) != NULL)
        return change_id_exists(err, "container", id);

    AUTO(arena_done) Arena arena;
    arena_init(&arena, 4096);
    PartitionKeyDefinition key;
    TRY(container_partition_key(&arena, change->definition, &key, err));
    bool is_fixed = key.kind == PARTITION_NONE;
    NewThroughput throughput;
    TRY(choose_provision(work, change, database, is_fixed, &throughput, err));

    ContainerRecord record = {
        .database = change->database,
        .lsn = ++work->counters->lsn,
        .ts_s = work->now_s,
        .definition = change->definition,
    };
    TRY(change_take_number(&work->counters->container_next, RID_CONTAINER_MAX, &record.number,
                           err));
    TRY(make_ranges(work, &arena, key.kind, change->first_range, throughput.partitions, &record,
                    err));
    AUTO(offer_unref) Offer *offer = NULL;
    if (throughput.is_own) {
        TRY(create_offer(work, throughput.provision, change->database, record.number, &offer, err));
        record.offer = offer->info.number;
    }
    TRY(place_ranges(work, &record, record.offer == 0 && database->partitions > 0, err));
    AUTO(container_unref) Container *container = NULL;
    TRY(container_new(&record, work->host, database, NULL, &container, err));
    if (!snapshot_put_container(work->snapshot, container_ref(container)))
        return change_name_collision(err);
    record_put_container(work->txn, &record);
    if (offer != NULL)
        put_new_offer(work, offer);
    else if (work->rules->is_serverless)
        offer_budgets_set_serverless(container, work->rules, work->now_us);
    change->result_offer = TAKE(offer);
    change->result_container = TAKE(container);
    return STATUS_OK;
}

static Status replace_container(Work *work, CatalogChange *change, Error *err)
{
    const Container *old = snapshot_container(work->snapshot, change->database, change->container);
    if (old == NULL)
        return change_not_found(err, "container");
    TRY(catalog_check_etag(change->if_match, old->info.etag, err));
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 4096);
    ContainerRecord record = container_record(old);
    TRY(container_definition_replace(&arena, old->definition, change->definition,
                                     &record.definition, err));
    record.lsn = ++work->counters->lsn;
    record.ts_s = work->now_s;
    AUTO(container_unref) Container *container = NULL;
    TRY(container_new(&record, work->host, NULL, old, &container, err));
    record_put_container(work->txn, &record);
    bool put = snapshot_put_container(work->snapshot, container_ref(container));
    ASSERT(put); /* the name is the old one's */
    change->result_container = TAKE(container);
    return STATUS_OK;
}

static Status create_key(Work *work, CatalogChange *change, Error *err)
{
    if (snapshot_database(work->snapshot, change->database) == NULL)
        return change_owner_not_found(err, "database");
    Slice id = json_string(json_get(change->definition, SLICE("id")));
    if (snapshot_key_by_id(work->snapshot, change->database, id) != NULL)
        return change_id_exists(err, "client encryption key", id);
    EncryptionKeyRecord record = {
        .database = change->database,
        .lsn = ++work->counters->lsn,
        .ts_s = work->now_s,
        .created_at_s = work->now_s,
        .definition = change->definition,
    };
    TRY(change_take_number(&work->counters->key_next, RID_KEY_MAX, &record.number, err));
    AUTO(encryption_key_unref) EncryptionKey *key = NULL;
    TRY(encryption_key_new(&record, &key, err));
    if (!snapshot_put_key(work->snapshot, encryption_key_ref(key)))
        return change_name_collision(err);
    record_put_key(work->txn, &record);
    change->result_key = TAKE(key);
    return STATUS_OK;
}

static Status replace_key(Work *work, CatalogChange *change, Error *err)
{
    const EncryptionKey *old = snapshot_key(work->snapshot, change->database, change->key);
    if (old == NULL)
        return change_not_found(err, "client encryption key");
    TRY(catalog_check_etag(change->if_match, old->info.etag, err));
    Slice id = json_string(json_get(change->definition, SLICE("id")));
    if (!slice_equal(id, old->info.id))
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "The id of a client encryption key cannot be changed; it is '%.*s', found "
                         "'%.*s'.",
                         SLICE_CUT(old->info.id, 200), SLICE_CUT(id, 200));
    EncryptionKeyRecord record = encryption_key_record(old);
    record.lsn = ++work->counters->lsn;
    record.ts_s = work->now_s;
    record.definition = change->definition;
    AUTO(encryption_key_unref) EncryptionKey *key = NULL;
    TRY(encryption_key_new(&record, &key, err));
    record_put_key(work->txn, &record);
    bool put = snapshot_put_key(work->snapshot, encryption_key_ref(key));
    ASSERT(put); /* the name is the old one's */
    change->result_key = TAKE(key);
    return STATUS_OK;
}

void change_note_storage(Work *work, const Container *container)
{
    const Database *database = snapshot_database(work->snapshot, container->database);
    uint32_t number = container->offer != 0 ? container->offer : database->offer;
    const Offer *offer = snapshot_offer(work->snapshot, number);
    if (offer == NULL)
        return;
    OfferUsage usage = catalog_offer_usage(work->snapshot, offer, work->now_us);
    if (usage.storage_kb <= offer->storage_kb_ever)
        return;
    OfferRecord record = offer_record(offer);
    record.storage_kb_ever = usage.storage_kb;
    AUTO(offer_unref) Offer *noted = offer_new(&record);
    put_offer(work, noted);
}

static Status delete_container(Work *work, CatalogChange *change, Error *err)
{
    const Container *container =
        snapshot_container(work->snapshot, change->database, change->container);
    if (container == NULL)
        return change_not_found(err, "container");
    TRY(catalog_check_etag(change->if_match, container->info.etag, err));
    work->counters->lsn++;
    if (container->offer == 0)
        change_note_storage(work, container);
    change_drop_container(work, container);
    snapshot_remove_container(work->snapshot, change->database, change->container);
    return STATUS_OK;
}

static Status replace_offer(Work *work, CatalogChange *change, Error *err)
{
    const Offer *old = snapshot_offer(work->snapshot, change->offer);
    if (old == NULL)
        return change_not_found(err, "offer");
    TRY(catalog_check_etag(change->if_match, old->info.etag, err));
    OfferUsage usage = catalog_offer_usage(work->snapshot, old, work->now_us);
    ProvisionHistory history = catalog_provision_history(work->snapshot, old, &usage);
    TRY(provision_check(&change->provision, &history, err));
    OfferRecord record = offer_record(old);
    record.lsn = ++work->counters->lsn;
    record.ts_s = work->now_s;
    record.provision = change->provision;
    if (change->has_buckets)
        record.buckets = change->buckets;
    record.replaced_at_s = work->now_s;
    record.storage_kb_ever = usage.storage_kb;
    if (record.ru_ever < change->provision.ru)
        record.ru_ever = change->provision.ru;
    Offer *offer = offer_new(&record);
    put_offer(work, offer);
    change->history = catalog_provision_history(work->snapshot, offer, &usage);
    change->usage = usage;
    change->result_offer = offer;
    return STATUS_OK;
}

/* Whether the change frees more than it takes. The end of a move frees its sources, which were
 * copied. */
static bool makes_room(CatalogOp op)
{
    return op == CATALOG_DELETE_DATABASE || op == CATALOG_DELETE_CONTAINER ||
           op == CATALOG_DELETE_SCRIPT || op == CATALOG_DELETE_USER ||
           op == CATALOG_DELETE_PERMISSION || op == CATALOG_END_MOVE || op == CATALOG_UNDO_MOVE ||
           op == CATALOG_UNDO_SWAP || op == CATALOG_END_RESTORE || op == CATALOG_DROP_STATE;
}

/* On a full disk, a change that takes room is refused here, alone (I7). Otherwise the commit of its
 * group would fail, and with it the drops, which make room. */
static Status take_room(Work *work, CatalogOp op, Error *err)
{
    if (makes_room(op))
        return STATUS_OK;
    if (work->full.status != STATUS_OK) {
        *err = work->full;
        return err->status;
    }
    work->takes_room = true;
    return STATUS_OK;
}

/* A change that nobody waits for any more is not made after its client was told that nothing is
 * known of it. */
static Status check_deadline(const Work *work, const CatalogChange *change, Error *err)
{
    if (LIKELY(change->deadline_us == 0 || work->now_us < change->deadline_us))
        return STATUS_OK;
    return error_set(err, STATUS_THROTTLED, SUB_SYSTEM_BUSY,
                     "The change has waited for longer than the node that has sent it waits for "
                     "its answer. Nothing was done.");
}

void change_apply(Work *work, CatalogChange *change)
{
    typedef Status Apply(Work * work, CatalogChange * change, Error * err);
    static Apply *const applies[] = {
        [CATALOG_CREATE_DATABASE] = create_database,
        [CATALOG_DELETE_DATABASE] = delete_database,
        [CATALOG_CREATE_CONTAINER] = create_container,
        [CATALOG_REPLACE_CONTAINER] = replace_container,
        [CATALOG_DELETE_CONTAINER] = delete_container,
        [CATALOG_REPLACE_OFFER] = replace_offer,
        [CATALOG_CREATE_KEY] = create_key,
        [CATALOG_REPLACE_KEY] = replace_key,
        [CATALOG_CREATE_SCRIPT] = change_create_script,
        [CATALOG_REPLACE_SCRIPT] = change_replace_script,
        [CATALOG_DELETE_SCRIPT] = change_delete_script,
        [CATALOG_CREATE_USER] = change_create_user,
        [CATALOG_REPLACE_USER] = change_replace_user,
        [CATALOG_DELETE_USER] = change_delete_user,
        [CATALOG_CREATE_PERMISSION] = change_create_permission,
        [CATALOG_REPLACE_PERMISSION] = change_replace_permission,
        [CATALOG_DELETE_PERMISSION] = change_delete_permission,
        [CATALOG_BEGIN_MOVE] = change_begin_move,
        [CATALOG_END_MOVE] = change_end_move,
        [CATALOG_UNDO_MOVE] = change_undo_move,
        [CATALOG_BEGIN_SWAP] = change_begin_swap,
        [CATALOG_END_SWAP] = change_end_swap,
        [CATALOG_UNDO_SWAP] = change_undo_swap,
        [CATALOG_SAVE_STATE] = change_saved_state,
        [CATALOG_RESTORE_STATE] = change_saved_state,
        [CATALOG_END_RESTORE] = change_saved_state,
        [CATALOG_DROP_STATE] = change_saved_state,
    };
    ASSERT((size_t)change->op < ARRAY_COUNT(applies) && applies[change->op] != NULL);
    Error *err = &change->error;
    change->status = check_deadline(work, change, err);
    if (change->status == STATUS_OK)
        change->status = take_room(work, change->op, err);
    if (change->status == STATUS_OK)
        change->status = applies[change->op](work, change, err);
}

void catalog_change_release(CatalogChange *change)
{
    database_unref(TAKE(change->result_database));
    container_unref(TAKE(change->result_container));
    offer_unref(TAKE(change->result_offer));
    encryption_key_unref(TAKE(change->result_key));
    stored_script_unref(TAKE(change->result_script));
    user_unref(TAKE(change->result_user));
    permission_unref(TAKE(change->result_permission));
    container_unref(TAKE(change->before));
    container_list_clear(&change->revived);
    mem_free(TAKE(change->revived.items));
    change->revived.capacity = 0;
}
