/* import_send.c - from items to requests, and from answers to rows that are done; see import_int.h.
 *
 * Each range has a lane: a queue and a pace. A bulk request takes items from the front of a lane.
 * An item that was throttled, or whose request has failed, goes back to the front of the lane that
 * its hash belongs to by then. After a split all lanes are made anew and everything that waits is
 * sorted into them.
 */
#include "base/array.h"
#include "base/clock.h"
#include "base/encoding.h"
#include "base/mem.h"
#include "transfer/bulk_body.h"
#include "transfer/import_int.h"

#include <stdio.h>

enum {
    ATTEMPTS_MAX = 20,      /* of one item, not counting throttled ones */
    MAP_ATTEMPTS_MAX = 100, /* to get ranges without gaps */
    MAP_WAIT_MS = 200,
    FAILURE_WAIT_MS_MIN = 100,
    FAILURE_WAIT_MS_MAX = 5000,
    BULK_REFUSALS_MAX = 3,      /* then bulk is not tried any more */
    GIVE_UP_US = 120 * 1000000, /* without any answer */
};
/* What the JavaScript SDK sends at most in one body. */
#define BULK_BYTES_TARGET ((size_t)220000)
#define BODY_BYTES_MAX    ((size_t)8 << 20)
#define BODY_BYTES_KEPT   ((size_t)512 << 10) /* of memory, for the next request */

/* ---- lanes ---- */

static void push_back(ImportLane *lane, ImportItem *item)
{
    item->next = NULL;
    if (lane->last != NULL)
        lane->last->next = item;
    else
        lane->first = item;
    lane->last = item;
    lane->count++;
}

static void push_front(ImportLane *lane, ImportItem *item)
{
    item->next = lane->first;
    lane->first = item;
    if (lane->last == NULL)
        lane->last = item;
    lane->count++;
}

static ImportItem *pop_front(ImportLane *lane)
{
    ImportItem *item = lane->first;
    lane->first = item->next;
    if (lane->first == NULL)
        lane->last = NULL;
    lane->count--;
    return item;
}

static ImportLane *lane_of(const Import *import, const ImportItem *item)
{
    return import->lanes[container_map_find(&import->map, item->epk) - import->map.ranges];
}

void import_queue(Import *import, ImportItem *item)
{
    import->bytes_under_way += item->bytes;
    push_back(lane_of(import, item), item);
}

static void free_item(Import *import, ImportItem *item)
{
    import->bytes_under_way -= item->bytes;
    mem_free(item);
}

static Status open_map(Import *import, ContainerMap *out, Error *err)
{
    Arena *arena = &import->map_arenas[1 - import->map_current];
    arena_reset(arena);
    Json feed;
    TRY(remote_read(&import->remote, REMOTE_RANGES, arena, &feed, err));
    return container_map_parse(arena, feed, out, err);
}

static void make_lanes(Import *import, const ContainerMap *map)
{
    ImportLane **before = import->lanes;
    size_t count = import->lane_count;
    import->map = *map;
    import->map_current = 1 - import->map_current;
    import->lanes = MEM_NEW_ARRAY(ImportLane *, map->count);
    import->lane_count = map->count;
    import->next_lane = 0;
    for (size_t i = 0; i < map->count; i++) {
        ImportLane *lane = MEM_NEW(ImportLane);
        lane->id = slice_make(mem_copy(map->ranges[i].id.ptr, map->ranges[i].id.len),
                              map->ranges[i].id.len);
        pace_init(&lane->pace, import->options->concurrency);
        import->lanes[i] = lane;
    }
    for (size_t i = 0; i < count; i++) {
        while (before[i]->first != NULL) {
            ImportItem *item = pop_front(before[i]);
            push_back(lane_of(import, item), item);
        }
        before[i]->is_gone = true;
        ARRAY_GROW(import->gone, import->gone_count, import->gone_capacity, 4);
        import->gone[import->gone_count++] = before[i];
    }
    mem_free(before);
}

