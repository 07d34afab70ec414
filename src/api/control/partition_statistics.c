/* partition_statistics.c - see partition_statistics_int.h. */
#include "api/control/partition_statistics_int.h"

#include "api/core/logical_sizes_int.h"
#include "partition/logical_partitions.h"

enum {
    ONE_BYTES_MAX = 192, /* of one partition, without its keys */
    KEY_BYTES_MAX = 64,  /* of one key, without its value */
};

/* What one look may cost, over all partitions. */
#define COUNT_US_MAX        ((uint64_t)100000)
#define LARGEST_US_MAX      ((uint64_t)1000000)
#define LARGEST_ENTRIES_MAX ((uint64_t)1000000)

/* Bytes of keys that are listed: clients choose the keys, which may have 2 KB each. */
#define KEYS_BYTES_MAX ((size_t)1 << 20)

/* A look at more logical partitions than this is kept for a while; others are always fresh. */
#define FRESH_ENTRIES_MAX ((uint64_t)20000)

typedef struct Statistics {
    WorkerJob job;
    HttpTask task;
    ApiRequest *request;
    Snapshot *snapshot; /* a reference of its own */
    const Container *container;
    Response response;
    Slice body; /* of the container */
    Buf text;
    Status status;
    Error error;
} Statistics;

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

/* What another node serves is left out. */
static bool is_elsewhere(const Statistics *s, size_t index)
{
    return s->request->api->options.cluster != NULL &&
           !handle_is_local(container_handle_at(s->container, index));
}

static Status look_at(Look *look, size_t index)
{
    Statistics *s = look->statistics;
    PartitionHandle *partition = container_handle_at(s->container, index);
    if (is_elsewhere(s, index))
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

/* Returns what is cached, or finds it out now. */
static Status find_facts(Statistics *s, LogicalSizes **out)
{
    Api *api = s->request->api;
    const Container *container = s->container;
    uint32_t number = container->info.number;
    uint64_t now_us = clock_monotonic_us(api->options.clock);
    *out = logical_sizes_cache_get(api->sizes, LOGICAL_SIZES_STATISTICS, number,
                                   container->ranges_lsn, now_us);
    if (*out != NULL)
        return STATUS_OK;
    AUTO(logical_sizes_unref)
    LogicalSizes *facts =
        logical_sizes_new(LOGICAL_SIZES_STATISTICS, number, container->ranges_lsn, now_us);
    uint64_t looked_at = 0;
    TRY(look_at_all(s, now_us, facts, &looked_at));
    if (looked_at > FRESH_ENTRIES_MAX)
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
static void print_range(Statistics *s, const LogicalSizes *facts, size_t index, bool is_first,
                        size_t *next)
{
    const PartitionRange *range = &s->container->ranges[index];
    PartitionUsage usage = handle_usage(container_handle_at(s->container, index));
    buf_format(&s->text,
               "%s{\"id\":\"%u\",\"sizeInKB\":%llu,\"documentCount\":%llu,"
               "\"sampledDistinctPartitionKeyCount\":%llu,\"partitionKeys\":[",
               is_first ? "" : ",", range->id, kilobytes(usage.bytes),
               (unsigned long long)usage.items, (unsigned long long)facts->counts[index].count);
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

static void print_all(Statistics *s, const LogicalSizes *facts)
{
    size_t count = s->container->range_count;
    buf_init(&s->text, s->body.len + (count + 1) * ONE_BYTES_MAX + KEYS_BYTES_MAX +
                           facts->largest_count * KEY_BYTES_MAX);
    buf_slice(&s->text, slice_first(s->body, s->body.len - 1));
    buf_slice(&s->text, SLICE(",\"statistics\":["));
    size_t next = 0;
    bool is_first = true;
    for (size_t i = 0; i < count; i++) {
        if (is_elsewhere(s, i))
            continue;
        print_range(s, facts, i, is_first, &next);
        is_first = false;
    }
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

Status statistics_respond(ApiRequest *r, const Response *response, Slice body, Error *err)
{
    Statistics *s = ARENA_NEW(r->arena, Statistics);
    s->request = r;
    s->snapshot = snapshot_ref(r->snapshot);
    s->container = r->container;
    s->response = *response;
    s->body = body;
    s->job.run = on_worker;
    s->task.run = on_answer;
    r->database = NULL;
    r->container = NULL;
    r->snapshot = NULL;
    if (workers_post(r->api->options.workers, &s->job))
        return STATUS_OK;
    snapshot_unref(s->snapshot);
    return request_refuse_busy(err);
}
