/* copy_setup.c - before the first item: the definition of the copy, its throughput and scripts, and
 * the feed of all versions of the source; see copy_int.h. */
#include "base/mem.h"
#include "transfer/copy_int.h"

enum { RETENTION_MINUTES = 1440, FIRST_RANGE_MARGIN = 256 };

static bool is_left_out(const CopyOptions *o, Slice name)
{
    static const Slice names[] = {SLICE_INIT("id"),      SLICE_INIT("_rid"),
                                  SLICE_INIT("_ts"),     SLICE_INIT("_self"),
                                  SLICE_INIT("_etag"),   SLICE_INIT("_docs"),
                                  SLICE_INIT("_sprocs"), SLICE_INIT("_triggers"),
                                  SLICE_INIT("_udfs"),   SLICE_INIT("_conflicts")};
    for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
        if (slice_equal(name, names[i]))
            return true;
    }
    return (o->partition_key != NULL && slice_equal(name, SLICE("partitionKey"))) ||
           (o->indexing != NULL && slice_equal(name, SLICE("indexingPolicy")));
}

static void print_key_paths(const char *text, Buf *out)
{
    buf_slice(out, SLICE(",\"partitionKey\":{\"paths\":["));
    Slice paths = slice_from_cstr(text);
    bool is_first = true;
    while (paths.len > 0) {
        buf_slice(out, is_first ? SLICE("") : SLICE(","));
        json_print_string(slice_trim(slice_cut(&paths, ',')), out);
        is_first = false;
    }
    buf_format(out, "],\"kind\":\"%s\",\"version\":2}",
               strchr(text, ',') != NULL ? "MultiHash" : "Hash");
}

/* The definition of the source with what the options change. */
static void print_definition(const CopyOptions *o, Json source, Slice id, Buf *out)
{
    buf_slice(out, SLICE("{\"id\":"));
    json_print_string(id, out);
    for (JsonIter it = json_iter(source); json_next(&it);) {
        if (is_left_out(o, it.name))
            continue;
        buf_byte(out, ',');
        json_print_string(it.name, out);
        buf_byte(out, ':');
        json_print(it.value, out);
    }
    if (o->partition_key != NULL)
        print_key_paths(o->partition_key, out);
    if (o->indexing != NULL) {
        buf_slice(out, SLICE(",\"indexingPolicy\":"));
        buf_slice(out, slice_from_cstr(o->indexing));
    }
    buf_byte(out, '}');
}

Status copy_read_container(const CopySide *side, Arena *arena, Json *out, Slice *rid, bool *found,
                           Error *err)
{
    ClientCall call = remote_call(&side->remote, REMOTE_CONTAINER, arena);
    TRY(remote_ask(&side->remote, &call, err));
    *found = call.http_status == 200;
    if (call.http_status == 404)
        return STATUS_OK;
    if (call.http_status != 200)
        return remote_refused(&call, err);
    if (json_parse(arena, call.body, out, err) != STATUS_OK)
        return error_context(err, "the definition of the container");
    Json text = json_get(*out, SLICE("_rid"));
    *rid = json_is(text, JSON_STRING) ? json_string(text) : SLICE_EMPTY;
    return STATUS_OK;
}

/* ---- throughput ---- */

