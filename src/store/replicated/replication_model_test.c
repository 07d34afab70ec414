/* replication_model_test.c - random work on three nodes whose journal loses requests and answers.
 *
 * Each space has an owner, which may be deposed without knowing. What a transaction adds to a list
 * has a number. In the end, and at every digest in between:
 *   - what was acknowledged is there once, in the order in which it was sent;
 *   - what was refused is not there; what is not known to be done is there once or not at all;
 *   - all nodes that have come equally far show the same.
 */
#include "store/replicated/cluster_testing_int.h"

#include "base/latch.h"
#include "base/random.h"
#include "base/test_seed.h"

#include <limits.h>

enum { NODES = 3, SPACES = 3, FIRST_SPACE = 20, STEPS = 700, SENT_MAX = 20000, SEQ_MAX = 20000 };

typedef enum Fate { FATE_OPEN, FATE_DONE, FATE_REFUSED, FATE_UNKNOWN } Fate;

typedef struct Digest {
    bool is_known;
    uint8_t bytes[REPLICATION_DIGEST_BYTES];
} Digest;

typedef struct SpaceModel {
    StoreSpace space;
    TestNode *owner;
    _Atomic Fate fates[SENT_MAX];
    uint32_t sent;
    Digest *digests; /* by seq */
} SpaceModel;

typedef struct Model {
    TestCluster cluster;
    Random random;
    SpaceModel spaces[SPACES];
} Model;

typedef struct Sent {
    _Atomic Fate *fate;
    Latch *done; /* NULL if nobody waits */
} Sent;

static void note_fate(void *ctx, const Error *err)
{
    Sent *sent = ctx;
    Fate fate = FATE_DONE;
    if (err != NULL)
        fate = err->status == STATUS_TIMEOUT ? FATE_UNKNOWN : FATE_REFUSED;
    if (fate == FATE_REFUSED)
        assert_true(err->status == STATUS_NOT_OWNER || err->status == STATUS_THROTTLED);
    atomic_store(sent->fate, fate);
    if (sent->done != NULL)
        latch_post(sent->done);
    mem_free(sent);
}

/* One number for the list of the space, and some other work. */
static void send(Model *model, SpaceModel *space, TestNode *node, Latch *done)
{
    if (space->sent == SENT_MAX)
        return;
    uint32_t number = space->sent++;
    Sent *sent = MEM_NEW(Sent);
    *sent = (Sent){&space->fates[number], done};
    StoreTxn *txn = store_txn_begin(node->store);
    store_txn_merge(txn, space->space, SLICE("`list"), slice_make(&number, sizeof(number)));
    char key[32], value[128];
    int len = snprintf(key, sizeof(key), "k%02u", (unsigned)random_below(&model->random, 40));
    memset(value, 'a' + (int)(number % 26), sizeof(value));
    if (random_below(&model->random, 4) == 0)
        store_txn_delete(txn, space->space, slice_make(key, (size_t)len));
    else
        store_txn_put(txn, space->space, slice_make(key, (size_t)len),
                      slice_make(value, 1 + number % sizeof(value)));
    char operand[2] = {random_below(&model->random, 2) == 0 ? '+' : '-',
                       (char)('a' + random_below(&model->random, 20))};
    key[0] = '~';
    store_txn_merge(txn, space->space, slice_make(key, 2), slice_make(operand, 2));
    store_txn_commit(txn, (StoreCompletion){note_fate, sent});
}

static void send_some(Model *model, SpaceModel *space, TestNode *node, bool waits)
{
    Latch done;
    latch_init(&done);
    uint32_t before = space->sent;
    for (uint64_t i = random_below(&model->random, 12); i > 0; i--)
        send(model, space, node, waits ? &done : NULL);
    for (uint32_t i = before; waits && i < space->sent; i++)
        latch_wait(&done);
    latch_done(&done);
}

static TestNode *random_node(Model *model)
{
    return &model->cluster.nodes[random_below(&model->random, NODES)];
}

static SpaceModel *random_space(Model *model)
{
    return &model->spaces[random_below(&model->random, SPACES)];
}

/* ---- roles ---- */

