/* advise_container.c - see advise_container.h.
 *
 *     range 0   |====....|==......|====....|   The life of a range is cut into spans of time. Pages
 *     range 1   |==......|====....|==......|   are read from the beginning of each, in turn, until
 *               first                   now    the range has given its part.
 */
#include "cli/advise_container.h"

#include "base/date.h"
#include "base/encoding.h"
#include "cli/connection.h"

#include <math.h>
#include <stdio.h>
#include <time.h>

enum {
    RANGES_MAX = 4096,
    SPANS = 8,
    PAGE_ITEMS = 100,
    TRIES_MAX = 100,     /* of a request that is throttled */
    WAIT_MS_MAX = 10000, /* for one of them */
    WAIT_MS_DEFAULT = 100,
};

typedef struct Source {
    Client *client;
    Slice database;
    Slice container;
    Arena *arena; /* for what lives as long as the advice */
    Sample *sample;
    int64_t now_s; /* by the server's clock */
} Source;

typedef struct Range {
    Slice id;
    uint64_t items;
} Range;

/* A span of time of one range; [start, end). */
typedef struct Span {
    int64_t start_s; /* 0 for the beginning */
    int64_t end_s;
    Slice etag; /* where to go on; empty at first */
    bool is_read;
} Span;

/* ---- asking ---- */

static void wait_for_retry(const ClientCall *call)
{
    uint64_t ms = WAIT_MS_DEFAULT;
    Slice text = client_header(call, SLICE("x-ms-retry-after-ms"));
    if (!slice_to_u64(text, &ms) || ms > WAIT_MS_MAX)
        ms = ms > WAIT_MS_MAX ? WAIT_MS_MAX : WAIT_MS_DEFAULT;
    struct timespec pause = {.tv_sec = (time_t)(ms / 1000), .tv_nsec = (long)(ms % 1000) * 1000000};
    (void)nanosleep(&pause, NULL); /* an interrupted wait is a short one */
}

/* Asks until the server has an answer other than "later"; 200, or 304 if 'may_be_unchanged'. */
static Status ask(const Source *source, ClientCall *call, bool may_be_unchanged, Error *err)
{
    for (int i = 0; i < TRIES_MAX; i++) {
        ClientCall *ended = NULL;
        client_start(source->client, call);
        TRY(client_wait(source->client, -1, &ended, err));
        ASSERT(ended == call);
        if (call->error.status != STATUS_OK) {
            *err = call->error;
            return err->status;
        }
        if (call->http_status == 200 || (may_be_unchanged && call->http_status == 304))
            return STATUS_OK;
        if (call->http_status != 429)
            return connection_refused(call, err);
        wait_for_retry(call);
    }
    return error_set(err, STATUS_UNAVAILABLE, SUB_NONE,
                     "the container is too busy: every request is throttled");
}

static ClientCall about(const Source *source, Arena *arena, const char *prefix, const char *rest,
                        Slice type)
{
    Slice keep = SLICE("-_.~");
    Slice database = percent_encode(arena, source->database, keep);
    Slice container = percent_encode(arena, source->container, keep);
    return (ClientCall){
        .path = arena_format(arena, "%s/dbs/%.*s/colls/%.*s%s", prefix, SLICE_ARG(database),
                             SLICE_ARG(container), rest),
        .resource_type = type,
        .resource_link = arena_format(arena, "dbs/%.*s/colls/%.*s", SLICE_ARG(source->database),
                                      SLICE_ARG(source->container)),
        .arena = arena,
    };
}

/* ---- the definition ---- */

static Status not_understood(Error *err)
{
    return error_set(err, STATUS_UNAVAILABLE, SUB_NONE,
                     "the server's answer is not understood; is it of another version?");
}

