/* pg_join.c - the tables, and how a node begins an incarnation. */
#include "base/random.h"
#include "journal/postgres/pg_int.h"

/* Entries are written once and go away with their table, so there is nothing to vacuum. They are
 * compressed before they come here, if at all, and are stored outside of the row as they are. */
#define ENTRY_TABLE(name)                                                                          \
    "CREATE TABLE " name " (space bigint, seq bigint, epoch bigint NOT NULL, format int NOT NULL," \
    " prev bytea NOT NULL, chain bytea NOT NULL, bytes bytea NOT NULL,"                            \
    " PRIMARY KEY (space, seq))"                                                                   \
    " WITH (autovacuum_enabled = false, toast.autovacuum_enabled = false);"                        \
    "ALTER TABLE " name " ALTER bytes SET STORAGE EXTERNAL;"

/* Rows that are updated all the time have room on their pages for the next versions. */
static const char TABLES_SQL[] =
    "CREATE TABLE cluster (one bool PRIMARY KEY DEFAULT true CHECK (one), id uuid NOT NULL,"
    " format int NOT NULL, generation bigint NOT NULL DEFAULT 0, maker bytea NOT NULL);"
    "CREATE SEQUENCE incarnation;"
    "CREATE TABLE node (node text PRIMARY KEY, incarnation bigint NOT NULL,"
    " renewal bigint NOT NULL, state smallint NOT NULL, format int NOT NULL,"
    " catalog bigint NOT NULL DEFAULT 0, unreachable text[] NOT NULL DEFAULT '{}',"
    " attempt bytea NOT NULL, address text NOT NULL, advertise text NOT NULL,"
    " region text NOT NULL) WITH (fillfactor = 20);"
    "CREATE TABLE settling (node text, lane smallint, number bigint NOT NULL,"
    " PRIMARY KEY (node, lane)) WITH (fillfactor = 20);"
    "CREATE TABLE owner (space bigint PRIMARY KEY, node text NOT NULL,"
    " incarnation bigint NOT NULL, epoch bigint NOT NULL, tail bigint NOT NULL,"
    " chain bytea NOT NULL, sealed bigint NOT NULL DEFAULT 0, base bigint NOT NULL DEFAULT 0)"
    " WITH (fillfactor = 20, autovacuum_vacuum_scale_factor = 0,"
    " autovacuum_vacuum_threshold = 1000);"
    "CREATE TABLE replica (space bigint, node text, state smallint NOT NULL,"
    " applied bigint NOT NULL, durable bigint NOT NULL, PRIMARY KEY (space, node))"
    " WITH (fillfactor = 20);" ENTRY_TABLE("entry_0") ENTRY_TABLE("entry_1") ENTRY_TABLE("entry_2")
        ENTRY_TABLE("entry_3") "CREATE VIEW entry_all AS SELECT * FROM entry_0 UNION ALL SELECT * "
                               "FROM entry_1"
                               " UNION ALL SELECT * FROM entry_2 UNION ALL SELECT * FROM entry_3";

/* One node at a time looks whether there are tables, and none while the format is raised. */
static const char BEGIN_SQL[] = PG_BEGIN_ALONE "SELECT to_regclass('orrery.cluster') IS NOT NULL,"
                                               " to_regnamespace('orrery') IS NOT NULL";

/* ---- a transaction ---- */

typedef struct Joining {
    PostgresJournal *pg;
    const JournalJoin *join;
    uint64_t deadline_us;
    uint64_t generation;
} Joining;

static Status run_text(const Joining *joining, const char *sql, PgResult *out, Error *err)
{
    EngineReply reply =
        pg_run_text(joining->pg, JOURNAL_LANE_NODE, sql, joining->deadline_us, out, err);
    return reply == ENGINE_ANSWERED ? STATUS_OK : STATUS_UNAVAILABLE;
}

static Status run(const Joining *joining, PgStatement statement, const PgParams *params,
                  PgResult *out, Error *err)
{
    EngineReply reply =
        pg_run(joining->pg, JOURNAL_LANE_NODE, statement, params, joining->deadline_us, out, err);
    return reply == ENGINE_ANSWERED ? STATUS_OK : STATUS_UNAVAILABLE;
}

static Status make_tables(const Joining *joining, Error *err)
{
    AUTO(pg_result_done) PgResult has_tables = {0};
    TRY(run_text(joining, BEGIN_SQL, &has_tables, err));
    if (pg_rows(&has_tables) != 1)
        return error_set(err, STATUS_CORRUPT, SUB_NONE,
                         "the engine does not say whether there are tables");
    if (slice_equal(pg_get_bytes(&has_tables, 0, 0), SLICE("t")))
        return STATUS_OK;
    AUTO(pg_result_done) PgResult made = {0};
    /* Whoever has made the schema for a role may have given it no right to make one. */
    if (!slice_equal(pg_get_bytes(&has_tables, 0, 1), SLICE("t")))
        TRY(run_text(joining, "CREATE SCHEMA orrery", &made, err));
    pg_result_done(&made);
    return run_text(joining, TABLES_SQL, &made, err);
}

static Slice attempt_of(const JournalJoin *join)
{
    return slice_make(join->attempt, JOURNAL_ATTEMPT_BYTES);
}

