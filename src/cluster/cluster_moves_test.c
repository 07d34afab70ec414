/* cluster_moves_test.c - the owner changes at each step of a split, and the end of the split comes
 * late: nodes with all their threads (cluster_real_testing_int.h).
 *
 * A clock holds the split at a step. There the node that leads dies, or gives a source away, or the
 * catalogue; its appends are delayed from then on. Others write, and then what was delayed arrives.
 * Whatever has become of the split, each item is there once, no move is pending, and the engine
 * has no row that the catalogue does not name (C9, C10).
 */
#include "cluster/cluster_real_testing_int.h"

enum {
    KEYS_BEFORE = 40,
    KEYS_HELD = 20,
    KEYS_AFTER = 20,
    KEYS_MAX = 80,
    ORDER_MS = 200,
    SOURCE = 0
};

static_assert(KEYS_BEFORE + KEYS_HELD + KEYS_AFTER <= KEYS_MAX,
              "each key is written once or twice");

/* ---- steps ---- */

typedef enum Step {
    STEP_BEGUN,   /* the targets are in the catalogue, and empty */
    STEP_COPYING, /* some of them is there */
    STEP_FENCING, /* all of it is; writes are about to wait */
    STEP_ENDING,  /* the catalogue's thread has the end in hand, and writes wait */
} Step;

/* A clock that stands at a step until it is released. */
typedef struct Hold {
    Clock clock;
    Step step;
    _Atomic bool is_armed;
    _Atomic bool is_held;
} Hold;

static Hold hold;

static bool is_on(const char *name)
{
    char thread[16] = "";
    (void)pthread_getname_np(pthread_self(), thread, sizeof(thread));
    return strcmp(thread, name) == 0;
}

static bool is_at(MoveStage stage)
{
    MoveEvent event;
    return catalog_moves(real.nodes[0].catalog, &event, 1) == 1 && event.stage == stage &&
           event.target_count > 0;
}

static void stand(void)
{
    atomic_store(&hold.is_held, true);
    while (atomic_load(&hold.is_armed))
        sleep_ms(1);
}

/* What is held up here holds no lock that the events of moves take. */
static uint64_t hold_wall_us(const Clock *clock)
{
    (void)clock;
    if (atomic_load(&hold.is_armed) && hold.step == STEP_ENDING && is_on("orrery-catalog") &&
        is_at(MOVE_SWITCHING))
        stand();
    return clock_wall_us(clock_real());
}

static uint64_t hold_monotonic_us(const Clock *clock)
{
    (void)clock;
    static const MoveStage stages[] = {[STEP_BEGUN] = MOVE_WAITING,
                                       [STEP_COPYING] = MOVE_COPYING,
                                       [STEP_FENCING] = MOVE_SWITCHING};
    if (atomic_load(&hold.is_armed) && hold.step != STEP_ENDING && is_on("orrery-moves") &&
        is_at(stages[hold.step]))
        stand();
    return clock_monotonic_us(clock_real());
}

static uint64_t hold_boot_us(const Clock *clock)
{
    (void)clock;
    return clock_boot_us(clock_real());
}

static void release(void)
{
    atomic_store(&hold.is_armed, false);
}

/* ---- items ---- */

static uint32_t database;
static int expected[KEYS_MAX]; /* the number in the item of each key; 0 if there is none */

static const Container *read_container(RealNode *node, CatalogReader *reader)
{
    catalog_reader_init(reader, node->catalog);
    return snapshot_container_by_id(catalog_read(reader), database, SLICE("c"));
}

static void make_epk(const Container *container, int key, Epk *out)
{
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 256);
    JsonBuilder b;
    json_build(&b, &arena);
    json_add_string(&b, arena_format(&arena, "%d", key));
    PartitionKey value = {.count = 1};
    value.parts[0] = json_built(&b);
    epk_make(container->partition_key.kind, &value, out);
}

static PartitionHandle *find_handle(const Container *container, const Epk *epk)
{
    size_t at = 0;
    while (at + 1 < container->range_count &&
           slice_compare(container->ranges[at + 1].min_bytes, epk_slice(epk)) <= 0)
        at++;
    return container_handle_at(container, at);
}

