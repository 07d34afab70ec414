/* replicated_loss_test.c - one node that loses a space: RocksDB refuses what the journal has. */
#include "store/replicated/cluster_testing_int.h"

enum { SPACE = 10 };

/* ---- RocksDB fails ---- */

typedef struct BrokenLocal {
    EngineOps ops; /* first */
    const EngineOps *inner;
    _Atomic bool fails;
    Status status; /* with which it fails */
} BrokenLocal;

static Status broken_write(Engine *engine, const EngineWrites *writes, size_t count, Error *err)
{
    const BrokenLocal *local = CONTAINER_OF(engine->ops, const BrokenLocal, ops);
    if (atomic_load(&local->fails))
        return error_set(err, local->status, SUB_NONE, "a test wants this write to fail");
    return local->inner->write(engine, writes, count, err);
}

static Status broken_probe(Engine *engine, Error *err)
{
    return broken_write(engine, NULL, 0, err);
}

static void break_local(TestNode *node, BrokenLocal *local)
{
    Engine *engine = node->replication->local;
    local->inner = engine->ops;
    local->ops = *engine->ops;
    local->ops.write = broken_write;
    local->ops.probe = broken_probe;
    engine->ops = &local->ops;
}

static void refuse_a_write(Status how)
{
    AUTO(cluster_close) TestCluster cluster;
    cluster_open(&cluster, 1);
    TestNode *node = &cluster.nodes[0];
    BrokenLocal local = {.status = how};
    break_local(node, &local);
    node_own(node, SPACE);
    node_own(node, SPACE + 1);
    put_now(node->store, SPACE, "a", "1");
    atomic_store(&local.fails, true);
    Error refusal = {0}, reason;
    assert_status(try_put(node, SPACE, "b", "1", &refusal), STATUS_TIMEOUT);
    assert_non_null(strstr(refusal.message, "not known"));
    while (count_lost(node) < 2)
        sleep_ms(1);
    (void)last_lost(node, &reason);
    assert_int_equal(reason.status, STATUS_NOT_OWNER);
    assert_status(try_put(node, SPACE, "c", "1", &refusal), STATUS_NOT_OWNER);
    assert_status(try_put(node, SPACE + 1, "c", "1", &refusal), STATUS_NOT_OWNER);
    assert_int_equal(seq_of(node, SPACE), 1);
    bool found = false;
    JournalPlace tail = test_tail(node->journal, SPACE, &found);
    assert_int_equal(tail.seq, 2);
    assert_status(replication_own(node->replication, SPACE, &tail, cond_after_ms(50), &refusal),
                  STATUS_IO);
    tail = test_tail(node->journal, SPACE + 1, &found); /* also if nothing is missing */
    assert_status(replication_own(node->replication, SPACE + 1, &tail, cond_after_ms(50), &refusal),
                  STATUS_IO);

    /* The follower tries, too, and goes on trying. */
    replication_poke(node->replication);
    sleep_ms(100);
    assert_int_equal(role_of(node, SPACE), SPACE_FOLLOWED);

    /* It is whole again when RocksDB writes again. */
    atomic_store(&local.fails, false);
    assert_ok(replication_wait(node->replication, SPACE, 2, cond_after_ms(20000), err));
    expect_key(node->store, NULL, SPACE, "b", "1");
    expect_key(node->store, NULL, SPACE, "c", NULL);
    node_own(node, SPACE);
    put_now(node->store, SPACE, "d", "1");
    assert_int_equal(count_behind(node), 0);
    node->replication->local->ops = local.inner;
}

/* Damage that RocksDB finds is this node's, and not another history of the log. */
static void a_write_that_rocksdb_refuses_gives_up_all_spaces(void **state)
{
    (void)state;
    refuse_a_write(STATUS_IO);
    refuse_a_write(STATUS_CORRUPT);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_write_that_rocksdb_refuses_gives_up_all_spaces),
    };
    return cmocka_run_group_tests_name("replicated_loss", tests, NULL, NULL);
}
