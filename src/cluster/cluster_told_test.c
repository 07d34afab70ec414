/* cluster_told_test.c - what a node tells of its cluster: its status, warnings and counts, and the
 * answers to requests that make no sense. cluster_testing_int.h has the nodes. */
#include "cluster/cluster_testing_int.h"

static Sim sim;

static void begin(size_t nodes, uint32_t replicas, size_t spaces)
{
    sim_init(&sim, nodes, replicas, 1);
    sim_begin(&sim, spaces);
}

static int end(void **state)
{
    (void)state;
    sim_done(&sim);
    return 0;
}

static void the_status_says_who_is_who(void **state)
{
    (void)state;
    begin(3, 3, 3);
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 64 << 10);
    Slice json;
    assert_ok(cluster_status(sim.nodes[1].cluster, &arena, &json, err));
    static const char *const words[] = {
        "\"node\":\"n1\"",     "\"name\":\"n2\"", "\"state\":\"live\"",   "\"spaceCount\":4",
        "\"leaseHolds\":true", "\"replicas\":[",  "\"kind\":\"serving\"", "\"here\":\"serving\""};
    char *text = arena_cstr(&arena, json);
    for (size_t i = 0; i < ARRAY_COUNT(words); i++) {
        if (strstr(text, words[i]) == NULL)
            fail_msg("expected %s in %s", words[i], text);
    }
}

/* The newest reason of that kind of event for space 2. */
static void expect_reason(const SimNode *node, const char *kind, const char *expected)
{
    ClusterEvent events[CLUSTER_EVENTS_MAX];
    size_t count = cluster_events(node->cluster, events, CLUSTER_EVENTS_MAX);
    for (size_t i = 0; i < count; i++) {
        if (events[i].space != 2 || strcmp(events[i].kind, kind) != 0)
            continue;
        assert_string_equal(events[i].reason, expected);
        return;
    }
    fail_msg("%s has no event %s", node->name, kind);
}

static void every_change_of_owner_tells_its_reason(void **state)
{
    (void)state;
    static const HandOverReason reasons[] = {REASON_OPERATOR, REASON_SPLIT_OR_MERGE, REASON_SPREAD};
    begin(3, 3, 3);
    sim_run(&sim, 2000);
    for (size_t i = 0; i < ARRAY_COUNT(reasons); i++) {
        SimNode *owner = sim_owner(&sim, 2);
        SimNode *to = sim_other_than(&sim, owner);
        assert_ok(cluster_order(owner->cluster, 2, slice_from_cstr(to->name), reasons[i], err));
        sim_run(&sim, 2000);
        assert_ptr_equal(sim_owner(&sim, 2), to);
        const char *text = hand_over_reason_text(reasons[i]);
        char expected[80];
        (void)snprintf(expected, sizeof(expected), "from %s: %s", owner->name, text);
        expect_reason(owner, "handOver", expected);
        (void)snprintf(expected, sizeof(expected), "assigned: %s", text);
        expect_reason(to, "serving", expected);
    }
}

static void expect_status(const SimNode *node, const char *text)
{
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 64 << 10);
    Slice json;
    assert_ok(cluster_status(node->cluster, &arena, &json, err));
    if (strstr(arena_cstr(&arena, json), text) == NULL)
        fail_msg("expected %s in %s", text, arena_cstr(&arena, json));
}

static const ClusterEvent *newest_serving(const SimNode *node, ClusterEvent *events)
{
    size_t count = cluster_events(node->cluster, events, CLUSTER_EVENTS_MAX);
    for (size_t i = 0; i < count; i++) {
        if (events[i].space == 2 && strcmp(events[i].kind, "serving") == 0)
            return &events[i];
    }
    fail_msg("%s has no event for space 2", node->name);
    return NULL;
}

/* Nobody serves the space from the moment its owner gives it up until the next one lets requests
 * in, whether that one is told of it first or finds it in the engine. */
