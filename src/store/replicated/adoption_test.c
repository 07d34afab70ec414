/* adoption_test.c - the data of a server without a journal becomes the first copy in one. */
#include "store/replicated/cluster_testing_int.h"

enum { SPACES = 300, EMPTY = 7 /* a space in which there is nothing */ };

typedef struct Fixture {
    MemoryJournalEngine *engine;
    StoreSpace spaces[SPACES];
    TestNode a;
    size_t progress;
} Fixture;

static void note_progress(void *ctx, size_t done, size_t total)
{
    Fixture *t = ctx;
    assert_true(done > t->progress);
    assert_true(done <= total);
    t->progress = done;
}

/* A folder as a server without a cluster leaves it. */
static void make_data(const char *path, const Fixture *t, size_t count)
{
    RocksdbStoreOptions options = {
        .path = path, .durability = STORE_DURABILITY_RELAXED, .merge = &TEST_MERGE};
    AUTO(store_close) Store *store = NULL;
    assert_ok(rocksdb_store_open(&options, &store, err));
    for (size_t i = 0; i < count; i++) {
        if (t->spaces[i] == EMPTY)
            continue;
        put_now(store, t->spaces[i], "key", "value");
        merge_now(store, t->spaces[i], "~set", "+a");
    }
}

static void set_up(Fixture *t, size_t count)
{
    *t = (Fixture){.engine = memory_journal_engine_new(1), .a = {.name = "a"}};
    for (size_t i = 0; i < SPACES; i++)
        t->spaces[i] = i == 0 ? 1 : 5 + 2 * i;
    t->a.clock = clock_real();
    assert_int_equal(pthread_mutex_init(&t->a.events.lock, NULL), 0);
    test_folder_init(&t->a.folder);
    make_data(t->a.folder.path, t, count);
    memory_journal_open(t->engine, TEST_CLUSTER_SECRET, NULL, &t->a.journal);
    t->a.member = test_join(t->a.journal, "a", 0);
}

static void tear_down(Fixture *t)
{
    store_close(t->a.store);
    journal_close(t->a.journal);
    test_folder_done(&t->a.folder);
    (void)pthread_mutex_destroy(&t->a.events.lock);
    memory_journal_engine_free(t->engine);
}
DEFINE_AUTO_VALUE(Fixture, tear_down)

static void join_again(Fixture *t)
{
    t->a.member = test_join(t->a.journal, "a", t->a.member.incarnation);
}

static Status try_adopt(Fixture *t, size_t count, Error *err)
{
    ReplicationAdoption options = {
        .local = {.path = t->a.folder.path, .merge = &TEST_MERGE},
        .journal = t->a.journal,
        .node = SLICE("a"),
        .incarnation = t->a.member.incarnation,
        .spaces = t->spaces,
        .space_count = count,
        .progress = note_progress,
        .ctx = t,
    };
    t->progress = 0;
    return replication_adopt(&options, err);
}

/* As the node does when it starts: it is a later incarnation, and takes its spaces over. */
static void start(Fixture *t)
{
    join_again(t);
    node_open_store(&t->a);
}

static void own(Fixture *t, StoreSpace space)
{
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 1024);
    bool found = false;
    bool done = false;
    JournalPlace tail = test_tail(t->a.journal, space, &found);
    assert_true(found);
    JournalOwner taken = {0};
    assert_ok(journal_take_over(t->a.journal, space, tail.epoch, &arena, &taken, &done, err));
    assert_true(done);
    assert_int_equal(taken.tail.seq, 1);
    assert_int_equal(taken.base, 1);
    assert_ok(replication_own(t->a.replication, space, &taken.tail, cond_after_ms(10000), err));
}

static void expect_usable(Fixture *t, StoreSpace space)
{
    own(t, space);
    if (space != EMPTY) {
        expect_key(t->a.store, NULL, space, "key", "value");
        merge_now(t->a.store, space, "~set", "+b");
        expect_key(t->a.store, NULL, space, "~set", "ab");
    }
    put_now(t->a.store, space, "new", "too");
    expect_key(t->a.store, NULL, space, "new", "too");
}

