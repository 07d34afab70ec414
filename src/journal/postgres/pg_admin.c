/* pg_admin.c - the tables of entries in rotation, and what an operator wants to know. */
#include "base/buf.h"
#include "journal/postgres/pg_int.h"

enum { SQL_BYTES = 512, WARNING_BYTES = 600 };

static Status run_text(PostgresJournal *pg, JournalLane lane, const char *sql, PgResult *out,
                       Error *err)
{
    EngineReply reply = pg_run_text(pg, lane, sql, pg_after_ms(PG_ADMIN_MS), out, err);
    return reply == ENGINE_ANSWERED ? STATUS_OK : STATUS_UNAVAILABLE;
}

static Status text_to_u64(const PgResult *result, size_t row, int column, uint64_t *out, Error *err)
{
    Slice text = pg_get_bytes(result, row, column);
    if (pg_is_null(result, row, column) || !slice_to_u64(text, out))
        return error_set(err, STATUS_CORRUPT, SUB_NONE,
                         "the engine has answered '%.*s' instead of a number", SLICE_CUT(text, 40));
    return STATUS_OK;
}

/* ---- rotation ---- */

typedef struct Tables {
    uint64_t generation;
    uint64_t bytes[PG_TABLES];
    bool has_rows[PG_TABLES];
} Tables;

static const char TABLES_SQL[] =
    "SELECT generation, pg_total_relation_size('entry_0'), pg_total_relation_size('entry_1'),"
    " pg_total_relation_size('entry_2'), pg_total_relation_size('entry_3'),"
    " pg_relation_size('entry_0'), pg_relation_size('entry_1'), pg_relation_size('entry_2'),"
    " pg_relation_size('entry_3') FROM cluster";

static Status look_at_tables(PostgresJournal *pg, JournalLane lane, Tables *out, Error *err)
{
    AUTO(pg_result_done) PgResult row = {0};
    TRY(run_text(pg, lane, TABLES_SQL, &row, err));
    if (pg_rows(&row) != 1)
        return error_set(err, STATUS_CORRUPT, SUB_NONE, "the engine has no row of the cluster");
    TRY(text_to_u64(&row, 0, 0, &out->generation, err));
    for (int i = 0; i < PG_TABLES; i++) {
        uint64_t bytes = 0;
        TRY(text_to_u64(&row, 0, 1 + i, &out->bytes[i], err));
        TRY(text_to_u64(&row, 0, 1 + PG_TABLES + i, &bytes, err));
        out->has_rows[i] = bytes > 0;
    }
    return STATUS_OK;
}

static bool is_refusal(const PostgresJournal *pg, JournalLane lane)
{
    return pg->lanes[lane].conn != NULL; /* it is closed if the answer was lost */
}

static Status roll_back(PostgresJournal *pg, JournalLane lane, Error *err)
{
    AUTO(pg_result_done) PgResult undone = {0};
    return run_text(pg, lane, "ROLLBACK", &undone, err);
}

/* Empties a table if no entry in it is needed. The lock keeps appends out that were prepared for
 * this table long ago. Whoever reads the table holds it back (a backup, for hours), and
 * is not waited for: everybody else would wait behind this. */
static Status empty_table(PostgresJournal *pg, JournalLane lane, unsigned table, bool *is_empty,
                          Error *err)
{
    char sql[SQL_BYTES];
    (void)snprintf(sql, sizeof(sql),
                   "BEGIN; SET LOCAL lock_timeout = 100;"
                   "LOCK TABLE entry_%u IN ACCESS EXCLUSIVE MODE;"
                   "SELECT 1 FROM owner o WHERE EXISTS (SELECT FROM entry_%u e"
                   " WHERE e.space = o.space AND e.seq > o.base) LIMIT 1",
                   table, table);
    AUTO(pg_result_done) PgResult needed = {0};
    Status status = run_text(pg, lane, sql, &needed, err);
    if (status != STATUS_OK)
        return is_refusal(pg, lane) ? roll_back(pg, lane, err) : status;
    if (pg_rows(&needed) > 0)
        return roll_back(pg, lane, err);
    (void)snprintf(sql, sizeof(sql), "TRUNCATE entry_%u; COMMIT", table);
    AUTO(pg_result_done) PgResult done = {0};
    status = run_text(pg, lane, sql, &done, err);
    if (status != STATUS_OK && is_refusal(pg, lane))
        return roll_back(pg, lane, err);
    *is_empty = status == STATUS_OK;
    return status;
}

