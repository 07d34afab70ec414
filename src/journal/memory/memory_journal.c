/* memory_journal.c - see memory_journal.h: the statements of a journal. */
#include "base/mem.h"
#include "journal/memory/memory_journal_int.h"

static MemoryJournal *memory_of(Journal *journal)
{
    return CONTAINER_OF(journal, MemoryJournal, journal);
}

/* ---- one statement ---- */

Status memory_engine_apply(MemoryJournalEngine *engine, const MemoryStatement *statement,
                           MemoryResult *result, Error *err)
{
    if (engine->standby == NULL) {
        TRY(memory_state_apply(engine->visible, statement, result, err));
        engine->writes += result->has_changed;
        return STATUS_OK;
    }
    if (engine->hidden == NULL)
        engine->hidden = memory_state_copy(engine->visible);
    if (memory_state_is_locked(engine->hidden, statement))
        return error_set(err, STATUS_UNAVAILABLE, SUB_NONE,
                         "the engine did not get a row in time that another statement holds");
    TRY(memory_state_apply(engine->hidden, statement, result, err));
    if (!result->has_changed)
        return STATUS_OK;
    memory_state_lock(engine->hidden, statement);
    engine->writes++;
    return error_set(err, STATUS_UNAVAILABLE, SUB_NONE, "the engine waits for its standby");
}

static bool can_reach(const MemoryJournal *memory)
{
    return !memory->engine->is_down && !memory->is_cut &&
           memory->timeline_met <= memory->engine->timeline;
}

static EngineReply unsent(Error *err)
{
    return engine_reply(ENGINE_UNSENT, error_set(err, STATUS_UNAVAILABLE, SUB_NONE,
                                                 "the engine cannot be reached"));
}

static EngineReply lost(Error *err)
{
    return engine_reply(ENGINE_LOST, error_set(err, STATUS_UNAVAILABLE, SUB_NONE,
                                               "the connection to the engine was lost"));
}

/* Takes the engine's lock, after the time that a statement takes. */
static void begin(MemoryJournal *memory)
{
    MemoryJournalEngine *engine = memory->engine;
    pthread_mutex_lock(&engine->lock);
    uint64_t us = engine->latency_us;
    if (us > 0) {
        pthread_mutex_unlock(&engine->lock);
        struct timespec time = {.tv_sec = (time_t)(us / 1000000),
                                .tv_nsec = (long)(us % 1000000) * 1000};
        (void)nanosleep(&time, NULL); /* a signal only shortens it */
        pthread_mutex_lock(&engine->lock);
    }
    if (memory->timeline_met < engine->timeline && can_reach(memory))
        memory->timeline_met = engine->timeline;
}

static void end(MemoryJournal *memory)
{
    pthread_mutex_unlock(&memory->engine->lock);
}

/* Under the lock. STATUS_CONFLICT of a join is an answer, which is left in err->status. */
static EngineReply write_locked(MemoryJournal *memory, JournalLane lane,
                                const MemoryStatement *statement, MemoryResult *result, Error *err)
{
    if (!can_reach(memory))
        return unsent(err);
    MemoryJournalFault fault = memory_engine_fault(memory, lane);
    switch (fault) {
    case MEMORY_JOURNAL_LOSE_REQUEST:
        return lost(err);
    case MEMORY_JOURNAL_DELAY:
        memory_engine_delay(memory->engine, statement);
        return lost(err);
    case MEMORY_JOURNAL_REFUSE:
        return engine_reply(ENGINE_REFUSED, error_set(err, STATUS_UNAVAILABLE, SUB_NONE,
                                                      "the engine has undone the statement"));
    case MEMORY_JOURNAL_LOSE_ANSWER:
    case MEMORY_JOURNAL_NO_FAULT:
        break;
    }
    Status status = memory_engine_apply(memory->engine, statement, result, err);
    if (fault == MEMORY_JOURNAL_LOSE_ANSWER)
        return lost(err);
    if (status == STATUS_UNAVAILABLE)
        return result->has_changed ? ENGINE_LOST : ENGINE_REFUSED;
    return ENGINE_ANSWERED;
}

