/* cluster_folder_test.c - what a data folder remembers, and which folders are refused. */
#include "cluster/cluster_folder.h"

#include "base/testing.h"
#include "journal/memory/memory_journal.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct Fixture {
    TestFolder data;
    MemoryJournalEngine *engine;
    Journal *journal;
} Fixture;

static Fixture t;

static int setup(void **state)
{
    (void)state;
    static const uint8_t secret[JOURNAL_SECRET_BYTES] = {1};
    test_folder_init(&t.data);
    t.engine = memory_journal_engine_new(1);
    memory_journal_open(t.engine, secret, NULL, &t.journal);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    journal_close(t.journal);
    memory_journal_engine_free(t.engine);
    test_folder_done(&t.data);
    return 0;
}

static Status try_open(const char *name, ClusterFolder **out, Error *failure)
{
    return cluster_folder_open(t.data.path, slice_from_cstr(name), out, failure);
}

static JournalMember join(ClusterFolder *folder)
{
    JournalMember member = {0};
    const JournalJoin own = {.address = SLICE("127.0.0.1:1"), .advertise = SLICE("http://a/")};
    assert_ok(cluster_folder_join(folder, t.journal, &own, &member, err));
    return member;
}

static void put_file(const char *name, const char *text, size_t len)
{
    char path[128];
    (void)snprintf(path, sizeof(path), "%s/%s", t.data.path, name);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, len), (ssize_t)len);
    assert_int_equal(close(fd), 0);
}

static void a_new_folder_joins_and_is_remembered(void **state)
{
    (void)state;
    AUTO(cluster_folder_close) ClusterFolder *folder = NULL;
    assert_ok(cluster_folder_open(t.data.path, SLICE("a"), &folder, err));
    assert_false(cluster_folder_is_member(folder));
    JournalMember first = join(folder);
    assert_true(first.is_first);
    assert_true(cluster_folder_is_member(folder));
    cluster_folder_close(TAKE(folder));

    assert_ok(cluster_folder_open(t.data.path, SLICE("a"), &folder, err));
    assert_true(cluster_folder_is_member(folder));
    JournalMember second = join(folder);
    assert_true(second.incarnation > first.incarnation);
    assert_memory_equal(second.cluster, first.cluster, sizeof(first.cluster));
    JournalMember third = join(folder); /* as after being declared dead */
    assert_true(third.incarnation > second.incarnation);
}

static void one_process_has_the_folder(void **state)
{
    (void)state;
    Error failure;
    ClusterFolder *second = NULL;
    AUTO(cluster_folder_close) ClusterFolder *folder = NULL;
    assert_ok(cluster_folder_open(t.data.path, SLICE("a"), &folder, err));
    assert_int_equal(try_open("a", &second, &failure), STATUS_UNAVAILABLE);
}

static void a_folder_of_another_node_is_refused(void **state)
{
    (void)state;
    Error failure;
    AUTO(cluster_folder_close) ClusterFolder *folder = NULL;
    assert_ok(cluster_folder_open(t.data.path, SLICE("a"), &folder, err));
    (void)join(folder);
    cluster_folder_close(TAKE(folder));
    assert_int_equal(try_open("b", &folder, &failure), STATUS_CONFLICT);
    assert_non_null(strstr(failure.message, "'a'"));
}

static void a_folder_of_another_cluster_is_refused(void **state)
{
    (void)state;
    Error failure;
    AUTO(cluster_folder_close) ClusterFolder *folder = NULL;
    assert_ok(cluster_folder_open(t.data.path, SLICE("a"), &folder, err));
    (void)join(folder);
    static const uint8_t secret[JOURNAL_SECRET_BYTES] = {1};
    AUTO(memory_journal_engine_free) MemoryJournalEngine *other = memory_journal_engine_new(2);
    AUTO(journal_close) Journal *journal = NULL;
    memory_journal_open(other, secret, NULL, &journal);
    JournalMember member;
    const JournalJoin own = {.address = SLICE("127.0.0.1:1"), .advertise = SLICE("http://a/")};
    assert_int_equal(cluster_folder_join(folder, journal, &own, &member, &failure),
                     STATUS_CONFLICT);
    (void)join(folder); /* its own cluster still takes it */
}

