/* load.c - orrery-load: the options, one run, and the report. */
#include "bench/run.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define READY_TIMEOUT_US UINT64_C(30000000)
enum { READY_PAUSE_NS = 200000 };

static const char USAGE[] =
    "usage: orrery-load --url http://127.0.0.1:8081/dbs/b/colls/c [option...]\n"
    "\n"
    "  --method GET        HTTP method\n"
    "  --body TEXT         what to send with it\n"
    "  --header 'N: V'     one more header; may be repeated\n"
    "  --key BASE64        master key; the well-known key of emulators if not given\n"
    "  --unsigned          send no authorization\n"
    "  --sign-cached       sign once a second instead of every request (less work here; the\n"
    "                      server verifies each request in either case)\n"
    "  --items OPERATION   requests for items instead; --url is that of all items of a container,\n"
    "                      '.../colls/c/docs', with /pk as its partition key, or that of the\n"
    "                      procedure that is executed, '.../colls/c/sprocs/p':\n"
#define X(name, text, what) "                        " text ": " what "\n"
    ITEM_OPERATIONS(X)
#undef X
        "  --items-count 10000 items that exist: those that 'batch' makes with --items-first 0\n"
        "  --items-first N     number of the first new item; otherwise one that is never used "
        "again\n"
        "  --writes-percent 5  upserts of 'mix'\n"
        "  --orders            the items are orders, which differ in all values\n"
        "  --query NAME        queries over --items-count orders instead, all their pages:\n"
#define X(name, text, what, sql) "                        " text ": " what "\n"
    QUERIES(X)
#undef X
        "  --page-size 100     results of a page of it at most\n"
        "  --feed              the change feed of all items instead, to its end, in pages of "
        "--header\n"
        "                      'x-ms-max-item-count: N'\n"
        "  --turn 0            number of the first query; it and --seed give the parameters\n"
        "  --print-item        print the text of such an item, for the benchmarks of others, and "
        "end\n"
        "  --print-copy        print --items-count items from --items-first on, a line each with "
        "id,\n"
        "                      pk and text, as COPY of PostgreSQL reads them, and end\n"
        "  --print-queries     print the bodies of --requests queries from --turn on, a line "
        "each,\n"
        "                      and end\n"
        "  --seed N            for the choice of items and parameters; otherwise random\n"
        "  --connections 32    connections, each with one request at a time\n"
        "  --seconds 5         how long to measure, after --warmup-ms 500\n"
        "  --requests N        end after so many, without a warm-up; fails if --seconds are too "
        "few\n"
        "  --drain             wait for what is under way at the end, and count it\n"
        "  --rate N            requests a second; otherwise as many as the connections carry\n"
        "  --pid PID           the server's process, to measure its CPU and memory\n"
        "  --json              print the result as one JSON object\n"
        "  --once              send a single request, print its status and body; fails unless 2xx\n"
        "  --ready             send a request until one is answered with 2xx, for 30 seconds at "
        "most\n";

typedef struct Options {
    RunOptions run;
    Signer signer;
    bool is_json;
    bool is_once;
    bool is_ready;
    bool is_copy;
    bool is_print; /* of queries */
} Options;

enum Option {
    OPTION_URL = 1,
    OPTION_METHOD,
    OPTION_BODY,
    OPTION_HEADER,
    OPTION_KEY,
    OPTION_UNSIGNED,
    OPTION_SIGN_CACHED,
    OPTION_ITEMS,
    OPTION_ITEMS_COUNT,
    OPTION_ITEMS_FIRST,
    OPTION_WRITES_PERCENT,
    OPTION_ORDERS,
    OPTION_QUERY,
    OPTION_PAGE_SIZE,
    OPTION_TURN,
    OPTION_PRINT_ITEM,
    OPTION_PRINT_COPY,
    OPTION_PRINT_QUERIES,
    OPTION_SEED,
    OPTION_CONNECTIONS,
    OPTION_REQUESTS,
    OPTION_SECONDS,
    OPTION_WARMUP_MS,
    OPTION_DRAIN,
    OPTION_RATE,
    OPTION_PID,
    OPTION_JSON,
    OPTION_FEED,
    OPTION_ONCE,
    OPTION_READY,
    OPTION_HELP,
};