Status pg_rotate(Journal *journal, JournalLane lane, Error *err)
{
    PostgresJournal *pg = pg_of(journal);
    TRY(pg_lane_ready(pg, lane, pg_after_ms(PG_ADMIN_MS), err));
    Tables tables = {0};
    TRY(look_at_tables(pg, lane, &tables, err));
    unsigned current = (unsigned)(tables.generation % PG_TABLES);
    for (unsigned i = 1; i < PG_TABLES; i++) {
        unsigned table = (current + i) % PG_TABLES;
        bool is_empty = false;
        if (tables.has_rows[table])
            TRY(empty_table(pg, lane, table, &is_empty, err));
        if (is_empty)
            tables.has_rows[table] = false;
    }
    unsigned next = (current + 1) % PG_TABLES;
    if (tables.bytes[current] < pg->rotate_bytes || tables.has_rows[next])
        return STATUS_OK;

    char sql[SQL_BYTES];
    (void)snprintf(sql, sizeof(sql),
                   "UPDATE cluster SET generation = generation + 1 WHERE generation = %llu",
                   (unsigned long long)tables.generation);
    AUTO(pg_result_done) PgResult done = {0};
    TRY(run_text(pg, lane, sql, &done, err));
    atomic_store_explicit(&pg->generation, tables.generation + 1, memory_order_relaxed);
    return STATUS_OK;
}

/* ---- upgrades ---- */

/* A node that joins meanwhile does so before, and is counted, or after, and sees the new format. */
Status pg_upgrade(Journal *journal, JournalLane lane, uint32_t *format, Error *err)
{
    PostgresJournal *pg = pg_of(journal);
    TRY(pg_lane_ready(pg, lane, pg_after_ms(PG_ADMIN_MS), err));
    char sql[SQL_BYTES];
    (void)snprintf(sql, sizeof(sql),
                   PG_BEGIN_ALONE "UPDATE cluster SET format = GREATEST(format, LEAST(%u,"
                                  " (SELECT min(format) FROM node WHERE state < 2)))"
                                  " RETURNING format",
                   journal->format_newest);
    AUTO(pg_result_done) PgResult row = {0};
    Status status = run_text(pg, lane, sql, &row, err);
    uint64_t after = 0;
    if (status == STATUS_OK && pg_rows(&row) != 1)
        status = error_set(err, STATUS_CORRUPT, SUB_NONE, "the engine has no row of the cluster");
    if (status == STATUS_OK)
        status = text_to_u64(&row, 0, 0, &after, err);
    AUTO(pg_result_done) PgResult done = {0};
    if (status == STATUS_OK)
        status = run_text(pg, lane, "COMMIT", &done, err);
    if (status != STATUS_OK) { /* the end of the session undoes what it has begun */
        pg_lane_close(pg, &pg->lanes[lane]);
        return status;
    }
    *format = (uint32_t)after;
    return STATUS_OK;
}

/* ---- usage ---- */

