/* item_move_test.c - items that go over to other partitions while they change. ORRERY_TEST_SEED=n
 * repeats the random test. */
#include "partition/change_feed.h"
#include "partition/partition_check_testing_int.h"

#include "base/random.h"
#include "base/test_seed.h"

enum { KEYS = 12, IDS = 8, ROUNDS = 3, STEPS = 300, TARGETS_MAX = 3, TARGET_ID = 20 };

/* A space is used once: see partition_open. */
static uint32_t next_id = TARGET_ID;

/* A partition and those that take its items over. */
typedef struct Split {
    TestPartition *t;
    Partition *targets[TARGETS_MAX];
    size_t target_count;
    uint32_t first_id;
    const Slice *froms; /* where the targets begin */
    Move *move;
} Split;

static Partition *open_other(TestPartition *t, uint32_t id)
{
    Partition *partition = NULL;
    assert_ok(partition_open(&t->host, TEST_SPACE + id, id, t->schema, &partition, err));
    return partition;
}

static void split_open(Split *s, TestPartition *t, size_t target_count)
{
    static const Slice froms[][TARGETS_MAX] = {
        {SLICE_INIT("")},
        {SLICE_INIT(""), SLICE_INIT("\x20")},
        {SLICE_INIT(""), SLICE_INIT("\x10"), SLICE_INIT("\x28")},
    };
    *s = (Split){.t = t,
                 .target_count = target_count,
                 .first_id = next_id,
                 .froms = froms[target_count - 1]};
    MovePart targets[TARGETS_MAX];
    for (size_t i = 0; i < target_count; i++) {
        s->targets[i] = open_other(t, next_id++);
        targets[i] = (MovePart){s->targets[i], froms[target_count - 1][i]};
    }
    s->move = move_new(&(MovePart){t->partition, SLICE_EMPTY}, 1, targets, target_count);
}

static void split_close(Split *s)
{
    move_free(s->move);
    for (size_t i = 0; i < s->target_count; i++)
        partition_unref(s->targets[i]);
    test_settle(s->t);
    assert_ok(store_drop_spaces(s->t->store, TEST_SPACE + s->first_id,
                                TEST_SPACE + s->first_id + s->target_count - 1, err));
}
DEFINE_AUTO_VALUE(Split, split_close)

static void copy_all(Move *move)
{
    bool is_done = false;
    while (!is_done)
        assert_ok(move_copy(move, &is_done, err));
}

static void go_to_fence(Move *move)
{
    assert_ok(move_begin(move, err));
    copy_all(move);
    assert_ok(move_fence(move, err));
}

/* Every living item as clients see it, in order. */
static void print_items(TestPartition *t, Partition *partition, Buf *out)
{
    AUTO(partition_scan_close) PartitionScan *scan = NULL;
    assert_ok(partition_scan_open(partition, t->schema, &(ScanOptions){.order = SCAN_BY_EPK}, &scan,
                                  err));
    for (;;) {
        Item item;
        bool found = false;
        assert_ok(partition_scan_next(scan, &item, &found, err));
        if (!found)
            return;
        item_print(t->schema, &item, out);
        buf_format(out, " %llu\n", (unsigned long long)item.number);
    }
}

/* Every change of a range, as a feed gives it. */
static void print_feed(TestPartition *t, Partition *partition, FeedMode mode, Slice from, Slice to,
                       Buf *out)
{
    AUTO(change_feed_close) ChangeFeed *feed = NULL;
    FeedOptions options = {.mode = mode,
                           .after_lsn = mode == FEED_LATEST ? 0 : 1,
                           .since_s = INT64_MIN,
                           .epk_from = from,
                           .epk_to = to};
    assert_ok(change_feed_open(partition, t->schema, &options, &feed, err));
    for (;;) {
        ItemChange change;
        bool found = false;
        assert_ok(change_feed_next(feed, &change, &found, err));
        if (!found)
            return;
        buf_format(out, "%d %llu %llu ", (int)change.kind, (unsigned long long)change.lsn,
                   (unsigned long long)change.previous_lsn);
        if (change.has_item)
            item_print(t->schema, &change.item, out);
        buf_slice(out, change.id);
        buf_byte(out, '\n');
    }
}