/* Journal calls fail at random, and are made again. */
#define AGAIN(call)                                        \
    do {                                                   \
        Error again_err_ = {0};                            \
        Error *err = &again_err_;                          \
        Status again_ = STATUS_UNAVAILABLE;                \
        while (again_ == STATUS_UNAVAILABLE)               \
            again_ = (call);                               \
        if (again_ != STATUS_OK)                           \
            fail_msg("%s: %s", #call, again_err_.message); \
    } while (0)

static JournalOwner journal_owner_of(TestNode *node, StoreSpace space, Arena *arena)
{
    const JournalOwner *owners = NULL;
    size_t count = 0;
    AGAIN(journal_owners(node->journal, JOURNAL_LANE_NODE, &space, 1, arena, &owners, &count, err));
    assert_int_equal(count, 1);
    return owners[0];
}

/* Whether the node can come to the end of the log by itself. */
static bool can_own(TestNode *node, StoreSpace space)
{
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 4096);
    JournalOwner owner = journal_owner_of(node, space, &arena);
    pthread_mutex_lock(&node->replication->lock);
    const ReplicaSpace *of = spaces_find(node->replication, space);
    bool can = of != NULL && of->trouble == SPACE_SOUND && of->applied.seq >= owner.base;
    pthread_mutex_unlock(&node->replication->lock);
    return can;
}

/* Owns the space, if the journal says so. A late copy of another statement may have come first. */
static void begin_owning(SpaceModel *space, TestNode *node)
{
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 4096);
    space->owner = NULL;
    JournalOwner owner = journal_owner_of(node, space->space, &arena);
    if (!slice_equal(owner.node, slice_from_cstr(node->name)) ||
        owner.incarnation != node->member.incarnation)
        return;
    JournalPlace last;
    Error ignored;
    Status status = replication_yield(node->replication, space->space, &last, &ignored);
    (void)status; /* it may have owned the space in an earlier epoch, and not know better */
    AGAIN(replication_own(node->replication, space->space, &owner.tail, cond_after_ms(30000), err));
    space->owner = node;
}

/* Makes the node, which lives, own the space in a new epoch, whoever owned it. Its owner does not
 * know. */
static void take_over(SpaceModel *space, TestNode *node)
{
    if (role_of(node, space->space) == SPACE_OWNED) {
        space->owner = node;
        return;
    }
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 4096);
    JournalOwner owner = journal_owner_of(node, space->space, &arena);
    if (!slice_equal(owner.node, slice_from_cstr(node->name))) {
        const JournalNode *nodes = NULL;
        size_t count = 0;
        bool done = false;
        AGAIN(journal_nodes(node->journal, JOURNAL_LANE_NODE, &arena, &nodes, &count, err));
        for (size_t i = 0; i < count; i++)
            if (slice_equal(nodes[i].name, owner.node) && nodes[i].state != NODE_DEAD)
                AGAIN(journal_declare_dead(node->journal, nodes[i].name, nodes[i].incarnation,
                                           nodes[i].renewal, &done, err));
    }
    JournalOwner taken = {0};
    bool done = false;
    if (slice_equal(owner.node, slice_from_cstr(node->name)) &&
        owner.incarnation == node->member.incarnation)
        AGAIN(journal_hand_over(node->journal, space->space, &owner.tail, owner.node,
                                owner.incarnation, &done, err));
    else
        AGAIN(journal_take_over(node->journal, space->space, owner.tail.epoch, &arena, &taken,
                                &done, err));
    begin_owning(space, node);
}

/* A new life of a node: with what its disk had a while ago, or all of it. */
static void restart(Model *model, TestNode *node, bool loses_writes)
{
    TestFolder old;
    if (loses_writes) {
        /* Nothing is said to be durable that will not be there. */
        memory_journal_fail(node->journal, JOURNAL_LANE_FOLLOW, MEMORY_JOURNAL_LOSE_REQUEST, 0,
                            UINT_MAX);
        node_copy_disk(node, &old);
        for (size_t i = 0; i < SPACES; i++)
            send_some(model, &model->spaces[i], node, true);
    }
    node_close_store(node);
    memory_journal_fail(node->journal, JOURNAL_LANE_FOLLOW, MEMORY_JOURNAL_NO_FAULT, 0, 0);
    if (loses_writes)
        node_replace_disk(node, &old);
    node->member = test_join(node->journal, node->name, node->member.incarnation);
    node_open_store(node);
    for (size_t i = 0; i < SPACES; i++) {
        if (model->spaces[i].owner == node)
            model->spaces[i].owner = NULL;
        if (role_of(node, model->spaces[i].space) == SPACE_ABSENT)
            replication_follow(node->replication, model->spaces[i].space);
    }
}

static bool is_alive(TestNode *node)
{
    bool is_member = false, is_draining = false;
    AGAIN(journal_renew(node->journal, 0, SLICE_EMPTY, &is_member, &is_draining, err));
    return is_member;
}

/* Each space has an owner that can write, unless something late comes in between. */
static void heal_once(Model *model)
{
    for (size_t i = 0; i < NODES; i++) {
        TestNode *node = &model->cluster.nodes[i];
        if (!is_alive(node))
            restart(model, node, false);
    }
    for (size_t i = 0; i < SPACES; i++) {
        SpaceModel *space = &model->spaces[i];
        if (space->owner == NULL || role_of(space->owner, space->space) != SPACE_OWNED)
            space->owner = NULL;
        if (space->owner != NULL)
            continue;
        TestNode *node = random_node(model);
        if (is_alive(node) && can_own(node, space->space))
            take_over(space, node);
    }
}

