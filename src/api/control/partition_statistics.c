/* partition_statistics.c - see partition_statistics_int.h. */
#include "api/control/partition_statistics_int.h"

#include "api/core/forward_int.h"
#include "api/core/logical_sizes_int.h"
#include "partition/logical_partitions.h"

enum {
    ONE_BYTES_MAX = 192, /* of one partition, without its keys */
    KEY_BYTES_MAX = 64,  /* of one key, without its value */
    CALL_MS = 8000,      /* another node is asked for a row */
};

#define PART SLICE("statistics")

/* What one look may cost, over all partitions. */
#define COUNT_US_MAX        ((uint64_t)100000)
#define LARGEST_US_MAX      ((uint64_t)1000000)
#define LARGEST_ENTRIES_MAX ((uint64_t)1000000)

/* Bytes of keys that are listed: clients choose the keys, which may have 2 KB each. */
#define KEYS_BYTES_MAX ((size_t)1 << 20)

/* A look at more logical partitions than this is kept for a while; others are always fresh. */
#define FRESH_ENTRIES_MAX ((uint64_t)20000)

/* What is known of a range. */
typedef struct StatisticsRange {
    bool is_elsewhere; /* another node serves it, or it is not asked for */
    Slice told;        /* the row that its owner has sent; empty if there is none */
} StatisticsRange;

typedef struct Statistics {
    WorkerJob job;
    HttpTask task;
    ApiRequest *request;
    Snapshot *snapshot; /* a reference of its own */
    const Container *container;
    StatisticsRange *ranges; /* of the container's */
    size_t elsewhere_count;
    Response response;
    Slice body; /* of the container; empty if another node asks for a row */
    Buf text;
    Status status;
    Error error;

    /* While other nodes are asked; the loop's. */
    size_t left;   /* answers that have not come, and one while they are being asked */
    Error failure; /* the first one, or STATUS_OK */
} Statistics;

typedef struct StatisticsPart {
    NodeCall call;
    Statistics *statistics;
    size_t range;
} StatisticsPart;

/* ---- looking ---- */

typedef struct Look {
    Statistics *statistics;
    LogicalSizes *facts;
    ScanBudget count_budget; /* its entries are those of one partition */
    uint64_t count_entries;
    ScanBudget largest_budget;
    size_t key_bytes_left;
} Look;

static Status name_key(Look *look, PartitionHandle *partition, const LogicalSize *size)
{
    Statistics *s = look->statistics;
    Slice text = SLICE_EMPTY;
    bool found = false;
    TRY(handle_key_text(partition, s->container->schema, size->epk, s->request->arena, &text,
                        &found, &s->error));
    if (!found || text.len > look->key_bytes_left) /* its last item is gone, or it is too long */
        return STATUS_OK;
    look->key_bytes_left -= text.len;
    look->facts->largest[look->facts->largest_count++] = (LogicalLarge){
        .key = arena_copy(&look->facts->arena, text),
        .range = handle_range(partition)->id,
        .items = size->items,
        .bytes = size->bytes,
    };
    return STATUS_OK;
}

static Status find_keys(Look *look, PartitionHandle *partition)
{
    Statistics *s = look->statistics;
    LargestPartitions *top = largest_partitions_new(s->request->arena, STATISTICS_KEYS_MAX);
    bool is_complete = false;
    Slice next;
    TRY(handle_add_largest(partition, top, &look->largest_budget, &is_complete, &next, &s->error));
    size_t count = 0;
    const LogicalSize *list = largest_partitions_list(top, &count);
    uint64_t bytes_min = handle_usage(partition).bytes / STATISTICS_SHARE;
    for (size_t i = 0; i < count && list[i].bytes >= bytes_min; i++)
        TRY(name_key(look, partition, &list[i]));
    return STATUS_OK;
}

static Status look_at(Look *look, size_t index)
{
    Statistics *s = look->statistics;
    PartitionHandle *partition = container_handle_at(s->container, index);
    if (s->ranges[index].is_elsewhere)
        return STATUS_OK;
    look->count_budget.entries = look->count_entries;
    Status status = handle_count_keys(partition, s->container->schema, &look->count_budget,
                                      &look->facts->counts[index], &s->error);
    if (status == STATUS_OK)
        status = find_keys(look, partition);
    /* A partition whose sizes are not known lists no keys; the others still do. */
    return status == STATUS_UNAVAILABLE ? STATUS_OK : status;
}

