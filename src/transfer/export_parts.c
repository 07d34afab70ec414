/* export_parts.c - the parts of an export, and their requests; see export_int.h. */
#include "base/array.h"
#include "base/clock.h"
#include "base/mem.h"
#include "transfer/bulk_body.h"
#include "transfer/export_int.h"

enum {
    PAGE_ITEMS = 1000,
    ATTEMPTS_MAX = 20,
    MAP_ATTEMPTS_MAX = 100,
    MAP_WAIT_MS = 200,
    FAILURE_WAIT_MS_MIN = 100,
    FAILURE_WAIT_MS_MAX = 5000,
    GIVE_UP_US = 120 * 1000000, /* without any answer */
};
#define QUERY_BYTES_MAX ((size_t)1 << 20)

/* ---- parts ---- */

static char *heap_text(Slice text)
{
    char *copy = mem_alloc(text.len + 1);
    if (text.len > 0)
        memcpy(copy, text.ptr, text.len);
    return copy;
}

static void add_part(Export *export, Slice min, Slice max, Slice token)
{
    Part *part = MEM_NEW(Part);
    *part = (Part){.min = heap_text(min), .max = heap_text(max), .token = heap_text(token)};
    arena_init(&part->arena, 16 << 10);
    ARRAY_GROW(export->parts, export->part_count, export->part_capacity, 16);
    export->parts[export->part_count++] = part;
}

static void set_token(Part *part, Slice token)
{
    mem_free(part->token);
    part->token = heap_text(token);
}

void export_parts_close(Export *export)
{
    for (size_t i = 0; i < export->part_count; i++) {
        Part *part = export->parts[i];
        mem_free(part->min);
        mem_free(part->max);
        mem_free(part->token);
        arena_done(&part->arena);
        mem_free(part);
    }
    mem_free(export->parts);
    buf_done(&export->query);
    arena_done(&export->map_arena);
}

static Status read_map(Export *export, Error *err)
{
    Json feed;
    arena_reset(&export->map_arena);
    TRY(remote_read(&export->remote, REMOTE_RANGES, &export->map_arena, &feed, err));
    return container_map_parse(&export->map_arena, feed, &export->map, err);
}

static Slice max_of(Slice a, Slice b)
{
    return slice_compare(a, b) > 0 ? a : b;
}

static Slice min_of(Slice a, Slice b)
{
    return slice_compare(a, b) < 0 ? a : b;
}

/* Cuts a part along the ranges that there are now. Each piece goes on with the part's token. */
static void cut_part(Export *export, size_t at)
{
    Part *part = export->parts[at];
    Slice min = slice_from_cstr(part->min);
    Slice max = slice_from_cstr(part->max);
    size_t pieces = 0;
    for (size_t i = 0; i < export->map.count; i++) {
        const MapRange *range = &export->map.ranges[i];
        Slice from = max_of(min, range->min);
        Slice to = min_of(max, range->max);
        if (slice_compare(from, to) >= 0)
            continue;
        pieces++;
        bool is_same = slice_equal(from, min) && slice_equal(to, max);
        if (!is_same)
            add_part(export, from, to, slice_from_cstr(part->token));
        else
            return; /* it is inside of one range */
    }
    ASSERT(pieces > 0); /* the ranges have no gaps */
    part->state = PART_REPLACED;
    export->finished_count++;
}

static void cut_parts(Export *export)
{
    size_t count = export->part_count;
    for (size_t i = 0; i < count && !export->is_whole; i++) {
        if (export->parts[i]->state == PART_IDLE)
            cut_part(export, i);
    }
}

/* ---- queries ---- */

static bool is_empty_list(Json value)
{
    return !json_is(value, JSON_ARRAY) || json_count(value) == 0;
}

static bool is_nothing(Json value)
{
    return json_is(value, JSON_UNDEFINED) || json_is(value, JSON_NULL);
}

/* Whether the results of a query are those of all ranges together, in any order. */
static bool is_plain(Json plan)
{
    Json info = json_get(plan, SLICE("queryInfo"));
    Json distinct = json_get(info, SLICE("distinctType"));
    bool is_distinct = json_is(distinct, JSON_STRING)
                           ? !slice_equal(json_string(distinct), SLICE("None"))
                           : !is_nothing(distinct);
    return json_is(info, JSON_OBJECT) && !is_distinct && is_nothing(json_get(info, SLICE("top"))) &&
           is_nothing(json_get(info, SLICE("offset"))) &&
           is_nothing(json_get(info, SLICE("limit"))) &&
           is_empty_list(json_get(info, SLICE("orderBy"))) &&
           is_empty_list(json_get(info, SLICE("aggregates"))) &&
           is_empty_list(json_get(info, SLICE("groupByExpressions"))) &&
           is_nothing(json_get(plan, SLICE("hybridSearchQueryInfo")));
}

