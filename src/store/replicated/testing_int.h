/* testing_int.h - for tests: a store on a journal of its own, that owns each space as
 * soon as something is written to it.
 *
 * It does what the node of a cluster does: a space is made in the journal before its first
 * transaction, and taken over from an earlier life of the node.
 */
#pragma once

#include "base/cond.h"
#include "base/testing.h"
#include "journal/memory/memory_journal.h"
#include "journal/postgres/postgres_journal.h"
#include "store/replicated/replicated_int.h"

#include <sys/stat.h>
#include <unistd.h>

static const uint8_t TEST_CLUSTER_SECRET[JOURNAL_SECRET_BYTES] = {7, 1};

/* The only node of a cluster, with its journal. */
typedef struct TestAlone {
    MemoryJournalEngine *engine; /* NULL if the journal is PostgreSQL's */
    Journal *journal;
    JournalMember member;
    pthread_mutex_t lock; /* guards the lane of the journal for nodes */
    EngineOps ops;
    const EngineOps *inner;
} TestAlone;

static inline JournalMember test_join(Journal *journal, const char *name, uint64_t of_folder)
{
    JournalMember member = {0};
    JournalJoin join = {.name = slice_from_cstr(name),
                        .address = SLICE("127.0.0.1:1"),
                        .advertise = SLICE("http://127.0.0.1:2/"),
                        .region = SLICE("here"),
                        .incarnation_of_folder = of_folder};
    Error err = {0};
    Status status = STATUS_UNAVAILABLE;
    while (status == STATUS_UNAVAILABLE) /* answers may be lost */
        status = journal_join(journal, &join, &member, &err);
    if (status != STATUS_OK)
        fail_msg("cannot join: %s", err.message);
    return member;
}

/* The place at the end of a space's log, whose owner the space has. */
static inline JournalPlace test_tail(Journal *journal, StoreSpace space, bool *found)
{
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 1024);
    const JournalOwner *owners = NULL;
    size_t count = 0;
    assert_ok(journal_owners(journal, JOURNAL_LANE_NODE, &space, 1, &arena, &owners, &count, err));
    *found = count == 1;
    return count == 1 ? owners[0].tail : (JournalPlace){0};
}

static inline void test_create_space(Journal *journal, StoreSpace space, const char *node,
                                     uint64_t incarnation)
{
    JournalNewSpace one = {
        .space = space, .node = slice_from_cstr(node), .incarnation = incarnation};
    assert_ok(journal_create_spaces(journal, JOURNAL_LANE_NODE, &one, 1, err));
}

/* A space of an earlier life of the node is taken over. */
static inline JournalPlace test_take_own(const TestAlone *alone, StoreSpace space)
{
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 1024);
    const JournalOwner *owners = NULL;
    size_t count = 0;
    assert_ok(
        journal_owners(alone->journal, JOURNAL_LANE_NODE, &space, 1, &arena, &owners, &count, err));
    assert_int_equal(count, 1);
    JournalOwner owner = owners[0];
    bool done = true;
    if (owner.incarnation != alone->member.incarnation)
        assert_ok(
            journal_take_over(alone->journal, space, owner.tail.epoch, &arena, &owner, &done, err));
    assert_true(done);
    return owner.tail;
}

static inline void test_own_on_demand(Engine *engine, StoreSpace space)
{
    Replication *replication = replication_of(engine);
    TestAlone *alone = replication->hooks.ctx;
    if (replication_place(replication, space).role == SPACE_OWNED)
        return;
    pthread_mutex_lock(&alone->lock); /* the lane is for one thread at a time */
    test_create_space(alone->journal, space, "alone", alone->member.incarnation);
    JournalPlace tail = test_take_own(alone, space);
    pthread_mutex_unlock(&alone->lock);
    assert_ok(replication_own(replication, space, &tail, cond_after_ms(10000), err));
}

