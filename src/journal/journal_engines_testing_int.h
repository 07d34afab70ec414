/* journal_engines_testing_int.h - for tests that run on every engine: memory, and PostgreSQL with a
 * synchronous standby, behind a proxy that loses and holds what it is told to. */
#pragma once

#include "journal/postgres/pg_testing_int.h"

enum { NODES_MAX = 4, ROTATE_BYTES = 32 << 10 };

typedef struct Fixture {
    MemoryJournalEngine *memory; /* or NULL */
    const PostgresPair *pair;    /* or NULL */
    uint32_t formats[NODES_MAX]; /* the newest that each reads; 0 for JOURNAL_FORMAT */
    Journal *journals[NODES_MAX];
    PgProxy *proxies[NODES_MAX];
} Fixture;

typedef struct JournalTest {
    const char *name;
    void (*run)(Fixture *fixture);
} JournalTest;

/* ---- engines ---- */

static PostgresPair the_pair UNUSED; /* one for all tests, which begin by removing the tables */

static inline void begin_memory(Fixture *fixture)
{
    fixture->memory = memory_journal_engine_new(1);
}

static inline void begin_postgres(Fixture *fixture)
{
    if (the_pair.folder[0] == '\0')
        pair_start(&the_pair);
    pair_sql(&the_pair, "a", "DROP SCHEMA IF EXISTS orrery CASCADE", NULL, 0);
    fixture->pair = &the_pair;
}

typedef struct TestEngine {
    const char *name;
    void (*begin)(Fixture *fixture);
} TestEngine;

static const TestEngine ENGINES[] = {{"memory", begin_memory}, {"postgres", begin_postgres}};

/* The journal of one node; the first call opens it. */
static inline Journal *node(Fixture *fixture, unsigned index)
{
    if (fixture->journals[index] != NULL)
        return fixture->journals[index];
    if (fixture->memory != NULL) {
        MemoryJournalOptions options = {.format = fixture->formats[index]};
        memory_journal_open(fixture->memory, TEST_SECRET, &options, &fixture->journals[index]);
    } else {
        fixture->proxies[index] = proxy_new(pair_port(fixture->pair, "a"));
        Slice url =
            arena_format(&test_arena, "postgresql://postgres@127.0.0.1:%u/postgres?sslmode=disable",
                         fixture->proxies[index]->port);
        fixture->journals[index] =
            open_postgres_of(arena_cstr(&test_arena, url), ROTATE_BYTES, fixture->formats[index]);
    }
    return fixture->journals[index];
}

static inline void close_node(Fixture *fixture, unsigned index)
{
    journal_close(TAKE(fixture->journals[index]));
}

/* The next appends of the node meet the fault. */
static inline void fail_appends(Fixture *fixture, unsigned index, MemoryJournalFault fault,
                                unsigned count)
{
    if (fixture->memory != NULL)
        memory_journal_fail(node(fixture, index), JOURNAL_LANE_APPEND_0, fault, 0, count);
    else
        proxy_fail(fixture->proxies[index], fault, count);
}

static inline void deliver(Fixture *fixture, unsigned index)
{
    if (fixture->memory == NULL)
        proxy_deliver(fixture->proxies[index]);
    while (fixture->memory != NULL && memory_journal_delayed(fixture->memory) > 0)
        (void)memory_journal_deliver(fixture->memory, 0);
}

static inline void run_on(size_t engine, const void *test)
{
    arena_init(&test_arena, 64 << 10);
    Fixture fixture = {0};
    ENGINES[engine].begin(&fixture);
    ((const JournalTest *)test)->run(&fixture);
    for (unsigned i = 0; i < NODES_MAX; i++) {
        close_node(&fixture, i);
        proxy_free(fixture.proxies[i]);
    }
    memory_journal_engine_free(fixture.memory);
    arena_done(&test_arena);
}

/* ---- short ways ---- */

static const char *const NAMES[NODES_MAX] = {"a", "b", "c", "d"};

static inline JournalMember join(Fixture *fixture, unsigned index)
{
    return join_as(node(fixture, index), NAMES[index], 0);
}

static inline uint64_t renewal_of(Journal *journal, Slice name)
{
    const JournalNode *nodes = NULL;
    size_t count = 0;
    assert_ok(journal_nodes(journal, JOURNAL_LANE_NODE, &test_arena, &nodes, &count, err));
    for (size_t i = 0; i < count; i++) {
        if (slice_equal(nodes[i].name, name))
            return nodes[i].renewal;
    }
    fail_msg("there is no node '%.*s'", SLICE_ARG(name));
    return 0;
}

static inline void declare_dead(Journal *by, Journal *dead)
{
    JournalSelf self = journal_self(dead);
    bool done = false;
    assert_ok(journal_declare_dead(by, self.node, self.incarnation, renewal_of(by, self.node),
                                   &done, err));
    assert_true(done);
}

static inline bool take_over(Journal *journal, uint64_t space, uint64_t epoch, JournalPlace *place)
{
    JournalOwner owner = {0};
    bool done = false;
    assert_ok(journal_take_over(journal, space, epoch, &test_arena, &owner, &done, err));
    if (done) {
        assert_int_equal(owner.space, space);
        assert_slice(owner.node, journal_self(journal).node);
        assert_int_equal(owner.tail.epoch, epoch + 1);
        *place = owner.tail;
    }
    return done;
}

static inline AppendOutcome append(Journal *journal, JournalPlace *place, const char *text)
{
    return append_text(journal, 1, place, text, 30000);
}

/* Nodes 0 and 1 are in, and space 1 is of node 0. */
static inline JournalPlace two_nodes(Fixture *fixture)
{
    (void)join(fixture, 0);
    (void)join(fixture, 1);
    create_space(node(fixture, 0), 1);
    return owner_of(node(fixture, 1), 1).tail;
}

static inline void report_one(Journal *journal, uint64_t space, ReplicaState state,
                              uint64_t durable)
{
    JournalReplica one = {
        .space = space, .state = state, .applied = durable + 1, .durable = durable};
    assert_ok(journal_report(journal, JOURNAL_LANE_FOLLOW, &one, 1, err));
}

/* For the end of main. */
static inline int run_on_all_engines(const JournalTest *tests, size_t count)
{
    static const char *const names[ARRAY_COUNT(ENGINES)] = {"memory", "postgres"};
    static const TestVariants engines = {names, ARRAY_COUNT(names), run_on};
    int failed = test_run_variants("journal", &engines, tests, sizeof(*tests), count);
    pair_end(&the_pair);
    return failed;
}