/* The header with which a container is made that has the throughput of the source. */
static Status read_throughput(Copy *copy, Json source, Arena *arena, ClientHeader *out, bool *found,
                              Error *err)
{
    *found = false;
    if (copy->options->throughput > 0) {
        *out = (ClientHeader){"x-ms-offer-throughput",
                              arena_format(arena, "%u", copy->options->throughput)};
        *found = true;
        return STATUS_OK;
    }
    Json self = json_get(source, SLICE("_self"));
    if (!json_is(self, JSON_STRING))
        return STATUS_OK;
    Buf body;
    buf_init(&body, 4096);
    buf_slice(&body, SLICE("{\"query\":\"SELECT * FROM root WHERE root.resource = @r\","
                           "\"parameters\":[{\"name\":\"@r\",\"value\":"));
    json_print_string(json_string(self), &body);
    buf_slice(&body, SLICE("}]}"));
    const ClientHeader headers[] = {{"content-type", SLICE("application/query+json")},
                                    {"x-ms-documentdb-isquery", SLICE("True")}};
    ClientCall call = {.method = CLIENT_POST,
                       .arena = arena,
                       .path = SLICE("/offers"),
                       .resource_type = SLICE("offers"),
                       .headers = headers,
                       .header_count = ARRAY_COUNT(headers),
                       .content = arena_copy(arena, buf_view(&body))};
    buf_done(&body);
    TRY(remote_ask(&copy->source.remote, &call, err));
    Json feed;
    Error ignored;
    if (call.http_status != 200 || json_parse(arena, call.body, &feed, &ignored) != STATUS_OK)
        return STATUS_OK; /* no offers here: a serverless account */
    JsonIter it = json_iter(json_get(feed, SLICE("Offers")));
    if (!json_is(json_get(feed, SLICE("Offers")), JSON_ARRAY) || !json_next(&it))
        return STATUS_OK; /* it shares that of its database */
    Json content = json_get(it.value, SLICE("content"));
    int64_t most = 0;
    int64_t ru = 0;
    Json autopilot = json_get(content, SLICE("offerAutopilotSettings"));
    if (json_to_i64(json_get(autopilot, SLICE("maxThroughput")), &most) && most > 0) {
        *out = (ClientHeader){"x-ms-cosmos-offer-autopilot-settings",
                              arena_format(arena, "{\"maxThroughput\":%lld}", (long long)most)};
        *found = true;
    } else if (json_to_i64(json_get(content, SLICE("offerThroughput")), &ru) && ru > 0) {
        *out = (ClientHeader){"x-ms-offer-throughput", arena_format(arena, "%lld", (long long)ru)};
        *found = true;
    }
    return STATUS_OK;
}

/* ---- the copy ---- */

/* No range of a copy that takes the name over may have an id that the source ever had. */
static Status next_range(Copy *copy, uint64_t *out, Error *err)
{
    TRY(copy_read_map(&copy->source, err));
    uint64_t most = 0;
    for (size_t i = 0; i < copy->source.map.count; i++) {
        uint64_t id = 0;
        if (slice_to_u64(copy->source.map.ranges[i].id, &id) && id > most)
            most = id;
    }
    *out = most + FIRST_RANGE_MARGIN;
    return STATUS_OK;
}

static Status post(CopySide *side, RemoteFeed feed, Slice body, const ClientHeader *more,
                   size_t count, Arena *arena, int *http_status, Error *err)
{
    ClientHeader headers[4] = {{"content-type", SLICE("application/json")}};
    ASSERT(count < ARRAY_COUNT(headers));
    for (size_t i = 0; i < count; i++)
        headers[i + 1] = more[i];
    ClientCall call = remote_call(&side->remote, feed, arena);
    call.method = CLIENT_POST;
    call.content = body;
    call.headers = headers;
    call.header_count = count + 1;
    TRY(remote_ask(&side->remote, &call, err));
    *http_status = call.http_status;
    bool is_there = call.http_status == 201 || call.http_status == 409;
    return is_there ? STATUS_OK : remote_refused(&call, err);
}

static Status create_database(Copy *copy, Error *err)
{
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 4096);
    AUTO(buf_done) Buf body;
    buf_init(&body, 64 << 10);
    int status = 0;
    buf_slice(&body, SLICE("{\"id\":"));
    json_print_string(copy->target.remote.database, &body);
    buf_byte(&body, '}');
    return post(&copy->target, REMOTE_ROOT, buf_view(&body), NULL, 0, &arena, &status, err);
}

static Status create_copy(Copy *copy, Json source, bool may_exist, Error *err)
{
    const CopyOptions *o = copy->options;
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 16 << 10);
    ClientHeader headers[2];
    size_t count = 0;
    bool has_throughput = false;
    TRY(create_database(copy, err));
    TRY(read_throughput(copy, source, &arena, &headers[0], &has_throughput, err));
    count += has_throughput ? 1 : 0;
    if (o->swaps) {
        uint64_t first = 0;
        TRY(next_range(copy, &first, err));
        headers[count++] = (ClientHeader){"x-orrery-first-range",
                                          arena_format(&arena, "%llu", (unsigned long long)first)};
    }
    AUTO(buf_done) Buf body;
    buf_init(&body, (size_t)4 << 20);
    print_definition(o, source, copy->target.remote.container, &body);
    int status = 0;
    TRY(post(&copy->target, REMOTE_DATABASE, buf_view(&body), headers, count, &arena, &status,
             err));
    if (status == 409 && !may_exist)
        return error_set(err, STATUS_CONFLICT, SUB_NONE,
                         "the container '%.*s' exists already; name another one with --to, or "
                         "give the --resume file of the copy that has made it",
                         SLICE_CUT(copy->target.remote.container, 200));
    return STATUS_OK;
}

