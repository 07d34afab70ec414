/* journal_test.c - what every engine promises about the log, lost answers and replicas. */
#include "base/random.h"
#include "base/test_seed.h"
#include "journal/journal_engines_testing_int.h"

#include <stdatomic.h>

/* ---- the log ---- */

static void entries_are_read_in_order_and_whole(Fixture *fixture)
{
    JournalPlace place = two_nodes(fixture);
    Journal *a = node(fixture, 0);
    Journal *b = node(fixture, 1);
    assert_int_equal(append(a, &place, "one"), APPEND_DONE);
    assert_int_equal(append(a, &place, ""), APPEND_DONE);
    assert_int_equal(append(a, &place, "three"), APPEND_DONE);
    assert_slice_text(log_text(b, 1, 0), "one||three");
    assert_slice_text(log_text(b, 1, 1), "|three");
    assert_slice_text(log_text(b, 1, 3), "");

    JournalEntries entries = {0};
    assert_ok(journal_read(b, JOURNAL_LANE_FOLLOW, 1, 0, 1, &test_arena, &entries, err));
    assert_int_equal(entries.count, 1); /* as many as fit, and one at least */
    assert_int_equal(entries.tail, 3);
    assert_int_equal(entries.base, 0);
    assert_int_equal(entries.items[0].format, JOURNAL_FORMAT);
    assert_int_equal(entries.items[0].epoch, 1);
    assert_ok(journal_read(b, JOURNAL_LANE_FOLLOW, 1, 0, 4, &test_arena, &entries, err));
    assert_int_equal(entries.count, 3);
    assert_memory_equal(&entries.items[2].chain, &place.chain, sizeof(place.chain));
    assert_ok(journal_read(b, JOURNAL_LANE_FOLLOW, 99, 0, 4, &test_arena, &entries, err));
    assert_int_equal(entries.count, 0);
    assert_int_equal(entries.tail, 0);

    /* Bytes are bytes. */
    char bytes[256];
    for (unsigned i = 0; i < sizeof(bytes); i++)
        bytes[i] = (char)i;
    JournalAppend one = {
        .space = 1, .before = place, .epoch = 1, .bytes = slice_make(bytes, sizeof(bytes))};
    assert_ok(journal_append(a, JOURNAL_LANE_APPEND_1, &one, 1, after_ms(30000), err));
    assert_slice(log_text(b, 1, 3), one.bytes);
}

static void an_append_to_many_spaces_is_done_for_those_that_are_the_node_s(Fixture *fixture)
{
    (void)two_nodes(fixture);
    enum { SPACES = 1000 };
    JournalNewSpace *spaces = ARENA_NEW_ARRAY(&test_arena, JournalNewSpace, SPACES);
    JournalAppend *appends = ARENA_NEW_ARRAY(&test_arena, JournalAppend, SPACES);
    JournalPlace start = {.epoch = 1};
    for (uint64_t i = 0; i < SPACES; i++) {
        JournalSelf self = journal_self(node(fixture, i % 3 == 0));
        spaces[i] = (JournalNewSpace){
            .space = 10000 - i, .node = self.node, .incarnation = self.incarnation};
        appends[i] = make_append(10000 - i, &start, 1, i % 2 == 0 ? "even" : "odd");
    }
    assert_ok(journal_create_spaces(node(fixture, 0), JOURNAL_LANE_NODE, spaces, SPACES, err));
    assert_ok(journal_append(node(fixture, 0), JOURNAL_LANE_APPEND_0, appends, SPACES,
                             after_ms(60000), err));
    for (uint64_t i = 0; i < SPACES; i++) {
        bool is_mine = i % 3 != 0;
        /* The same epoch at another node can only be a history that was lost. */
        assert_int_equal(appends[i].outcome, is_mine ? APPEND_DONE : APPEND_LOST);
    }
    assert_slice_text(log_text(node(fixture, 1), 9999, 0), "odd");
    assert_slice_text(log_text(node(fixture, 1), 10000, 0), "");
    const JournalOwner *owners = NULL;
    size_t count = 0;
    assert_ok(journal_owners(node(fixture, 1), JOURNAL_LANE_ADMIN, NULL, 0, &test_arena, &owners,
                             &count, err));
    assert_int_equal(count, SPACES + 1);
    for (size_t i = 1; i < count; i++)
        assert_true(owners[i - 1].space < owners[i].space);
}

