/* append_stage.c - takes transactions, and appends them to the journal in groups.
 *
 * The commit thread only puts transactions into 'waiting'. A lane takes from there what belongs to
 * one append: of spaces that are in no other append, oldest first. So the entries of a space are
 * appended one after the other, while the applier writes those before it. The lane gives
 * the group to the applier before the space may be appended to again, so that the order of a space
 * is the same in all stages.
 *
 * A transaction that is refused takes the same way, because those of its space that came before it
 * must be completed first. Only if there are none, it is refused at once: a lane may wait for the
 * engine for long.
 */
#include "base/array.h"
#include "base/mem.h"
#include "store/replicated/entry_format_int.h"
#include "store/replicated/replicated_int.h"

/* ---- refusing ---- */

static Status refuse_not_owner(StoreSpace space, Error *err)
{
    return error_set(err, STATUS_NOT_OWNER, SUB_NONE, "this node does not own space %llu",
                     (unsigned long long)space);
}

Status append_check_speed(const Replication *replication, Error *err)
{
    uint64_t now_us = clock_monotonic_us(replication->clock);
    for (size_t i = 0; i < LANES; i++) {
        const AppendLane *lane = &replication->lanes[i];
        /* While the engine is away one append at a time tries it, and nothing waits for that one.
         */
        uint64_t from_us = lane->silent_us != 0 ? lane->silent_us : lane->began_us;
        if (lane->began_us == 0 || now_us < from_us + APPEND_US_SLOW)
            continue;
        Status status = error_set(err, STATUS_THROTTLED, SUB_SYSTEM_BUSY,
                                  "the engine of the journal has not answered for %llu ms",
                                  (unsigned long long)((now_us - from_us) / 1000));
        err->retry_after_ms = RETRY_AFTER_MS;
        return status;
    }
    return STATUS_OK;
}

/* Under 'lock'. */
static Status check_journal(const Replication *replication, Error *err)
{
    if (!replication->is_journal_full)
        return STATUS_OK;
    Status status = error_set(err, STATUS_THROTTLED, SUB_SYSTEM_BUSY,
                              "the journal has as many bytes as --journal-bytes allows: a node is "
                              "behind, or is dead and not yet expelled");
    err->retry_after_ms = RETRY_AFTER_MS;
    return status;
}

void replication_set_full(Replication *replication, bool is_full)
{
    pthread_mutex_lock(&replication->lock);
    replication->is_journal_full = is_full;
    pthread_mutex_unlock(&replication->lock);
}

Status replicated_room(Engine *engine, EngineNeed need, size_t bytes, Error *err)
{
    Replication *replication = replication_of(engine);
    pthread_mutex_lock(&replication->lock);
    Status status = append_check_speed(replication, err);
    if (status == STATUS_OK && need == ENGINE_TAKES_ROOM)
        status = check_journal(replication, err);
    pthread_mutex_unlock(&replication->lock);
    TRY(status);
    return replication->local->ops->room(replication->local, need, bytes, err);
}

AppendGroup *append_group_new(void)
{
    AppendGroup *group = MEM_NEW(AppendGroup);
    group->refused_end = &group->refused;
    return group;
}

void append_group_free(AppendGroup *group)
{
    mem_free(group->slots);
    mem_free(group->reasons);
    mem_free(group);
}

void append_group_refuse(AppendGroup *group, EngineTxn *txn, const Error *reason)
{
    txn->next = NULL;
    *group->refused_end = txn;
    group->refused_end = &txn->next;
    ARRAY_GROW(group->reasons, group->reason_count, group->reason_capacity, 8);
    group->reasons[group->reason_count++] = *reason;
}

/* The reason of a transaction that was surely not done. */
static void not_now(Error *err, const char *reason)
{
    err->status =
        error_set(err, STATUS_THROTTLED, SUB_SYSTEM_BUSY, "nothing was written: %.400s", reason);
    err->retry_after_ms = RETRY_AFTER_MS;
}

/* Under 'lock'. */
static void push_ready(Replication *replication, AppendGroup *group)
{
    group->next = NULL;
    *replication->ready_end = group;
    replication->ready_end = &group->next;
    pthread_cond_signal(&replication->has_ready);
}