static Status look_at_all(Statistics *s, uint64_t now_us, LogicalSizes *facts, uint64_t *looked_at)
{
    const Container *container = s->container;
    Look look = {
        .statistics = s,
        .facts = facts,
        .count_budget = {.deadline_us = now_us + COUNT_US_MAX},
        .count_entries = LOGICAL_PARTITIONS_COUNT_ENTRIES / container->range_count + 1000,
        .largest_budget = {.entries = LARGEST_ENTRIES_MAX, .deadline_us = now_us + LARGEST_US_MAX},
        .key_bytes_left = KEYS_BYTES_MAX,
    };
    facts->count = container->range_count;
    facts->counts = ARENA_NEW_ARRAY(&facts->arena, LogicalCount, facts->count);
    facts->largest =
        ARENA_NEW_ARRAY(&facts->arena, LogicalLarge, facts->count * STATISTICS_KEYS_MAX);
    for (size_t i = 0; i < container->range_count; i++)
        TRY(look_at(&look, i));
    *looked_at = LARGEST_ENTRIES_MAX - look.largest_budget.entries;
    return STATUS_OK;
}

/* Returns what is cached, or finds it out now. What is known of a part of the ranges is not kept:
 * they may be others the next time. */
static Status find_facts(Statistics *s, LogicalSizes **out)
{
    Api *api = s->request->api;
    const Container *container = s->container;
    uint32_t number = container->info.number;
    uint64_t now_us = clock_monotonic_us(api->options.clock);
    bool is_whole = s->elsewhere_count == 0;
    *out = is_whole ? logical_sizes_cache_get(api->sizes, LOGICAL_SIZES_STATISTICS, number,
                                              container->ranges_lsn, now_us)
                    : NULL;
    if (*out != NULL)
        return STATUS_OK;
    AUTO(logical_sizes_unref)
    LogicalSizes *facts =
        logical_sizes_new(LOGICAL_SIZES_STATISTICS, number, container->ranges_lsn, now_us);
    uint64_t looked_at = 0;
    TRY(look_at_all(s, now_us, facts, &looked_at));
    if (is_whole && looked_at > FRESH_ENTRIES_MAX)
        logical_sizes_cache_put(api->sizes, facts);
    *out = TAKE(facts);
    return STATUS_OK;
}

/* ---- printing ---- */

static unsigned long long kilobytes(uint64_t bytes)
{
    return (bytes + 1023) / 1024;
}

/* '*next' is the first key that is not printed yet: they are in the order of the partitions. */
static void print_row(Statistics *s, const LogicalSizes *facts, size_t index, size_t *next)
{
    const PartitionRange *range = &s->container->ranges[index];
    PartitionUsage usage = handle_usage(container_handle_at(s->container, index));
    buf_format(&s->text,
               "{\"id\":\"%u\",\"sizeInKB\":%llu,\"documentCount\":%llu,"
               "\"sampledDistinctPartitionKeyCount\":%llu,\"partitionKeys\":[",
               range->id, kilobytes(usage.bytes), (unsigned long long)usage.items,
               (unsigned long long)facts->counts[index].count);
    const char *comma = "";
    for (; *next < facts->largest_count && facts->largest[*next].range == range->id; ++*next) {
        const LogicalLarge *large = &facts->largest[*next];
        buf_format(&s->text, "%s{\"partitionKey\":", comma);
        buf_slice(&s->text, large->key);
        buf_format(&s->text, ",\"sizeInKB\":%llu}", kilobytes(large->bytes));
        comma = ",";
    }
    buf_slice(&s->text, SLICE("]}"));
}

static size_t told_bytes(const Statistics *s)
{
    size_t sum = 0;
    for (size_t i = 0; i < s->container->range_count; i++)
        sum += s->ranges[i].told.len;
    return sum;
}

static void print_rows(Statistics *s, const LogicalSizes *facts)
{
    const char *comma = "";
    size_t next = 0;
    for (size_t i = 0; i < s->container->range_count; i++) {
        const StatisticsRange *range = &s->ranges[i];
        if (range->is_elsewhere && range->told.len == 0)
            continue;
        buf_slice(&s->text, slice_from_cstr(comma));
        comma = ",";
        if (range->is_elsewhere)
            buf_slice(&s->text, range->told);
        else
            print_row(s, facts, i, &next);
    }
}

