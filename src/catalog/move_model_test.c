/* move_model_test.c - a split with writes, a crash or a drop before each of its steps (I10, I13).
 *
 * A split is driven step by step. Before each step there may be writes, and before one of them the
 * process may die or the container be dropped. Afterwards every write that was acknowledged is
 * there, in the source or in the targets, and nothing else is left in the store.
 */
#include "catalog/move_testing_int.h"

#include "partition/item_move.h"

enum { KEYS = 24, STEP_COUNT = 7, DATABASE_SPACES = 64 };

typedef enum Disturbance { UNDISTURBED, CRASH, DROP, DISTURBANCE_COUNT } Disturbance;

typedef struct Run {
    TestCatalog *t;
    uint32_t database;
    uint32_t container;
    int model[KEYS]; /* what was acknowledged; 0 if nothing */
    int next;
    Move *move;
    bool is_fenced;
    bool is_dropped;
    TestWrite waiting; /* a write that the fence holds */
    int waiting_key;   /* -1 if there is none */
    int waiting_n;
} Run;

static void on_gone(void *ctx, StoreSpace space)
{
    (void)ctx;
    (void)space; /* the next opening cleans it: its record is there */
}

static void write_one(Run *run, int key, int n)
{
    Status status = put_item(run->t, run->database, run->container, key, n, 10);
    assert_true(status == STATUS_OK || (n == 0 && status == STATUS_NOT_FOUND));
    run->model[key] = n;
}

/* A write waits while the fence is set: it is answered when the move has ended (I13). */
static void write_behind_fence(Run *run)
{
    const Container *container = test_container(run->t, run->database, run->container);
    run->waiting_key = 3;
    run->waiting_n = run->next++;
    fill_item(&run->waiting, container, run->waiting_key, run->waiting_n, 10);
    Partition *partition = partition_of(container, &run->waiting.item.epk);
    assert_ok(partition_submit(partition, &run->waiting.write, err));
}

static void do_writes(Run *run)
{
    if (run->is_dropped)
        return;
    if (run->is_fenced) {
        if (run->waiting_key < 0)
            write_behind_fence(run);
        return;
    }
    for (int i = 0; i < 3; i++) {
        int n = run->next++;
        write_one(run, n * 7 % KEYS, n % 5 == 0 ? 0 : n);
    }
}

static void finish_waiting(Run *run)
{
    if (run->waiting_key < 0)
        return;
    Status status = finish_item(run->t, &run->waiting, run->database, run->container);
    if (status == STATUS_OK)
        run->model[run->waiting_key] = run->waiting_n;
    else
        assert_true(run->is_dropped);
    test_write_done(&run->waiting);
    run->waiting_key = -1;
}

static void begin_copying(Run *run)
{
    const Container *container = test_container(run->t, run->database, run->container);
    size_t source_count = 0;
    const PartitionRange *source = container_sources(container, &source_count);
    assert_int_equal(source_count, 1);
    MovePart targets[8];
    for (size_t i = 0; i < container->pending_count; i++)
        targets[i] = (MovePart){handle_local(container_handle(container, &container->pending[i])),
                                container->pending[i].min_bytes};
    Partition *partition = handle_local(container_handle(container, source));
    run->move = move_new(&(MovePart){partition, SLICE_EMPTY}, 1, targets, container->pending_count);
    assert_ok(move_begin(run->move, err));
}

/* Fails if the container is gone, and only then. */
static Status do_step(Run *run, int step, Error *err)
{
    bool is_done = false;
    size_t left = 0;
    switch (step) {
    case 0:
        begin_move(run->t, run->database, run->container, 0, 0, "15 2A");
        return STATUS_OK;
    case 1:
        begin_copying(run);
        return STATUS_OK;
    case 2:
        while (!is_done)
            TRY(move_copy(run->move, &is_done, err));
        return STATUS_OK;
    case 3:
        return move_catch_up(run->move, &left, err);
    case 4:
        TRY(move_fence(run->move, err));
        run->is_fenced = true;
        return STATUS_OK;
    case 5: {
        AUTO(test_change_done) TestChange c;
        test_change_init(&c, CATALOG_END_MOVE);
        c.change.database = run->database;
        c.change.container = run->container;
        Status status = test_run(run->t->catalog, &c);
        *err = c.change.error;
        TRY(status);
        move_end(run->move, on_gone, NULL);
        run->is_fenced = false;
        return STATUS_OK;
    }
    default:
        move_free(TAKE(run->move));
        return STATUS_OK;
    }
}