Status import_send_open(Import *import, Error *err)
{
    for (size_t i = 0; i < ARRAY_COUNT(import->map_arenas); i++)
        arena_init(&import->map_arenas[i], 64 << 10);
    uint64_t now_us = clock_monotonic_us(clock_real());
    ru_limit_init(&import->ru_limit, import->options->ru_per_s_max, now_us);
    import->answered_us = now_us;
    import->calls = MEM_NEW_ARRAY(ImportCall *, import->options->concurrency);
    ContainerMap map;
    TRY(open_map(import, &map, err));
    make_lanes(import, &map);
    return STATUS_OK;
}

static void free_lane(Import *import, ImportLane *lane)
{
    while (lane->first != NULL)
        free_item(import, pop_front(lane));
    mem_free(UNCONST(char, lane->id.ptr));
    mem_free(lane);
}

void import_send_close(Import *import)
{
    for (size_t i = 0; i < import->call_count; i++) {
        ImportCall *c = import->calls[i];
        for (uint32_t k = 0; c->is_active && k < c->count; k++)
            free_item(import, c->items[k]);
        buf_done(&c->body);
        arena_done(&c->arena);
        mem_free(c);
    }
    mem_free(import->calls);
    for (size_t i = 0; i < import->lane_count; i++)
        free_lane(import, import->lanes[i]);
    for (size_t i = 0; i < import->gone_count; i++)
        free_lane(import, import->gone[i]);
    mem_free(import->lanes);
    mem_free(import->gone);
    for (size_t i = 0; i < ARRAY_COUNT(import->map_arenas); i++)
        arena_done(&import->map_arenas[i]);
}

/* ---- starting ---- */

static ImportCall *free_call(Import *import)
{
    for (size_t i = 0; i < import->call_count; i++) {
        if (!import->calls[i]->is_active)
            return import->calls[i];
    }
    ASSERT(import->call_count < import->options->concurrency);
    ImportCall *c = MEM_NEW(ImportCall);
    buf_init(&c->body, BODY_BYTES_MAX);
    arena_init(&c->arena, 16 << 10);
    import->calls[import->call_count++] = c;
    return c;
}

static bool is_bulk_off(const Import *import)
{
    return import->bulk_refusals >= BULK_REFUSALS_MAX;
}

/* How many items from the front of the lane the next request takes. */
static uint32_t batch_size(const Import *import, const ImportLane *lane)
{
    if (lane->first->stage == IMPORT_COMPARE || lane->first->is_single || is_bulk_off(import))
        return 1;
    uint32_t most = ru_limit_operations(&import->ru_limit, pace_operations(&lane->pace));
    uint32_t count = 0;
    size_t bytes = 0;
    for (const ImportItem *item = lane->first; item != NULL && count < most; item = item->next) {
        bytes += item->text.len + item->key_text.len + BULK_OPERATION_BYTES;
        if (item->stage == IMPORT_COMPARE || item->is_single ||
            (count > 0 && bytes > BULK_BYTES_TARGET))
            break;
        count++;
    }
    return count;
}

/* Whether a request of the lane would be as large as it may be. */
static bool is_batch_full(const Import *import, const ImportLane *lane, uint32_t count)
{
    return count < lane->count ||
           count >= ru_limit_operations(&import->ru_limit, pace_operations(&lane->pace));
}

static void add_header(ImportCall *c, const char *name, Slice value)
{
    ASSERT(c->call.header_count < IMPORT_HEADERS_MAX);
    c->headers[c->call.header_count++] = (ClientHeader){.name = name, .value = value};
}

static void fill_bulk(ImportCall *c)
{
    for (uint32_t i = 0; i < c->count; i++)
        bulk_add(&c->body, c->items[i]->key_text, c->items[i]->text);
    bulk_end(&c->body);
    add_header(c, "x-ms-cosmos-is-batch-request", SLICE("True"));
    add_header(c, "x-ms-cosmos-batch-atomic", SLICE("False"));
    add_header(c, "x-ms-cosmos-batch-continue-on-error", SLICE("True"));
    add_header(c, "x-ms-documentdb-partitionkeyrangeid", c->lane->id);
}