static Status read_definition(const Source *source, AdviseContainer *out, Error *err)
{
    Json body;
    ClientCall call = about(source, source->arena, "", "", SLICE("colls"));
    TRY(ask(source, &call, false, err));
    TRY(json_parse(source->arena, call.body, &body, err));
    JsonIter it = json_iter(json_get(json_get(body, SLICE("partitionKey")), SLICE("paths")));
    while (json_next(&it) && out->key.path_count < PARTITION_KEY_PATHS_MAX) {
        size_t position = 0;
        if (!json_is(it.value, JSON_STRING) ||
            !property_path_parse(source->arena, json_string(it.value),
                                 &out->key.paths[out->key.path_count], &position))
            return not_understood(err);
        out->key.path_count++;
    }
    out->key.kind = out->key.path_count > 1 ? KEY_HIERARCHICAL : KEY_SINGLE;
    IndexPolicy *policy = NULL;
    TRY(index_policy_new(source->arena, json_get(body, SLICE("indexingPolicy")), out->key.paths,
                         out->key.path_count, &policy, err));
    out->policy = policy;
    return STATUS_OK;
}

/* ---- ranges ---- */

/* It becomes the value of a header. */
static bool is_range_id(Slice id)
{
    for (size_t i = 0; i < id.len; i++) {
        if (id.ptr[i] < '0' || id.ptr[i] > '9')
            return false;
    }
    return id.len > 0 && id.len < 20;
}

static Status read_ranges(Source *source, Range *out, size_t *count, Error *err)
{
    Json body;
    ClientCall call = about(source, source->arena, "/_orrery", "/layout", SLICE("colls"));
    TRY(ask(source, &call, false, err));
    TRY(json_parse(source->arena, call.body, &body, err));
    if (!json_to_i64(json_get(body, SLICE("time")), &source->now_s))
        return not_understood(err);
    Json missing = json_get(body, SLICE("missingRanges"));
    if (json_is(missing, JSON_ARRAY) && json_count(missing) > 0)
        return error_set(err, STATUS_UNAVAILABLE, SUB_NONE,
                         "the nodes that serve %zu of the container's partitions do not answer; "
                         "try again later",
                         json_count(missing));
    *count = 0;
    JsonIter it = json_iter(json_get(body, SLICE("ranges")));
    while (json_next(&it) && *count < RANGES_MAX) {
        Json id = json_get(it.value, SLICE("id"));
        int64_t items = 0;
        if (!json_is(id, JSON_STRING) || !is_range_id(json_string(id)) ||
            !json_to_i64(json_get(it.value, SLICE("items")), &items) || items < 0)
            return not_understood(err);
        out[(*count)++] = (Range){json_string(id), (uint64_t)items};
        source->sample->population += (uint64_t)items;
    }
    return STATUS_OK;
}

/* ---- recorded queries ---- */

/* A server that records none, or is of an older version, has none. */
static Status read_recorded(const Source *source, AdviseContainer *out, Error *err)
{
    ClientCall call = about(source, source->arena, "/_orrery", "/queries?by=executions&count=1000",
                            SLICE("colls"));
    Status status = ask(source, &call, false, err);
    if (status != STATUS_OK && (call.http_status == 400 || call.http_status == 404))
        return STATUS_OK;
    if (status != STATUS_OK)
        return status;
    Json body;
    TRY(json_parse(source->arena, call.body, &body, err));
    return workload_recorded(source->arena, body, out->key.paths, out->key.path_count,
                             &out->recorded, err);
}

/* ---- pages ---- */

/* Takes the items of a page that are of the span; '*first_s' becomes the time of the first. */
static Status take_page(const Source *source, Json body, Span *span, uint64_t *left,
                        int64_t *first_s, Error *err)
{
    JsonIter it = json_iter(json_get(body, SLICE("Documents")));
    bool is_first = true;
    if (it.left == 0)
        span->is_read = true; /* a server that has nothing must not keep us asking */
    while (json_next(&it) && *left > 0) {
        int64_t ts = 0;
        if (!json_to_i64(json_get(it.value, SLICE("_ts")), &ts))
            return not_understood(err);
        if (is_first)
            *first_s = ts;
        is_first = false;
        if (ts >= span->end_s) {
            span->is_read = true;
            continue;
        }
        TRY(sample_add(source->sample, it.value, err));
        --*left;
    }
    return STATUS_OK;
}

