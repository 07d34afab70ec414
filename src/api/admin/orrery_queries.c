/* orrery_queries.c - the queries that a container serves, by their texts without values; see
 * throughput/query_log.h for how they are kept. A node records those whose pages it makes, and has
 * ranges of the container then: so the owners of its ranges know nearly all of them. */
#include "api/admin/range_gather_int.h"
#include "api/core/usage_int.h"

#include <stdlib.h>

enum { QUERIES_BY, QUERIES_COUNT };
enum {
    ROWS_DEFAULT = 100,
    ROWS_MAX = 1000,
    ROWS_ALL_MAX = 4096, /* of all nodes together */
};

/* To ask all other nodes, which have the rows in memory. */
#define QUERIES_US ((uint64_t)3000000)

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

/* ---- of all nodes ---- */

typedef struct QueryList {
    QueryRow *rows;
    size_t count;
    QueryCount by;
    RangeGather gather;
} QueryList;

/* The part that is asked for; a node sends at most ROWS_MAX rows. */
static const Slice PART = SLICE_INIT("queries");

static Status nothing_here(void *ctx UNUSED, const GatherRange *range UNUSED, Error *err UNUSED)
{
    return STATUS_OK; /* what was recorded here is in one log for all ranges */
}

static size_t read_log(const OrreryPage *page, QueryCount by, QueryRow **rows)
{
    const QueryLog *logs[USAGE_LOOPS_MAX];
    size_t log_count = usage_query_logs(page->request->api, logs);
    return query_log_read(logs, log_count, page->container->info.number, by, page->request->arena,
                          rows);
}

/* Adds to the row of the same text. The rows of a node come with the most important first, so that
 * what there is no room for is the least important. */
static void add_row(QueryList *list, const QueryRow *row)
{
    size_t i = 0;
    while (i < list->count && (list->rows[i].key_parts != row->key_parts ||
                               !slice_equal(list->rows[i].text, row->text)))
        i++;
    if (i == ROWS_ALL_MAX)
        return;
    if (i == list->count) {
        list->rows[list->count++] = *row;
        return;
    }
    QueryRow *sum = &list->rows[i];
    sum->is_exact = sum->is_exact && row->is_exact;
    sum->first_s = row->first_s < sum->first_s ? row->first_s : sum->first_s;
    sum->last_s = row->last_s > sum->last_s ? row->last_s : sum->last_s;
    for (size_t n = 0; n < QUERY_COUNTS; n++)
        sum->counts[n] += row->counts[n];
}

/* A line of a part: keyParts isExact first last counts(QUERY_COUNTS) "text". */
static void print_line(Buf *out, const QueryRow *row)
{
    buf_format(out, "%u %u %llu %llu ", (unsigned)row->key_parts, (unsigned)row->is_exact,
               (unsigned long long)row->first_s, (unsigned long long)row->last_s);
    for (size_t n = 0; n < QUERY_COUNTS; n++)
        buf_format(out, "%llu ", (unsigned long long)row->counts[n]);
    json_print_string(row->text, out);
    buf_byte(out, '\n');
}

static Status read_line(Slice line, Arena *arena, QueryRow *row, Error *err)
{
    enum { FIRST = 4 };
    uint64_t numbers[FIRST + QUERY_COUNTS];
    bool is_good = true;
    for (size_t i = 0; i < ARRAY_COUNT(numbers); i++)
        is_good = is_good && slice_to_u64(slice_cut(&line, ' '), &numbers[i]) &&
                  numbers[i] <= ORRERY_NUMBER_MAX;
    Json text = JSON_NONE;
    if (is_good)
        TRY(json_parse(arena, line, &text, err));
    if (!json_is(text, JSON_STRING) || json_string(text).len > QUERY_LOG_TEXT_MAX ||
        numbers[0] > UINT8_MAX)
        return range_gather_refuse(err);
    *row = (QueryRow){
        .text = json_string(text),
        .key_parts = (uint8_t)numbers[0],
        .is_exact = numbers[1] != 0,
        .first_s = numbers[2],
        .last_s = numbers[3],
    };
    memcpy(row->counts, numbers + FIRST, sizeof(row->counts));
    return STATUS_OK;
}

