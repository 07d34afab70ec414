/* usage.c - see usage_int.h. */
#include "api/core/usage_int.h"

#include "base/mem.h"
#include "base/random.h"

enum {
    /* Of a name while it is printed: a key has at most three strings, each of which is cut and
       takes at most six times as many bytes with its escapes. */
    NAME_BYTES_MAX = 3 * 6 * TOP_TEXT_MAX + 256,
};

static bool is_on(const Api *api)
{
    return api->options.histories != NULL;
}

/* The clock was read when the request came in; a request that is answered at once needs no second
 * look. */
static uint64_t time_of(const ApiRequest *r, uint64_t now_us)
{
    return now_us == r->http->begun_us ? (uint64_t)r->now_s
                                       : (uint64_t)clock_wall_s(r->api->options.clock);
}

/* ---- names ---- */

Slice usage_cut(Slice text, size_t max, bool *is_cut)
{
    if (text.len <= max)
        return text;
    *is_cut = true;
    while (max > 0 && ((uint8_t)text.ptr[max] & 0xC0) == 0x80)
        max--;
    return slice_first(text, max);
}

static void print_part(Json part, Buf *out, bool *is_cut)
{
    switch (json_type(part)) {
    case JSON_STRING:
        json_print_string(usage_cut(json_string(part), TOP_TEXT_MAX, is_cut), out);
        break;
    case JSON_UNDEFINED:
        buf_slice(out, SLICE("{}"));
        break;
    case JSON_NULL:
    case JSON_BOOL:
    case JSON_NUMBER:
    case JSON_ARRAY: /* a key has none of these two */
    case JSON_OBJECT:
        json_print(part, out);
        break;
    }
}

typedef struct Named {
    ApiLoop *loop;
    const PartitionKey *key;
} Named;

/* The key as clients send it in x-ms-documentdb-partitionkey. */
static size_t print_name(const void *ctx, char out[TOP_TEXT_MAX], bool *is_cut)
{
    const Named *named = ctx;
    Buf *text = &named->loop->name;
    *is_cut = false;
    buf_reset(text);
    buf_byte(text, '[');
    for (size_t i = 0; i < named->key->count; i++) {
        if (i > 0)
            buf_byte(text, ',');
        print_part(named->key->parts[i], text, is_cut);
    }
    buf_byte(text, ']');
    Slice cut = usage_cut(buf_view(text), TOP_TEXT_MAX, is_cut);
    memcpy(out, cut.ptr, cut.len);
    return cut.len;
}

/* ---- noting ---- */

void usage_begin(ApiRequest *r)
{
    static const uint8_t kinds[OPERATION_COUNT] = {
        [OPERATION_LIST] = HISTORY_LIST,       [OPERATION_CREATE] = HISTORY_CREATE,
        [OPERATION_QUERY] = HISTORY_QUERY,     [OPERATION_READ] = HISTORY_READ,
        [OPERATION_REPLACE] = HISTORY_REPLACE, [OPERATION_PATCH] = HISTORY_PATCH,
        [OPERATION_DELETE] = HISTORY_DELETE,   [OPERATION_EXECUTE] = HISTORY_SCRIPT,
    };
    r->counted_as = (HistoryOperation)kinds[r->operation];
}

void usage_name(ApiRequest *r, const Container *container, const PartitionKey *key, Slice epk)
{
    if (!is_on(r->api))
        return;
    r->usage = (UsageKey){
        .is_known = true,
        .container = container->info.number,
        .key = *key,
        .epk = arena_copy(r->arena, epk),
    };
}

static void note_key(ApiRequest *r, TopKind kind, const UsageKey *usage,
                     const PartitionRange *range, uint64_t weight, uint64_t now_s)
{
    TopKey key = {.container = usage->container, .range = range->id, .epk = usage->epk};
    Named named = {r->loop, &usage->key};
    top_keys_add(r->loop->top, kind, now_s, &key, weight, (TopName){print_name, &named});
}

static void note(ApiRequest *r, TopKind kind, PartitionHandle *partition, HistoryCount count,
                 uint64_t weight, uint64_t now_us)
{
    if (!is_on(r->api))
        return;
    uint64_t now_s = time_of(r, now_us);
    handle_note(partition, r->api->options.histories, now_s, r->counted_as, count);
    if (r->usage.is_known)
        note_key(r, kind, &r->usage, handle_range(partition), weight, now_s);
}

void usage_paid(ApiRequest *r, PartitionHandle *partition, Charge charge, uint64_t now_us)
{
    HistoryCount count = {.charge = charge, .requests = 1};
    note(r, TOP_CHARGE, partition, count, charge, now_us);
}

void usage_throttled(ApiRequest *r)
{
    HistoryCount count = {.requests = 1, .throttled = 1};
    if (r->refused_by != NULL)
        note(r, TOP_THROTTLED, r->refused_by, count, 1, r->http->begun_us);
}

void usage_paid_by(ApiRequest *r, const Container *container, const PartitionRange *range,
                   const PartitionKey *key, Slice epk, Charge charge)
{
    if (!is_on(r->api))
        return;
    UsageKey usage = {.container = container->info.number, .key = *key, .epk = epk};
    note_key(r, TOP_CHARGE, &usage, range, charge, (uint64_t)clock_wall_s(r->api->options.clock));
}

/* ---- what is kept ---- */

void usage_open(Api *api)
{
    random_secret(&api->top_key, sizeof(api->top_key));
}

void usage_close(Api *api)
{
    for (size_t i = 0; i < USAGE_LOOPS_MAX; i++) {
        top_keys_free(atomic_load(&api->tops[i]));
        query_log_free(atomic_load(&api->query_logs[i]));
    }
}

void usage_loop_open(ApiLoop *loop)
{
    Api *api = loop->api;
    buf_init(&loop->name, NAME_BYTES_MAX);
    loop->top = top_keys_new(top_keys_entries(api->options.loops), api->top_key);
    uint32_t place = atomic_fetch_add(&api->top_count, 1);
    ASSERT(place < USAGE_LOOPS_MAX); /* there are no more loops than that */
    atomic_store(&api->tops[place], loop->top);
    if (!is_on(api) || api->options.no_query_texts)
        return;
    loop->queries = query_log_new(query_log_entries(api->options.loops), api->top_key);
    atomic_store(&api->query_logs[place], loop->queries);
}

void usage_loop_close(ApiLoop *loop)
{
    mem_free(loop->shapes);
    buf_done(&loop->name);
}

size_t usage_tops(const Api *api, const Top *tops[USAGE_LOOPS_MAX])
{
    size_t count = 0;
    for (size_t i = 0; i < USAGE_LOOPS_MAX; i++) {
        const Top *top = atomic_load(&api->tops[i]);
        if (top != NULL)
            tops[count++] = top;
    }
    return count;
}

size_t usage_query_logs(const Api *api, const QueryLog *logs[USAGE_LOOPS_MAX])
{
    size_t count = 0;
    for (size_t i = 0; i < USAGE_LOOPS_MAX; i++) {
        const QueryLog *log = atomic_load(&api->query_logs[i]);
        if (log != NULL)
            logs[count++] = log;
    }
    return count;
}
