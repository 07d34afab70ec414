#include "journal/journal_testing_int.h"
#include "journal/memory/memory_journal_int.h"

/* ---- the table ---- */

enum { SEQ = 10, EPOCH = 5 };

typedef enum Owned { MINE, OLDER_ME, OTHERS } Owned;
typedef enum Chain { CHAIN_NONE, CHAIN_BEFORE, CHAIN_AFTER, CHAIN_OTHER } Chain;

typedef struct DecideRow {
    Owned owned;
    uint64_t epoch;
    uint64_t tail;
    Chain chain;
    int64_t sealed;
    uint64_t base;
    Chain entry;
    AppendOutcome clear;     /* every try was answered */
    AppendOutcome ambiguous; /* the answer of one was lost */
} DecideRow;

static const DecideRow DECIDE_ROWS[] = {
    {MINE, EPOCH, SEQ, CHAIN_AFTER, 0, 0, CHAIN_AFTER, APPEND_DONE, APPEND_DONE},
    {MINE, EPOCH, SEQ, CHAIN_AFTER, 7, 0, CHAIN_AFTER, APPEND_DONE, APPEND_DONE},
    {MINE, EPOCH, SEQ - 1, CHAIN_BEFORE, 0, 0, CHAIN_NONE, APPEND_PENDING, APPEND_PENDING},
    {MINE, EPOCH, SEQ - 1, CHAIN_BEFORE, 7, 0, CHAIN_NONE, APPEND_NOT_OWNER, APPEND_UNKNOWN},
    {MINE, EPOCH, SEQ, CHAIN_OTHER, 0, 0, CHAIN_OTHER, APPEND_LOST, APPEND_LOST},
    {MINE, EPOCH, SEQ - 1, CHAIN_OTHER, 0, 0, CHAIN_NONE, APPEND_LOST, APPEND_LOST},
    {MINE, EPOCH, SEQ - 2, CHAIN_BEFORE, 0, 0, CHAIN_NONE, APPEND_LOST, APPEND_LOST},
    {MINE, EPOCH, SEQ + 1, CHAIN_OTHER, 0, 0, CHAIN_AFTER, APPEND_LOST, APPEND_LOST},
    /* The engine has forgotten the take-over. */
    {OTHERS, EPOCH - 1, SEQ - 1, CHAIN_BEFORE, 0, 0, CHAIN_NONE, APPEND_LOST, APPEND_LOST},
    {OTHERS, EPOCH, SEQ - 1, CHAIN_BEFORE, 0, 0, CHAIN_NONE, APPEND_LOST, APPEND_LOST},
    {OLDER_ME, EPOCH - 1, SEQ, CHAIN_OTHER, 0, 0, CHAIN_NONE, APPEND_LOST, APPEND_LOST},
    /* The space went to somebody else. */
    {OTHERS, EPOCH + 1, SEQ + 5, CHAIN_OTHER, 0, 0, CHAIN_AFTER, APPEND_DONE, APPEND_DONE},
    {OTHERS, EPOCH + 1, SEQ - 1, CHAIN_BEFORE, 0, 0, CHAIN_NONE, APPEND_NOT_OWNER,
     APPEND_NOT_OWNER},
    {OTHERS, EPOCH + 1, SEQ, CHAIN_OTHER, 0, SEQ - 1, CHAIN_OTHER, APPEND_NOT_OWNER,
     APPEND_NOT_OWNER},
    {OTHERS, EPOCH + 1, SEQ, CHAIN_OTHER, 0, SEQ, CHAIN_NONE, APPEND_NOT_OWNER, APPEND_UNKNOWN},
    {OTHERS, EPOCH + 1, SEQ + 1, CHAIN_OTHER, 0, SEQ + 1, CHAIN_OTHER, APPEND_NOT_OWNER,
     APPEND_UNKNOWN},
    {OTHERS, EPOCH + 1, SEQ + 1, CHAIN_OTHER, 0, SEQ, CHAIN_AFTER, APPEND_DONE, APPEND_DONE},
    {OTHERS, EPOCH + 1, SEQ - 2, CHAIN_OTHER, 0, 0, CHAIN_NONE, APPEND_LOST, APPEND_LOST},
    {OTHERS, EPOCH + 1, SEQ + 1, CHAIN_OTHER, 0, 0, CHAIN_NONE, APPEND_LOST, APPEND_LOST},
    /* This node has joined anew since. */
    {OLDER_ME, EPOCH, SEQ - 1, CHAIN_BEFORE, 0, 0, CHAIN_NONE, APPEND_NOT_OWNER, APPEND_NOT_OWNER},
    {OLDER_ME, EPOCH, SEQ, CHAIN_AFTER, 0, 0, CHAIN_AFTER, APPEND_DONE, APPEND_DONE},
};