/* A position in the feed of the source holds in each target: they have the same changes (I24). */
static void expect_same_feed(const Split *s, size_t target, FeedMode mode)
{
    AUTO(buf_done) Buf before;
    AUTO(buf_done) Buf after;
    buf_init(&before, (size_t)64 << 20);
    buf_init(&after, (size_t)64 << 20);
    Slice from = s->froms[target];
    Slice to = target + 1 < s->target_count ? s->froms[target + 1] : SLICE_EMPTY;
    print_feed(s->t, s->t->partition, mode, from, to, &before);
    print_feed(s->t, s->targets[target], mode, SLICE_EMPTY, SLICE_EMPTY, &after);
    assert_slice(buf_view(&after), buf_view(&before));
}

static void check_partition(TestPartition *t, Partition *partition)
{
    CheckReport report = {.found = fail_finding};
    CheckTotals totals = {0};
    assert_ok(partition_check(partition, t->schema, &report, &totals, err));
    assert_int_equal(totals.findings, 0);
    assert_int_equal(partition_usage(partition).items, totals.items);
}

/* The targets have what the source has, in the same order, and each is in order itself. */
static void expect_same(const Split *s)
{
    AUTO(buf_done) Buf before;
    AUTO(buf_done) Buf after;
    buf_init(&before, (size_t)64 << 20);
    buf_init(&after, (size_t)64 << 20);
    print_items(s->t, s->t->partition, &before);
    for (size_t i = 0; i < s->target_count; i++) {
        print_items(s->t, s->targets[i], &after);
        check_partition(s->t, s->targets[i]);
        assert_true(partition_lsn(s->targets[i]) >= partition_lsn(s->t->partition));
        expect_same_feed(s, i, FEED_LATEST);
        if (s->t->schema->retention_s > 0)
            expect_same_feed(s, i, FEED_VERSIONS);
    }
    assert_slice(buf_view(&after), buf_view(&before));
}

static const char *row_of(Arena *arena, int key, int id, int u, int ttl_s, int n)
{
    return arena_format(arena, "{'pk':'%d','id':'%d','u':%d,'n':%d%s}", key, id, u, n,
                        ttl_s == 0 ? "" : arena_format(arena, ",'ttl':%d", ttl_s).ptr)
        .ptr;
}

static void fill(TestPartition *t, int keys, int ids)
{
    for (int key = 0; key < keys; key++)
        for (int id = 0; id < ids; id++)
            assert_status(
                run_document(t, ITEM_CREATE, row_of(&t->arena, key, id, id, id % 3 * 100, key)),
                STATUS_OK);
}

static void expect_state(const TestPartition *t, PartitionState state)
{
    assert_int_equal(partition_state(t->partition), state);
}

static void a_split_gives_everything_to_its_targets(TestPartition *t)
{
    for (size_t targets = 1; targets <= TARGETS_MAX; targets++) {
        if (targets == 1)
            fill(t, 40, 10);
        AUTO(split_close) Split s;
        split_open(&s, t, targets);
        go_to_fence(s.move);
        expect_same(&s);
        assert_int_equal(move_progress(s.move).items_copied, 400);
        for (size_t i = 0; i < targets; i++)
            assert_true(partition_usage(s.targets[i]).items > 0);
    }
}

static void items_of_all_sizes_are_copied(TestPartition *t)
{
    char *text = arena_alloc(&t->arena, ITEM_BYTES_MAX);
    for (int i = 0; i < 12; i++) {
        size_t len = (size_t)1 << (2 * i - (i > 10 ? 2 : 0));
        len = len > ITEM_BYTES_MAX - 200 ? ITEM_BYTES_MAX - 200 : len;
        memset(text, 'x', len);
        const char *row =
            arena_format(&t->arena, "{'pk':'%d','id':'a','t':'%.*s'}", i, (int)len, text).ptr;
        assert_status(run_document(t, ITEM_CREATE, row), STATUS_OK);
    }
    AUTO(split_close) Split s;
    split_open(&s, t, 2);
    go_to_fence(s.move);
    expect_same(&s);
}

/* Items of one key, and so large that they are copied in several pieces. */
static void fill_pieces(TestPartition *t)
{
    enum { COUNT = 200, BYTES = 5000 };
    static_assert((size_t)COUNT * BYTES > 3 * MOVE_PIECE_BYTES, "there are some pieces");
    char text[BYTES];
    memset(text, 'x', sizeof(text));
    for (int i = 0; i < COUNT; i++) {
        const char *row = arena_format(&t->arena, "{'pk':'%d','id':'i%03d','n':%d,'t':'%.*s'}",
                                       i / 100, i, i % 7, BYTES, text)
                              .ptr;
        assert_status(run_document(t, ITEM_CREATE, row), STATUS_OK);
        arena_reset(&t->arena);
    }
}