/* Under 'lock': takes the transaction at '*link' out of 'waiting'. */
static EngineTxn *take_waiting(Replication *replication, EngineTxn **link)
{
    EngineTxn *txn = *link;
    *link = txn->next;
    if (replication->waiting_end == &txn->next)
        replication->waiting_end = link;
    return txn;
}

void append_refuse_waiting(Replication *replication, ReplicaSpace *space, const Error *reason)
{
    AppendGroup *group = append_group_new();
    for (EngineTxn **link = &replication->waiting; *link != NULL;) {
        if ((*link)->space == space->space)
            append_group_refuse(group, take_waiting(replication, link), reason);
        else
            link = &(*link)->next;
    }
    if (group->refused != NULL)
        push_ready(replication, group);
    else
        append_group_free(group);
}

/* Under 'lock', when an append has got no answer until its deadline. What waits would wait as long
 * for the next one, and the end of the store for all of them one after the other. */
static void refuse_all_waiting(Replication *replication)
{
    Error reason;
    not_now(&reason, "the engine of the journal does not answer");
    AppendGroup *group = append_group_new();
    for (EngineTxn **link = &replication->waiting; *link != NULL;) {
        const ReplicaSpace *space = spaces_find(replication, (*link)->space);
        /* Not before what is in an append of another lane. A space that is lost says so itself. */
        if (space->group == NULL && !space->is_lost)
            append_group_refuse(group, take_waiting(replication, link), &reason);
        else
            link = &(*link)->next;
    }
    if (group->refused != NULL)
        push_ready(replication, group);
    else
        append_group_free(group);
}

/* ---- taking ---- */

/* Under 'lock'. Whether the transaction is refused right now. */
static Status check_taken(const Replication *replication, const ReplicaSpace *space,
                          const EngineTxn *txn, Error *err)
{
    if (space != NULL && space->under_way > 0)
        return STATUS_OK; /* decided when it is its turn */
    if (space == NULL || space->role != SPACE_OWNED || space->is_closing)
        return refuse_not_owner(txn->space, err);
    if (!txn->makes_room)
        TRY(check_journal(replication, err));
    return append_check_speed(replication, err);
}

/* Under 'lock'. False if it can be completed at once. */
static bool take_barrier(Replication *replication, EngineTxn *txn)
{
    txn->number = replication->next_number;
    if (replication->under_way == 0)
        return false;
    ARRAY_GROW(replication->barriers, replication->barrier_count, replication->barrier_capacity, 4);
    replication->barriers[replication->barrier_count++] = (Barrier){txn, replication->under_way};
    return true;
}

/* Under 'lock'. False, with a reason unless it has succeeded, if it can be completed at once. */
static bool take(Replication *replication, EngineTxn *txn, Error *err)
{
    err->status = STATUS_OK;
    txn->next = NULL;
    if (txn->bytes == 0)
        return take_barrier(replication, txn);
    ReplicaSpace *space = spaces_find(replication, txn->space);
    if (check_taken(replication, space, txn, err) != STATUS_OK)
        return false;
    txn->number = replication->next_number++;
    space->under_way++;
    replication->under_way++;
    *replication->waiting_end = txn;
    replication->waiting_end = &txn->next;
    return true;
}

void replicated_submit(Engine *engine, EngineTxn *first)
{
    Replication *replication = replication_of(engine);
    while (first != NULL) {
        EngineTxn *txn = first;
        first = txn->next;
        Error err;
        pthread_mutex_lock(&replication->lock);
        bool is_taken = take(replication, txn, &err);
        pthread_mutex_unlock(&replication->lock);
        if (!is_taken)
            engine_complete(txn, err.status != STATUS_OK ? &err : NULL);
    }
    pthread_mutex_lock(&replication->lock);
    pthread_cond_broadcast(&replication->has_work);
    pthread_mutex_unlock(&replication->lock);
}

void replicated_drain(Engine *engine)
{
    Replication *replication = replication_of(engine);
    pthread_mutex_lock(&replication->lock);
    while (replication->under_way > 0 || replication->ending > 0)
        pthread_cond_wait(&replication->changed, &replication->lock);
    pthread_mutex_unlock(&replication->lock);
}

