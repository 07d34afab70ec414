/* orrery_chaos.c - asking for faults: paths under /_orrery/chaos.
 *
 *     GET, DELETE /_orrery/chaos                            what is armed; clears it
 *     POST /_orrery/chaos/dbs/{db}/colls/{coll}/split       {"range", "parts", "by", "at"}
 *                                               merge       {"ranges"}
 *                                               throttle    {"range", "seconds" or "requests"}
 *                                               faults      {"kind", "status", "delayMs", ...}
 *                                               session     {"range", "lag", "requests"}
 *
 * Signed like the others under /_orrery: as a request for the container, or for the account. They
 * need a master key, and a server that was started with --enable-chaos.
 */
#include "api/admin/chaos_int.h"
#include "api/admin/load_middle_int.h"
#include "api/admin/orrery_int.h"
#include "api/core/request_audit_int.h"
#include "api/core/response_int.h"
#include "catalog/epk_range.h"

enum { BODY_MEMBERS_MAX = 8, RETRY_MS_DEFAULT = 10, PARTS_DEFAULT = 2 };

typedef struct Body {
    Json json; /* an object; undefined if nothing was sent */
} Body;

typedef struct ChaosPath {
    Slice name;
    const char *members[BODY_MEMBERS_MAX]; /* that its body may have */
    Status (*run)(ApiRequest *r, const Body *body, Error *err);
} ChaosPath;

/* ---- bodies ---- */

static Status read_body(const ApiRequest *r, const ChaosPath *path, Body *out, Error *err)
{
    out->json = JSON_NONE;
    if (slice_trim(r->http->body).len == 0)
        return STATUS_OK;
    TRY(request_json(r, &out->json, err));
    for (JsonIter it = json_iter(out->json); json_next(&it);) {
        size_t i = 0;
        while (i < BODY_MEMBERS_MAX && path->members[i] != NULL &&
               !slice_equal(it.name, slice_from_cstr(path->members[i])))
            i++;
        if (i == BODY_MEMBERS_MAX || path->members[i] == NULL)
            return error_set(err, STATUS_BAD_REQUEST, SUB_NONE, "'%.*s' has no member '%.*s'.",
                             SLICE_ARG(path->name), SLICE_CUT(it.name, 60));
    }
    return STATUS_OK;
}

static bool has(const Body *body, const char *name)
{
    return !json_is(json_get(body->json, slice_from_cstr(name)), JSON_UNDEFINED);
}

static Status get_number(const Body *body, const char *name, uint64_t min, uint64_t max,
                         uint64_t fallback, uint64_t *out, Error *err)
{
    int64_t value = 0;
    *out = fallback;
    if (!has(body, name))
        return STATUS_OK;
    if (!json_to_i64(json_get(body->json, slice_from_cstr(name)), &value) || value < 0 ||
        (uint64_t)value < min || (uint64_t)value > max)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "'%s' must be a whole number from %llu to %llu.", name,
                         (unsigned long long)min, (unsigned long long)max);
    *out = (uint64_t)value;
    return STATUS_OK;
}

/* The same for numbers of 32 bits. */
static Status get_small(const Body *body, const char *name, uint32_t min, uint32_t max,
                        uint32_t fallback, uint32_t *out, Error *err)
{
    uint64_t value = 0;
    TRY(get_number(body, name, min, max, fallback, &value, err));
    *out = (uint32_t)value;
    return STATUS_OK;
}

/* Finds the member 'name' among the words; the first word if it was not sent. */
static Status get_word(const Body *body, const char *name, const Slice *words, size_t count,
                       size_t *out, Error *err)
{
    *out = 0;
    if (!has(body, name))
        return STATUS_OK;
    Json value = json_get(body->json, slice_from_cstr(name));
    for (size_t i = 0; i < count && json_is(value, JSON_STRING); i++) {
        *out = i;
        if (slice_equal(json_string(value), words[i]))
            return STATUS_OK;
    }
    AUTO(buf_done) Buf known;
    buf_init(&known, 256);
    for (size_t i = 0; i < count; i++)
        buf_format(&known, "%s'%.*s'", i == 0 ? "" : ", ", SLICE_ARG(words[i]));
    return error_set(err, STATUS_BAD_REQUEST, SUB_NONE, "'%s' must be one of %.*s.", name,
                     SLICE_ARG(buf_view(&known)));
}