/* Asks how the query has to be run. A server that does not say runs it as a whole. */
static Status plan_query(Export *export, Error *err)
{
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 16 << 10);
    const ClientHeader headers[] = {
        {"content-type", SLICE("application/query+json")},
        {"x-ms-cosmos-is-query-plan-request", SLICE("True")},
        {"x-ms-cosmos-supported-query-features",
         SLICE("Aggregate, CompositeAggregate, CountIf, DCount, Distinct, GroupBy, "
               "MultipleAggregates, MultipleOrderBy, NonValueAggregate, OffsetAndLimit, OrderBy, "
               "Top, NonStreamingOrderBy")},
        {"x-ms-documentdb-query-enablecrosspartition", SLICE("True")},
        {"x-ms-documentdb-isquery", SLICE("True")},
    };
    ClientCall call = remote_call(&export->remote, REMOTE_ITEMS, &arena);
    call.method = CLIENT_POST;
    call.headers = headers;
    call.header_count = ARRAY_COUNT(headers);
    call.content = buf_view(&export->query);
    TRY(remote_ask(&export->remote, &call, err));
    export->summary.ru += remote_charge(&call);
    Json plan;
    Error ignored;
    export->is_whole = call.http_status != 200 ||
                       json_parse(&arena, call.body, &plan, &ignored) != STATUS_OK ||
                       !is_plain(plan);
    return STATUS_OK;
}

static Status open_query(Export *export, Error *err)
{
    buf_init(&export->query, QUERY_BYTES_MAX);
    if (export->options->query == NULL)
        return STATUS_OK;
    Slice text = slice_from_cstr(export->options->query);
    if (!json_utf8_valid(text))
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE, "the query is not valid UTF-8");
    buf_slice(&export->query, SLICE("{\"query\":"));
    json_print_string(text, &export->query);
    buf_slice(&export->query, SLICE(",\"parameters\":[]}"));
    if (buf_full(&export->query))
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE, "the query is too long");
    return plan_query(export, err);
}

Status export_parts_open(Export *export, const ExportCheckpoint *checkpoint, Error *err)
{
    uint64_t now_us = clock_monotonic_us(clock_real());
    arena_init(&export->map_arena, 64 << 10);
    ru_limit_init(&export->ru_limit, export->options->ru_per_s_max, now_us);
    export->answered_us = now_us;
    TRY(open_query(export, err));
    TRY(read_map(export, err));
    if (checkpoint != NULL) {
        for (size_t i = 0; i < checkpoint->part_count; i++)
            add_part(export, checkpoint->parts[i].min, checkpoint->parts[i].max,
                     checkpoint->parts[i].token);
    } else {
        add_part(export, SLICE(""), SLICE("FF"), SLICE(""));
    }
    cut_parts(export);
    return STATUS_OK;
}

/* ---- requests ---- */

static void add_header(Part *part, const char *name, Slice value)
{
    ASSERT(part->call.header_count < EXPORT_HEADERS_MAX);
    part->headers[part->call.header_count++] = (ClientHeader){.name = name, .value = value};
}

/* Names the range of the part, and the part in it if it is smaller. */
static void add_scope(Export *export, Part *part)
{
    Slice min = slice_from_cstr(part->min);
    Slice max = slice_from_cstr(part->max);
    const MapRange *range = container_map_find(&export->map, min);
    add_header(part, "x-ms-documentdb-partitionkeyrangeid", range->id);
    if (slice_equal(min, range->min) && slice_equal(max, range->max))
        return;
    add_header(part, "x-ms-read-key-type", SLICE("EffectivePartitionKeyRange"));
    add_header(part, "x-ms-start-epk", min);
    add_header(part, "x-ms-end-epk", max);
}

static void start(Export *export, Part *part, double reserved, uint64_t now_us)
{
    arena_reset(&part->arena);
    part->state = PART_ACTIVE;
    part->reserved = reserved;
    part->call = remote_call(&export->remote, REMOTE_ITEMS, &part->arena);
    part->call.headers = part->headers;
    add_header(part, "x-ms-max-item-count", arena_format(&part->arena, "%d", PAGE_ITEMS));
    if (part->token[0] != '\0')
        add_header(part, "x-ms-continuation", slice_from_cstr(part->token));
    if (!export->is_whole)
        add_scope(export, part);
    if (export->options->query != NULL) {
        part->call.method = CLIENT_POST;
        part->call.content = buf_view(&export->query);
        add_header(part, "content-type", SLICE("application/query+json"));
        add_header(part, "x-ms-documentdb-isquery", SLICE("True"));
        add_header(part, "x-ms-documentdb-query-enablecrosspartition", SLICE("True"));
    }
    if (export->active_count == 0)
        export->answered_us = now_us; /* silence begins here */
    export->active_count++;
    export->summary.requests++;
    client_start(export->remote.client, &part->call);
}