/* The write that makes what was read before it true: see J10. Under the lock. */
static EngineReply settle_locked(const MemoryJournal *memory, Error *err)
{
    if (memory->engine->standby == NULL)
        return ENGINE_ANSWERED;
    return engine_reply(ENGINE_LOST, error_set(err, STATUS_UNAVAILABLE, SUB_NONE,
                                               "the engine waits for its standby"));
}

/* A statement other than an append. */
static Status run_write(Journal *journal, JournalLane lane, const MemoryStatement *statement,
                        MemoryResult *result, Error *err)
{
    MemoryJournal *memory = memory_of(journal);
    err->status = STATUS_OK;
    begin(memory);
    EngineReply reply = write_locked(memory, lane, statement, result, err);
    if (reply == ENGINE_ANSWERED && !result->has_changed) {
        Error cause;
        reply = settle_locked(memory, &cause);
        if (reply != ENGINE_ANSWERED)
            *err = cause;
    }
    end(memory);
    return reply == ENGINE_ANSWERED ? err->status : STATUS_UNAVAILABLE;
}

static EngineReply lose_read(MemoryJournal *memory, JournalLane lane, Error *err)
{
    memory->lost_reads[lane]++;
    return lost(err);
}

/* Of the lane's connection. Both only grow. */
static uint64_t session_of(const MemoryJournal *memory, JournalLane lane)
{
    return memory->engine->session + memory->lost_reads[lane];
}

/* Begins a read: if it succeeds, the lock is held until 'end'. */
static EngineReply begin_read(MemoryJournal *memory, JournalLane lane, Error *err)
{
    begin(memory);
    EngineReply reply = ENGINE_ANSWERED;
    if (!can_reach(memory))
        reply = unsent(err);
    else if (memory_engine_fault(memory, lane) != MEMORY_JOURNAL_NO_FAULT)
        reply = lose_read(memory, lane, err);
    if (reply != ENGINE_ANSWERED)
        end(memory);
    return reply;
}

static Status begin_settled_read(MemoryJournal *memory, JournalLane lane, Error *err)
{
    if (begin_read(memory, lane, err) != ENGINE_ANSWERED)
        return STATUS_UNAVAILABLE;
    if (settle_locked(memory, err) == ENGINE_ANSWERED)
        return STATUS_OK;
    end(memory);
    return STATUS_UNAVAILABLE;
}

/* ---- appending and reading ---- */

static EngineReply append(Journal *journal, const JournalSelf *self, JournalLane lane,
                          const JournalAppend *const *appends, size_t count, uint64_t deadline_us,
                          bool *moved, Error *err)
{
    (void)deadline_us; /* an answer comes at once, or never */
    MemoryJournal *memory = memory_of(journal);
    MemoryStatement statement = {.kind = MEMORY_APPEND,
                                 .self = *self,
                                 .format =
                                     atomic_load_explicit(&journal->format, memory_order_relaxed),
                                 .appends = appends,
                                 .count = count};
    MemoryResult result = {.moved = moved};
    begin(memory);
    EngineReply reply = write_locked(memory, lane, &statement, &result, err);
    end(memory);
    return reply;
}

static SettledSpace look_at(const MemoryState *state, const JournalSelf *self,
                            const JournalAppend *append)
{
    const MemorySpace *space = memory_state_space(state, append->space);
    if (space == NULL)
        return (SettledSpace){.is_found = false};
    bool is_same_node = slice_equal(slice_from_cstr(space->node), self->node);
    SettledSpace seen = {.is_found = true,
                         .is_same_node = is_same_node,
                         .is_mine = is_same_node && space->incarnation == self->incarnation,
                         .tail = space->tail,
                         .sealed = space->sealed,
                         .base = space->base};
    const MemoryEntry *entry = memory_space_entry(space, append->after.seq);
    seen.has_entry = entry != NULL;
    if (entry != NULL)
        seen.entry_chain = entry->chain;
    return seen;
}