/* The key text in a body may be UTF-8; a header is ASCII. */
static Slice header_key(ImportCall *c)
{
    Json values;
    Error err;
    PartitionKey key = {0};
    Slice text = c->items[0]->key_text;
    Status status = json_parse(&c->arena, text, &values, &err);
    ASSERT(status == STATUS_OK); /* container_key_print has printed it */
    JsonIter it = json_iter(values);
    while (json_next(&it) && key.count < PARTITION_KEY_PARTS_MAX)
        key.parts[key.count++] = json_is(it.value, JSON_OBJECT) ? JSON_NONE : it.value;
    AUTO(buf_done) Buf ascii;
    buf_init(&ascii, (size_t)256 << 10);
    container_key_print(&key, KEY_TEXT_ASCII, &ascii);
    return arena_copy(&c->arena, buf_view(&ascii));
}

static void fill_read(Import *import, ImportCall *c)
{
    Slice id = c->items[0]->id;
    Slice encoded = percent_encode(&c->arena, id, SLICE("-_.~"));
    c->call.method = CLIENT_GET;
    c->call.path =
        arena_format(&c->arena, "%.*s/%.*s", SLICE_ARG(c->call.path), SLICE_ARG(encoded));
    c->call.resource_link =
        arena_format(&c->arena, "%.*s/docs/%.*s", SLICE_ARG(c->call.resource_link), SLICE_ARG(id));
    if (import->key.kind != PARTITION_NONE)
        add_header(c, "x-ms-documentdb-partitionkey", header_key(c));
}

static void fill_single(Import *import, ImportCall *c)
{
    buf_slice(&c->body, c->items[0]->text);
    add_header(c, "x-ms-documentdb-is-upsert", SLICE("True"));
    if (import->key.kind != PARTITION_NONE)
        add_header(c, "x-ms-documentdb-partitionkey", header_key(c));
}

static void start(Import *import, ImportLane *lane, uint32_t count, double reserved,
                  uint64_t now_us)
{
    ImportCall *c = free_call(import);
    arena_reset(&c->arena);
    buf_reset(&c->body);
    c->is_active = true;
    c->is_read = lane->first->stage == IMPORT_COMPARE;
    c->is_bulk = !c->is_read && !lane->first->is_single && !is_bulk_off(import);
    c->lane = lane;
    c->count = count;
    c->reserved = reserved;
    c->started_us = now_us;
    c->call = remote_call(&import->remote, REMOTE_ITEMS, &c->arena);
    c->call.method = CLIENT_POST;
    c->call.headers = c->headers;
    for (uint32_t i = 0; i < count; i++)
        c->items[i] = pop_front(lane);
    if (c->is_read) {
        fill_read(import, c);
    } else {
        add_header(c, "content-type", SLICE("application/json"));
        add_header(c, "prefer", SLICE("return=minimal"));
        if (c->is_bulk)
            fill_bulk(c);
        else
            fill_single(import, c);
    }
    c->call.content = buf_view(&c->body);
    if (import->active_count == 0)
        import->answered_us = now_us; /* silence begins here */
    pace_start(&lane->pace);
    import->active_count++;
    import->summary.requests++;
    client_start(import->remote.client, &c->call);
}

static void lower(uint32_t *wait_ms, uint64_t until_us, uint64_t now_us)
{
    if (until_us <= now_us)
        return;
    uint64_t ms = (until_us - now_us + 999) / 1000;
    if (ms < *wait_ms)
        *wait_ms = (uint32_t)ms;
}

/* Why a lane has started no request. */
typedef enum LaneTurn {
    TURN_STARTED,
    TURN_NOTHING, /* it has nothing to send, or must wait by itself */
    TURN_ALL_WAIT /* no lane may start one */
} LaneTurn;

