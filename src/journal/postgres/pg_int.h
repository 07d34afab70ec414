/* pg_int.h - the PostgreSQL engine: connections, parameters and results, for the files that make
 * it. */
#pragma once

#include "base/arena.h"
#include "journal/journal_int.h"
#include "journal/postgres/postgres_journal.h"

#include <libpq-fe.h>
#include <pthread.h>

enum { PG_HOSTS_MAX = 16, PG_TABLES = 4, PG_PARAMS_MAX = 10 };

/* How long a call waits that has no deadline of its own. */
enum { PG_NODE_MS = 3000, PG_FOLLOW_MS = 10000, PG_ADMIN_MS = 30000 };
enum { PG_HURRIED_MS = 2000 }; /* instead of PG_ADMIN_MS, after journal_hurry */

/* An answer of the log may take longer than PG_FOLLOW_MS as long as it goes on coming: an entry
 * that was appended at this rate (TRY_BYTES_PER_US in append.c) can be read at it. */
#define PG_READ_MS_MAX (PG_FOLLOW_MS + (uint32_t)(JOURNAL_ENTRY_BYTES_MAX / 1000))

/* An answer that takes longer does not say what time it is, and renewals use the same lane. */
enum { PG_TIME_MS = 2000 };

#define PG_FUNCTIONS(X)   \
    X(clear)              \
    X(cmdTuples)          \
    X(conninfoFree)       \
    X(conninfoParse)      \
    X(connectPoll)        \
    X(connectStartParams) \
    X(consumeInput)       \
    X(errorMessage)       \
    X(finish)             \
    X(flush)              \
    X(freemem)            \
    X(getResult)          \
    X(getisnull)          \
    X(getlength)          \
    X(getvalue)           \
    X(host)               \
    X(isBusy)             \
    X(nfields)            \
    X(ntuples)            \
    X(parameterStatus)    \
    X(port)               \
    X(resultErrorField)   \
    X(resultStatus)       \
    X(sendPrepare)        \
    X(sendQuery)          \
    X(sendQueryPrepared)  \
    X(serverVersion)      \
    X(setNoticeReceiver)  \
    X(setnonblocking)     \
    X(socket)             \
    X(status)             \
    X(transactionStatus)

/* The library's functions, without "PQ" in front of their names. */
typedef struct Libpq {
#define POINTER(name) typeof(PQ##name) *name;
    PG_FUNCTIONS(POINTER)
#undef POINTER
} Libpq;

typedef enum PgStatement {
#define PG_STATEMENT(name, sql) PG_##name,
#include "journal/postgres/pg_statements.def"
    PG_STATEMENT_COUNT
} PgStatement;

/* What the server has said beside its answer. client_min_messages lets only warnings come. */
typedef struct PgNotices {
    const Libpq *libpq;
    bool has_warned;   /* since the statement began */
    char warning[120]; /* the first of them */
} PgNotices;

/* One connection. */
typedef struct PgLane {
    PGconn *conn;             /* NULL if there is none */
    uint64_t session;         /* another one for each connection */
    uint64_t session_of_read; /* of the first pg_read since the last report; 0 if there is none */
    uint32_t timeline;
    size_t host; /* of the target */
    PgNotices notices;
    bool is_prepared[PG_STATEMENT_COUNT];
} PgLane;

/* What the URL says, taken apart. */
typedef struct PgTarget {
    PQconninfoOption *info;
    Arena arena;
    size_t host_count;
    const char *host[PG_HOSTS_MAX];     /* NULL for the default */
    const char *hostaddr[PG_HOSTS_MAX]; /* or NULL */
    const char *port[PG_HOSTS_MAX];     /* or NULL */
    bool is_local;                      /* every host is this machine */
} PgTarget;