/* ---- one group ---- */

static AppendSlot *slot_of(AppendGroup *group, ReplicaSpace *space)
{
    for (size_t i = group->slot_count; space->group == group && i-- > 0;) {
        if (group->slots[i].space == space)
            return &group->slots[i];
    }
    ARRAY_GROW(group->slots, group->slot_count, group->slot_capacity, 8);
    AppendSlot *slot = &group->slots[group->slot_count++];
    *slot = (AppendSlot){.space = space, .before = space->appended};
    space->group = group;
    return slot;
}

static void add_to_slot(AppendGroup *group, ReplicaSpace *space, EngineTxn *txn)
{
    AppendSlot *slot = slot_of(group, space);
    txn->next = NULL;
    /* Slots move when their array grows, so that the end is not kept in them while it is empty. */
    if (slot->first == NULL)
        slot->first = txn;
    else
        *slot->end = txn;
    slot->end = &txn->next;
    slot->count++;
}

/* Under 'lock', when it is the turn of a transaction. 'full' are the reasons for which what takes
 * room is refused, 'no_room' those for which everything is. */
static Status check_turn(const Replication *replication, const ReplicaSpace *space,
                         const EngineTxn *txn, const Error *full, const Error *no_room, Error *err)
{
    bool is_late = space->is_closing && txn->number >= space->closing_from;
    if (space->role != SPACE_OWNED || space->is_lost || is_late)
        return refuse_not_owner(space->space, err);
    if (!txn->makes_room)
        TRY(check_journal(replication, err));
    *err = txn->makes_room ? *no_room : *full;
    return err->status;
}

/* Under 'lock'. NULL if there is nothing to do now; 'full' and 'no_room' as for check_turn. */
static AppendGroup *take_group(Replication *replication, const Error *full, const Error *no_room)
{
    AppendGroup *group = append_group_new();
    size_t bytes = 0;
    for (EngineTxn **link = &replication->waiting; *link != NULL;) {
        ReplicaSpace *space = spaces_find(replication, (*link)->space);
        ASSERT(space != NULL);
        if (space->group != NULL && space->group != group) {
            link = &(*link)->next;
            continue;
        }
        Error err;
        if (check_turn(replication, space, *link, full, no_room, &err) != STATUS_OK) {
            append_group_refuse(group, take_waiting(replication, link), &err);
        } else if (bytes == 0 || bytes + (*link)->bytes <= APPEND_BYTES_MAX) {
            bytes += (*link)->bytes;
            add_to_slot(group, space, take_waiting(replication, link));
        } else {
            break;
        }
    }
    if (group->slot_count > 0 || group->refused != NULL)
        return group;
    append_group_free(group);
    return NULL;
}

/* The entries of a group, in the order of its slots. */
typedef struct Entries {
    JournalAppend *appends;
    Buf *bytes;
    size_t count;
} Entries;

static void entries_done(Entries *entries)
{
    for (size_t i = 0; i < entries->count; i++)
        buf_done(&entries->bytes[i]);
    mem_free(entries->bytes);
    mem_free(entries->appends);
}
DEFINE_AUTO_VALUE(Entries, entries_done)

/* Fails only for a transaction that is alone in its group: see APPEND_BYTES_MAX. */
static Status make_entries(const AppendGroup *group, uint32_t format, Entries *entries, Error *err)
{
    static_assert(APPEND_BYTES_MAX < JOURNAL_ENTRY_BYTES_MAX / 2, "only one can be too large");
    EntryWriter *writer = MEM_NEW(EntryWriter);
    entry_writer_init(writer);
    entries->count = group->slot_count;
    entries->appends = MEM_NEW_ARRAY(JournalAppend, group->slot_count);
    entries->bytes = MEM_NEW_ARRAY(Buf, group->slot_count);
    Status status = STATUS_OK;
    for (size_t i = 0; i < group->slot_count; i++) {
        const AppendSlot *slot = &group->slots[i];
        for (const EngineTxn *txn = slot->first; txn != NULL; txn = txn->next)
            entry_add(writer, &txn->writes);
        buf_init(&entries->bytes[i], JOURNAL_ENTRY_BYTES_MAX);
        if (status == STATUS_OK)
            status = entry_finish(writer, format, &entries->bytes[i], err);
        entries->appends[i] = (JournalAppend){.space = slot->space->space,
                                              .before = slot->before,
                                              .epoch = slot->space->epoch,
                                              .bytes = buf_view(&entries->bytes[i])};
    }
    entry_writer_done(writer);
    mem_free(writer);
    return status;
}