static LaneTurn send_lane(Import *import, ImportLane *lane, uint64_t now_us, uint32_t *wait_ms)
{
    if (lane->count == 0)
        return TURN_NOTHING;
    if (import->active_count >= import->options->concurrency)
        return TURN_ALL_WAIT;
    uint32_t count = batch_size(import, lane);
    /* While rows can be had, a request waits until it is full. */
    if (import->supply == SUPPLY_MORE && !is_batch_full(import, lane, count))
        return TURN_NOTHING;
    if (!pace_may_start(&lane->pace, now_us)) {
        lower(wait_ms, lane->pace.wait_until_us, now_us);
        return TURN_NOTHING;
    }
    double reserved = 0;
    uint32_t ru_wait_ms = 0;
    if (!ru_limit_reserve(&import->ru_limit, count, now_us, &reserved, &ru_wait_ms)) {
        *wait_ms = ru_wait_ms < *wait_ms ? ru_wait_ms : *wait_ms;
        return TURN_ALL_WAIT;
    }
    start(import, lane, count, reserved, now_us);
    return TURN_STARTED;
}

/* The lanes take turns, one request each: otherwise the rows of some would be far ahead of those of
 * others, and none could leave the window. */
static void send_lanes(Import *import, uint64_t now_us, uint32_t *wait_ms)
{
    size_t idle = 0; /* lanes in a row that have started nothing */
    while (idle < import->lane_count) {
        LaneTurn turn = send_lane(import, import->lanes[import->next_lane], now_us, wait_ms);
        if (turn == TURN_ALL_WAIT)
            return;
        idle = turn == TURN_STARTED ? 0 : idle + 1;
        import->next_lane = (import->next_lane + 1) % import->lane_count;
    }
}

/* Reads the ranges again. Requests to the old ones may still be under way. */
static Status refresh_map(Import *import, Error *err)
{
    ContainerMap map;
    Status status = open_map(import, &map, err);
    if (status == STATUS_OK) {
        make_lanes(import, &map);
        import->needs_map = false;
        import->map_attempts = 0;
        return STATUS_OK;
    }
    /* In the middle of a split a server may have no map without gaps. */
    bool is_fatal = status != STATUS_UNAVAILABLE && status != STATUS_GONE;
    return is_fatal || ++import->map_attempts > MAP_ATTEMPTS_MAX ? status : STATUS_OK;
}

Status import_send(Import *import, uint64_t now_us, uint32_t *wait_ms, Error *err)
{
    /* remote_read waits for its own answer only, so nothing else may be under way. */
    if (import->needs_map && import->active_count == 0)
        TRY(refresh_map(import, err));
    if (import->needs_map) {
        *wait_ms = *wait_ms < MAP_WAIT_MS ? *wait_ms : MAP_WAIT_MS;
        return STATUS_OK;
    }
    send_lanes(import, now_us, wait_ms);
    if (import->active_count > 0 && now_us - import->answered_us > GIVE_UP_US)
        return error_set(err, STATUS_TIMEOUT, SUB_NONE, "the server has not answered for %d s",
                         GIVE_UP_US / 1000000);
    return STATUS_OK;
}

/* ---- answers ---- */

/* What one answer means for the items of its request. */
typedef struct Outcome {
    uint32_t throttled; /* items */
    uint32_t retry_after_ms;
    uint32_t written;
    uint32_t failed;  /* worth another try */
    uint32_t wait_ms; /* before that */
} Outcome;

/* Back to the front of its lane. Items of a request are given back from the last to the first, so
 * their order stays. */
static void give_back(Import *import, ImportItem *item)
{
    push_front(lane_of(import, item), item);
}

static void reject_item(Import *import, ImportItem *item, int status, uint32_t sub_status,
                        Slice message)
{
    char reason[600];
    (void)snprintf(reason, sizeof(reason), "the server answered %d%s%.0u%s%.*s", status,
                   sub_status > 0 ? "/" : "", sub_status, message.len > 0 ? ": " : "",
                   SLICE_CUT(message, 500));
    row_window_rejected(import->window, item->sequence, reason, item->text);
    free_item(import, item);
}