static void print_all(Statistics *s, const LogicalSizes *facts)
{
    size_t count = s->container->range_count;
    buf_init(&s->text, s->body.len + (count + 1) * ONE_BYTES_MAX + KEYS_BYTES_MAX +
                           facts->largest_count * KEY_BYTES_MAX + told_bytes(s));
    bool is_whole = s->body.len > 0;
    if (is_whole) {
        buf_slice(&s->text, slice_first(s->body, s->body.len - 1));
        buf_slice(&s->text, SLICE(",\"statistics\":["));
    }
    print_rows(s, facts);
    if (is_whole)
        buf_slice(&s->text, SLICE("]}"));
    ASSERT(!buf_full(&s->text));
}

/* ---- the way of a request ---- */

static void on_answer(HttpTask *task)
{
    Statistics *s = CONTAINER_OF(task, Statistics, task);
    Snapshot *snapshot = s->snapshot;
    if (s->status == STATUS_OK) {
        response_own_body(&s->response, &s->text);
        response_send(s->request, &s->response);
    } else {
        respond_error(s->request, &s->error);
    }
    snapshot_unref(snapshot); /* after the answer, whose headers may point into it; 's' is gone */
}

static void on_worker(WorkerJob *job)
{
    Statistics *s = CONTAINER_OF(job, Statistics, job);
    AUTO(logical_sizes_unref) LogicalSizes *facts = NULL;
    s->status = find_facts(s, &facts);
    if (s->status == STATUS_OK)
        print_all(s, facts);
    http_loop_post(s->request->http->loop, &s->task);
}

static Statistics *statistics_new(ApiRequest *r, const Response *response)
{
    forward_keep(r);
    Statistics *s = ARENA_NEW(r->arena, Statistics);
    s->request = r;
    s->snapshot = snapshot_ref(r->snapshot);
    s->container = r->container;
    s->ranges = ARENA_NEW_ARRAY(r->arena, StatisticsRange, r->container->range_count);
    s->response = *response;
    s->job.run = on_worker;
    s->task.run = on_answer;
    s->left = 1;
    s->failure.status = STATUS_OK;
    r->database = NULL;
    r->container = NULL;
    r->snapshot = NULL;
    return s;
}

static Status post_job(Statistics *s, Workers *workers, Error *err)
{
    if (workers_post(workers, &s->job))
        return STATUS_OK;
    snapshot_unref(s->snapshot);
    return request_refuse_busy(err);
}

/* ---- other nodes ---- */

bool statistics_are_asked(const ApiRequest *r)
{
    return slice_equal(forward_header(r, NODE_HEADER_PART), PART);
}

/* Does not wait for other nodes, and has threads of its own (see ApiOptions.node_workers). */
Status statistics_answer(ApiRequest *r, const PartitionRange *range, Error *err)
{
    const ApiOptions *options = &r->api->options;
    if (!handle_is_local(container_handle(r->container, range)))
        return error_set(err, STATUS_NOT_OWNER, SUB_NONE,
                         "This node does not serve the partition key range '%u'.", range->id);
    Response response;
    response_begin(r, &response, 200, response_charge_read(r));
    Statistics *s = statistics_new(r, &response);
    s->elsewhere_count = s->container->range_count - 1;
    for (size_t i = 0; i < s->container->range_count; i++)
        s->ranges[i].is_elsewhere = &s->container->ranges[i] != range;
    return post_job(s, options->node_workers != NULL ? options->node_workers : options->workers,
                    err);
}

/* Later, because a call may be over before it was sent. */
static void on_all_told(HttpTask *task)
{
    Statistics *s = CONTAINER_OF(task, Statistics, task);
    ApiRequest *r = s->request;
    Error err = s->failure;
    s->task.run = on_answer;
    if (err.status != STATUS_OK) {
        Snapshot *snapshot = s->snapshot;
        respond_error(r, &err);
        snapshot_unref(snapshot);
    } else if (post_job(s, r->api->options.workers, &err) != STATUS_OK) {
        respond_error(r, &err);
    }
}

