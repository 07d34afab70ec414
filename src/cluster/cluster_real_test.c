/* cluster_real_test.c - nodes with all their threads (cluster_real_testing_int.h): spaces that move
 * under load, nodes that leave, die and come back, copies that are seeded. */
#include "cluster/cluster_real_testing_int.h"

#include "base/encoding.h"
#include "base/latch.h"

enum { SPACE_OF_TEST = 1 << 20 };

/* Whether the node's catalogue has the container, and serves the ranges that are its own. */
static bool has_container(RealNode *node, uint32_t database, const char *id)
{
    CatalogReader reader;
    catalog_reader_init(&reader, node->catalog);
    const Container *container =
        snapshot_container_by_id(catalog_read(&reader), database, slice_from_cstr(id));
    bool has = container != NULL;
    for (size_t i = 0; has && i < container->range_count; i++) {
        PartitionHandle *handle = container_handle_at(container, i);
        ClusterOwner owner = cluster_owner(node->cluster, handle_range(handle)->space);
        has = !owner.is_local || handle_local(handle) != NULL;
    }
    catalog_reader_done(&reader);
    return has;
}

static Status put_key(RealNode *node, StoreSpace space, uint64_t key, Error *err)
{
    uint8_t bytes[9] = {'k'};
    be64_put(bytes + 1, key);
    StoreTxn *txn = store_txn_begin(node->store);
    store_txn_put(txn, space, slice_make(bytes, sizeof(bytes)), SLICE("v"));
    return store_txn_commit_wait(txn, err);
}

static bool has_key(RealNode *node, StoreSpace space, uint64_t key)
{
    uint8_t bytes[9] = {'k'};
    be64_put(bytes + 1, key);
    StoreValue value;
    StoreFound found;
    assert_ok(store_get(node->store, NULL, space, slice_make(bytes, sizeof(bytes)), STORE_READ_ANY,
                        &value, &found, err));
    if (found == STORE_FOUND)
        store_value_release(&value);
    return found == STORE_FOUND;
}

static void make_space(StoreSpace space)
{
    RealNode *leader = owner_of(SPACE_OF_CATALOG);
    assert_non_null(leader);
    const CatalogPlacement *placement = cluster_placement(leader->cluster);
    assert_ok(placement->create(placement->ctx, space, 1, 0, err));
    for (size_t i = 0; i < real.count; i++)
        cluster_refresh_owners(real.nodes[i].cluster);
    WAIT_UNTIL(owner_of(space) != NULL);
}

static Status move_space(RealNode *node, StoreSpace space, const char *to, Arena *arena,
                         Slice *json, Error *err)
{
    return cluster_move(node->cluster, space, slice_from_cstr(to), arena, json, err);
}

static bool is_followed(StoreSpace space, RealNode *node)
{
    return replication_place(node->replication, space).role == SPACE_FOLLOWED;
}

/* ---- tests ---- */

static void a_container_is_on_every_node_when_its_creation_is_answered(void **state)
{
    (void)state;
    begin(3);
    RealNode *leader = owner_of(SPACE_OF_CATALOG);
    assert_non_null(leader);
    uint32_t database = make_database(leader, "d", 0);
    for (int i = 0; i < 10; i++) {
        char id[16];
        (void)snprintf(id, sizeof(id), "c%d", i);
        make_container(leader, database, id, 3000);
        for (size_t j = 0; j < real.count; j++)
            assert_true(has_container(&real.nodes[j], database, id));
    }
}

typedef struct Writer {
    pthread_t thread;
    _Atomic bool is_stopping;
    uint64_t acknowledged[100000];
    _Atomic size_t count;
    _Atomic uint64_t refused;
} Writer;

static Writer writer;

/* Writes where the space is served, and tries again what was surely not done. */
static void *run_writer(void *arg)
{
    (void)arg;
    for (uint64_t key = 1; !atomic_load(&writer.is_stopping); key++) {
        RealNode *node = owner_of(SPACE_OF_TEST);
        Error failure;
        if (node == NULL) {
            sleep_ms(1);
            continue;
        }
        Status status = put_key(node, SPACE_OF_TEST, key, &failure);
        writer.refused += status != STATUS_OK;
        if (status == STATUS_OK && writer.count < ARRAY_COUNT(writer.acknowledged))
            writer.acknowledged[writer.count++] = key;
        /* A planned move leaves no write whose outcome is unknown. */
        if (status != STATUS_OK && status != STATUS_NOT_OWNER && status != STATUS_THROTTLED)
            fail_msg("%s: %s", status_code(status), failure.message);
    }
    return NULL;
}

