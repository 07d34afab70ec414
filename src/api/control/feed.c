/* feed.c - see feed_int.h.
 *
 *     token = | kind | version '1' | type, 2 hex | parent, 8 hex | position, 8 hex | skip, 8 hex |
 *
 * The position is the number of the next resource (kinds 'L', of lists, and 'S', of queries to
 * which each resource gives its results by itself; 'skip' of them were returned), or how many
 * results were returned ('Q', all other queries).
 *
 * A token that was made for another feed is refused. A forged one begins the page elsewhere in the
 * same feed, which its sender may read anyway.
 */
#include "api/control/feed_int.h"

#include "api/core/response_int.h"
#include "base/array.h"
#include "query/eval/query.h"
#include "query/plan/query_traits.h"

#include <stdio.h>

enum { TOKEN_LEN = 2 + 2 + 8 + 8 + 8, ENVELOPE_BYTES = 256 };

typedef struct Position {
    uint32_t at;
    uint32_t skip;
} Position;

static Slice token_print(const ApiRequest *r, char kind, uint32_t parent, Position position)
{
    return arena_format(r->arena, "%c1%02x%08x%08x%08x", kind, (unsigned)r->address.type, parent,
                        position.at, position.skip);
}

static bool hex_field(Slice token, size_t at, size_t len, uint32_t *out)
{
    uint32_t value = 0;
    for (size_t i = at; i < at + len; i++) {
        char c = token.ptr[i];
        bool digit = c >= '0' && c <= '9';
        if (!digit && (c < 'a' || c > 'f'))
            return false;
        value = value << 4 | (uint32_t)(digit ? c - '0' : c - 'a' + 10);
    }
    *out = value;
    return true;
}

static Status token_parse(const ApiRequest *r, Slice token, char kind, uint32_t parent,
                          Position *position, Error *err)
{
    *position = (Position){0};
    if (token.len == 0)
        return STATUS_OK;
    uint32_t type = 0;
    uint32_t token_parent = 0;
    bool good = token.len == TOKEN_LEN && token.ptr[0] == kind && token.ptr[1] == '1' &&
                hex_field(token, 2, 2, &type) && type == (uint32_t)r->address.type &&
                hex_field(token, 4, 8, &token_parent) && token_parent == parent &&
                hex_field(token, 12, 8, &position->at) && hex_field(token, 20, 8, &position->skip);
    if (!good)
        return request_refuse_token(token, err);
    return STATUS_OK;
}

void feed_send(ApiRequest *r, Slice parent_rid, Buf *documents, size_t count, Slice continuation,
               Slice etag, Slice charge)
{
    Slice name = address_feed_name(r->address.type);
    Buf body;
    buf_init(&body, documents->len + ENVELOPE_BYTES);
    buf_format(&body, "{\"_rid\":\"%.*s\",\"%.*s\":[", SLICE_ARG(parent_rid), SLICE_ARG(name));
    buf_slice(&body, buf_view(documents));
    buf_format(&body, "],\"_count\":%zu}", count);
    ASSERT(!buf_full(&body));
    buf_done(documents);

    Response response;
    response_begin(r, &response, 200, charge);
    response_header(&response, SLICE("content-type"), SLICE("application/json"));
    response_header(&response, SLICE("x-ms-item-count"), arena_format(r->arena, "%zu", count));
    if (continuation.len > 0)
        response_header(&response, SLICE("x-ms-continuation"), continuation);
    if (etag.len > 0)
        response_header(&response, SLICE("etag"), etag);
    if (r->container != NULL && r->address.is_feed)
        response_header(&response, SLICE("x-ms-content-path"), r->container->info.rid);
    response_own_body(&response, &body);
    response_send(r, &response);
}