static const struct option OPTIONS[] = {
    {"url", required_argument, NULL, OPTION_URL},
    {"method", required_argument, NULL, OPTION_METHOD},
    {"body", required_argument, NULL, OPTION_BODY},
    {"header", required_argument, NULL, OPTION_HEADER},
    {"key", required_argument, NULL, OPTION_KEY},
    {"unsigned", no_argument, NULL, OPTION_UNSIGNED},
    {"sign-cached", no_argument, NULL, OPTION_SIGN_CACHED},
    {"items", required_argument, NULL, OPTION_ITEMS},
    {"items-count", required_argument, NULL, OPTION_ITEMS_COUNT},
    {"items-first", required_argument, NULL, OPTION_ITEMS_FIRST},
    {"writes-percent", required_argument, NULL, OPTION_WRITES_PERCENT},
    {"orders", no_argument, NULL, OPTION_ORDERS},
    {"query", required_argument, NULL, OPTION_QUERY},
    {"page-size", required_argument, NULL, OPTION_PAGE_SIZE},
    {"turn", required_argument, NULL, OPTION_TURN},
    {"print-item", no_argument, NULL, OPTION_PRINT_ITEM},
    {"print-copy", no_argument, NULL, OPTION_PRINT_COPY},
    {"print-queries", no_argument, NULL, OPTION_PRINT_QUERIES},
    {"seed", required_argument, NULL, OPTION_SEED},
    {"requests", required_argument, NULL, OPTION_REQUESTS},
    {"connections", required_argument, NULL, OPTION_CONNECTIONS},
    {"seconds", required_argument, NULL, OPTION_SECONDS},
    {"warmup-ms", required_argument, NULL, OPTION_WARMUP_MS},
    {"drain", no_argument, NULL, OPTION_DRAIN},
    {"rate", required_argument, NULL, OPTION_RATE},
    {"pid", required_argument, NULL, OPTION_PID},
    {"json", no_argument, NULL, OPTION_JSON},
    {"feed", no_argument, NULL, OPTION_FEED},
    {"once", no_argument, NULL, OPTION_ONCE},
    {"ready", no_argument, NULL, OPTION_READY},
    {"help", no_argument, NULL, OPTION_HELP},
    {0},
};

static Status number(const char *name, Slice text, uint64_t min, uint64_t max, uint64_t *out,
                     Error *err)
{
    if (!slice_to_u64(text, out) || *out < min || *out > max)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "expected --%s from %" PRIu64 " to %" PRIu64 ", found '%.*s'", name, min,
                         max, SLICE_CUT(text, 100));
    return STATUS_OK;
}

static Status add_header(RequestOptions *request, Slice line, Error *err)
{
    if (request->header_count == REQUEST_HEADERS_MAX)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE, "expected at most %d headers",
                         REQUEST_HEADERS_MAX);
    request->headers[request->header_count++] = line;
    return STATUS_OK;
}

static Status read_items(RequestOptions *request, Slice name, Error *err)
{
    if (!item_operation_parse(name, &request->items.operation))
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "expected an operation on items, found '%.*s'; see --help",
                         SLICE_CUT(name, 100));
    request->is_items = true;
    return STATUS_OK;
}

static Status read_query(RequestOptions *request, Slice name, Error *err)
{
    if (!query_kind_parse(name, &request->query.kind))
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "expected the name of a query, found '%.*s'; see --help",
                         SLICE_CUT(name, 100));
    request->is_query = true;
    return STATUS_OK;
}

static Status read_number(Options *o, enum Option option, Slice text, Error *err)
{
    uint64_t value = 0;
    ItemOptions *items = &o->run.request.items;
    switch (option) {
    case OPTION_ITEMS_COUNT:
        TRY(number("items-count", text, 1, ITEM_COUNT_MAX, &items->count, err));
        break;
    case OPTION_ITEMS_FIRST:
        TRY(number("items-first", text, 0, ITEM_COUNT_MAX, &items->first, err));
        break;
    case OPTION_WRITES_PERCENT:
        TRY(number("writes-percent", text, 0, 100, &value, err));
        items->writes_percent = (uint32_t)value;
        break;
    case OPTION_PAGE_SIZE:
        TRY(number("page-size", text, 1, QUERY_PAGE_SIZE_MAX, &value, err));
        o->run.request.query.page_size = (uint32_t)value;
        break;
    case OPTION_TURN:
        TRY(number("turn", text, 0, ITEM_COUNT_MAX, &o->run.turn, err));
        break;
    case OPTION_SEED:
        TRY(number("seed", text, 0, UINT64_MAX, &items->seed, err));
        break;
    case OPTION_REQUESTS:
        TRY(number("requests", text, 1, ITEM_COUNT_MAX, &o->run.requests, err));
        break;
    case OPTION_CONNECTIONS:
        TRY(number("connections", text, 1, RUN_CONNECTIONS_MAX, &value, err));
        o->run.connections = (uint32_t)value;
        break;
    case OPTION_SECONDS:
        TRY(number("seconds", text, 1, 3600, &value, err));
        o->run.seconds = (uint32_t)value;
        break;
    case OPTION_WARMUP_MS:
        TRY(number("warmup-ms", text, 0, 60000, &value, err));
        o->run.warmup_ms = (uint32_t)value;
        break;
    case OPTION_RATE:
        TRY(number("rate", text, 1, 10000000, &o->run.rate, err));
        break;
    default:
        TRY(number("pid", text, 1, INT32_MAX, &value, err));
        o->run.pid = (int64_t)value;
        break;
    }
    return STATUS_OK;
}

