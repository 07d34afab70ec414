/* pg_append.c - appends, what has become of them, and reading the log. */
#include "journal/postgres/pg_int.h"

enum { READ_ENTRIES_MAX = 1024 };

static Slice chain_bytes(const JournalChain *chain)
{
    return slice_make(chain->bytes, JOURNAL_CHAIN_BYTES);
}

static void param_places(PgParams *params, const JournalAppend *const *appends, size_t count)
{
    PgArray spaces = pg_param_u64_array(params, count);
    PgArray epochs = pg_param_u64_array(params, count);
    PgArray seqs = pg_param_u64_array(params, count);
    for (size_t i = 0; i < count; i++) {
        pg_array_u64(&spaces, appends[i]->space);
        pg_array_u64(&epochs, appends[i]->epoch);
        pg_array_u64(&seqs, appends[i]->after.seq);
    }
}

static void param_entries(PgParams *params, const JournalAppend *const *appends, size_t count)
{
    size_t bytes = 0;
    for (size_t i = 0; i < count; i++)
        bytes += appends[i]->bytes.len;
    PgArray before = pg_param_bytes_array(params, count, count * JOURNAL_CHAIN_BYTES);
    PgArray chains = pg_param_bytes_array(params, count, count * JOURNAL_CHAIN_BYTES);
    PgArray entries = pg_param_bytes_array(params, count, bytes);
    for (size_t i = 0; i < count; i++) {
        pg_array_bytes(&before, chain_bytes(&appends[i]->before.chain));
        pg_array_bytes(&chains, chain_bytes(&appends[i]->after.chain));
        pg_array_bytes(&entries, appends[i]->bytes);
    }
}

static Status read_moved(const PgResult *result, size_t count, bool *moved, Error *err)
{
    memset(moved, 0, count * sizeof(*moved));
    for (size_t row = 0; row < pg_rows(result); row++) {
        uint64_t number = 0;
        TRY(pg_get_u64(result, row, 0, &number, err));
        if (number == 0 || number > count)
            return error_set(err, STATUS_CORRUPT, SUB_NONE,
                             "the engine says that append %llu of %zu was done",
                             (unsigned long long)number, count);
        moved[number - 1] = true;
    }
    return STATUS_OK;
}

/* An answer that cannot be understood is as good as none. */
static EngineReply understood(Status status)
{
    return status == STATUS_OK ? ENGINE_ANSWERED : ENGINE_LOST;
}

EngineReply pg_append(Journal *journal, const JournalSelf *self, JournalLane lane,
                      const JournalAppend *const *appends, size_t count, uint64_t deadline_us,
                      bool *moved, Error *err)
{
    PostgresJournal *pg = pg_of(journal);
    AUTO(pg_params_done) PgParams params;
    pg_params_init(&params);
    param_places(&params, appends, count);
    param_entries(&params, appends, count);
    pg_param_u64(&params, atomic_load_explicit(&journal->format, memory_order_relaxed));
    pg_param_self(&params, self);

    uint64_t generation = atomic_load_explicit(&pg->generation, memory_order_relaxed);
    PgStatement statement = (PgStatement)(PG_APPEND_0 + generation % PG_TABLES);
    AUTO(pg_result_done) PgResult result = {0};
    EngineReply reply = pg_run(pg, lane, statement, &params, deadline_us, &result, err);
    if (reply != ENGINE_ANSWERED)
        return reply;
    return understood(read_moved(&result, count, moved, err));
}

static Status get_chain(const PgResult *result, size_t row, int column, JournalChain *out,
                        Error *err)
{
    return pg_get_fixed(result, row, column, out->bytes, JOURNAL_CHAIN_BYTES, err);
}

static Status read_settled(const PgResult *result, size_t row, SettledSpace *out, Error *err)
{
    SettledSpace seen = {0};
    uint64_t is_found = 0;
    TRY(pg_get_u64(result, row, 0, &is_found, err));
    seen.is_found = is_found != 0;
    if (seen.is_found) {
        uint64_t is_mine = 0;
        uint64_t is_same_node = 0;
        TRY(pg_get_u64(result, row, 1, &is_mine, err));
        TRY(pg_get_u64(result, row, 2, &is_same_node, err));
        TRY(pg_get_u64(result, row, 3, &seen.tail.epoch, err));
        TRY(pg_get_u64(result, row, 4, &seen.tail.seq, err));
        TRY(get_chain(result, row, 5, &seen.tail.chain, err));
        TRY(pg_get_i64(result, row, 6, &seen.sealed, err));
        TRY(pg_get_u64(result, row, 7, &seen.base, err));
        seen.is_mine = is_mine != 0;
        seen.is_same_node = is_same_node != 0;
        seen.has_entry = !pg_is_null(result, row, 8);
        if (seen.has_entry)
            TRY(get_chain(result, row, 8, &seen.entry_chain, err));
    }
    *out = seen;
    return STATUS_OK;
}