static void the_fence_of_a_hand_over_is_told(void **state)
{
    (void)state;
    begin(3, 3, 3);
    sim_run(&sim, 2000);
    ClusterEvent events[CLUSTER_EVENTS_MAX];
    SimNode *owner = sim_owner(&sim, 2);
    assert_false(newest_serving(owner, events)->has_fence);
    SimNode *to = sim_other_than(&sim, owner);
    assert_ok(cluster_order(owner->cluster, 2, slice_from_cstr(to->name), REASON_OPERATOR, err));
    sim_run(&sim, 1000);
    assert_ptr_equal(sim_owner(&sim, 2), to);
    const ClusterEvent *event = newest_serving(to, events);
    assert_true(event->has_fence);
    assert_true(event->fence_us <= 200000); /* rounds of the simulation take 100 ms */
    expect_status(to, "\"fenceMs\":");

    uint64_t open_us = space_table_find(&to->cluster->spaces, 2)->open_us;
    uint64_t now_us = cluster_now_us(to->cluster);
    char path[120];
    (void)snprintf(path, sizeof(path), CLUSTER_PATH "poke?space=2&epoch=%d&reason=0&fence=5000000",
                   (int)event->epoch);
    AUTO(buf_done) Buf answer;
    buf_init(&answer, 4096);
    assert_int_equal(node_answer(to->cluster, slice_from_cstr(path), &answer), 200);
    assert_int_equal(newest_serving(to, events)->fence_us, 5000000 - (now_us - open_us));
}

/* Whoever answers 421 says who is the owner; that never leads back to an older one (C5). */
static void an_owner_that_another_node_tells_counts_if_it_is_newer(void **state)
{
    (void)state;
    begin(3, 3, 3);
    sim_run(&sim, 2000);
    SimNode *owner = sim_owner(&sim, 2);
    SimNode *asking = sim_other_than(&sim, owner);
    Slice told = slice_from_cstr(owner == &sim.nodes[2] || asking == &sim.nodes[2] ? "n1" : "n2");
    if (slice_equal(told, slice_from_cstr(owner->name)) ||
        slice_equal(told, slice_from_cstr(asking->name)))
        told = SLICE("n0");
    uint64_t epoch = cluster_owner(asking->cluster, 2).epoch;
    const struct {
        StoreSpace space;
        uint64_t epoch;
        Slice node;
        bool counts;
    } rows[] = {
        {2, epoch - 1, told, false},
        {2, epoch, told, false},
        {2, epoch + 1, slice_from_cstr(asking->name), false}, /* the engine says that, or nobody */
        {2, epoch + 1, SLICE("unknown"), false},
        {99, epoch + 1, told, false},
        {2, epoch + 1, told, true},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        cluster_note_owner(asking->cluster, rows[i].space, rows[i].epoch, rows[i].node);
        ClusterOwner found = cluster_owner(asking->cluster, 2);
        assert_true(found.is_known);
        assert_string_equal(found.node,
                            rows[i].counts ? (const char *)rows[i].node.ptr : owner->name);
    }
    /* What is served here is known here. */
    cluster_note_owner(owner->cluster, 2, epoch + 5, told);
    assert_true(cluster_owner(owner->cluster, 2).is_local);
}

static void the_status_tells_moves_under_way(void **state)
{
    (void)state;
    begin(3, 3, 3);
    sim_run(&sim, 2000);
    SimNode *owner = sim_owner(&sim, 2);
    SimNode *to = sim_other_than(&sim, owner);
    expect_status(owner, "\"moves\":[]");
    to->is_stuck = true;
    for (int i = 0; i <= LAG_MAX; i++)
        assert_true(sim_write(owner, 2));
    assert_ok(cluster_order(owner->cluster, 2, slice_from_cstr(to->name), REASON_OPERATOR, err));
    sim_run(&sim, 1000);
    char expected[200];
    char missing[80];
    (void)snprintf(expected, sizeof(expected),
                   "\"moves\":[{\"space\":2,\"from\":\"%s\",\"to\":\"%s\",\"reason\":\"an "
                   "operator asked for it\",\"stage\":\"waiting\"}],\"movesMissing\":[]",
                   owner->name, to->name);
    expect_status(owner, expected);
    expect_status(to, expected); /* which has asked the owner */
    owner->is_unreachable = true;
    (void)snprintf(missing, sizeof(missing), "\"moves\":[],\"movesMissing\":[\"%s\"]", owner->name);
    expect_status(to, missing);
    owner->is_unreachable = false;
    to->is_stuck = false;
    sim_run(&sim, 3000);
    assert_ptr_equal(sim_owner(&sim, 2), to);
    expect_status(owner, "\"moves\":[]");
}

