/* postgres_journal.c - see postgres_journal.h: the beginning and the end, and the statements about
 * nodes, owners and replicas. */
#include "base/mem.h"
#include "base/shared_library.h"
#include "journal/postgres/pg_int.h"

#define LIBPQ_LIBRARY "libpq.so.5"

static Status load_libpq(Libpq *libpq, Error *err)
{
    static const LibraryFunction functions[] = {
#define FUNCTION(name) {"PQ" #name, offsetof(Libpq, name)},
        PG_FUNCTIONS(FUNCTION)
#undef FUNCTION
    };
    return shared_library_load(LIBPQ_LIBRARY, functions, ARRAY_COUNT(functions), libpq, err);
}

Status postgres_journal_open(const PostgresJournalOptions *options, Journal **out, Error *err)
{
    Libpq libpq = {0};
    TRY(load_libpq(&libpq, err));
    PgTarget target = {0};
    TRY(pg_target_parse(&libpq, options->url, options->allow_insecure, &target, err));
    PostgresJournal *pg = MEM_NEW(PostgresJournal);
    journal_init(&pg->journal, &PG_OPS, options->clock == NULL ? clock_real() : options->clock,
                 options->secret, 500, options->format);
    pg->libpq = libpq;
    pg->target = target;
    pg->log = options->log;
    pg->rotate_bytes =
        options->rotate_bytes == 0 ? POSTGRES_JOURNAL_ROTATE_BYTES : options->rotate_bytes;
    (void)pthread_mutex_init(&pg->lock, NULL);
    *out = &pg->journal;
    return STATUS_OK;
}

static void close_journal(Journal *journal)
{
    PostgresJournal *pg = pg_of(journal);
    for (unsigned i = 0; i < JOURNAL_LANE_COUNT; i++)
        pg_lane_close(pg, &pg->lanes[i]);
    pg_target_done(&pg->libpq, &pg->target);
    (void)pthread_mutex_destroy(&pg->lock);
    journal_done(journal);
    mem_free(pg);
}

static JournalEngineId engine_id(Journal *journal)
{
    PostgresJournal *pg = pg_of(journal);
    pthread_mutex_lock(&pg->lock);
    JournalEngineId id = pg->id;
    pthread_mutex_unlock(&pg->lock);
    return id;
}

static void meet(Journal *journal, JournalEngineId id)
{
    PostgresJournal *pg = pg_of(journal);
    pthread_mutex_lock(&pg->lock);
    if (pg->id.system == 0 || (pg->id.system == id.system && pg->id.timeline < id.timeline))
        pg->id = id;
    pthread_mutex_unlock(&pg->lock);
}

/* ---- calls ---- */

static uint32_t lane_ms(JournalLane lane)
{
    return lane == JOURNAL_LANE_ADMIN    ? PG_ADMIN_MS
           : lane == JOURNAL_LANE_FOLLOW ? PG_FOLLOW_MS
                                         : PG_NODE_MS;
}

/* A read that settles. The statement's first two parameters are the node and the lane. */
static void param_settling(PgParams *params, Journal *journal, JournalLane lane)
{
    pg_param_bytes(params, journal_self(journal).node);
    pg_param_lane(params, lane);
}

static Status call_done(Journal *journal, JournalLane lane, PgStatement statement,
                        const PgParams *params, bool *done, Error *err)
{
    return pg_call_done(pg_of(journal), lane, statement, params, lane_ms(lane), NULL, done, err);
}

static Slice copy_text(Arena *arena, const PgResult *result, size_t row, int column)
{
    return arena_copy(arena, pg_get_bytes(result, row, column));
}

/* ---- nodes ---- */