static JournalChain chain_of(Chain kind)
{
    JournalChain chain = {{0}};
    chain.bytes[0] = (uint8_t)kind;
    return chain;
}

static void each_row_of_the_table_is_decided(void **state)
{
    (void)state;
    JournalAppend append = {
        .space = 1,
        .epoch = EPOCH,
        .before = {.epoch = EPOCH - 1, .seq = SEQ - 1, .chain = chain_of(CHAIN_BEFORE)},
        .after = {.epoch = EPOCH, .seq = SEQ, .chain = chain_of(CHAIN_AFTER)}};
    for (size_t i = 0; i < ARRAY_COUNT(DECIDE_ROWS); i++) {
        const DecideRow *row = &DECIDE_ROWS[i];
        SettledSpace seen = {
            .is_found = true,
            .is_mine = row->owned == MINE,
            .is_same_node = row->owned != OTHERS,
            .tail = {.epoch = row->epoch, .seq = row->tail, .chain = chain_of(row->chain)},
            .sealed = row->sealed,
            .base = row->base,
            .has_entry = row->entry != CHAIN_NONE,
            .entry_chain = chain_of(row->entry)};
        AppendOutcome clear = append_decide(&append, &seen, false);
        AppendOutcome ambiguous = append_decide(&append, &seen, true);
        if (clear != row->clear || ambiguous != row->ambiguous)
            fail_msg("row %zu: expected %d and %d, found %d and %d", i, (int)row->clear,
                     (int)row->ambiguous, (int)clear, (int)ambiguous);
    }
    SettledSpace none = {.is_found = false};
    assert_int_equal(append_decide(&append, &none, false), APPEND_NOT_OWNER);
    assert_int_equal(append_decide(&append, &none, true), APPEND_UNKNOWN);
}

/* ---- with faults ---- */

typedef struct Fixture {
    MemoryJournalEngine *engine;
    Journal *a;
    JournalPlace place; /* of space 1, which is of 'a' */
} Fixture;

static void fixture_init(Fixture *fixture)
{
    *fixture = (Fixture){.engine = memory_journal_engine_new(1)};
    memory_journal_open(fixture->engine, TEST_SECRET, NULL, &fixture->a);
    (void)join_as(fixture->a, "a", 0);
    create_space(fixture->a, 1);
    fixture->place = owner_of(fixture->a, 1).tail;
}

static void fixture_done(Fixture *fixture)
{
    journal_close(fixture->a);
    memory_journal_engine_free(fixture->engine);
}
DEFINE_AUTO_VALUE(Fixture, fixture_done)

static void an_append_is_done_once_whatever_the_connection_does(void **state)
{
    (void)state;
    static const MemoryJournalFault faults[] = {MEMORY_JOURNAL_LOSE_REQUEST,
                                                MEMORY_JOURNAL_LOSE_ANSWER, MEMORY_JOURNAL_DELAY,
                                                MEMORY_JOURNAL_REFUSE};
    for (size_t i = 0; i < ARRAY_COUNT(faults); i++) {
        for (unsigned skip = 0; skip < 2; skip++) {
            AUTO(fixture_done) Fixture fixture;
            fixture_init(&fixture);
            memory_journal_fail(fixture.a, JOURNAL_LANE_APPEND_0, faults[i], skip, 3);
            assert_int_equal(append_text(fixture.a, 1, &fixture.place, "x", 5000), APPEND_DONE);
            assert_int_equal(append_text(fixture.a, 1, &fixture.place, "y", 5000), APPEND_DONE);
            while (memory_journal_delayed(fixture.engine) > 0)
                assert_false(memory_journal_deliver(fixture.engine, 0));
            assert_slice_text(log_text(fixture.a, 1, 0), "x|y");
        }
    }
}

static void an_append_that_was_never_sent_stays_pending(void **state)
{
    (void)state;
    AUTO(fixture_done) Fixture fixture;
    fixture_init(&fixture);
    memory_journal_cut(fixture.a, true);
    assert_int_equal(append_text(fixture.a, 1, &fixture.place, "x", 20), APPEND_PENDING);
    memory_journal_cut(fixture.a, false);
    assert_int_equal(append_text(fixture.a, 1, &fixture.place, "y", 5000), APPEND_DONE);
    assert_slice_text(log_text(fixture.a, 1, 0), "y");
}