/* ---- ranges ---- */

static Status find_range(const Container *container, Json id, const PartitionRange **out,
                         Error *err)
{
    uint64_t number = 0;
    if (!json_is(id, JSON_STRING) || !slice_to_u64(json_string(id), &number) || number > UINT32_MAX)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "A range is named by its id, as text, for example \"0\".");
    *out = container_range(container, (uint32_t)number);
    if (*out != NULL)
        return STATUS_OK;
    return error_set(err, STATUS_GONE, SUB_PARTITION_KEY_RANGE_GONE,
                     "The container has no partition key range '%llu' (any more).",
                     (unsigned long long)number);
}

/* The range that the body names; it need not if there is only one. */
static Status get_range(const ApiRequest *r, const Body *body, const PartitionRange **out,
                        Error *err)
{
    *out = &r->container->ranges[0];
    if (!has(body, "range") && r->container->range_count == 1)
        return STATUS_OK;
    return find_range(r->container, json_get(body->json, SLICE("range")), out, err);
}

/* ---- splits and merges ---- */

static Status order(ApiRequest *r, const MoveOrder *order, Error *err)
{
    uint64_t event = 0;
    TRY(catalog_order_move(r->api->options.catalog, order, &event, err));
    respond_text(r, 202, SLICE("application/json"),
                 arena_format(r->arena, "{\"event\":%llu}", (unsigned long long)event));
    return STATUS_OK;
}

static Status get_cut(const Body *body, const PartitionRange *range, uint32_t parts, Slice *out,
                      Error *err)
{
    *out = SLICE_EMPTY;
    if (!has(body, "at"))
        return STATUS_OK;
    Json value = json_get(body->json, SLICE("at"));
    Slice text = json_is(value, JSON_STRING) ? json_string(value) : SLICE_EMPTY;
    if (has(body, "by") || parts != 2 || !epk_is_bound(text) ||
        slice_compare(text, range->min) <= 0 || slice_compare(text, range->max) >= 0)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "'at' must be an effective partition key between '%.*s' and '%.*s', in "
                         "upper-case hexadecimal; it makes two parts, and 'by' does not go with "
                         "it.",
                         SLICE_CUT(range->min, 100), SLICE_CUT(range->max, 100));
    *out = text;
    return STATUS_OK;
}

static Status run_split(ApiRequest *r, const Body *body, Error *err)
{
    enum { BY_LOAD = SPLIT_BY_HASH + 1 };
    static const Slice words[] = {[SPLIT_BY_SIZE] = SLICE_INIT("size"),
                                  [SPLIT_BY_HASH] = SLICE_INIT("hash"),
                                  [BY_LOAD] = SLICE_INIT("load")};
    const PartitionRange *range = NULL;
    MoveOrder wanted = {.database = r->database->info.number,
                        .container = r->container->info.number};
    size_t by = 0;
    if (r->container->partition_key.kind == PARTITION_NONE)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "The container has no partition key, so its partition cannot be split.");
    TRY(get_range(r, body, &range, err));
    TRY(get_small(body, "parts", 2, MOVE_RANGES_MAX, PARTS_DEFAULT, &wanted.parts, err));
    TRY(get_word(body, "by", words, ARRAY_COUNT(words), &by, err));
    TRY(get_cut(body, range, wanted.parts, &wanted.cut, err));
    wanted.range_first = range->id;
    wanted.range_last = range->id;
    if (by == BY_LOAD)
        TRY(load_middle(r, range, wanted.parts, &wanted.cut, err));
    else
        wanted.by = (SplitBy)by;
    return order(r, &wanted, err);
}