static void what_another_secret_has_written_is_corrupt(Fixture *fixture)
{
    JournalPlace place = two_nodes(fixture);
    assert_int_equal(append(node(fixture, 0), &place, "x"), APPEND_DONE);
    Journal *reader = node(fixture, 1);
    uint8_t secret[JOURNAL_SECRET_BYTES] = {5};
    EVP_PKEY *right = reader->key;
    reader->key = EVP_PKEY_new_raw_private_key(EVP_PKEY_HMAC, NULL, secret, sizeof(secret));
    JournalEntries entries = {0};
    Error error;
    assert_status(
        journal_read(reader, JOURNAL_LANE_FOLLOW, 1, 0, 100, &test_arena, &entries, &error),
        STATUS_CORRUPT);
    EVP_PKEY_free(reader->key);
    reader->key = right;
}

static void a_gap_is_told_from_entries_that_are_wrong(Fixture *fixture)
{
    JournalPlace place = two_nodes(fixture);
    for (int i = 0; i < 3; i++)
        assert_int_equal(append(node(fixture, 0), &place, "x"), APPEND_DONE);
    if (fixture->memory != NULL)
        memory_journal_drop_entries(fixture->memory, 1, 2);
    else
        pair_sql(fixture->pair, "a", "DELETE FROM orrery.entry_0 WHERE seq < 3", NULL, 0);
    JournalEntries entries = {0};
    Error error;
    for (uint64_t seq = 0; seq < 2; seq++)
        assert_status(journal_read(node(fixture, 1), JOURNAL_LANE_FOLLOW, 1, seq, 100, &test_arena,
                                   &entries, &error),
                      STATUS_NOT_FOUND);
    assert_slice_text(log_text(node(fixture, 1), 1, 2), "x");
}

/* ---- lost answers ---- */

static void a_lost_answer_is_found_out(Fixture *fixture)
{
    JournalPlace place = two_nodes(fixture);
    Journal *a = node(fixture, 0);
    static const MemoryJournalFault faults[] = {MEMORY_JOURNAL_LOSE_REQUEST,
                                                MEMORY_JOURNAL_LOSE_ANSWER, MEMORY_JOURNAL_DELAY};
    for (size_t i = 0; i < ARRAY_COUNT(faults); i++) {
        fail_appends(fixture, 0, faults[i], 2);
        assert_int_equal(append(a, &place, "x"), APPEND_DONE);
        deliver(fixture, 0);
    }
    assert_slice_text(log_text(node(fixture, 1), 1, 0), "x|x|x");
    assert_int_equal(append(a, &place, "y"), APPEND_DONE);
}

static void an_append_that_comes_late_is_fenced(Fixture *fixture)
{
    JournalPlace place = two_nodes(fixture);
    Journal *a = node(fixture, 0);
    Journal *b = node(fixture, 1);
    fail_appends(fixture, 0, MEMORY_JOURNAL_DELAY, 1000);
    assert_int_equal(append_text(a, 1, &place, "late", 500), APPEND_UNKNOWN);
    fail_appends(fixture, 0, MEMORY_JOURNAL_NO_FAULT, 0);

    /* Started again under the same name. */
    (void)join_as(node(fixture, 2), "a", journal_self(a).incarnation);
    JournalPlace taken = {0};
    assert_true(take_over(node(fixture, 2), 1, 1, &taken));
    assert_int_equal(append(node(fixture, 2), &taken, "new"), APPEND_DONE);
    deliver(fixture, 0);
    assert_slice_text(log_text(b, 1, 0), "new");
}

/* The entries that were trimmed are gone, as they are some time after a rotation. */
static void remove_trimmed(Fixture *fixture, uint64_t space, uint64_t base)
{
    if (fixture->memory != NULL) {
        assert_ok(journal_rotate(node(fixture, 1), JOURNAL_LANE_ADMIN, err));
        return;
    }
    Slice sql =
        arena_format(&test_arena, "DELETE FROM orrery.entry_0 WHERE space = %d AND seq <= %d",
                     (int)space, (int)base);
    pair_sql(fixture->pair, "a", arena_cstr(&test_arena, sql), NULL, 0);
}

