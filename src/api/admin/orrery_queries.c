/* orrery_queries.c - the queries that a container serves, by their texts without values; see
 * throughput/query_log.h for how they are kept. */
#include "api/admin/orrery_int.h"
#include "api/core/usage_int.h"

enum { QUERIES_BY, QUERIES_COUNT };
enum { ROWS_DEFAULT = 100, ROWS_MAX = 1000 };

static const Slice BY_NAMES[] = {SLICE_INIT("ru"), SLICE_INIT("executions")};
static const QueryCount BY_COUNTS[] = {QUERY_CHARGE, QUERY_EXECUTIONS};

/* A text that is too long to be kept is null. */
static void put_query(Buf *out, const QueryRow *row)
{
    put_open(out, NULL, '{');
    if (row->text.len > 0) {
        put_text(out, "query", row->text);
    } else {
        put_name(out, "query");
        buf_slice(out, SLICE("null"));
    }
    put_number(out, "keyParts", row->key_parts);
    put_number(out, "executions", row->counts[QUERY_EXECUTIONS]);
    put_number(out, "onePartition", row->counts[QUERY_ONE_PARTITION]);
    put_number(out, "pages", row->counts[QUERY_PAGES]);
    put_number(out, "partitionVisits", row->counts[QUERY_VISITS]);
    put_hundredths(out, "ru", row->counts[QUERY_CHARGE]);
    put_number(out, "results", row->counts[QUERY_RESULTS]);
    put_number(out, "itemsRead", row->counts[QUERY_DOCUMENTS]);
    put_number(out, "indexKeysRead", row->counts[QUERY_INDEX_KEYS]);
    put_number(out, "first", row->first_s);
    put_number(out, "last", row->last_s);
    put_bool(out, "isExact", row->is_exact);
    put_close(out, '}');
}

static void put_paths(Buf *out, const PartitionKeyDefinition *key)
{
    put_open(out, "partitionKey", '[');
    for (size_t i = 0; i < key->path_count; i++) {
        AUTO(buf_done) Buf path;
        buf_init(&path, PROPERTY_PATH_CANONICAL_BYTES_MAX);
        property_path_print(key->paths[i], &path);
        put_text(out, NULL, buf_view(&path));
    }
    put_close(out, ']');
}

void orrery_queries_print(const OrreryPage *page, QueryCount by, size_t rows_max, Buf *out)
{
    const QueryLog *logs[USAGE_LOOPS_MAX];
    size_t log_count = usage_query_logs(page->request->api, logs);
    QueryRow *rows = NULL;
    size_t count = query_log_read(logs, log_count, page->container->info.number, by,
                                  page->request->arena, &rows);
    uint64_t since_s = page->now_s;
    for (size_t i = 0; i < count; i++)
        since_s = rows[i].first_s < since_s ? rows[i].first_s : since_s;
    put_open(out, NULL, '{');
    put_text(out, "database", page->database->info.id);
    put_text(out, "container", page->container->info.id);
    put_paths(out, &page->container->partition_key);
    put_text(out, "by", BY_NAMES[by == QUERY_CHARGE ? 0 : 1]);
    put_number(out, "time", page->now_s);
    put_number(out, "since", since_s);
    put_number(out, "queries", count);
    put_open(out, "rows", '[');
    for (size_t i = 0; i < count && i < rows_max; i++)
        put_query(out, &rows[i]);
    put_close(out, ']');
    put_close(out, '}');
}

static Status run_queries(OrreryPage *page)
{
    orrery_queries_print(page, BY_COUNTS[page->queries.by], page->queries.count, &page->text);
    return STATUS_OK;
}

static Status parse_queries(OrreryPage *page, Error *err)
{
    TRY(orrery_need_statistics(page, err));
    if (page->request->api->options.no_query_texts)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "The server records no queries: it was started with --no-query-texts.");
    Slice by = page->values[QUERIES_BY];
    page->queries.by = 0;
    if (by.len > 0) {
        while (page->queries.by < (int)ARRAY_COUNT(BY_NAMES) &&
               !slice_equal(by, BY_NAMES[page->queries.by]))
            page->queries.by++;
        if (page->queries.by == (int)ARRAY_COUNT(BY_NAMES))
            return orrery_refuse(page, QUERIES_BY, "ru or executions", err);
    }
    uint64_t count = 0;
    TRY(orrery_number(page, QUERIES_COUNT, 1, ROWS_MAX, ROWS_DEFAULT, &count, err));
    page->queries.count = (uint32_t)count;
    return STATUS_OK;
}

const OrreryKind ORRERY_QUERIES = {
    .name = SLICE_INIT("queries"),
    .is_of_container = true,
    .parameters = {[QUERIES_BY] = "by", [QUERIES_COUNT] = "count"},
    .parse = parse_queries,
    .run = run_queries,
};
