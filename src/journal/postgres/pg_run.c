/* pg_run.c - one statement, from its parameters to the end of its answer.
 *
 * The rows of a statement arrive before its commit: only when libpq says that the session is ready
 * for the next statement has the commit been done and, with synchronous_commit, got to the standby.
 * So an answer is read to its end, and a warning on the way makes it worth nothing.
 */
#include "journal/postgres/pg_int.h"

#include <poll.h>

static const char *const STATEMENTS[] = {
#define PG_STATEMENT(name, sql) sql,
#include "journal/postgres/pg_statements.def"
};

static const char *const STATEMENT_NAMES[] = {
#define PG_STATEMENT(name, sql) #name,
#include "journal/postgres/pg_statements.def"
};

static EngineReply lost(PostgresJournal *pg, PgLane *lane, const char *why, Error *err)
{
    char text[200];
    size_t len = strcspn(why, "\n");
    (void)snprintf(text, sizeof(text), "%.*s", (int)(len < 199 ? len : 199), why);
    pg_lane_close(pg, lane);
    return engine_reply(ENGINE_LOST,
                        error_set(err, STATUS_UNAVAILABLE, SUB_NONE,
                                  "the answer of the engine was lost: %s",
                                  text[0] == '\0' ? "the connection was closed" : text));
}

/* ---- waiting ---- */

/* How long a statement is waited for. */
typedef struct Patience {
    uint64_t deadline_us;
    uint64_t silence_us; /* without a byte of the answer; 0 if only the deadline counts */
    uint64_t heard_us;   /* when the newest byte has come */
} Patience;

static uint64_t until_us(const Patience *patience)
{
    uint64_t silent_us = patience->heard_us + patience->silence_us;
    bool is_first = patience->silence_us != 0 && silent_us < patience->deadline_us;
    return is_first ? silent_us : patience->deadline_us;
}

static bool goes_on(Waited waited)
{
    return waited == WAITED || waited == WAITED_IN_VAIN;
}

/* Sends what libpq has not sent yet, and reads meanwhile: the server may not take more before
 * somebody reads what it says. */
static Waited flush(PostgresJournal *pg, PgLane *lane, const Patience *patience)
{
    for (;;) {
        int left = pg->libpq.flush(lane->conn);
        if (left <= 0)
            return left == 0 ? WAITED : WAITED_CLOSED;
        Waited waited = pg_wait_some(pg, lane, POLLIN | POLLOUT, until_us(patience));
        if (!goes_on(waited))
            return waited;
        if (pg->libpq.consumeInput(lane->conn) != 1)
            return WAITED_CLOSED;
    }
}

static Waited next_result(PostgresJournal *pg, PgLane *lane, Patience *patience, PGresult **out)
{
    while (pg->libpq.isBusy(lane->conn) != 0) {
        Waited waited = pg_wait_some(pg, lane, POLLIN, until_us(patience));
        if (!goes_on(waited))
            return waited;
        if (waited == WAITED)
            patience->heard_us = pg_after_ms(0);
        if (pg->libpq.consumeInput(lane->conn) != 1)
            return WAITED_CLOSED;
    }
    *out = pg->libpq.getResult(lane->conn);
    return WAITED;
}

static bool is_failure(const PostgresJournal *pg, const PGresult *result)
{
    ExecStatusType status = pg->libpq.resultStatus(result);
    return status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK;
}

/* Reads the answer to its end. '*out' has its last result, or the first failure. */
static Waited read_answer(PostgresJournal *pg, PgLane *lane, Patience *patience, PgResult *out)
{
    for (;;) {
        PGresult *result = NULL;
        Waited waited = next_result(pg, lane, patience, &result);
        if (waited != WAITED || result == NULL)
            return waited;
        if (out->result != NULL && is_failure(pg, out->result)) {
            pg->libpq.clear(result);
            continue;
        }
        pg_result_done(out);
        out->result = result;
    }
}

