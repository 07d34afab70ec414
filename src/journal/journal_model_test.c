/* journal_model_test.c - nodes that do anything at any time, on the memory engine, against what
 * must hold after each step.
 *
 * A step is one action of one node, or a fault. A node that was paused, cut off or declared dead
 * goes on with what it believes: it is simply one whose next action comes late. All short
 * sequences are tried, after several beginnings, and long ones at random.
 *
 * After each step: the log has no gap and follows its chain (J1); what was acknowledged is in it,
 * once and at its number, or was trimmed (J2); what was refused is not; in no epoch have two
 * incarnations been acknowledged; nothing is trimmed that a follower which was not expelled has not
 * made durable (J6); what a follower or an owner believed stays true (J10). Only a promotion with
 * loss may take something away, and then nothing goes on as if nothing had happened.
 */
#include "base/random.h"
#include "base/test_seed.h"
#include "journal/journal_testing_int.h"
#include "journal/memory/memory_journal.h"

enum { NODES = 2, TEXTS_MAX = 4096, LOG_MAX = 4096, EPOCHS_MAX = 4096, STEPS_MAX = 512, SPACE = 1 };

/* Goes on by one each time it is read, so that every wait ends. An append reads it between two
 * tries; that is where others can do something meanwhile. */
typedef struct StepClock {
    Clock clock;
    uint64_t now_us;
    void (*tick)(struct StepClock *clock); /* or NULL */
} StepClock;

static uint64_t step_now(const Clock *clock)
{
    StepClock *step = CONTAINER_OF(UNCONST(Clock, clock), StepClock, clock);
    if (step->tick != NULL)
        step->tick(step);
    return step->now_us++;
}

typedef struct SimNode {
    Journal *journal;
    const char *name;
    uint64_t incarnation;
    bool owns; /* it believes so */
    JournalPlace place;
    uint64_t epoch_used; /* in which it has appended */
    uint64_t applied;    /* entries that it believes, as a follower */
    JournalChain chain;
    bool has_chain;   /* of 'applied'; not after it was seeded */
    uint64_t durable; /* the highest that it can have reported */
    bool was_owner;   /* since it has last followed: what it has trimmed itself it need not have */
    bool is_expelled; /* perhaps: nothing is kept for it until it is seeded */
} SimNode;

/* An entry that was appended, by the number in its text. */
typedef struct SimText {
    AppendOutcome outcome;
    uint64_t seq;
    bool was_seen; /* in the log, some time */
} SimText;

enum { MEANWHILE_MAX = 6 };

static const MemoryJournalFault NO_FAULT = MEMORY_JOURNAL_NO_FAULT;

typedef struct Sim {
    MemoryJournalEngine *engine;
    StepClock clock;
    SimNode nodes[NODES];
    Journal *checker;
    SimText texts[TEXTS_MAX];
    unsigned text_count;
    uint64_t
        acked_by[EPOCHS_MAX]; /* the incarnation that was acknowledged in an epoch; 0 for none */
    bool has_lost;            /* there was a promotion with loss */
    const char *steps[STEPS_MAX];
    size_t step_count;
    unsigned meanwhile[MEANWHILE_MAX]; /* actions to be done between the tries of the next append */
    size_t meanwhile_count;
    size_t meanwhile_next;
    bool is_inside; /* an append */
} Sim;

static void do_meanwhile(StepClock *clock);

NORETURN static void broken(const Sim *sim, const char *what)
{
    print_error("after:");
    for (size_t i = 0; i < sim->step_count; i++)
        print_error(" %s", sim->steps[i]);
    print_error("\n");
    fail_msg("%s", what);
    abort();
}