/* ---- scripts ---- */

static Status copy_scripts_of(Copy *copy, const char *type, const char *name, Error *err)
{
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 64 << 10);
    Slice token = SLICE_EMPTY;
    do {
        ClientHeader header = {"x-ms-continuation", token};
        ClientCall list = {.arena = &arena, .resource_type = slice_from_cstr(type)};
        list.path = arena_format(&arena, "%.*s/%s", SLICE_ARG(copy->source.remote.path), type);
        list.resource_link = copy->source.remote.link;
        list.headers = &header;
        list.header_count = token.len > 0 ? 1 : 0;
        TRY(remote_ask(&copy->source.remote, &list, err));
        if (list.http_status != 200)
            return remote_refused(&list, err);
        Json feed;
        TRY(json_parse(&arena, list.body, &feed, err));
        Json scripts = json_get(feed, slice_from_cstr(name));
        for (JsonIter it = json_iter(scripts); json_is(scripts, JSON_ARRAY) && json_next(&it);) {
            AUTO(buf_done) Buf body;
            buf_init(&body, (size_t)4 << 20);
            copy_item_print(&(CopyChange){.item = it.value}, &body);
            const ClientHeader kind = {"content-type", SLICE("application/json")};
            ClientCall put = {.arena = &arena, .method = CLIENT_POST};
            put.resource_type = slice_from_cstr(type);
            put.path = arena_format(&arena, "%.*s/%s", SLICE_ARG(copy->target.remote.path), type);
            put.resource_link = copy->target.remote.link;
            put.headers = &kind;
            put.header_count = 1;
            put.content = buf_view(&body);
            TRY(remote_ask(&copy->target.remote, &put, err));
            if (put.http_status != 201 && put.http_status != 409)
                return remote_refused(&put, err);
        }
        token = client_header(&list, SLICE("x-ms-continuation"));
    } while (token.len > 0);
    return STATUS_OK;
}

static Status copy_scripts(Copy *copy, Error *err)
{
    if (copy->options->no_scripts)
        return STATUS_OK;
    TRY(copy_scripts_of(copy, "sprocs", "StoredProcedures", err));
    TRY(copy_scripts_of(copy, "triggers", "Triggers", err));
    return copy_scripts_of(copy, "udfs", "UserDefinedFunctions", err);
}

/* ---- retention ---- */

static bool keeps_versions(Json container)
{
    int64_t minutes = 0;
    Json policy = json_get(container, SLICE("changeFeedPolicy"));
    return json_to_i64(json_get(policy, SLICE("retentionDuration")), &minutes) && minutes > 0;
}

/* Replaces the definition of the source with another policy. */
static Status put_retention(Copy *copy, Json container, int minutes, int *http_status, Error *err)
{
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 16 << 10);
    AUTO(buf_done) Buf body;
    buf_init(&body, (size_t)4 << 20);
    bool is_first = true;
    buf_byte(&body, '{');
    for (JsonIter it = json_iter(container); json_next(&it);) {
        if (slice_starts_with(it.name, SLICE("_")) ||
            slice_equal(it.name, SLICE("changeFeedPolicy")))
            continue;
        buf_slice(&body, is_first ? SLICE("") : SLICE(","));
        is_first = false;
        json_print_string(it.name, &body);
        buf_byte(&body, ':');
        json_print(it.value, &body);
    }
    buf_format(&body, ",\"changeFeedPolicy\":{\"retentionDuration\":%d}}", minutes);
    const ClientHeader header = {"content-type", SLICE("application/json")};
    ClientCall call = remote_call(&copy->source.remote, REMOTE_CONTAINER, &arena);
    call.method = CLIENT_PUT;
    call.content = buf_view(&body);
    call.headers = &header;
    call.header_count = 1;
    TRY(remote_ask(&copy->source.remote, &call, err));
    *http_status = call.http_status;
    return STATUS_OK;
}