static void append(AppendLane *lane, AppendGroup *group)
{
    Replication *replication = lane->replication;
    AUTO(entries_done) Entries entries = {0};
    uint64_t deadline_us = clock_monotonic_us(replication->clock) + APPEND_US_MAX;
    group->err.status =
        make_entries(group, journal_format(replication->journal), &entries, &group->err);
    if (group->err.status == STATUS_OK) {
        Error err;
        Status status = journal_append(replication->journal, lane->lane, entries.appends,
                                       entries.count, deadline_us, &err);
        if (status != STATUS_OK)
            not_now(&group->err, err.message);
    }
    bool is_late = clock_monotonic_us(replication->clock) >= deadline_us;
    for (size_t i = 0; i < group->slot_count; i++) {
        AppendOutcome outcome = entries.appends[i].outcome;
        group->slots[i].outcome = outcome;
        group->slots[i].after = entries.appends[i].after;
        group->is_unanswered |= is_late && (outcome == APPEND_PENDING || outcome == APPEND_UNKNOWN);
    }
}

/* Under 'lock': the spaces may be appended to again, unless they are lost. */
static void give_to_applier(Replication *replication, AppendGroup *group)
{
    for (size_t i = 0; i < group->slot_count; i++) {
        AppendSlot *slot = &group->slots[i];
        slot->space->group = NULL;
        if (slot->outcome == APPEND_DONE)
            slot->space->appended = slot->after;
        else if (slot->outcome != APPEND_PENDING)
            slot->space->is_lost = true;
    }
    push_ready(replication, group);
    pthread_cond_broadcast(&replication->has_work);
}

/* Under 'lock'. */
static void end_append(AppendLane *lane, const AppendGroup *group)
{
    if (!group->is_unanswered)
        lane->silent_us = 0;
    else if (lane->silent_us == 0)
        lane->silent_us = lane->began_us;
    lane->began_us = 0;
}

/* Under 'lock'. The applier has the group afterwards, and may have freed it. */
static void end_group(Replication *replication, AppendGroup *group)
{
    bool is_unanswered = group->is_unanswered;
    give_to_applier(replication, group);
    if (is_unanswered)
        refuse_all_waiting(replication);
}

static void look_for_room(const Replication *replication, Error *full, Error *no_room)
{
    Engine *local = replication->local;
    full->status = local->ops->room(local, ENGINE_TAKES_ROOM, APPEND_BYTES_MAX, full);
    no_room->status = full->status;
    if (full->status != STATUS_OK)
        no_room->status = local->ops->room(local, ENGINE_MAKES_ROOM, APPEND_BYTES_MAX, no_room);
}

void *append_thread(void *ctx)
{
    AppendLane *lane = ctx;
    Replication *replication = lane->replication;
    pthread_mutex_lock(&replication->lock);
    for (;;) {
        Error full, no_room;
        if (replication->waiting != NULL) {
            pthread_mutex_unlock(&replication->lock);
            look_for_room(replication, &full, &no_room);
            pthread_mutex_lock(&replication->lock);
        }
        AppendGroup *group =
            replication->waiting == NULL ? NULL : take_group(replication, &full, &no_room);
        if (group != NULL && group->slot_count > 0) {
            lane->began_us = clock_monotonic_us(replication->clock);
            pthread_mutex_unlock(&replication->lock);
            append(lane, group);
            pthread_mutex_lock(&replication->lock);
            end_append(lane, group);
        }
        if (group != NULL)
            end_group(replication, group);
        else if (replication->is_stopping)
            break;
        else
            pthread_cond_wait(&replication->has_work, &replication->lock);
    }
    pthread_mutex_unlock(&replication->lock);
    return NULL;
}