/* They may be named in any order, and must be neighbours. */
static Status run_merge(ApiRequest *r, const Body *body, Error *err)
{
    const Container *container = r->container;
    Json list = json_get(body->json, SLICE("ranges"));
    size_t count = json_is(list, JSON_ARRAY) ? json_count(list) : 0;
    if (count < 2 || count > MOVE_RANGES_MAX)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "'ranges' must be an array of the ids of 2 to %d neighbours.",
                         MOVE_RANGES_MAX);
    bool *is_named = ARENA_NEW_ARRAY(r->arena, bool, container->range_count);
    size_t first = container->range_count;
    size_t distinct = 0;
    for (JsonIter it = json_iter(list); json_next(&it);) {
        const PartitionRange *range = NULL;
        TRY(find_range(container, it.value, &range, err));
        size_t index = (size_t)(range - container->ranges);
        distinct += is_named[index] ? 0 : 1;
        is_named[index] = true;
        first = index < first ? index : first;
    }
    size_t run = 0;
    while (first + run < container->range_count && is_named[first + run])
        run++;
    if (run != count || distinct != count)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "'ranges' must be neighbours in the order of their hashes.");
    MoveOrder wanted = {
        .database = r->database->info.number,
        .container = container->info.number,
        .range_first = container->ranges[first].id,
        .range_last = container->ranges[first + run - 1].id,
        .parts = 1,
    };
    return order(r, &wanted, err);
}

/* ---- rules ---- */

static const Slice KIND_WORDS[] = {SLICE_INIT("any"), SLICE_INIT("read"), SLICE_INIT("write"),
                                   SLICE_INIT("query")};
static const ChaosKind KINDS[] = {CHAOS_ANY, CHAOS_READ, CHAOS_WRITE, CHAOS_QUERY};

static Slice kind_word(ChaosKind kind)
{
    size_t i = 0;
    while (KINDS[i] != kind)
        i++;
    return KIND_WORDS[i];
}

static void put_faults(Buf *out, const ChaosRule *rule)
{
    put_text(out, "kind", kind_word(rule->kind));
    if (rule->status != STATUS_OK) {
        put_number(out, "status", (uint64_t)status_http(rule->status));
        put_number(out, "substatus", rule->sub);
        put_number(out, "retryAfterMs", rule->retry_after_ms);
    }
    put_number(out, "delayMs", rule->delay_ms);
    put_number(out, "percent", rule->percent);
    put_number(out, "seed", rule->seed);
}

/* 'now_us' is monotonic. */
static void put_rule(Buf *out, const Database *database, const Container *container,
                     const ChaosRule *rule, uint64_t now_us)
{
    static const Slice names[] = {[CHAOS_FAULTS] = SLICE_INIT("faults"),
                                  [CHAOS_THROTTLE] = SLICE_INIT("throttle"),
                                  [CHAOS_SESSION] = SLICE_INIT("session")};
    put_open(out, NULL, '{');
    put_number(out, "id", rule->id);
    put_text(out, "what", names[rule->what]);
    put_text(out, "database", database->info.id);
    put_text(out, "container", container->info.id);
    if (rule->what == CHAOS_FAULTS)
        put_faults(out, rule);
    else
        put_id(out, "range", rule->range);
    if (rule->what == CHAOS_SESSION && rule->lag != UINT64_MAX)
        put_number(out, "lag", rule->lag);
    if (rule->until_us != 0)
        put_number(out, "msLeft",
                   rule->until_us > now_us ? (rule->until_us - now_us + 999) / 1000 : 0);
    if (rule->left != UINT64_MAX)
        put_number(out, "requestsLeft", rule->left);
    put_number(out, "acted", rule->acted);
    put_close(out, '}');
}

static ChaosRule rule_new(const ApiRequest *r, ChaosWhat what)
{
    return (ChaosRule){
        .what = what,
        .database = r->database->info.number,
        .container = r->container->info.number,
        .left = UINT64_MAX,
    };
}

static uint64_t now_us(const ApiRequest *r)
{
    return clock_monotonic_us(r->api->options.clock);
}

static Status arm(ApiRequest *r, ChaosRule *rule, Error *err)
{
    TRY(chaos_arm(r->api->chaos, rule, err));
    AUTO(buf_done) Buf text;
    buf_init(&text, ORRERY_JSON_BYTES_MAX);
    put_rule(&text, r->database, r->container, rule, now_us(r));
    respond_text(r, 201, SLICE("application/json"), arena_copy(r->arena, buf_view(&text)));
    return STATUS_OK;
}

static Status name_range(const ApiRequest *r, const Body *body, ChaosRule *rule, Error *err)
{
    const PartitionRange *range = NULL;
    TRY(get_range(r, body, &range, err));
    rule->range = range->id;
    rule->space = range->space;
    return STATUS_OK;
}

