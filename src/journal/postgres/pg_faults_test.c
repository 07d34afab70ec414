/* pg_faults_test.c - what only a real server can show: crashes, failover, waits for the standby
 * that are cancelled, settings that would lose data, locks, backups under load. Each
 * test has a server and a standby of its own. */
#include "journal/postgres/pg_int.h"
#include "journal/postgres/pg_testing_int.h"

#include <stdatomic.h>
#include <sys/eventfd.h>

static AppendOutcome append(Rig *rig, const char *text, uint64_t ms)
{
    return append_text(rig->a, 1, &rig->place, text, ms);
}

static void wait_for_sql(const PostgresPair *pair, const char *sql, const char *expected)
{
    char answer[200];
    for (;;) {
        pair_sql(pair, "a", sql, answer, sizeof(answer));
        if (strcmp(answer, expected) == 0)
            return;
        sleep_ms(20);
    }
}

/* An append on a thread of its own, since it waits for the standby. */
typedef struct Waiting {
    Rig *rig;
    AppendOutcome outcome;
    pthread_t thread;
} Waiting;

static void *wait_in_append(void *ctx)
{
    Waiting *waiting = ctx;
    waiting->outcome = append(waiting->rig, "waiting", 4000);
    return NULL;
}

static void start_waiting(Waiting *waiting, Rig *rig)
{
    *waiting = (Waiting){.rig = rig};
    assert_ok(thread_start(&waiting->thread, "append", wait_in_append, waiting, err));
    wait_for_sql(&rig->pair,
                 "SELECT count(*) > 0 FROM pg_stat_activity WHERE wait_event = 'SyncRep'", "t");
}

/* ---- crashes and failover ---- */

static void what_no_standby_has_is_never_believed(void **state)
{
    (void)state;
    AUTO(rig_done) Rig rig;
    rig_init(&rig, "");
    assert_int_equal(append(&rig, "acknowledged", 30000), APPEND_DONE);
    pair_do(&rig.pair, "stop", "b");
    assert_int_equal(append(&rig, "unacknowledged", 1500), APPEND_UNKNOWN);
    pair_do(&rig.pair, "kill", "a");
    pair_do(&rig.pair, "run", "a");

    /* Seen, but no write that follows is acknowledged. */
    assert_slice_text(log_text(rig.a, 1, 0), "acknowledged|unacknowledged");
    Error error;
    const JournalOwner *owners = NULL;
    size_t count = 0;
    assert_status(
        journal_owners(rig.a, JOURNAL_LANE_NODE, NULL, 0, &test_arena, &owners, &count, &error),
        STATUS_UNAVAILABLE);

    pair_do(&rig.pair, "kill", "a");
    pair_do(&rig.pair, "run", "b");
    uint32_t timeline = journal_engine_id(rig.a).timeline;
    pair_do(&rig.pair, "promote", "b");
    assert_slice_text(log_text(rig.a, 1, 0), "acknowledged");
    assert_true(journal_engine_id(rig.a).timeline > timeline);

    /* Nothing that was acknowledged is missing, so the owner goes on where it was. */
    JournalOwner owner = owner_of(rig.a, 1);
    assert_memory_equal(&owner.tail.chain, &rig.place.chain, sizeof(owner.tail.chain));
    assert_int_equal(append(&rig, "after", 30000), APPEND_DONE);
    assert_slice_text(log_text(rig.a, 1, 0), "acknowledged|after");

    /* The old server comes back as it was. It is on an older timeline. */
    pair_do(&rig.pair, "run", "a");
    Slice old_url = arena_format(&test_arena, "postgresql://postgres@127.0.0.1:%u/postgres",
                                 pair_port(&rig.pair, "a"));
    AUTO(journal_close) Journal *late = open_postgres(arena_cstr(&test_arena, old_url), 0);
    journal_meet(late, journal_engine_id(rig.a));
    JournalMember member;
    JournalJoin join = {.name = SLICE("z")};
    assert_status(journal_join(late, &join, &member, &error), STATUS_UNAVAILABLE);
    assert_non_null(strstr(error.message, "timeline"));
}

