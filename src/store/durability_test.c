/* durability_test.c - the conformance suite of durable engines: it is all there next time.
 *
 * The test that kills a process runs this binary again as the process to be killed (see main): a
 * fork alone would inherit the engine's locks without the threads that hold them.
 */
#include "base/random.h"
#include "base/test_seed.h"
#include "store/store_testing_int.h"

#include <signal.h>

static void opening_again_finds_everything_that_was_committed(const TestEngine *engine)
{
    AUTO(test_folder_done) TestFolder folder;
    test_folder_init(&folder);
    for (uint32_t round = 0; round < 3; round++) {
        AUTO(store_close) Store *store = NULL;
        assert_ok(engine->open(folder.path, &store, err));
        char text[16];
        for (uint32_t j = 0; j < round; j++) {
            (void)snprintf(text, sizeof(text), "%u", j);
            expect_key(store, NULL, 3, text, text);
        }
        expect_key(store, NULL, 3, "gone", NULL);
        expect_key(store, NULL, 4, "dropped", NULL);
        (void)snprintf(text, sizeof(text), "%u", round);
        put_now(store, 3, text, text);
        put_now(store, 3, "gone", "v");
        delete_now(store, 3, "gone");
        put_now(store, 4, "dropped", "v");
        assert_ok(store_drop_spaces(store, 4, 4, err));
        StoreTxn *aborted = store_txn_begin(store);
        store_txn_put(aborted, 3, SLICE("gone"), SLICE("never"));
        store_txn_abort(aborted);
    }
}

/* The process that is killed. Two writers, each with a space of its own and many transactions under
 * way; each acknowledged one is a line on standard output, written by its completion. Transaction n
 * writes some keys, moves "last" on, deletes a key of n - 1, and adds a letter to one set and adds
 * or removes it in another one that takes an operand of each. */
enum { CRASH_WRITERS = 2, CRASH_KEYS = 5, CRASH_WINDOW = 16, CRASH_LETTERS = 26 };

typedef struct Ack {
    uint32_t writer;
    uint32_t number;
} Ack;

static void acknowledge(void *ctx, const Error *err)
{
    const Ack *ack = ctx;
    if (err == NULL && write(STDOUT_FILENO, ack, sizeof(*ack)) != sizeof(*ack))
        _exit(3);
    mem_free(ctx);
}

static Slice crash_key(uint32_t number, uint32_t key, char text[32])
{
    return slice_make(text, (size_t)snprintf(text, 32, "%08u/%u", number, key));
}

/* Values differ in every byte that could be confused: writer, transaction, key. */
static Slice crash_value(uint32_t writer, uint32_t number, uint32_t key, char text[256])
{
    int len = snprintf(text, 256, "writer %u transaction %u key %u ", writer, number, key);
    memset(text + len, 'a' + (char)(number % 26), 100 + key);
    return slice_make(text, (size_t)len + 100 + key);
}

static bool crash_adds(uint32_t number)
{
    return number / CRASH_LETTERS % 2 == 0;
}

static void crash_commit(Store *store, uint32_t writer, uint32_t number)
{
    StoreTxn *txn = store_txn_begin(store);
    char key[32], value[256];
    for (uint32_t i = 0; i < CRASH_KEYS; i++)
        store_txn_put(txn, writer, crash_key(number, i, key),
                      crash_value(writer, number, i, value));
    if (number > 0)
        store_txn_delete(txn, writer, crash_key(number - 1, 0, key));
    store_txn_put(txn, writer, SLICE("last"), slice_make(&number, sizeof(number)));
    char operand[2] = {crash_adds(number) ? '+' : '-', (char)('a' + number % CRASH_LETTERS)};
    store_txn_merge(txn, writer, SLICE("~busy"), slice_make(operand, sizeof(operand)));
    operand[0] = '+';
    int len = snprintf(key, sizeof(key), "~%08u", number / CRASH_LETTERS);
    store_txn_merge(txn, writer, slice_make(key, (size_t)len),
                    slice_make(operand, sizeof(operand)));
    Ack *ack = MEM_NEW(Ack);
    *ack = (Ack){writer, number};
    store_txn_commit(txn, (StoreCompletion){acknowledge, ack});
}

/* The number of the next transaction. */
static uint32_t crash_next(Store *store, uint32_t writer)
{
    AUTO(store_value_release) StoreValue value = {0};
    StoreFound found = STORE_ABSENT;
    assert_ok(store_get(store, NULL, writer, SLICE("last"), STORE_READ_ANY, &value, &found, err));
    uint32_t last = 0;
    if (found != STORE_FOUND)
        return 0;
    assert_int_equal(value.data.len, sizeof(last));
    memcpy(&last, value.data.ptr, sizeof(last));
    return last + 1;
}

