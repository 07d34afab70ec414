/* api.c - see api.h: the way of a request from http to its handler and back.
 *
 *     on_admit    request_check_source (browsers.h); service_handle (health, CORS, ...), or admit:
 *                 address_parse, auth_check
 *     on_request  the same if on_admit has not been called, then act: route_request, handler
 *
 * http calls on_admit if the body of a request is still to come: no body is read for a client
 * without a key. No resource is looked up before the request is authorised (I1).
 */
#include "api/api.h"

#include "api/admin/backup_session_int.h"
#include "api/admin/chaos_int.h"
#include "api/admin/orrery_int.h"
#include "api/admin/swap_session_int.h"
#include "api/core/forward_int.h"
#include "api/core/response_int.h"
#include "api/core/usage_int.h"
#include "api/dispatch_int.h"
#include "api/items/script_gate_int.h"
#include "base/mem.h"

static bool counts_failures(const ApiRequest *r)
{
    const Api *api = r->api;
    return api->failures != NULL && !r->http->is_node &&
           (!r->http->client.is_local || api->options.limits_local_failures);
}

/* Nothing is computed for an address that has failed too often. */
static Status check_failures(ApiRequest *r, Error *err)
{
    uint32_t wait_ms = 0;
    if (LIKELY(!counts_failures(r) || !auth_failures_refuses(r->api->failures, r->http->client,
                                                             r->http->begun_us, &wait_ms)))
        return STATUS_OK;
    metrics_add(http_loop_metrics(r->http->loop), METRIC_REQUESTS_ADDRESS_REFUSED, 1);
    Status status = error_set(err, STATUS_THROTTLED, SUB_NONE,
                              "%u requests from this address were not authorised within a minute "
                              "(--address-failures-max). Nothing was done; try again after %u ms.",
                              r->api->options.failures_max, wait_ms);
    err->retry_after_ms = wait_ms;
    return status;
}

static void note_failure(ApiRequest *r)
{
    if (!counts_failures(r) ||
        !auth_failures_note(r->api->failures, r->http->client, r->http->begun_us))
        return;
    char address[HTTP_CLIENT_TEXT_MAX];
    http_client_print(r->http->client, address);
    LOG_WARN(r->api->options.log, "auth.address_refused", "address=%s failures=%u for_s=%d",
             address, r->api->options.failures_max, AUTH_FAILURES_WINDOW_S);
}

static Status authorise(ApiRequest *r, Error *err)
{
    r->is_admin = orrery_is_path(r->http->path);
    if (r->is_admin)
        return orrery_admit(r, err);
    TRY(address_parse(r->arena, r->http->path, &r->address, err));
    TRY(request_choose_operation(r, err));
    return request_authorise(r, false, err);
}

/* Authorises the request; the body is not looked at. */
static Status admit(ApiRequest *r, Error *err)
{
    TRY(check_failures(r, err));
    Status status = authorise(r, err);
    if (status == STATUS_UNAUTHORIZED)
        note_failure(r);
    return status;
}

/* Does what an authorised request asks for. */
static Status act(ApiRequest *r, Error *err)
{
    if (r->is_admin)
        return orrery_request(r, err);
    forward_begin(r);
    TRY(request_read_version(r, err));
    r->snapshot = catalog_read(&r->loop->reader);
    r->is_routed = r->address.type != RESOURCE_ACCOUNT;
    return route_request(r, err);
}

static void run(ApiRequest *r, bool is_admitted)
{
    Error err;
    if ((!is_admitted && admit(r, &err) != STATUS_OK) || act(r, &err) != STATUS_OK)
        respond_error(r, &err);
}

static void run_again(ApiRequest *r)
{
    run(r, false);
}

/* The beginning of every request. Returns NULL if it has been answered already. */
static ApiRequest *begin(Api *api, HttpRequest *http)
{
    ApiRequest *r = request_new(api, http);
    Error err;
    Status source = http->is_node ? forward_accept(r, &err) : request_check_source(r, &err);
    if (source != STATUS_OK) {
        respond_error(r, &err);
        return NULL;
    }
    return service_handle(r) ? NULL : r;
}

static bool on_admit(void *ctx, HttpRequest *http)
{
    ApiRequest *r = begin(ctx, http);
    if (r == NULL)
        return false;
    Error err;
    if (admit(r, &err) != STATUS_OK) {
        respond_error(r, &err);
        return false;
    }
    http->user = r;
    return true;
}

/* With the body the request comes anew: its client is that of the connection again. */
static ApiRequest *resume(HttpRequest *http)
{
    ApiRequest *r = http->user;
    Error err;
    if (!http->is_node || forward_accept(r, &err) == STATUS_OK)
        return r;
    respond_error(r, &err);
    return NULL;
}