static void part_over(Statistics *s)
{
    if (--s->left == 0)
        http_loop_post(s->request->http->loop, &s->task);
}

static Status read_row(StatisticsPart *part, Error *err)
{
    Statistics *s = part->statistics;
    const NodeCall *call = &part->call;
    const PartitionRange *range = &s->container->ranges[part->range];
    if (call->outcome != NODE_CALL_ANSWERED || call->status == status_http(STATUS_NOT_OWNER) ||
        call->status == status_http(STATUS_GONE))
        return error_set(err, STATUS_NOT_OWNER, SUB_NONE,
                         "A node that serves a part of the container did not tell what it holds.");
    if (call->status != status_http(STATUS_OK))
        return forward_read_error(call, err);
    Json row;
    Error ignored;
    if (json_parse(s->request->arena, call->answer_body, &row, &ignored) != STATUS_OK)
        return STATUS_OK; /* a node of an older program: the row is left out, as it does */
    Json id = json_get(row, SLICE("id"));
    if (json_is(id, JSON_STRING) &&
        slice_equal(json_string(id), arena_format(s->request->arena, "%u", range->id)))
        s->ranges[part->range].told = json_print_arena(s->request->arena, row);
    return STATUS_OK;
}

static void note_failure(Statistics *s, const Error *err)
{
    if (s->failure.status == STATUS_OK)
        s->failure = *err;
}

static void on_row(NodeCall *call)
{
    StatisticsPart *part = CONTAINER_OF(call, StatisticsPart, call);
    Statistics *s = part->statistics;
    Error err;
    Status status = read_row(part, &err);
    if (status == STATUS_NOT_OWNER)
        forward_note_owner(s->request->api, call);
    if (status != STATUS_OK)
        note_failure(s, &err);
    part_over(s);
}

static Status ask_owner(Statistics *s, size_t index, Error *err)
{
    ApiRequest *r = s->request;
    const ApiCluster *cluster = r->api->options.cluster;
    const PartitionRange *range = &s->container->ranges[index];
    ApiOwner owner = cluster->owner(cluster->ctx, range->space);
    if (!owner.is_known || owner.is_local)
        return error_set(err, STATUS_NOT_OWNER, SUB_NONE,
                         "The node that serves a part of the container is being replaced.");
    StatisticsPart *part = ARENA_NEW(r->arena, StatisticsPart);
    part->statistics = s;
    part->range = index;
    const HttpHeader more[] = {
        {SLICE(NODE_HEADER_RANGE), arena_format(r->arena, "%u", range->id)},
        {SLICE(NODE_HEADER_PART), PART},
    };
    part->call = (NodeCall){
        .address = arena_copy(r->arena, slice_from_cstr(owner.address)),
        .method = r->http->method,
        .path = r->http->path,
        .timeout_ms = CALL_MS,
        .answer_bytes_max = KEYS_BYTES_MAX + ONE_BYTES_MAX + STATISTICS_KEYS_MAX * KEY_BYTES_MAX,
        .arena = r->arena,
        .done = on_row,
    };
    part->call.headers = forward_headers(r, more, ARRAY_COUNT(more), &part->call.header_count);
    s->left++;
    node_link_send(r->http->loop, &part->call);
    return STATUS_OK;
}

/* A HEAD has no body, here and at other nodes: there is nothing to learn. */
static void find_elsewhere(Statistics *s)
{
    if (s->request->api->options.cluster == NULL || s->request->is_head)
        return;
    for (size_t i = 0; i < s->container->range_count; i++) {
        bool is_elsewhere = !handle_is_local(container_handle_at(s->container, i));
        s->ranges[i].is_elsewhere = is_elsewhere;
        s->elsewhere_count += is_elsewhere;
    }
}

Status statistics_respond(ApiRequest *r, const Response *response, Slice body, Error *err)
{
    Statistics *s = statistics_new(r, response);
    s->body = body;
    find_elsewhere(s);
    if (LIKELY(s->elsewhere_count == 0))
        return post_job(s, r->api->options.workers, err);
    s->task.run = on_all_told;
    for (size_t i = 0; i < s->container->range_count; i++) {
        Error failure;
        if (s->ranges[i].is_elsewhere && ask_owner(s, i, &failure) != STATUS_OK)
            note_failure(s, &failure);
    }
    part_over(s);
    return STATUS_OK;
}