static void data_without_a_cluster_must_be_adopted(void **state)
{
    (void)state;
    Error failure;
    AUTO(cluster_folder_close) ClusterFolder *folder = NULL;
    char store[128];
    (void)snprintf(store, sizeof(store), "%s/store", t.data.path);
    assert_int_equal(mkdir(store, 0700), 0);
    put_file("store/CURRENT", "MANIFEST-1\n", 11);
    assert_int_equal(try_open("a", &folder, &failure), STATUS_CONFLICT);
    assert_non_null(strstr(failure.message, "orrery cluster adopt"));
    assert_ok(cluster_folder_adopt(t.data.path, SLICE("a"), &folder, err));
    assert_false(cluster_folder_is_adopted_partly(t.data.path)); /* nothing was done yet */
    (void)join(folder);
    assert_true(cluster_folder_is_adopted_partly(t.data.path));
    assert_ok(cluster_folder_end_adoption(folder, err));
    cluster_folder_close(TAKE(folder));
    assert_ok(cluster_folder_open(t.data.path, SLICE("a"), &folder, err));
    cluster_folder_close(TAKE(folder));
    assert_int_equal(cluster_folder_adopt(t.data.path, SLICE("a"), &folder, &failure),
                     STATUS_CONFLICT);
    assert_non_null(strstr(failure.message, "already"));
}

static void an_adoption_without_an_end_is_repeated_and_nothing_else(void **state)
{
    (void)state;
    Error failure;
    AUTO(cluster_folder_close) ClusterFolder *folder = NULL;
    assert_int_equal(cluster_folder_adopt(t.data.path, SLICE("a"), &folder, &failure),
                     STATUS_NOT_FOUND); /* there is no data */
    char store[128];
    (void)snprintf(store, sizeof(store), "%s/store", t.data.path);
    assert_int_equal(mkdir(store, 0700), 0);
    put_file("store/CURRENT", "MANIFEST-1\n", 11);
    uint64_t incarnation = 0;
    for (int i = 0; i < 3; i++) {
        assert_ok(cluster_folder_adopt(t.data.path, SLICE("a"), &folder, err));
        JournalMember member = join(folder);
        assert_true(member.incarnation > incarnation);
        incarnation = member.incarnation;
        cluster_folder_close(TAKE(folder));
        assert_int_equal(try_open("a", &folder, &failure), STATUS_CONFLICT);
        assert_non_null(strstr(failure.message, "repeat `orrery cluster adopt`"));
        assert_int_equal(cluster_folder_adopt(t.data.path, SLICE("b"), &folder, &failure),
                         STATUS_CONFLICT);
    }
}

static void a_damaged_file_is_refused(void **state)
{
    (void)state;
    Error failure;
    AUTO(cluster_folder_close) ClusterFolder *folder = NULL;
    assert_ok(cluster_folder_open(t.data.path, SLICE("a"), &folder, err));
    (void)join(folder);
    cluster_folder_close(TAKE(folder));
    char path[128];
    char text[600];
    (void)snprintf(path, sizeof(path), "%s/%s", t.data.path, CLUSTER_FOLDER_FILE);
    int fd = open(path, O_RDONLY);
    ssize_t len = read(fd, text, sizeof(text));
    assert_int_equal(close(fd), 0);
    assert_in_range(len, 50, sizeof(text) - 1);
    for (ssize_t i = 0; i < len; i++) { /* each byte changed, and each beginning of it */
        text[i] ^= 1;
        put_file(CLUSTER_FOLDER_FILE, text, (size_t)len);
        assert_int_equal(try_open("a", &folder, &failure), STATUS_CORRUPT);
        text[i] ^= 1;
        put_file(CLUSTER_FOLDER_FILE, text, (size_t)i);
        assert_int_equal(try_open("a", &folder, &failure), STATUS_CORRUPT);
    }
    put_file(CLUSTER_FOLDER_FILE, text, (size_t)len);
    assert_ok(cluster_folder_open(t.data.path, SLICE("a"), &folder, err));
}

