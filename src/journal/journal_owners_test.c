/* journal_owners_test.c - what every engine promises about nodes and owners. */
#include "journal/journal_engines_testing_int.h"

/* ---- nodes ---- */

static void a_node_joins_under_its_name(Fixture *fixture)
{
    JournalMember a = join(fixture, 0);
    assert_true(a.is_first);
    assert_int_equal(a.format, JOURNAL_FORMAT);
    create_space(node(fixture, 0), 1);
    JournalMember b = join(fixture, 1);
    assert_false(b.is_first);
    assert_memory_equal(a.cluster, b.cluster, sizeof(a.cluster));
    assert_true(b.incarnation > a.incarnation);

    const JournalNode *nodes = NULL;
    size_t count = 0;
    assert_ok(
        journal_nodes(node(fixture, 0), JOURNAL_LANE_ADMIN, &test_arena, &nodes, &count, err));
    assert_int_equal(count, 2);
    assert_slice_text(nodes[0].name, "a");
    assert_slice_text(nodes[0].address, "127.0.0.1:1");
    assert_slice_text(nodes[0].advertise, "http://127.0.0.1:2/");
    assert_slice_text(nodes[0].region, "here");
    assert_slice_text(nodes[0].unreachable, "");
    assert_int_equal(nodes[0].incarnation, a.incarnation);
    assert_int_equal(nodes[0].state, NODE_LIVE);
    assert_int_equal(nodes[0].format, JOURNAL_FORMAT);
    assert_slice_text(nodes[1].name, "b");
}

static Status try_join(Journal *journal, const JournalJoin *join, JournalMember *out)
{
    Error error = {0};
    return journal_join(journal, join, out, &error);
}

static void a_name_is_one_folder_s_at_a_time(Fixture *fixture)
{
    JournalMember a = join(fixture, 0);
    JournalMember out = {0};
    /* Two new folders, a copied folder, an old folder. */
    JournalJoin same = {.name = SLICE("a")};
    assert_status(try_join(node(fixture, 1), &same, &out), STATUS_CONFLICT);
    same.incarnation_of_folder = a.incarnation;
    assert_status(try_join(node(fixture, 1), &same, &out), STATUS_OK);
    assert_true(out.incarnation > a.incarnation);
    assert_status(try_join(node(fixture, 2), &same, &out), STATUS_CONFLICT);

    /* The process that was replaced is told. */
    bool is_member = true;
    bool is_draining = true;
    assert_ok(journal_renew(node(fixture, 0), 0, SLICE_EMPTY, &is_member, &is_draining, err));
    assert_false(is_member);
    assert_false(is_draining);

    JournalJoin other = {.name = SLICE("d"), .cluster_of_folder = {7}};
    assert_status(try_join(node(fixture, 3), &other, &out), STATUS_CONFLICT);
    memcpy(other.cluster_of_folder, a.cluster, sizeof(a.cluster));
    assert_status(try_join(node(fixture, 3), &other, &out), STATUS_OK);

    /* After a join that was done without its folder's knowledge. */
    JournalJoin again = {.name = SLICE("e"), .attempt = {1, 2, 3}};
    close_node(fixture, 3);
    assert_status(try_join(node(fixture, 3), &again, &out), STATUS_OK);
    close_node(fixture, 3);
    uint64_t first = out.incarnation;
    assert_status(try_join(node(fixture, 3), &again, &out), STATUS_OK);
    assert_true(out.incarnation > first);
    close_node(fixture, 3);
    again.attempt[0]++;
    assert_status(try_join(node(fixture, 3), &again, &out), STATUS_CONFLICT);
}

static void names_and_texts_are_checked(Fixture *fixture)
{
    static const struct {
        const char *name;
        const char *address;
        size_t region;
    } rows[] = {
        {"", "x", 0},   {"a b", "x", 0}, {"a,b", "x", 0},   {"\xc3\xa4", "x", 0},
        {"a'", "x", 0}, {"a", "x\n", 0}, {"a", "x\x7f", 0}, {"a", "x", JOURNAL_TEXT_MAX + 1}};
    char region[JOURNAL_TEXT_MAX + 1];
    memset(region, 'r', sizeof(region));
    JournalMember out = {0};
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        JournalJoin join_with = {.name = slice_from_cstr(rows[i].name),
                                 .address = slice_from_cstr(rows[i].address),
                                 .region = slice_make(region, rows[i].region)};
        assert_status(try_join(node(fixture, 0), &join_with, &out), STATUS_BAD_REQUEST);
    }
    char name[JOURNAL_NAME_MAX + 1];
    memset(name, 'n', sizeof(name));
    JournalJoin long_name = {.name = slice_make(name, JOURNAL_NAME_MAX + 1)};
    assert_status(try_join(node(fixture, 0), &long_name, &out), STATUS_BAD_REQUEST);
    long_name.name.len--;
    long_name.region = slice_make(region, JOURNAL_TEXT_MAX);
    assert_status(try_join(node(fixture, 0), &long_name, &out), STATUS_OK);
    /* A node keeps its name. */
    JournalJoin renamed = {.name = SLICE("x")};
    assert_status(try_join(node(fixture, 0), &renamed, &out), STATUS_BAD_REQUEST);
}