static void a_lost_answer_is_decided_after_a_take_over(Fixture *fixture)
{
    static const struct {
        MemoryJournalFault fault; /* of all that the old owner sends */
        uint64_t trimmed;         /* by the new one */
        AppendOutcome outcome;
        const char *log;
    } rows[] = {
        {MEMORY_JOURNAL_LOSE_ANSWER, 0, APPEND_DONE, "x|b"},
        {MEMORY_JOURNAL_DELAY, 0, APPEND_NOT_OWNER, "b"},
        {MEMORY_JOURNAL_LOSE_REQUEST, 0, APPEND_NOT_OWNER, "b"},
        {MEMORY_JOURNAL_LOSE_ANSWER, 2, APPEND_UNKNOWN, NULL},
        {MEMORY_JOURNAL_LOSE_ANSWER, 1, APPEND_UNKNOWN, NULL},
        {MEMORY_JOURNAL_DELAY, 1, APPEND_UNKNOWN, NULL},
    };
    (void)join(fixture, 0);
    (void)join(fixture, 1);
    Journal *a = node(fixture, 0);
    Journal *b = node(fixture, 1);
    for (uint64_t i = 0; i < ARRAY_COUNT(rows); i++) {
        uint64_t space = 10 + i;
        create_space(a, space);
        JournalPlace place = {.epoch = 1};
        JournalPlace taken = {0};
        fail_appends(fixture, 0, rows[i].fault, 1000);
        assert_int_equal(append_text(a, space, &place, "x", 300), APPEND_UNKNOWN);
        fail_appends(fixture, 0, MEMORY_JOURNAL_NO_FAULT, 0);
        declare_dead(b, a);
        assert_true(take_over(b, space, 1, &taken));
        assert_int_equal(append_text(b, space, &taken, "b", 30000), APPEND_DONE);
        assert_ok(journal_trim(b, JOURNAL_LANE_ADMIN, space, 2, rows[i].trimmed, err));
        remove_trimmed(fixture, space, rows[i].trimmed);
        deliver(fixture, 0);
        /* The same append once more, with its first answer lost. */
        fail_appends(fixture, 0, MEMORY_JOURNAL_LOSE_REQUEST, 1);
        AppendOutcome outcome = append_text(a, space, &place, "x", 30000);
        if (outcome != rows[i].outcome)
            fail_msg("row %d: found %d", (int)i, (int)outcome);
        if (rows[i].log != NULL)
            assert_slice_text(log_text(b, space, 0), rows[i].log);
        (void)join_as(a, "a", 0);
    }
}

/* ---- replicas ---- */

static ReplicaState replica_state(Journal *journal, uint64_t space, const char *name,
                                  uint64_t *durable)
{
    const JournalReplica *replicas = NULL;
    size_t count = 0;
    assert_ok(journal_replicas(journal, JOURNAL_LANE_ADMIN, &test_arena, &replicas, &count, err));
    for (size_t i = 0; i < count; i++) {
        if (replicas[i].space == space && slice_equal(replicas[i].node, slice_from_cstr(name))) {
            *durable = replicas[i].durable;
            return replicas[i].state;
        }
    }
    fail_msg("'%s' has no replica of %d", name, (int)space);
    return REPLICA_EXPELLED;
}

static void nothing_is_trimmed_that_a_replica_needs(Fixture *fixture)
{
    JournalPlace place = two_nodes(fixture);
    Journal *a = node(fixture, 0);
    Journal *b = node(fixture, 1);
    for (int i = 0; i < 6; i++)
        assert_int_equal(append(a, &place, "x"), APPEND_DONE);
    report_one(a, 1, REPLICA_FOLLOWING, 1); /* from before it was the owner: not looked at */
    report_one(b, 1, REPLICA_SEEDING, 0);
    assert_ok(journal_trim(a, JOURNAL_LANE_ADMIN, 1, 1, 5, err));
    assert_int_equal(owner_of(a, 1).base, 0);
    report_one(b, 1, REPLICA_FOLLOWING, 2);
    assert_ok(journal_trim(a, JOURNAL_LANE_ADMIN, 1, 1, 5, err));
    assert_int_equal(owner_of(a, 1).base, 2);
    assert_ok(journal_trim(a, JOURNAL_LANE_ADMIN, 1, 2, 5, err)); /* another epoch */
    assert_int_equal(owner_of(a, 1).base, 2);

    /* Expelled, it holds nothing back; and it is not a replica again before it was seeded. */
    assert_ok(journal_expel(a, JOURNAL_LANE_ADMIN, 1, SLICE("b"), err));
    report_one(b, 1, REPLICA_FOLLOWING, 3);
    uint64_t durable = 0;
    assert_int_equal(replica_state(a, 1, "b", &durable), REPLICA_EXPELLED);
    assert_int_equal(durable, 2);
    assert_ok(journal_trim(a, JOURNAL_LANE_ADMIN, 1, 1, 99, err));
    assert_int_equal(owner_of(a, 1).base, 6); /* the tail */
    report_one(b, 1, REPLICA_FOLLOWING, 5);
    assert_int_equal(replica_state(a, 1, "b", &durable), REPLICA_EXPELLED);
    report_one(b, 1, REPLICA_FOLLOWING, 6);
    assert_int_equal(replica_state(a, 1, "b", &durable), REPLICA_FOLLOWING);
    assert_ok(journal_expel(a, JOURNAL_LANE_ADMIN, 1, SLICE("b"), err));
    report_one(b, 1, REPLICA_SEEDING, 0);
    assert_int_equal(replica_state(a, 1, "b", &durable), REPLICA_SEEDING);

    JournalEntries entries = {0};
    assert_ok(journal_read(b, JOURNAL_LANE_FOLLOW, 1, 3, 100, &test_arena, &entries, err));
    assert_int_equal(entries.count, 0);
    assert_int_equal(entries.base, 6);
}