static Status renew(Journal *journal, const JournalSelf *self, uint64_t catalog, Slice unreachable,
                    bool *is_member, bool *is_draining, uint64_t *format, Error *err)
{
    PostgresJournal *pg = pg_of(journal);
    AUTO(pg_params_done) PgParams params;
    pg_params_init(&params);
    pg_param_self(&params, self);
    pg_param_u64(&params, catalog);
    pg_param_bytes(&params, unreachable);
    AUTO(pg_result_done) PgResult row = {0};
    bool done = false;
    TRY(pg_call_done(pg, JOURNAL_LANE_NODE, PG_RENEW, &params, PG_NODE_MS, &row, &done, err));
    uint64_t state = NODE_DEAD;
    uint64_t seen = 0;
    if (done) {
        uint64_t generation = 0;
        TRY(pg_get_u64(&row, 0, 0, &state, err));
        TRY(pg_get_u64(&row, 0, 1, &generation, err));
        TRY(pg_get_u64(&row, 0, 2, &seen, err));
        atomic_store_explicit(&pg->generation, generation, memory_order_relaxed);
    }
    *format = seen;
    *is_member = done;
    *is_draining = state == NODE_DRAINING;
    return STATUS_OK;
}

static Status read_node(const PgResult *result, size_t row, Arena *arena, JournalNode *out,
                        Error *err)
{
    uint64_t state = 0;
    uint64_t format = 0;
    TRY(pg_get_u64(result, row, 1, &out->incarnation, err));
    TRY(pg_get_u64(result, row, 2, &out->renewal, err));
    TRY(pg_get_u64(result, row, 3, &state, err));
    TRY(pg_get_u64(result, row, 4, &format, err));
    TRY(pg_get_u64(result, row, 5, &out->catalog, err));
    if (state > NODE_DEAD)
        return error_set(err, STATUS_CORRUPT, SUB_NONE, "a node's state is %llu",
                         (unsigned long long)state);
    out->state = (NodeState)state;
    out->format = (uint32_t)format;
    out->name = copy_text(arena, result, row, 0);
    out->unreachable = copy_text(arena, result, row, 6);
    out->address = copy_text(arena, result, row, 7);
    out->advertise = copy_text(arena, result, row, 8);
    out->region = copy_text(arena, result, row, 9);
    return STATUS_OK;
}

static Status nodes(Journal *journal, JournalLane lane, Arena *arena, const JournalNode **out,
                    size_t *count, Error *err)
{
    AUTO(pg_params_done) PgParams params;
    pg_params_init(&params);
    param_settling(&params, journal, lane);
    AUTO(pg_result_done) PgResult rows = {0};
    TRY(pg_call(pg_of(journal), lane, PG_NODES, &params, lane_ms(lane), &rows, err));
    size_t total = pg_rows(&rows);
    JournalNode *items = ARENA_NEW_ARRAY(arena, JournalNode, total);
    for (size_t i = 0; i < total; i++)
        TRY(read_node(&rows, i, arena, &items[i], err));
    *out = items;
    *count = total;
    return STATUS_OK;
}

static Status set_draining(Journal *journal, JournalLane lane, Slice node, bool is_draining,
                           bool *done, Error *err)
{
    AUTO(pg_params_done) PgParams params;
    pg_params_init(&params);
    pg_param_bytes(&params, node);
    pg_param_u64(&params, is_draining ? NODE_DRAINING : NODE_LIVE);
    return call_done(journal, lane, PG_SET_DRAINING, &params, done, err);
}

static Status declare_dead(Journal *journal, const JournalSelf *self, Slice node,
                           uint64_t incarnation, uint64_t renewal, bool *done, Error *err)
{
    AUTO(pg_params_done) PgParams params;
    pg_params_init(&params);
    pg_param_self(&params, self);
    pg_param_bytes(&params, node);
    pg_param_u64(&params, incarnation);
    pg_param_u64(&params, renewal);
    return call_done(journal, JOURNAL_LANE_NODE, PG_DECLARE_DEAD, &params, done, err);
}

static Status remove_node(Journal *journal, JournalLane lane, Slice node, bool *done, Error *err)
{
    AUTO(pg_params_done) PgParams params;
    pg_params_init(&params);
    pg_param_bytes(&params, node);
    return call_done(journal, lane, PG_REMOVE_NODE, &params, done, err);
}