static void a_renewal_says_what_has_become_of_the_node(Fixture *fixture)
{
    (void)two_nodes(fixture);
    Journal *a = node(fixture, 0);
    Journal *b = node(fixture, 1);
    bool is_member = false;
    bool is_draining = true;
    uint64_t before = renewal_of(b, SLICE("a"));
    assert_ok(journal_renew(a, 42, SLICE("b,c"), &is_member, &is_draining, err));
    assert_true(is_member);
    assert_false(is_draining);
    const JournalNode *nodes = NULL;
    size_t count = 0;
    assert_ok(journal_nodes(b, JOURNAL_LANE_NODE, &test_arena, &nodes, &count, err));
    assert_int_equal(nodes[0].renewal, before + 1);
    assert_int_equal(nodes[0].catalog, 42);
    assert_slice_text(nodes[0].unreachable, "b,c");
    Error error;
    assert_status(journal_renew(a, 0, SLICE("b,,c"), &is_member, &is_draining, &error),
                  STATUS_BAD_REQUEST);

    bool done = false;
    assert_ok(journal_set_draining(b, JOURNAL_LANE_ADMIN, SLICE("a"), true, &done, err));
    assert_true(done);
    assert_ok(journal_renew(a, 43, SLICE_EMPTY, &is_member, &is_draining, err));
    assert_true(is_member && is_draining);
    assert_ok(journal_set_draining(b, JOURNAL_LANE_ADMIN, SLICE("a"), false, &done, err));
    assert_ok(journal_renew(a, 43, SLICE_EMPTY, &is_member, &is_draining, err));
    assert_true(is_member && !is_draining);
    assert_ok(journal_set_draining(b, JOURNAL_LANE_ADMIN, SLICE("x"), true, &done, err));
    assert_false(done);
}

static void only_a_node_that_did_not_renew_is_declared_dead(Fixture *fixture)
{
    (void)two_nodes(fixture);
    Journal *a = node(fixture, 0);
    Journal *b = node(fixture, 1);
    JournalSelf self = journal_self(a);
    uint64_t seen = renewal_of(b, SLICE("a"));
    bool is_member = false;
    bool is_draining = false;
    bool done = true;
    assert_ok(journal_renew(a, 0, SLICE_EMPTY, &is_member, &is_draining, err));
    assert_ok(journal_declare_dead(b, self.node, self.incarnation, seen, &done, err));
    assert_false(done);
    assert_ok(journal_declare_dead(b, self.node, self.incarnation + 9, seen + 1, &done, err));
    assert_false(done);
    assert_ok(journal_remove_node(b, JOURNAL_LANE_ADMIN, self.node, &done, err));
    assert_false(done);
    declare_dead(b, a);
    assert_ok(journal_renew(a, 0, SLICE_EMPTY, &is_member, &is_draining, err));
    assert_false(is_member);
    /* The dead decide nothing. */
    JournalSelf other = journal_self(b);
    assert_ok(journal_declare_dead(a, other.node, other.incarnation, renewal_of(a, other.node),
                                   &done, err));
    assert_false(done);
    assert_ok(journal_set_draining(b, JOURNAL_LANE_ADMIN, self.node, true, &done, err));
    assert_false(done);

    /* It joins anew, from any folder. */
    JournalMember again = join_as(a, "a", 0);
    assert_true(again.incarnation > self.incarnation);
    assert_ok(journal_renew(a, 0, SLICE_EMPTY, &is_member, &is_draining, err));
    assert_true(is_member);

    report_one(a, 1, REPLICA_FOLLOWING, 3);
    declare_dead(b, a);
    assert_ok(journal_remove_node(b, JOURNAL_LANE_ADMIN, self.node, &done, err));
    assert_true(done);
    const JournalReplica *replicas = NULL;
    size_t count = 9;
    assert_ok(journal_replicas(b, JOURNAL_LANE_ADMIN, &test_arena, &replicas, &count, err));
    assert_int_equal(count, 0);
}