static void a_join_whose_answer_never_came_is_repeated(void **state)
{
    (void)state;
    Error failure;
    AUTO(cluster_folder_close) ClusterFolder *folder = NULL;
    assert_ok(cluster_folder_open(t.data.path, SLICE("a"), &folder, err));
    JournalMember first = join(folder);
    /* The engine has joined the node, and the process ends before it knows: its file still has the
     * attempt, and the old incarnation. */
    memory_journal_fail(t.journal, JOURNAL_LANE_NODE, MEMORY_JOURNAL_LOSE_ANSWER, 0, 1000);
    JournalMember member;
    const JournalJoin own = {.address = SLICE("127.0.0.1:1"), .advertise = SLICE("http://a/")};
    assert_int_not_equal(cluster_folder_join(folder, t.journal, &own, &member, &failure),
                         STATUS_OK);
    memory_journal_fail(t.journal, JOURNAL_LANE_NODE, MEMORY_JOURNAL_NO_FAULT, 0, 0);
    cluster_folder_close(TAKE(folder));
    assert_ok(cluster_folder_open(t.data.path, SLICE("a"), &folder, err));
    JournalMember second = join(folder);
    assert_true(second.incarnation > first.incarnation);
}

static bool has_moved(void)
{
    AUTO(cluster_folder_close) ClusterFolder *folder = NULL;
    assert_ok(cluster_folder_open(t.data.path, SLICE("a"), &folder, err));
    return cluster_folder_has_moved(folder);
}

static void a_folder_that_is_not_where_it_was_is_found_out(void **state)
{
    (void)state;
    static const char *const elsewhere[] = {"", "x", "00000000-0000-0000-0000-000000000000 1 2\n"};
    AUTO(cluster_folder_close) ClusterFolder *folder = NULL;
    assert_ok(cluster_folder_open(t.data.path, SLICE("a"), &folder, err));
    assert_false(cluster_folder_has_moved(folder)); /* it was of nobody */
    (void)join(folder);
    cluster_folder_close(TAKE(folder));
    assert_false(has_moved());
    char path[128];
    char command[300];
    (void)snprintf(path, sizeof(path), "%s/%s", t.data.path, CLUSTER_FOLDER_MACHINE);
    for (size_t i = 0; i < ARRAY_COUNT(elsewhere) + 1; i++) {
        if (i < ARRAY_COUNT(elsewhere))
            put_file(CLUSTER_FOLDER_MACHINE, elsewhere[i], strlen(elsewhere[i]));
        else
            assert_int_equal(unlink(path), 0);
        assert_true(has_moved());
        assert_true(has_moved()); /* until it is settled */
        assert_ok(cluster_folder_open(t.data.path, SLICE("a"), &folder, err));
        (void)join(folder);
        assert_true(cluster_folder_has_moved(folder));
        assert_ok(cluster_folder_settle(folder, err));
        assert_false(cluster_folder_has_moved(folder));
        cluster_folder_close(TAKE(folder));
        assert_false(has_moved());
    }
    /* A copy of all of it, on the same machine. */
    TestFolder copy;
    test_folder_init(&copy);
    (void)snprintf(command, sizeof(command), "cp %s/CLUSTER* %s", t.data.path, copy.path);
    assert_int_equal(system(command), 0); /* NOLINT: a copy, in a test */
    assert_ok(cluster_folder_open(copy.path, SLICE("a"), &folder, err));
    assert_true(cluster_folder_has_moved(folder));
    test_folder_done(&copy);
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(a_new_folder_joins_and_is_remembered),
        CASE(one_process_has_the_folder),
        CASE(a_folder_of_another_node_is_refused),
        CASE(a_folder_of_another_cluster_is_refused),
        CASE(data_without_a_cluster_must_be_adopted),
        CASE(an_adoption_without_an_end_is_repeated_and_nothing_else),
        CASE(a_damaged_file_is_refused),
        CASE(a_join_whose_answer_never_came_is_repeated),
        CASE(a_folder_that_is_not_where_it_was_is_found_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