static void a_space_moves_under_load_and_no_write_is_lost(void **state)
{
    (void)state;
    begin(2);
    make_space(SPACE_OF_TEST);
    memset(&writer, 0, sizeof(writer));
    AUTO(arena_done) Arena arena;
    arena_init(&arena, ARENA_SMALL_BYTES);
    Slice json;
    assert_int_equal(pthread_create(&writer.thread, NULL, run_writer, NULL), 0);
    for (int i = 0; i < 6; i++) {
        RealNode *owner = owner_of(SPACE_OF_TEST);
        RealNode *other = owner == &real.nodes[0] ? &real.nodes[1] : &real.nodes[0];
        assert_ok(move_space(&real.nodes[i % 2], SPACE_OF_TEST, other->name, &arena, &json, err));
        assert_slice_text(json, other == &real.nodes[0] ? "{\"node\":\"n0\",\"spaces\":[1048576]}"
                                                        : "{\"node\":\"n1\",\"spaces\":[1048576]}");
        WAIT_UNTIL(owner_of(SPACE_OF_TEST) == other);
        size_t before = writer.count;
        WAIT_UNTIL(writer.count > before + 10);
    }
    atomic_store(&writer.is_stopping, true);
    assert_int_equal(pthread_join(writer.thread, NULL), 0);
    RealNode *owner = owner_of(SPACE_OF_TEST);
    for (size_t i = 0; i < writer.count; i++)
        assert_true(has_key(owner, SPACE_OF_TEST, writer.acknowledged[i]));
}

static void spaces_are_gathered_for_a_move_of_ranges(void **state)
{
    (void)state;
    begin(3);
    const StoreSpace spaces[] = {SPACE_OF_TEST, SPACE_OF_TEST + 1, SPACE_OF_TEST + 2};
    for (size_t i = 0; i < ARRAY_COUNT(spaces); i++) {
        make_space(spaces[i]);
        assert_ok(put_key(owner_of(spaces[i]), spaces[i], i, err));
    }
    RealNode *leader = owner_of(SPACE_OF_CATALOG);
    const CatalogPlacement *placement = cluster_placement(leader->cluster);
    assert_ok(placement->gather(placement->ctx, spaces, ARRAY_COUNT(spaces), err));
    for (size_t i = 0; i < ARRAY_COUNT(spaces); i++) {
        assert_ptr_equal(owner_of(spaces[i]), leader);
        assert_true(has_key(leader, spaces[i], i));
    }
    AUTO(arena_done) Arena arena;
    arena_init(&arena, ARENA_SMALL_BYTES);
    Slice json;
    Error failure;
    const StoreSpace unknown = SPACE_OF_TEST + 77;
    assert_int_equal(move_space(leader, unknown, "n1", &arena, &json, &failure), STATUS_NOT_FOUND);
    assert_int_equal(move_space(leader, spaces[0], "nobody", &arena, &json, &failure),
                     STATUS_NOT_FOUND);
}

/* As a change of the catalogue leaves them that is refused after its rows were made. */
static void rows_that_the_catalogue_does_not_name_are_dropped(void **state)
{
    (void)state;
    begin(2);
    RealNode *leader = owner_of(SPACE_OF_CATALOG);
    uint32_t database = make_database(leader, "d", 0);
    make_container(leader, database, "c", 3000);
    const StoreSpace space = 1 << 16; /* the first that the catalogue gives out */
    WAIT_UNTIL(owner_of(space) != NULL);
    CatalogChange change = {.op = CATALOG_DELETE_DATABASE, .database = database};
    assert_ok(catalog_change(leader->catalog, &change, err));
    catalog_change_release(&change);
    WAIT_UNTIL(owner_of(space) == NULL);
    const CatalogPlacement *placement = cluster_placement(leader->cluster);
    assert_ok(placement->create(placement->ctx, space, 1, 0, err));
    assert_ok(placement->create(placement->ctx, SPACE_OF_TEST, 1, 0, err));
    WAIT_UNTIL(owner_of(space) != NULL);
    WAIT_UNTIL(owner_of(space) == NULL);
    /* The catalogue may yet name one that it has not given out. */
    assert_non_null(owner_of(SPACE_OF_TEST));
}

enum { SHARING = 3, SHARED_BUDGETS = 2 };

/* The spaces of all containers of a database, by their ranges' positions. */
static void find_spaces(RealNode *node, uint32_t database,
                        StoreSpace spaces[SHARED_BUDGETS][SHARING])
{
    CatalogReader reader;
    catalog_reader_init(&reader, node->catalog);
    const Snapshot *snapshot = catalog_read(&reader);
    const Container *container = NULL;
    uint32_t from = 0;
    for (size_t i = 0; i < SHARING; i++, from = container->info.number + 1) {
        container = snapshot_next_container(snapshot, database, from);
        assert_non_null(container);
        assert_int_equal(container->range_count, SHARED_BUDGETS);
        for (size_t at = 0; at < SHARED_BUDGETS; at++)
            spaces[at][i] = container->ranges[at].space;
    }
    catalog_reader_done(&reader);
}