/* What an earlier life had on its disk, a new folder has not. */
static void a_node_with_a_new_folder_has_no_copies(Fixture *fixture)
{
    (void)two_nodes(fixture);
    Journal *a = node(fixture, 0);
    Journal *b = node(fixture, 1);
    report_one(a, 1, REPLICA_FOLLOWING, 3);
    report_one(b, 1, REPLICA_FOLLOWING, 5);
    const JournalReplica *replicas = NULL;
    size_t count = 0;
    (void)join_as(a, "a", journal_self(a).incarnation);
    assert_ok(journal_replicas(b, JOURNAL_LANE_ADMIN, &test_arena, &replicas, &count, err));
    assert_int_equal(count, 2);
    declare_dead(b, a);
    (void)join_as(a, "a", 0);
    assert_ok(journal_replicas(b, JOURNAL_LANE_ADMIN, &test_arena, &replicas, &count, err));
    assert_int_equal(count, 1);
    assert_slice(replicas[0].node, SLICE("b"));
    assert_int_equal(replicas[0].durable, 5);
}

/* ---- owners ---- */

static void a_space_is_taken_from_the_dead_only(Fixture *fixture)
{
    JournalPlace place = two_nodes(fixture);
    Journal *a = node(fixture, 0);
    Journal *b = node(fixture, 1);
    JournalPlace taken = {0};
    assert_int_equal(append(a, &place, "of a"), APPEND_DONE);
    assert_false(take_over(b, 1, 1, &taken));
    declare_dead(b, a);
    assert_false(take_over(b, 1, 2, &taken));
    assert_false(take_over(b, 99, 1, &taken));
    assert_false(take_over(a, 1, 1, &taken)); /* the dead take nothing, not even their own */
    assert_true(take_over(b, 1, 1, &taken));
    assert_int_equal(taken.seq, 1);
    assert_memory_equal(&taken.chain, &place.chain, sizeof(place.chain));
    assert_false(take_over(b, 1, 1, &taken));
    (void)join(fixture, 2);
    assert_false(take_over(node(fixture, 2), 1, 2, &taken));

    assert_int_equal(append(a, &place, "late"), APPEND_NOT_OWNER);
    assert_int_equal(append(b, &taken, "of b"), APPEND_DONE);
    assert_int_equal(append(a, &place, "late"), APPEND_NOT_OWNER);
    assert_slice_text(log_text(b, 1, 0), "of a|of b");
}

static void a_node_takes_its_own_spaces_over_when_it_starts_again(Fixture *fixture)
{
    JournalPlace place = two_nodes(fixture);
    Journal *a = node(fixture, 0);
    assert_int_equal(append(a, &place, "first life"), APPEND_DONE);
    uint64_t incarnation = journal_self(a).incarnation;
    (void)join_as(node(fixture, 2), "a", incarnation);
    JournalPlace taken = {0};
    assert_true(take_over(node(fixture, 2), 1, 1, &taken));
    assert_int_equal(append(a, &place, "ghost"), APPEND_NOT_OWNER);
    assert_int_equal(append(node(fixture, 2), &taken, "second life"), APPEND_DONE);
    JournalOwner owner = owner_of(a, 1);
    assert_int_equal(owner.tail.epoch, 2);
    assert_true(owner.incarnation > incarnation);
    assert_slice_text(log_text(node(fixture, 1), 1, 0), "first life|second life");
}

static void a_space_is_handed_over_at_one_place(Fixture *fixture)
{
    JournalPlace place = two_nodes(fixture);
    Journal *a = node(fixture, 0);
    JournalSelf b = journal_self(node(fixture, 1));
    JournalPlace old = place;
    assert_int_equal(append(a, &place, "x"), APPEND_DONE);
    bool done = true;
    assert_ok(journal_hand_over(a, 1, &old, b.node, b.incarnation, &done, err));
    assert_false(done);
    JournalPlace other = place;
    other.chain.bytes[3] ^= 1;
    assert_ok(journal_hand_over(a, 1, &other, b.node, b.incarnation, &done, err));
    assert_false(done);
    assert_ok(journal_hand_over(a, 1, &place, b.node, b.incarnation + 9, &done, err));
    assert_false(done); /* nobody lives under that incarnation */
    assert_ok(journal_hand_over(a, 1, &place, b.node, b.incarnation, &done, err));
    assert_true(done);
    assert_int_equal(append(a, &place, "y"), APPEND_NOT_OWNER);
    JournalOwner owner = owner_of(node(fixture, 1), 1);
    assert_slice_text(owner.node, "b");
    assert_int_equal(owner.incarnation, b.incarnation);
    assert_int_equal(owner.tail.epoch, 2);
    assert_int_equal(append(node(fixture, 1), &owner.tail, "z"), APPEND_DONE);
    assert_slice_text(log_text(a, 1, 0), "x|z");
}

