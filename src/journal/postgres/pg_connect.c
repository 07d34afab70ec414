/* pg_connect.c - connections: hosts one after the other, and what a session must be like.
 *
 * libpq's own waiting is not used: it knows no deadline of the caller.
 */
#include "base/cond.h"
#include "journal/postgres/pg_int.h"

#include <poll.h>
#include <sys/socket.h>

enum { CONNECT_MS = 3000, PARAMS_MAX = 64, VERSION_MIN = 150000, IDLE_READS_MAX = 16 };
enum { SLICE_MS = 50 }; /* of waiting for an answer */

uint64_t pg_after_ms(uint32_t ms)
{
    return cond_after_ms(ms);
}

bool pg_wait(const PostgresJournal *pg, const PGconn *conn, short events, uint64_t deadline_us)
{
    for (;;) {
        uint64_t now_us = cond_now_us();
        if (now_us >= deadline_us)
            return false;
        uint64_t ms = (deadline_us - now_us + 999) / 1000;
        struct pollfd fd = {.fd = pg->libpq.socket(conn), .events = events};
        if (fd.fd < 0)
            return true; /* the next call of libpq says what has happened */
        if (poll(&fd, 1, ms > 60000 ? 60000 : (int)ms) > 0)
            return true;
    }
}

/* That of a statement, if the process is about to end: PG_HURRIED_MS after it has begun, or after
 * that has become known. */
static uint64_t hurry(PostgresJournal *pg, const PgLane *lane, uint64_t deadline_us)
{
    uint64_t from_us = atomic_load(&pg->journal.hurried_us);
    if (from_us == 0 || lane != &pg->lanes[JOURNAL_LANE_ADMIN])
        return deadline_us;
    uint64_t spared_us = (PG_ADMIN_MS - PG_HURRIED_MS) * UINT64_C(1000);
    from_us += PG_HURRIED_MS * UINT64_C(1000);
    if (deadline_us > from_us + spared_us)
        return deadline_us - spared_us;
    return deadline_us < from_us ? deadline_us : from_us;
}

Waited pg_wait_some(PostgresJournal *pg, const PgLane *lane, short events, uint64_t deadline_us)
{
    deadline_us = hurry(pg, lane, deadline_us);
    uint64_t until_us = pg_after_ms(SLICE_MS);
    if (pg_wait(pg, lane->conn, events, until_us < deadline_us ? until_us : deadline_us))
        return WAITED;
    if (pg_lane_is_old(pg, lane))
        return WAITED_REPLACED;
    return cond_now_us() < deadline_us ? WAITED_IN_VAIN : WAITED_LATE;
}

/* The socket is closed under libpq, which could otherwise wait to say goodbye. A statement that is
 * under way goes on: it is never cancelled. */
static void close_connection(const PostgresJournal *pg, PGconn *conn)
{
    int fd = pg->libpq.socket(conn);
    if (fd >= 0)
        (void)shutdown(fd, SHUT_RDWR); /* if it fails, there is nothing to shut */
    pg->libpq.finish(conn);
}

void pg_lane_close(const PostgresJournal *pg, PgLane *lane)
{
    if (lane->conn != NULL)
        close_connection(pg, lane->conn);
    *lane = (PgLane){.session = lane->session + 1, .session_of_read = lane->session_of_read};
}

/* A warning with the answer of a commit says that the standby may not have it. */
static void on_notice(void *ctx, const PGresult *notice)
{
    PgNotices *notices = ctx;
    const char *text = notices->libpq->resultErrorField(notice, PG_DIAG_MESSAGE_PRIMARY);
    if (!notices->has_warned)
        (void)snprintf(notices->warning, sizeof(notices->warning), "%s", text == NULL ? "" : text);
    notices->has_warned = true;
}

/* ---- one connection ---- */

typedef struct ConnectParams {
    const char *keys[PARAMS_MAX + 1];
    const char *values[PARAMS_MAX + 1];
    size_t count;
} ConnectParams;

static void set_param(ConnectParams *params, const char *key, const char *value)
{
    if (value == NULL)
        return;
    size_t at = 0;
    while (at < params->count && strcmp(params->keys[at], key) != 0)
        at++;
    ASSERT(at < PARAMS_MAX);
    params->keys[at] = key;
    params->values[at] = value;
    if (at == params->count)
        params->count++;
}