static RealNode *owner_of_all(const StoreSpace spaces[SHARING])
{
    RealNode *owner = owner_of(spaces[0]);
    for (size_t i = 1; i < SHARING; i++) {
        if (owner_of(spaces[i]) != owner)
            return NULL;
    }
    return owner;
}

static void ranges_that_share_throughput_move_together(void **state)
{
    (void)state;
    begin(3);
    RealNode *leader = owner_of(SPACE_OF_CATALOG);
    uint32_t database = make_database(leader, "d", 1000 * SHARED_BUDGETS);
    make_container(leader, database, "x", 0);
    make_container(leader, database, "y", 0);
    make_container(leader, database, "z", 0);
    StoreSpace spaces[SHARED_BUDGETS][SHARING];
    find_spaces(leader, database, spaces);
    WAIT_UNTIL(owner_of_all(spaces[0]) != NULL && owner_of_all(spaces[1]) != NULL);
    RealNode *owner = owner_of_all(spaces[0]);
    RealNode *to = owner == &real.nodes[0] ? &real.nodes[1] : &real.nodes[0];
    const RealNode *others = owner_of_all(spaces[1]);
    AUTO(arena_done) Arena arena;
    arena_init(&arena, ARENA_SMALL_BYTES);
    Slice json;
    assert_ok(move_space(leader, spaces[0][1], to->name, &arena, &json, err));
    assert_slice_text(json, (const char *)arena_format(
                                &arena, "{\"node\":\"%s\",\"spaces\":[%llu,%llu,%llu]}%c", to->name,
                                (unsigned long long)spaces[0][0], (unsigned long long)spaces[0][1],
                                (unsigned long long)spaces[0][2], '\0')
                                .ptr);
    WAIT_UNTIL(owner_of_all(spaces[0]) == to);
    assert_ptr_equal(owner_of_all(spaces[1]), others); /* they spend another budget */
    stop(to, true, WAIT_MS);
    WAIT_UNTIL(owner_of_all(spaces[0]) != NULL);
}

static void a_node_that_leaves_hands_everything_over(void **state)
{
    (void)state;
    begin(2);
    RealNode *leader = owner_of(SPACE_OF_CATALOG);
    uint32_t database = make_database(leader, "d", 0);
    make_container(leader, database, "c", 3000);
    make_space(SPACE_OF_TEST);
    RealNode *owner = owner_of(SPACE_OF_TEST);
    RealNode *other = owner == &real.nodes[0] ? &real.nodes[1] : &real.nodes[0];
    assert_ok(put_key(owner, SPACE_OF_TEST, 7, err));
    stop(owner, true, WAIT_MS);
    WAIT_UNTIL(owner_of(SPACE_OF_TEST) == other && owner_of(SPACE_OF_CATALOG) == other);
    assert_true(has_key(other, SPACE_OF_TEST, 7));
    make_container(other, database, "after", 3000);
    assert_true(has_container(other, database, "after"));
    /* It comes back, and gets what was made meanwhile. */
    assert_ok(start(owner, err));
    assert_true(has_container(owner, database, "after"));
}

static void a_node_that_dies_is_replaced(void **state)
{
    (void)state;
    begin(3);
    RealNode *leader = owner_of(SPACE_OF_CATALOG);
    uint32_t database = make_database(leader, "d", 0);
    make_container(leader, database, "c", 3000);
    make_space(SPACE_OF_TEST);
    RealNode *owner = owner_of(SPACE_OF_TEST);
    assert_ok(put_key(owner, SPACE_OF_TEST, 7, err));
    size_t copies = 0;
    WAIT_UNTIL((copies = (size_t)is_followed(SPACE_OF_TEST, &real.nodes[0]) +
                         is_followed(SPACE_OF_TEST, &real.nodes[1]) +
                         is_followed(SPACE_OF_TEST, &real.nodes[2])) >= 1);
    stop(owner, false, 0);
    WAIT_UNTIL(owner_of(SPACE_OF_TEST) != NULL && owner_of(SPACE_OF_CATALOG) != NULL);
    assert_true(has_key(owner_of(SPACE_OF_TEST), SPACE_OF_TEST, 7));
    make_container(owner_of(SPACE_OF_CATALOG), database, "after", 3000);
    assert_ok(start(owner, err));
    assert_true(has_container(owner, database, "after"));
}