static Status keep_versions(Copy *copy, Json source, Error *err)
{
    CopyState *state = &copy->state;
    state->has_versions = keeps_versions(source); /* perhaps since an earlier run */
    if (state->has_versions && state->set_retention)
        return copy_settle(copy, err);
    if (state->has_versions || copy->options->no_retention)
        return STATUS_OK;
    int status = 0;
    state->set_retention = true; /* noted first: a kill between the two must not forget it */
    TRY(copy_save(copy, err));
    TRY(put_retention(copy, source, RETENTION_MINUTES, &status, err));
    state->has_versions = status == 200;
    state->set_retention = status == 200;
    TRY(copy_save(copy, err));
    return status == 200 ? copy_settle(copy, err) : STATUS_OK;
}

Status copy_restore_retention(Copy *copy, Error *err)
{
    if (!copy->state.set_retention)
        return STATUS_OK;
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 16 << 10);
    Json container;
    Slice rid;
    bool found = false;
    int status = 0;
    TRY(copy_read_container(&copy->source, &arena, &container, &rid, &found, err));
    if (found && slice_equal(rid, copy->state.source))
        TRY(put_retention(copy, container, 0, &status, err));
    copy->state.set_retention = false;
    return STATUS_OK;
}

/* ---- all of it ---- */

static Status read_keys(Copy *copy, Json source, Error *err)
{
    Json target;
    Slice rid;
    bool found = false;
    TRY(container_key_parse(&copy->arena, source, &copy->keys.source, err));
    TRY(copy_read_container(&copy->target, &copy->arena, &target, &rid, &found, err));
    if (!found)
        return error_set(err, STATUS_NOT_FOUND, SUB_NONE, "the copy was deleted");
    TRY(container_key_parse(&copy->arena, target, &copy->keys.target, err));
    if (copy->state.copy.len > 0 && !slice_equal(rid, copy->state.copy))
        return error_set(err, STATUS_CONFLICT, SUB_NONE,
                         "the container '%.*s' is not the one that this copy has made",
                         SLICE_CUT(copy->target.remote.container, 200));
    copy->state.copy = arena_copy(&copy->state.arena, rid);
    copy->is_mapped = !copy_keys_are_same(&copy->keys);
    return STATUS_OK;
}

Status copy_set_up(Copy *copy, bool is_resumed, Error *err)
{
    Json source;
    Slice rid;
    bool found = false;
    TRY(copy_read_container(&copy->source, &copy->arena, &source, &rid, &found, err));
    if (!found)
        return error_set(err, STATUS_NOT_FOUND, SUB_NONE, "there is no container '%.*s'",
                         SLICE_CUT(copy->source.remote.container, 200));
    if (is_resumed && copy->state.copy.len > 0 && slice_equal(rid, copy->state.copy)) {
        copy->state.is_swapped = true; /* it was killed before it could note that */
        return STATUS_OK;
    }
    if (is_resumed && !slice_equal(rid, copy->state.source))
        return error_set(err, STATUS_CONFLICT, SUB_NONE,
                         "the container '%.*s' is another one than when the copy began",
                         SLICE_CUT(copy->source.remote.container, 200));
    if (copy->options->partition_key == NULL &&
        json_is(json_get(source, SLICE("partitionKey")), JSON_UNDEFINED))
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "the container has no partition key; say which one the copy gets, with "
                         "--partition-key /path");
    copy->is_mortal = json_is(json_get(source, SLICE("defaultTtl")), JSON_NUMBER);
    copy->state.source = arena_copy(&copy->state.arena, rid);
    if (copy->state.copy.len == 0) {
        TRY(copy_save(copy, err)); /* so that a copy without its rid is known to be ours */
        TRY(create_copy(copy, source, is_resumed, err));
    }
    TRY(read_keys(copy, source, err));
    if (copy->state.lane_count == 0) {
        TRY(copy_scripts(copy, err));
        TRY(keep_versions(copy, source, err));
    }
    return copy_save(copy, err);
}