typedef struct ItemSent {
    PartitionWrite write;
    ItemWrite item;
    Arena arena;
    _Atomic bool is_answered;
} ItemSent;

static void on_written(PartitionWrite *write)
{
    atomic_store(&CONTAINER_OF(write, ItemSent, write)->is_answered, true);
}

/* Once, at this node. Without a lease a write would wait for the engine in vain. */
static Status try_write(RealNode *node, int key, int number)
{
    if (!has_lease(node))
        return STATUS_NOT_OWNER;
    CatalogReader reader;
    const Container *container = read_container(node, &reader);
    ItemSent sent = {.write = {.mode = WRITE_CONTINUE, .count = 1, .done = on_written}};
    arena_init(&sent.arena, 1024);
    sent.write.items = &sent.item;
    sent.write.arena = &sent.arena;
    sent.item.op = ITEM_UPSERT;
    Json body = JSON_NONE;
    Error error;
    Slice text = arena_format(&sent.arena, "{\"pk\":\"%d\",\"id\":\"1\",\"n\":%d}", key, number);
    assert_ok(json_parse(&sent.arena, text, &body, err));
    assert_ok(item_prepare(&sent.arena, body, &sent.item.document, &sent.item.document_id,
                           &sent.item.ttl_s, err));
    sent.item.id = sent.item.document_id;
    make_epk(container, key, &sent.item.epk);
    Status status = handle_submit(find_handle(container, &sent.item.epk), &sent.write, &error);
    while (status == STATUS_OK && !atomic_load(&sent.is_answered))
        sleep_ms(1);
    if (status == STATUS_OK)
        status = sent.write.status != STATUS_OK ? sent.write.status : sent.item.status;
    arena_done(&sent.arena);
    catalog_reader_done(&reader);
    return status;
}

/* At whatever node serves the key, until it is acknowledged. */
static void write_key(int key, int number)
{
    for (uint32_t waited_ms = 0; waited_ms < WAIT_MS; waited_ms += 5) {
        for (size_t i = 0; i < real.count; i++) {
            if (try_write(&real.nodes[i], key, number) == STATUS_OK) {
                expected[key] = number;
                return;
            }
        }
        sleep_ms(5);
    }
    fail_msg("nobody takes key %d", key);
}

static void write_keys(int first, int count, int number)
{
    for (int key = first; key < first + count; key++)
        write_key(key, number + key);
}

/* The node that has the range's partition open, and may answer. */
static PartitionHandle *find_open(const PartitionRange *range, CatalogReader *reader,
                                  const Container **container)
{
    RealNode *owner = owner_of(range->space);
    if (owner == NULL)
        return NULL;
    *container = read_container(owner, reader);
    for (size_t i = 0; *container != NULL && i < (*container)->range_count; i++) {
        PartitionHandle *handle = container_handle_at(*container, i);
        if ((*container)->ranges[i].space == range->space && handle_local(handle) != NULL &&
            handle_is_served(handle))
            return handle;
    }
    catalog_reader_done(reader);
    return NULL;
}

/* ---- what must hold at last ---- */

static bool has_only(const JournalOwner *rows, size_t count, const Container *container)
{
    for (size_t i = 0; i < count; i++) {
        bool is_named = rows[i].space == SPACE_OF_CATALOG;
        for (size_t j = 0; j < container->range_count; j++)
            is_named = is_named || container->ranges[j].space == rows[i].space;
        if (!is_named)
            return false;
    }
    return count == container->range_count + 1;
}

/* There is a leader, no move is pending, every range is served, and there are no other rows. */
static bool is_settled(void)
{
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 4096);
    RealNode *leader = owner_of(SPACE_OF_CATALOG);
    if (leader == NULL || !catalog_is_leader(leader->catalog))
        return false;
    CatalogReader reader;
    const Container *container = read_container(leader, &reader);
    const JournalOwner *rows = NULL;
    size_t count = 0;
    Error error;
    bool is = container->pending_count == 0 &&
              journal_owners(real.nodes[real.count - 1].journal, JOURNAL_LANE_ADMIN, NULL, 0,
                             &arena, &rows, &count, &error) == STATUS_OK &&
              has_only(rows, count, container);
    for (size_t i = 0; is && i < container->range_count; i++) {
        CatalogReader other;
        const Container *there = NULL;
        is = find_open(&container->ranges[i], &other, &there) != NULL;
        if (is)
            catalog_reader_done(&other);
    }
    catalog_reader_done(&reader);
    return is;
}