/* A follower hears late that a space is gone. */
static void a_report_on_a_space_that_is_gone_leaves_nothing(Fixture *fixture)
{
    (void)two_nodes(fixture);
    Journal *a = node(fixture, 0);
    Journal *b = node(fixture, 1);
    create_space(a, 2);
    report_one(b, 1, REPLICA_FOLLOWING, 0);
    uint64_t gone = 1;
    assert_ok(journal_forget_spaces(a, JOURNAL_LANE_ADMIN, &gone, 1, err));
    JournalReplica late[] = {{.space = 1, .state = REPLICA_FOLLOWING},
                             {.space = 2, .state = REPLICA_FOLLOWING}};
    assert_ok(journal_report(b, JOURNAL_LANE_FOLLOW, late, ARRAY_COUNT(late), err));
    const JournalReplica *replicas = NULL;
    size_t count = 0;
    assert_ok(journal_replicas(a, JOURNAL_LANE_ADMIN, &test_arena, &replicas, &count, err));
    assert_int_equal(count, 1);
    assert_int_equal(replicas[0].space, 2);
}

/* The folder of a process that was deposed by one of the same name keeps nothing for it. */
static void a_deposed_incarnation_reports_nothing(Fixture *fixture)
{
    JournalPlace place = two_nodes(fixture);
    Journal *a = node(fixture, 0);
    Journal *old = node(fixture, 1);
    for (int i = 0; i < 6; i++)
        assert_int_equal(append(a, &place, "x"), APPEND_DONE);
    report_one(old, 1, REPLICA_FOLLOWING, 2);
    Journal *again = node(fixture, 2);
    (void)join_as(again, "b", journal_self(old).incarnation);
    JournalReplica late = {.space = 1, .state = REPLICA_FOLLOWING, .applied = 6, .durable = 6};
    Error error;
    assert_status(journal_report(old, JOURNAL_LANE_FOLLOW, &late, 1, &error), STATUS_CONFLICT);
    assert_ok(journal_report(old, JOURNAL_LANE_FOLLOW, NULL, 0, err)); /* says nothing */
    uint64_t durable = 0;
    assert_int_equal(replica_state(a, 1, "b", &durable), REPLICA_FOLLOWING);
    assert_int_equal(durable, 2);
    assert_ok(journal_trim(a, JOURNAL_LANE_ADMIN, 1, 1, 6, err));
    assert_int_equal(owner_of(a, 1).base, 2);
    report_one(again, 1, REPLICA_FOLLOWING, 3);
    assert_int_equal(replica_state(a, 1, "b", &durable), REPLICA_FOLLOWING);
    assert_int_equal(durable, 3);

    /* What is dead still has its folder; what was removed has no replicas. */
    declare_dead(a, again);
    report_one(again, 1, REPLICA_FOLLOWING, 4);
    bool done = false;
    assert_ok(journal_remove_node(a, JOURNAL_LANE_ADMIN, SLICE("b"), &done, err));
    assert_true(done);
    assert_status(journal_report(again, JOURNAL_LANE_FOLLOW, &late, 1, &error), STATUS_CONFLICT);
    const JournalReplica *replicas = NULL;
    size_t count = 0;
    assert_ok(journal_replicas(a, JOURNAL_LANE_ADMIN, &test_arena, &replicas, &count, err));
    assert_int_equal(count, 0);
}

