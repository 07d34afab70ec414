/* orrery.c - see orrery_int.h: the way of a request under /_orrery, and what its answers share. */
#include "api/admin/orrery_int.h"

#include "api/core/forward_int.h"
#include "base/encoding.h"

static const OrreryKind *const KINDS[] = {
    &ORRERY_CONTAINERS, &ORRERY_METRICS, &ORRERY_LAYOUT, &ORRERY_TOP,    &ORRERY_HISTORY,
    &ORRERY_QUERIES,    &ORRERY_PATHS,   &ORRERY_ADVICE, &ORRERY_EVENTS,
};

/* ---- parameters ---- */

static Status unknown_parameter(const OrreryKind *kind, Slice name, Error *err)
{
    AUTO(buf_done) Buf known;
    buf_init(&known, 256);
    for (size_t i = 0; i < ORRERY_PARAMETERS_MAX && kind->parameters[i] != NULL; i++)
        buf_format(&known, "%s%s", i == 0 ? "; there are " : ", ", kind->parameters[i]);
    return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                     "'%.*s' is not a parameter of '%.*s', or was given twice%.*s.",
                     SLICE_CUT(name, 60), SLICE_ARG(kind->name), SLICE_ARG(buf_view(&known)));
}

/* "?by=ru&count=5". */
static Status read_parameters(OrreryPage *page, Slice query, Error *err)
{
    Arena *arena = page->request->arena;
    while (query.len > 0) {
        Slice value = slice_cut(&query, '&');
        if (value.len == 0)
            continue;
        Slice name = slice_cut(&value, '=');
        size_t i = 0;
        while (i < ORRERY_PARAMETERS_MAX && page->kind->parameters[i] != NULL &&
               !slice_equal(name, slice_from_cstr(page->kind->parameters[i])))
            i++;
        if (i == ORRERY_PARAMETERS_MAX || page->kind->parameters[i] == NULL ||
            page->values[i].len > 0)
            return unknown_parameter(page->kind, name, err);
        Slice decoded;
        if (value.len == 0 || !percent_decode(arena, value, &decoded))
            return orrery_refuse(page, i, "a value", err);
        page->values[i] = arena_copy(arena, decoded);
    }
    return STATUS_OK;
}

Status orrery_range(const OrreryPage *page, size_t index, OrreryRange *out, Error *err)
{
    uint64_t id = 0;
    *out = (OrreryRange){.is_given = page->values[index].len > 0};
    TRY(orrery_number(page, index, 0, UINT32_MAX, 0, &id, err));
    out->id = (uint32_t)id;
    return STATUS_OK;
}

Status orrery_refuse(const OrreryPage *page, size_t index, const char *expected, Error *err)
{
    return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                     "The parameter '%s' must be %s, not '%.*s'.", page->kind->parameters[index],
                     expected, SLICE_CUT(page->values[index], 60));
}

Status orrery_number(const OrreryPage *page, size_t index, uint64_t min, uint64_t max,
                     uint64_t fallback, uint64_t *out, Error *err)
{
    Slice text = page->values[index];
    *out = fallback;
    if (text.len == 0 || (slice_to_u64(text, out) && *out >= min && *out <= max))
        return STATUS_OK;
    Slice expected = arena_format(page->request->arena, "a whole number from %llu to %llu",
                                  (unsigned long long)min, (unsigned long long)max);
    return orrery_refuse(page, index, expected.ptr, err);
}

Status orrery_need_statistics(const OrreryPage *page, Error *err)
{
    if (page->request->api->options.histories != NULL)
        return STATUS_OK;
    return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                     "The server keeps no statistics: it was started with --no-statistics.");
}

/* ---- the way of a request ---- */

static void on_answer(HttpTask *task)
{
    OrreryPage *page = CONTAINER_OF(task, OrreryPage, task);
    ApiRequest *r = page->request;
    snapshot_unref(page->snapshot);
    if (page->status != STATUS_OK) {
        buf_done(&page->text);
        respond_error(r, &page->error);
        return;
    }
    bool is_metrics = page->kind == &ORRERY_METRICS;
    Response response;
    response_begin(r, &response, 200, SLICE("0"));
    response_header(&response, SLICE("content-type"),
                    is_metrics ? SLICE("text/plain; version=0.0.4") : SLICE("application/json"));
    response_own_body(&response, &page->text);
    response_send(r, &response);
}