/* A role without pg_read_all_stats sees that there are standbys, but nothing about them. */
static const char USAGE_SQL[] =
    "SELECT pg_total_relation_size('entry_0') + pg_total_relation_size('entry_1')"
    " + pg_total_relation_size('entry_2') + pg_total_relation_size('entry_3'),"
    " (SELECT COALESCE(sum(tail - base), 0)::bigint FROM owner),"
    " (SELECT count(*) FROM pg_stat_replication WHERE sync_state IN ('sync', 'quorum')"
    " AND state = 'streaming'),"
    " pg_has_role(current_user, 'pg_read_all_stats', 'USAGE')::int,"
    " (current_setting('synchronous_standby_names') <> '')::int,"
    " (current_setting('fsync') <> 'on' OR current_setting('full_page_writes') <> 'on')::int,"
    " (SELECT reset_val FROM pg_settings WHERE name = 'synchronous_commit')";

static void warn(Buf *buf, const char *text)
{
    if (buf->len > 0)
        buf_slice(buf, SLICE("; "));
    buf_slice(buf, slice_from_cstr(text));
}

static Status read_usage(const PgResult *row, JournalUsage *out, Buf *warning, Error *err)
{
    uint64_t standbys = 0;
    uint64_t can_see = 0;
    uint64_t has_names = 0;
    uint64_t is_unsafe = 0;
    TRY(text_to_u64(row, 0, 0, &out->bytes, err));
    TRY(text_to_u64(row, 0, 1, &out->entries, err));
    TRY(text_to_u64(row, 0, 2, &standbys, err));
    TRY(text_to_u64(row, 0, 3, &can_see, err));
    TRY(text_to_u64(row, 0, 4, &has_names, err));
    TRY(text_to_u64(row, 0, 5, &is_unsafe, err));
    out->has_synchronous_standby = has_names != 0 && (standbys > 0 || can_see == 0);
    if (has_names == 0)
        warn(warning, "the engine has no synchronous standby (synchronous_standby_names is empty): "
                      "what is acknowledged is lost with its disk");
    else if (can_see == 0)
        warn(warning, "the role cannot see whether the synchronous standby is there: grant it "
                      "pg_read_all_stats");
    else if (standbys == 0)
        warn(warning, "the synchronous standby is away: writes wait for it");
    if (is_unsafe != 0)
        warn(warning, "fsync or full_page_writes of the engine is off");
    Slice commit = pg_get_bytes(row, 0, 6);
    if (!slice_equal(commit, SLICE("on")) && !slice_equal(commit, SLICE("remote_apply"))) {
        warn(warning, "synchronous_commit of the role, the database or the server is ");
        buf_slice(warning, slice_first(commit, 20));
        buf_slice(warning, SLICE("; the journal's own sessions have it on"));
    }
    return STATUS_OK;
}

Status pg_usage(Journal *journal, JournalLane lane, Arena *arena, JournalUsage *out, Error *err)
{
    PostgresJournal *pg = pg_of(journal);
    TRY(pg_lane_ready(pg, lane, pg_after_ms(PG_ADMIN_MS), err));
    AUTO(pg_result_done) PgResult row = {0};
    TRY(run_text(pg, lane, USAGE_SQL, &row, err));
    if (pg_rows(&row) != 1)
        return error_set(err, STATUS_CORRUPT, SUB_NONE, "the engine does not say what it keeps");
    JournalUsage usage = {0};
    AUTO(buf_done) Buf warning;
    buf_init(&warning, WARNING_BYTES);
    TRY(read_usage(&row, &usage, &warning, err));
    usage.warning = arena_copy(arena, buf_view(&warning));
    const PGconn *conn = pg->lanes[lane].conn;
    const char *host = pg->libpq.host(conn);
    const char *port = pg->libpq.port(conn);
    const char *version = pg->libpq.parameterStatus(conn, "server_version");
    Slice number = slice_from_cstr(version == NULL ? "?" : version);
    usage.engine =
        arena_format(arena, "PostgreSQL %.*s at %s:%s", SLICE_CUT(number, slice_find(number, ' ')),
                     host == NULL ? "?" : host, port == NULL ? "?" : port);
    *out = usage;
    return STATUS_OK;
}