/* It keeps its number, and the copy has not come to its new place yet. */
static void an_item_that_moves_ahead_of_the_copy_is_there_once(TestPartition *t)
{
    fill_pieces(t);
    AUTO(split_close) Split s;
    split_open(&s, t, 2);
    assert_ok(move_begin(s.move, err));
    bool is_done = false;
    assert_ok(move_copy(s.move, &is_done, err));
    assert_false(is_done);
    for (int key = 0; key < 2; key++) {
        AUTO(test_write_done) TestWrite w;
        test_write_init(&w, t, WRITE_CONTINUE);
        for (int i = 0; i < 3; i++) {
            const char *id = arena_format(&w.arena, "i%03d", key * 100 + i * 30).ptr;
            const char *row = arena_format(&w.arena, "{'pk':'%d','id':'z%d','n':3}", key, i).ptr;
            (void)add_replace(&w, id, row);
        }
        test_run(t, &w);
        for (size_t i = 0; i < w.write.count; i++)
            assert_status(w.items[i].status, STATUS_OK);
    }
    copy_all(s.move);
    assert_ok(move_fence(s.move, err));
    expect_same(&s);
}

/* The targets' indexes are rebuilt in the middle of the copy, whatever they have gathered (I20). */
static void another_policy_holds_for_what_was_copied_before_it(TestPartition *t)
{
    fill_pieces(t);
    static const char *const policies[] = {
        "{'includedPaths':[{'path':'/n/?'}],'excludedPaths':[{'path':'/*'}]}", "{}", ""};
    for (size_t p = 0; p < ARRAY_COUNT(policies); p++) {
        AUTO(split_close) Split s;
        split_open(&s, t, 2);
        assert_ok(move_begin(s.move, err));
        bool is_done = false;
        for (size_t i = 0; i < 1 + p; i++)
            assert_ok(move_copy(s.move, &is_done, err));
        assert_false(is_done);
        TestSchema next = {
            .kind = PARTITION_HASH_V2, .paths = "/pk", .index = policies[p], .ttl_s = -1};
        test_set_schema(t, next);
        for (size_t i = 0; i < s.target_count; i++) {
            partition_set_schema(s.targets[i], t->schema);
            (void)partition_maintain(s.targets[i]);
        }
        test_maintain(t);
        copy_all(s.move);
        assert_ok(move_fence(s.move, err));
        for (size_t i = 0; i < s.target_count; i++)
            (void)partition_maintain(s.targets[i]);
        while (partition_index_progress(s.targets[0]) < 100 ||
               partition_index_progress(s.targets[1]) < 100)
            (void)usleep(1000);
        expect_same(&s);
        move_cancel(s.move);
        check_space(t);
    }
}

static void a_move_may_be_given_up_before_its_targets_are_written(TestPartition *t)
{
    fill(t, 4, 4);
    AUTO(split_close) Split s;
    split_open(&s, t, 2);
    assert_ok(move_begin(s.move, err));
    bool is_done = true;
    assert_ok(move_copy(s.move, &is_done, err)); /* all items are in one piece */
    assert_false(is_done);
    move_cancel(s.move);
    check_space(t);
}

/* I20 */
static void a_copy_that_cannot_be_written_fails_the_move(TestPartition *t)
{
    if (t->engine != TEST_MEMORY)
        return;
    fill(t, 4, 4);
    AUTO(split_close) Split s;
    split_open(&s, t, 2);
    assert_ok(move_begin(s.move, err));
    memory_store_fail_commits(t->store, 1, STATUS_IO);
    bool is_done = false;
    Error err;
    Status status = STATUS_OK;
    while (status == STATUS_OK && !is_done)
        status = move_copy(s.move, &is_done, &err);
    assert_int_equal(status, STATUS_IO);
    /* What is lost stays lost: nobody goes on without it. */
    test_settle(t);
    assert_true(s.targets[0]->writer.has_lost_bulk || s.targets[1]->writer.has_lost_bulk);
    assert_int_equal(move_fence(s.move, &err), STATUS_UNAVAILABLE);
    move_cancel(s.move);
    check_space(t);
}