typedef struct PostgresJournal {
    Journal journal; /* first */

    /* Immutable after the open. */
    Libpq libpq;
    PgTarget target;
    const Log *log;
    uint64_t rotate_bytes;

    PgLane lanes[JOURNAL_LANE_COUNT]; /* each of the thread that uses it */

    /* Any thread. */
    _Atomic uint64_t generation; /* the current table of entries, times PG_TABLES and more */
    _Atomic size_t host;         /* to be tried first: it took writes the last time */
    pthread_mutex_t lock;        /* guards 'id' */
    JournalEngineId id;
} PostgresJournal;

static inline PostgresJournal *pg_of(Journal *journal)
{
    return CONTAINER_OF(journal, PostgresJournal, journal);
}

/* ---- the URL (pg_target.c) ---- */

MUST_USE Status pg_target_parse(const Libpq *libpq, const char *url, bool allow_insecure,
                                PgTarget *out, Error *err);
void pg_target_done(const Libpq *libpq, PgTarget *target);

/* ---- connections (pg_connect.c) ---- */

/* Makes sure that the lane has a connection that can be used. */
MUST_USE Status pg_lane_ready(PostgresJournal *pg, JournalLane lane, uint64_t deadline_us,
                              Error *err);
void pg_lane_close(const PostgresJournal *pg, PgLane *lane);
/* Whether the lane's server was replaced by its standby since it was connected. */
bool pg_lane_is_old(PostgresJournal *pg, const PgLane *lane);
/* The host does not answer: the next connection tries another one first. */
void pg_leave_host(PostgresJournal *pg, size_t host);

/* Waits until the socket of a connection that is being made can be read or written, as 'events' of
 * poll(2) say. False if the deadline has passed. */
bool pg_wait(const PostgresJournal *pg, const PGconn *conn, short events, uint64_t deadline_us);

typedef enum Waited {
    WAITED,         /* the socket can be read or written */
    WAITED_IN_VAIN, /* not yet */
    WAITED_LATE,
    WAITED_REPLACED,
    WAITED_CLOSED,
} Waited;

/* Waits for a session, in the same way, but not for long: what TLS has decrypted already is in no
 * socket, so the caller has libpq look whether or not there is something to read. WAITED_REPLACED
 * if the engine has a newer timeline than the session by now. */
Waited pg_wait_some(PostgresJournal *pg, const PgLane *lane, short events, uint64_t deadline_us);

uint64_t pg_after_ms(uint32_t ms);

/* ---- parameters and results (pg_values.c) ---- */

/* Parameters of a statement, in the server's binary form; they live in 'arena'. */
typedef struct PgParams {
    Arena arena;
    int count;
    const char *values[PG_PARAMS_MAX];
    int lengths[PG_PARAMS_MAX];
} PgParams;

void pg_params_init(PgParams *params);
void pg_params_done(PgParams *params);
DEFINE_AUTO_VALUE(PgParams, pg_params_done)

void pg_param_u64(PgParams *params, uint64_t number);
void pg_param_i64(PgParams *params, int64_t number);
void pg_param_bytes(PgParams *params, Slice bytes); /* borrowed; also text */
void pg_param_lane(PgParams *params, JournalLane lane);
void pg_param_self(PgParams *params, const JournalSelf *self); /* two: name, incarnation */

/* Arrays: begin, then each element, in order. */
typedef struct PgArray {
    char *next;
    const char *end;
} PgArray;
PgArray pg_param_u64_array(PgParams *params, size_t count);
PgArray pg_param_bytes_array(PgParams *params, size_t count, size_t bytes); /* of all elements */
PgArray pg_param_text_array(PgParams *params, size_t count, size_t bytes);
void pg_array_u64(PgArray *array, uint64_t number);
void pg_array_bytes(PgArray *array, Slice bytes);

/* A result, which is freed by its end. */
typedef struct PgResult {
    const Libpq *libpq;
    PGresult *result;
} PgResult;
void pg_result_done(PgResult *result);
DEFINE_AUTO_VALUE(PgResult, pg_result_done)

size_t pg_rows(const PgResult *result);
bool pg_is_null(const PgResult *result, size_t row, int column);

