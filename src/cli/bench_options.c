/* bench_options.c - see bench_options.h. */
#include "cli/bench_options.h"

#include "base/clock.h"
#include "cli/arguments.h"
#include "cli/bench_command.h"
#include "cli/commands.h"
#include "cli/connection.h"

#include <inttypes.h>
#include <stdio.h>

#define RU_MAX UINT64_C(1000000000)

typedef struct BenchArguments {
#define ARGUMENT_ROW(field, name, kind, placeholder, fallback, help) ARGUMENT_TYPE_##kind field;
#include "cli/bench_options.def"
#undef ARGUMENT_ROW
} BenchArguments;

static const ArgumentRow ROWS[] = {
#define ARGUMENT_ROW(field, name, kind, placeholder, fallback, help) \
    ARGUMENT_TABLE_ROW(BenchArguments, field, name, kind, placeholder, fallback, help),
#include "cli/bench_options.def"
#undef ARGUMENT_ROW
};
static const ArgumentTable TABLE = {"bench", ROWS, ARRAY_COUNT(ROWS)};

static const CommandWord QUERIES[] = {
#define X(name, text, what, sql) {"Queries of the workload query, over orders", text, what},
    QUERY_MAKER_QUERIES(X)
#undef X
};

static bool word_at(size_t index, CommandWord *out)
{
    size_t count = 0;
    const Workload *workloads = workload_list(&count);
    if (index >= count + ARRAY_COUNT(QUERIES))
        return false;
    *out = index < count ? (CommandWord){"Workloads", workloads[index].name, workloads[index].what}
                         : QUERIES[index - count];
    return true;
}

const Command BENCH_COMMAND = {
    .name = "bench",
    .summary = "measure a server: how many requests, how fast, at which cost",
    .usage = "bench [options] WORKLOAD",
    .about =
        "Sends requests to a server, Orrery or any other endpoint of the protocol, and prints how "
        "many it answers, how long that takes and what it costs. The container is 'bench' in the "
        "database 'bench', unless --container and --database name another.",
    .word = word_at,
    .options = &TABLE,
    .notes = "The exit code is 0 if all requests succeeded, 1 if some did not or it failed or was "
             "interrupted, and 2 if it was called in a wrong way.",
    .examples = "orrery bench --create read\n"
                "orrery bench --create --keep --items 100000 ycsb-b\n"
                "orrery bench --items 100000 --rate 2000 --seconds 60 ycsb-b\n"
                "orrery bench --create --query range query\n",
    .main = bench_main,
};

static Status number(const char *name, const char *text, uint64_t min, uint64_t max, uint64_t *out,
                     Error *err)
{
    Slice slice = slice_from_cstr(text);
    if (!slice_to_u64(slice, out) || *out < min || *out > max)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "--%s must be a number from %" PRIu64 " to %" PRIu64 ", not '%.80s'", name,
                         min, max, text);
    return STATUS_OK;
}

static Status to_items(const BenchArguments *a, BenchOptions *o, Error *err)
{
    ItemOptions *items = &o->load.request.items;
    const Workload *workload = o->workload;
    uint32_t writes = 0;
    memcpy(items->percent, workload->percent, sizeof(items->percent));
    items->shape = a->orders ? LOAD_ITEM_SHAPE_ORDER : workload->shape;
    items->distribution = workload->distribution;
    TRY(number("items", a->items, 1, LOAD_ITEM_COUNT_MAX, &items->count, err));
    TRY(argument_number("item-size", a->item_size, LOAD_ITEM_BYTES_MIN, LOAD_ITEM_BYTES_MAX,
                        &items->item_bytes, err));
    TRY(argument_number("items-per-key", a->items_per_key, 1, 1000000, &items->items_per_key, err));
    TRY(argument_number("scan-length", a->scan_length, 1, 1000, &items->scan_length, err));
    TRY(argument_number("writes", a->writes, 0, 100, &writes, err));
    if (strcmp(workload->name, "mixed") == 0) {
        items->percent[LOAD_ITEM_READ] = (uint8_t)(100 - writes);
        items->percent[LOAD_ITEM_UPSERT] = (uint8_t)writes;
    }
    if (a->distribution != NULL &&
        !key_distribution_parse(slice_from_cstr(a->distribution), &items->distribution))
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "--distribution must be uniform, zipfian or latest, not '%.80s'",
                         a->distribution);
    if (items->shape == LOAD_ITEM_SHAPE_ORDER)
        items->item_bytes = 0; /* it follows from the values */
    if (a->orders && workload->shape == LOAD_ITEM_SHAPE_FIELDS)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "--orders is not for the workloads of YCSB");
    /* The clock never shows a time twice and runs faster than anyone creates items. */
    items->first = clock_wall_us(clock_real());
    if (a->first != NULL)
        TRY(number("first", a->first, 0, INT64_MAX, &items->first, err));
    random_secret(&items->seed, sizeof(items->seed));
    if (a->seed != NULL)
        TRY(number("seed", a->seed, 0, UINT64_MAX, &items->seed, err));
    return STATUS_OK;
}