/* ---- what an answer says ---- */

static bool is_class(const char *state, const char *start)
{
    return strncmp(state, start, strlen(start)) == 0;
}

/* The statement has failed, and libpq has read that to its end: the server has undone it. A
 * server that is being shut down is not trusted with that. */
static EngineReply refused(PostgresJournal *pg, PgLane *lane, const PGresult *result, Error *err)
{
    const char *state = pg->libpq.resultErrorField(result, PG_DIAG_SQLSTATE);
    const char *text = pg->libpq.resultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
    if (state == NULL || text == NULL || is_class(state, "08") || is_class(state, "57P"))
        return lost(pg, lane, text == NULL ? "" : text, err);
    Status status = error_set(err, STATUS_UNAVAILABLE, SUB_NONE,
                              "the engine has refused a statement: %.300s (%.5s)", text, state);
    /* This server takes no writes any more, or has forgotten what was prepared. */
    if (strcmp(state, "25006") == 0 || strcmp(state, "26000") == 0)
        pg_lane_close(pg, lane);
    return engine_reply(ENGINE_REFUSED, status);
}

static EngineReply finish(PostgresJournal *pg, PgLane *lane, Patience *patience, PgResult *out,
                          Error *err)
{
    AUTO(pg_result_done) PgResult answer = {.libpq = &pg->libpq};
    patience->heard_us = pg_after_ms(0);
    Waited waited = flush(pg, lane, patience);
    if (waited == WAITED)
        waited = read_answer(pg, lane, patience, &answer);
    switch (waited) {
    case WAITED_LATE:
        pg_leave_host(pg, lane->host);
        return lost(pg, lane, "the deadline has passed", err);
    case WAITED_REPLACED:
        pg_leave_host(pg, lane->host);
        return lost(pg, lane, "the server was replaced while it did not answer", err);
    case WAITED_CLOSED:
        return lost(pg, lane, pg->libpq.errorMessage(lane->conn), err);
    case WAITED:
    case WAITED_IN_VAIN:
        break;
    }
    if (answer.result == NULL || pg->libpq.status(lane->conn) != CONNECTION_OK)
        return lost(pg, lane, pg->libpq.errorMessage(lane->conn), err);
    if (lane->notices.has_warned)
        return lost(pg, lane, lane->notices.warning, err);
    if (is_failure(pg, answer.result))
        return refused(pg, lane, answer.result, err);
    *out = (PgResult){.libpq = &pg->libpq, .result = TAKE(answer.result)};
    return ENGINE_ANSWERED;
}

/* ---- statements ---- */

static EngineReply prepare(PostgresJournal *pg, PgLane *lane, PgStatement statement,
                           Patience *patience, Error *err)
{
    if (lane->is_prepared[statement])
        return ENGINE_ANSWERED;
    AUTO(pg_result_done) PgResult result = {.libpq = &pg->libpq};
    if (pg->libpq.sendPrepare(lane->conn, STATEMENT_NAMES[statement], STATEMENTS[statement], 0,
                              NULL) != 1)
        return lost(pg, lane, pg->libpq.errorMessage(lane->conn), err);
    EngineReply reply = finish(pg, lane, patience, &result, err);
    if (reply == ENGINE_ANSWERED)
        lane->is_prepared[statement] = true;
    return reply;
}