static void a_space_is_not_handed_over_to_the_dead(Fixture *fixture)
{
    JournalPlace place = two_nodes(fixture);
    Journal *a = node(fixture, 0);
    JournalSelf b = journal_self(node(fixture, 1));
    bool done = true;
    declare_dead(a, node(fixture, 1));
    assert_ok(journal_hand_over(a, 1, &place, b.node, b.incarnation, &done, err));
    assert_false(done);
    assert_slice_text(owner_of(a, 1).node, "a");
    assert_int_equal(append(a, &place, "x"), APPEND_DONE);
}

static void a_sealed_space_takes_nothing_until_its_move_unseals_it(Fixture *fixture)
{
    JournalPlace place = two_nodes(fixture);
    Journal *a = node(fixture, 0);
    bool done = true;
    JournalPlace wrong = {.epoch = 1, .seq = 7};
    assert_ok(journal_seal(a, JOURNAL_LANE_ADMIN, 1, &wrong, 5, &done, err));
    assert_false(done);
    assert_ok(journal_seal(a, JOURNAL_LANE_ADMIN, 1, &place, 5, &done, err));
    assert_true(done);
    assert_int_equal(owner_of(a, 1).sealed, 5);
    assert_int_equal(append(a, &place, "x"), APPEND_NOT_OWNER);
    assert_ok(journal_unseal(a, JOURNAL_LANE_ADMIN, 1, 1, 6, &done, err));
    assert_false(done);
    assert_ok(journal_unseal(a, JOURNAL_LANE_ADMIN, 1, 2, 5, &done, err));
    assert_false(done);
    assert_ok(journal_unseal(a, JOURNAL_LANE_ADMIN, 1, 1, 5, &done, err));
    assert_true(done);
    assert_int_equal(append(a, &place, "y"), APPEND_DONE);
    assert_ok(journal_seal(a, JOURNAL_LANE_ADMIN, 1, &place, -1, &done, err));
    assert_true(done);
    assert_int_equal(owner_of(a, 1).sealed, -1);
    assert_slice_text(log_text(a, 1, 0), "y");
}

static void spaces_are_made_for_the_living_and_forgotten(Fixture *fixture)
{
    JournalPlace place = two_nodes(fixture);
    Journal *a = node(fixture, 0);
    Journal *b = node(fixture, 1);
    JournalSelf self = journal_self(b);
    assert_int_equal(append(a, &place, "x"), APPEND_DONE);
    JournalNewSpace spaces[] = {
        {.space = 1, .node = self.node, .incarnation = self.incarnation},
        {.space = 2, .node = self.node, .incarnation = self.incarnation},
        {.space = 3, .node = self.node, .incarnation = self.incarnation + 1},
    };
    Error error;
    assert_status(journal_create_spaces(a, JOURNAL_LANE_NODE, spaces, 3, &error), STATUS_CONFLICT);
    const JournalOwner *owners = NULL;
    size_t count = 0;
    assert_ok(journal_owners(a, JOURNAL_LANE_NODE, NULL, 0, &test_arena, &owners, &count, err));
    assert_int_equal(count, 1);
    assert_ok(journal_create_spaces(a, JOURNAL_LANE_NODE, spaces, 2, err));
    assert_ok(journal_create_spaces(a, JOURNAL_LANE_NODE, spaces, 2, err));
    assert_slice_text(owner_of(b, 1).node, "a");
    assert_int_equal(owner_of(b, 1).tail.seq, 1);
    assert_slice_text(owner_of(b, 2).node, "b");
    declare_dead(a, b);
    spaces[0].space = 4;
    assert_status(journal_create_spaces(a, JOURNAL_LANE_NODE, spaces, 1, &error), STATUS_CONFLICT);

    uint64_t gone[] = {1, 77};
    assert_ok(journal_forget_spaces(a, JOURNAL_LANE_ADMIN, gone, 2, err));
    assert_ok(journal_forget_spaces(a, JOURNAL_LANE_ADMIN, gone, 2, err));
    assert_ok(journal_owners(a, JOURNAL_LANE_NODE, gone, 2, &test_arena, &owners, &count, err));
    assert_int_equal(count, 0);
    assert_int_equal(append(a, &place, "y"), APPEND_NOT_OWNER);
}