static void tables_of_trimmed_entries_are_emptied(Fixture *fixture)
{
    JournalPlace place = two_nodes(fixture);
    Journal *a = node(fixture, 0);
    char *text = arena_zalloc(&test_arena, 20001);
    memset(text, 'x', 20000);
    JournalUsage usage = {0};
    uint64_t bytes_max = 0;
    for (unsigned round = 0; round < 30; round++) {
        assert_int_equal(append(a, &place, text), APPEND_DONE);
        if (round >= 2)
            assert_ok(journal_trim(a, JOURNAL_LANE_ADMIN, 1, 1, round - 1, err));
        assert_ok(journal_rotate(a, JOURNAL_LANE_ADMIN, err));
        assert_ok(journal_usage(a, JOURNAL_LANE_ADMIN, &test_arena, &usage, err));
        bytes_max = usage.bytes > bytes_max ? usage.bytes : bytes_max;
    }
    assert_true(bytes_max < 12 * 20000);
    assert_true(usage.entries <= 3);
    assert_true(usage.has_synchronous_standby);
    assert_slice_text(usage.warning, fixture->memory != NULL
                                         ? ""
                                         : "fsync or full_page_writes of the engine is off");
    JournalEntries entries = {0};
    assert_ok(journal_read(a, JOURNAL_LANE_FOLLOW, 1, 28, 1 << 20, &test_arena, &entries, err));
    assert_int_equal(entries.count, 2);
}

/* ---- many threads ---- */

enum { STRESS_SPACES = 4, STRESS_APPENDS = 60 };

typedef struct Stress {
    Journal *journal;
    JournalLane lane;
    uint64_t first; /* its spaces are STRESS_SPACES from this one on */
    pthread_t thread;
    _Atomic unsigned refused;
    uint64_t seed;
} Stress;

/* Appends until the space is somebody else's, each entry once. */
static void *stress(void *ctx)
{
    Stress *one = ctx;
    Random random;
    random_init(&random, one->seed);
    JournalPlace places[STRESS_SPACES];
    for (unsigned i = 0; i < STRESS_SPACES; i++)
        places[i] = (JournalPlace){.epoch = 1};
    for (unsigned i = 0; i < STRESS_APPENDS; i++) {
        JournalAppend appends[STRESS_SPACES];
        for (unsigned j = 0; j < STRESS_SPACES; j++)
            appends[j] = make_append(one->first + j, &places[j], 1, "0123456789");
        size_t count = 1 + random_below(&random, STRESS_SPACES);
        Error error = {0};
        if (journal_append(one->journal, one->lane, appends, count, after_ms(60000), &error) !=
            STATUS_OK)
            return one;
        for (size_t j = 0; j < count; j++) {
            if (appends[j].outcome == APPEND_DONE)
                places[j] = appends[j].after;
            else if (appends[j].outcome == APPEND_NOT_OWNER)
                one->refused++;
            else
                return one;
        }
    }
    return NULL;
}

static void threads_append_while_spaces_change_hands(Fixture *fixture)
{
    (void)two_nodes(fixture);
    Journal *a = node(fixture, 0);
    Stress all[2] = {{.journal = a, .lane = JOURNAL_LANE_APPEND_0, .first = 100},
                     {.journal = a, .lane = JOURNAL_LANE_APPEND_1, .first = 200}};
    uint64_t seed = test_seed();
    for (unsigned i = 0; i < 2; i++) {
        all[i].seed = seed + i;
        for (unsigned j = 0; j < STRESS_SPACES; j++)
            create_space(a, all[i].first + j);
    }
    for (unsigned i = 0; i < 2; i++)
        assert_ok(thread_start(&all[i].thread, "stress", stress, &all[i], err));
    Journal *b = node(fixture, 1);
    bool is_member = false;
    bool is_draining = false;
    for (unsigned i = 0; i < 20; i++) {
        assert_ok(journal_renew(a, i, SLICE_EMPTY, &is_member, &is_draining, err));
        assert_ok(journal_report(b, JOURNAL_LANE_FOLLOW, NULL, 0, err));
    }
    declare_dead(b, a);
    JournalPlace taken = {0};
    uint64_t spaces[] = {100, 201};
    for (size_t i = 0; i < ARRAY_COUNT(spaces); i++) {
        assert_true(take_over(b, spaces[i], 1, &taken));
        assert_int_equal(append_text(b, spaces[i], &taken, "b", 30000), APPEND_DONE);
    }
    for (unsigned i = 0; i < 2; i++) {
        void *failed = NULL;
        pthread_join(all[i].thread, &failed);
        assert_null(failed);
    }
    for (size_t i = 0; i < ARRAY_COUNT(spaces); i++) {
        JournalOwner owner = owner_of(b, spaces[i]);
        assert_int_equal(owner.tail.seq,
                         taken.seq >= owner.tail.seq ? owner.tail.seq : owner.tail.seq);
        /* Everything can be read, and follows: journal_read checks J1. */
        JournalEntries entries = {0};
        assert_ok(journal_read(b, JOURNAL_LANE_FOLLOW, spaces[i], 0, 1 << 20, &test_arena, &entries,
                               err));
        assert_int_equal(entries.count, owner.tail.seq);
        assert_slice_text(entries.items[entries.count - 1].bytes, "b");
    }
}

