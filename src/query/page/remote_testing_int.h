/* remote_testing_int.h - for tests and fuzz targets: targets that "another node" serves, which is
 * this one, by way of all the bytes. Not part of the library. */
#pragma once

#include "query/page/container_testing_int.h"
#include "query/page/remote_batch.h"
#include "query/page/remote_format_int.h"

typedef struct TestRemote {
    QueryRemote remote;
    const QueryTarget *own; /* as the node has them that serves them */
    size_t count;
    const Query *query;
    const QueryPageOptions *options; /* of the page */
    Random *sizes;                   /* chooses smaller batches; NULL for those asked for */
    bool refuses_order;
    bool loses;   /* the next answer */
    Slice plan;   /* of the newest batch, in 'plans' */
    Arena *plans; /* NULL if plans are not told */
    unsigned asked;
} TestRemote;

static inline void test_remote_shrink(TestRemote *t, Slice asked, Buf *out)
{
    RemoteAsk ask;
    ASSERT(remote_ask_read(asked, &ask));
    if (t->sizes != NULL && random_below(t->sizes, 2) == 0) {
        uint32_t count = (uint32_t)random_below(t->sizes, 5) + 1;
        ask.count_max = count < ask.count_max ? count : ask.count_max;
    }
    if (t->sizes != NULL && random_below(t->sizes, 4) == 0)
        ask.bytes_max = (uint32_t)random_below(t->sizes, 400);
    if (t->sizes != NULL && random_below(t->sizes, 4) == 0)
        ask.looks_max = (uint32_t)random_below(t->sizes, 5) + 1;
    remote_ask_write(&ask, out);
}

static inline Status test_remote_ask(void *ctx, const QueryTarget *target, Slice asked,
                                     Arena *arena, Slice *answer, Error *err)
{
    TestRemote *t = ctx;
    QueryPageOptions options = *t->options;
    AUTO(arena_done) Arena own;
    AUTO(buf_done) Buf out;
    AUTO(buf_done) Buf shrunk;
    arena_init(&own, ARENA_SMALL_BYTES);
    buf_init(&out, QUERY_BATCH_ANSWER_BYTES_MAX);
    buf_init(&shrunk, QUERY_ASK_BYTES_MAX);
    t->asked++;
    if (t->loses)
        return error_set(err, STATUS_NOT_OWNER, SUB_NONE, "the other node is gone");
    test_remote_shrink(t, asked, &shrunk);
    ASSERT(target->view == NULL && target->range < t->count);
    options.targets = &t->own[target->range];
    options.target_count = 1;
    RemoteAsk ask;
    QueryTargetWork work;
    Json plan = {0};
    ASSERT(remote_ask_read(asked, &ask));
    if (t->refuses_order && ask.is_ordered)
        remote_refused_write(&out);
    else
        TRY(query_batch(t->query, &options, buf_view(&shrunk), &own, &out, &work, &plan, err));
    if (t->plans != NULL && plan.at != NULL)
        t->plan = json_print_arena(t->plans, plan);
    *answer = arena_copy(arena, buf_view(&out));
    return STATUS_OK;
}

static inline Slice test_remote_plan(void *ctx, const QueryTarget *target UNUSED)
{
    return ((TestRemote *)ctx)->plan;
}

static inline void test_remote_begin(TestRemote *t, const Query *query,
                                     const QueryPageOptions *options, const TestTargets *own)
{
    t->remote = (QueryRemote){.ctx = t, .ask = test_remote_ask, .plan = test_remote_plan};
    t->own = own->list;
    t->count = own->count;
    t->query = query;
    t->options = options;
}

/* Leaves the target to the other node. */
static inline void test_remote_hide(TestRemote *t, QueryTarget *targets, size_t index)
{
    targets[index].view = NULL;
    targets[index].remote = &t->remote;
    targets[index].range = (uint32_t)index;
}