static Status refresh_map(Export *export, Error *err)
{
    Status status = read_map(export, err);
    if (status == STATUS_OK) {
        cut_parts(export);
        export->needs_map = false;
        export->map_attempts = 0;
        return STATUS_OK;
    }
    /* In the middle of a split a server may have no map without gaps. */
    bool is_fatal = status != STATUS_UNAVAILABLE && status != STATUS_GONE;
    return is_fatal || ++export->map_attempts > MAP_ATTEMPTS_MAX ? status : STATUS_OK;
}

static void lower(uint32_t *wait_ms, uint64_t ms)
{
    if (ms < *wait_ms)
        *wait_ms = (uint32_t)ms;
}

Status export_parts_send(Export *export, uint64_t now_us, uint32_t *wait_ms, Error *err)
{
    /* remote_read waits for its own answer only, so nothing else may be under way. */
    if (export->needs_map && export->active_count == 0)
        TRY(refresh_map(export, err));
    if (export->needs_map) {
        lower(wait_ms, MAP_WAIT_MS);
        return STATUS_OK;
    }
    for (size_t i = 0; i < export->part_count; i++) {
        Part *part = export->parts[i];
        if (part->state != PART_IDLE)
            continue;
        if (export->active_count >= export->options->concurrency)
            break;
        if (part->wait_until_us > now_us) {
            lower(wait_ms, (part->wait_until_us - now_us + 999) / 1000);
            continue;
        }
        double reserved = 0;
        uint32_t ru_wait_ms = 0;
        if (!ru_limit_reserve(&export->ru_limit, 1, now_us, &reserved, &ru_wait_ms)) {
            lower(wait_ms, ru_wait_ms);
            break;
        }
        start(export, part, reserved, now_us);
    }
    if (export->active_count > 0 && now_us - export->answered_us > GIVE_UP_US)
        return error_set(err, STATUS_TIMEOUT, SUB_NONE, "the server has not answered for %d s",
                         GIVE_UP_US / 1000000);
    return STATUS_OK;
}

/* ---- answers ---- */

static Status take_failure(Export *export, Part *part, uint64_t now_us, Error *err)
{
    if (export->failing_since_us == 0)
        export->failing_since_us = now_us;
    uint64_t failing_us = now_us - export->failing_since_us;
    if (failing_us > GIVE_UP_US) {
        *err = part->call.error;
        return err->status;
    }
    uint64_t wait_ms = failing_us / 2000;
    wait_ms = wait_ms < FAILURE_WAIT_MS_MIN ? FAILURE_WAIT_MS_MIN : wait_ms;
    wait_ms = wait_ms > FAILURE_WAIT_MS_MAX ? FAILURE_WAIT_MS_MAX : wait_ms;
    part->wait_until_us = now_us + wait_ms * 1000;
    return STATUS_OK;
}

static Status take_page(Export *export, Part *part, Error *err)
{
    Slice token = client_header(&part->call, SLICE("x-ms-continuation"));
    TRY(export_page(export, &part->call, err));
    part->attempts = 0;
    set_token(part, token);
    if (token.len == 0) {
        part->state = PART_FINISHED;
        export->finished_count++;
    }
    return STATUS_OK;
}

static Status take_answer(Export *export, Part *part, uint64_t now_us, Error *err)
{
    if (part->call.error.status != STATUS_OK)
        return take_failure(export, part, now_us, err);
    export->answered_us = now_us;
    export->failing_since_us = 0;
    uint32_t wait_ms = remote_retry_after_ms(&part->call);
    switch (part->call.http_status) {
    case 200:
        return take_page(export, part, err);
    case 429:
        export->summary.throttled++;
        part->wait_until_us = now_us + (wait_ms == 0 ? 100 : wait_ms) * 1000ULL;
        return STATUS_OK;
    case 410:
        export->needs_map = true;
        break;
    case 408:
    case 449:
    case 500:
    case 503:
        break;
    default:
        return remote_refused(&part->call, err);
    }
    if (++part->attempts >= ATTEMPTS_MAX)
        return remote_refused(&part->call, err);
    part->wait_until_us = now_us + pace_backoff_ms(part->attempts - 1) * 1000ULL;
    return STATUS_OK;
}

Status export_parts_answer(Export *export, ClientCall *ended, uint64_t now_us, Error *err)
{
    Part *part = CONTAINER_OF(ended, Part, call);
    ASSERT(part->state == PART_ACTIVE);
    part->state = PART_IDLE;
    export->active_count--;
    double charge = ended->error.status == STATUS_OK ? remote_charge(ended) : 0;
    export->summary.ru += charge;
    ru_limit_settle(&export->ru_limit, part->reserved, charge > 0 ? 1 : 0, charge);
    Status status = take_answer(export, part, now_us, err);
    arena_reset(&part->arena); /* a page is large, and the part may wait for long */
    return status;
}