static Status make_cluster(const Joining *joining, Error *err)
{
    uint8_t id[16];
    random_secret(id, sizeof(id));
    AUTO(pg_params_done) PgParams params;
    pg_params_init(&params);
    pg_param_bytes(&params, slice_make(id, sizeof(id)));
    pg_param_u64(&params, joining->pg->journal.format_newest);
    pg_param_bytes(&params, attempt_of(joining->join));
    AUTO(pg_result_done) PgResult made = {0};
    return run(joining, PG_MAKE_CLUSTER, &params, &made, err);
}

/* What cluster this is, and whether the node may be in it. */
static Status look_at_cluster(Joining *joining, JournalMember *member, Error *err)
{
    AUTO(pg_params_done) PgParams params;
    pg_params_init(&params);
    pg_param_bytes(&params, attempt_of(joining->join));
    AUTO(pg_result_done) PgResult row = {0};
    TRY(run(joining, PG_CLUSTER, &params, &row, err));
    if (pg_rows(&row) != 1)
        return error_set(err, STATUS_CORRUPT, SUB_NONE, "the engine has no row of the cluster");
    uint64_t format = 0;
    uint64_t is_first = 0;
    TRY(pg_get_fixed(&row, 0, 0, member->cluster, sizeof(member->cluster), err));
    TRY(pg_get_u64(&row, 0, 1, &format, err));
    TRY(pg_get_u64(&row, 0, 2, &joining->generation, err));
    TRY(pg_get_u64(&row, 0, 3, &is_first, err));
    member->format = (uint32_t)format;
    member->is_first = is_first != 0;

    static const uint8_t none[sizeof(member->cluster)] = {0};
    const uint8_t *of_folder = joining->join->cluster_of_folder;
    if (memcmp(of_folder, none, sizeof(none)) != 0 &&
        memcmp(of_folder, member->cluster, sizeof(none)) != 0)
        return error_set(err, STATUS_CONFLICT, SUB_NONE,
                         "the data folder belongs to another cluster than the journal; give it the "
                         "--cluster of its own, or start with an empty folder (--data)");
    if (format == 0)
        return error_set(
            err, STATUS_CORRUPT, SUB_NONE,
            "the format of the cluster is 0 in the engine's table 'cluster'; it is 1 or "
            "higher");
    uint32_t newest = joining->pg->journal.format_newest;
    if (format > newest)
        return error_set(err, STATUS_CONFLICT, SUB_NONE,
                         "the cluster writes format %llu; this program reads up to %u",
                         (unsigned long long)format, newest);
    return STATUS_OK;
}

static Status join_cluster(const Joining *joining, JournalMember *member, Error *err)
{
    const JournalJoin *join = joining->join;
    AUTO(pg_params_done) PgParams params;
    pg_params_init(&params);
    pg_param_bytes(&params, join->name);
    pg_param_u64(&params, joining->pg->journal.format_newest);
    pg_param_u64(&params, join->incarnation_of_folder);
    pg_param_bytes(&params, attempt_of(join));
    pg_param_bytes(&params, join->address);
    pg_param_bytes(&params, join->advertise);
    pg_param_bytes(&params, join->region);
    AUTO(pg_result_done) PgResult row = {0};
    TRY(run(joining, PG_JOIN, &params, &row, err));
    if (pg_rows(&row) == 0)
        return error_set(
            err, STATUS_CONFLICT, SUB_NONE,
            "a node with the name '%.*s' lives elsewhere: its incarnation is not %llu, "
            "that of the data folder",
            SLICE_ARG(join->name), (unsigned long long)join->incarnation_of_folder);
    return pg_get_u64(&row, 0, 0, &member->incarnation, err);
}

/* A new folder has no copies, whatever an earlier life of the name has reported. */
static Status forget_copies(const Joining *joining, Error *err)
{
    if (joining->join->incarnation_of_folder != 0)
        return STATUS_OK;
    AUTO(pg_params_done) PgParams params;
    pg_params_init(&params);
    pg_param_bytes(&params, joining->join->name);
    AUTO(pg_result_done) PgResult gone = {0};
    return run(joining, PG_FORGET_COPIES, &params, &gone, err);
}

static Status run_join(Joining *joining, JournalMember *member, Error *err)
{
    TRY(make_tables(joining, err));
    TRY(make_cluster(joining, err));
    TRY(look_at_cluster(joining, member, err));
    TRY(join_cluster(joining, member, err));
    TRY(forget_copies(joining, err));
    AUTO(pg_result_done) PgResult done = {0};
    return run_text(joining, "COMMIT", &done, err);
}

Status pg_join(Journal *journal, const JournalJoin *join, JournalMember *out, Error *err)
{
    PostgresJournal *pg = pg_of(journal);
    Joining joining = {.pg = pg, .join = join, .deadline_us = pg_after_ms(PG_ADMIN_MS)};
    TRY(pg_lane_ready(pg, JOURNAL_LANE_NODE, joining.deadline_us, err));
    JournalMember member = {0};
    Status status = run_join(&joining, &member, err);
    if (status != STATUS_OK) {
        /* The end of the session undoes what it has begun. */
        pg_lane_close(pg, &pg->lanes[JOURNAL_LANE_NODE]);
        return status;
    }
    atomic_store_explicit(&pg->generation, joining.generation, memory_order_relaxed);
    *out = member;
    return STATUS_OK;
}