static void a_new_node_is_seeded_where_the_log_was_trimmed(void **state)
{
    (void)state;
    begin(2);
    make_space(SPACE_OF_TEST);
    RealNode *owner = owner_of(SPACE_OF_TEST);
    RealNode *other = owner == &real.nodes[0] ? &real.nodes[1] : &real.nodes[0];
    for (uint64_t key = 1; key <= 100; key++)
        assert_ok(put_key(owner, SPACE_OF_TEST, key, err));
    uint64_t epoch = cluster_owner(owner->cluster, SPACE_OF_TEST).epoch;
    WAIT_UNTIL(replication_place(other->replication, SPACE_OF_TEST).applied.seq >= 1);
    stop(other, true, 0);
    Error failure;
    /* The copy is gone, and so is the beginning of the log. */
    assert_ok(journal_expel(owner->journal, JOURNAL_LANE_FOLLOW, SPACE_OF_TEST,
                            slice_from_cstr(other->name), err));
    Status status =
        journal_trim(owner->journal, JOURNAL_LANE_FOLLOW, SPACE_OF_TEST, epoch, 100, &failure);
    assert_int_equal(status, STATUS_OK);
    test_folder_done(&other->data);
    test_folder_init(&other->data);
    assert_ok(start(other, err));
    WAIT_UNTIL(is_followed(SPACE_OF_TEST, other) && has_key(other, SPACE_OF_TEST, 100));
    for (uint64_t key = 1; key <= 100; key++)
        assert_true(has_key(other, SPACE_OF_TEST, key));
}

typedef struct Change {
    CatalogChange change;
    Latch done;
} Change;

static void on_change_done(CatalogChange *change)
{
    latch_post(&CONTAINER_OF(change, Change, change)->done);
}

typedef struct Leaving {
    RealNode *node;
    uint32_t wait_ms;
} Leaving;

static void *run_leaving(void *arg)
{
    Leaving *leaving = arg;
    cluster_leave(leaving->node->cluster, leaving->wait_ms);
    return NULL;
}

/* Makes a change at a node that leaves, while the other one does not publish it, or does so only
 * after a while. */
static Status change_and_leave(bool comes_late)
{
    begin(2);
    RealNode *leader = owner_of(SPACE_OF_CATALOG);
    RealNode *other = &real.nodes[leader == &real.nodes[0]];
    /* It renews, but publishes nothing. */
    (void)pthread_mutex_lock(&other->cluster->admin_lane);
    Change c = {
        .change = {.op = CATALOG_CREATE_DATABASE, .id = SLICE("d"), .done = on_change_done}};
    latch_init(&c.done);
    catalog_submit(leader->catalog, &c.change);
    WAIT_UNTIL(barriers_wait(leader->cluster));
    Leaving leaving = {leader, comes_late ? WAIT_MS : 2000};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, run_leaving, &leaving), 0);
    if (comes_late) {
        sleep_ms(1500);
        (void)pthread_mutex_unlock(&other->cluster->admin_lane);
    }
    latch_wait(&c.done);
    latch_done(&c.done);
    if (!comes_late)
        (void)pthread_mutex_unlock(&other->cluster->admin_lane);
    assert_int_equal(pthread_join(thread, NULL), 0);
    Status status = c.change.status;
    catalog_change_release(&c.change);
    return status;
}

static void a_node_that_leaves_answers_changes_when_the_others_have_them(void **state)
{
    (void)state;
    assert_int_equal(change_and_leave(true), STATUS_OK);
}

static void a_node_that_leaves_does_not_answer_what_the_others_have_not(void **state)
{
    (void)state;
    assert_int_equal(change_and_leave(false), STATUS_TIMEOUT);
}

static void a_store_tells_of_changes_until_it_is_closed(void **state)
{
    (void)state;
    begin(2);
    RealNode *leader = owner_of(SPACE_OF_CATALOG);
    RealNode *other = &real.nodes[leader == &real.nodes[0]];
    stop_cluster(other, true, 0);
    (void)make_database(leader, "d", 0);
    uint64_t seq = replication_place(leader->replication, SPACE_OF_CATALOG).applied.seq;
    WAIT_UNTIL(replication_place(other->replication, SPACE_OF_CATALOG).applied.seq == seq);
    stop_store(other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(a_container_is_on_every_node_when_its_creation_is_answered),
        CASE(a_space_moves_under_load_and_no_write_is_lost),
        CASE(spaces_are_gathered_for_a_move_of_ranges),
        CASE(rows_that_the_catalogue_does_not_name_are_dropped),
        CASE(ranges_that_share_throughput_move_together),
        CASE(a_node_that_leaves_hands_everything_over),
        CASE(a_node_that_dies_is_replaced),
        CASE(a_node_that_leaves_answers_changes_when_the_others_have_them),
        CASE(a_node_that_leaves_does_not_answer_what_the_others_have_not),
        CASE(a_store_tells_of_changes_until_it_is_closed),
        CASE(a_new_node_is_seeded_where_the_log_was_trimmed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
