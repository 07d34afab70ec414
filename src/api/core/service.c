/* service.c - paths outside the resource model: health, metrics, the certificate, the explorer,
 * browsers' preflight requests, and the address list that direct-mode clients ask for.
 *
 * None of them shows anything about a resource, so none needs a key.
 */
#include "api/core/explorer_page.h"
#include "api/core/response_int.h"

#define JSON_TYPE SLICE("application/json")

static Slice path_only(const ApiRequest *r)
{
    return slice_first(r->http->path, slice_find(r->http->path, '?'));
}

static void print_warnings(const ApiRequest *r, Buf *out)
{
    const ApiCluster *cluster = r->api->options.cluster;
    if (cluster == NULL)
        return;
    const Slice warnings[] = {cluster->warning(cluster->ctx, r->arena),
                              cluster->copies_warning(cluster->ctx, r->arena)};
    bool has_any = false;
    for (size_t i = 0; i < ARRAY_COUNT(warnings); i++) {
        if (warnings[i].len == 0)
            continue;
        buf_format(out, "%s", has_any ? "," : "\"warnings\":[");
        json_print_string(warnings[i], out);
        has_any = true;
    }
    if (has_any)
        buf_slice(out, SLICE("],"));
}

static void respond_health(ApiRequest *r, int status, Slice word, Slice reason)
{
    AUTO(buf_done) Buf text;
    buf_init(&text, 8192);
    buf_format(&text, "{\"status\":\"%.*s\",", SLICE_ARG(word));
    if (reason.len > 0) {
        buf_slice(&text, SLICE("\"reason\":"));
        json_print_string(reason, &text);
        buf_byte(&text, ',');
    }
    print_warnings(r, &text);
    buf_slice(&text, SLICE("\"version\":\"" ORRERY_VERSION "\"}"));
    respond_text(r, status, JSON_TYPE, arena_copy(r->arena, buf_view(&text)));
}

/* 503 only while the server starts or nothing can be written. Damaged data fails the requests that
 * need it. A person should look at it, but clients need not be kept away from everything else. The
 * same goes for warnings about the engine of a cluster, or the clock of a node. */
static void answer_health(ApiRequest *r)
{
    Error err;
    if (atomic_load(&r->api->is_starting)) {
        respond_health(r, 503, SLICE("starting"), SLICE("the seed file is being applied"));
        return;
    }
    if (store_health(r->api->options.store, &err) != STATUS_OK) {
        respond_health(r, 503, SLICE("degraded"), slice_from_cstr(err.message));
        return;
    }
    StoreDamage damage;
    store_damage(r->api->options.store, &damage);
    if (damage.reads == 0) {
        respond_health(r, 200, SLICE("ok"), SLICE_EMPTY);
        return;
    }
    Slice reason = arena_format(r->arena, "%llu reads have met damaged data, the newest: %s",
                                (unsigned long long)damage.reads, damage.newest.message);
    respond_health(r, 200, SLICE("damaged"), reason);
}

/* What the rows of service_metrics.def are made of. */
typedef struct ServiceNumbers {
    const Snapshot *snapshot;
    StoreUsage usage;
    StoreDamage damage;
    MoveCounts moves;
} ServiceNumbers;

static void print_numbers(Buf *text, const ServiceNumbers *n)
{
    const struct {
        const char *kind;
        const char *name; /* with its label set, if it has one */
        const char *help;
        uint64_t value;
    } rows[] = {
#define COUNTER                                     "counter"
#define GAUGE                                       "gauge"
#define SERVICE_METRIC_ROW(kind, name, help, value) {kind, name, help, value},
#include "api/core/service_metrics.def"
    };
    Slice previous = SLICE_EMPTY;
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        /* Rows of one metric with different labels share one heading. */
        Slice name = slice_from_cstr(rows[i].name);
        Slice family = slice_first(name, slice_find(name, '{'));
        if (!slice_equal(family, previous))
            buf_format(text, "# HELP %.*s %s\n# TYPE %.*s %s\n", SLICE_ARG(family), rows[i].help,
                       SLICE_ARG(family), rows[i].kind);
        previous = family;
        buf_format(text, "%s %llu\n", rows[i].name, (unsigned long long)rows[i].value);
    }
}

static void answer_metrics(ApiRequest *r)
{
    const ApiOptions *options = &r->api->options;
    AUTO(buf_done) Buf text;
    buf_init(&text, 1 << 20);
    metrics_print(options->metrics, &text);
    ServiceNumbers numbers = {
        .snapshot = catalog_read(&r->loop->reader),
        .moves = catalog_move_counts(options->catalog),
    };
    store_usage(options->store, &numbers.usage);
    store_damage(options->store, &numbers.damage);
    print_numbers(&text, &numbers);
    respond_text(r, 200, SLICE("text/plain; version=0.0.4"), arena_copy(r->arena, buf_view(&text)));
}

static void answer_certificate(ApiRequest *r)
{
    respond_text(r, 200, SLICE("application/x-pem-file"), http_loop_certificate(r->http->loop));
}

/* Direct mode is a binary protocol between SDK and replica that only the service speaks. */
static void answer_addresses(ApiRequest *r)
{
    Error err;
    if (error_set(&err, STATUS_BAD_REQUEST, SUB_NONE,
                  "This server is reached in gateway mode; direct (TCP) mode is not available. Set "
                  "the connection mode to Gateway: .NET ConnectionMode = ConnectionMode.Gateway, "
                  "Java gatewayMode(). JavaScript, Python and Go need no setting.") != STATUS_OK)
        respond_error(r, &err);
}

/* A browser asks before it sends a request with headers of its own. Only pages that may use the
 * server get here; the browser decides what it asks of an address on a private network. */
static void answer_preflight(ApiRequest *r)
{
    static const Slice methods = SLICE_INIT("GET, HEAD, POST, PUT, PATCH, DELETE");
    Response response;
    response_begin(r, &response, 204, SLICE("0"));
    if (r->origin.len == 0) {
        response_header(&response, SLICE("allow"), methods);
        response_send(r, &response);
        return;
    }
    Slice wanted = request_header(r, "access-control-request-headers");
    response_header(&response, SLICE("access-control-allow-methods"), methods);
    response_header(&response, SLICE("access-control-allow-headers"),
                    wanted.len > 0 ? arena_copy(r->arena, wanted) : SLICE("*"));
    response_header(&response, SLICE("access-control-max-age"), SLICE("86400"));
    response_header(&response, SLICE("vary"), SLICE("access-control-request-headers"));
    response_send(r, &response);
}

bool service_handle(ApiRequest *r)
{
    static const struct {
        Slice path;
        void (*answer)(ApiRequest *r);
    } rows[] = {
        {SLICE_INIT("/healthz"), answer_health},
        {SLICE_INIT("/metrics"), answer_metrics},
        {SLICE_INIT("/_explorer/emulator.pem"), answer_certificate},
        {SLICE_INIT("/addresses"), answer_addresses},
        {SLICE_INIT("/addresses/"), answer_addresses},
        {SLICE_INIT("//addresses/"), answer_addresses},
    };
    if (slice_equal(r->http->method, SLICE("OPTIONS"))) {
        answer_preflight(r);
        return true;
    }
    /* One comparison is enough for nearly every request. */
    if (slice_starts_with(r->http->path, SLICE("/dbs/")))
        return false;
    if (!r->is_head && !slice_equal(r->http->method, SLICE("GET")))
        return false;
    Slice path = path_only(r);
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        if (slice_equal(path, rows[i].path)) {
            rows[i].answer(r);
            return true;
        }
    }
    return explorer_page_answer(r, path);
}