static int read_key(PartitionHandle *handle, const Container *container, const Epk *epk)
{
    AUTO(store_value_release) StoreValue value = {0};
    StoreFound found = STORE_ABSENT;
    Item item;
    assert_ok(handle_get(handle, container->schema, epk, SLICE("1"), STORE_READ_ANY, &item, &value,
                         &found, err));
    return found == STORE_FOUND ? (int)json_number(json_get(item.document, SLICE("n"))) : 0;
}

/* Each range has the items of its keys, and no others. */
static void check_items(void)
{
    RealNode *leader = owner_of(SPACE_OF_CATALOG);
    CatalogReader reader;
    const Container *container = read_container(leader, &reader);
    uint64_t items = 0;
    uint64_t written = 0;
    for (size_t i = 0; i < container->range_count; i++) {
        CatalogReader other;
        const Container *there = NULL;
        PartitionHandle *handle = find_open(&container->ranges[i], &other, &there);
        assert_non_null(handle);
        items += handle_usage(handle).items;
        for (int key = 0; key < KEYS_MAX; key++) {
            Epk epk;
            make_epk(there, key, &epk);
            if (expected[key] == 0 || find_handle(there, &epk) != handle)
                continue;
            int number = read_key(handle, there, &epk);
            if (number != expected[key])
                fail_msg("key %d: expected %d, found %d", key, expected[key], number);
            written++;
        }
        catalog_reader_done(&other);
    }
    catalog_reader_done(&reader);
    assert_int_equal(items, written);
    assert_int_equal(written, KEYS_BEFORE + KEYS_HELD + KEYS_AFTER);
}

static void check_all(void)
{
    WAIT_UNTIL(is_settled());
    check_items();
}

/* ---- lives of a split ---- */

static StoreSpace order_split(void)
{
    RealNode *leader = &real.nodes[0];
    CatalogReader reader;
    const Container *container = read_container(leader, &reader);
    MoveOrder order = {.database = database, .container = container->info.number, .parts = 2};
    StoreSpace space = container->ranges[0].space;
    catalog_reader_done(&reader);
    uint64_t event = 0;
    assert_ok(catalog_order_move(leader->catalog, &order, &event, err));
    return space;
}

/* Two nodes, of which the first leads, with a container and a split that is held at the step. */
static StoreSpace begin_split(Step step)
{
    hold = (Hold){.clock = {hold_wall_us, hold_monotonic_us, hold_boot_us}, .step = step};
    memset(expected, 0, sizeof(expected));
    begin_with(2, &hold.clock);
    assert_ptr_equal(owner_of(SPACE_OF_CATALOG), &real.nodes[0]);
    database = make_database(&real.nodes[0], "d", 0);
    make_container(&real.nodes[0], database, "c", 1000);
    write_keys(0, KEYS_BEFORE, 1000);
    atomic_store(&hold.is_armed, true);
    StoreSpace space = order_split();
    WAIT_UNTIL(atomic_load(&hold.is_held));
    assert_ptr_equal(owner_of(space), &real.nodes[0]); /* the sources are brought to the leader */
    if (step != STEP_ENDING)                           /* when writes wait */
        write_keys(KEYS_BEFORE, KEYS_HELD, 2000);
    return space;
}

/* Or none any more. */
static void delay_appends(RealNode *node, bool is_delayed)
{
    MemoryJournalFault fault = is_delayed ? MEMORY_JOURNAL_DELAY : MEMORY_JOURNAL_NO_FAULT;
    memory_journal_fail(node->journal, JOURNAL_LANE_APPEND_0, fault, 0, is_delayed ? 100000 : 0);
    memory_journal_fail(node->journal, JOURNAL_LANE_APPEND_1, fault, 0, is_delayed ? 100000 : 0);
}