static inline void test_submit(Engine *engine, EngineTxn *first)
{
    const TestAlone *alone = replication_of(engine)->hooks.ctx;
    for (const EngineTxn *txn = first; txn != NULL; txn = txn->next) {
        if (txn->bytes > 0)
            test_own_on_demand(engine, txn->space);
    }
    alone->inner->submit(engine, first);
}

/* The copy of a space begins again, empty, where the log is: a test writes to it again, which no
 * node of a cluster does. */
static inline Status test_begin_empty(Replication *replication, const ReplicaPlace *place,
                                      Error *err)
{
    AUTO(tree_done) Tree tree = {0};
    place_put(&tree, place->space, STORED_WHOLE, &place->applied);
    EngineWrites writes = {.tree = tree};
    pthread_mutex_lock(&replication->writing);
    Status status = replication_write(replication, &writes, 1, err);
    pthread_mutex_unlock(&replication->writing);
    pthread_mutex_lock(&replication->lock);
    ReplicaSpace *space = spaces_get(replication, place->space);
    space->role = SPACE_FOLLOWED;
    space->applied = place->applied;
    space->is_stored = true;
    pthread_mutex_unlock(&replication->lock);
    return status;
}

static inline Status test_drop(Engine *engine, StoreSpace first, StoreSpace last, Error *err)
{
    enum { PLACES_MAX = 64 };
    Replication *replication = replication_of(engine);
    const TestAlone *alone = replication->hooks.ctx;
    ReplicaPlace places[PLACES_MAX];
    size_t count = replication_places(replication, places, PLACES_MAX);
    assert_true(count <= PLACES_MAX);
    TRY(alone->inner->drop(engine, first, last, err));
    for (size_t i = 0; i < count; i++)
        if (places[i].space >= first && places[i].space <= last)
            TRY(test_begin_empty(replication, &places[i], err));
    return STATUS_OK;
}

static inline void test_close(Engine *engine)
{
    TestAlone *alone = replication_of(engine)->hooks.ctx;
    alone->inner->close(engine);
    journal_close(alone->journal);
    memory_journal_engine_free(alone->engine);
    (void)pthread_mutex_destroy(&alone->lock);
    mem_free(alone);
}

static inline void test_ignore_applied(void *ctx, StoreSpace space, uint64_t seq)
{
    (void)ctx;
    (void)space;
    (void)seq;
}

static inline void test_never_lost(void *ctx, StoreSpace space, const Error *reason)
{
    (void)ctx;
    fail_msg("space %llu was lost: %s", (unsigned long long)space, reason->message);
}

static inline void test_never_behind(void *ctx, StoreSpace space)
{
    (void)ctx;
    fail_msg("space %llu is behind", (unsigned long long)space);
}

/* Owns all that the node had in the journal before: a store that is opened again shows it. */
static inline void test_own_all(TestAlone *alone, Replication *replication)
{
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 1024);
    const JournalOwner *owners = NULL;
    size_t count = 0;
    assert_ok(
        journal_owners(alone->journal, JOURNAL_LANE_NODE, NULL, 0, &arena, &owners, &count, err));
    for (size_t i = 0; i < count; i++) {
        JournalPlace tail = test_take_own(alone, owners[i].space);
        assert_ok(replication_own(replication, owners[i].space, &tail, cond_after_ms(30000), err));
    }
}

/* With a journal that was joined; takes 'alone' over. */
static inline Status test_open_alone(const char *folder, const StoreMerge *merge, TestAlone *alone,
                                     Store **out, Error *err)
{
    assert_int_equal(pthread_mutex_init(&alone->lock, NULL), 0);
    ReplicatedStoreOptions options = {
        .local = {.path = folder, .cache_bytes = (size_t)8 << 20, .merge = merge},
        .journal = alone->journal,
        .hooks = {.ctx = alone,
                  .applied = test_ignore_applied,
                  .lost = test_never_lost,
                  .behind = test_never_behind},
        .clock = clock_real(),
    };
    Engine *engine = NULL;
    TRY(replicated_engine_open(&options, &engine, err));
    alone->inner = engine->ops;
    alone->ops = *engine->ops;
    alone->ops.submit = test_submit;
    alone->ops.drop = test_drop;
    alone->ops.close = test_close;
    engine->ops = &alone->ops;
    test_own_all(alone, replication_of(engine));
    return store_open(engine, NULL, out, err);
}

