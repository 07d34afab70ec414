/* forward_lease_test.c - what a node may answer when its lease has ended (J3). */
#include "api/tests/forward_testing_int.h"

/* Ends the lease while a request is being handled, when the clock has been read so often. */
typedef struct LeaseClock {
    Clock clock;
    FakeServer *server;
    FakeCluster *cluster;
    _Atomic unsigned readings;
    _Atomic unsigned ends_at; /* 0 for never */
} LeaseClock;

static const Clock *note_reading(const Clock *clock)
{
    LeaseClock *own = CONTAINER_OF(UNCONST(Clock, clock), LeaseClock, clock);
    if (atomic_fetch_add(&own->readings, 1) + 1 == atomic_load(&own->ends_at))
        atomic_store(&own->cluster->has_lease, false);
    return &own->server->clock.clock;
}

static uint64_t lease_wall_us(const Clock *clock)
{
    return clock_wall_us(note_reading(clock));
}

static uint64_t lease_monotonic_us(const Clock *clock)
{
    return clock_monotonic_us(note_reading(clock));
}

/* A request that is on its way with a lease that may end. */
typedef struct Lapse {
    Flight f;
    LeaseClock clock;
} Lapse;

/* The lease ends at a reading of the clock, from the request on; 0 for never. */
static void send_with_lease(Lapse *lapse, const Ask *a, unsigned ends_at)
{
    Flight *f = &lapse->f;
    lapse->clock = (LeaseClock){.clock = {lease_wall_us, lease_monotonic_us, NULL},
                                .server = &f->server,
                                .cluster = &f->cluster};
    open_cluster_with(&f->server, &f->cluster, &lapse->clock.clock);
    make_item(&f->server, "{'id':'1','pk':'a'}");
    atomic_store(&lapse->clock.readings, 0);
    atomic_store(&lapse->clock.ends_at, ends_at);
    f->exchange = ask_only(&f->server, a, &f->answer);
}

/* It is not told before there is a lease again. */
static void expect_held(Flight *f)
{
    while (f->answer.status == 0 && f->server.loop.timer_count == 0) {
        QueueNode *node = mailbox_wait(&f->server.loop.tasks);
        HttpTask *task = CONTAINER_OF(node, HttpTask, node);
        task->run(task);
    }
    assert_int_equal(f->answer.status, 0);
    f->cluster.has_lease = true;
    tick(&f->server);
    fake_wait(&f->server, &f->answer);
    assert_int_not_equal(f->answer.status, 429);
}

static const Ask READS[] = {
    {"GET", "/dbs/db"},
    {"GET", "/dbs/none"},
    {"GET", "/dbs/db/colls"},
    {"GET", DOCS "/1", NULL, {PK("['a']")}},
    {"GET", DOCS "/none", NULL, {PK("['a']")}},
    {"POST", DOCS, "{'id':'1','pk':'a'}"}, /* 409 */
    {"DELETE", DOCS "/none", NULL, {PK("['a']")}},
    {"GET", DOCS},
    {"GET", DOCS "/1", NULL, {PK("['a']"), {"if-none-match", "*"}}},               /* 304 */
    {"PUT", DOCS "/1", "{'id':'1','pk':'a'}", {PK("['a']"), {"if-match", "old"}}}, /* 412 */
    {"POST", DOCS, "[{'operationType':'Read','id':'1'}]", {PK("['a']"), BATCH, ATOMIC}},
    {"POST", DOCS, "[{'operationType':'Delete','id':'none'}]", {PK("['a']"), BATCH, ATOMIC}},
};

static void nothing_that_was_read_is_told_without_a_lease(void **state UNUSED)
{
    for (size_t i = 0; i < ARRAY_COUNT(READS); i++) {
        Flight f;
        open_cluster(&f.server, &f.cluster);
        make_item(&f.server, "{'id':'1','pk':'a'}");
        f.cluster.has_lease = false;
        f.exchange = ask_only(&f.server, &READS[i], &f.answer);
        expect_held(&f);
        land(&f);
    }
}

