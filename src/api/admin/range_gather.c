/* range_gather.c - see range_gather_int.h. */
#include "api/admin/range_gather_int.h"

#include "api/core/forward_int.h"

#include <stdlib.h>
#include <time.h>

enum {
    ASKED_MAX = 256,   /* nodes */
    ROUNDS_MAX = 20,   /* of asking for what is left */
    ROUND_MS = 50,     /* between two of them */
    CALL_MS_MIN = 100, /* of one call: no call takes more than half of the time that is left */
};

/* ---- the ranges ---- */

static int compare(const void *left, const void *right)
{
    const GatherRange *a = left;
    const GatherRange *b = right;
    uint32_t first = a->container->info.number;
    uint32_t second = b->container->info.number;
    if (first != second)
        return first < second ? -1 : 1;
    return (a->range->id > b->range->id) - (a->range->id < b->range->id);
}

static size_t add_ranges(GatherRange *out, const Container *container, size_t row)
{
    for (size_t i = 0; i < container->range_count; i++)
        out[i] = (GatherRange){.container = container, .range = &container->ranges[i], .row = row};
    return container->range_count;
}

static size_t count_ranges(const OrreryPage *page)
{
    if (page->container != NULL)
        return page->container->range_count;
    size_t count = 0;
    SnapshotWalk walk = {0};
    while (snapshot_next(page->snapshot, &walk))
        count += walk.container->range_count;
    return count;
}

void range_gather_init(RangeGather *gather, OrreryPage *page)
{
    gather->page = page;
    gather->ranges = ARENA_NEW_ARRAY(page->request->arena, GatherRange, count_ranges(page) + 1);
    gather->count = 0;
    size_t row = 0;
    SnapshotWalk walk = {0};
    if (page->container != NULL)
        gather->count = add_ranges(gather->ranges, page->container, 0);
    else
        while (snapshot_next(page->snapshot, &walk))
            gather->count += add_ranges(gather->ranges + gather->count, walk.container, row++);
    qsort(gather->ranges, gather->count, sizeof(GatherRange), compare);
}