/* Deals with the result of one item. */
static void take_result(Import *import, ImportItem *item, const BulkResult *result,
                        Outcome *outcome)
{
    switch (result->status) {
    case 200:
    case 201:
    case 204:
        outcome->written++;
        row_window_written(import->window, item->sequence);
        free_item(import, item);
        return;
    case 429:
        outcome->throttled++;
        if (result->retry_after_ms > outcome->retry_after_ms)
            outcome->retry_after_ms = result->retry_after_ms;
        give_back(import, item);
        return;
    case 410: /* its range is gone, and where it goes now is known soon */
        import->needs_map = true;
        outcome->failed++;
        give_back(import, item);
        return;
    case 408:
    case 424: /* another operation of the request has failed */
    case 449:
    case 500:
    case 503:
        break;
    default:
        reject_item(import, item, result->status, result->sub_status, result->message);
        return;
    }
    if (++item->attempts >= ATTEMPTS_MAX) {
        reject_item(import, item, result->status, result->sub_status, result->message);
        return;
    }
    outcome->failed++;
    uint32_t wait_ms = pace_backoff_ms(item->attempts - 1);
    outcome->wait_ms = wait_ms > outcome->wait_ms ? wait_ms : outcome->wait_ms;
    give_back(import, item);
}

static void take_all(Import *import, ImportCall *c, const BulkResult *results, bool is_one,
                     Outcome *outcome)
{
    for (uint32_t i = c->count; i-- > 0;)
        take_result(import, c->items[i], &results[is_one ? 0 : i], outcome);
}

/* The endpoint does not take this body as bulk: its items go one by one. 'is_refusal' if it may not
 * know bulk at all. */
static void fall_back(Import *import, ImportCall *c, bool is_refusal)
{
    import->bulk_refusals += is_refusal ? 1 : 0;
    for (uint32_t i = c->count; i-- > 0;) {
        c->items[i]->is_single = true;
        give_back(import, c->items[i]);
    }
}

static void drop_call_items(Import *import, ImportCall *c)
{
    for (uint32_t i = 0; i < c->count; i++)
        free_item(import, c->items[i]);
}

/* The server cannot be reached, or has not answered in time. Whether it has done what it was asked
 * is not known; doing it again is no harm. That is no reason to reject an item, however often it
 * happens. */
static Status take_failure(Import *import, ImportCall *c, Outcome *outcome, Error *err)
{
    uint64_t now_us = clock_monotonic_us(clock_real());
    if (import->failing_since_us == 0)
        import->failing_since_us = now_us;
    uint64_t failing_us = now_us - import->failing_since_us;
    if (failing_us > GIVE_UP_US) {
        drop_call_items(import, c);
        if (c->call.error.status == STATUS_OK)
            return remote_refused(&c->call, err);
        *err = c->call.error;
        return err->status;
    }
    uint64_t wait_ms = failing_us / 2000;
    outcome->failed = c->count;
    outcome->wait_ms = wait_ms < FAILURE_WAIT_MS_MIN   ? FAILURE_WAIT_MS_MIN
                       : wait_ms > FAILURE_WAIT_MS_MAX ? FAILURE_WAIT_MS_MAX
                                                       : (uint32_t)wait_ms;
    for (uint32_t i = c->count; i-- > 0;)
        give_back(import, c->items[i]);
    return STATUS_OK;
}

/* An answer to the request as a whole; the items of a refused one are dropped, since the import
 * ends. */