/* I19 */
static void writes_wait_at_a_fence_and_reads_do_not(TestPartition *t)
{
    fill(t, 3, 3);
    AUTO(split_close) Split s;
    split_open(&s, t, 2);
    go_to_fence(s.move);
    AUTO(test_write_done) TestWrite w;
    test_write_init(&w, t, WRITE_ATOMIC);
    (void)add_document(&w, ITEM_CREATE, "{'pk':'x','id':'late'}");
    test_submit(t, &w);
    (void)nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    assert_false(is_answered(&w));
    expect_state(t, PARTITION_FENCED);
    expect_item(t, "0", "0", row_of(&t->arena, 0, 0, 0, 0, 0));
    expect_same(&s);
    move_cancel(s.move);
    assert_status(test_wait(&w), STATUS_OK);
    expect_item(t, "x", "late", "{'pk':'x','id':'late'}");
}

typedef struct Ticker {
    TestPartition *t;
    _Atomic bool stop;
} Ticker;

static void *tick(void *ctx)
{
    Ticker *ticker = ctx;
    while (!atomic_load(&ticker->stop)) {
        fake_clock_advance(&ticker->t->clock, MOVE_FENCE_US_MAX);
        (void)nanosleep(&(struct timespec){.tv_nsec = 20000}, NULL);
    }
    return NULL;
}

/* A purge of all that was copied, just before the fence, would hold writes up for as long as it
 * takes to look at all of it. */
static void writes_do_not_wait_for_long(TestPartition *t)
{
    for (int id = 0; id < 3 * PIECE_MAX; id++)
        assert_status(run_document(t, ITEM_CREATE, row_of(&t->arena, 1, id, id, 0, 0)), STATUS_OK);
    AUTO(split_close) Split s;
    split_open(&s, t, 2);
    assert_ok(move_begin(s.move, err));
    copy_all(s.move);
    assert_status(run_purge(t, "1"), STATUS_OK);
    Ticker ticker = {.t = t};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, tick, &ticker), 0);
    Error why;
    assert_status(move_fence(s.move, &why), STATUS_TIMEOUT);
    assert_status(run_document(t, ITEM_CREATE, "{'pk':'x','id':'meanwhile'}"), STATUS_OK);
    atomic_store(&ticker.stop, true);
    assert_int_equal(pthread_join(thread, NULL), 0);
    size_t left = 1;
    while (left > 0)
        assert_ok(move_catch_up(s.move, &left, err));
    assert_ok(move_fence(s.move, err));
    expect_same(&s);
    assert_int_equal(partition_usage(s.targets[0]).items + partition_usage(s.targets[1]).items, 1);
}

typedef struct GoneSpace {
    _Atomic uint64_t space;
} GoneSpace;

static void on_gone(void *ctx, StoreSpace space)
{
    atomic_store(&((GoneSpace *)ctx)->space, space);
}

/* I19 */
static void a_write_after_the_end_is_refused_as_gone(TestPartition *t)
{
    fill(t, 3, 3);
    AUTO(split_close) Split s;
    split_open(&s, t, 2);
    go_to_fence(s.move);
    AUTO(test_write_done) TestWrite w;
    test_write_init(&w, t, WRITE_ATOMIC);
    (void)add_document(&w, ITEM_CREATE, "{'pk':'x','id':'late'}");
    test_submit(t, &w);
    GoneSpace gone = {0};
    move_end(s.move, on_gone, &gone);
    assert_status(test_wait(&w), STATUS_GONE);
    assert_int_equal(w.write.error.sub, SUB_PARTITION_KEY_RANGE_GONE);
    Error err;
    assert_status(partition_submit(t->partition, &w.write, &err), STATUS_GONE);
    expect_state(t, PARTITION_RETIRED);
    expect_item(t, "0", "0",
                row_of(&t->arena, 0, 0, 0, 0, 0)); /* a reader that has it may still read */
    expect_same(&s);
    move_free(TAKE(s.move));
    test_settle(t);
    assert_int_equal(atomic_load(&gone.space), 0);
    partition_unref(TAKE(t->partition));
    assert_int_equal(atomic_load(&gone.space), TEST_SPACE);
    t->partition = open_other(t, TEST_PARTITION + 1); /* for the end of the test */
}