static void an_append_whose_answer_is_lost_until_the_deadline_is_unknown(void **state)
{
    (void)state;
    AUTO(fixture_done) Fixture fixture;
    fixture_init(&fixture);
    memory_journal_set_standby(fixture.engine, false);
    assert_int_equal(append_text(fixture.a, 1, &fixture.place, "x", 20), APPEND_UNKNOWN);
    assert_slice_text(log_text(fixture.a, 1, 0), "");
    memory_journal_crash_restart(fixture.engine);
    /* It can be seen now, but nothing that is seen can be believed. */
    assert_slice_text(log_text(fixture.a, 1, 0), "x");
    Error error;
    assert_status(journal_report(fixture.a, JOURNAL_LANE_FOLLOW, NULL, 0, &error),
                  STATUS_UNAVAILABLE);
    memory_journal_promote(fixture.engine);
    assert_slice_text(log_text(fixture.a, 1, 0), "");
    assert_ok(journal_report(fixture.a, JOURNAL_LANE_FOLLOW, NULL, 0, err));
}

static EngineReply hang_once(Journal *journal, const JournalSelf *self, JournalLane lane,
                             const JournalAppend *const *appends, size_t count,
                             uint64_t deadline_us, bool *moved, Error *err)
{
    FakeClock *clock = CONTAINER_OF(journal->clock, FakeClock, clock);
    journal->ops = &MEMORY_JOURNAL_OPS;
    EngineReply done =
        journal->ops->append(journal, self, lane, appends, count, deadline_us, moved, err);
    assert_int_equal(done, ENGINE_ANSWERED);
    fake_clock_advance(clock, deadline_us - clock_monotonic_us(&clock->clock));
    return engine_reply(ENGINE_LOST, error_set(err, STATUS_UNAVAILABLE, SUB_NONE, "a test hangs"));
}

/* What the server that hangs has done, the next one knows. */
static void a_try_that_hangs_leaves_time_for_others(void **state)
{
    (void)state;
    FakeClock fake;
    fake_clock_init(&fake, 1000000);
    AUTO(memory_journal_engine_free) MemoryJournalEngine *engine = memory_journal_engine_new(1);
    MemoryJournalOptions options = {.clock = &fake.clock, .has_no_pause = true};
    AUTO(journal_close) Journal *journal = NULL;
    memory_journal_open(engine, TEST_SECRET, &options, &journal);
    (void)join_as(journal, "a", 0);
    create_space(journal, 1);
    JournalPlace place = owner_of(journal, 1).tail;
    JournalOps ops = MEMORY_JOURNAL_OPS;
    ops.append = hang_once;
    journal->ops = &ops;
    JournalAppend one = make_append(1, &place, 1, "x");
    assert_ok(journal_append(journal, JOURNAL_LANE_APPEND_0, &one, 1,
                             clock_monotonic_us(&fake.clock) + 20000000, err));
    assert_int_equal(one.outcome, APPEND_DONE);
    assert_slice_text(log_text(journal, 1, 0), "x");
}

/* The old primary answers the read, and the new one the report. */
static void a_report_to_another_server_says_nothing_about_what_was_read(void **state)
{
    (void)state;
    AUTO(fixture_done) Fixture fixture;
    fixture_init(&fixture);
    assert_int_equal(append_text(fixture.a, 1, &fixture.place, "x", 5000), APPEND_DONE);
    memory_journal_set_standby(fixture.engine, false);
    JournalPlace place = fixture.place;
    assert_int_equal(append_text(fixture.a, 1, &place, "y", 20), APPEND_UNKNOWN);
    memory_journal_crash_restart(fixture.engine);
    assert_slice_text(log_text(fixture.a, 1, 0), "x|y");
    memory_journal_promote(fixture.engine);
    Error error;
    assert_status(journal_report(fixture.a, JOURNAL_LANE_FOLLOW, NULL, 0, &error),
                  STATUS_UNAVAILABLE);
    assert_slice_text(log_text(fixture.a, 1, 0), "x");
    assert_ok(journal_report(fixture.a, JOURNAL_LANE_FOLLOW, NULL, 0, err));
    /* Nor does a read of the new one make the old read true. */
    assert_slice_text(log_text(fixture.a, 1, 0), "x");
    memory_journal_crash_restart(fixture.engine);
    assert_slice_text(log_text(fixture.a, 1, 0), "x");
    assert_status(journal_report(fixture.a, JOURNAL_LANE_FOLLOW, NULL, 0, &error),
                  STATUS_UNAVAILABLE);
    /* What was read on another lane is not its business. */
    assert_slice_text(log_text(fixture.a, 1, 0), "x");
    memory_journal_crash_restart(fixture.engine);
    assert_ok(journal_report(fixture.a, JOURNAL_LANE_ADMIN, NULL, 0, err));
}

