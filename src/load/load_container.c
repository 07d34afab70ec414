/* load_container.c - see load_container.h. */
#include "load/load_container.h"

#include "base/mem.h"

#include <inttypes.h>

enum { FILL_CONNECTIONS_MAX = 32, FILL_SECONDS_MAX = 86400, BODY_BYTES_MAX = 4096 };

static void put_id(Arena *arena, Buf *path, const char *before, Slice id)
{
    buf_slice(path, slice_from_cstr(before));
    buf_slice(path, percent_encode(arena, id, SLICE("-_.~")));
}

Slice load_container_path(Arena *arena, Slice database, Slice container)
{
    AUTO(buf_done) Buf path;
    buf_init(&path, BODY_BYTES_MAX);
    put_id(arena, &path, "/dbs/", database);
    put_id(arena, &path, "/colls/", container);
    buf_slice(&path, SLICE("/docs"));
    return slice_from_cstr(arena_cstr(arena, buf_view(&path)));
}

/* One request about a database or a container; the body of an answer that is none of the expected
 * ones is part of the error. */
static Status ask(const LoadContainer *c, const Clock *clock, Slice method, Slice path, Slice body,
                  int *status, Error *err)
{
    const LoadContainerOptions *o = c->options;
    AUTO(buf_done) Buf answer;
    AUTO(buf_done) Buf throughput;
    buf_init(&answer, REPLY_BODY_BYTES_MAX);
    buf_init(&throughput, 100);
    RequestOptions request = {
        .url = o->url,
        .method = method,
        .body = body,
        .signer = o->signer,
        .sign_each = true,
        .kind = WORKLOAD_REQUEST,
    };
    request.url.path = path;
    buf_format(&throughput, "x-ms-offer-throughput: %" PRIu32, o->throughput);
    if (slice_ends_with(path, SLICE("/colls")))
        request.headers[request.header_count++] = buf_view(&throughput);
    TRY(load_once(&request, o->target, 0, clock, status, &answer, err));
    if (*status >= 300 && *status != 409)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "%.*s of '%.*s' was answered with %d: %.*s", SLICE_ARG(method),
                         SLICE_CUT(path, 100), *status, SLICE_CUT(buf_view(&answer), 300));
    return STATUS_OK;
}

/* Ids have no quotation marks and backslashes in them: the command has refused those. */
static Status make_container(LoadContainer *c, Arena *arena, const Clock *clock, int *status,
                             Error *err)
{
    AUTO(buf_done) Buf body;
    AUTO(buf_done) Buf path;
    buf_init(&body, BODY_BYTES_MAX);
    buf_init(&path, BODY_BYTES_MAX);
    buf_format(&body,
               "{\"id\":\"%.*s\",\"partitionKey\":{\"paths\":[\"/pk\"],\"kind\":\"Hash\","
               "\"version\":2}}",
               SLICE_ARG(c->options->container));
    put_id(arena, &path, "/dbs/", c->options->database);
    buf_slice(&path, SLICE("/colls"));
    return ask(c, clock, SLICE("POST"), buf_view(&path), buf_view(&body), status, err);
}

Status load_container_create(LoadContainer *c, const LoadContainerOptions *options,
                             const Clock *clock, Error *err)
{
    AUTO(arena_done) Arena arena;
    AUTO(buf_done) Buf body;
    arena_init(&arena, 1024);
    buf_init(&body, BODY_BYTES_MAX);
    *c = (LoadContainer){.options = options};
    buf_format(&body, "{\"id\":\"%.*s\"}", SLICE_ARG(options->database));
    int status = 0;
    TRY(ask(c, clock, SLICE("POST"), SLICE("/dbs"), buf_view(&body), &status, err));
    c->made_database = status == 201;
    TRY(make_container(c, &arena, clock, &status, err));
    c->made_container = status == 201;
    if (c->made_container)
        return STATUS_OK;
    return error_set(err, STATUS_CONFLICT, SUB_NONE,
                     "the container '%.*s' exists already: leave out --create to use it as it is, "
                     "or name another with --container",
                     SLICE_CUT(options->container, 100));
}

/* Batches may have used the throughput of seconds to come; what is measured next must not wait for
 * that. '*result' gets the request units of the read that waits. */
static Status wait_until_served(const LoadOptions *filled, const Clock *clock, LoadResult *result,
                                Error *err)
{
    AUTO(mem_free) void *memory = mem_alloc(sizeof(LoadResult));
    LoadResult *waited = memory;
    LoadOptions read = *filled;
    memset(read.request.items.percent, 0, sizeof(read.request.items.percent));
    read.request.items.percent[LOAD_ITEM_READ] = 100;
    read.connections = 1;
    read.count = 1;
    read.milli_ru_max = 0;
    TRY(load_run(&read, clock, waited, err));
    result->milli_ru += waited->milli_ru;
    result->throttled += waited->throttled;
    result->end = waited->end;
    return STATUS_OK;
}

Status load_container_fill(const LoadOptions *options, const Clock *clock, LoadResult *result,
                           Error *err)
{
    LoadOptions fill = *options;
    ItemOptions *items = &fill.request.items;
    fill.request.kind = WORKLOAD_ITEMS;
    fill.request.sign_each = true;
    memset(items->percent, 0, sizeof(items->percent));
    items->percent[LOAD_ITEM_BATCH] = 100;
    items->distribution = KEY_UNIFORM;
    items->first = 0;
    items->end = items->count;
    if (fill.connections > FILL_CONNECTIONS_MAX)
        fill.connections = FILL_CONNECTIONS_MAX;
    fill.seconds = FILL_SECONDS_MAX;
    fill.rate = 0;
    fill.drains = false;
    fill.no_retry = false;
    fill.pid = 0;
    AUTO(item_maker_done) ItemMaker maker;
    item_maker_init(&maker, items);
    fill.count = item_maker_batches(&maker);
    TRY(load_run(&fill, clock, result, err));
    if (result->errors > 0)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "the items could not be made; the server answered %d: %s",
                         result->error_status, result->error_text);
    if (result->failures > 0)
        return error_set(err, STATUS_IO, SUB_NONE, "the items could not be made: %s",
                         result->first_failure.message);
    return result->end == LOAD_END_DONE ? wait_until_served(&fill, clock, result, err) : STATUS_OK;
}

Status load_container_drop(LoadContainer *c, const Clock *clock, Error *err)
{
    AUTO(arena_done) Arena arena;
    AUTO(buf_done) Buf path;
    arena_init(&arena, 1024);
    buf_init(&path, BODY_BYTES_MAX);
    put_id(&arena, &path, "/dbs/", c->options->database);
    int status = 0;
    if (c->made_database) {
        c->made_database = false;
        c->made_container = false;
        return ask(c, clock, SLICE("DELETE"), buf_view(&path), SLICE_EMPTY, &status, err);
    }
    if (!c->made_container)
        return STATUS_OK;
    c->made_container = false;
    put_id(&arena, &path, "/colls/", c->options->container);
    return ask(c, clock, SLICE("DELETE"), buf_view(&path), SLICE_EMPTY, &status, err);
}