static bool is_healthy(Model *model)
{
    for (size_t i = 0; i < NODES; i++)
        if (!is_alive(&model->cluster.nodes[i]))
            return false;
    for (size_t i = 0; i < SPACES; i++)
        if (model->spaces[i].owner == NULL)
            return false;
    return true;
}

static void heal(Model *model)
{
    do
        heal_once(model);
    while (!is_healthy(model));
}

static void hand_over(SpaceModel *space, TestNode *to)
{
    TestNode *from = space->owner;
    JournalPlace last;
    Error refusal;
    if (from == NULL || from == to ||
        replication_yield(from->replication, space->space, &last, &refusal) != STATUS_OK)
        return;
    space->owner = NULL;
    bool done = false;
    Status status = journal_hand_over(from->journal, space->space, &last, slice_from_cstr(to->name),
                                      to->member.incarnation, &done, &refusal);
    (void)status; /* its answer may be lost; what is true is read afterwards */
    begin_owning(space, to);
}

/* ---- expectations ---- */

static void expect_digest(SpaceModel *space, TestNode *node)
{
    if (role_of(node, space->space) == SPACE_ABSENT)
        return;
    JournalPlace at;
    Digest digest = {.is_known = true};
    assert_ok(replication_digest(node->replication, space->space, &at, digest.bytes, err));
    assert_true(at.seq < SEQ_MAX);
    Digest *known = &space->digests[at.seq];
    if (known->is_known)
        assert_memory_equal(known->bytes, digest.bytes, sizeof(digest.bytes));
    *known = digest;
}

static void expect_list(SpaceModel *space, TestNode *node)
{
    AUTO(store_value_release) StoreValue value = {0};
    StoreFound found = STORE_ABSENT;
    assert_ok(store_get(node->store, NULL, space->space, SLICE("`list"), STORE_READ_ANY, &value,
                        &found, err));
    uint32_t next = 0; /* all before were looked for */
    size_t count = found == STORE_FOUND ? value.data.len / sizeof(uint32_t) : 0;
    for (size_t i = 0; i < count; i++) {
        uint32_t number = 0;
        memcpy(&number, value.data.ptr + i * sizeof(number), sizeof(number));
        assert_true(number < space->sent);
        assert_true(number >= next); /* in order, and once */
        for (; next < number; next++)
            assert_int_not_equal(atomic_load(&space->fates[next]), FATE_DONE);
        assert_int_not_equal(atomic_load(&space->fates[number]), FATE_REFUSED);
        next = number + 1;
    }
    for (; next < space->sent; next++)
        assert_int_not_equal(atomic_load(&space->fates[next]), FATE_DONE);
}

static void seed(TestNode *target, TestNode *source, StoreSpace space)
{
    if (source == NULL || target == source)
        return;
    AUTO(seed_target_close) SeedTarget *to = NULL;
    AUTO(seed_source_close) SeedSource *from = NULL;
    Error refusal;
    Status status = seed_target_open(target->replication, space, &to, &refusal);
    if (status == STATUS_CONFLICT || status == STATUS_UNAVAILABLE)
        return;
    assert_int_equal(status, STATUS_OK);
    assert_ok(seed_source_open(source->replication, space, &from, err));
    AUTO(buf_done) Buf piece;
    buf_init(&piece, (size_t)1 << 20);
    for (bool is_last = false; !is_last;) {
        assert_ok(seed_source_next(from, 700, &piece, &is_last, err));
        assert_ok(seed_target_put(to, buf_view(&piece), err));
    }
    assert_ok(seed_target_finish(to, err));
}

/* A follower whose log was trimmed is seeded; and one of which an earlier attempt has left nothing,
 * because the journal did not answer. */
static void seed_those_behind(Model *model)
{
    for (size_t i = 0; i < SPACES; i++) {
        SpaceModel *space = &model->spaces[i];
        for (size_t j = 0; j < NODES; j++) {
            TestNode *node = &model->cluster.nodes[j];
            pthread_mutex_lock(&node->replication->lock);
            const ReplicaSpace *of = spaces_find(node->replication, space->space);
            bool is_behind = of == NULL || of->trouble == SPACE_BEHIND || of->role == SPACE_ABSENT;
            assert_true(of == NULL || of->trouble != SPACE_REFUSED);
            pthread_mutex_unlock(&node->replication->lock);
            if (is_behind)
                seed(node, space->owner, space->space);
        }
    }
}