/* The lease is looked at after the data was read (J3): it held when the request was taken. */
static void nothing_is_told_if_the_lease_ends_while_it_is_read(void **state UNUSED)
{
    size_t finished_later = 0;
    for (size_t i = 0; i < ARRAY_COUNT(READS); i++) {
        Lapse lapse;
        send_with_lease(&lapse, &READS[i], 0);
        bool is_answered = lapse.f.answer.status != 0;
        unsigned readings = atomic_load(&lapse.clock.readings);
        if (!is_answered) { /* taken, and to be finished by the loop */
            atomic_store(&lapse.f.cluster.has_lease, false);
            expect_held(&lapse.f);
            finished_later++;
        }
        land(&lapse.f);
        /* Answered by the handler itself. Only how long it took is read after the lease. */
        assert_true(!is_answered || readings > 1);
        for (unsigned at = 1; is_answered && at < readings; at++) {
            send_with_lease(&lapse, &READS[i], at);
            expect_held(&lapse.f);
            land(&lapse.f);
        }
    }
    assert_true(finished_later > 0);
    assert_true(finished_later < ARRAY_COUNT(READS));
}

static void what_was_written_is_told_without_a_lease(void **state UNUSED)
{
    Flight f;
    open_cluster(&f.server, &f.cluster);
    f.cluster.has_lease = false;
    (void)expect_status(&f.server, &(Ask){"POST", DOCS, "{'id':'1','pk':'a'}"}, 201);
    (void)expect_status(&f.server,
                        &(Ask){"POST",
                               DOCS,
                               "[{'operationType':'Read','id':'1'},"
                               "{'operationType':'Delete','id':'1'}]",
                               {PK("['a']"), BATCH, ATOMIC}},
                        200);
    fake_server_close(&f.server);
}

/* It may have been done, and would be done twice if it was run again or sent on. */
static void a_write_whose_outcome_is_unknown_is_not_done_again(void **state UNUSED)
{
    static const Ask writes[] = {
        {"POST", DOCS, "{'id':'2','pk':'a'}"},
        {"PATCH", DOCS "/1", "[{'op':'incr','path':'/n','value':1}]", {PK("['a']")}},
        {"POST", DOCS, "[{'operationType':'Delete','id':'1'}]", {PK("['a']"), BATCH, ATOMIC}},
        {"POST", DOCS, "[{'operationType':'Delete','id':'1'}]", {PK("['a']"), BATCH}},
        {"POST", "/dbs", "{'id':'other'}"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(writes); i++) {
        Flight f;
        open_cluster(&f.server, &f.cluster);
        make_item(&f.server, "{'id':'1','pk':'a','n':1}");
        memory_store_fail_commits(f.server.store, 1, STATUS_TIMEOUT);
        f.cluster.has_lease = false;
        (void)expect_status(&f.server, &writes[i], 408);
        fake_server_close(&f.server);
    }
}

/* Its new lease says nothing of what was read before it. */
static void what_an_earlier_life_has_read_is_not_told(void **state UNUSED)
{
    static const Ask reads[] = {
        {"GET", "/dbs/db"},
        {"GET", DOCS "/1", NULL, {PK("['a']")}},
        {"GET", DOCS},
    };
    for (size_t i = 0; i < ARRAY_COUNT(reads); i++) {
        Flight f;
        open_cluster(&f.server, &f.cluster);
        make_item(&f.server, "{'id':'1','pk':'a'}");
        f.cluster.is_about_to_die = true;
        f.exchange = ask_only(&f.server, &reads[i], &f.answer);
        while (f.server.loop.timer_count == 0) {
            QueueNode *node = mailbox_wait(&f.server.loop.tasks);
            HttpTask *task = CONTAINER_OF(node, HttpTask, node);
            task->run(task);
        }
        assert_int_equal(f.answer.status, 0);
        tick(&f.server);
        fake_wait(&f.server, &f.answer);
        assert_int_equal(f.answer.status, 200);
        land(&f);
    }
}

static void what_says_nothing_of_the_data_needs_no_lease(void **state UNUSED)
{
    Flight f;
    open_cluster(&f.server, &f.cluster);
    f.cluster.has_lease = false;
    (void)expect_status(&f.server, &(Ask){"GET", "/"}, 200);
    (void)expect_status(&f.server, &(Ask){"GET", "/dbs/db", .key = ""}, 401);
    fake_server_close(&f.server);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_that_was_read_is_told_without_a_lease),
        cmocka_unit_test(nothing_is_told_if_the_lease_ends_while_it_is_read),
        cmocka_unit_test(what_was_written_is_told_without_a_lease),
        cmocka_unit_test(a_write_whose_outcome_is_unknown_is_not_done_again),
        cmocka_unit_test(what_an_earlier_life_has_read_is_not_told),
        cmocka_unit_test(what_says_nothing_of_the_data_needs_no_lease),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