static void engines_tell_their_timeline(Fixture *fixture)
{
    (void)two_nodes(fixture);
    Journal *a = node(fixture, 0);
    JournalEngineId id = journal_engine_id(a);
    assert_true(id.system != 0);
    assert_true(id.timeline >= 1);
    /* A server of an older timeline is not used any more. */
    JournalEngineId newer = {.system = id.system, .timeline = id.timeline + 1};
    journal_meet(a, newer);
    assert_int_equal(journal_engine_id(a).timeline, newer.timeline);
    Error error;
    assert_status(journal_report(a, JOURNAL_LANE_FOLLOW, NULL, 0, &error), STATUS_UNAVAILABLE);
    assert_ok(journal_report(node(fixture, 1), JOURNAL_LANE_FOLLOW, NULL, 0, err));
}

/* Both run on this machine, or in this process. */
static void engines_tell_the_time(Fixture *fixture)
{
    static const JournalLane lanes[] = {JOURNAL_LANE_NODE, JOURNAL_LANE_ADMIN};
    (void)two_nodes(fixture);
    Journal *a = node(fixture, 0);
    uint64_t last_us = 0;
    for (size_t i = 0; i < 4; i++) {
        uint64_t before_us = clock_wall_us(clock_real());
        uint64_t found_us = 0;
        assert_ok(journal_engine_time(a, lanes[i % 2], &found_us, err));
        assert_in_range(found_us, before_us, clock_wall_us(clock_real()));
        assert_true(found_us > last_us || fixture->memory != NULL);
        last_us = found_us;
    }
    FakeClock wrong;
    fake_clock_init(&wrong, 123456789);
    uint64_t found_us = 0;
    if (fixture->memory != NULL) {
        memory_journal_set_clock(fixture->memory, &wrong.clock);
        assert_ok(journal_engine_time(a, JOURNAL_LANE_NODE, &found_us, err));
        assert_int_equal(found_us, 123456789);
    }
    JournalEngineId newer = journal_engine_id(a);
    newer.timeline++;
    journal_meet(a, newer);
    found_us = 7;
    Error error;
    assert_status(journal_engine_time(a, JOURNAL_LANE_NODE, &found_us, &error), STATUS_UNAVAILABLE);
    assert_int_equal(found_us, 7);
}

static const JournalTest TESTS[] = {
#define TEST(name)  \
    {               \
#name, name \
    }
    TEST(entries_are_read_in_order_and_whole),
    TEST(an_append_to_many_spaces_is_done_for_those_that_are_the_node_s),
    TEST(what_another_secret_has_written_is_corrupt),
    TEST(a_gap_is_told_from_entries_that_are_wrong),
    TEST(a_lost_answer_is_found_out),
    TEST(an_append_that_comes_late_is_fenced),
    TEST(a_lost_answer_is_decided_after_a_take_over),
    TEST(nothing_is_trimmed_that_a_replica_needs),
    TEST(a_report_on_a_space_that_is_gone_leaves_nothing),
    TEST(a_deposed_incarnation_reports_nothing),
    TEST(tables_of_trimmed_entries_are_emptied),
    TEST(threads_append_while_spaces_change_hands),
    TEST(engines_tell_their_timeline),
    TEST(engines_tell_the_time),
};

int main(void)
{
    return run_on_all_engines(TESTS, ARRAY_COUNT(TESTS));
}