static void an_append_whose_wait_for_the_standby_is_cancelled_is_not_done(void **state)
{
    (void)state;
    AUTO(rig_done) Rig rig;
    rig_init(&rig, "");
    pair_do(&rig.pair, "stop", "b");
    Waiting waiting;
    start_waiting(&waiting, &rig);
    /* The server answers success then, with a warning, and so it does to what comes after. */
    for (unsigned i = 0; i < 10; i++) {
        pair_sql(&rig.pair, "a",
                 "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'",
                 NULL, 0);
        sleep_ms(50);
    }
    pthread_join(waiting.thread, NULL);
    assert_int_equal(waiting.outcome, APPEND_UNKNOWN);
    assert_slice_text(log_text(rig.a, 1, 0), "waiting"); /* it can be seen on the primary */

    /* And not on the standby. Nothing that was acknowledged is missing there. */
    pair_do(&rig.pair, "kill", "a");
    pair_do(&rig.pair, "run", "b");
    pair_do(&rig.pair, "promote", "b");
    assert_slice_text(log_text(rig.a, 1, 0), "");
    assert_int_equal(append(&rig, "after", 30000), APPEND_DONE);
    assert_slice_text(log_text(rig.a, 1, 0), "after");
}

/* An operator has taken the synchronous standby away, and promotes it later all the same. */
static void the_promotion_of_a_standby_that_was_behind_is_told(void **state)
{
    (void)state;
    AUTO(rig_done) Rig rig;
    rig_init(&rig, "");
    assert_int_equal(append(&rig, "both", 30000), APPEND_DONE);
    pair_sql(&rig.pair, "a", "ALTER SYSTEM SET synchronous_standby_names = ''", NULL, 0);
    pair_sql(&rig.pair, "a", "SELECT pg_reload_conf()", NULL, 0);
    wait_for_sql(&rig.pair, "SHOW synchronous_standby_names", "");
    pair_do(&rig.pair, "stop", "b");
    assert_int_equal(append(&rig, "lost", 30000), APPEND_DONE);
    uint32_t timeline = journal_engine_id(rig.a).timeline;
    pair_do(&rig.pair, "kill", "a");
    pair_do(&rig.pair, "run", "b");
    pair_do(&rig.pair, "promote", "b");
    assert_int_equal(append(&rig, "after", 30000), APPEND_LOST);
    assert_true(journal_engine_id(rig.a).timeline > timeline);
    assert_slice_text(log_text(rig.a, 1, 0), "both");
}

static void an_append_that_waits_is_done_when_the_standby_returns(void **state)
{
    (void)state;
    AUTO(rig_done) Rig rig;
    rig_init(&rig, "");
    pair_do(&rig.pair, "stop", "b");
    JournalUsage usage = {0};
    wait_for_sql(&rig.pair, "SELECT count(*) FROM pg_stat_replication", "0");
    assert_ok(journal_usage(rig.a, JOURNAL_LANE_ADMIN, &test_arena, &usage, err));
    assert_false(usage.has_synchronous_standby);
    assert_non_null(strstr(arena_cstr(&test_arena, usage.warning), "standby is away"));
    Waiting waiting;
    start_waiting(&waiting, &rig);
    pair_do(&rig.pair, "run", "b");
    pthread_join(waiting.thread, NULL);
    if (waiting.outcome == APPEND_UNKNOWN) /* it took longer than the deadline */
        return;
    assert_int_equal(waiting.outcome, APPEND_DONE);
    assert_slice_text(log_text(rig.a, 1, 0), "waiting");
}

static void a_server_that_hangs_and_was_replaced_is_not_waited_for(void **state)
{
    (void)state;
    AUTO(rig_done) Rig rig;
    rig_init(&rig, "");
    assert_int_equal(append(&rig, "one", 30000), APPEND_DONE);
    JournalEngineId id = journal_engine_id(rig.a);
    pair_do(&rig.pair, "pause", "a");
    Waiting waiting = {.rig = &rig};
    assert_ok(thread_start(&waiting.thread, "append", wait_in_append, &waiting, err));
    pair_do(&rig.pair, "promote", "b");
    id.timeline++;
    journal_meet(rig.a, id); /* as another lane does, or a message of another node */
    pthread_join(waiting.thread, NULL);
    pair_do(&rig.pair, "resume", "a");
    assert_int_equal(waiting.outcome, APPEND_DONE);
    assert_slice_text(log_text(rig.a, 1, 0), "one|waiting");
}