static inline Status test_open_on_memory(const char *folder, const StoreMerge *merge, Store **out,
                                         Error *err)
{
    TestAlone *alone = MEM_NEW(TestAlone);
    alone->engine = memory_journal_engine_new(1);
    memory_journal_open(alone->engine, TEST_CLUSTER_SECRET, NULL, &alone->journal);
    alone->member = test_join(alone->journal, "alone", 0);
    return test_open_alone(folder, merge, alone, out, err);
}

/* ---- PostgreSQL ---- */

/* Runs a command of test/postgres-pair.sh; its first line goes to 'out'. */
static inline void test_pair(const char *command, const char *folder, const char *more, char *out,
                             size_t size)
{
    /* The root of the source tree is four folders above this file. */
    static const char file[] = __FILE__;
    int len = (int)(strlen(file) - strlen("src/store/replicated/testing_int.h"));
    char text[1024];
    (void)snprintf(text, sizeof(text), "%.*stest/postgres-pair.sh %s %s %s", len, file, command,
                   folder, more);
    FILE *pipe = popen(text, "re"); /* NOLINT(cert-env33-c): a script of ours */
    assert_non_null(pipe);
    if (fgets(out, (int)size, pipe) == NULL)
        out[0] = '\0';
    out[strcspn(out, "\n")] = '\0';
    assert_int_equal(pclose(pipe), 0);
}

/* The folder of a pair of servers, which end with this process. A process that it has started finds
 * it in its environment. */
static inline const char *test_pair_folder(void)
{
    static const char name[] = "ORRERY_TEST_PAIR";
    const char *found = getenv(name); /* NOLINT(concurrency-mt-unsafe): one thread */
    if (found != NULL)
        return found;
    char folder[] = "/tmp/orrery_pair_XXXXXX";
    assert_non_null(mkdtemp(folder));
    assert_int_equal(chmod(folder, 0755), 0);
    char more[32], out[512];
    (void)snprintf(more, sizeof(more), "%d", (int)getpid());
    test_pair("start", folder, more, out, sizeof(out));
    assert_int_equal(setenv(name, folder, 1), 0); /* NOLINT(concurrency-mt-unsafe): one thread */
    return getenv(name);                          /* NOLINT(concurrency-mt-unsafe): one thread */
}

/* A folder without an incarnation begins a new cluster, of which it is the only node. */
static inline Status test_open_on_postgres(const char *folder, const StoreMerge *merge, Store **out,
                                           Error *err)
{
    char path[128], url[512];
    (void)snprintf(path, sizeof(path), "%s/incarnation", folder);
    test_pair("url", test_pair_folder(), "", url, sizeof(url));
    unsigned long long incarnation = 0;
    FILE *file = fopen(path, "re");
    if (file != NULL) {
        assert_int_equal(fscanf(file, "%llu", &incarnation), 1); /* NOLINT(cert-err34-c) */
        (void)fclose(file);                                      /* only read from */
    } else {
        char ignored[64];
        test_pair("sql", test_pair_folder(), "a 'DROP SCHEMA IF EXISTS orrery CASCADE'", ignored,
                  sizeof(ignored));
    }
    TestAlone *alone = MEM_NEW(TestAlone);
    PostgresJournalOptions options = {.url = url};
    memcpy(options.secret, TEST_CLUSTER_SECRET, sizeof(options.secret));
    TRY(postgres_journal_open(&options, &alone->journal, err));
    alone->member = test_join(alone->journal, "alone", incarnation);
    file = fopen(path, "we");
    assert_non_null(file);
    assert_true(fprintf(file, "%llu", (unsigned long long)alone->member.incarnation) > 0);
    assert_int_equal(fclose(file), 0);
    return test_open_alone(folder, merge, alone, out, err);
}