static void step(Model *model)
{
    SpaceModel *space = random_space(model);
    TestNode *node = random_node(model);
    switch (random_below(&model->random, 24)) {
    case 0:
        if (is_alive(node) && can_own(node, space->space))
            take_over(space, node);
        break;
    case 1:
        restart(model, node, true);
        break;
    case 2:
        restart(model, node, false);
        break;
    case 3:
    case 4:
        if (is_alive(node) && can_own(node, space->space))
            hand_over(space, node);
        break;
    case 5:
        send_some(model, space, node, true); /* which may be deposed, or nothing at all */
        break;
    case 6:
        seed(node, space->owner, space->space);
        break;
    case 7:
        replication_poke(node->replication);
        break;
    case 8:
    case 9:
    case 10:
        expect_digest(space, node);
        break;
    case 11:
        if (space->owner != NULL) {
            Error ignored;
            ReplicaPlace place = replication_place(space->owner->replication, space->space);
            Status status = journal_trim(space->owner->journal, JOURNAL_LANE_ADMIN, space->space,
                                         place.applied.epoch, place.applied.seq, &ignored);
            (void)status; /* it is a hint */
        }
        break;
    case 12:
        if (space->owner != NULL && space->owner != node) {
            Error ignored; /* nothing is kept for the node any more, until it follows again */
            Status status = journal_expel(space->owner->journal, JOURNAL_LANE_ADMIN, space->space,
                                          slice_from_cstr(node->name), &ignored);
            (void)status; /* the engine may be away */
        }
        break;
    default:
        if (space->owner == NULL)
            heal(model);
        send_some(model, space, space->owner, random_below(&model->random, 2) == 0);
    }
}

/* A follower may find out only now that its log was trimmed. */
static void catch_up(Model *model, TestNode *node, const SpaceModel *space)
{
    uint64_t seq = seq_of(space->owner, space->space);
    Error late;
    for (int tries = 0; replication_wait(node->replication, space->space, seq, cond_after_ms(200),
                                         &late) != STATUS_OK;
         tries++) {
        if (tries > 100) {
            const ReplicaSpace *of = spaces_find(node->replication, space->space);
            fail_msg("%s (role %d, trouble %d, changing %d, seeded %d, owner's role %d)",
                     late.message, of == NULL ? -1 : (int)of->role,
                     of == NULL ? -1 : (int)of->trouble, of != NULL && of->is_changing,
                     of != NULL && of->is_seeded,
                     (int)spaces_find(space->owner->replication, space->space)->role);
        }
        seed_those_behind(model);
    }
}

static void expect_all_equal(Model *model)
{
    memory_journal_set_chaos(model->cluster.engine, NULL);
    heal(model);
    seed_those_behind(model);
    for (size_t i = 0; i < SPACES; i++) {
        SpaceModel *space = &model->spaces[i];
        commit_now(store_txn_begin(space->owner->store)); /* all that was sent has ended */
        for (size_t j = 0; j < NODES; j++) {
            TestNode *node = &model->cluster.nodes[j];
            catch_up(model, node, space);
            expect_digest(space, node);
            expect_list(space, node);
        }
    }
}

static void random_work_keeps_what_was_acknowledged_and_nodes_equal(void **state)
{
    (void)state;
    Model *model = MEM_NEW(Model);
    cluster_open(&model->cluster, NODES);
    random_init(&model->random, test_seed());
    for (size_t i = 0; i < SPACES; i++) {
        SpaceModel *space = &model->spaces[i];
        space->space = FIRST_SPACE + i;
        space->digests = MEM_NEW_ARRAY(Digest, SEQ_MAX);
        space->owner = &model->cluster.nodes[i % NODES];
        node_own(space->owner, space->space);
        for (size_t j = 0; j < NODES; j++)
            replication_follow(model->cluster.nodes[j].replication, space->space);
    }
    MemoryJournalChaos chaos = {
        .lose_request = 15, .lose_answer = 15, .delay = 10, .refuse = 10, .deliver = 300};
    for (int i = 0; i < STEPS; i++) {
        if (i % 50 == 0)
            memory_journal_set_chaos(model->cluster.engine, i % 100 == 0 ? NULL : &chaos);
        if (i % 50 == 49)
            seed_those_behind(model);
        step(model);
    }
    expect_all_equal(model);
    cluster_close(&model->cluster);
    uint32_t done = 0;
    for (size_t i = 0; i < SPACES; i++) {
        for (uint32_t j = 0; j < model->spaces[i].sent; j++)
            done += atomic_load(&model->spaces[i].fates[j]) == FATE_DONE;
        mem_free(model->spaces[i].digests);
    }
    assert_true(done > STEPS / 2);
    mem_free(model);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_work_keeps_what_was_acknowledged_and_nodes_equal),
    };
    return cmocka_run_group_tests_name("replication_model", tests, NULL, NULL);
}