static Status read_all_settled(const PgResult *result, size_t count, SettledSpace *out, Error *err)
{
    if (pg_rows(result) != count)
        return error_set(err, STATUS_CORRUPT, SUB_NONE,
                         "the engine was asked about %zu spaces and has told of %zu", count,
                         pg_rows(result));
    for (size_t i = 0; i < count; i++)
        TRY(read_settled(result, i, &out[i], err));
    return STATUS_OK;
}

EngineReply pg_settle_appends(Journal *journal, const JournalSelf *self, JournalLane lane,
                              const JournalAppend *const *appends, size_t count,
                              uint64_t deadline_us, SettledSpace *out, Error *err)
{
    AUTO(pg_params_done) PgParams params;
    pg_params_init(&params);
    pg_param_bytes(&params, self->node);
    pg_param_lane(&params, lane);
    pg_param_u64(&params, self->incarnation);
    PgArray spaces = pg_param_u64_array(&params, count);
    PgArray seqs = pg_param_u64_array(&params, count);
    for (size_t i = 0; i < count; i++) {
        pg_array_u64(&spaces, appends[i]->space);
        pg_array_u64(&seqs, appends[i]->after.seq);
    }
    AUTO(pg_result_done) PgResult result = {0};
    EngineReply reply =
        pg_run(pg_of(journal), lane, PG_SETTLE_APPENDS, &params, deadline_us, &result, err);
    if (reply != ENGINE_ANSWERED)
        return reply;
    return understood(read_all_settled(&result, count, out, err));
}

/* ---- reading ---- */

static Status read_entry(const PgResult *result, size_t row, Arena *arena, JournalEntry *out,
                         Error *err)
{
    uint64_t format = 0;
    TRY(pg_get_u64(result, row, 2, &out->seq, err));
    TRY(pg_get_u64(result, row, 3, &out->epoch, err));
    TRY(pg_get_u64(result, row, 4, &format, err));
    TRY(get_chain(result, row, 5, &out->before, err));
    TRY(get_chain(result, row, 6, &out->chain, err));
    out->format = (uint32_t)format;
    out->bytes = arena_copy(arena, pg_get_bytes(result, row, 7));
    return STATUS_OK;
}

Status pg_read(Journal *journal, JournalLane lane, uint64_t space, uint64_t seq, size_t bytes_max,
               Arena *arena, JournalEntries *out, Error *err)
{
    AUTO(pg_params_done) PgParams params;
    pg_params_init(&params);
    pg_param_u64(&params, space);
    pg_param_u64(&params, seq);
    pg_param_u64(&params, bytes_max == 0 ? 1 : bytes_max); /* one entry at least */
    pg_param_u64(&params, READ_ENTRIES_MAX);
    AUTO(pg_result_done) PgResult result = {0};
    if (pg_run_long(pg_of(journal), lane, PG_READ, &params, PG_FOLLOW_MS,
                    pg_after_ms(PG_READ_MS_MAX), &result, err) != ENGINE_ANSWERED)
        return STATUS_UNAVAILABLE;
    PgLane *session = &pg_of(journal)->lanes[lane];
    if (session->session_of_read == 0)
        session->session_of_read = session->session;

    JournalEntries entries = {0};
    size_t rows = pg_rows(&result);
    if (rows > 0) {
        TRY(pg_get_u64(&result, 0, 0, &entries.base, err));
        TRY(pg_get_u64(&result, 0, 1, &entries.tail, err));
    }
    if (rows > 0 && !pg_is_null(&result, 0, 2)) {
        JournalEntry *items = ARENA_NEW_ARRAY(arena, JournalEntry, rows);
        for (size_t i = 0; i < rows; i++)
            TRY(read_entry(&result, i, arena, &items[i], err));
        entries.items = items;
        entries.count = rows;
    }
    *out = entries;
    return STATUS_OK;
}