/* Values that have another size than their type is STATUS_CORRUPT. */
MUST_USE Status pg_get_u64(const PgResult *result, size_t row, int column, uint64_t *out,
                           Error *err);
MUST_USE Status pg_get_i64(const PgResult *result, size_t row, int column, int64_t *out,
                           Error *err);
MUST_USE Status pg_get_fixed(const PgResult *result, size_t row, int column, void *out, size_t size,
                             Error *err);
Slice pg_get_bytes(const PgResult *result, size_t row, int column); /* lives with the result */

/* ---- statements (pg_run.c) ---- */

/* Runs a statement, which is prepared once for each connection. '*out' is empty unless the reply
 * is ENGINE_ANSWERED. After ENGINE_LOST the connection is closed. */
EngineReply pg_run(PostgresJournal *pg, JournalLane lane, PgStatement statement,
                   const PgParams *params, uint64_t deadline_us, PgResult *out, Error *err);

/* The same for a long answer: 'silence_ms' is how long no byte of it may come, within the deadline.
 */
EngineReply pg_run_long(PostgresJournal *pg, JournalLane lane, PgStatement statement,
                        const PgParams *params, uint32_t silence_ms, uint64_t deadline_us,
                        PgResult *out, Error *err);

/* The same for text that is not worth preparing, without parameters; results are text. */
EngineReply pg_run_text(PostgresJournal *pg, JournalLane lane, const char *sql,
                        uint64_t deadline_us, PgResult *out, Error *err);

/* For statements other than appends: a reply other than ENGINE_ANSWERED is STATUS_UNAVAILABLE. */
MUST_USE Status pg_call(PostgresJournal *pg, JournalLane lane, PgStatement statement,
                        const PgParams *params, uint32_t ms, PgResult *out, Error *err);

/* A statement that returns a row if it has changed something. If it has not, a write is made
 * before this returns (J10). */
MUST_USE Status pg_call_done(PostgresJournal *pg, JournalLane lane, PgStatement statement,
                             const PgParams *params, uint32_t ms, PgResult *out, bool *done,
                             Error *err);
MUST_USE Status pg_settle(PostgresJournal *pg, Slice node, JournalLane lane, uint32_t ms,
                          Error *err);

/* STATUS_UNAVAILABLE if the lane has another session than that in which something was read: the
 * write that was acknowledged since says nothing about it (J10). */
MUST_USE Status pg_check_session(const PostgresJournal *pg, JournalLane lane, uint64_t session,
                                 Error *err);

/* Begins a transaction which no other join or upgrade runs beside. The number is this program's
 * own. */
#define PG_BEGIN_ALONE "BEGIN; SELECT pg_advisory_xact_lock(7816109263158640761);"

/* ---- the functions of JournalOps ---- */

EngineReply pg_append(Journal *journal, const JournalSelf *self, JournalLane lane,
                      const JournalAppend *const *appends, size_t count, uint64_t deadline_us,
                      bool *moved, Error *err);
EngineReply pg_settle_appends(Journal *journal, const JournalSelf *self, JournalLane lane,
                              const JournalAppend *const *appends, size_t count,
                              uint64_t deadline_us, SettledSpace *out, Error *err);
MUST_USE Status pg_read(Journal *journal, JournalLane lane, uint64_t space, uint64_t seq,
                        size_t bytes_max, Arena *arena, JournalEntries *out, Error *err);
MUST_USE Status pg_join(Journal *journal, const JournalJoin *join, JournalMember *out, Error *err);
MUST_USE Status pg_rotate(Journal *journal, JournalLane lane, Error *err);
MUST_USE Status pg_upgrade(Journal *journal, JournalLane lane, uint32_t *format, Error *err);
MUST_USE Status pg_usage(Journal *journal, JournalLane lane, Arena *arena, JournalUsage *out,
                         Error *err);
extern const JournalOps PG_OPS;