static Status take_refusal(Import *import, ImportCall *c, Outcome *outcome, Error *err)
{
    int status = c->call.http_status;
    BulkResult all = {
        .status = status,
        .sub_status = remote_sub_status(&c->call),
        .retry_after_ms = remote_retry_after_ms(&c->call),
    };
    bool is_key_full = status == 403 && all.sub_status == 1014; /* of one partition key */
    if (status == 401 || status == 404 || (status == 403 && !is_key_full)) {
        drop_call_items(import, c);
        return remote_refused(&c->call, err);
    }
    if (status == 408 || status == 410 || status == 449 || status == 503) {
        import->needs_map = import->needs_map || status == 410;
        return take_failure(import, c, outcome, err);
    }
    import->failing_since_us = 0;
    bool is_about_bulk = status == 400 || status == 405 || status == 413 || status == 501;
    if (c->is_bulk && (is_about_bulk || status == 500)) {
        fall_back(import, c, is_about_bulk && status != 413);
        return STATUS_OK;
    }
    all.message = answer_message(&c->arena, c->call.body);
    take_all(import, c, &all, true, outcome);
    return STATUS_OK;
}

/* Whether the item that the server has is the one that would be written. */
static bool is_same_item(ImportCall *c)
{
    Json theirs, ours;
    Error ignored;
    if (json_parse(&c->arena, c->call.body, &theirs, &ignored) != STATUS_OK ||
        json_parse(&c->arena, c->items[0]->text, &ours, &ignored) != STATUS_OK)
        return false;
    ItemHash a = item_hash(theirs);
    ItemHash b = item_hash(ours);
    return a.low == b.low && a.high == b.high;
}

/* The server has the item, or has none. One that must be written goes to the back: by then others
 * have been compared, and go with it in one request. */
static void take_read(Import *import, ImportCall *c)
{
    ImportItem *item = c->items[0];
    import->failing_since_us = 0;
    if (c->call.http_status == 200 && is_same_item(c)) {
        import->summary.unchanged++;
        row_window_written(import->window, item->sequence);
        free_item(import, item);
        return;
    }
    item->stage = IMPORT_WRITE;
    push_back(lane_of(import, item), item);
}

static Status take_answer(Import *import, ImportCall *c, Outcome *outcome, Error *err)
{
    int status = c->call.http_status;
    BulkResult results[PACE_OPERATIONS_MAX];
    if (c->call.error.status != STATUS_OK)
        return take_failure(import, c, outcome, err);
    import->answered_us = clock_monotonic_us(clock_real());
    if (c->is_read && (status == 200 || (status == 404 && remote_sub_status(&c->call) == 0))) {
        take_read(import, c);
        return STATUS_OK;
    }
    if (c->is_bulk && (status == 200 || status == 207)) {
        if (bulk_answer_parse(&c->arena, c->call.body, c->count, results, err) != STATUS_OK) {
            drop_call_items(import, c);
            return err->status;
        }
        import->bulk_refusals = 0;
        import->failing_since_us = 0;
        take_all(import, c, results, false, outcome);
        return STATUS_OK;
    }
    if (!c->is_bulk && (status == 200 || status == 201)) {
        import->failing_since_us = 0;
        take_all(import, c, &(BulkResult){.status = status}, true, outcome);
        return STATUS_OK;
    }
    return take_refusal(import, c, outcome, err);
}

Status import_answer(Import *import, ClientCall *ended, uint64_t now_us, Error *err)
{
    ImportCall *c = CONTAINER_OF(ended, ImportCall, call);
    ASSERT(c->is_active);
    Outcome outcome = {0};
    double charge = c->call.error.status == STATUS_OK ? remote_charge(&c->call) : 0;
    Pace *pace = &c->lane->pace;
    Status status = take_answer(import, c, &outcome, err);
    c->is_active = false;
    arena_reset(&c->arena);
    if (c->body.capacity > BODY_BYTES_KEPT) { /* few items are that large */
        buf_done(&c->body);
        buf_init(&c->body, BODY_BYTES_MAX);
    }
    import->active_count--;
    import->summary.ru += charge;
    import->summary.throttled += outcome.throttled;
    ru_limit_settle(&import->ru_limit, c->reserved, outcome.written, charge);
    if (outcome.throttled > 0)
        pace_throttled(pace, outcome.written, outcome.retry_after_ms, c->started_us, now_us);
    else if (outcome.failed > 0)
        pace_failed(pace, outcome.wait_ms, now_us);
    else
        pace_accepted(pace);
    return status;
}