Status feed_list(ApiRequest *r, Feed feed, Error *err)
{
    ASSERT(feed.next != NULL);
    feed.part = WIRE_BODY;
    uint32_t items_max = 0;
    TRY(request_max_items(r, &items_max, err));
    Position from;
    Slice token = request_header(r, "x-ms-continuation");
    TRY(token_parse(r, token, 'L', feed.parent, &from, err));
    Buf documents;
    buf_init(&documents, 2 * PAGE_BYTES_MAX);
    size_t count = 0;
    const WireResource *shown;
    while ((shown = feed.next(&feed, r->snapshot, from.at, r->arena)) != NULL &&
           count < items_max && (count == 0 || documents.len + shown->body.len < PAGE_BYTES_MAX)) {
        if (count++ > 0)
            buf_byte(&documents, ',');
        buf_slice(&documents, shown->body);
        ASSERT(shown->number >= from.at); /* or the list would not end */
        from.at = shown->number + 1;
    }
    Slice continuation = shown == NULL
                             ? SLICE_EMPTY
                             : token_print(r, 'L', feed.parent, (Position){.at = shown->number});
    feed_send(r, feed.parent_rid, &documents, count, continuation, SLICE_EMPTY,
              response_charge_read(r));
    return STATUS_OK;
}

/* A query on its way: made on the loop, run on a worker, answered on the loop. */
typedef struct FeedQuery {
    WorkerJob job;
    HttpTask task;
    ApiRequest *request;
    Feed feed;
    Snapshot *snapshot; /* a reference of its own */
    Slice body;         /* that is still to be read; empty if it was */
    Slice token;
    Query *query;
    uint32_t items_max;
    Position from;
    Status status;
    Error error;
    Buf documents;
    size_t count;
    bool more; /* there are more results, from 'next' on */
    Position next;
} FeedQuery;

/* False if the page is full. */
static bool print_result(FeedQuery *q, Json result)
{
    if (q->count >= q->items_max || (q->count > 0 && q->documents.len >= PAGE_BYTES_MAX))
        return false;
    if (q->count++ > 0)
        buf_byte(&q->documents, ',');
    json_print(result, &q->documents);
    return true;
}

static void end_page(FeedQuery *q, uint32_t at, size_t skip)
{
    q->more = true;
    q->next = (Position){.at = at, .skip = (uint32_t)skip};
}

/* The results of one resource; they end the page if it is full. */
static Status run_on(FeedQuery *q, const WireResource *shown, Arena *scratch)
{
    Json *results = NULL;
    size_t count = 0;
    QueryOptions options = {.clock = q->request->api->options.clock};
    TRY(query_run_with(q->query, options, &shown->document, 1, scratch, &results, &count,
                       &q->error));
    for (size_t i = shown->number == q->from.at ? q->from.skip : 0; i < count && !q->more; i++) {
        if (!print_result(q, results[i]))
            end_page(q, shown->number, i);
    }
    return STATUS_OK;
}

/* Resource by resource, for a query of which each resource gives results by itself. */
static Status run_stream(FeedQuery *q)
{
    const Api *api = q->request->api;
    uint64_t deadline_us = clock_monotonic_us(api->options.clock) + api->limits.us_max;
    AUTO(arena_done) Arena scratch;
    arena_init(&scratch, ARENA_SMALL_BYTES);
    uint32_t from = q->from.at;
    const WireResource *shown;
    while (!q->more && (shown = q->feed.next(&q->feed, q->snapshot, from, &scratch)) != NULL) {
        if (from != q->from.at && clock_monotonic_us(api->options.clock) >= deadline_us) {
            end_page(q, shown->number, 0);
            break;
        }
        uint32_t next = shown->number + 1;
        TRY(run_on(q, shown, &scratch));
        from = next;
        arena_reset(&scratch);
    }
    return STATUS_OK;
}