static void a_cancelled_move_leaves_no_trace(TestPartition *t)
{
    fill(t, 3, 3);
    for (int step = 0; step < 4; step++) {
        AUTO(split_close) Split s;
        split_open(&s, t, 2);
        expect_state(t, PARTITION_SERVING);
        if (step > 0) {
            assert_ok(move_begin(s.move, err));
            expect_state(t, PARTITION_WATCHED);
        }
        if (step > 1)
            copy_all(s.move);
        if (step > 2)
            assert_ok(move_fence(s.move, err));
        AUTO(test_write_done) TestWrite w;
        test_write_init(&w, t, WRITE_ATOMIC);
        (void)add_document(&w, ITEM_UPSERT, "{'pk':'x','id':'late'}");
        test_submit(t, &w);
        move_cancel(s.move);
        assert_status(test_wait(&w), STATUS_OK);
        assert_status(w.items[0].status, STATUS_OK);
        expect_state(t, PARTITION_SERVING);
        check_space(t);
    }
}

typedef struct TestDrop {
    PartitionDrop drop;
    Latch done;
} TestDrop;

static void on_dropped(PartitionDrop *drop)
{
    latch_post(&CONTAINER_OF(drop, TestDrop, drop)->done);
}

/* Before the fence the move fails; after it the drop waits until the move has ended. */
static void a_dropped_source_ends_the_move(TestPartition *t)
{
    fill(t, 3, 3);
    for (int fenced = 0; fenced < 2; fenced++) {
        AUTO(split_close) Split s;
        split_open(&s, t, 2);
        assert_ok(move_begin(s.move, err));
        copy_all(s.move);
        if (fenced)
            assert_ok(move_fence(s.move, err));
        TestDrop drop = {.drop = {.done = on_dropped}};
        latch_init(&drop.done);
        partition_drop(t->partition, &drop.drop);
        Error why;
        if (!fenced)
            assert_status(move_fence(s.move, &why), STATUS_NOT_FOUND);
        move_cancel(s.move);
        latch_wait(&drop.done);
        latch_done(&drop.done);
        test_settle(t);
        partition_unref(t->partition);
        assert_ok(
            partition_open(&t->host, TEST_SPACE, TEST_PARTITION, t->schema, &t->partition, err));
    }
}

/* ---- at random ---- */

typedef struct Run {
    TestPartition *t;
    Random random;
    int n;
} Run;

static int below(Run *run, int bound)
{
    return (int)random_below(&run->random, (uint64_t)bound);
}

/* Few keys, ids and unique values, so that they meet. */
static void write_something(Run *run)
{
    TestPartition *t = run->t;
    AUTO(test_write_done) TestWrite w;
    test_write_init(&w, t, below(run, 2) == 0 ? WRITE_ATOMIC : WRITE_CONTINUE);
    int key = below(run, KEYS);
    int ops = 1 + below(run, 4);
    for (int i = 0; i < ops; i++) {
        int id = below(run, IDS);
        int ttl_s = below(run, 5) == 0 ? 1 + below(run, 20) : 0;
        const char *row = row_of(&w.arena, key, id, below(run, IDS), ttl_s, run->n++);
        char pk[16];
        char other[16];
        (void)snprintf(pk, sizeof(pk), "%d", key);
        (void)snprintf(other, sizeof(other), "%d", below(run, IDS));
        switch (below(run, 6)) {
        case 0:
        case 1:
            (void)add_document(&w, ITEM_UPSERT, row);
            break;
        case 2:
            (void)add_replace(&w, other, row); /* perhaps under another id */
            break;
        case 3:
            (void)add_id(&w, ITEM_DELETE, pk, other);
            break;
        case 4:
            (void)add_patch(&w, pk, other, "[{'op':'incr','path':'/n','value':1000}]");
            break;
        default:
            (void)add_document(&w, ITEM_CREATE, row);
            break;
        }
    }
    test_run(t, &w);
}

static void do_something(Run *run)
{
    char pk[16];
    (void)snprintf(pk, sizeof(pk), "%d", below(run, KEYS));
    int what = below(run, 100);
    if (what < 3)
        assert_status(run_purge(run->t, pk), STATUS_OK);
    else if (what < 6)
        test_advance_s(run->t, 1 + (uint64_t)below(run, 8));
    else if (what < 10)
        (void)partition_maintain(run->t->partition);
    else
        write_something(run);
}