/* All lines, or none. */
static Status take_rows(RangeGather *gather, Slice text, Arena *arena, Error *err)
{
    QueryList *list = gather->ctx;
    Slice ids = slice_cut(&text, '\n');
    QueryRow *rows = ARENA_NEW_ARRAY(arena, QueryRow, ROWS_MAX);
    size_t count = 0;
    while (text.len > 0 && count < ROWS_MAX)
        TRY(read_line(slice_cut(&text, '\n'), arena, &rows[count++], err));
    if (!range_gather_claim_ids(gather, ids))
        return range_gather_refuse(err);
    for (size_t i = 0; i < count; i++) {
        rows[i].text = arena_copy(gather->page->request->arena, rows[i].text);
        add_row(list, &rows[i]);
    }
    return STATUS_OK;
}

static int compare_rows(const void *left, const void *right, void *ctx)
{
    const QueryCount *by = ctx;
    uint64_t a = ((const QueryRow *)left)->counts[*by];
    uint64_t b = ((const QueryRow *)right)->counts[*by];
    return (a < b) - (a > b);
}

static Status gather_rows(QueryList *list, OrreryPage *page, QueryCount by, Error *err)
{
    list->by = by;
    list->gather = (RangeGather){
        .part = PART,
        .time_us = QUERIES_US,
        .answer_bytes_max = ORRERY_JSON_BYTES_MAX,
        .asks_once = true,
        .ctx = list,
        .read_here = nothing_here,
        .take = take_rows,
    };
    list->count = read_log(page, by, &list->rows);
    range_gather_init(&list->gather, page);
    TRY(range_gather_here(&list->gather, err));
    if (range_gather_is_complete(&list->gather))
        return STATUS_OK;
    QueryRow *here = list->rows;
    size_t count = list->count;
    list->rows = ARENA_NEW_ARRAY(page->request->arena, QueryRow, ROWS_ALL_MAX);
    list->count = 0;
    for (size_t i = 0; i < count; i++)
        add_row(list, &here[i]);
    TRY(range_gather_run(&list->gather, err));
    qsort_r(list->rows, list->count, sizeof(QueryRow), compare_rows, &by);
    return STATUS_OK;
}

/* ---- the answer ---- */

Status orrery_queries_print(OrreryPage *page, QueryCount by, size_t rows_max, Buf *out, Error *err)
{
    QueryList list = {0};
    TRY(gather_rows(&list, page, by, err));
    uint64_t since_s = page->now_s;
    for (size_t i = 0; i < list.count; i++)
        since_s = list.rows[i].first_s < since_s ? list.rows[i].first_s : since_s;
    put_open(out, NULL, '{');
    put_text(out, "database", page->database->info.id);
    put_text(out, "container", page->container->info.id);
    put_paths(out, &page->container->partition_key);
    put_text(out, "by", BY_NAMES[by == QUERY_CHARGE ? 0 : 1]);
    put_number(out, "time", page->now_s);
    put_number(out, "since", since_s);
    put_missing(out, &list.gather, page->container);
    put_number(out, "queries", list.count);
    put_open(out, "rows", '[');
    for (size_t i = 0; i < list.count && i < rows_max; i++)
        put_query(out, &list.rows[i]);
    put_close(out, ']');
    put_close(out, '}');
    return STATUS_OK;
}

Status orrery_queries_part(OrreryPage *page, QueryCount by)
{
    QueryList list = {.gather = {.ctx = &list, .read_here = nothing_here}};
    range_gather_init(&list.gather, page);
    TRY(range_gather_here(&list.gather, &page->error));
    range_gather_put_ids(&list.gather, &page->text);
    list.count = read_log(page, by, &list.rows);
    for (size_t i = 0; i < list.count && i < ROWS_MAX; i++)
        print_line(&page->text, &list.rows[i]);
    return STATUS_OK;
}

bool orrery_is_queries_part(const OrreryPage *page)
{
    return slice_equal(page->part, PART);
}

static Status run_part(OrreryPage *page)
{
    return orrery_queries_part(page, BY_COUNTS[page->queries.by]);
}

static Status run_queries(OrreryPage *page)
{
    return orrery_queries_print(page, BY_COUNTS[page->queries.by], page->queries.count, &page->text,
                                &page->error);
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
    page->is_long = page->request->api->options.cluster != NULL;
    return STATUS_OK;
}

const OrreryKind ORRERY_QUERIES = {
    .name = SLICE_INIT("queries"),
    .is_of_container = true,
    .parameters = {[QUERIES_BY] = "by", [QUERIES_COUNT] = "count"},
    .parse = parse_queries,
    .run = run_queries,
    .run_part = run_part,
};