static void adopted_spaces_are_owned_and_written(void **state)
{
    (void)state;
    AUTO(tear_down) Fixture t;
    set_up(&t, SPACES);
    assert_ok(try_adopt(&t, SPACES, err));
    assert_int_equal(t.progress, SPACES);
    start(&t);
    for (size_t i = 0; i < SPACES; i += 43)
        expect_usable(&t, t.spaces[i]);
    expect_usable(&t, EMPTY);
}

static void another_node_gets_copies(void **state)
{
    (void)state;
    AUTO(tear_down) Fixture t;
    set_up(&t, 3);
    assert_ok(try_adopt(&t, 3, err));
    start(&t);
    own(&t, 1);
    TestNode b = {.name = "b", .clock = clock_real()};
    assert_int_equal(pthread_mutex_init(&b.events.lock, NULL), 0);
    test_folder_init(&b.folder);
    memory_journal_open(t.engine, TEST_CLUSTER_SECRET, NULL, &b.journal);
    b.member = test_join(b.journal, "b", 0);
    node_open_store(&b);
    replication_follow(b.replication, 1);
    while (count_behind(&b) == 0) /* the log does not begin with an empty space */
        sleep_ms(1);
    AUTO(seed_target_close) SeedTarget *to = NULL;
    AUTO(seed_source_close) SeedSource *from = NULL;
    assert_ok(seed_target_open(b.replication, 1, &to, err));
    assert_ok(seed_source_open(t.a.replication, 1, &from, err));
    AUTO(buf_done) Buf piece;
    buf_init(&piece, (size_t)1 << 20);
    for (bool is_last = false; !is_last;) {
        assert_ok(seed_source_next(from, 1000, &piece, &is_last, err));
        assert_ok(seed_target_put(to, buf_view(&piece), err));
    }
    assert_ok(seed_target_finish(to, err));
    put_now(t.a.store, 1, "later", "also");
    expect_caught_up(&b, &t.a, 1);
    expect_key(b.store, NULL, 1, "key", "value");
    expect_key(b.store, NULL, 1, "~set", "a");
    expect_key(b.store, NULL, 1, "later", "also");
    seed_target_close(TAKE(to));
    seed_source_close(TAKE(from));
    node_close_store(&b);
    journal_close(b.journal);
    test_folder_done(&b.folder);
    (void)pthread_mutex_destroy(&b.events.lock);
}

/* Every statement fails once, done or not, and the adoption is repeated as a process does that
 * starts anew. */
static void an_interrupted_adoption_is_repeated(void **state)
{
    (void)state;
    static const MemoryJournalFault faults[] = {MEMORY_JOURNAL_LOSE_REQUEST,
                                                MEMORY_JOURNAL_LOSE_ANSWER};
    static const JournalLane lanes[] = {JOURNAL_LANE_ADMIN, JOURNAL_LANE_NODE,
                                        JOURNAL_LANE_APPEND_0};
    size_t failures = 0;
    for (size_t i = 0; i < ARRAY_COUNT(faults) * ARRAY_COUNT(lanes); i++) {
        bool is_done = false;
        for (unsigned skip = 0; !is_done; skip++) {
            AUTO(tear_down) Fixture t;
            set_up(&t, 4);
            Error failure;
            memory_journal_fail(t.a.journal, lanes[i % 3], faults[i / 3], skip, 1);
            is_done = try_adopt(&t, 4, &failure) == STATUS_OK;
            failures += !is_done;
            memory_journal_fail(t.a.journal, lanes[i % 3], MEMORY_JOURNAL_NO_FAULT, 0, 0);
            join_again(&t);
            assert_ok(try_adopt(&t, 4, err));
            start(&t);
            for (size_t k = 0; k < 4; k++)
                expect_usable(&t, t.spaces[k]);
        }
    }
    assert_true(failures > 10);
}