static void move_at_random(Run *run)
{
    AUTO(split_close) Split s;
    split_open(&s, run->t, 1 + (size_t)below(run, TARGETS_MAX));
    assert_ok(move_begin(s.move, err));
    bool is_copied = false;
    for (int i = 0; i < STEPS; i++) {
        size_t left = 0;
        if (below(run, 10) > 0)
            do_something(run);
        else if (!is_copied)
            assert_ok(move_copy(s.move, &is_copied, err));
        else
            assert_ok(move_catch_up(s.move, &left, err));
    }
    while (!is_copied)
        assert_ok(move_copy(s.move, &is_copied, err));
    while (move_has_purges(s.move))
        test_maintain(run->t);
    assert_ok(move_fence(s.move, err));
    expect_same(&s);
    move_cancel(s.move);
    check_space(run->t);
}

/* I19 */
static void whatever_happens_meanwhile_the_targets_are_the_same(TestPartition *t)
{
    Run run = {.t = t};
    random_init(&run.random, test_seed());
    int rounds = t->engine == TEST_MEMORY ? ROUNDS : ROUNDS / 3; /* a disk takes its time */
    for (int i = 0; i < rounds; i++) {
        for (int j = 0; j < STEPS; j++)
            do_something(&run);
        move_at_random(&run);
    }
}

/* A split, and back again by a merge of what came out. */
static void a_merge_brings_everything_together(TestPartition *t)
{
    fill(t, 20, 10);
    AUTO(split_close) Split s;
    split_open(&s, t, 3);
    go_to_fence(s.move);
    Partition *merged = open_other(t, next_id++);
    MovePart target = {merged, SLICE_EMPTY};
    MovePart sources[] = {
        {s.targets[0], s.froms[0]}, {s.targets[1], s.froms[1]}, {s.targets[2], s.froms[2]}};
    AUTO(move_free) Move *back = move_new(sources, 3, &target, 1);
    go_to_fence(back);
    AUTO(buf_done) Buf before;
    AUTO(buf_done) Buf after;
    buf_init(&before, (size_t)64 << 20);
    buf_init(&after, (size_t)64 << 20);
    print_items(t, t->partition, &before);
    print_items(t, merged, &after);
    assert_slice(buf_view(&after), buf_view(&before));
    check_partition(t, merged);
    partition_unref(merged);
}

/* Whether the feed of all versions reaches back to this LSN, in ['from', 'to'). */
static bool reaches_back(TestPartition *t, Partition *partition, uint64_t lsn, Slice from, Slice to)
{
    FeedOptions options = {.mode = FEED_VERSIONS,
                           .after_lsn = lsn,
                           .since_s = INT64_MIN,
                           .epk_from = from,
                           .epk_to = to};
    AUTO(change_feed_close) ChangeFeed *feed = NULL;
    Error err;
    return change_feed_open(partition, t->schema, &options, &feed, &err) == STATUS_OK;
}

static void open_two(TestPartition *t, Partition **out)
{
    for (size_t i = 0; i < 2; i++)
        out[i] = open_other(t, next_id++);
}

static void write_at(TestPartition *t, Partition *partition, const char *row)
{
    Partition *own = t->partition;
    t->partition = partition;
    assert_status(run_document(t, ITEM_UPSERT, row), STATUS_OK);
    test_settle(t);
    t->partition = own;
}

/* Two partitions with LSNs of their own become one: each part of its history begins where that of
 * its source began, also after another split, and while it is trimmed (I25). */