static Status run_throttle(ApiRequest *r, const Body *body, Error *err)
{
    ChaosRule rule = rule_new(r, CHAOS_THROTTLE);
    uint64_t seconds = 0;
    TRY(name_range(r, body, &rule, err));
    TRY(get_number(body, "seconds", 1, CHAOS_SECONDS_MAX, 0, &seconds, err));
    TRY(get_number(body, "requests", 1, CHAOS_COUNT_MAX, UINT64_MAX, &rule.left, err));
    TRY(get_small(body, "retryAfterMs", 0, CHAOS_DELAY_MS_MAX, RETRY_MS_DEFAULT,
                  &rule.retry_after_ms, err));
    if ((seconds == 0) == (rule.left == UINT64_MAX))
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "Send how long to throttle: either 'seconds' or 'requests'.");
    if (seconds > 0)
        rule.until_us = now_us(r) + seconds * 1000000;
    return arm(r, &rule, err);
}

static Status run_session(ApiRequest *r, const Body *body, Error *err)
{
    ChaosRule rule = rule_new(r, CHAOS_SESSION);
    TRY(name_range(r, body, &rule, err));
    TRY(get_number(body, "lag", 1, CHAOS_COUNT_MAX, UINT64_MAX, &rule.lag, err));
    TRY(get_number(body, "requests", 1, CHAOS_COUNT_MAX, UINT64_MAX, &rule.left, err));
    if (!has(body, "lag") && !has(body, "requests"))
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "Send 'lag', how many LSNs the partition seems to be behind, or "
                         "'requests', for how many requests, or both.");
    return arm(r, &rule, err);
}

/* Any failure that the protocol has. */
static Status get_status(const Body *body, Status *out, Error *err)
{
    int64_t http = 0;
    *out = STATUS_OK;
    if (!has(body, "status"))
        return STATUS_OK;
    bool is_number = json_to_i64(json_get(body->json, SLICE("status")), &http);
    for (int i = 0; is_number && i < STATUS_COUNT; i++) {
        if (status_http((Status)i) == http && http >= 400) {
            *out = (Status)i;
            return STATUS_OK;
        }
    }
    return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                     "'status' must be a failure that the protocol has, such as 408, 410, 429, 449 "
                     "or 503.");
}

static Status run_faults(ApiRequest *r, const Body *body, Error *err)
{
    ChaosRule rule = rule_new(r, CHAOS_FAULTS);
    size_t kind = 0;
    TRY(get_word(body, "kind", KIND_WORDS, ARRAY_COUNT(KIND_WORDS), &kind, err));
    rule.kind = KINDS[kind];
    TRY(get_status(body, &rule.status, err));
    TRY(get_small(body, "substatus", 0, 99999, 0, &rule.sub, err));
    TRY(get_small(body, "retryAfterMs", 0, CHAOS_DELAY_MS_MAX, 0, &rule.retry_after_ms, err));
    TRY(get_small(body, "delayMs", 0, CHAOS_DELAY_MS_MAX, 0, &rule.delay_ms, err));
    TRY(get_number(body, "count", 1, CHAOS_COUNT_MAX, 1, &rule.left, err));
    TRY(get_small(body, "percent", 1, 100, 100, &rule.percent, err));
    TRY(get_number(body, "seed", 0, INT64_MAX, 1, &rule.seed, err));
    if (rule.status == STATUS_OK && rule.delay_ms == 0)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "Send 'status' to let requests fail, 'delayMs' to delay them, or both.");
    if (rule.status == STATUS_OK && (has(body, "substatus") || has(body, "retryAfterMs")))
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "'substatus' and 'retryAfterMs' go with a 'status'.");
    return arm(r, &rule, err);
}

/* ---- all of them ---- */

static void respond_rules(ApiRequest *r)
{
    ChaosRule *rules = ARENA_NEW_ARRAY(r->arena, ChaosRule, CHAOS_RULES_MAX);
    size_t count = chaos_rules(r->api->chaos, rules);
    AUTO(buf_done) Buf text;
    buf_init(&text, ORRERY_JSON_BYTES_MAX);
    put_open(&text, NULL, '{');
    put_open(&text, "rules", '[');
    for (size_t i = 0; i < count; i++) {
        const Database *database = snapshot_database(r->snapshot, rules[i].database);
        const Container *container =
            snapshot_container(r->snapshot, rules[i].database, rules[i].container);
        if (container != NULL) /* a rule of a deleted container no longer acts */
            put_rule(&text, database, container, &rules[i], now_us(r));
    }
    put_close(&text, ']');
    put_close(&text, '}');
    respond_text(r, 200, SLICE("application/json"), arena_copy(r->arena, buf_view(&text)));
}