/* A follower reads from the old primary, which then dies; its report goes to the new one. */
static void a_report_to_another_server_says_nothing_about_what_was_read(void **state)
{
    (void)state;
    AUTO(rig_done) Rig rig;
    rig_init(&rig, "");
    assert_int_equal(append(&rig, "acknowledged", 30000), APPEND_DONE);
    pair_do(&rig.pair, "stop", "b");
    assert_int_equal(append(&rig, "unacknowledged", 1500), APPEND_UNKNOWN);
    pair_do(&rig.pair, "kill", "a");
    pair_do(&rig.pair, "run", "a");
    assert_slice_text(log_text(rig.a, 1, 0), "acknowledged|unacknowledged");
    pair_do(&rig.pair, "kill", "a");
    pair_do(&rig.pair, "run", "b");
    pair_do(&rig.pair, "promote", "b");
    Error error;
    JournalReplica one = {.space = 1, .state = REPLICA_FOLLOWING};
    assert_status(journal_report(rig.a, JOURNAL_LANE_FOLLOW, &one, 1, &error), STATUS_UNAVAILABLE);
    assert_non_null(strstr(error.message, "another one"));
    assert_slice_text(log_text(rig.a, 1, 0), "acknowledged");
    assert_ok(journal_report(rig.a, JOURNAL_LANE_FOLLOW, &one, 1, err));
}

static void a_restored_backup_is_told(void **state)
{
    (void)state;
    AUTO(rig_done) Rig rig;
    rig_init(&rig, "");
    assert_int_equal(append(&rig, "one", 30000), APPEND_DONE);
    pair_do(&rig.pair, "save", "a");
    assert_int_equal(append(&rig, "two", 30000), APPEND_DONE);
    pair_do(&rig.pair, "stop", "b");
    pair_do(&rig.pair, "restore", "a");
    assert_int_equal(append(&rig, "three", 30000), APPEND_LOST);
    assert_slice_text(log_text(rig.a, 1, 0), "one");
}

/* ---- settings ---- */

static void settings_that_would_lose_data_are_overruled_or_refused(void **state)
{
    (void)state;
    AUTO(rig_done) Rig rig;
    rig_init(&rig, "");
    static const char *const settings[] = {"off", "local", "remote_write"};
    for (size_t i = 0; i < ARRAY_COUNT(settings); i++) {
        Slice sql = arena_format(&test_arena, "ALTER ROLE postgres SET synchronous_commit = %s",
                                 settings[i]);
        pair_sql(&rig.pair, "a", arena_cstr(&test_arena, sql), NULL, 0);
        Journal *other = open_postgres(pair_url(&rig.pair, ""), 0);
        (void)join_as(other, settings[i], 0);
        AUTO(pg_result_done) PgResult row = {0};
        Error error;
        assert_int_equal(pg_run_text(pg_of(other), JOURNAL_LANE_NODE, "SHOW synchronous_commit",
                                     pg_after_ms(30000), &row, &error),
                         ENGINE_ANSWERED);
        assert_slice_text(pg_get_bytes(&row, 0, 0), "on");
        JournalUsage usage = {0};
        assert_ok(journal_usage(other, JOURNAL_LANE_ADMIN, &test_arena, &usage, err));
        assert_non_null(strstr(arena_cstr(&test_arena, usage.warning), settings[i]));
        pg_result_done(&row);
        journal_close(other);

        Slice options =
            arena_format(&test_arena, "?options=-csynchronous_commit%%3D%s", settings[i]);
        AUTO(journal_close)
        Journal *refused = open_postgres(pair_url(&rig.pair, arena_cstr(&test_arena, options)), 0);
        JournalMember member;
        JournalJoin join = {.name = SLICE("z")};
        assert_status(journal_join(refused, &join, &member, &error), STATUS_UNAVAILABLE);
        assert_non_null(strstr(error.message, settings[i]));
    }
}