/* ---- owners ---- */

static Status read_owner(const PgResult *result, size_t row, Arena *arena, JournalOwner *out,
                         Error *err)
{
    TRY(pg_get_u64(result, row, 0, &out->space, err));
    TRY(pg_get_u64(result, row, 2, &out->incarnation, err));
    TRY(pg_get_u64(result, row, 3, &out->tail.epoch, err));
    TRY(pg_get_u64(result, row, 4, &out->tail.seq, err));
    TRY(pg_get_fixed(result, row, 5, out->tail.chain.bytes, JOURNAL_CHAIN_BYTES, err));
    TRY(pg_get_i64(result, row, 6, &out->sealed, err));
    TRY(pg_get_u64(result, row, 7, &out->base, err));
    out->node = copy_text(arena, result, row, 1);
    return STATUS_OK;
}

static void param_spaces(PgParams *params, const uint64_t *spaces, size_t count)
{
    PgArray array = pg_param_u64_array(params, count);
    for (size_t i = 0; i < count; i++)
        pg_array_u64(&array, spaces[i]);
}

static Status owners(Journal *journal, JournalLane lane, const uint64_t *spaces, size_t count,
                     Arena *arena, const JournalOwner **out, size_t *found, Error *err)
{
    AUTO(pg_params_done) PgParams params;
    pg_params_init(&params);
    param_settling(&params, journal, lane);
    if (spaces != NULL)
        param_spaces(&params, spaces, count);
    AUTO(pg_result_done) PgResult rows = {0};
    TRY(pg_call(pg_of(journal), lane, spaces == NULL ? PG_OWNERS : PG_SOME_OWNERS, &params,
                lane_ms(lane), &rows, err));
    size_t total = pg_rows(&rows);
    JournalOwner *items = ARENA_NEW_ARRAY(arena, JournalOwner, total);
    for (size_t i = 0; i < total; i++)
        TRY(read_owner(&rows, i, arena, &items[i], err));
    *out = items;
    *found = total;
    return STATUS_OK;
}

static Status create_spaces(Journal *journal, JournalLane lane, const JournalNewSpace *spaces,
                            size_t count, Error *err)
{
    PostgresJournal *pg = pg_of(journal);
    AUTO(pg_params_done) PgParams params;
    pg_params_init(&params);
    size_t bytes = 0;
    for (size_t i = 0; i < count; i++)
        bytes += spaces[i].node.len;
    PgArray numbers = pg_param_u64_array(&params, count);
    PgArray names = pg_param_text_array(&params, count, bytes);
    PgArray incarnations = pg_param_u64_array(&params, count);
    for (size_t i = 0; i < count; i++) {
        pg_array_u64(&numbers, spaces[i].space);
        pg_array_bytes(&names, spaces[i].node);
        pg_array_u64(&incarnations, spaces[i].incarnation);
    }
    AUTO(pg_result_done) PgResult row = {0};
    TRY(pg_call(pg, lane, PG_CREATE_SPACES, &params, lane_ms(lane), &row, err));
    uint64_t made = 0;
    TRY(pg_get_u64(&row, 0, 1, &made, err));
    if (made == 0) {
        uint64_t session = pg->lanes[lane].session;
        TRY(pg_settle(pg, journal_self(journal).node, lane, lane_ms(lane), err));
        TRY(pg_check_session(pg, lane, session, err));
    }
    Slice dead = pg_get_bytes(&row, 0, 0);
    if (dead.len > 0)
        return error_set(err, STATUS_CONFLICT, SUB_NONE,
                         "node '%.*s' is not a living member of that incarnation",
                         SLICE_CUT(dead, JOURNAL_NAME_MAX));
    return STATUS_OK;
}