/* Places of a journal that was given up are of no use in another one. */
static void an_adoption_that_was_given_up_begins_anew_in_another_journal(void **state)
{
    (void)state;
    AUTO(tear_down) Fixture t;
    set_up(&t, 4);
    assert_ok(try_adopt(&t, 4, err));
    journal_close(TAKE(t.a.journal));
    memory_journal_engine_free(TAKE(t.engine));
    t.engine = memory_journal_engine_new(2);
    memory_journal_open(t.engine, TEST_CLUSTER_SECRET, NULL, &t.a.journal);
    t.a.member = test_join(t.a.journal, "a", 0);
    assert_ok(try_adopt(&t, 2, err)); /* two spaces are gone meanwhile */
    start(&t);
    expect_usable(&t, t.spaces[0]);
    assert_int_equal(role_of(&t.a, t.spaces[3]), SPACE_ABSENT);
}

static void a_journal_with_another_node_is_refused(void **state)
{
    (void)state;
    AUTO(tear_down) Fixture t;
    set_up(&t, 4);
    AUTO(journal_close) Journal *other = NULL;
    memory_journal_open(t.engine, TEST_CLUSTER_SECRET, NULL, &other);
    (void)test_join(other, "b", 0);
    Error refusal;
    assert_status(try_adopt(&t, 4, &refusal), STATUS_CONFLICT);
    assert_non_null(strstr(refusal.message, "'b'"));
}

static void a_journal_with_another_space_is_refused(void **state)
{
    (void)state;
    AUTO(tear_down) Fixture t;
    set_up(&t, 4);
    test_create_space(t.a.journal, 4711, "a", t.a.member.incarnation);
    Error refusal;
    assert_status(try_adopt(&t, 4, &refusal), STATUS_CONFLICT);
    assert_non_null(strstr(refusal.message, "4711"));
}

static void a_log_that_was_written_to_is_refused(void **state)
{
    (void)state;
    for (int how = 0; how < 2; how++) {
        AUTO(tear_down) Fixture t;
        set_up(&t, 4);
        if (how == 0) {
            test_create_space(t.a.journal, 1, "a", t.a.member.incarnation);
            JournalAppend append = {.space = 1, .epoch = 1, .bytes = SLICE("other")};
            assert_ok(journal_append(t.a.journal, JOURNAL_LANE_APPEND_0, &append, 1,
                                     cond_after_ms(10000), err));
            assert_int_equal(append.outcome, APPEND_DONE);
        } else { /* the node has served */
            assert_ok(try_adopt(&t, 4, err));
            start(&t);
            expect_usable(&t, 1);
            node_close_store(&t.a);
            join_again(&t);
        }
        Error refusal;
        assert_status(try_adopt(&t, 4, &refusal), STATUS_CONFLICT);
        assert_non_null(strstr(refusal.message, "space 1 "));
    }
}

static void a_folder_that_a_server_has_is_refused(void **state)
{
    (void)state;
    AUTO(tear_down) Fixture t;
    set_up(&t, 4);
    RocksdbStoreOptions options = {.path = t.a.folder.path, .merge = &TEST_MERGE};
    AUTO(store_close) Store *store = NULL;
    assert_ok(rocksdb_store_open(&options, &store, err));
    Error refusal;
    assert_status(try_adopt(&t, 4, &refusal), STATUS_UNAVAILABLE);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(adopted_spaces_are_owned_and_written),
        cmocka_unit_test(another_node_gets_copies),
        cmocka_unit_test(an_interrupted_adoption_is_repeated),
        cmocka_unit_test(an_adoption_that_was_given_up_begins_anew_in_another_journal),
        cmocka_unit_test(a_journal_with_another_node_is_refused),
        cmocka_unit_test(a_journal_with_another_space_is_refused),
        cmocka_unit_test(a_log_that_was_written_to_is_refused),
        cmocka_unit_test(a_folder_that_a_server_has_is_refused),
    };
    return cmocka_run_group_tests_name("adoption", tests, NULL, NULL);
}