static void a_role_without_privileges_is_enough(void **state)
{
    (void)state;
    AUTO(rig_done) Rig rig;
    rig_init(&rig, "");
    pair_sql(&rig.pair, "a", "CREATE ROLE plain LOGIN", NULL, 0);
    pair_sql(&rig.pair, "a", "CREATE DATABASE mine OWNER plain", NULL, 0);
    Slice url = arena_format(&test_arena, "postgresql://plain@127.0.0.1:%u/mine",
                             pair_port(&rig.pair, "a"));
    AUTO(journal_close) Journal *journal = open_postgres(arena_cstr(&test_arena, url), 0);
    assert_true(join_as(journal, "p", 0).is_first); /* another database is another cluster */
    create_space(journal, 1);
    JournalPlace place = owner_of(journal, 1).tail;
    assert_int_equal(append_text(journal, 1, &place, "x", 30000), APPEND_DONE);
    JournalUsage usage = {0};
    assert_ok(journal_usage(journal, JOURNAL_LANE_ADMIN, &test_arena, &usage, err));
    assert_true(usage.has_synchronous_standby);
    assert_non_null(strstr(arena_cstr(&test_arena, usage.warning), "pg_read_all_stats"));
    assert_true(slice_starts_with(usage.engine, SLICE("PostgreSQL ")));
}

/* ---- waiting ---- */

static int silent_fd = -1;

static int silent_socket(const PGconn *conn)
{
    (void)conn;
    return silent_fd;
}

/* As with TLS, whose library may have taken from the socket more than was asked of it. */
static void an_answer_that_is_in_no_socket_is_read(void **state)
{
    (void)state;
    AUTO(rig_done) Rig rig;
    rig_init(&rig, "");
    assert_int_equal(append(&rig, "x", 30000), APPEND_DONE);
    silent_fd = eventfd(0, EFD_CLOEXEC);
    assert_true(silent_fd >= 0);
    pg_of(rig.a)->libpq.socket = silent_socket;
    uint64_t begun_us = clock_monotonic_us(clock_real());
    assert_int_equal(append(&rig, "y", 30000), APPEND_DONE);
    assert_true(clock_monotonic_us(clock_real()) - begun_us < 5000000);
    close(silent_fd);
    silent_fd = -1;
}

/* A statement on a thread of its own, to which the server gives no answer for long. */
static void *sleep_in_engine(void *ctx)
{
    Journal *journal = ctx;
    AUTO(pg_result_done) PgResult row = {0};
    Error error;
    EngineReply reply = pg_run_text(pg_of(journal), JOURNAL_LANE_NODE, "SELECT pg_sleep(60)",
                                    pg_after_ms(50000), &row, &error);
    return reply == ENGINE_LOST && strstr(error.message, "replaced") != NULL ? journal : NULL;
}

static void a_server_that_was_replaced_is_not_waited_for(void **state)
{
    (void)state;
    AUTO(rig_done) Rig rig;
    rig_init(&rig, "");
    pthread_t thread;
    uint64_t begun_us = clock_monotonic_us(clock_real());
    assert_ok(thread_start(&thread, "sleep", sleep_in_engine, rig.a, err));
    wait_for_sql(&rig.pair,
                 "SELECT count(*) > 0 FROM pg_stat_activity WHERE wait_event = 'PgSleep'", "t");
    JournalEngineId id = journal_engine_id(rig.a);
    id.timeline++;
    journal_meet(rig.a, id); /* another node has met its successor */
    void *gave_up = NULL;
    pthread_join(thread, &gave_up);
    assert_ptr_equal(gave_up, rig.a);
    assert_true(clock_monotonic_us(clock_real()) - begun_us < 20000000);
}