static const char *param_of(const ConnectParams *params, const char *key)
{
    for (size_t i = 0; i < params->count; i++) {
        if (strcmp(params->keys[i], key) == 0)
            return params->values[i];
    }
    return NULL;
}

static ConnectParams params_for(const PostgresJournal *pg, size_t host)
{
    ConnectParams params = {0};
    for (const PQconninfoOption *one = pg->target.info; one->keyword != NULL; one++) {
        /* An empty value stands for the default, as libpq takes it. */
        if (one->val != NULL && one->val[0] != '\0' && strcmp(one->keyword, "host") != 0 &&
            strcmp(one->keyword, "hostaddr") != 0 && strcmp(one->keyword, "port") != 0)
            set_param(&params, one->keyword, one->val);
    }
    set_param(&params, "host", pg->target.host[host]);
    set_param(&params, "hostaddr", pg->target.hostaddr[host]);
    set_param(&params, "port", pg->target.port[host]);
    set_param(&params, "target_session_attrs", "read-write");
    set_param(&params, "fallback_application_name", "orrery");
    set_param(&params, "client_encoding", "UTF8");
    set_param(&params, "keepalives", "1");
    set_param(&params, "keepalives_idle", "2");
    set_param(&params, "keepalives_interval", "1");
    set_param(&params, "keepalives_count", "3");
    set_param(&params, "tcp_user_timeout", "3000");
    set_param(&params, "gssencmode", "disable"); /* it would take the place of TLS */
    if (!pg->target.is_local) {
        if (param_of(&params, "sslmode") == NULL)
            set_param(&params, "sslmode", "verify-full");
        if (param_of(&params, "channel_binding") == NULL && param_of(&params, "sslcert") == NULL &&
            strcmp(param_of(&params, "sslmode"), "verify-full") == 0)
            set_param(&params, "channel_binding", "require");
    }
    return params;
}

static Status cannot_connect(const PostgresJournal *pg, const PGconn *conn, Error *err)
{
    const char *why = conn == NULL ? "out of memory" : pg->libpq.errorMessage(conn);
    size_t len = strcspn(why, "\n");
    return error_set(err, STATUS_UNAVAILABLE, SUB_NONE, "cannot connect to the engine: %.*s",
                     (int)(len < 300 ? len : 300), why);
}

static Status finish_connecting(const PostgresJournal *pg, PGconn *conn, size_t host,
                                uint64_t deadline_us, Error *err)
{
    if (conn == NULL || pg->libpq.status(conn) == CONNECTION_BAD)
        return cannot_connect(pg, conn, err);
    PostgresPollingStatusType state = PGRES_POLLING_WRITING;
    while (state != PGRES_POLLING_OK) {
        short events = state == PGRES_POLLING_READING ? POLLIN : POLLOUT;
        if (!pg_wait(pg, conn, events, deadline_us))
            return error_set(err, STATUS_UNAVAILABLE, SUB_NONE,
                             "cannot connect to the engine: %.100s does not answer in time",
                             pg->target.host[host] == NULL ? "it" : pg->target.host[host]);
        state = pg->libpq.connectPoll(conn);
        if (state == PGRES_POLLING_FAILED)
            return cannot_connect(pg, conn, err);
    }
    return STATUS_OK;
}

static Status connect_host(PostgresJournal *pg, PgLane *lane, size_t host, uint64_t deadline_us,
                           Error *err)
{
    ConnectParams params = params_for(pg, host);
    uint64_t until_us = pg_after_ms(CONNECT_MS);
    if (until_us > deadline_us)
        until_us = deadline_us;
    lane->notices.libpq = &pg->libpq;
    PGconn *conn = pg->libpq.connectStartParams(params.keys, params.values, 0);
    if (conn != NULL)
        (void)pg->libpq.setNoticeReceiver(conn, on_notice, &lane->notices);
    Status status = finish_connecting(pg, conn, host, until_us, err);
    if (status == STATUS_OK && pg->libpq.setnonblocking(conn, 1) != 0)
        status = cannot_connect(pg, conn, err);
    if (status == STATUS_OK)
        lane->conn = conn;
    else if (conn != NULL)
        close_connection(pg, conn);
    return status;
}

/* ---- one session ---- */