NORETURN static void command_write(const TestEngine *engine, const char *path)
{
    Store *store = NULL;
    assert_ok(engine->open(path, &store, err));
    uint32_t next[CRASH_WRITERS];
    for (uint32_t writer = 0; writer < CRASH_WRITERS; writer++)
        next[writer] = crash_next(store, writer);
    for (;;) { /* until it is killed */
        for (uint32_t i = 0; i < CRASH_WINDOW; i++)
            for (uint32_t writer = 0; writer < CRASH_WRITERS; writer++)
                crash_commit(store, writer, next[writer]++);
        AUTO(store_txn_abort) StoreTxn *barrier = store_txn_begin(store);
        assert_ok(store_txn_commit_wait(TAKE(barrier), err));
    }
}

/* Everything up to 'last' is there by content, and nothing beyond it. */
static void expect_whole_history(Store *store, uint32_t writer, uint32_t count)
{
    AUTO(store_cursor_close)
    StoreCursor *cursor = store_cursor_open(store, NULL, writer, SLICE_EMPTY, SLICE("l"));
    for (uint32_t number = 0; number < count; number++) {
        for (uint32_t i = number + 1 < count ? 1 : 0; i < CRASH_KEYS; i++) {
            Slice key = {0}, value = {0};
            bool found = false;
            assert_ok(store_cursor_next(cursor, &key, &value, &found, err));
            assert_true(found);
            char text[256];
            assert_slice(key, crash_key(number, i, text));
            assert_slice(value, crash_value(writer, number, i, text));
        }
    }
    expect_step(cursor, true, NULL);
}

/* The same of the sets: every operand has been applied, in order, and none twice. */
static void expect_whole_sets(Store *store, uint32_t writer, uint32_t count)
{
    for (uint32_t first = 0; first < count; first += CRASH_LETTERS) {
        uint32_t letters = count - first < CRASH_LETTERS ? count - first : CRASH_LETTERS;
        char key[32];
        (void)snprintf(key, sizeof(key), "~%08u", first / CRASH_LETTERS);
        char expected[CRASH_LETTERS + 1] = "abcdefghijklmnopqrstuvwxyz";
        expected[letters] = '\0';
        expect_key(store, NULL, writer, key, expected);
    }
    /* The newest operands that say something about each letter. */
    uint32_t first = count < CRASH_LETTERS ? 0 : count - CRASH_LETTERS;
    bool present[CRASH_LETTERS] = {false};
    for (uint32_t number = first; number < count; number++)
        present[number % CRASH_LETTERS] = crash_adds(number);
    char busy[CRASH_LETTERS + 1];
    size_t len = 0;
    for (uint32_t i = 0; i < CRASH_LETTERS; i++)
        if (present[i])
            busy[len++] = (char)('a' + i);
    busy[len] = '\0';
    expect_key(store, NULL, writer, "~busy", len > 0 ? busy : NULL);
}

/* With relaxed durability, too: only a crash of the machine may lose what was acknowledged. */
static void kill_9_in_a_loop_loses_nothing_acknowledged(const TestEngine *engine)
{
    enum { ROUNDS = 8 };
    AUTO(test_folder_done) TestFolder folder;
    test_folder_init(&folder);
    Random random;
    random_init(&random, test_seed());
    uint32_t acknowledged[CRASH_WRITERS] = {0}; /* how many */
    for (uint32_t round = 0; round < ROUNDS; round++) {
        int out = -1;
        pid_t pid = run_self(engine->name, folder.path, &out);
        Ack ack;
        bool first = true;
        while (read(out, &ack, sizeof(ack)) == sizeof(ack)) {
            if (first) {
                /* The rest of the pipe is read after the end: what it holds was acknowledged. */
                sleep_ms((uint32_t)random_below(&random, 40));
                assert_int_equal(kill(pid, SIGKILL), 0);
                first = false;
            }
            assert_true(ack.writer < CRASH_WRITERS);
            assert_int_equal(ack.number, acknowledged[ack.writer]);
            acknowledged[ack.writer]++;
        }
        (void)close(out);
        int status = wait_for(pid);
        assert_true(WIFSIGNALED(status));
        assert_int_equal(WTERMSIG(status), SIGKILL);

        AUTO(store_close) Store *store = NULL;
        assert_ok(engine->open(folder.path, &store, err));
        for (uint32_t writer = 0; writer < CRASH_WRITERS; writer++) {
            uint32_t count = crash_next(store, writer);
            assert_true(count >= acknowledged[writer]);
            expect_whole_history(store, writer, count);
            expect_whole_sets(store, writer, count);
            acknowledged[writer] = count; /* the next round goes on from there */
        }
    }
    assert_true(acknowledged[0] > ROUNDS);
}

int main(int argc, char **argv)
{
    for (size_t i = 0; argc == 3 && i < ARRAY_COUNT(TEST_ENGINES); i++)
        if (strcmp(argv[1], TEST_ENGINES[i].name) == 0)
            command_write(&TEST_ENGINES[i], argv[2]);
    static const EngineTest tests[] = {
        DURABLE_TEST(opening_again_finds_everything_that_was_committed),
        DURABLE_TEST(kill_9_in_a_loop_loses_nothing_acknowledged),
    };
    return run_on_every_engine("store_durability", tests, ARRAY_COUNT(tests));
}