/* The old primary lives as far as TCP can tell. The other one answers. */
static void a_server_that_hangs_does_not_use_up_the_deadline(void **state)
{
    (void)state;
    AUTO(rig_done) Rig rig;
    rig_init(&rig, "");
    AUTO(proxy_free) PgProxy *proxy = proxy_new(pair_port(&rig.pair, "a"));
    Slice url = arena_format(
        &test_arena, "postgresql://postgres@127.0.0.1:%u/postgres?sslmode=disable", proxy->port);
    AUTO(journal_close) Journal *b = open_postgres(arena_cstr(&test_arena, url), 0);
    (void)join_as(b, "b", 0);
    create_space(b, 2);
    JournalPlace place = owner_of(b, 2).tail;
    proxy_hang(proxy);
    uint64_t begun_us = clock_monotonic_us(clock_real());
    assert_int_equal(append_text(b, 2, &place, "x", 40000), APPEND_DONE);
    assert_true(clock_monotonic_us(clock_real()) - begun_us < 20000000);
}

/* ---- locks ---- */

static void a_busy_space_does_not_keep_the_others_waiting(void **state)
{
    (void)state;
    AUTO(rig_done) Rig rig;
    rig_init(&rig, "");
    create_space(rig.a, 2);
    Journal *other = open_postgres(pair_url(&rig.pair, ""), 0);
    (void)join_as(other, "b", 0);
    AUTO(pg_result_done) PgResult locked = {0};
    Error error = {0};
    assert_int_equal(pg_run_text(pg_of(other), JOURNAL_LANE_NODE,
                                 "BEGIN; SELECT 1 FROM owner WHERE space = 1 FOR UPDATE",
                                 pg_after_ms(30000), &locked, &error),
                     ENGINE_ANSWERED);
    pg_result_done(&locked);
    JournalPlace start = {.epoch = 1};
    JournalAppend both[] = {make_append(1, &start, 1, "x"), make_append(2, &start, 1, "y")};
    Status status = journal_append(rig.a, JOURNAL_LANE_APPEND_0, both, 2, after_ms(4500), &error);
    /* The engine has refused it, or the deadline has come while it waited. */
    assert_int_equal(both[0].outcome, status == STATUS_OK ? APPEND_UNKNOWN : APPEND_PENDING);
    assert_int_equal(both[1].outcome, APPEND_DONE);

    journal_close(other);
    assert_ok(journal_append(rig.a, JOURNAL_LANE_APPEND_0, both, 1, after_ms(30000), err));
    assert_int_equal(both[0].outcome, APPEND_DONE);
}

typedef struct Taker {
    Journal *journal;
    pthread_t thread;
    unsigned taken;
} Taker;

enum { DUEL_SPACES = 40 };

/* Takes spaces over from the last to the first, while appends lock them from the first on. */
static void *take_all(void *ctx)
{
    Taker *taker = ctx;
    Arena arena;
    arena_init(&arena, 4096);
    for (uint64_t space = 100 + DUEL_SPACES; space-- > 100;) {
        JournalOwner owner;
        bool done = false;
        Error error;
        while (journal_take_over(taker->journal, space, 1, &arena, &owner, &done, &error) !=
               STATUS_OK)
            sleep_ms(1);
        taker->taken += done;
    }
    arena_done(&arena);
    return NULL;
}

static void take_overs_and_large_appends_do_not_block_each_other(void **state)
{
    (void)state;
    AUTO(rig_done) Rig rig;
    rig_init(&rig, "");
    AUTO(journal_close) Journal *b = open_postgres(pair_url(&rig.pair, ""), 0);
    (void)join_as(b, "b", 0);
    JournalAppend appends[DUEL_SPACES];
    JournalPlace start = {.epoch = 1};
    for (uint64_t i = 0; i < DUEL_SPACES; i++) {
        create_space(rig.a, 100 + i);
        appends[i] = make_append(100 + i, &start, 1, "x");
    }
    JournalSelf self = journal_self(rig.a);
    bool done = false;
    assert_ok(journal_declare_dead(b, self.node, self.incarnation, 1, &done, err));
    assert_true(done);
    Taker taker = {.journal = b};
    assert_ok(thread_start(&taker.thread, "taker", take_all, &taker, err));
    size_t left = DUEL_SPACES;
    while (left > 0) {
        assert_ok(
            journal_append(rig.a, JOURNAL_LANE_APPEND_0, appends, left, after_ms(60000), err));
        size_t kept = 0;
        for (size_t i = 0; i < left; i++) {
            assert_true(appends[i].outcome == APPEND_DONE ||
                        appends[i].outcome == APPEND_NOT_OWNER);
            if (appends[i].outcome == APPEND_DONE)
                appends[kept++] = make_append(appends[i].space, &appends[i].after, 1, "x");
        }
        left = kept;
    }
    pthread_join(taker.thread, NULL);
    assert_int_equal(taker.taken, DUEL_SPACES);
}