/* Roles, databases and the server's file can say otherwise, so a session says it itself. */
static const char SESSION_SQL[] =
    "SET client_min_messages = warning;"
    "SET search_path = orrery;"
    "SET default_transaction_isolation = 'read committed';"
    "SET lock_timeout = 1000;"
    "SET idle_in_transaction_session_timeout = 10000;"
    /* What would cancel a wait for the standby, and so answer success without it. */
    "SET statement_timeout = 0;"
    "SET client_connection_check_interval = 0;"
    "SET idle_session_timeout = 0;"
    "SET jit = off;"
    "SET work_mem = '16MB';"
    "SELECT set_config('synchronous_commit', CASE setting WHEN 'remote_apply' THEN setting"
    " ELSE 'on' END, false) FROM pg_settings WHERE name = 'synchronous_commit'";

static const char LOOK_SQL[] = "SELECT (SELECT system_identifier FROM pg_control_system()),"
                               " substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8),"
                               " current_setting('synchronous_commit')";

/* What a URL asks for by its options cannot be meant: see SESSION_SQL. */
static const char URL_SQL[] =
    "SELECT setting FROM pg_settings WHERE name = 'synchronous_commit' AND source = 'client'"
    " AND setting NOT IN ('on', 'remote_apply')";

static Status session_text(PostgresJournal *pg, JournalLane lane, const char *sql,
                           uint64_t deadline_us, PgResult *out, Error *err)
{
    EngineReply reply = pg_run_text(pg, lane, sql, deadline_us, out, err);
    return reply == ENGINE_ANSWERED ? STATUS_OK : STATUS_UNAVAILABLE;
}

static bool hex_to_u32(Slice text, uint32_t *out)
{
    uint32_t value = 0;
    for (size_t i = 0; i < text.len; i++) {
        const char *digits = "0123456789ABCDEF";
        const char *at = memchr(digits, text.ptr[i], 16);
        if (at == NULL)
            return false;
        value = value << 4 | (uint32_t)(at - digits);
    }
    *out = value;
    return text.len == 8;
}

/* Remembers the engine's newest timeline. A connection to an older one is to a server that was
 * replaced. */
static Status meet_engine(PostgresJournal *pg, PgLane *lane, JournalEngineId id, Error *err)
{
    lane->timeline = id.timeline;
    pthread_mutex_lock(&pg->lock);
    bool is_other = pg->id.system != 0 && pg->id.system != id.system;
    bool is_old = !is_other && pg->id.timeline > id.timeline;
    uint32_t newest = pg->id.timeline;
    if (!is_other && !is_old)
        pg->id = id;
    pthread_mutex_unlock(&pg->lock);
    if (is_other)
        return error_set(err, STATUS_UNAVAILABLE, SUB_NONE,
                         "this is another engine than before: its system identifier is %llu",
                         (unsigned long long)id.system);
    if (is_old)
        return error_set(err, STATUS_UNAVAILABLE, SUB_NONE,
                         "this server was replaced: its timeline is %u, and the engine's %u",
                         id.timeline, newest);
    if (newest != id.timeline && pg->log != NULL)
        LOG_INFO(pg->log, "journal.engine", "system=%llu timeline=%u",
                 (unsigned long long)id.system, id.timeline);
    return STATUS_OK;
}

static Status look_at_engine(PostgresJournal *pg, JournalLane number, uint64_t deadline_us,
                             Error *err)
{
    AUTO(pg_result_done) PgResult seen = {0};
    TRY(session_text(pg, number, LOOK_SQL, deadline_us, &seen, err));
    JournalEngineId id = {0};
    if (pg_rows(&seen) != 1 || !slice_to_u64(pg_get_bytes(&seen, 0, 0), &id.system) ||
        !hex_to_u32(pg_get_bytes(&seen, 0, 1), &id.timeline))
        return error_set(err, STATUS_UNAVAILABLE, SUB_NONE,
                         "the engine does not say which it is, and on which timeline");
    Slice commit = pg_get_bytes(&seen, 0, 2);
    if (!slice_equal(commit, SLICE("on")) && !slice_equal(commit, SLICE("remote_apply")))
        return error_set(err, STATUS_UNAVAILABLE, SUB_NONE,
                         "synchronous_commit of the session is '%.*s' and must be 'on'",
                         SLICE_CUT(commit, 20));
    return meet_engine(pg, &pg->lanes[number], id, err);
}