static void fewer_nodes_than_copies_are_told(void **state)
{
    (void)state;
    static const struct {
        size_t nodes;
        uint32_t replicas;
        const char *told;
    } rows[] = {
        {1, 1, NULL},
        {3, 1, NULL},
        {3, 3, NULL},
        {1, 3, "1 of the 3 nodes"},
        {2, 3, "2 of the 3 nodes"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        begin(rows[i].nodes, rows[i].replicas, 1);
        char warning[CLUSTER_WARNING_MAX + 1];
        size_t len = cluster_copies_warning(sim.nodes[0].cluster, warning);
        warning[len] = '\0';
        assert_int_equal(len > 0, rows[i].told != NULL);
        AUTO(arena_done) Arena arena;
        arena_init(&arena, 64 << 10);
        Slice json;
        assert_ok(cluster_status(sim.nodes[0].cluster, &arena, &json, err));
        const char *told = rows[i].told != NULL ? rows[i].told : "to have a copy";
        assert_int_equal(strstr(warning, told) != NULL, rows[i].told != NULL);
        assert_int_equal(strstr(arena_cstr(&arena, json), told) != NULL, rows[i].told != NULL);
        if (i + 1 < ARRAY_COUNT(rows))
            (void)end(NULL);
    }
}

/* Whether one node has copies alone, and how full the journal is with them. */
static void a_journal_that_keeps_everything_is_told_ever_more_urgently(void **state)
{
    (void)state;
    static const struct {
        size_t nodes;
        uint32_t replicas;
        uint64_t percent;
        const char *begins; /* NULL if nothing is told of the journal */
    } rows[] = {
        {1, 1, 95, NULL},
        {2, 2, 95, NULL},
        {2, 3, 95, NULL},
        {1, 3, 10, "1 of the 3 nodes live"},
        {1, 3, 49, "1 of the 3 nodes live"},
        {1, 3, 50, "The journal is 50 % full"},
        {1, 2, 89, "The journal is 89 % full"},
        {1, 2, 90, "Writes will soon be answered 429: the journal is 90 % full"},
        {1, 2, 100, "Writes are answered 429, because the journal is full"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        begin(rows[i].nodes, rows[i].replicas, 1);
        Cluster *cluster = sim.nodes[0].cluster;
        cluster->journal_bytes_max = 1 << 30;
        cluster->engine.bytes = ((uint64_t)1 << 30) * rows[i].percent / 100 + 1;
        char warning[CLUSTER_WARNING_MAX + 1];
        size_t len = cluster_copies_warning(cluster, warning);
        warning[len] = '\0';
        bool is_told = strstr(warning, "keeps everything") != NULL;
        assert_int_equal(is_told, rows[i].begins != NULL);
        if (is_told) {
            assert_memory_equal(warning, rows[i].begins, strlen(rows[i].begins));
            assert_non_null(strstr(warning, "of at most 1024 MB (--journal-bytes)"));
            assert_non_null(strstr(warning, "Add a node, or start this one with --replicas 1"));
        }
        if (i + 1 < ARRAY_COUNT(rows))
            (void)end(NULL);
    }
}

static void requests_of_nodes_that_make_no_sense_are_refused(void **state)
{
    (void)state;
    begin(1, 1, 1);
    static const struct {
        const char *path;
        int status;
    } rows[] = {
        {"/_node/ping", 200},
        {"/_node/usage", 200},
        {"/_node/usage?space=x&&", 200},
        {"/_node/poke", 200},
        {"/_node/poke?catalog=1&owners=1", 200},
        {"/_node/poke?system=x&timeline=99999999999", 200},
        {"/_node/", 404},
        {"/_node", 404},
        {"/_node/else?space=2", 404},
        {"/_node/place", 400},
        {"/_node/place?space=", 400},
        {"/_node/place?space=0", 400},
        {"/_node/place?space=-1", 400},
        {"/_node/place?space=99999999999999999999", 400},
        {"/_node/place?space=77", 404},
        {"/_node/place?space=2", 200},
        {"/_node/place?&&&=&space=2&space=3", 200},
        {"/_node/follow?space=77", 404},
        {"/_node/move?space=2", 400},
        {"/_node/move?space=77&node=n0", 421},
        {"/_node/move?space=2&node=n0", 200},
        {"/_node/seed?space=2", 400},
        {"/_node/seed?space=2&session=0&piece=1", 404},
        {"/_node/seed?space=2&session=5&piece=0", 404},
        {"/_node/seed?space=77&session=0&piece=0", 404},
        {"/_node/seed?space=2&session=0&piece=0", 200},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        AUTO(buf_done) Buf out;
        buf_init(&out, 1 << 20);
        int status = node_answer(sim.nodes[0].cluster, slice_from_cstr(rows[i].path), &out);
        if (status != rows[i].status)
            fail_msg("%s: expected %d, found %d", rows[i].path, rows[i].status, status);
    }
}

/* What each node has heard of the partitions of the others, in the last round. */
static void expect_said(size_t spaces)
{
    for (StoreSpace space = 2; space < 2 + spaces; space++) {
        const SimNode *owner = sim_owner(&sim, space);
        for (size_t i = 0; i < sim.count; i++) {
            SimNode *node = &sim.nodes[i];
            const SpaceUsage *said = &node->said[space];
            if (node == owner)
                continue;
            assert_int_equal(said->space, space);
            assert_int_equal(said->held.items, sim_place(node, space).applied.seq);
            assert_int_equal(said->held.bytes, space);
            assert_int_equal(said->held.bytes_ever, space + 1);
            assert_int_equal(said->busiest, space + 2);
            assert_int_equal(said->is_one_key, space % 2 == 0);
            assert_in_range(cluster_now_us(node->cluster) - node->said_us[space], 0, 200000);
        }
    }
}

static void nodes_know_what_the_partitions_of_others_hold(void **state)
{
    (void)state;
    enum { SPACES = 6 };
    begin(3, 3, SPACES);
    for (StoreSpace space = 2; space < 2 + SPACES; space++)
        assert_true(sim_write(sim_owner(&sim, space), space));
    sim_run(&sim, 1000);
    expect_said(SPACES);
    SimNode *away = sim_owner(&sim, 2);
    SimNode *other = sim_other_than(&sim, away);
    away->is_unreachable = true;
    uint64_t heard_us = other->said_us[2];
    sim_run(&sim, 1000);
    assert_int_equal(other->said_us[2], heard_us); /* it becomes older */
    away->is_unreachable = false;
    sim_run(&sim, 20000); /* whoever owns them then */
    expect_said(SPACES);
}

static void a_node_is_believed_about_its_own_partitions_only(void **state)
{
    (void)state;
    begin(2, 2, 4);
    SimNode *owner = sim_owner(&sim, 2);
    SimNode *node = sim_other_than(&sim, owner);
    static const struct {
        const char *answer;
        bool is_answer;
        bool is_noted;
        bool is_of_owner;
    } rows[] = {
        {"0\n2 1 777 777 0 0\n", true, true, true},
        {"5\n77 1 1 1 0 0\n2 1 777 777 0 1\n1 1 1 1 0 0", true, true, true},
        {"0\n2 1 777 777 0 0\n", true, false, false},
        {"18446744073709551615\n2 1 777 777 0 0\n", true, true, true},
        {"", false, false, true},
        {"\n", false, false, true},
        {"x\n2 1 777 777 0 0\n", false, false, true},
        {"0", true, false, true},
        {"0\n\n", false, false, true},
        {"0\n2 1 777 777 0\n", false, false, true},
        {"0\n2 1 777 777 0 0 0\n", false, false, true},
        {"0\n2 -1 777 777 0 0\n", false, false, true},
        {"0\n2 1 99999999999999999999 777 0 0\n", false, false, true},
        {"0\n2 1 777 777 0 0\nx\n", false, false, true},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        const SimNode *from = rows[i].is_of_owner ? owner : node;
        node->said[2] = (SpaceUsage){0};
        bool is_answer = usage_note(node->cluster, slice_from_cstr(from->name),
                                    slice_from_cstr(rows[i].answer), cluster_now_us(node->cluster));
        bool is_noted = node->said[2].held.bytes == 777;
        if (is_answer != rows[i].is_answer || is_noted != rows[i].is_noted)
            fail_msg("row %zu: answer %d, noted %d", i, is_answer, is_noted);
    }
}

static int64_t counted(const Metrics *metrics, Metric metric)
{
    sim_run(&sim, 2000);
    return metrics_total(metrics, metric);
}

static void expect_warning(const SimNode *node, const char *expected)
{
    char text[CLUSTER_WARNING_MAX];
    Slice found = slice_make(text, cluster_engine_warning(node->cluster, text));
    assert_true(slice_starts_with(found, slice_from_cstr(expected)));
    assert_true(expected[0] != '\0' || found.len == 0);
}

static void what_is_wrong_with_the_engine_is_known_as_long_as_it_is(void **state)
{
    (void)state;
    begin(1, 1, 2);
    Metrics metrics;
    metrics_init(&metrics, 1);
    SimNode *node = &sim.nodes[0];
    node->cluster->metrics = &metrics.shards[0];
    assert_int_equal(counted(&metrics, METRIC_CLUSTER_ENGINE_WARNING), 0);
    expect_warning(node, "");
    for (int i = 0; i < 2; i++) {
        memory_journal_set_down(sim.engine, true);
        assert_int_equal(counted(&metrics, METRIC_CLUSTER_ENGINE_WARNING), 1);
        expect_warning(node, "the engine does not answer");
        memory_journal_set_down(sim.engine, false);
        assert_int_equal(counted(&metrics, METRIC_CLUSTER_ENGINE_WARNING), 0);
        expect_warning(node, "");
    }
    /* Statements that write would wait for the standby now; the step only reads. */
    memory_journal_set_standby(sim.engine, false);
    engine_step(node->cluster, true);
    expect_warning(node, ""); /* it was asked a moment ago */
    fake_clock_advance(&node->clock, ENGINE_US);
    engine_step(node->cluster, true);
    expect_warning(node, "the standby is away");
    memory_journal_set_standby(sim.engine, true);
    fake_clock_advance(&node->clock, ENGINE_US);
    engine_step(node->cluster, true);
    expect_warning(node, "");
    /* The manager's own reads are not acknowledged then. */
    memory_journal_set_standby(sim.engine, false);
    fake_clock_advance(&node->clock, VIEW_US);
    manage_step(node->cluster);
    expect_warning(node, "the standby is away");
    memory_journal_set_standby(sim.engine, true);
    fake_clock_advance(&node->clock, VIEW_US);
    manage_step(node->cluster);
    expect_warning(node, "");
    node->cluster->journal_bytes_max = 0; /* whatever it holds */
    fake_clock_advance(&node->clock, ENGINE_US);
    engine_step(node->cluster, true);
    expect_warning(node, "the journal is full");
    assert_true(node->is_journal_full);
    node->cluster->journal_bytes_max = UINT64_MAX;
    fake_clock_advance(&node->clock, ENGINE_US);
    engine_step(node->cluster, true);
    expect_warning(node, "");
    assert_false(node->is_journal_full);
    node->cluster->metrics = NULL;
    metrics_done(&metrics);
}

static void what_a_node_does_is_counted(void **state)
{
    (void)state;
    begin(2, 2, 4);
    Metrics metrics;
    metrics_init(&metrics, 1);
    SimNode *dead = sim_owner(&sim, 2);
    SimNode *node = sim_other_than(&sim, dead);
    node->cluster->metrics = &metrics.shards[0];
    int64_t owned = counted(&metrics, METRIC_CLUSTER_SPACES_OWNED);
    int64_t taken = counted(&metrics, METRIC_CLUSTER_TAKE_OVERS); /* at the start, if any */
    assert_int_equal(owned, sim_count_owned(node, 4));
    assert_int_equal(counted(&metrics, METRIC_CLUSTER_SPACES_FOLLOWED), 5 - owned);
    assert_int_equal(counted(&metrics, METRIC_CLUSTER_ENTRIES_BEHIND), 0);
    sim_kill(dead);
    sim_run(&sim, 20000);
    assert_int_equal(counted(&metrics, METRIC_CLUSTER_SPACES_OWNED), 5);
    assert_int_equal(counted(&metrics, METRIC_CLUSTER_TAKE_OVERS), taken + 5 - owned);
    assert_int_equal(counted(&metrics, METRIC_CLUSTER_HAND_OVERS), 0);
    Error err;
    assert_true(sim_try_start(dead, &err));
    sim_run(&sim, 120000); /* until it has its share again */
    assert_int_equal(counted(&metrics, METRIC_CLUSTER_HAND_OVERS), sim_count_owned(dead, 4));
    assert_true(sim_count_owned(dead, 4) > 0);
    node->cluster->metrics = NULL;
    metrics_done(&metrics);
}

static Status upgrade(const SimNode *node, const char *expected, Error *error)
{
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 64 << 10);
    Slice json = SLICE_EMPTY;
    TRY(cluster_upgrade(node->cluster, &arena, &json, error));
    assert_slice_text(json, expected);
    return STATUS_OK;
}

/* Ends the process and begins one of another program, which reads formats up to this one. */
static bool start_as(SimNode *node, uint32_t format, Error *error)
{
    sim_kill(node);
    journal_close(TAKE(node->journal));
    sim_open_journal(node, format);
    bool is_started = sim_try_start(node, error);
    sim_run(&sim, 20000);
    return is_started;
}

static void the_format_is_raised_when_no_older_program_is_left(void **state)
{
    (void)state;
    enum { OLD = JOURNAL_FORMAT, NEW = JOURNAL_FORMAT + 1 };
    begin(2, 2, 2);
    Error error = {0};
    assert_int_equal(OLD, 1);
    assert_ok(upgrade(&sim.nodes[0], "{\"format\":1,\"before\":1}", err));
    assert_true(start_as(&sim.nodes[1], NEW, &error));
    assert_true(sim_write(sim_owner(&sim, 2), 2));
    for (size_t i = 0; i < 2; i++) {
        assert_status(upgrade(&sim.nodes[i], "", &error), STATUS_CONFLICT);
        assert_non_null(strstr(error.message, "start 'n0' with the newer program"));
        assert_int_equal(journal_format(sim.nodes[i].journal), OLD);
    }
    assert_true(start_as(&sim.nodes[0], NEW, &error));
    assert_int_equal(journal_format(sim.nodes[0].journal), OLD);
    assert_ok(upgrade(&sim.nodes[1], "{\"format\":2,\"before\":1}", err));
    sim_run(&sim, 2000);
    assert_int_equal(journal_format(sim.nodes[0].journal), NEW);
    for (StoreSpace space = 2; space <= 3; space++)
        assert_true(sim_write(sim_owner(&sim, space), space));
    sim_run(&sim, 2000);
    for (StoreSpace space = 2; space <= 3; space++) {
        for (size_t i = 0; i < 2; i++)
            assert_int_equal(sim_copy(&sim.nodes[i], space)->sum, sim.written[space]);
    }
    assert_ok(upgrade(&sim.nodes[0], "{\"format\":2,\"before\":2}", err));
    assert_false(start_as(&sim.nodes[0], OLD, &error));
    assert_status(error.status, STATUS_CONFLICT);
    assert_non_null(strstr(error.message, "writes format 2; this program reads up to 1"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(the_status_says_who_is_who),
        CASE(every_change_of_owner_tells_its_reason),
        CASE(the_fence_of_a_hand_over_is_told),
        CASE(an_owner_that_another_node_tells_counts_if_it_is_newer),
        CASE(the_status_tells_moves_under_way),
        CASE(fewer_nodes_than_copies_are_told),
        CASE(a_journal_that_keeps_everything_is_told_ever_more_urgently),
        CASE(requests_of_nodes_that_make_no_sense_are_refused),
        CASE(nodes_know_what_the_partitions_of_others_hold),
        CASE(a_node_is_believed_about_its_own_partitions_only),
        CASE(what_is_wrong_with_the_engine_is_known_as_long_as_it_is),
        CASE(what_a_node_does_is_counted),
        CASE(the_format_is_raised_when_no_older_program_is_left),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