static Status to_query(const BenchArguments *a, BenchOptions *o, Error *err)
{
    QueryOptions *query = &o->load.request.query;
    Slice text = slice_from_cstr(a->query);
    query->count = o->load.request.items.count;
    query->seed = o->load.request.items.seed;
    TRY(argument_number("page-size", a->page_size, 1, QUERY_PAGE_SIZE_MAX, &query->page_size, err));
    if (query_maker_find(text, &query->kind))
        return STATUS_OK;
    if (!slice_equal_nocase(slice_first(text, 6), SLICE("SELECT")))
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "--query must be the name of a query or begin with SELECT, not '%.80s'; "
                         "'orrery bench --help' lists them",
                         a->query);
    if (text.len > QUERY_SQL_BYTES_MAX)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE, "--query must have at most %d bytes",
                         QUERY_SQL_BYTES_MAX);
    query->sql = text;
    return STATUS_OK;
}

static Status to_run(const BenchArguments *a, BenchOptions *o, Error *err)
{
    LoadOptions *load = &o->load;
    uint64_t pid = 0;
    uint64_t ru = 0;
    load->drains = a->drain;
    load->no_retry = a->no_retry;
    load->stop_fd = -1;
    TRY(argument_number("connections", a->connections, 1, LOAD_CONNECTIONS_MAX, &load->connections,
                        err));
    TRY(argument_number("seconds", a->seconds, 1, 86400, &load->seconds, err));
    TRY(argument_number("warmup-ms", a->warmup_ms, 0, 600000, &load->warmup_ms, err));
    TRY(argument_number("timeout-ms", a->timeout_ms, 1, 3600000, &load->timeout_ms, err));
    TRY(number("turn", a->turn, 0, LOAD_ITEM_COUNT_MAX, &load->turn, err));
    if (a->rate != NULL)
        TRY(number("rate", a->rate, 1, 10000000, &load->rate, err));
    if (a->count != NULL)
        TRY(number("count", a->count, 1, LOAD_ITEM_COUNT_MAX, &load->count, err));
    if (a->pid != NULL)
        TRY(number("pid", a->pid, 1, INT32_MAX, &pid, err));
    if (a->max_ru != NULL)
        TRY(number("max-ru", a->max_ru, 1, RU_MAX, &ru, err));
    load->pid = (int64_t)pid;
    load->milli_ru_max = ru * 1000;
    o->is_allowed = a->yes || ru > 0;
    return STATUS_OK;
}

static bool has_control(const char *text)
{
    for (; *text != '\0'; text++) {
        if ((unsigned char)*text < ' ' || *text == 0x7f)
            return true;
    }
    return false;
}

static Status to_request(const BenchArguments *a, BenchOptions *o, Error *err)
{
    RequestOptions *request = &o->load.request;
    request->kind = o->workload->kind;
    request->method = slice_from_cstr(a->method);
    request->body = slice_from_cstr(a->body == NULL ? "" : a->body);
    request->sign_each = !a->sign_cached;
    if (has_control(a->method) || strchr(a->method, ' ') != NULL)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE, "--method must be one word");
    if (a->sign_cached && request->kind != WORKLOAD_REQUEST)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "--sign-cached is for the workload request: the signatures of others "
                         "differ");
    if (a->header.count > REQUEST_HEADERS_MAX)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE, "at most %d times --header",
                         REQUEST_HEADERS_MAX);
    for (size_t i = 0; i < a->header.count; i++) {
        if (has_control(a->header.items[i]) || strchr(a->header.items[i], ':') == NULL)
            return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                             "--header must be a name and a value, such as 'a: b'");
        request->headers[request->header_count++] = slice_from_cstr(a->header.items[i]);
    }
    return STATUS_OK;
}