static EngineReply settle(Journal *journal, const JournalSelf *self, JournalLane lane,
                          const JournalAppend *const *appends, size_t count, uint64_t deadline_us,
                          SettledSpace *out, Error *err)
{
    (void)deadline_us;
    MemoryJournal *memory = memory_of(journal);
    EngineReply reply = begin_read(memory, lane, err);
    if (reply != ENGINE_ANSWERED)
        return reply;
    for (size_t i = 0; i < count; i++)
        out[i] = look_at(memory->engine->visible, self, appends[i]);
    reply = settle_locked(memory, err);
    end(memory);
    return reply;
}

static JournalEntry copy_entry(Arena *arena, const MemoryEntry *entry)
{
    return (JournalEntry){.seq = entry->seq,
                          .epoch = entry->epoch,
                          .format = entry->format,
                          .before = entry->before,
                          .chain = entry->chain,
                          .bytes = arena_copy(arena, slice_make(entry->bytes, entry->len))};
}

static Status read_entries(Journal *journal, JournalLane lane, uint64_t space, uint64_t seq,
                           size_t bytes_max, Arena *arena, JournalEntries *out, Error *err)
{
    MemoryJournal *memory = memory_of(journal);
    if (begin_read(memory, lane, err) != ENGINE_ANSWERED)
        return STATUS_UNAVAILABLE;
    if (space == memory->unreadable && space != 0) {
        (void)lose_read(memory, lane, err);
        end(memory);
        return STATUS_UNAVAILABLE;
    }
    JournalEntries entries = {0};
    const MemorySpace *row = memory_state_space(memory->engine->visible, space);
    if (row != NULL) {
        entries.base = row->base;
        entries.tail = row->tail.seq;
        JournalEntry *items = ARENA_NEW_ARRAY(arena, JournalEntry, row->count);
        size_t bytes = 0;
        for (size_t i = 0; i < row->count; i++) {
            const MemoryEntry *entry = row->entries[i];
            if (entry->seq <= seq)
                continue;
            if (entries.count > 0 && bytes >= bytes_max)
                break;
            items[entries.count++] = copy_entry(arena, entry);
            bytes += entry->len;
        }
        entries.items = items;
    }
    if (memory->session_of_read[lane] == 0)
        memory->session_of_read[lane] = session_of(memory, lane);
    end(memory);
    *out = entries;
    return STATUS_OK;
}

/* ---- nodes ---- */

static Status join(Journal *journal, const JournalJoin *join_as, JournalMember *out, Error *err)
{
    MemoryStatement statement = {
        .kind = MEMORY_JOIN, .format = journal->format_newest, .join = join_as};
    random_secret(statement.new_cluster, sizeof(statement.new_cluster));
    MemoryResult result = {0};
    TRY(run_write(journal, JOURNAL_LANE_NODE, &statement, &result, err));
    *out = result.member;
    return STATUS_OK;
}

static Status renew(Journal *journal, const JournalSelf *self, uint64_t catalog, Slice unreachable,
                    bool *is_member, bool *is_draining, uint64_t *format, Error *err)
{
    MemoryStatement statement = {
        .kind = MEMORY_RENEW, .self = *self, .number = catalog, .unreachable = unreachable};
    MemoryResult result = {0};
    TRY(run_write(journal, JOURNAL_LANE_NODE, &statement, &result, err));
    *format = result.format;
    *is_member = result.has_changed;
    *is_draining = result.is_draining;
    return STATUS_OK;
}

static Slice copy_text(Arena *arena, const char *text)
{
    return arena_copy(arena, slice_from_cstr(text));
}