static void on_worker(WorkerJob *job)
{
    OrreryPage *page = CONTAINER_OF(job, OrreryPage, job);
    const Clock *clock = page->request->api->options.clock;
    page->now_s = (uint64_t)clock_wall_s(clock);
    page->now_us = clock_monotonic_us(clock);
    page->status = page->part.len > 0 ? page->kind->run_part(page) : page->kind->run(page);
    if (page->status == STATUS_OK && buf_full(&page->text))
        page->status = error_set(&page->error, STATUS_TOO_LARGE, SUB_RESPONSE_TOO_LARGE,
                                 "The answer has more than %zu bytes; ask for less of it.",
                                 page->text.bytes_max);
    http_loop_post(page->request->http->loop, &page->task);
}

/* The workers for single items, unless it is long: these are free even while all others are busy
 * with queries, which is when users look. */
static Workers *workers_of(const OrreryPage *page)
{
    const ApiOptions *options = &page->request->api->options;
    if (page->part.len > 0 && options->node_workers != NULL)
        return options->node_workers;
    return page->is_long ? options->workers : options->readers;
}

static size_t text_bytes_max(const OrreryPage *page)
{
    if (page->part.len > 0)
        return ORRERY_PART_BYTES_MAX;
    return page->kind == &ORRERY_METRICS ? ORRERY_METRICS_BYTES_MAX : ORRERY_JSON_BYTES_MAX;
}

static Status post(OrreryPage *page, Error *err)
{
    ApiRequest *r = page->request;
    forward_keep(r);
    page->snapshot = snapshot_ref(r->snapshot);
    page->database = r->database;
    page->container = r->container;
    page->job.run = on_worker;
    page->task.run = on_answer;
    buf_init(&page->text, text_bytes_max(page));
    r->database = NULL;
    r->container = NULL;
    r->snapshot = NULL;
    if (workers_post(workers_of(page), &page->job))
        return STATUS_OK;
    snapshot_unref(page->snapshot);
    return request_refuse_busy(err);
}

/* Splits the path into the resource and what is asked about it. */
static Status find_kind(ApiRequest *r, Slice path, const OrreryKind **out, Error *err)
{
    while (slice_ends_with(path, SLICE("/")))
        path.len--;
    size_t at = path.len;
    while (at > 0 && path.ptr[at - 1] != '/')
        at--;
    Slice name = slice_from(path, at);
    Slice resource = slice_first(path, at);
    for (size_t i = 0; i < ARRAY_COUNT(KINDS); i++) {
        if (!slice_equal(name, KINDS[i]->name))
            continue;
        TRY(address_parse(r->arena, resource, &r->address, err));
        ResourceType type = KINDS[i]->is_of_container ? RESOURCE_CONTAINER : RESOURCE_ACCOUNT;
        if (r->address.type != type || r->address.is_feed)
            break;
        *out = KINDS[i];
        return STATUS_OK;
    }
    return error_set(err, STATUS_NOT_FOUND, SUB_NONE,
                     "There is no such path. There are /_orrery/containers, /_orrery/events, "
                     "/_orrery/metrics, /_orrery/keys, /_orrery/backup, /_orrery/swap, "
                     "/_orrery/snapshots, /_orrery/cluster, and layout, top, "
                     "history, queries, paths and advice under "
                     "/_orrery/dbs/{id}/colls/{id}/.");
}

bool orrery_is_path(Slice path)
{
    Slice prefix = SLICE("/_orrery");
    return slice_starts_with(path, prefix) &&
           (path.len == prefix.len || path.ptr[prefix.len] == '/' || path.ptr[prefix.len] == '?');
}

/* What follows /_orrery, without its parameters. */
static Slice path_after_prefix(const ApiRequest *r)
{
    Slice query = r->http->path;
    return slice_from(slice_cut(&query, '?'), strlen("/_orrery"));
}

Status orrery_admit(ApiRequest *r, Error *err)
{
    Slice path = path_after_prefix(r);
    if (chaos_is_path(path))
        return chaos_admit(r, path, err);
    if (keys_is_path(path))
        return keys_admit(r, err);
    if (backup_is_path(path))
        return backup_admit(r, err);
    if (swap_is_path(path))
        return swap_admit(r, err);
    if (snapshots_is_path(path))
        return snapshots_admit(r, path, err);
    if (cluster_is_path(path))
        return cluster_admit(r, err);
    if (!r->is_head && !slice_equal(r->http->method, SLICE("GET")))
        return error_set(err, STATUS_METHOD_NOT_ALLOWED, SUB_NONE,
                         "%.*s is not possible here; GET is.", SLICE_CUT(r->http->method, 20));
    r->operation = OPERATION_READ;
    TRY(find_kind(r, path, &r->page, err));
    r->tells_names = r->page->tells_names;
    return request_authorise(r, r->page->takes_bearer, err);
}