static uint32_t upgraded(Fixture *fixture, unsigned index)
{
    uint32_t format = 0;
    assert_ok(journal_upgrade(node(fixture, index), JOURNAL_LANE_ADMIN, &format, err));
    assert_int_equal(journal_format(node(fixture, index)), format);
    return format;
}

static void expect_renewal(Fixture *fixture, unsigned index, bool is_member_expected,
                           uint32_t format)
{
    bool is_member = !is_member_expected;
    bool is_draining = true;
    assert_ok(journal_renew(node(fixture, index), 0, SLICE_EMPTY, &is_member, &is_draining, err));
    assert_int_equal(is_member, is_member_expected);
    assert_int_equal(journal_format(node(fixture, index)), format);
}

static void the_format_is_the_newest_that_all_the_living_read(Fixture *fixture)
{
    fixture->formats[0] = 5;
    fixture->formats[1] = 7;
    fixture->formats[2] = 6;
    assert_int_equal(join(fixture, 0).format, 5);
    assert_int_equal(join(fixture, 1).format, 5);
    assert_int_equal(join(fixture, 2).format, 5);
    create_space(node(fixture, 1), 1);
    JournalPlace place = owner_of(node(fixture, 1), 1).tail;
    assert_int_equal(append(node(fixture, 1), &place, "of five"), APPEND_DONE);
    assert_int_equal(upgraded(fixture, 1), 5); /* "a" reads no newer one */
    assert_int_equal(upgraded(fixture, 0), 5);
    expect_renewal(fixture, 1, true, 5);

    declare_dead(node(fixture, 1), node(fixture, 0));
    assert_int_equal(upgraded(fixture, 1), 6);
    assert_int_equal(upgraded(fixture, 2), 6);
    assert_int_equal(append(node(fixture, 1), &place, "of six"), APPEND_DONE);
    JournalEntries entries = {0};
    assert_ok(journal_read(node(fixture, 2), JOURNAL_LANE_FOLLOW, 1, 0, 1 << 20, &test_arena,
                           &entries, err));
    assert_int_equal(entries.count, 2);
    assert_int_equal(entries.items[0].format, 5);
    assert_int_equal(entries.items[1].format, 6);

    /* The program that is too old is told, and does not come back. */
    uint32_t format = 0;
    assert_ok(journal_upgrade(node(fixture, 0), JOURNAL_LANE_ADMIN, &format, err));
    assert_int_equal(format, 6);
    expect_renewal(fixture, 0, false, 5);
    JournalMember out = {0};
    JournalJoin again = {.name = SLICE("a"), .address = SLICE("x"), .advertise = SLICE("y")};
    assert_status(try_join(node(fixture, 0), &again, &out), STATUS_CONFLICT);
    /* Once no other reads less, the newest; it never goes back. */
    declare_dead(node(fixture, 1), node(fixture, 2));
    assert_int_equal(upgraded(fixture, 1), 7);
    fixture->formats[3] = 9;
    assert_int_equal(join(fixture, 3).format, 7);
    assert_int_equal(upgraded(fixture, 3), 7);
    expect_renewal(fixture, 3, true, 7);
}

static const JournalTest TESTS[] = {
#define TEST(name)  \
    {               \
#name, name \
    }
    TEST(a_node_joins_under_its_name),
    TEST(a_name_is_one_folder_s_at_a_time),
    TEST(names_and_texts_are_checked),
    TEST(a_renewal_says_what_has_become_of_the_node),
    TEST(only_a_node_that_did_not_renew_is_declared_dead),
    TEST(a_node_with_a_new_folder_has_no_copies),
    TEST(a_space_is_taken_from_the_dead_only),
    TEST(a_node_takes_its_own_spaces_over_when_it_starts_again),
    TEST(a_space_is_handed_over_at_one_place),
    TEST(a_space_is_not_handed_over_to_the_dead),
    TEST(a_sealed_space_takes_nothing_until_its_move_unseals_it),
    TEST(spaces_are_made_for_the_living_and_forgotten),
    TEST(the_format_is_the_newest_that_all_the_living_read),
};

int main(void)
{
    return run_on_all_engines(TESTS, ARRAY_COUNT(TESTS));
}