static Status nodes(Journal *journal, JournalLane lane, Arena *arena, const JournalNode **out,
                    size_t *count, Error *err)
{
    MemoryJournal *memory = memory_of(journal);
    TRY(begin_settled_read(memory, lane, err));
    const MemoryState *state = memory->engine->visible;
    JournalNode *items = ARENA_NEW_ARRAY(arena, JournalNode, state->node_count);
    for (size_t i = 0; i < state->node_count; i++) {
        const MemoryNode *row = &state->nodes[i];
        items[i] = (JournalNode){.name = copy_text(arena, row->node),
                                 .incarnation = row->incarnation,
                                 .renewal = row->renewal,
                                 .state = row->state,
                                 .format = row->format,
                                 .catalog = row->catalog,
                                 .unreachable = copy_text(arena, row->unreachable),
                                 .address = copy_text(arena, row->address),
                                 .advertise = copy_text(arena, row->advertise),
                                 .region = copy_text(arena, row->region)};
    }
    *out = items;
    *count = state->node_count;
    end(memory);
    return STATUS_OK;
}

static Status run_done(Journal *journal, JournalLane lane, const MemoryStatement *statement,
                       bool *done, Error *err)
{
    MemoryResult result = {0};
    TRY(run_write(journal, lane, statement, &result, err));
    *done = result.has_changed;
    return STATUS_OK;
}

static Status run_plain(Journal *journal, JournalLane lane, const MemoryStatement *statement,
                        Error *err)
{
    MemoryResult result = {0};
    return run_write(journal, lane, statement, &result, err);
}

static Status set_draining(Journal *journal, JournalLane lane, Slice node, bool is_draining,
                           bool *done, Error *err)
{
    MemoryStatement statement = {
        .kind = MEMORY_SET_DRAINING, .node = node, .is_draining = is_draining};
    return run_done(journal, lane, &statement, done, err);
}

static Status declare_dead(Journal *journal, const JournalSelf *self, Slice node,
                           uint64_t incarnation, uint64_t renewal, bool *done, Error *err)
{
    MemoryStatement statement = {.kind = MEMORY_DECLARE_DEAD,
                                 .self = *self,
                                 .node = node,
                                 .incarnation = incarnation,
                                 .number = renewal};
    return run_done(journal, JOURNAL_LANE_NODE, &statement, done, err);
}

static Status remove_node(Journal *journal, JournalLane lane, Slice node, bool *done, Error *err)
{
    MemoryStatement statement = {.kind = MEMORY_REMOVE_NODE, .node = node};
    return run_done(journal, lane, &statement, done, err);
}

/* ---- owners ---- */

static JournalOwner copy_owner(Arena *arena, const MemorySpace *row)
{
    return (JournalOwner){.space = row->space,
                          .node = copy_text(arena, row->node),
                          .incarnation = row->incarnation,
                          .tail = row->tail,
                          .sealed = row->sealed,
                          .base = row->base};
}

static bool is_wanted(const uint64_t *spaces, size_t count, uint64_t space)
{
    bool found = spaces == NULL;
    for (size_t i = 0; !found && i < count; i++)
        found = spaces[i] == space;
    return found;
}

static Status owners(Journal *journal, JournalLane lane, const uint64_t *spaces, size_t count,
                     Arena *arena, const JournalOwner **out, size_t *found, Error *err)
{
    MemoryJournal *memory = memory_of(journal);
    TRY(begin_settled_read(memory, lane, err));
    const MemoryState *state = memory->engine->visible;
    JournalOwner *items = ARENA_NEW_ARRAY(arena, JournalOwner, state->space_count);
    size_t total = 0;
    for (size_t i = 0; i < state->space_count; i++) {
        if (is_wanted(spaces, count, state->spaces[i].space))
            items[total++] = copy_owner(arena, &state->spaces[i]);
    }
    end(memory);
    *out = items;
    *found = total;
    return STATUS_OK;
}

static Status create_spaces(Journal *journal, JournalLane lane, const JournalNewSpace *spaces,
                            size_t count, Error *err)
{
    MemoryStatement statement = {
        .kind = MEMORY_CREATE_SPACES, .new_spaces = spaces, .count = count};
    return run_plain(journal, lane, &statement, err);
}