static void a_wrong_append_is_refused_before_it_is_sent(void **state)
{
    (void)state;
    AUTO(fixture_done) Fixture fixture;
    fixture_init(&fixture);
    uint64_t writes = memory_journal_writes(fixture.engine);
    const JournalAppend rows[] = {
        {.space = 1, .epoch = 0},
        {.space = 1, .epoch = 1, .before = {.epoch = 2}},
        {.space = (uint64_t)1 << 63, .epoch = 1},
        {.space = 1, .epoch = 1, .before = {.seq = INT64_MAX}},
        {.space = 1, .epoch = 1, .bytes = {"", JOURNAL_ENTRY_BYTES_MAX + 1}},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        JournalAppend one = rows[i];
        Error err = {0};
        Status status =
            journal_append(fixture.a, JOURNAL_LANE_APPEND_0, &one, 1, after_ms(1000), &err);
        assert_true(status == STATUS_BAD_REQUEST || status == STATUS_TOO_LARGE);
        assert_int_equal(one.outcome, APPEND_PENDING);
    }
    Error err = {0};
    assert_status(journal_append(fixture.a, JOURNAL_LANE_APPEND_0, NULL, 0, after_ms(1000), &err),
                  STATUS_BAD_REQUEST);
    assert_int_equal(memory_journal_writes(fixture.engine), writes);
}

static void a_chain_depends_on_everything(void **state)
{
    (void)state;
    AUTO(fixture_done) Fixture fixture;
    fixture_init(&fixture);
    Journal *other = NULL;
    uint8_t secret[JOURNAL_SECRET_BYTES] = {9};
    memory_journal_open(fixture.engine, secret, NULL, &other);
    JournalPlace before = {.epoch = 1, .seq = 3};
    JournalPlace changed = before;
    changed.chain.bytes[15] = 1;
    JournalPlace later = before;
    later.seq++;
    JournalPlace places[] = {
        journal_place_after(fixture.a, 1, &before, 2, SLICE("x")),
        journal_place_after(fixture.a, 2, &before, 2, SLICE("x")),
        journal_place_after(fixture.a, 1, &before, 3, SLICE("x")),
        journal_place_after(fixture.a, 1, &before, 2, SLICE("y")),
        journal_place_after(fixture.a, 1, &before, 2, SLICE_EMPTY),
        journal_place_after(fixture.a, 1, &changed, 2, SLICE("x")),
        journal_place_after(fixture.a, 1, &later, 2, SLICE("x")),
        journal_place_after(other, 1, &before, 2, SLICE("x")),
    };
    for (size_t i = 0; i < ARRAY_COUNT(places); i++) {
        for (size_t j = 0; j < i; j++)
            assert_memory_not_equal(&places[i].chain, &places[j].chain, JOURNAL_CHAIN_BYTES);
    }
    JournalPlace again = journal_place_after(fixture.a, 1, &before, 2, SLICE("x"));
    assert_memory_equal(&again.chain, &places[0].chain, JOURNAL_CHAIN_BYTES);
    assert_int_equal(again.seq, 4);
    assert_int_equal(again.epoch, 2);
    journal_close(other);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, test_arena_setup, test_arena_teardown)
    const struct CMUnitTest tests[] = {
        TEST(each_row_of_the_table_is_decided),
        TEST(an_append_is_done_once_whatever_the_connection_does),
        TEST(an_append_that_was_never_sent_stays_pending),
        TEST(an_append_whose_answer_is_lost_until_the_deadline_is_unknown),
        TEST(a_try_that_hangs_leaves_time_for_others),
        TEST(a_report_to_another_server_says_nothing_about_what_was_read),
        TEST(a_wrong_append_is_refused_before_it_is_sent),
        TEST(a_chain_depends_on_everything),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
