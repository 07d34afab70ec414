/* pg_rows_test.c - what is read from a real server: rows that no node has written, long entries. */
#include "journal/postgres/pg_int.h"
#include "journal/postgres/pg_testing_int.h"

static Status see_nodes(Journal *journal, Error *err)
{
    const JournalNode *nodes = NULL;
    size_t count = 0;
    return journal_nodes(journal, JOURNAL_LANE_ADMIN, &test_arena, &nodes, &count, err);
}

static Status see_owners(Journal *journal, Error *err)
{
    const JournalOwner *owners = NULL;
    size_t count = 0;
    return journal_owners(journal, JOURNAL_LANE_ADMIN, NULL, 0, &test_arena, &owners, &count, err);
}

static Status see_replicas(Journal *journal, Error *err)
{
    const JournalReplica *replicas = NULL;
    size_t count = 0;
    return journal_replicas(journal, JOURNAL_LANE_ADMIN, &test_arena, &replicas, &count, err);
}

/* Callers have room for names of JOURNAL_NAME_MAX. */
static void rows_that_no_node_writes_are_refused(void **state)
{
    (void)state;
    AUTO(rig_done) Rig rig;
    rig_init(&rig, "");
    static const struct {
        Status (*see)(Journal *journal, Error *err);
        const char *spoil;
        const char *mend;
    } rows[] = {
        {see_nodes, "UPDATE orrery.node SET node = repeat('a', 64)",
         "UPDATE orrery.node SET node = 'a'"},
        {see_nodes, "UPDATE orrery.node SET unreachable = ARRAY['b', 'c d']",
         "UPDATE orrery.node SET unreachable = '{}'"},
        {see_nodes, "UPDATE orrery.node SET region = repeat('a', 256)",
         "UPDATE orrery.node SET region = 'here'"},
        {see_owners, "UPDATE orrery.owner SET node = repeat('a', 64)",
         "UPDATE orrery.owner SET node = 'a'"},
        {see_replicas, "INSERT INTO orrery.replica VALUES (1, '', 1, 0, 0)",
         "DELETE FROM orrery.replica"},
    };
    char ignored[64];
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        Error error = {0};
        pair_sql(&rig.pair, "a", rows[i].spoil, ignored, sizeof(ignored));
        assert_status(rows[i].see(rig.a, &error), STATUS_CORRUPT);
        pair_sql(&rig.pair, "a", rows[i].mend, ignored, sizeof(ignored));
        assert_ok(rows[i].see(rig.a, err));
    }
}

static void a_format_that_no_program_has_is_never_written(void **state)
{
    (void)state;
    AUTO(rig_done) Rig rig;
    rig_init(&rig, "");
    static const int FORMATS[] = {0, JOURNAL_FORMAT + 1, 300};
    for (size_t i = 0; i < ARRAY_COUNT(FORMATS); i++) {
        char sql[64], ignored[64];
        (void)snprintf(sql, sizeof(sql), "UPDATE orrery.cluster SET format = %d", FORMATS[i]);
        pair_sql(&rig.pair, "a", sql, ignored, sizeof(ignored));
        bool is_member = true, is_draining = false;
        assert_ok(journal_renew(rig.a, 0, SLICE_EMPTY, &is_member, &is_draining, err));
        assert_false(is_member);
        assert_int_equal(journal_format(rig.a), JOURNAL_FORMAT);
        AUTO(journal_close) Journal *b = open_postgres(pair_url(&rig.pair, ""), 0);
        JournalMember member;
        JournalJoin join = {.name = SLICE("b")};
        Error error = {0};
        assert_int_not_equal(journal_join(b, &join, &member, &error), STATUS_OK);
        assert_non_null(strstr(error.message, "format"));
    }
}

static void a_large_entry_is_appended_and_read(void **state)
{
    (void)state;
    AUTO(rig_done) Rig rig;
    rig_init(&rig, "");
    size_t len = 16 << 20;
    AUTO(mem_free) void *bytes = mem_alloc(len);
    memset(bytes, 0xA5, len);
    JournalAppend one = {
        .space = 1, .before = rig.place, .epoch = 1, .bytes = slice_make(bytes, len)};
    assert_ok(journal_append(rig.a, JOURNAL_LANE_APPEND_0, &one, 1, after_ms(60000), err));
    assert_int_equal(one.outcome, APPEND_DONE);
    rig.place = one.after;
    assert_int_equal(append_text(rig.a, 1, &rig.place, "small", 30000), APPEND_DONE);
    JournalEntries entries = {0};
    assert_ok(journal_read(rig.a, JOURNAL_LANE_FOLLOW, 1, 0, 1 << 20, &test_arena, &entries, err));
    assert_int_equal(entries.count, 1);
    assert_slice(entries.items[0].bytes, one.bytes);
}

/* As long as it goes on coming, it is waited for: the same entry was appended over that link. */
static void a_large_entry_is_read_over_a_slow_link(void **state)
{
    (void)state;
    enum { BYTES_PER_MS = 1500, READ_MS = PG_FOLLOW_MS + 3000 };
    AUTO(rig_done) Rig rig;
    rig_init(&rig, "");
    size_t len = (size_t)BYTES_PER_MS * READ_MS;
    AUTO(mem_free) void *bytes = mem_alloc(len);
    memset(bytes, 0xA5, len);
    JournalAppend one = {
        .space = 1, .before = rig.place, .epoch = 1, .bytes = slice_make(bytes, len)};
    assert_ok(journal_append(rig.a, JOURNAL_LANE_APPEND_0, &one, 1, after_ms(60000), err));
    assert_int_equal(one.outcome, APPEND_DONE);
    AUTO(proxy_free) PgProxy *proxy = proxy_new(pair_port(&rig.pair, "a"));
    Slice url = arena_format(
        &test_arena, "postgresql://postgres@127.0.0.1:%u/postgres?sslmode=disable", proxy->port);
    AUTO(journal_close) Journal *b = open_postgres(arena_cstr(&test_arena, url), 0);
    (void)join_as(b, "b", 0);
    proxy_slow_down(proxy, BYTES_PER_MS);
    JournalEntries entries = {0};
    uint64_t begun_us = clock_monotonic_us(clock_real());
    assert_ok(journal_read(b, JOURNAL_LANE_FOLLOW, 1, 0, 1 << 20, &test_arena, &entries, err));
    assert_true(clock_monotonic_us(clock_real()) - begun_us > (uint64_t)PG_FOLLOW_MS * 1000);
    assert_int_equal(entries.count, 1);
    assert_slice(entries.items[0].bytes, one.bytes);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, test_arena_setup, test_arena_teardown)
    const struct CMUnitTest tests[] = {
        TEST(rows_that_no_node_writes_are_refused),
        TEST(a_format_that_no_program_has_is_never_written),
        TEST(a_large_entry_is_appended_and_read),
        TEST(a_large_entry_is_read_over_a_slow_link),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