static Status take_over(Journal *journal, const JournalSelf *self, uint64_t space, uint64_t epoch,
                        Arena *arena, JournalOwner *out, bool *done, Error *err)
{
    MemoryJournal *memory = memory_of(journal);
    MemoryStatement statement = {
        .kind = MEMORY_TAKE_OVER, .self = *self, .space = space, .epoch = epoch};
    MemoryResult result = {0};
    begin(memory);
    EngineReply reply = write_locked(memory, JOURNAL_LANE_NODE, &statement, &result, err);
    if (reply == ENGINE_ANSWERED)
        reply = settle_locked(memory, err);
    if (reply == ENGINE_ANSWERED) {
        *done = result.has_changed;
        if (result.has_changed)
            *out = copy_owner(arena, result.space);
    }
    end(memory);
    return reply == ENGINE_ANSWERED ? STATUS_OK : STATUS_UNAVAILABLE;
}

static Status hand_over(Journal *journal, uint64_t space, const JournalPlace *place, Slice node,
                        uint64_t incarnation, bool *done, Error *err)
{
    MemoryStatement statement = {.kind = MEMORY_HAND_OVER,
                                 .space = space,
                                 .place = *place,
                                 .node = node,
                                 .incarnation = incarnation};
    return run_done(journal, JOURNAL_LANE_NODE, &statement, done, err);
}

static Status seal(Journal *journal, JournalLane lane, uint64_t space, const JournalPlace *place,
                   int64_t move, bool *done, Error *err)
{
    MemoryStatement statement = {
        .kind = MEMORY_SEAL, .space = space, .place = *place, .move = move};
    return run_done(journal, lane, &statement, done, err);
}

static Status unseal(Journal *journal, JournalLane lane, uint64_t space, uint64_t epoch,
                     int64_t move, bool *done, Error *err)
{
    MemoryStatement statement = {
        .kind = MEMORY_UNSEAL, .space = space, .epoch = epoch, .move = move};
    return run_done(journal, lane, &statement, done, err);
}

static Status forget_spaces(Journal *journal, JournalLane lane, const uint64_t *spaces,
                            size_t count, Error *err)
{
    MemoryStatement statement = {.kind = MEMORY_FORGET_SPACES, .spaces = spaces, .count = count};
    return run_plain(journal, lane, &statement, err);
}

/* ---- replicas and trimming ---- */

static Status report(Journal *journal, const JournalSelf *self, JournalLane lane,
                     const JournalReplica *replicas, size_t count, Error *err)
{
    MemoryJournal *memory = memory_of(journal);
    MemoryStatement statement = {
        .kind = MEMORY_REPORT, .self = *self, .replicas = replicas, .count = count};
    pthread_mutex_lock(&memory->engine->lock);
    uint64_t session = memory->session_of_read[lane];
    memory->session_of_read[lane] = 0;
    pthread_mutex_unlock(&memory->engine->lock);
    TRY(run_plain(journal, lane, &statement, err));
    pthread_mutex_lock(&memory->engine->lock);
    bool is_same = session == 0 || session == session_of(memory, lane);
    pthread_mutex_unlock(&memory->engine->lock);
    if (is_same)
        return STATUS_OK;
    return error_set(err, STATUS_UNAVAILABLE, SUB_NONE,
                     "the connection to the engine is another one than that which has read");
}

static Status replicas(Journal *journal, JournalLane lane, Arena *arena, const JournalReplica **out,
                       size_t *count, Error *err)
{
    MemoryJournal *memory = memory_of(journal);
    TRY(begin_settled_read(memory, lane, err));
    const MemoryState *state = memory->engine->visible;
    JournalReplica *items = ARENA_NEW_ARRAY(arena, JournalReplica, state->replica_count);
    for (size_t i = 0; i < state->replica_count; i++) {
        const MemoryReplica *row = &state->replicas[i];
        items[i] = (JournalReplica){.space = row->space,
                                    .node = copy_text(arena, row->node),
                                    .state = row->state,
                                    .applied = row->applied,
                                    .durable = row->durable};
    }
    *out = items;
    *count = state->replica_count;
    end(memory);
    return STATUS_OK;
}