static void let_go(Run *run)
{
    move_free(TAKE(run->move));
    run->is_fenced = false;
    finish_waiting(run);
}

static void crash(Run *run)
{
    let_go(run);
    test_reopen(run->t);
}

/* Spaces that a container has are full, all others empty, once the garbage is gone. */
static void check_spaces(Run *run)
{
    const Container *container = test_container(run->t, run->database, run->container);
    while (count_garbage(run->t->store) > 0)
        sleep_ms(1);
    for (StoreSpace space = SPACE_PARTITION_FIRST; space < SPACE_PARTITION_FIRST + DATABASE_SPACES;
         space++) {
        bool is_own = false;
        for (size_t i = 0; container != NULL && i < container->range_count; i++)
            is_own = is_own || container->ranges[i].space == space;
        if (!is_own && count_keys(run->t->store, space) > 0)
            fail_msg("space %llu has %zu keys and no owner", (unsigned long long)space,
                     count_keys(run->t->store, space));
    }
}

static void check_all(Run *run)
{
    const Container *container = test_container(run->t, run->database, run->container);
    assert_int_equal(container == NULL, run->is_dropped);
    if (container == NULL)
        return;
    assert_int_equal(container->pending_count, 0);
    for (int key = 0; key < KEYS; key++) {
        if (get_item(container, key) != run->model[key])
            fail_msg("item %d is %d, expected %d", key, get_item(container, key), run->model[key]);
    }
    check_partitions(container);
}

static void run_case(TestCatalog *t, unsigned writes, Disturbance disturbance, int where)
{
    char name[64];
    static int count;
    (void)snprintf(name, sizeof(name), "d%d", count++);
    Run run = {.t = t, .next = 1, .waiting_key = -1};
    run.database = make_database(t, name, MANUAL(0));
    run.container = make_container(t, run.database, "c", MANUAL(400));
    for (int key = 0; key < KEYS; key++)
        write_one(&run, key, run.next++);
    for (int step = 0; step < STEP_COUNT; step++) {
        if ((writes >> step & 1) != 0)
            do_writes(&run);
        if (step == where && disturbance == CRASH) {
            crash(&run);
            break;
        }
        if (step == where && disturbance == DROP) {
            assert_int_equal(delete_one(t, CATALOG_DELETE_CONTAINER, run.database, run.container),
                             STATUS_OK);
            run.is_dropped = true;
            if (step == 0)
                break;
            if (step == 1)
                break; /* there is no container to copy from */
        }
        Error err;
        Status status = do_step(&run, step, &err);
        if (status != STATUS_OK) {
            if (!run.is_dropped)
                fail_msg("step %d: %s", step, err.message);
            break;
        }
    }
    let_go(&run);
    check_all(&run);
    test_reopen(t); /* where what is left over is cleaned */
    check_all(&run);
    check_spaces(&run);
    assert_int_equal(delete_one(t, CATALOG_DELETE_DATABASE, run.database, 0), STATUS_OK);
    run.is_dropped = true;
    check_spaces(&run);
}

static void every_order_of_steps_keeps_what_was_acknowledged(TestCatalog *t)
{
    bool is_slow = t->engine == TEST_ROCKSDB;
    for (int where = 0; where < STEP_COUNT; where++) {
        for (int kind = UNDISTURBED; kind < DISTURBANCE_COUNT; kind++) {
            for (unsigned writes = 0; writes < 1U << STEP_COUNT; writes += is_slow ? 0x55 : 5)
                if (kind != UNDISTURBED || where == 0)
                    run_case(t, writes, (Disturbance)kind, where);
        }
    }
}

int main(void)
{
    static const EngineTest tests[] = {
        ENGINE_TEST(every_order_of_steps_keeps_what_was_acknowledged),
    };
    return run_on_every_engine("move model", tests, ARRAY_COUNT(tests));
}