static Status begin_session(PostgresJournal *pg, JournalLane number, uint64_t deadline_us,
                            Error *err)
{
    PgLane *lane = &pg->lanes[number];
    int version = pg->libpq.serverVersion(lane->conn);
    if (version < VERSION_MIN)
        return error_set(err, STATUS_UNAVAILABLE, SUB_NONE,
                         "the engine is PostgreSQL %d; it must be 15 or newer", version / 10000);

    AUTO(pg_result_done) PgResult by_url = {0};
    TRY(session_text(pg, number, URL_SQL, deadline_us, &by_url, err));
    if (pg_rows(&by_url) > 0)
        return error_set(err, STATUS_UNAVAILABLE, SUB_NONE,
                         "the URL of the engine asks for synchronous_commit=%.*s; a journal needs "
                         "'on'",
                         SLICE_CUT(pg_get_bytes(&by_url, 0, 0), 20));
    AUTO(pg_result_done) PgResult set = {0};
    TRY(session_text(pg, number, SESSION_SQL, deadline_us, &set, err));
    return look_at_engine(pg, number, deadline_us, err);
}

/* ---- lanes ---- */

/* One that was replaced by its standby and still lives takes connections as before, and its answers
 * wait for that standby for ever. */
void pg_leave_host(PostgresJournal *pg, size_t host)
{
    size_t next = (host + 1) % pg->target.host_count;
    (void)atomic_compare_exchange_strong(&pg->host, &host, next);
}

static Status connect_lane(PostgresJournal *pg, JournalLane number, uint64_t deadline_us,
                           Error *err)
{
    PgLane *lane = &pg->lanes[number];
    size_t first = atomic_load_explicit(&pg->host, memory_order_relaxed);
    bool has_reason = false;
    for (size_t i = 0; i < pg->target.host_count; i++) {
        size_t host = (first + i) % pg->target.host_count;
        Error error = {0};
        pg_lane_close(pg, lane);
        bool is_connected = connect_host(pg, lane, host, deadline_us, &error) == STATUS_OK;
        if (is_connected && begin_session(pg, number, deadline_us, &error) == STATUS_OK) {
            lane->host = host;
            atomic_store_explicit(&pg->host, host, memory_order_relaxed);
            return STATUS_OK;
        }
        pg_lane_close(pg, lane);
        /* Why the server that takes writes is not used says more than that the others do not. */
        if (!has_reason)
            *err = error;
        has_reason |= is_connected;
    }
    pg_leave_host(pg, first); /* it may have taken all the time that there was */
    return STATUS_UNAVAILABLE;
}

/* Whether a connection that waits for a statement was closed by the other side, as far as can be
 * known before anything is sent: an answer that was never asked for cannot be lost. A server
 * that is stopped says so before it closes, so what it says is read to its end. */
static bool is_open(const PostgresJournal *pg, PGconn *conn)
{
    for (unsigned i = 0; i < IDLE_READS_MAX; i++) {
        struct pollfd fd = {.fd = pg->libpq.socket(conn), .events = POLLIN};
        if (fd.fd < 0)
            return false;
        if (poll(&fd, 1, 0) == 0)
            return pg->libpq.status(conn) == CONNECTION_OK;
        if (pg->libpq.consumeInput(conn) != 1)
            return false;
        (void)pg->libpq.isBusy(conn); /* takes what was read out of libpq's buffer */
    }
    return false;
}

bool pg_lane_is_old(PostgresJournal *pg, const PgLane *lane)
{
    pthread_mutex_lock(&pg->lock);
    /* A session has no timeline before it was asked. */
    bool is_old = lane->timeline != 0 && lane->timeline < pg->id.timeline;
    pthread_mutex_unlock(&pg->lock);
    return is_old;
}

Status pg_lane_ready(PostgresJournal *pg, JournalLane number, uint64_t deadline_us, Error *err)
{
    PgLane *lane = &pg->lanes[number];
    if (lane->conn != NULL && (pg_lane_is_old(pg, lane) || !is_open(pg, lane->conn)))
        pg_lane_close(pg, lane);
    if (lane->conn != NULL)
        return STATUS_OK;
    return connect_lane(pg, number, deadline_us, err);
}