static Status expel(Journal *journal, JournalLane lane, uint64_t space, Slice node, Error *err)
{
    MemoryStatement statement = {.kind = MEMORY_EXPEL, .space = space, .node = node};
    return run_plain(journal, lane, &statement, err);
}

static Status trim(Journal *journal, JournalLane lane, uint64_t space, uint64_t epoch, uint64_t seq,
                   Error *err)
{
    MemoryStatement statement = {
        .kind = MEMORY_TRIM, .space = space, .epoch = epoch, .number = seq};
    return run_plain(journal, lane, &statement, err);
}

static Status rotate(Journal *journal, JournalLane lane, Error *err)
{
    MemoryStatement statement = {.kind = MEMORY_ROTATE};
    return run_plain(journal, lane, &statement, err);
}

static Status upgrade(Journal *journal, JournalLane lane, uint32_t *format, Error *err)
{
    MemoryStatement statement = {.kind = MEMORY_UPGRADE, .format = journal->format_newest};
    MemoryResult result = {0};
    TRY(run_write(journal, lane, &statement, &result, err));
    *format = result.format;
    return STATUS_OK;
}

static Status usage(Journal *journal, JournalLane lane, Arena *arena, JournalUsage *out, Error *err)
{
    (void)arena; /* the texts are constants */
    MemoryJournal *memory = memory_of(journal);
    if (begin_read(memory, lane, err) != ENGINE_ANSWERED)
        return STATUS_UNAVAILABLE;
    bool has_standby = memory->engine->standby == NULL;
    JournalUsage found = {.has_synchronous_standby = has_standby,
                          .engine = SLICE("memory"),
                          .warning = has_standby ? SLICE("") : SLICE("the standby is away")};
    const MemoryState *state = memory->engine->visible;
    for (size_t i = 0; i < state->space_count; i++) {
        found.entries += state->spaces[i].count;
        for (size_t j = 0; j < state->spaces[i].count; j++)
            found.bytes += state->spaces[i].entries[j]->len;
    }
    end(memory);
    *out = found;
    return STATUS_OK;
}

static Status engine_time(Journal *journal, JournalLane lane, uint64_t *wall_us, Error *err)
{
    MemoryJournal *memory = memory_of(journal);
    if (begin_read(memory, lane, err) != ENGINE_ANSWERED)
        return STATUS_UNAVAILABLE;
    *wall_us = clock_wall_us(memory->engine->clock);
    end(memory);
    return STATUS_OK;
}

static JournalEngineId engine_id(Journal *journal)
{
    MemoryJournal *memory = memory_of(journal);
    pthread_mutex_lock(&memory->engine->lock);
    JournalEngineId id = {.system = memory->engine->system, .timeline = memory->timeline_met};
    pthread_mutex_unlock(&memory->engine->lock);
    return id;
}

static void meet(Journal *journal, JournalEngineId id)
{
    MemoryJournal *memory = memory_of(journal);
    pthread_mutex_lock(&memory->engine->lock);
    if (id.system == memory->engine->system && id.timeline > memory->timeline_met)
        memory->timeline_met = id.timeline;
    pthread_mutex_unlock(&memory->engine->lock);
}

static void close_journal(Journal *journal)
{
    journal_done(journal);
    mem_free(memory_of(journal));
}

const JournalOps MEMORY_JOURNAL_OPS = {
    .append = append,
    .settle = settle,
    .read = read_entries,
    .join = join,
    .renew = renew,
    .nodes = nodes,
    .set_draining = set_draining,
    .declare_dead = declare_dead,
    .remove_node = remove_node,
    .owners = owners,
    .create_spaces = create_spaces,
    .take_over = take_over,
    .hand_over = hand_over,
    .seal = seal,
    .unseal = unseal,
    .forget_spaces = forget_spaces,
    .report = report,
    .replicas = replicas,
    .expel = expel,
    .trim = trim,
    .rotate = rotate,
    .upgrade = upgrade,
    .usage = usage,
    .engine_time = engine_time,
    .engine_id = engine_id,
    .meet = meet,
    .close = close_journal,
};