static Status answer_account(ApiRequest *r, Error *err)
{
    if (slice_equal(r->http->method, SLICE("DELETE"))) {
        size_t count = chaos_clear(r->api->chaos);
        respond_text(r, 200, SLICE("application/json"),
                     arena_format(r->arena, "{\"cleared\":%zu}", count));
        return STATUS_OK;
    }
    if (!r->is_head && !slice_equal(r->http->method, SLICE("GET")))
        return error_set(err, STATUS_METHOD_NOT_ALLOWED, SUB_NONE,
                         "%.*s is not possible here; GET and DELETE are.",
                         SLICE_CUT(r->http->method, 20));
    respond_rules(r);
    return STATUS_OK;
}

static const ChaosPath PATHS[] = {
    {SLICE_INIT("split"), {"range", "parts", "by", "at"}, run_split},
    {SLICE_INIT("merge"), {"ranges"}, run_merge},
    {SLICE_INIT("throttle"), {"range", "seconds", "requests", "retryAfterMs"}, run_throttle},
    {SLICE_INIT("faults"),
     {"kind", "status", "substatus", "retryAfterMs", "delayMs", "count", "percent", "seed"},
     run_faults},
    {SLICE_INIT("session"), {"range", "lag", "requests"}, run_session},
};

static Status answer_container(ApiRequest *r, Slice name, Error *err)
{
    for (size_t i = 0; i < ARRAY_COUNT(PATHS); i++) {
        if (!slice_equal(name, PATHS[i].name))
            continue;
        if (!slice_equal(r->http->method, SLICE("POST")))
            return error_set(err, STATUS_METHOD_NOT_ALLOWED, SUB_NONE,
                             "%.*s is not possible here; POST is.", SLICE_CUT(r->http->method, 20));
        Body body;
        TRY(read_body(r, &PATHS[i], &body, err));
        TRY(request_resolve(r, err));
        request_audit_subject(r, r->container->info.id, r->container->info.rid);
        return PATHS[i].run(r, &body, err);
    }
    return error_set(err, STATUS_NOT_FOUND, SUB_NONE,
                     "There is no such path. There are split, merge, throttle, faults and session "
                     "under /_orrery/chaos/dbs/{id}/colls/{id}/.");
}

bool chaos_is_path(Slice path)
{
    Slice prefix = SLICE("/chaos");
    return slice_starts_with(path, prefix) &&
           (path.len == prefix.len || path.ptr[prefix.len] == '/');
}

/* Cuts "/chaos/dbs/d/colls/c/split" into the resource and what is asked of it. */
static Slice split_path(Slice path, Slice *name)
{
    path = slice_from(path, strlen("/chaos"));
    while (slice_ends_with(path, SLICE("/")))
        path.len--;
    size_t at = path.len;
    while (at > 0 && path.ptr[at - 1] != '/')
        at--;
    *name = slice_from(path, at);
    return slice_first(path, at);
}

Status chaos_admit(ApiRequest *r, Slice path, Error *err)
{
    Slice name;
    TRY(address_parse(r->arena, split_path(path, &name), &r->address, err));
    r->operation = OPERATION_EXECUTE; /* so that a read-only key is refused */
    TRY(request_authorise(r, false, err));
    if (r->api->chaos == NULL)
        return error_set(err, STATUS_FORBIDDEN, SUB_NONE,
                         "Trouble can be asked for only if the server was started with "
                         "--enable-chaos.");
    return STATUS_OK;
}

Status chaos_request(ApiRequest *r, Slice path, Error *err)
{
    Slice name;
    Slice resource = split_path(path, &name);
    r->snapshot = catalog_read(&r->loop->reader);
    bool is_container = r->address.type == RESOURCE_CONTAINER && !r->address.is_feed;
    if (resource.len == 0 && name.len == 0)
        return answer_account(r, err);
    return answer_container(r, is_container ? name : SLICE_EMPTY, err);
}