/* ---- rotation ---- */

typedef struct Load {
    Rig *rig;
    atomic_bool is_stopping;
    _Atomic uint64_t applied; /* by the follower, which must not be left behind */
    uint64_t done;
    unsigned failed;
    uint64_t ms_max; /* the longest that one has taken */
    pthread_t thread;
} Load;

enum { LEAD_MAX = 200, DUMP_ROUND = 3 };

static uint64_t now_ms(void)
{
    return clock_monotonic_us(clock_real()) / 1000;
}

static void *append_all_the_time(void *ctx)
{
    Load *load = ctx;
    char text[4096];
    memset(text, 'x', sizeof(text));
    text[sizeof(text) - 1] = '\0';
    while (!atomic_load(&load->is_stopping)) {
        uint64_t begun_ms = now_ms();
        if (load->done > atomic_load(&load->applied) + LEAD_MAX)
            sleep_ms(1);
        else if (append(load->rig, text, 60000) == APPEND_DONE)
            load->done++;
        else
            load->failed++;
        uint64_t ms = now_ms() - begun_ms;
        load->ms_max = ms > load->ms_max ? ms : load->ms_max;
    }
    return NULL;
}

/* A follower that keeps up, while entries are trimmed behind it and the tables go round. */
static void tables_rotate_under_readers_and_a_backup(void **state)
{
    (void)state;
    AUTO(rig_done) Rig rig;
    rig_init(&rig, "");
    AUTO(journal_close) Journal *b = open_postgres(pair_url(&rig.pair, ""), 0);
    (void)join_as(b, "b", 0);
    Load load = {.rig = &rig};
    assert_ok(thread_start(&load.thread, "load", append_all_the_time, &load, err));
    uint64_t applied = 0;
    unsigned rounds = 0;
    /* Round the four tables, and on. */
    while (atomic_load(&pg_of(rig.a)->generation) < PG_TABLES + 2 || rounds <= DUMP_ROUND) {
        JournalEntries entries = {0};
        assert_ok(
            journal_read(b, JOURNAL_LANE_FOLLOW, 1, applied, 16 << 20, &test_arena, &entries, err));
        assert_true(entries.base <= applied);
        applied += entries.count;
        atomic_store(&load.applied, applied);
        JournalReplica one = {
            .space = 1, .state = REPLICA_FOLLOWING, .applied = applied, .durable = applied};
        assert_ok(journal_report(b, JOURNAL_LANE_FOLLOW, &one, 1, err));
        assert_ok(journal_trim(rig.a, JOURNAL_LANE_ADMIN, 1, 1, applied, err));
        assert_ok(journal_rotate(rig.a, JOURNAL_LANE_ADMIN, err));
        bool is_member = false;
        bool is_draining = false;
        assert_ok(journal_renew(rig.a, 0, SLICE_EMPTY, &is_member, &is_draining, err));
        if (rounds++ == DUMP_ROUND)
            pair_do(&rig.pair, "dump", "a");
        arena_reset(&test_arena);
    }
    atomic_store(&load.is_stopping, true);
    pthread_join(load.thread, NULL);
    assert_int_equal(load.failed, 0);
    assert_true(load.done > 0);
    JournalUsage usage = {0};
    assert_ok(journal_usage(rig.a, JOURNAL_LANE_ADMIN, &test_arena, &usage, err));
    assert_true(usage.bytes < 64 << 20);
}

enum { HELD_UP_MS = 5000 }; /* far less than a lease */