/* The place of the first range that is not before the given one. */
static size_t find_place(const RangeGather *gather, uint64_t container, uint64_t range)
{
    size_t low = 0;
    size_t high = gather->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const GatherRange *at = &gather->ranges[middle];
        uint32_t number = at->container->info.number;
        if (number < container || (number == container && at->range->id < range))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

void range_gather_keep(RangeGather *gather, uint32_t range)
{
    ASSERT(gather->page->container != NULL);
    uint32_t container = gather->page->container->info.number;
    size_t place = find_place(gather, container, range);
    bool is_there = place < gather->count && gather->ranges[place].range->id == range;
    if (is_there)
        gather->ranges[0] = gather->ranges[place];
    gather->count = is_there ? 1 : 0;
}

const GatherRange *range_gather_claim(RangeGather *gather, uint64_t container, uint64_t range)
{
    size_t place = find_place(gather, container, range);
    GatherRange *at = &gather->ranges[place];
    if (place == gather->count || at->container->info.number != container ||
        at->range->id != range || at->is_taken)
        return NULL;
    at->is_taken = true;
    return at;
}

bool range_gather_is_complete(const RangeGather *gather)
{
    for (size_t i = 0; i < gather->count; i++) {
        if (!gather->ranges[i].is_taken)
            return false;
    }
    return true;
}

/* ---- this node ---- */

static const ApiCluster *cluster_of(const RangeGather *gather)
{
    return gather->page->request->api->options.cluster;
}

static bool is_here(const ApiCluster *cluster, const Container *container,
                    const PartitionRange *range)
{
    return cluster == NULL || handle_is_local(container_handle(container, range));
}

Status range_gather_here(RangeGather *gather, Error *err)
{
    const ApiCluster *cluster = cluster_of(gather);
    for (size_t i = 0; i < gather->count; i++) {
        GatherRange *range = &gather->ranges[i];
        if (range->is_taken || !is_here(cluster, range->container, range->range))
            continue;
        Status status = gather->read_here(gather->ctx, range, err);
        if (status != STATUS_NOT_OWNER || cluster == NULL)
            TRY(status);
        range->is_taken = status == STATUS_OK;
    }
    return STATUS_OK;
}

/* ---- other nodes ---- */

typedef struct AskedNode {
    Slice address;
    bool is_final; /* it is not asked again: it has told what it can, or refused */
} AskedNode;

typedef struct Asking {
    RangeGather *gather;
    uint64_t deadline_us;
    size_t count; /* of nodes that were asked in this round, or that are not asked again */
    AskedNode asked[ASKED_MAX];
} Asking;

static uint64_t now_us(const RangeGather *gather)
{
    return clock_monotonic_us(gather->page->request->api->options.clock);
}

static bool is_abandoned(const RangeGather *gather)
{
    return atomic_load_explicit(&gather->page->request->http->is_abandoned, memory_order_relaxed);
}

/* NULL if it was not asked in this round. */
static const AskedNode *find_asked(const Asking *asking, Slice address)
{
    for (size_t i = 0; i < asking->count; i++) {
        if (slice_equal(asking->asked[i].address, address))
            return &asking->asked[i];
    }
    return NULL;
}

static void forget_asked(Asking *asking)
{
    size_t kept = 0;
    for (size_t i = 0; i < asking->count; i++) {
        if (asking->asked[i].is_final)
            asking->asked[kept++] = asking->asked[i];
    }
    asking->count = kept;
}

/* The time of a wait is not that of the page's work: see yielding_clock_int.h. The wait for a turn
 * after it is told by worker_end_wait. */
static void call_node(const RangeGather *gather, NodeCall *call)
{
    const ApiCluster *cluster = cluster_of(gather);
    uint64_t begun_us = now_us(gather);
    worker_begin_wait();
    cluster->call(cluster->ctx, call);
    uint64_t waited_us = now_us(gather) - begun_us;
    worker_end_wait();
    worker_tell_wait(waited_us);
}

static Status ask(Asking *asking, Slice address, Error *err)
{
    RangeGather *gather = asking->gather;
    ApiRequest *r = gather->page->request;
    AUTO(arena_done) Arena arena;
    arena_init(&arena, ARENA_LARGE_BYTES);
    uint64_t now = now_us(gather);
    uint64_t left_ms = now < asking->deadline_us ? (asking->deadline_us - now) / 1000 : 0;
    HttpHeader part = {SLICE(NODE_HEADER_PART), gather->part};
    NodeCall call = {
        .address = address,
        .method = r->http->method,
        .path = r->http->path,
        .timeout_ms = left_ms / 2 > CALL_MS_MIN ? (uint32_t)(left_ms / 2) : CALL_MS_MIN,
        .answer_bytes_max = gather->answer_bytes_max,
        .arena = &arena,
    };
    call.headers = forward_headers(r, &part, 1, &call.header_count);
    call_node(gather, &call);
    if (call.outcome != NODE_CALL_ANSWERED)
        return error_set(err, STATUS_NOT_OWNER, SUB_NONE, "A node does not answer.");
    if (call.status != status_http(STATUS_OK))
        return forward_read_error(&call, err);
    return gather->take(gather, call.answer_body, &arena, err);
}

/* Asks each owner of a range that is not taken once. A failure is seen in what is left. */
static void ask_others(Asking *asking)
{
    RangeGather *gather = asking->gather;
    const ApiCluster *cluster = cluster_of(gather);
    forget_asked(asking);
    for (size_t i = 0; i < gather->count && asking->count < ASKED_MAX; i++) {
        if (gather->ranges[i].is_taken)
            continue;
        ApiOwner owner = cluster->owner(cluster->ctx, gather->ranges[i].range->space);
        Slice address = slice_from_cstr(owner.address);
        if (!owner.is_known || owner.is_local || find_asked(asking, address) != NULL)
            continue;
        if (is_abandoned(gather) || now_us(gather) >= asking->deadline_us)
            return;
        address = arena_copy(gather->page->request->arena, address);
        Error ignored;
        Status status = ask(asking, address, &ignored);
        bool is_final = status == STATUS_OK ? gather->asks_once : status != STATUS_NOT_OWNER;
        asking->asked[asking->count++] = (AskedNode){address, is_final};
    }
}

/* Whether a range is left whose owner may still tell of it. */
static bool may_learn_more(const Asking *asking)
{
    const RangeGather *gather = asking->gather;
    const ApiCluster *cluster = cluster_of(gather);
    for (size_t i = 0; i < gather->count; i++) {
        if (gather->ranges[i].is_taken)
            continue;
        ApiOwner owner = cluster->owner(cluster->ctx, gather->ranges[i].range->space);
        const AskedNode *asked = find_asked(asking, slice_from_cstr(owner.address));
        if (!owner.is_known || owner.is_local || asked == NULL || !asked->is_final)
            return true;
    }
    return false;
}

static void pause_for_a_moment(const RangeGather *gather)
{
    uint64_t begun_us = now_us(gather);
    struct timespec time = {.tv_nsec = ROUND_MS * 1000000L};
    worker_begin_wait();
    (void)nanosleep(&time, NULL); /* a shorter one does no harm */
    uint64_t waited_us = now_us(gather) - begun_us;
    worker_end_wait();
    worker_tell_wait(waited_us);
}

/* A HEAD is answered without a body, here and by other nodes: there is nothing to learn. */
Status range_gather_run(RangeGather *gather, Error *err)
{
    const ApiCluster *cluster = cluster_of(gather);
    TRY(range_gather_here(gather, err));
    if (cluster == NULL || gather->part.len == 0 || gather->page->request->is_head)
        return STATUS_OK;
    Asking *asking = ARENA_NEW(gather->page->request->arena, Asking);
    asking->gather = gather;
    asking->deadline_us = now_us(gather) + gather->time_us;
    for (size_t round = 1; !range_gather_is_complete(gather); round++) {
        ask_others(asking);
        if (!may_learn_more(asking) || round == ROUNDS_MAX || is_abandoned(gather) ||
            now_us(gather) >= asking->deadline_us)
            break;
        cluster->refresh(cluster->ctx);
        pause_for_a_moment(gather);
        TRY(range_gather_here(gather, err));
    }
    return STATUS_OK;
}

/* ---- the owner of the catalogue ---- */

#define CATALOG_ASK_MS 1000 /* it has the answer in memory; without it the rest is shown */

Slice catalog_owner_ask(OrreryPage *page, Slice part, JsonType type)
{
    ApiRequest *r = page->request;
    const ApiCluster *cluster = r->api->options.cluster;
    if (cluster == NULL || r->is_head)
        return SLICE_EMPTY;
    ApiOwner owner = cluster->catalog_owner(cluster->ctx);
    if (!owner.is_known || owner.is_local)
        return SLICE_EMPTY;
    RangeGather gather = {.page = page};
    HttpHeader header = {SLICE(NODE_HEADER_PART), part};
    NodeCall call = {
        .address = slice_from_cstr(owner.address),
        .method = r->http->method,
        .path = r->http->path,
        .timeout_ms = CATALOG_ASK_MS,
        .answer_bytes_max = ORRERY_JSON_BYTES_MAX,
        .arena = r->arena,
    };
    call.headers = forward_headers(r, &header, 1, &call.header_count);
    call_node(&gather, &call);
    Error ignored;
    Json answer;
    if (call.outcome != NODE_CALL_ANSWERED || call.status != status_http(STATUS_OK) ||
        json_parse(r->arena, call.answer_body, &answer, &ignored) != STATUS_OK ||
        !json_is(answer, type))
        return SLICE_EMPTY;
    return call.answer_body;
}

/* ---- text ---- */

Status range_gather_refuse(Error *err)
{
    return error_set(err, STATUS_INTERNAL, SUB_NONE, "A node has sent what is not understood.");
}

void range_gather_put_ids(const RangeGather *gather, Buf *out)
{
    const char *space = "";
    for (size_t i = 0; i < gather->count; i++) {
        if (!gather->ranges[i].is_taken)
            continue;
        buf_format(out, "%s%u", space, gather->ranges[i].range->id);
        space = " ";
    }
    buf_byte(out, '\n');
}

bool range_gather_claim_ids(RangeGather *gather, Slice line)
{
    uint64_t id = 0;
    for (Slice rest = line; rest.len > 0;) {
        if (!slice_to_u64(slice_cut(&rest, ' '), &id))
            return false;
    }
    while (line.len > 0) {
        bool is_number = slice_to_u64(slice_cut(&line, ' '), &id);
        ASSERT(is_number);
        /* One that was taken meanwhile is told twice, which does no harm. */
        (void)range_gather_claim(gather, gather->page->container->info.number, id);
    }
    return true;
}

void put_missing(Buf *out, const RangeGather *gather, const Container *container)
{
    if (cluster_of(gather) == NULL)
        return;
    put_open(out, "missingRanges", '[');
    for (size_t i = find_place(gather, container->info.number, 0);
         i < gather->count && gather->ranges[i].container == container; i++) {
        if (!gather->ranges[i].is_taken)
            put_id(out, NULL, gather->ranges[i].range->id);
    }
    put_close(out, ']');
}

void put_node(Buf *out, const OrreryPage *page)
{
    const ApiCluster *cluster = page->request->api->options.cluster;
    if (cluster == NULL)
        return;
    put_text(out, "node", slice_from_cstr(cluster->node));
    if (page->container == NULL)
        return;
    put_open(out, "missingRanges", '[');
    for (size_t i = 0; i < page->container->range_count; i++) {
        const PartitionRange *range = &page->container->ranges[i];
        if (!is_here(cluster, page->container, range))
            put_id(out, NULL, range->id);
    }
    put_close(out, ']');
}