#define MUST(sim, condition)           \
    do {                               \
        if (!(condition))              \
            broken((sim), #condition); \
    } while (0)

/* ---- actions ---- */

static void append_with(Sim *sim, unsigned n, MemoryJournalFault fault, unsigned count)
{
    SimNode *node = &sim->nodes[n];
    if (!node->owns || sim->text_count == TEXTS_MAX || (n == 0 && sim->is_inside))
        return;
    unsigned number = sim->text_count++;
    char text[16];
    (void)snprintf(text, sizeof(text), "%u", number);
    JournalAppend one = make_append(SPACE, &node->place, node->place.epoch, text);
    memory_journal_fail(node->journal, JOURNAL_LANE_APPEND_0, fault, 0, count);
    Error error = {0};
    sim->texts[number] = (SimText){.outcome = APPEND_UNKNOWN, .seq = node->place.seq + 1};
    bool is_watched = n == 0 && sim->meanwhile_count > 0;
    sim->is_inside |= n == 0;
    if (is_watched)
        sim->clock.tick = do_meanwhile;
    Status status = journal_append(node->journal, JOURNAL_LANE_APPEND_0, &one, 1,
                                   sim->clock.now_us + 16, &error);
    if (is_watched)
        sim->clock.tick = NULL;
    if (n == 0)
        sim->is_inside = false;
    memory_journal_fail(node->journal, JOURNAL_LANE_APPEND_0, NO_FAULT, 0, 0);
    MUST(sim, (status == STATUS_OK) == (one.outcome != APPEND_PENDING));
    node->epoch_used = one.epoch;
    sim->texts[number].outcome = one.outcome;
    switch (one.outcome) {
    case APPEND_DONE: {
        uint64_t epoch = one.epoch % EPOCHS_MAX;
        uint64_t who = node->incarnation * NODES + n + 1;
        MUST(sim, sim->acked_by[epoch] == 0 || sim->acked_by[epoch] == who);
        sim->acked_by[epoch] = who;
        node->place = one.after;
        break;
    }
    case APPEND_PENDING:
        break; /* never sent: the same place is right still */
    case APPEND_LOST:
        MUST(sim, sim->has_lost);
        node->owns = false;
        break;
    case APPEND_NOT_OWNER:
    case APPEND_UNKNOWN:
        node->owns = false;
        break;
    }
}

static uint64_t renewal_of(Journal *journal, const char *name, uint64_t *incarnation)
{
    const JournalNode *nodes = NULL;
    size_t count = 0;
    Error error;
    if (journal_nodes(journal, JOURNAL_LANE_NODE, &test_arena, &nodes, &count, &error) != STATUS_OK)
        return 0;
    for (size_t i = 0; i < count; i++) {
        if (slice_equal(nodes[i].name, slice_from_cstr(name))) {
            *incarnation = nodes[i].incarnation;
            return nodes[i].renewal;
        }
    }
    return 0;
}

/* The lease of node 'n' has ended for the other one. */
static void end_lease(Sim *sim, unsigned n)
{
    SimNode *by = &sim->nodes[1 - n];
    uint64_t incarnation = 0;
    uint64_t renewal = renewal_of(by->journal, sim->nodes[n].name, &incarnation);
    bool done = false;
    Error error;
    Status ignored = renewal == 0
                         ? STATUS_OK
                         : journal_declare_dead(by->journal, slice_from_cstr(sim->nodes[n].name),
                                                incarnation, renewal, &done, &error);
    (void)ignored; /* it may be unreachable */
}

static bool find_owner(Journal *journal, JournalOwner *out)
{
    const uint64_t space = SPACE;
    const JournalOwner *owners = NULL;
    size_t count = 0;
    Error error;
    if (journal_owners(journal, JOURNAL_LANE_NODE, &space, 1, &test_arena, &owners, &count,
                       &error) != STATUS_OK ||
        count == 0)
        return false;
    *out = owners[0];
    return true;
}

static void own(SimNode *node, const JournalPlace *place)
{
    node->owns = true;
    node->was_owner = true;
    node->place = *place;
}

/* A node that finds itself the owner, without knowing what it has sent in this epoch, hands the
 * space over to itself, which begins another epoch. The fault is that of the statement that does
 * it. */
static void take(Sim *sim, unsigned n, MemoryJournalFault fault)
{
    SimNode *node = &sim->nodes[n];
    JournalOwner owner;
    if (!find_owner(node->journal, &owner))
        return;
    memory_journal_fail(node->journal, JOURNAL_LANE_NODE, fault, 0, fault != NO_FAULT);
    bool is_mine = slice_equal(owner.node, slice_from_cstr(node->name)) &&
                   owner.incarnation == node->incarnation;
    bool done = false;
    Error error;
    if (is_mine && !node->owns && owner.tail.epoch > node->epoch_used) {
        own(node, &owner.tail); /* the answer of the take-over was lost */
    } else if (is_mine && !node->owns) {
        if (journal_hand_over(node->journal, SPACE, &owner.tail, owner.node, owner.incarnation,
                              &done, &error) == STATUS_OK &&
            done) {
            owner.tail.epoch++;
            own(node, &owner.tail);
        }
    } else if (!is_mine) {
        JournalOwner taken;
        if (journal_take_over(node->journal, SPACE, owner.tail.epoch, &test_arena, &taken, &done,
                              &error) == STATUS_OK &&
            done)
            own(node, &taken.tail);
    }
    memory_journal_fail(node->journal, JOURNAL_LANE_NODE, NO_FAULT, 0, 0);
}

static void hand_over(Sim *sim, unsigned n, MemoryJournalFault fault)
{
    SimNode *node = &sim->nodes[n];
    const SimNode *to = &sim->nodes[1 - n];
    if (!node->owns)
        return;
    node->owns = false; /* from before the call on */
    node->epoch_used = node->place.epoch;
    bool done = false;
    Error error;
    memory_journal_fail(node->journal, JOURNAL_LANE_NODE, fault, 0, fault != NO_FAULT);
    Status ignored = journal_hand_over(node->journal, SPACE, &node->place,
                                       slice_from_cstr(to->name), to->incarnation, &done, &error);
    (void)ignored;
    memory_journal_fail(node->journal, JOURNAL_LANE_NODE, NO_FAULT, 0, 0);
}

static void restart(Sim *sim, unsigned n)
{
    SimNode *node = &sim->nodes[n];
    JournalJoin join = {.name = slice_from_cstr(node->name),
                        .incarnation_of_folder = node->incarnation};
    JournalMember member;
    Error error;
    node->owns = false;
    if (journal_join(node->journal, &join, &member, &error) == STATUS_OK) {
        /* Only in a history that was lost can a number have been given before. */
        MUST(sim, member.incarnation > node->incarnation || sim->has_lost);
        node->incarnation = member.incarnation;
        node->epoch_used = 0;
    }
}

/* Reads what is new, says how far it is, and believes it then. */
static void follow(Sim *sim, unsigned n)
{
    SimNode *node = &sim->nodes[n];
    JournalEntries entries;
    Error error;
    Status status = journal_read(node->journal, JOURNAL_LANE_FOLLOW, SPACE, node->applied, 1 << 20,
                                 &test_arena, &entries, &error);
    MUST(sim, status == STATUS_OK || status == STATUS_UNAVAILABLE);
    if (status != STATUS_OK)
        return;
    bool is_behind = entries.base > node->applied;
    MUST(sim, !is_behind || sim->has_lost || node->was_owner || node->is_expelled);
    if (is_behind && node->is_expelled && !node->was_owner && !sim->has_lost)
        return; /* until it is seeded */
    uint64_t applied = is_behind ? entries.base : node->applied + entries.count;
    /* What was just read is not applied before the report has shown that it is true. */
    JournalReplica one = {.space = SPACE,
                          .state = REPLICA_FOLLOWING,
                          .applied = node->applied,
                          .durable = node->applied};
    if (node->applied > node->durable)
        node->durable = node->applied;
    if (journal_report(node->journal, JOURNAL_LANE_FOLLOW, &one, 1, &error) != STATUS_OK)
        return;
    if (is_behind) {
        node->has_chain = false; /* its own appends, or another history */
        node->durable = applied;
    } else if (entries.count > 0) {
        MUST(sim, sim->has_lost || !node->has_chain ||
                      memcmp(&entries.items[0].before, &node->chain, sizeof(node->chain)) == 0);
        node->chain = entries.items[entries.count - 1].chain;
        node->has_chain = true;
    }
    node->applied = applied;
    node->was_owner = node->owns;
}

/* Nothing is kept for the replica of node 'n' any more; by the other one. */
static void expel(Sim *sim, unsigned n)
{
    Error error;
    sim->nodes[n].is_expelled = true; /* also if no answer comes */
    Status ignored = journal_expel(sim->nodes[1 - n].journal, JOURNAL_LANE_ADMIN, SPACE,
                                   slice_from_cstr(sim->nodes[n].name), &error);
    (void)ignored;
}

/* Takes the copy of the other node. The row comes first: nothing is trimmed from then on that is
 * appended after the copy was made. */
static void seed(Sim *sim, unsigned n)
{
    SimNode *node = &sim->nodes[n];
    const SimNode *from = &sim->nodes[1 - n];
    JournalReplica row = {.space = SPACE, .state = REPLICA_SEEDING};
    JournalOwner owner;
    Error error;
    if (node->owns ||
        journal_report(node->journal, JOURNAL_LANE_FOLLOW, &row, 1, &error) != STATUS_OK ||
        !find_owner(node->journal, &owner))
        return;
    uint64_t applied = from->owns ? from->place.seq : from->applied;
    if (applied < owner.base || applied < node->applied)
        return; /* of no use */
    node->applied = applied;
    node->chain = from->owns ? from->place.chain : from->chain;
    node->has_chain = from->owns || from->has_chain;
    node->was_owner = node->is_expelled = false;
    if (node->durable < owner.base)
        node->durable = owner.base;
}

static void trim(Sim *sim, unsigned n)
{
    SimNode *node = &sim->nodes[n];
    if (!node->owns)
        return;
    Error error;
    Status ignored = journal_trim(node->journal, JOURNAL_LANE_ADMIN, SPACE, node->place.epoch,
                                  node->place.seq, &error);
    ignored =
        ignored == STATUS_OK ? journal_rotate(node->journal, JOURNAL_LANE_ADMIN, &error) : ignored;
    (void)ignored;
}

static void seal(Sim *sim, unsigned n, bool is_sealed)
{
    SimNode *node = &sim->nodes[n];
    if (is_sealed && !node->owns)
        return; /* but who unseals is another question */
    bool done = false;
    Error error;
    Status ignored = is_sealed ? journal_seal(node->journal, JOURNAL_LANE_ADMIN, SPACE,
                                              &node->place, 7, &done, &error)
                               : journal_unseal(node->journal, JOURNAL_LANE_ADMIN, SPACE,
                                                node->place.epoch, 7, &done, &error);
    (void)ignored;
}

/* A standby that was behind becomes the engine: what was acknowledged since is gone, and nobody
 * can be blamed for believing it. */
static void lose(Sim *sim)
{
    memory_journal_restore(sim->engine);
    sim->has_lost = true;
}

static void deliver(Sim *sim, size_t index)
{
    size_t count = memory_journal_delayed(sim->engine);
    if (count > 0)
        (void)memory_journal_deliver(sim->engine, index % count);
}

/* Those before APPEND_A matter only after several others, so the longest of all short sequences do
 * without them. */
#define ACTIONS(X)                                                               \
    X(DELAY_TAKE_A, take(sim, 0, MEMORY_JOURNAL_DELAY))                          \
    X(HAND_OVER_B, hand_over(sim, 1, NO_FAULT))                                  \
    X(DELAY_HAND_OVER_B, hand_over(sim, 1, MEMORY_JOURNAL_DELAY))                \
    X(EXPEL_A, expel(sim, 0))                                                    \
    X(EXPEL_B, expel(sim, 1))                                                    \
    X(SEED_A, seed(sim, 0))                                                      \
    X(SEED_B, seed(sim, 1))                                                      \
    X(APPEND_A, append_with(sim, 0, NO_FAULT, 0))                                \
    X(LOSE_REQUEST_A, append_with(sim, 0, MEMORY_JOURNAL_LOSE_REQUEST, 1))       \
    X(LOSE_ANSWER_A, append_with(sim, 0, MEMORY_JOURNAL_LOSE_ANSWER, 1))         \
    X(LOSE_ALL_ANSWERS_A, append_with(sim, 0, MEMORY_JOURNAL_LOSE_ANSWER, 1000)) \
    X(DELAY_A, append_with(sim, 0, MEMORY_JOURNAL_DELAY, 1))                     \
    X(DELAY_ALL_A, append_with(sim, 0, MEMORY_JOURNAL_DELAY, 1000))              \
    X(APPEND_B, append_with(sim, 1, NO_FAULT, 0))                                \
    X(DELAY_ALL_B, append_with(sim, 1, MEMORY_JOURNAL_DELAY, 1000))              \
    X(LEASE_ENDS_A, end_lease(sim, 0))                                           \
    X(LEASE_ENDS_B, end_lease(sim, 1))                                           \
    X(TAKE_A, take(sim, 0, NO_FAULT))                                            \
    X(TAKE_B, take(sim, 1, NO_FAULT))                                            \
    X(DELAY_TAKE_B, take(sim, 1, MEMORY_JOURNAL_DELAY))                          \
    X(HAND_OVER_A, hand_over(sim, 0, NO_FAULT))                                  \
    X(DELAY_HAND_OVER_A, hand_over(sim, 0, MEMORY_JOURNAL_DELAY))                \
    X(RESTART_A, restart(sim, 0))                                                \
    X(RESTART_B, restart(sim, 1))                                                \
    X(FOLLOW_A, follow(sim, 0))                                                  \
    X(FOLLOW_B, follow(sim, 1))                                                  \
    X(TRIM_A, trim(sim, 0))                                                      \
    X(TRIM_B, trim(sim, 1))                                                      \
    X(SEAL_A, seal(sim, 0, true))                                                \
    X(UNSEAL_A, seal(sim, 0, false))                                             \
    X(DELIVER, deliver(sim, 0))                                                  \
    X(DELIVER_SECOND, deliver(sim, 1))                                           \
    X(STANDBY_LEAVES, memory_journal_set_standby(sim->engine, false))            \
    X(STANDBY_RETURNS, memory_journal_set_standby(sim->engine, true))            \
    X(CRASH_RESTART, memory_journal_crash_restart(sim->engine))                  \
    X(PROMOTE, memory_journal_promote(sim->engine))                              \
    X(PROMOTE_WITH_LOSS, lose(sim))

typedef enum Action {
#define ENUM(name, call) name,
    ACTIONS(ENUM)
#undef ENUM
        ACTION_COUNT
} Action;

static void act(Sim *sim, Action action)
{
    switch (action) {
#define CASE(name, call)                           \
    case name:                                     \
        if (sim->step_count < STEPS_MAX)           \
            sim->steps[sim->step_count++] = #name; \
        call;                                      \
        break;
        ACTIONS(CASE)
#undef CASE
    case ACTION_COUNT:
        break;
    }
}

/* ---- what must hold ---- */

/* After a loss, what is left is what there ever was. */
static void forget_what_was_lost(Sim *sim, const JournalEntries *log, uint64_t epoch)
{
    for (unsigned i = 0; i < sim->text_count; i++) {
        SimText *text = &sim->texts[i];
        if (text->outcome == APPEND_DONE && text->seq > log->tail)
            text->outcome = APPEND_UNKNOWN;
        text->was_seen = false;
        if (text->outcome == APPEND_NOT_OWNER)
            text->outcome = APPEND_UNKNOWN; /* a copy of it may come in the history that is left */
    }
    for (uint64_t i = epoch + 1; i < EPOCHS_MAX; i++)
        sim->acked_by[i] = 0;
    for (unsigned i = 0; i < NODES; i++) {
        if (sim->nodes[i].applied > log->tail)
            sim->nodes[i].applied = log->tail;
    }
}

/* The epoch of what can be seen, without a write. */
static uint64_t visible_epoch(const JournalEntries *log)
{
    return log->count == 0 ? 1 : log->items[log->count - 1].epoch;
}

static void check(Sim *sim, bool was_loss)
{
    JournalEntries log;
    Error error;
    /* From the beginning, or from where it was trimmed. It checks J1 itself. */
    MUST(sim, journal_read(sim->checker, JOURNAL_LANE_ADMIN, SPACE, 0, 1 << 20, &test_arena, &log,
                           &error) == STATUS_OK);
    uint64_t base = log.base;
    if (base > 0)
        MUST(sim, journal_read(sim->checker, JOURNAL_LANE_ADMIN, SPACE, base, 1 << 20, &test_arena,
                               &log, &error) == STATUS_OK);
    MUST(sim, base + log.count == log.tail);
    if (was_loss)
        forget_what_was_lost(sim, &log, visible_epoch(&log));

    unsigned *seen = ARENA_NEW_ARRAY(&test_arena, unsigned, sim->text_count + 1);
    uint64_t *seqs = ARENA_NEW_ARRAY(&test_arena, uint64_t, sim->text_count + 1);
    for (size_t i = 0; i < log.count; i++) {
        uint64_t number = 0;
        MUST(sim, slice_to_u64(log.items[i].bytes, &number) && number < sim->text_count);
        seen[number]++;
        sim->texts[number].was_seen = true;
        seqs[number] = log.items[i].seq;
    }
    for (unsigned i = 0; i < sim->text_count; i++) {
        const SimText *text = &sim->texts[i];
        MUST(sim, seen[i] <= 1);
        bool must_be_there = text->outcome == APPEND_DONE && text->seq > base && !sim->has_lost;
        MUST(sim, !must_be_there || (seen[i] == 1 && seqs[i] == text->seq));
        bool must_not = text->outcome == APPEND_NOT_OWNER || text->outcome == APPEND_PENDING;
        MUST(sim, !must_not || !text->was_seen);
    }
    if (sim->has_lost)
        return;
    for (unsigned i = 0; i < NODES; i++) {
        const SimNode *node = &sim->nodes[i];
        MUST(sim, node->applied <= log.tail);
        if (node->applied > base && node->has_chain)
            MUST(sim, memcmp(&log.items[node->applied - base - 1].chain, &node->chain,
                             sizeof(node->chain)) == 0);
        MUST(sim, base <= node->durable || node->was_owner || node->is_expelled);
    }
}

/* ---- runs ---- */

static Journal *open_node(Sim *sim, const char *name, uint64_t *incarnation)
{
    Journal *journal = NULL;
    MemoryJournalOptions options = {.clock = &sim->clock.clock, .has_no_pause = true};
    memory_journal_open(sim->engine, TEST_SECRET, &options, &journal);
    *incarnation = join_as(journal, name, 0).incarnation;
    return journal;
}

static Sim *sim_new(void)
{
    Sim *sim = MEM_NEW(Sim);
    sim->clock.clock = (Clock){.wall_us = step_now, .monotonic_us = step_now, .boot_us = step_now};
    sim->engine = memory_journal_engine_new(1);
    uint64_t ignored = 0;
    sim->checker = open_node(sim, "checker", &ignored);
    static const char *const names[NODES] = {"a", "b"};
    for (unsigned i = 0; i < NODES; i++) {
        SimNode *node = &sim->nodes[i];
        node->name = names[i];
        node->journal = open_node(sim, names[i], &node->incarnation);
    }
    create_space(sim->nodes[0].journal, SPACE);
    JournalPlace start = {.epoch = 1};
    own(&sim->nodes[0], &start);
    follow(sim, 1); /* which makes the row of its replica */
    memory_journal_backup(sim->engine);
    return sim;
}

static void sim_free(Sim *sim)
{
    if (sim == NULL)
        return;
    for (unsigned i = 0; i < NODES; i++)
        journal_close(sim->nodes[i].journal);
    journal_close(sim->checker);
    memory_journal_engine_free(sim->engine);
    mem_free(sim);
}
DEFINE_AUTO(Sim *, sim_free)

static void step(Sim *sim, Action action)
{
    act(sim, action);
    check(sim, action == PROMOTE_WITH_LOSS);
    arena_reset(&test_arena);
}

/* One action at each reading of the clock. */
static void do_meanwhile(StepClock *clock)
{
    Sim *sim = CONTAINER_OF(clock, Sim, clock);
    if (sim->meanwhile_next == sim->meanwhile_count)
        return;
    Action action = (Action)sim->meanwhile[sim->meanwhile_next++];
    clock->tick = NULL;
    act(sim, action);
    check(sim, action == PROMOTE_WITH_LOSS);
    clock->tick = do_meanwhile;
}

/* What others, and other threads of the same node, can do during an append of node a. */
static const Action MEANWHILE[] = {LEASE_ENDS_A, TAKE_B,  APPEND_B,       TRIM_B,
                                   SEAL_A,       DELIVER, STANDBY_LEAVES, STANDBY_RETURNS,
                                   UNSEAL_A,     PROMOTE, CRASH_RESTART,  FOLLOW_B};

/* Where short sequences begin: each is a state that takes several steps to get to. */
typedef struct Beginning {
    size_t count;
    Action actions[6];
    unsigned depth;
} Beginning;

static const Beginning BEGINNINGS[] = {
    {0, {APPEND_A}, 3},
    {2, {APPEND_A, DELAY_ALL_A}, 2},
    {4, {DELAY_ALL_A, LEASE_ENDS_A, TAKE_B, APPEND_B}, 2},
    {3, {APPEND_A, STANDBY_LEAVES, APPEND_A}, 2},
    {4, {APPEND_A, STANDBY_LEAVES, APPEND_A, CRASH_RESTART}, 3},
    {6, {APPEND_A, FOLLOW_B, FOLLOW_B, APPEND_A, TRIM_A, DELAY_ALL_A}, 2},
    {5, {APPEND_A, LEASE_ENDS_A, TAKE_B, RESTART_A, LOSE_ALL_ANSWERS_A}, 2},
    {4, {APPEND_A, STANDBY_LEAVES, LEASE_ENDS_A, CRASH_RESTART}, 2},
    {3, {APPEND_A, SEAL_A, DELAY_ALL_A}, 2},
    {2, {APPEND_A, PROMOTE_WITH_LOSS}, 2},
    {6, {APPEND_A, FOLLOW_B, FOLLOW_B, EXPEL_B, APPEND_A, TRIM_A}, 2},
    {3, {DELAY_HAND_OVER_A, TAKE_A, APPEND_A}, 2},
    {5, {APPEND_A, LEASE_ENDS_A, DELAY_TAKE_B, RESTART_A, TAKE_A}, 2},
};

static void every_short_sequence_keeps_the_invariants(void **state)
{
    (void)state;
    size_t runs = 0;
    for (size_t i = 0; i < ARRAY_COUNT(BEGINNINGS); i++) {
        const Beginning *beginning = &BEGINNINGS[i];
        size_t first = beginning->depth > 2 ? APPEND_A : 0;
        size_t actions = ACTION_COUNT - first;
        size_t total = 1;
        for (unsigned j = 0; j < beginning->depth; j++)
            total *= actions;
        for (size_t number = 0; number < total; number++, runs++) {
            AUTO(sim_free) Sim *sim = sim_new();
            for (size_t j = 0; j < beginning->count; j++)
                step(sim, beginning->actions[j]);
            size_t rest = number;
            for (unsigned j = 0; j < beginning->depth; j++, rest /= actions)
                step(sim, (Action)(first + rest % actions));
        }
    }
    print_message("%zu sequences\n", runs);
}

static void each_append_copes_with_what_happens_meanwhile(void **state)
{
    (void)state;
    static const MemoryJournalFault faults[] = {MEMORY_JOURNAL_LOSE_REQUEST,
                                                MEMORY_JOURNAL_LOSE_ANSWER, MEMORY_JOURNAL_DELAY};
    static const Action first[][3] = {{FOLLOW_B, FOLLOW_B, FOLLOW_B},
                                      {LEASE_ENDS_A, TAKE_B, APPEND_B}};
    const size_t count = ARRAY_COUNT(MEANWHILE);
    for (size_t number = 0; number < count * count * count * ARRAY_COUNT(faults) * 4; number++) {
        AUTO(sim_free) Sim *sim = sim_new();
        size_t rest = number;
        unsigned tries = 1 + 3 * (rest % 2);
        rest /= 2;
        const Action *begin = first[rest % 2];
        rest /= 2;
        MemoryJournalFault fault = faults[rest % ARRAY_COUNT(faults)];
        rest /= ARRAY_COUNT(faults);
        for (unsigned i = 0; i < 3; i++, rest /= count) {
            sim->meanwhile[i] = begin[i];
            sim->meanwhile[3 + i] = MEANWHILE[rest % count];
        }
        sim->meanwhile_count = MEANWHILE_MAX;
        append_with(sim, 0, fault, tries);
        check(sim, false);
        step(sim, UNSEAL_A);
        while (memory_journal_delayed(sim->engine) > 0)
            step(sim, DELIVER);
        step(sim, APPEND_A);
    }
}

/* Appends and what undoes a fault are more frequent, so that runs get somewhere. */
static Action draw(Random *random, bool may_lose)
{
    static const Action frequent[] = {APPEND_A, APPEND_B, STANDBY_RETURNS, DELIVER,  TAKE_A,
                                      TAKE_B,   FOLLOW_B, RESTART_A,       RESTART_B};
    if (random_below(random, 2) == 0)
        return frequent[random_below(random, ARRAY_COUNT(frequent))];
    return (Action)random_below(random, may_lose ? ACTION_COUNT : PROMOTE_WITH_LOSS);
}

static void long_random_sequences_keep_the_invariants(void **state)
{
    (void)state;
    Random random;
    random_init(&random, test_seed());
    unsigned acked = 0;
    for (unsigned run = 0; run < 100; run++) {
        AUTO(sim_free) Sim *sim = sim_new();
        bool may_lose = run % 4 == 0;
        for (unsigned i = 0; i < 300; i++) {
            if (may_lose && random_below(&random, 40) == 0)
                memory_journal_backup(sim->engine);
            sim->meanwhile_next = 0;
            sim->meanwhile_count = random_below(&random, MEANWHILE_MAX);
            for (size_t j = 0; j < sim->meanwhile_count; j++)
                sim->meanwhile[j] = MEANWHILE[random_below(&random, ARRAY_COUNT(MEANWHILE))];
            step(sim, draw(&random, may_lose));
        }
        for (unsigned i = 0; i < sim->text_count; i++)
            acked += sim->texts[i].outcome == APPEND_DONE;
    }
    print_message("%u appends were acknowledged\n", acked);
    assert_true(acked > 400);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, test_arena_setup, test_arena_teardown)
    const struct CMUnitTest tests[] = {
        TEST(every_short_sequence_keeps_the_invariants),
        TEST(each_append_copes_with_what_happens_meanwhile),
        TEST(long_random_sequences_keep_the_invariants),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