/* Over all resources at once. */
static Status run_whole(FeedQuery *q)
{
    ApiRequest *r = q->request;
    size_t capacity = 0;
    size_t count = 0;
    Json *documents = NULL;
    const WireResource *shown;
    for (uint32_t from = 0; (shown = q->feed.next(&q->feed, q->snapshot, from, r->arena)) != NULL;
         from = shown->number + 1) {
        ARRAY_GROW_IN(r->arena, documents, count, capacity, 64);
        documents[count++] = shown->document;
    }
    Json *results = NULL;
    size_t result_count = 0;
    QueryOptions options = {.clock = r->api->options.clock};
    TRY(query_run_with(q->query, options, documents, count, r->arena, &results, &result_count,
                       &q->error));
    for (size_t i = q->from.at; i < result_count && !q->more; i++) {
        if (!print_result(q, results[i]))
            end_page(q, (uint32_t)i, 0);
    }
    return STATUS_OK;
}

static Status run_query(FeedQuery *q)
{
    TRY(query_is_streaming(q->query) ? run_stream(q) : run_whole(q));
    if (buf_full(&q->documents))
        return error_set(&q->error, STATUS_TOO_LARGE, SUB_RESPONSE_TOO_LARGE,
                         "One result of the query is larger than a page of %zu bytes.",
                         PAGE_BYTES_MAX);
    return STATUS_OK;
}

static char token_kind(const FeedQuery *q)
{
    return query_is_streaming(q->query) ? 'S' : 'Q';
}

static void on_answer(HttpTask *task)
{
    FeedQuery *q = CONTAINER_OF(task, FeedQuery, task);
    ApiRequest *r = q->request;
    snapshot_unref(q->snapshot);
    if (q->status != STATUS_OK) {
        buf_done(&q->documents);
        respond_error(r, &q->error);
        return;
    }
    Slice continuation =
        q->more ? token_print(r, token_kind(q), q->feed.parent, q->next) : SLICE_EMPTY;
    feed_send(r, q->feed.parent_rid, &q->documents, q->count, continuation, SLICE_EMPTY,
              response_charge_query(r));
}

/* The body is not needed after the call. */
static Status read_query(FeedQuery *q, Slice body, Error *err)
{
    ApiRequest *r = q->request;
    Slice text;
    Json parameters;
    TRY(query_request(r->arena, body, &text, &parameters, err));
    /* A Query borrows from its text. */
    TRY(query_parse(r->arena, arena_copy(r->arena, text), parameters, &q->query, err));
    return token_parse(r, q->token, token_kind(q), q->feed.parent, &q->from, err);
}

static Status read_and_run(FeedQuery *q)
{
    if (q->body.len > 0)
        TRY(read_query(q, q->body, &q->error));
    return run_query(q);
}

static void on_worker(WorkerJob *job)
{
    FeedQuery *q = CONTAINER_OF(job, FeedQuery, job);
    q->status = read_and_run(q);
    http_loop_post(q->request->http->loop, &q->task);
}

Status feed_query(ApiRequest *r, Feed feed, Error *err)
{
    ASSERT(feed.next != NULL);
    FeedQuery *q = ARENA_NEW(r->arena, FeedQuery);
    TRY(request_max_items(r, &q->items_max, err));
    q->job.run = on_worker;
    q->task.run = on_answer;
    q->request = r;
    q->feed = feed;
    q->feed.part = WIRE_DOCUMENT;
    q->token = arena_copy(r->arena, request_header(r, "x-ms-continuation"));
    if (r->http->body.len > LOOP_QUERY_BYTES_MAX)
        q->body = arena_copy(r->arena, r->http->body);
    else
        TRY(read_query(q, r->http->body, err));
    q->feed.parent_rid = arena_copy(r->arena, feed.parent_rid);
    q->snapshot = snapshot_ref(r->snapshot);
    buf_init(&q->documents, 2 * PAGE_BYTES_MAX);
    r->container =
        NULL; /* these belong to the loop's snapshot, which may be gone before the answer */
    r->database = NULL;
    r->user = NULL;
    if (workers_post(r->api->options.workers, &q->job))
        return STATUS_OK;
    snapshot_unref(q->snapshot);
    return request_refuse_busy(err);
}