static Status take_over(Journal *journal, const JournalSelf *self, uint64_t space, uint64_t epoch,
                        Arena *arena, JournalOwner *out, bool *done, Error *err)
{
    AUTO(pg_params_done) PgParams params;
    pg_params_init(&params);
    pg_param_self(&params, self);
    pg_param_u64(&params, space);
    pg_param_u64(&params, epoch);
    AUTO(pg_result_done) PgResult row = {0};
    bool has_changed = false;
    TRY(pg_call_done(pg_of(journal), JOURNAL_LANE_NODE, PG_TAKE_OVER, &params, PG_NODE_MS, &row,
                     &has_changed, err));
    if (has_changed)
        TRY(read_owner(&row, 0, arena, out, err));
    *done = has_changed;
    return STATUS_OK;
}

static void param_place(PgParams *params, uint64_t space, const JournalPlace *place)
{
    pg_param_u64(params, space);
    pg_param_u64(params, place->epoch);
    pg_param_u64(params, place->seq);
    pg_param_bytes(params, slice_make(place->chain.bytes, JOURNAL_CHAIN_BYTES));
}

static Status hand_over(Journal *journal, uint64_t space, const JournalPlace *place, Slice node,
                        uint64_t incarnation, bool *done, Error *err)
{
    AUTO(pg_params_done) PgParams params;
    pg_params_init(&params);
    param_place(&params, space, place);
    pg_param_bytes(&params, node);
    pg_param_u64(&params, incarnation);
    return call_done(journal, JOURNAL_LANE_NODE, PG_HAND_OVER, &params, done, err);
}

static Status seal(Journal *journal, JournalLane lane, uint64_t space, const JournalPlace *place,
                   int64_t move, bool *done, Error *err)
{
    AUTO(pg_params_done) PgParams params;
    pg_params_init(&params);
    param_place(&params, space, place);
    pg_param_i64(&params, move);
    return call_done(journal, lane, PG_SEAL, &params, done, err);
}

static Status unseal(Journal *journal, JournalLane lane, uint64_t space, uint64_t epoch,
                     int64_t move, bool *done, Error *err)
{
    AUTO(pg_params_done) PgParams params;
    pg_params_init(&params);
    pg_param_u64(&params, space);
    pg_param_u64(&params, epoch);
    pg_param_i64(&params, move);
    return call_done(journal, lane, PG_UNSEAL, &params, done, err);
}

static Status forget_spaces(Journal *journal, JournalLane lane, const uint64_t *spaces,
                            size_t count, Error *err)
{
    AUTO(pg_params_done) PgParams params;
    pg_params_init(&params);
    param_spaces(&params, spaces, count);
    bool done = false; /* spaces that were forgotten before are none the less forgotten */
    return call_done(journal, lane, PG_FORGET_SPACES, &params, &done, err);
}

/* ---- replicas and trimming ---- */

static Status write_report(Journal *journal, const JournalSelf *self, JournalLane lane,
                           const JournalReplica *replicas, size_t count, Error *err)
{
    PostgresJournal *pg = pg_of(journal);
    if (count == 0)
        return pg_settle(pg, self->node, lane, lane_ms(lane), err);
    AUTO(pg_params_done) PgParams params;
    pg_params_init(&params);
    param_settling(&params, journal, lane);
    PgArray spaces = pg_param_u64_array(&params, count);
    PgArray states = pg_param_u64_array(&params, count);
    PgArray applied = pg_param_u64_array(&params, count);
    PgArray durable = pg_param_u64_array(&params, count);
    for (size_t i = 0; i < count; i++) {
        pg_array_u64(&spaces, replicas[i].space);
        pg_array_u64(&states, replicas[i].state);
        pg_array_u64(&applied, replicas[i].applied);
        pg_array_u64(&durable, replicas[i].durable);
    }
    pg_param_u64(&params, self->incarnation);
    AUTO(pg_result_done) PgResult row = {0};
    TRY(pg_call(pg, lane, PG_REPORT, &params, lane_ms(lane), &row, err));
    uint64_t is_mine = 0;
    TRY(pg_get_u64(&row, 0, 0, &is_mine, err));
    if (is_mine == 0)
        return error_set(err, STATUS_CONFLICT, SUB_NONE,
                         "node '%.*s' has another incarnation than %llu", SLICE_ARG(self->node),
                         (unsigned long long)self->incarnation);
    return STATUS_OK;
}