/* An id must be usable in a path and in JSON as it is. */
static Status to_id(const char *name, const char *text, Slice *out, Error *err)
{
    *out = slice_from_cstr(text == NULL ? "bench" : text);
    if (out->len == 0 || out->len > 255 || has_control(out->ptr) ||
        strpbrk(out->ptr, "/\\?#\"") != NULL)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "--%s must have 1 to 255 characters, none of / \\ ? # \"", name);
    return STATUS_OK;
}

static Status check_url(const BenchOptions *o, Error *err)
{
    Slice path = o->load.request.url.path;
    const uint8_t *percent = o->workload->percent;
    bool is_procedure = o->workload->kind == WORKLOAD_ITEMS &&
                        (percent[LOAD_ITEM_EXECUTE] > 0 || percent[LOAD_ITEM_EXECUTE_NEW] > 0);
    if (o->workload->kind == WORKLOAD_REQUEST || is_procedure)
        return STATUS_OK;
    if (!slice_starts_with(path, SLICE("/dbs/")) || !slice_ends_with(path, SLICE("/docs")))
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "--url must have a path like /dbs/a/colls/b/docs for this workload, not "
                         "'%.*s'",
                         SLICE_CUT(path, 100));
    return STATUS_OK;
}

static Status to_address(const BenchArguments *a, BenchOptions *o, Arena *arena, Error *err)
{
    LoadContainerOptions *container = &o->container;
    Url *url = &o->load.request.url;
    TRY(to_id("database", a->database, &container->database, err));
    TRY(to_id("container", a->container, &container->container, err));
    TRY(argument_number("throughput", a->throughput, 400, 100000000, &container->throughput, err));
    if (a->url != NULL) {
        TRY(url_parse(slice_from_cstr(a->url), url, err));
        TRY(check_url(o, err));
        if (a->create || a->database != NULL || a->container != NULL)
            return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                             "--url replaces --database and --container, and --create needs those");
    } else {
        TRY(url_parse(slice_from_cstr(a->endpoint), url, err));
        if (!slice_equal(url->path, SLICE("/")))
            return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                             "--endpoint must have no path, such as http://localhost:8081");
        url->path = load_container_path(arena, container->database, container->container);
        if (o->workload->kind == WORKLOAD_REQUEST || o->workload->percent[LOAD_ITEM_EXECUTE] > 0 ||
            o->workload->percent[LOAD_ITEM_EXECUTE_NEW] > 0)
            return error_set(err, STATUS_BAD_REQUEST, SUB_NONE, "the workload %s needs --url",
                             o->workload->name);
    }
    if (a->insecure && a->cert != NULL)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "--insecure and --cert exclude each other; give one of them");
    if ((a->insecure || a->cert != NULL) && !url->is_tls)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "--insecure and --cert are for an https:// server");
    container->url = *url;
    o->target = (LoadTargetOptions){.url = *url, .cert_file = a->cert, .is_insecure = a->insecure};
    return STATUS_OK;
}

static Status to_signer(const BenchArguments *a, BenchOptions *o, Arena *arena,
                        char *const *environment, Error *err)
{
    const char *key = NULL;
    TRY(connection_choose_key(a->key, a->key_file, arena, environment, &key, err));
    TRY(signer_init(&o->signer, slice_from_cstr(key), err));
    o->container.signer = &o->signer;
    o->load.request.signer = a->is_unsigned ? NULL : &o->signer;
    return STATUS_OK;
}

static Status to_mode(const BenchArguments *a, BenchMode *out, Error *err)
{
    const struct {
        bool is_set;
        BenchMode mode;
    } rows[] = {
        {a->once, BENCH_ONCE},
        {a->ready, BENCH_READY},
        {a->print_item, BENCH_PRINT_ITEM},
        {a->print_copy, BENCH_PRINT_COPY},
        {a->print_queries, BENCH_PRINT_QUERIES},
    };
    *out = BENCH_RUN;
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        if (rows[i].is_set && *out != BENCH_RUN)
            return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                             "--once, --ready and --print-... exclude each other");
        if (rows[i].is_set)
            *out = rows[i].mode;
    }
    return STATUS_OK;
}