/* Reads the next page of a span. */
static Status read_page(const Source *source, const Range *range, Span *span, uint64_t *left,
                        int64_t *first_s, Error *err)
{
    AUTO(arena_done) Arena arena;
    arena_init(&arena, ARENA_LARGE_BYTES);
    ClientHeader headers[5] = {
        {"a-im", SLICE("Incremental Feed")},
        {"x-ms-documentdb-partitionkeyrangeid", range->id},
        {"x-ms-max-item-count",
         arena_format(&arena, "%llu",
                      (unsigned long long)(*left < PAGE_ITEMS ? *left : PAGE_ITEMS))},
    };
    size_t count = 3;
    char date[DATE_LEN];
    if (span->start_s > 0) {
        date_print(span->start_s - 1, date); /* the feed begins after that second */
        headers[count++] = (ClientHeader){"if-modified-since", slice_make(date, DATE_LEN)};
    }
    if (span->etag.len > 0)
        headers[count++] = (ClientHeader){"if-none-match", span->etag};
    ClientCall call = about(source, &arena, "", "/docs", SLICE("docs"));
    call.headers = headers;
    call.header_count = count;
    TRY(ask(source, &call, true, err));
    if (call.http_status == 304) {
        span->is_read = true;
        return STATUS_OK;
    }
    Json body;
    TRY(json_parse(&arena, call.body, &body, err));
    span->etag = arena_copy(source->arena, client_header(&call, SLICE("etag")));
    if (span->etag.len == 0 || !json_is(json_get(body, SLICE("Documents")), JSON_ARRAY))
        return not_understood(err);
    return take_page(source, body, span, left, first_s, err);
}

/* Cuts the time from the first item until now into equal spans; the first one has been begun. */
static size_t cut_spans(Span *spans, int64_t first_s, int64_t now_s)
{
    int64_t length = now_s - first_s + 1;
    if (first_s <= 0 || length < SPANS)
        return 1;
    for (int64_t i = 0; i < SPANS; i++) {
        if (i > 0)
            spans[i] = (Span){.start_s = first_s + length * i / SPANS};
        spans[i].end_s = i + 1 < SPANS ? first_s + length * (i + 1) / SPANS : INT64_MAX;
    }
    return SPANS;
}

static Status read_range(const Source *source, const Range *range, uint64_t quota, Error *err)
{
    Span spans[SPANS] = {{.end_s = INT64_MAX}};
    size_t count = 1;
    uint64_t left = quota;
    int64_t first_s = 0;
    int64_t ignored = 0;
    TRY(read_page(source, range, &spans[0], &left, &first_s, err));
    if (range->items > quota)
        count = cut_spans(spans, first_s, source->now_s);
    for (bool is_more = true; is_more && left > 0;) {
        is_more = false;
        for (size_t i = 0; i < count && left > 0; i++) {
            if (!spans[i].is_read)
                TRY(read_page(source, range, &spans[i], &left, &ignored, err));
            is_more = is_more || !spans[i].is_read;
        }
    }
    return STATUS_OK;
}

Status advise_container_read(Client *client, Slice database, Slice container, Sample *sample,
                             Arena *arena, AdviseContainer *out, Error *err)
{
    Source source = {.client = client,
                     .database = database,
                     .container = container,
                     .arena = arena,
                     .sample = sample};
    Range *ranges = ARENA_NEW_ARRAY(arena, Range, RANGES_MAX);
    size_t count = 0;
    *out = (AdviseContainer){0};
    TRY(read_definition(&source, out, err));
    TRY(read_recorded(&source, out, err));
    TRY(read_ranges(&source, ranges, &count, err));
    /* Fewer than fit, since each range rounds up, so that the sample is not thinned. */
    double wanted = (double)sample->limits.items_max - 1 - (double)count;
    double share = sample->population > 0 ? fmax(wanted, 1) / (double)sample->population : 0;
    for (size_t i = 0; i < count; i++) {
        if (ranges[i].items == 0)
            continue;
        uint64_t quota = (uint64_t)((double)ranges[i].items * (share < 1 ? share : 1)) + 1;
        TRY(read_range(&source, &ranges[i], quota, err));
    }
    return STATUS_OK;
}