static void run_sql(Journal *journal, const char *sql)
{
    AUTO(pg_result_done) PgResult result = {0};
    Error error = {0};
    assert_int_equal(
        pg_run_text(pg_of(journal), JOURNAL_LANE_NODE, sql, pg_after_ms(30000), &result, &error),
        ENGINE_ANSWERED);
}

static size_t count_rows(Rig *rig, unsigned table)
{
    char sql[64];
    char answer[32];
    (void)snprintf(sql, sizeof(sql), "SELECT count(*) FROM orrery.entry_%u", table);
    pair_sql(&rig->pair, "a", sql, answer, sizeof(answer));
    return (size_t)strtoul(answer, NULL, 10);
}

/* As pg_dump does for as long as it runs: then no table can be emptied. */
static void a_reader_that_locks_the_tables_only_puts_emptying_off(void **state)
{
    (void)state;
    AUTO(rig_done) Rig rig;
    rig_init(&rig, "");
    AUTO(journal_close) Journal *reader = open_postgres(pair_url(&rig.pair, ""), 0);
    (void)join_as(reader, "b", 0);
    char text[4096];
    memset(text, 'x', sizeof(text));
    text[sizeof(text) - 1] = '\0';
    PostgresJournal *pg = pg_of(rig.a);
    for (uint64_t first = atomic_load(&pg->generation); atomic_load(&pg->generation) == first;) {
        assert_int_equal(append(&rig, text, 30000), APPEND_DONE);
        assert_ok(journal_rotate(rig.a, JOURNAL_LANE_ADMIN, err));
    }
    unsigned table = (unsigned)((atomic_load(&pg->generation) - 1) % PG_TABLES);
    size_t rows = count_rows(&rig, table);
    assert_true(rows > 0);
    assert_ok(journal_trim(rig.a, JOURNAL_LANE_ADMIN, 1, 1, rig.place.seq, err));

    run_sql(reader, "BEGIN; LOCK TABLE entry_0, entry_1, entry_2, entry_3 IN ACCESS SHARE MODE");
    Load load = {.rig = &rig};
    atomic_store(&load.applied, UINT64_MAX - LEAD_MAX); /* as many as can be */
    assert_ok(thread_start(&load.thread, "load", append_all_the_time, &load, err));
    for (int i = 0; i < 5; i++) {
        uint64_t begun_ms = now_ms();
        assert_ok(journal_rotate(rig.a, JOURNAL_LANE_ADMIN, err));
        assert_true(now_ms() - begun_ms < HELD_UP_MS);
    }
    atomic_store(&load.is_stopping, true);
    pthread_join(load.thread, NULL);
    assert_int_equal(load.failed, 0);
    assert_true(load.done > 0);
    assert_true(load.ms_max < HELD_UP_MS);
    assert_int_equal(count_rows(&rig, table), rows);

    run_sql(reader, "COMMIT");
    assert_ok(journal_rotate(rig.a, JOURNAL_LANE_ADMIN, err));
    assert_int_equal(count_rows(&rig, table), 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, test_arena_setup, test_arena_teardown)
    const struct CMUnitTest tests[] = {
        TEST(what_no_standby_has_is_never_believed),
        TEST(an_append_whose_wait_for_the_standby_is_cancelled_is_not_done),
        TEST(the_promotion_of_a_standby_that_was_behind_is_told),
        TEST(an_append_that_waits_is_done_when_the_standby_returns),
        TEST(a_server_that_hangs_and_was_replaced_is_not_waited_for),
        TEST(a_report_to_another_server_says_nothing_about_what_was_read),
        TEST(a_restored_backup_is_told),
        TEST(settings_that_would_lose_data_are_overruled_or_refused),
        TEST(a_role_without_privileges_is_enough),
        TEST(an_answer_that_is_in_no_socket_is_read),
        TEST(a_server_that_was_replaced_is_not_waited_for),
        TEST(a_server_that_hangs_does_not_use_up_the_deadline),
        TEST(a_busy_space_does_not_keep_the_others_waiting),
        TEST(take_overs_and_large_appends_do_not_block_each_other),
        TEST(tables_rotate_under_readers_and_a_backup),
        TEST(a_reader_that_locks_the_tables_only_puts_emptying_off),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