static Status to_workload(const ArgumentList *rest, BenchOptions *o, Error *err)
{
    static const char *const fallbacks[] = {
        [BENCH_ONCE] = "request",        [BENCH_READY] = "request",
        [BENCH_PRINT_ITEM] = "create",   [BENCH_PRINT_COPY] = "create",
        [BENCH_PRINT_QUERIES] = "query",
    };
    const char *name = rest->count > 0 ? rest->items[0] : fallbacks[o->mode];
    if (name == NULL || rest->count > 1)
        return error_set(
            err, STATUS_BAD_REQUEST, SUB_NONE,
            "which workload? Name one, such as read; 'orrery bench --help' lists them");
    o->workload = workload_find(slice_from_cstr(name));
    if (o->workload == NULL)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "there is no workload '%.80s'; 'orrery bench --help' lists them", name);
    return STATUS_OK;
}

static Status check_together(const BenchArguments *a, const BenchOptions *o, Error *err)
{
    if (o->mode == BENCH_PRINT_QUERIES &&
        (o->workload->kind != WORKLOAD_QUERY || o->load.count == 0))
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "--print-queries needs --count, and no other workload than query");
    if (a->keep && !a->create)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE, "--keep is for --create");
    if (a->create && (a->is_unsigned || o->mode != BENCH_RUN))
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "--create does not go with --unsigned, --once, --ready and --print-...");
    return STATUS_OK;
}

Status bench_options_parse(int argc, char *const *argv, char *const *environment, Arena *arena,
                           BenchOptions *out, bool *help, Error *err)
{
    BenchArguments a = {0};
    ArgumentList rest = {0};
    *out = (BenchOptions){0};
    TRY(arguments_parse(&TABLE, arena, argc, argv, &a, &rest, help, err));
    if (*help)
        return STATUS_OK;
    TRY(to_mode(&a, &out->mode, err));
    TRY(to_workload(&rest, out, err));
    TRY(to_items(&a, out, err));
    TRY(to_query(&a, out, err));
    TRY(to_run(&a, out, err));
    TRY(to_request(&a, out, err));
    if (out->mode < BENCH_PRINT_ITEM)
        TRY(to_address(&a, out, arena, err));
    TRY(to_signer(&a, out, arena, environment, err));
    TRY(check_together(&a, out, err));
    out->is_create = a.create;
    out->is_keep = a.keep;
    out->is_json = a.json;
    out->is_quiet = a.quiet;
    out->has_histogram = a.histogram;
    return STATUS_OK;
}

/* What an operation on an item of 1 KB costs, roughly and with the default indexing policy. */
static double ru_of(ItemOperation operation)
{
    static const double prices[] = {
        [LOAD_ITEM_READ] = 1,     [LOAD_ITEM_SWEEP] = 1,         [LOAD_ITEM_CREATE] = 7,
        [LOAD_ITEM_UPSERT] = 11,  [LOAD_ITEM_PATCH] = 11,        [LOAD_ITEM_UPDATE] = 11,
        [LOAD_ITEM_MODIFY] = 12,  [LOAD_ITEM_SCAN] = 5,          [LOAD_ITEM_BATCH] = 700,
        [LOAD_ITEM_EXECUTE] = 10, [LOAD_ITEM_EXECUTE_NEW] = 700,
    };
    static_assert(ARRAY_COUNT(prices) == LOAD_ITEM_OPERATION_COUNT, "each has a price");
    return prices[operation];
}

void bench_options_estimate(const BenchOptions *options, Buf *out)
{
    const LoadOptions *load = &options->load;
    const ItemOptions *items = &load->request.items;
    double kb = items->item_bytes > 1024 ? items->item_bytes / 1024.0 : 1;
    double each = 0;
    for (int i = 0; i < LOAD_ITEM_OPERATION_COUNT; i++)
        each += items->percent[i] / 100.0 * ru_of((ItemOperation)i) * kb;
    double count = (double)load->rate * load->seconds;
    if (load->count > 0)
        count = (double)load->count;
    if (options->workload->kind != WORKLOAD_ITEMS)
        buf_slice(out, SLICE("an amount of request units that depends on the query"));
    else if (count > 0)
        buf_format(out, "about %.0f request units", count * each);
    else
        buf_format(out, "about %.0f request units for each request, as many as the server allows",
                   each);
    if (options->is_create)
        buf_format(
            out,
            ", about %.0f to make the items, and a container with %" PRIu32 " RU/s while it lasts",
            (double)items->count * ru_of(LOAD_ITEM_CREATE) * kb, options->container.throughput);
}