static Status report(Journal *journal, const JournalSelf *self, JournalLane lane,
                     const JournalReplica *replicas, size_t count, Error *err)
{
    PostgresJournal *pg = pg_of(journal);
    uint64_t session = pg->lanes[lane].session_of_read;
    pg->lanes[lane].session_of_read = 0;
    TRY(write_report(journal, self, lane, replicas, count, err));
    return session == 0 ? STATUS_OK : pg_check_session(pg, lane, session, err);
}

static Status replicas(Journal *journal, JournalLane lane, Arena *arena, const JournalReplica **out,
                       size_t *count, Error *err)
{
    AUTO(pg_params_done) PgParams params;
    pg_params_init(&params);
    param_settling(&params, journal, lane);
    AUTO(pg_result_done) PgResult rows = {0};
    TRY(pg_call(pg_of(journal), lane, PG_REPLICAS, &params, lane_ms(lane), &rows, err));
    size_t total = pg_rows(&rows);
    JournalReplica *items = ARENA_NEW_ARRAY(arena, JournalReplica, total);
    for (size_t i = 0; i < total; i++) {
        uint64_t state = 0;
        TRY(pg_get_u64(&rows, i, 0, &items[i].space, err));
        TRY(pg_get_u64(&rows, i, 2, &state, err));
        TRY(pg_get_u64(&rows, i, 3, &items[i].applied, err));
        TRY(pg_get_u64(&rows, i, 4, &items[i].durable, err));
        if (state > REPLICA_EXPELLED)
            return error_set(err, STATUS_CORRUPT, SUB_NONE, "a replica's state is %llu",
                             (unsigned long long)state);
        items[i].state = (ReplicaState)state;
        items[i].node = copy_text(arena, &rows, i, 1);
    }
    *out = items;
    *count = total;
    return STATUS_OK;
}

static Status expel(Journal *journal, JournalLane lane, uint64_t space, Slice node, Error *err)
{
    AUTO(pg_params_done) PgParams params;
    pg_params_init(&params);
    pg_param_u64(&params, space);
    pg_param_bytes(&params, node);
    bool done = false; /* what is no replica need not be expelled */
    return call_done(journal, lane, PG_EXPEL, &params, &done, err);
}

static Status trim(Journal *journal, JournalLane lane, uint64_t space, uint64_t epoch, uint64_t seq,
                   Error *err)
{
    AUTO(pg_params_done) PgParams params;
    pg_params_init(&params);
    pg_param_u64(&params, space);
    pg_param_u64(&params, epoch);
    pg_param_u64(&params, seq);
    bool done = false; /* another owner trims */
    return call_done(journal, lane, PG_TRIM, &params, &done, err);
}

/* ---- the clock ---- */

static Status engine_time(Journal *journal, JournalLane lane, uint64_t *wall_us, Error *err)
{
    AUTO(pg_params_done) PgParams params;
    pg_params_init(&params);
    AUTO(pg_result_done) PgResult row = {0};
    TRY(pg_call(pg_of(journal), lane, PG_ENGINE_TIME, &params, PG_TIME_MS, &row, err));
    if (pg_rows(&row) != 1)
        return error_set(err, STATUS_CORRUPT, SUB_NONE, "the engine does not say what time it is");
    return pg_get_u64(&row, 0, 0, wall_us, err);
}

const JournalOps PG_OPS = {
    .append = pg_append,
    .settle = pg_settle_appends,
    .read = pg_read,
    .join = pg_join,
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
    .rotate = pg_rotate,
    .upgrade = pg_upgrade,
    .usage = pg_usage,
    .engine_time = engine_time,
    .engine_id = engine_id,
    .meet = meet,
    .close = close_journal,
};
