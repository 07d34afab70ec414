/* remote_batch_fuzz.c - what two nodes say to each other about a target, as any bytes.
 *
 *     input = | container u8 | query and side u8 | what is asked, or an answer |
 *
 * The nodes know each other; nothing relies on that here. Beyond surviving: what is read as
 * something asked is written as the same bytes.
 */
#include "query/eval/query.h"
#include "query/page/page_fuzzing_int.h"
#include "query/page/remote_testing_int.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { ANSWERS_MAX = 4 };

static const char *const QUERIES[] = {
    "SELECT * FROM c",
    "SELECT VALUE c.id FROM c WHERE c.i > 3",
    "SELECT VALUE c.s FROM c ORDER BY c.s DESC",
    "SELECT VALUE c.a FROM c WHERE c.i < 9 ORDER BY c.a, c.n DESC",
    "SELECT c.i, COUNT(1) AS n, MIN(c.s) AS s FROM c GROUP BY c.i",
    "SELECT DISTINCT VALUE c.a FROM c",
    "SELECT VALUE AVG(c.i) FROM c",
};

/* A node that always says the same. */
typedef struct Parrot {
    QueryRemote remote;
    Slice answer;
    unsigned left;
} Parrot;

static Status say(void *ctx, const QueryTarget *target UNUSED, Slice asked UNUSED, Arena *arena,
                  Slice *answer, Error *err)
{
    Parrot *parrot = ctx;
    if (parrot->left-- == 0)
        return error_set(err, STATUS_TIMEOUT, SUB_NONE, "it has said enough");
    *answer = arena_copy(arena, parrot->answer);
    return STATUS_OK;
}

static Slice say_plan(void *ctx, const QueryTarget *target UNUSED)
{
    return ((const Parrot *)ctx)->answer;
}

static void check_status(Status status)
{
    ASSERT(status == STATUS_OK || status == STATUS_BAD_REQUEST || status == STATUS_TIMEOUT ||
           status == STATUS_TOO_LARGE);
}

static void answer_page(const Query *query, QueryPageOptions *options, TestTargets *targets,
                        Slice answer, Arena *arena)
{
    Parrot parrot = {.answer = answer, .left = ANSWERS_MAX};
    parrot.remote = (QueryRemote){.ctx = &parrot, .ask = say, .plan = say_plan};
    QueryTarget *last = &targets->list[targets->count - 1];
    PartitionView *view = last->view;
    last->view = NULL;
    last->remote = &parrot.remote;
    AUTO(buf_done) Buf text;
    buf_init(&text, 1 << 20);
    QueryPage out;
    Error err;
    check_status(query_page(query, options, arena, &text, &out, &err));
    last->view = view;
}

static void ask_batch(const Query *query, QueryPageOptions *options, Slice asked, Arena *arena)
{
    AUTO(buf_done) Buf again;
    AUTO(buf_done) Buf answer;
    buf_init(&again, QUERY_ASK_BYTES_MAX);
    buf_init(&answer, QUERY_BATCH_ANSWER_BYTES_MAX);
    RemoteAsk ask;
    if (remote_ask_read(asked, &ask)) {
        remote_ask_write(&ask, &again);
        ASSERT(slice_equal(buf_view(&again), asked));
    }
    QueryTargetWork work;
    Json plan;
    Error err;
    options->target_count = 1;
    check_status(query_batch(query, options, asked, arena, &answer, &work, &plan, &err));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    TestContainer *t = &fuzz_containers()->list[data[0] % FUZZ_CONTAINERS];
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 64 << 10);
    Slice bytes = arena_copy(&arena, slice_make(data + 2, size - 2));
    Query *query = NULL;
    Error err;
    Slice text = slice_from_cstr(QUERIES[data[1] / 2 % ARRAY_COUNT(QUERIES)]);
    ASSERT(query_parse(&arena, text, JSON_NONE, &query, &err) == STATUS_OK);
    TestTargets targets;
    test_targets_all(t, &targets);
    QueryPageOptions options = {
        .targets = targets.list,
        .target_count = targets.count,
        .schema = t->schema,
        .items_max = 5,
        .bytes_max = 100000,
        .steps_max = 300000,
        .memory_max = (size_t)8 << 20,
        .clock = &t->clock.clock,
        .wants_explain = true,
    };
    if (data[1] % 2 == 0)
        answer_page(query, &options, &targets, bytes, &arena);
    else
        ask_batch(query, &options, bytes, &arena);
    test_targets_close(&targets);
    return 0;
}