static void print_item(void)
{
    AUTO(item_maker_done) ItemMaker maker;
    ItemOptions options = {.operation = ITEM_CREATE, .count = 1};
    item_maker_init(&maker, &options);
    printf("%.*s\n", SLICE_ARG(item_next(&maker).body));
}

static Status check_written(Error *err)
{
    if (fflush(stdout) != 0 || ferror(stdout) != 0)
        return error_set(err, STATUS_IO, SUB_NONE, "cannot write everything that was asked for");
    return STATUS_OK;
}

static Status print_copy(const ItemOptions *options, Error *err)
{
    AUTO(item_maker_done) ItemMaker maker;
    ItemOptions create = *options;
    create.operation = ITEM_CREATE;
    item_maker_init(&maker, &create);
    for (uint64_t i = 0; i < options->count; i++) {
        Slice text = item_next(&maker).body;
        printf("%.*s\t%.*s\t%.*s\n", SLICE_ARG(maker.id), SLICE_ARG(maker.key), SLICE_ARG(text));
    }
    return check_written(err);
}

static Status print_queries(const RunOptions *options, Error *err)
{
    AUTO(query_maker_done) QueryMaker maker;
    query_maker_init(&maker, &options->request.query);
    for (uint64_t i = 0; i < options->requests; i++) {
        Slice body = query_turn(&maker, options->turn + i, SLICE_EMPTY).body;
        printf("%.*s\n", SLICE_ARG(body));
    }
    return check_written(err);
}

static Status read_option(Options *o, enum Option option, Slice text, Error *err)
{
    RequestOptions *request = &o->run.request;
    switch (option) {
    case OPTION_URL:
        return url_parse(text, &request->url, err);
    case OPTION_METHOD:
        request->method = text;
        return STATUS_OK;
    case OPTION_BODY:
        request->body = text;
        return STATUS_OK;
    case OPTION_HEADER:
        return add_header(request, text, err);
    case OPTION_KEY:
        return signer_init(&o->signer, text, err);
    case OPTION_UNSIGNED:
        request->signer = NULL;
        return STATUS_OK;
    case OPTION_SIGN_CACHED:
        request->sign_each = false;
        return STATUS_OK;
    case OPTION_JSON:
        o->is_json = true;
        return STATUS_OK;
    case OPTION_FEED:
        request->is_feed = true;
        return STATUS_OK;
    case OPTION_ONCE:
        o->is_once = true;
        return STATUS_OK;
    case OPTION_READY:
        o->is_ready = true;
        return STATUS_OK;
    case OPTION_PRINT_COPY:
        o->is_copy = true;
        return STATUS_OK;
    case OPTION_PRINT_QUERIES:
        o->is_print = true;
        return STATUS_OK;
    case OPTION_DRAIN:
        o->run.drains = true;
        return STATUS_OK;
    case OPTION_ORDERS:
        request->items.is_orders = true;
        return STATUS_OK;
    case OPTION_ITEMS:
        return read_items(request, text, err);
    case OPTION_QUERY:
        return read_query(request, text, err);
    case OPTION_PAGE_SIZE:
    case OPTION_TURN:
    case OPTION_ITEMS_COUNT:
    case OPTION_ITEMS_FIRST:
    case OPTION_WRITES_PERCENT:
    case OPTION_SEED:
    case OPTION_REQUESTS:
    case OPTION_CONNECTIONS:
    case OPTION_SECONDS:
    case OPTION_WARMUP_MS:
    case OPTION_RATE:
    case OPTION_PID:
        return read_number(o, option, text, err);
    case OPTION_PRINT_ITEM:
        print_item();
        exit(EXIT_SUCCESS);
    case OPTION_HELP:
        (void)fputs(USAGE, stdout);
        exit(EXIT_SUCCESS);
    }
    return error_set(err, STATUS_BAD_REQUEST, SUB_NONE, "see orrery-load --help");
}