/* These are about one folder and its partitions, and know nothing of other nodes. What an operator
 * of a cluster does instead; NULL for what nodes do. */
static const char *find_substitute(const ApiRequest *r, Slice path)
{
    if (backup_is_path(path))
        return "makes no backup of the cluster. Stop one node, copy its data folder, dump the "
               "engine's database and start the node again: docs/cluster.md, \"Back up a "
               "cluster\".";
    if (snapshots_is_path(path))
        return "keeps no snapshots. Copy the containers with orrery copy or orrery export, or back "
               "the cluster up: docs/cluster.md, \"Back up a cluster\".";
    if (swap_is_path(path))
        return "gives no copy of a container its name. Run orrery copy without --swap and have "
               "clients use the copy's own name.";
    if (keys_is_path(path) && slice_equal(r->http->method, SLICE("POST")))
        return "does not rotate keys, because all nodes need the same ones. Restart the nodes one "
               "after the other with the new key beside the old one: docs/cluster.md, \"Keys\".";
    return NULL;
}

static Status check_alone(const ApiRequest *r, Slice path, Error *err)
{
    const char *substitute = r->api->options.cluster != NULL ? find_substitute(r, path) : NULL;
    if (LIKELY(substitute == NULL))
        return STATUS_OK;
    return error_set(err, STATUS_NOT_IMPLEMENTED, SUB_NONE, "A node of a cluster %s", substitute);
}

Status orrery_request(ApiRequest *r, Error *err)
{
    Slice path = path_after_prefix(r);
    TRY(check_alone(r, path, err));
    if (chaos_is_path(path))
        return chaos_request(r, path, err);
    if (keys_is_path(path))
        return keys_request(r, err);
    Slice query = r->http->path;
    (void)slice_cut(&query, '?');
    if (backup_is_path(path))
        return backup_request(r, path, query, err);
    if (swap_is_path(path))
        return swap_request(r, path, query, err);
    if (snapshots_is_path(path))
        return snapshots_request(r, path, query, err);
    if (cluster_is_path(path))
        return cluster_request(r, path, query, err);
    OrreryPage *page = ARENA_NEW(r->arena, OrreryPage);
    page->request = r;
    page->kind = r->page;
    page->part = arena_copy(r->arena, forward_header(r, NODE_HEADER_PART));
    if (page->part.len > 0 && page->kind->run_part == NULL)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "'%.*s' is not made of parts of several nodes.",
                         SLICE_ARG(page->kind->name));
    TRY(read_parameters(page, query, err));
    if (page->kind->parse != NULL)
        TRY(page->kind->parse(page, err));
    r->snapshot = catalog_read(&r->loop->reader);
    TRY(request_resolve(r, err));
    return post(page, err);
}

/* ---- what was used ---- */

OrreryUse orrery_use(const PartitionHandle *partition, uint64_t now_s)
{
    const History *history = handle_history(partition);
    HistorySpan minute = history_span(history, now_s - 60, now_s);
    HistorySpan ten = history_span(history, now_s - 10, now_s);
    return (OrreryUse){
        .second = history_at(history, HISTORY_SECOND, now_s - 1).charge,
        .ten_seconds = ten.sum.charge,
        .minute = minute.sum,
        .total = history_total(history),
    };
}

static void count_add(HistoryCount *sum, const HistoryCount *more)
{
    sum->charge += more->charge;
    sum->requests += more->requests;
    sum->throttled += more->throttled;
}

void orrery_use_add(OrreryUse *sum, const OrreryUse *use)
{
    sum->second += use->second;
    sum->ten_seconds += use->ten_seconds;
    count_add(&sum->minute, &use->minute);
    count_add(&sum->total, &use->total);
}

/* Adds what this container took from the budget of 'partition' in each second of the last minute.
 */