static void a_merge_keeps_where_histories_begin(TestPartition *t)
{
    enum { AHEAD = 50 };
    const char *low = NULL;
    const char *high = NULL;
    Slice middle = SLICE("\x20");
    for (int key = 0; low == NULL || high == NULL; key++) {
        Epk epk;
        const char *pk = arena_format(&t->arena, "%d", key).ptr;
        make_epk(&t->arena, t->schema, pk, &epk);
        bool is_low = slice_compare(epk_slice(&epk), middle) < 0;
        const char *row = arena_format(&t->arena, "{'id':'a','pk':'%s'}", pk).ptr;
        low = is_low && low == NULL ? row : low;
        high = !is_low && high == NULL ? row : high;
    }
    Partition *parts[2];
    open_two(t, parts);
    for (int i = 0; i < AHEAD; i++)
        write_at(t, parts[0], low);
    uint64_t ahead = partition_lsn(parts[0]);
    uint64_t behind = partition_lsn(parts[1]);
    test_set_schema(t, (TestSchema){.kind = PARTITION_HASH_V2, .paths = "/pk", .retention_s = 600});
    for (size_t i = 0; i < 2; i++)
        partition_set_schema(parts[i], t->schema);
    write_at(t, parts[1], high);
    write_at(t, parts[0], low);
    Partition *merged = open_other(t, next_id++);
    MovePart from[] = {{parts[0], SLICE_EMPTY}, {parts[1], middle}};
    MovePart to = {merged, SLICE_EMPTY};
    Move *move = move_new(from, 2, &to, 1);
    go_to_fence(move);
    move_free(move);
    assert_true(reaches_back(t, merged, behind, middle, SLICE_EMPTY));
    assert_true(reaches_back(t, merged, ahead, SLICE_EMPTY, middle));
    assert_false(reaches_back(t, merged, ahead - 1, SLICE_EMPTY, middle));
    assert_false(reaches_back(t, merged, behind, SLICE_EMPTY, SLICE_EMPTY));
    check_partition(t, merged);

    Partition *again[2];
    open_two(t, again);
    MovePart whole = {merged, SLICE_EMPTY};
    MovePart halves[] = {{again[0], SLICE_EMPTY}, {again[1], SLICE("\x28")}};
    move = move_new(&whole, 1, halves, 2);
    go_to_fence(move);
    move_free(move);
    assert_true(reaches_back(t, again[0], behind, middle, SLICE("\x28")));
    assert_true(reaches_back(t, again[1], behind, SLICE("\x28"), SLICE_EMPTY));
    assert_false(reaches_back(t, again[0], behind, SLICE_EMPTY, SLICE("\x28")));

    test_advance_s(t, 700);
    test_settle(t); /* nothing is trimmed until the source has left the move */
    (void)partition_maintain(merged);
    test_settle(t);
    assert_false(reaches_back(t, merged, behind, middle, SLICE_EMPTY));
    assert_true(reaches_back(t, merged, behind + 1, middle, SLICE_EMPTY));
    assert_false(reaches_back(t, merged, ahead, SLICE_EMPTY, middle));
    assert_true(reaches_back(t, merged, ahead + 1, SLICE_EMPTY, middle));
    check_partition(t, merged);
    partition_unref(merged);
    for (size_t i = 0; i < 2; i++) {
        partition_unref(parts[i]);
        partition_unref(again[i]);
    }
}

int main(void)
{
    static const EngineTest tests[] = {
        ENGINE_TEST(a_split_gives_everything_to_its_targets, .ttl_s = -1, .unique = {"/u"}),
        ENGINE_TEST(items_of_all_sizes_are_copied),
        ENGINE_TEST(an_item_that_moves_ahead_of_the_copy_is_there_once, .ttl_s = -1),
        ENGINE_TEST(another_policy_holds_for_what_was_copied_before_it, .ttl_s = -1),
        ENGINE_TEST(a_move_may_be_given_up_before_its_targets_are_written),
        ENGINE_TEST(a_copy_that_cannot_be_written_fails_the_move),
        ENGINE_TEST(writes_wait_at_a_fence_and_reads_do_not),
        ENGINE_TEST(writes_do_not_wait_for_long),
        ENGINE_TEST(a_write_after_the_end_is_refused_as_gone),
        ENGINE_TEST(a_cancelled_move_leaves_no_trace, .ttl_s = -1, .unique = {"/u"}),
        ENGINE_TEST(a_dropped_source_ends_the_move),
        ENGINE_TEST(whatever_happens_meanwhile_the_targets_are_the_same, .ttl_s = -1,
                    .unique = {"/u"}),
        {.name = "whatever_happens_meanwhile_the_targets_have_the_same_history",
         .run = whatever_happens_meanwhile_the_targets_are_the_same,
         .schema = {.kind = PARTITION_HASH_V2,
                    .paths = "/pk",
                    .ttl_s = -1,
                    .unique = {"/u"},
                    .retention_s = UINT32_MAX}},
        ENGINE_TEST(a_merge_keeps_where_histories_begin),
        ENGINE_TEST(a_merge_brings_everything_together, .ttl_s = -1, .unique = {"/u"}),
    };
    return run_on_every_engine("move", tests, ARRAY_COUNT(tests));
}