/* Checks which options can be combined. */
static Status check_options(Options *o, Error *err)
{
    RequestOptions *request = &o->run.request;
    request->query.count = request->items.count;
    request->query.seed = request->items.seed;
    if (o->is_print && (!request->is_query || o->run.requests == 0))
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "--print-queries needs --query and --requests");
    if (o->is_copy || o->is_print)
        return STATUS_OK;
    if (request->url.host.len == 0)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE, "expected --url; see --help");
    if (request->is_items + request->is_query + request->is_feed > 1)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "expected one of --items, --query and --feed, found several");
    if (request->is_items && !request->sign_each)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "--sign-cached does not go with --items: their signatures differ");
    if (request->is_items && item_operation_executes(request->items.operation))
        return STATUS_OK;
    Slice path = request->url.path;
    if ((request->is_items || request->is_query || request->is_feed) &&
        !(slice_starts_with(path, SLICE("/dbs/")) && slice_ends_with(path, SLICE("/docs"))))
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "with --items, --query or --feed, expected a --url with '/dbs/.../docs', "
                         "found '%.*s'",
                         SLICE_CUT(path, 100));
    return STATUS_OK;
}

static Status read_options(int argc, char **argv, Options *o, Error *err)
{
    *o = (Options){.run = {.connections = 32, .seconds = 5, .warmup_ms = 500}};
    o->run.request.method = SLICE("GET");
    o->run.request.signer = &o->signer;
    o->run.request.sign_each = true;
    /* The clock never shows a time twice and runs faster than anyone creates items. */
    o->run.request.items =
        (ItemOptions){.count = 10000, .first = clock_wall_us(clock_real()), .writes_percent = 5};
    random_secret(&o->run.request.items.seed, sizeof(o->run.request.items.seed));
    TRY(signer_init(&o->signer, SLICE(SIGN_KEY_WELL_KNOWN), err));
    for (int option; (option = getopt_long(argc, argv, "", OPTIONS, NULL)) != -1;) {
        Slice text = optarg == NULL ? SLICE_EMPTY : slice_from_cstr(optarg);
        TRY(read_option(o, (enum Option)option, text, err));
    }
    if (optind < argc)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE, "expected an option, found '%.100s'",
                         argv[optind]);
    return check_options(o, err);
}

/* The results, computed once for both forms of the report. */
typedef struct Report {
    double requests_per_s;
    double server_us_per_request;
    double client_us_per_request;
    double bytes_per_answer; /* bodies only, of all pages */
    double pages_per_request;
    double client_busy; /* near 1 if the client was the bottleneck */
} Report;

static Report report_make(const RunResult *r)
{
    double seconds = (double)r->elapsed_us / 1e6;
    double count = r->latency_us.count > 0 ? (double)r->latency_us.count : 1;
    return (Report){
        .requests_per_s = (double)r->latency_us.count / seconds,
        .server_us_per_request = (double)r->server.cpu_us / count,
        .client_us_per_request = (double)r->client_cpu_us / count,
        .bytes_per_answer = (double)r->body_bytes / count,
        .pages_per_request = (double)r->pages / count,
        .client_busy = (double)r->client_cpu_us / (double)r->elapsed_us,
    };
}

static void print_json(const RunResult *r)
{
    Report report = report_make(r);
    printf("{\"requests\":%" PRIu64 ",\"seconds\":%.3f,\"requests_per_s\":%.1f,"
           "\"latency_us\":{\"p50\":%" PRIu64 ",\"p99\":%" PRIu64 ",\"p999\":%" PRIu64
           ",\"max\":%" PRIu64 "},",
           r->latency_us.count, (double)r->elapsed_us / 1e6, report.requests_per_s,
           histogram_percentile(&r->latency_us, 500), histogram_percentile(&r->latency_us, 990),
           histogram_percentile(&r->latency_us, 999), r->latency_us.value_max);
    printf("\"first_page_p50_us\":%" PRIu64 ",\"first_page_p99_us\":%" PRIu64 ",",
           histogram_percentile(&r->first_page_us, 500),
           histogram_percentile(&r->first_page_us, 990));
    printf("\"failures\":%" PRIu64 ",\"statuses\":{", r->failures);
    const char *separator = "";
    for (int status = 0; status < RUN_STATUS_MAX; status++) {
        if (r->by_status[status] == 0)
            continue;
        printf("%s\"%d\":%" PRIu64, separator, status, r->by_status[status]);
        separator = ",";
    }
    printf("},\"server_cpu_us_per_request\":%.3f,\"server_rss_bytes\":%" PRIu64
           ",\"client_cpu_us_per_request\":%.3f,\"client_busy\":%.2f,\"bytes_per_answer\":%.0f,"
           "\"pages_per_request\":%.2f}\n",
           report.server_us_per_request, r->server.rss_bytes, report.client_us_per_request,
           report.client_busy, report.bytes_per_answer, report.pages_per_request);
}