static void add_seconds(const Container *container, const PartitionHandle *partition,
                        uint64_t now_s, Charge seconds[60])
{
    for (size_t i = 0; i < container->range_count; i++) {
        const PartitionHandle *other = container_handle_at(container, i);
        const History *history = handle_history(other);
        for (uint64_t s = 0; handle_shares_budget(other, partition) && s < 60; s++)
            seconds[s] += history_at(history, HISTORY_SECOND, now_s - 60 + s).charge;
    }
}

uint64_t orrery_consumption(const Snapshot *snapshot, const Container *container,
                            const PartitionHandle *partition, uint64_t now_s)
{
    uint64_t share = handle_share(partition);
    if (share == 0)
        return 0;
    if (container->offer != 0)
        return history_span(handle_history(partition), now_s - 60, now_s).charge_max * 10000 /
               share;
    Charge seconds[60] = {0};
    const Container *sharer;
    for (uint32_t from = 0;
         (sharer = snapshot_next_container(snapshot, container->database, from)) != NULL;
         from = sharer->info.number + 1)
        add_seconds(sharer, partition, now_s, seconds);
    Charge most = 0;
    for (size_t s = 0; s < 60; s++)
        most = seconds[s] > most ? seconds[s] : most;
    return most * 10000 / share;
}

/* ---- JSON ---- */

static void put_comma(Buf *out)
{
    char last = out->len == 0 ? '[' : out->ptr[out->len - 1];
    if (last != '{' && last != '[')
        buf_byte(out, ',');
}

void put_name(Buf *out, const char *name)
{
    put_comma(out);
    if (name != NULL)
        buf_format(out, "\"%s\":", name);
}

void put_open(Buf *out, const char *name, char bracket)
{
    put_name(out, name);
    buf_byte(out, (uint8_t)bracket);
}

void put_close(Buf *out, char bracket)
{
    buf_byte(out, (uint8_t)bracket);
}

void put_text(Buf *out, const char *name, Slice text)
{
    put_name(out, name);
    json_print_string(text, out);
}

void put_json(Buf *out, const char *name, Slice json)
{
    put_name(out, name);
    buf_slice(out, json);
}

void put_number(Buf *out, const char *name, uint64_t number)
{
    put_name(out, name);
    buf_u64(out, number);
}

void put_id(Buf *out, const char *name, uint32_t id)
{
    put_name(out, name);
    buf_format(out, "\"%u\"", id);
}

void put_hundredths(Buf *out, const char *name, uint64_t hundredths)
{
    char text[CHARGE_TEXT_MAX];
    put_name(out, name);
    buf_bytes(out, text, charge_print(hundredths, text));
}

void put_bool(Buf *out, const char *name, bool value)
{
    put_name(out, name);
    buf_slice(out, value ? SLICE("true") : SLICE("false"));
}

void put_use(Buf *out, const OrreryUse *use, const uint64_t *allotted)
{
    put_open(out, "ru", '{');
    if (allotted != NULL)
        put_hundredths(out, "allotted", *allotted);
    put_hundredths(out, "lastSecond", use->second);
    put_hundredths(out, "last10Seconds", use->ten_seconds);
    put_hundredths(out, "lastMinute", use->minute.charge);
    put_hundredths(out, "total", use->total.charge);
    put_close(out, '}');
    put_open(out, "requests", '{');
    put_number(out, "lastMinute", use->minute.requests);
    put_number(out, "total", use->total.requests);
    put_close(out, '}');
    put_open(out, "throttled", '{');
    put_number(out, "lastMinute", use->minute.throttled);
    put_number(out, "total", use->total.throttled);
    put_close(out, '}');
}

void put_throughput(Buf *out, const OrreryPage *page, const Database *database,
                    const Container *container)
{
    bool is_shared = container->offer == 0 && database->offer != 0;
    const Offer *offer =
        snapshot_offer(page->snapshot, is_shared ? database->offer : container->offer);
    put_open(out, "throughput", '{');
    if (offer == NULL) {
        put_text(out, "mode", SLICE("serverless"));
        put_number(out, "ru", 0);
    } else {
        bool is_autoscale = offer->provision.mode == PROVISION_AUTOSCALE;
        OfferUsage usage = catalog_offer_usage(page->snapshot, offer, page->now_us);
        put_text(out, "mode", is_autoscale ? SLICE("autoscale") : SLICE("manual"));
        put_number(out, "ru", offer->provision.ru);
        put_number(out, "current", provision_current_ru(&offer->provision, usage.ru));
    }
    put_bool(out, "isShared", is_shared);
    put_close(out, '}');
}