static void on_request(void *ctx, HttpRequest *http)
{
    bool has_begun = http->user != NULL;
    ApiRequest *r = has_begun ? resume(http) : begin(ctx, http);
    /* A key that was replaced while the body came is no longer good. */
    if (r != NULL)
        run(r, has_begun && r->keys_version == key_ring_version(r->api->options.keys));
}

static void *on_loop_open(void *ctx, HttpLoop *http_loop)
{
    ApiLoop *loop = MEM_NEW(ApiLoop);
    loop->api = ctx;
    catalog_reader_init(&loop->reader, loop->api->options.catalog);
    key_reader_init(&loop->keys, loop->api->options.keys);
    identity_reader_init(&loop->identities, loop->api->options.identities);
    buf_init(&loop->text, ITEM_TEXT_BYTES_MAX);
    arena_init(&loop->brief, LOOP_QUERY_ARENA_BYTES);
    usage_loop_open(loop);
    refresh_loop_open(loop, http_loop);
    return loop;
}

static void on_loop_close(void *ctx, void *loop_user)
{
    (void)ctx;
    ApiLoop *loop = loop_user;
    refresh_loop_close(loop);
    catalog_reader_done(&loop->reader);
    key_reader_done(&loop->keys);
    identity_reader_done(&loop->identities);
    buf_done(&loop->text);
    arena_done(&loop->brief);
    usage_loop_close(loop);
    mem_free(loop);
}

Api *api_open(const ApiOptions *options)
{
    Api *api = MEM_NEW(Api);
    arena_init(&api->arena, 4096);
    api->options = *options;
    api->run_again = run_again;
    api->limits = (PageLimits){
        .entries_max = PAGE_ENTRIES_MAX, .us_max = PAGE_US_MAX, .brief_us = PAGE_BRIEF_US};
    uint32_t turns = workers_turns(options->workers);
    /* One less than may run: the allocator keeps what one page has freed while the next one fills
     * up. */
    uint32_t large = turns > 1 ? turns - 1 : 1;
    if (options->large_queries_max > 0 && options->large_queries_max < large)
        large = options->large_queries_max;
    query_memory_init(&api->query_memory, large);
    if (options->query_bytes_max == 0)
        api->options.query_bytes_max = QUERY_BYTES_MAX;
    if (options->charges == NULL)
        api->options.charges = charge_model_default();
    api->options.account =
        options->account.len > 0 ? arena_copy(&api->arena, options->account) : SLICE("orrery");
    api->options.region = options->region.len > 0 ? arena_copy(&api->arena, options->region)
                                                  : SLICE("South Central US");
    api->options.public_endpoint = arena_copy(&api->arena, options->public_endpoint);
    api->options.browsers.origins = arena_copy(&api->arena, options->browsers.origins);
    api->options.browsers.hosts = arena_copy(&api->arena, options->browsers.hosts);
    /* The C library reads a locale from the disk for its first user, and forgets it after the last;
     * each query with LOWER would be both. Without it only ASCII has case. */
    api->locale = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
    resource_token_key_init(&api->resource_tokens, &options->token_secret,
                            sizeof(options->token_secret));
    usage_open(api);
    api->sizes = logical_sizes_cache_open();
    api->gate = script_gate_open();
    if (options->failures_max > 0)
        api->failures = auth_failures_open(options->failures_max);
    if (options->has_chaos) {
        api->chaos = chaos_open(options->clock);
        api->chaos_hooks = (ChaosHooks){.throttles = chaos_throttles, .lsn = chaos_lsn};
    }
    api->backups = backups_open(&(BackupsOptions){
        .store = options->store,
        .clock = options->clock,
        .log = options->log,
        .data_folder = options->data_folder,
        .data_files = options->data_files,
        .idle_ms = BACKUP_IDLE_MS,
    });
    api->swaps = swaps_open(options->catalog, options->log);
    refresh_open(api);
    return api;
}

void api_close(Api *api)
{
    if (api == NULL)
        return;
    backups_close(api->backups);
    swaps_close(api->swaps);
    chaos_close(api->chaos);
    query_memory_done(&api->query_memory);
    refresh_close(api);
    usage_close(api);
    logical_sizes_cache_close(api->sizes);
    script_gate_close(api->gate);
    if (api->locale != (locale_t)0)
        freelocale(api->locale);
    auth_failures_close(api->failures);
    arena_done(&api->arena);
    mem_free(api);
}

void api_set_starting(Api *api, bool is_starting)
{
    atomic_store(&api->is_starting, is_starting);
}

HttpHandler api_handler(Api *api)
{
    return (HttpHandler){
        .ctx = api,
        .admit = on_admit,
        .handle = on_request,
        .refusal_headers = response_refusal_headers,
        .loop_open = on_loop_open,
        .loop_close = on_loop_close,
    };
}