static void print_text(const RunResult *r, bool has_server)
{
    Report report = report_make(r);
    printf("requests/s      %.0f (%" PRIu64 " in %.2f s)\n", report.requests_per_s,
           r->latency_us.count, (double)r->elapsed_us / 1e6);
    printf("latency         P50 %" PRIu64 " us, P99 %" PRIu64 " us, P99.9 %" PRIu64
           " us, max %" PRIu64 " us\n",
           histogram_percentile(&r->latency_us, 500), histogram_percentile(&r->latency_us, 990),
           histogram_percentile(&r->latency_us, 999), r->latency_us.value_max);
    if (r->pages > r->latency_us.count)
        printf("first page      P50 %" PRIu64 " us, P99 %" PRIu64 " us\n",
               histogram_percentile(&r->first_page_us, 500),
               histogram_percentile(&r->first_page_us, 990));
    for (int status = 0; status < RUN_STATUS_MAX; status++) {
        if (r->by_status[status] > 0)
            printf("status %d      %" PRIu64 "\n", status, r->by_status[status]);
    }
    if (r->failures > 0)
        printf("failures        %" PRIu64 ", the first: %s\n", r->failures,
               r->first_failure.message);
    if (has_server)
        printf("server          %.2f us of CPU a request, %.1f MB of memory\n",
               report.server_us_per_request, (double)r->server.rss_bytes / 1e6);
    printf("answers         %.0f bytes each, without headers; %.2f pages\n",
           report.bytes_per_answer, report.pages_per_request);
    printf("client          %.2f us of CPU a request, %.0f%% busy%s\n",
           report.client_us_per_request, report.client_busy * 100,
           report.client_busy > 0.9 ? ": it was the bottleneck" : "");
}

static Status send_once(const Options *o, Error *err)
{
    AUTO(buf_done) Buf body;
    buf_init(&body, (size_t)64 << 20);
    int status = 0;
    TRY(run_once(&o->run.request, o->run.turn, clock_real(), &status, &body, err));
    printf("%d\n%.*s\n", status, SLICE_ARG(buf_view(&body)));
    if (status < 200 || status > 299)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE, "the server answered %d", status);
    return STATUS_OK;
}

/* Asks so often that the time until the answer is that of the server's start. */
static Status wait_ready(const Options *o, Error *err)
{
    const Clock *clock = clock_real();
    uint64_t end_us = clock_monotonic_us(clock) + READY_TIMEOUT_US;
    for (;;) {
        AUTO(buf_done) Buf body;
        buf_init(&body, (size_t)64 << 20);
        int status = 0;
        Status outcome = run_once(&o->run.request, 0, clock, &status, &body, err);
        if (outcome == STATUS_OK && status >= 200 && status <= 299)
            return STATUS_OK;
        if (clock_monotonic_us(clock) > end_us)
            return error_set(err, STATUS_TIMEOUT, SUB_NONE, "the server is not ready after 30 s");
        struct timespec pause = {.tv_nsec = READY_PAUSE_NS};
        (void)nanosleep(&pause, NULL); /* a shorter pause does no harm */
    }
}

static Status run(int argc, char **argv, Error *err)
{
    Options o;
    TRY(read_options(argc, argv, &o, err));
    if (o.is_copy)
        return print_copy(&o.run.request.items, err);
    if (o.is_print)
        return print_queries(&o.run, err);
    if (o.is_once)
        return send_once(&o, err);
    if (o.is_ready)
        return wait_ready(&o, err);
    RunResult result;
    TRY(run_load(&o.run, clock_real(), &result, err));
    if (o.is_json)
        print_json(&result);
    else
        print_text(&result, o.run.pid != 0);
    return STATUS_OK;
}

int main(int argc, char **argv)
{
    Error err;
    if (run(argc, argv, &err) == STATUS_OK)
        return EXIT_SUCCESS;
    (void)fprintf(stderr, "orrery-load: %s\n", err.message);
    return EXIT_FAILURE;
}