static EngineReply run(PostgresJournal *pg, JournalLane number, PgStatement statement,
                       const PgParams *params, Patience *patience, PgResult *out, Error *err)
{
    PgLane *lane = &pg->lanes[number];
    *out = (PgResult){.libpq = &pg->libpq};
    patience->heard_us = pg_after_ms(0);
    if (pg_lane_ready(pg, number, until_us(patience), err) != STATUS_OK)
        return ENGINE_UNSENT;
    lane->notices.has_warned = false;
    /* What is lost before the statement was sent is not the statement's answer. */
    EngineReply reply = prepare(pg, lane, statement, patience, err);
    if (reply != ENGINE_ANSWERED)
        return reply == ENGINE_LOST ? ENGINE_UNSENT : reply;

    int formats[PG_PARAMS_MAX];
    for (int i = 0; i < params->count; i++)
        formats[i] = 1;
    if (pg->libpq.sendQueryPrepared(lane->conn, STATEMENT_NAMES[statement], params->count,
                                    params->values, params->lengths, formats, 1) != 1)
        return lost(pg, lane, pg->libpq.errorMessage(lane->conn), err);
    return finish(pg, lane, patience, out, err);
}

EngineReply pg_run(PostgresJournal *pg, JournalLane lane, PgStatement statement,
                   const PgParams *params, uint64_t deadline_us, PgResult *out, Error *err)
{
    return pg_run_long(pg, lane, statement, params, 0, deadline_us, out, err);
}

EngineReply pg_run_long(PostgresJournal *pg, JournalLane lane, PgStatement statement,
                        const PgParams *params, uint32_t silence_ms, uint64_t deadline_us,
                        PgResult *out, Error *err)
{
    Patience patience = {.deadline_us = deadline_us, .silence_us = (uint64_t)silence_ms * 1000};
    return run(pg, lane, statement, params, &patience, out, err);
}

EngineReply pg_run_text(PostgresJournal *pg, JournalLane number, const char *sql,
                        uint64_t deadline_us, PgResult *out, Error *err)
{
    PgLane *lane = &pg->lanes[number];
    *out = (PgResult){.libpq = &pg->libpq};
    ASSERT(lane->conn != NULL);
    lane->notices.has_warned = false;
    if (pg->libpq.sendQuery(lane->conn, sql) != 1)
        return lost(pg, lane, pg->libpq.errorMessage(lane->conn), err);
    Patience patience = {.deadline_us = deadline_us};
    return finish(pg, lane, &patience, out, err);
}

Status pg_call(PostgresJournal *pg, JournalLane lane, PgStatement statement, const PgParams *params,
               uint32_t ms, PgResult *out, Error *err)
{
    EngineReply reply = pg_run(pg, lane, statement, params, pg_after_ms(ms), out, err);
    return reply == ENGINE_ANSWERED ? STATUS_OK : STATUS_UNAVAILABLE;
}

Status pg_settle(PostgresJournal *pg, Slice node, JournalLane lane, uint32_t ms, Error *err)
{
    AUTO(pg_params_done) PgParams params;
    pg_params_init(&params);
    pg_param_bytes(&params, node);
    pg_param_lane(&params, lane);
    AUTO(pg_result_done) PgResult result = {0};
    return pg_call(pg, lane, PG_SETTLE, &params, ms, &result, err);
}

Status pg_check_session(const PostgresJournal *pg, JournalLane lane, uint64_t session, Error *err)
{
    if (pg->lanes[lane].session == session)
        return STATUS_OK;
    return error_set(err, STATUS_UNAVAILABLE, SUB_NONE,
                     "the connection to the engine is another one than that which has read");
}

Status pg_call_done(PostgresJournal *pg, JournalLane lane, PgStatement statement,
                    const PgParams *params, uint32_t ms, PgResult *out, bool *done, Error *err)
{
    AUTO(pg_result_done) PgResult result = {0};
    TRY(pg_call(pg, lane, statement, params, ms, &result, err));
    bool has_changed = pg_rows(&result) > 0;
    if (!has_changed) {
        uint64_t session = pg->lanes[lane].session;
        TRY(pg_settle(pg, journal_self(&pg->journal).node, lane, ms, err));
        TRY(pg_check_session(pg, lane, session, err));
    }
    *done = has_changed;
    if (out != NULL)
        *out = (PgResult){.libpq = result.libpq, .result = TAKE(result.result)};
    return STATUS_OK;
}