/* Writes again what was there, and more; then what was delayed arrives. */
static void write_on_and_deliver(Step step)
{
    write_keys(0, KEYS_BEFORE, 3000);
    if (step == STEP_ENDING)
        write_keys(KEYS_BEFORE, KEYS_HELD, 2000);
    write_keys(KEYS_BEFORE + KEYS_HELD, KEYS_AFTER, 4000);
    while (memory_journal_delayed(real.engine) > 0)
        (void)memory_journal_deliver(real.engine, 0);
    for (size_t i = 0; i < real.count; i++)
        cluster_refresh_owners(real.nodes[i].cluster);
}

/* To the others it is dead once its lease has ended: they cannot tell. */
static void leader_dies_at(Step step)
{
    StoreSpace space = begin_split(step);
    RealNode *leader = &real.nodes[0];
    RealNode *other = &real.nodes[1];
    WAIT_UNTIL(replication_place(other->replication, space).role == SPACE_FOLLOWED);
    delay_appends(leader, true);
    release();
    WAIT_UNTIL(memory_journal_delayed(real.engine) > 0);
    memory_journal_cut(leader->journal, true);
    WAIT_UNTIL(owner_of(SPACE_OF_CATALOG) == other);
    write_on_and_deliver(step);
    check_all();
    delay_appends(leader, false);
    memory_journal_cut(leader->journal, false); /* it comes back, and knows nothing of all that */
    WAIT_UNTIL(has_lease(leader));
    check_all();
}

static void order_to(RealNode *other, StoreSpace space)
{
    assert_ok(cluster_order(real.nodes[0].cluster, space, slice_from_cstr(other->name),
                            REASON_OPERATOR, err));
    sleep_ms(ORDER_MS); /* for the manager to begin with it */
}

static void is_given_away_at(Step step, StoreSpace given)
{
    StoreSpace space = begin_split(step);
    RealNode *leader = &real.nodes[0];
    RealNode *other = &real.nodes[1];
    WAIT_UNTIL(replication_place(other->replication, space).role == SPACE_FOLLOWED);
    uint64_t epoch = cluster_owner(leader->cluster, SPACE_OF_CATALOG).epoch;
    if (given != SPACE_OF_CATALOG)
        given = space;
    /* The catalogue's owner yields it at once, and then would not send the end at all. */
    bool is_sent_first = step == STEP_ENDING && given == SPACE_OF_CATALOG;
    if (!is_sent_first)
        order_to(other, given);
    if (step >= STEP_FENCING && given == space) { /* not before the map has changed */
        assert_ptr_equal(owner_of(given), leader);
        release();
    } else if (step == STEP_ENDING) {
        delay_appends(leader, true);
        release();
        WAIT_UNTIL(memory_journal_delayed(real.engine) > 0);
        if (is_sent_first)
            order_to(other, given);
        WAIT_UNTIL(cluster_owner(other->cluster, SPACE_OF_CATALOG).epoch > epoch);
        delay_appends(leader, false);
    } else {
        WAIT_UNTIL(owner_of(given) == other);
        release();
    }
    write_on_and_deliver(step);
    check_all();
}

#define DEFINE_TESTS(name, step)                                 \
    static void the_leader_dies_##name(void **state)             \
    {                                                            \
        (void)state;                                             \
        leader_dies_at(step);                                    \
    }                                                            \
    static void a_source_is_given_away_##name(void **state)      \
    {                                                            \
        (void)state;                                             \
        is_given_away_at(step, SOURCE);                          \
    }                                                            \
    static void the_catalogue_is_given_away_##name(void **state) \
    {                                                            \
        (void)state;                                             \
        is_given_away_at(step, SPACE_OF_CATALOG);                \
    }

DEFINE_TESTS(when_a_split_has_begun, STEP_BEGUN)
DEFINE_TESTS(while_a_split_copies, STEP_COPYING)
DEFINE_TESTS(when_a_split_fences_its_source, STEP_FENCING)
DEFINE_TESTS(when_a_split_ends, STEP_ENDING)

#define CASES(name)                                                    \
    CASE(the_leader_dies_##name), CASE(a_source_is_given_away_##name), \
        CASE(the_catalogue_is_given_away_##name)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASES(when_a_split_has_begun),
        CASES(while_a_split_copies),
        CASES(when_a_split_fences_its_source),
        CASES(when_a_split_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
