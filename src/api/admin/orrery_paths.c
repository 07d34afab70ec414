/* orrery_paths.c - the properties that the index of a container has: index/index_names.h says how
 * they are found. Other nodes tell those of their ranges:
 *
 *     ids of the ranges, and a line with {"paths":[...],"isComplete":true}
 */
#include "api/admin/range_gather_int.h"
#include "api/admin/yielding_clock_int.h"

#include <stdlib.h>

/* Of one answer, over all partitions that a node serves. A key is one path of one partition; each
 * has up to TERM_SAMPLES more paths for its samples. */
#define PATHS_KEYS_MAX  ((uint64_t)400000)
#define PATHS_BYTES_MAX ((size_t)16 << 20)
#define PATHS_US_MAX    ((uint64_t)1000000)

/* To ask all other nodes, each of which may work for PATHS_US_MAX and wait for its turn. */
#define PATHS_ASK_US ((uint64_t)6000000)

/* What follows the list in an answer that has no room for more. */
enum { REST_BYTES = 64 };

/* The paths of all ranges so far, sorted. */
typedef struct PathList {
    OrreryPage *page;
    IndexNames *names; /* of ranges that are here */
    IndexBudget budget;
    YieldingClock clock;
    Slice *texts; /* INDEX_NAMES_MAX */
    size_t count;
    bool is_complete;
    RangeGather gather;
} PathList;

/* ---- this node ---- */

static Status read_here(void *ctx, const GatherRange *range, Error *err)
{
    PathList *list = ctx;
    const Container *container = range->container;
    AUTO(partition_view_close) PartitionView *view = NULL;
    bool is_whole = false;
    TRY(handle_view_open(container_handle(container, range->range), container->schema,
                         STORE_READ_ANY, &view, err));
    partition_view_fill_cache(view, false);
    TRY(partition_view_names(view, &list->budget, list->names, &is_whole, err));
    list->is_complete = list->is_complete && is_whole;
    return STATUS_OK;
}

static int compare_texts(const void *left, const void *right)
{
    return slice_compare(*(const Slice *)left, *(const Slice *)right);
}

/* Adds a text that is not among the first 'sorted' ones; what there is no room for is left out. */
static void add_text(PathList *list, size_t sorted, Slice text)
{
    if (bsearch(&text, list->texts, sorted, sizeof(Slice), compare_texts) != NULL)
        return;
    if (list->count == INDEX_NAMES_MAX)
        list->is_complete = false;
    else
        list->texts[list->count++] = arena_copy(list->page->request->arena, text);
}

/* A text that is longer than any path that a policy or a query could have is left out. */
static void add_names(PathList *list)
{
    AUTO(buf_done) Buf text;
    buf_init(&text, PROPERTY_PATH_CANONICAL_BYTES_MAX);
    size_t sorted = list->count;
    for (size_t position = 0; buf_reset(&text), index_names_next(list->names, &position, &text);) {
        if (buf_full(&text))
            list->is_complete = false;
        else
            add_text(list, sorted, buf_view(&text));
    }
    qsort(list->texts, list->count, sizeof(Slice), compare_texts);
}

/* ---- other nodes ---- */

static Status take_paths(RangeGather *gather, Slice text, Arena *arena, Error *err)
{
    PathList *list = gather->ctx;
    Slice ids = slice_cut(&text, '\n');
    Json answer;
    TRY(json_parse(arena, text, &answer, err));
    Json paths = json_get(answer, SLICE("paths"));
    Json is_complete = json_get(answer, SLICE("isComplete"));
    if (!json_is(paths, JSON_ARRAY) || !json_is(is_complete, JSON_BOOL) ||
        !range_gather_claim_ids(gather, ids))
        return range_gather_refuse(err);
    list->is_complete = list->is_complete && json_bool(is_complete);
    size_t sorted = list->count;
    for (JsonIter it = json_iter(paths); json_next(&it);) {
        if (json_is(it.value, JSON_STRING) &&
            json_string(it.value).len <= PROPERTY_PATH_CANONICAL_BYTES_MAX)
            add_text(list, sorted, json_string(it.value));
        else
            list->is_complete = false;
    }
    qsort(list->texts, list->count, sizeof(Slice), compare_texts);
    return STATUS_OK;
}

/* ---- the answer ---- */

static void list_init(PathList *list, OrreryPage *page)
{
    const ApiRequest *r = page->request;
    list->page = page;
    list->names = index_names_new(r->arena);
    list->texts = ARENA_NEW_ARRAY(r->arena, Slice, INDEX_NAMES_MAX);
    list->is_complete = true;
    yielding_clock_init(&list->clock, r->api->options.clock, &r->http->is_abandoned);
    list->budget = (IndexBudget){
        .keys_left = PATHS_KEYS_MAX,
        .bytes_left = PATHS_BYTES_MAX,
        .clock = &list->clock.clock,
        .deadline_us = page->now_us + PATHS_US_MAX,
    };
    list->gather = (RangeGather){
        .part = SLICE("paths"),
        .time_us = PATHS_ASK_US,
        .answer_bytes_max = ORRERY_JSON_BYTES_MAX,
        .ctx = list,
        .read_here = read_here,
        .take = take_paths,
    };
    range_gather_init(&list->gather, page);
}

static void put_paths(Buf *out, const PathList *list)
{
    bool is_complete = list->is_complete;
    put_open(out, "paths", '[');
    for (size_t i = 0; i < list->count; i++) {
        /* A byte prints as six at most. */
        if (out->len + 6 * list->texts[i].len + REST_BYTES > ORRERY_JSON_BYTES_MAX) {
            is_complete = false;
            break;
        }
        put_text(out, NULL, list->texts[i]);
    }
    put_close(out, ']');
    put_bool(out, "isComplete", is_complete);
}

static Status run_part(OrreryPage *page)
{
    Buf *out = &page->text;
    PathList list = {0};
    list_init(&list, page);
    TRY(range_gather_here(&list.gather, &page->error));
    add_names(&list);
    range_gather_put_ids(&list.gather, out);
    buf_byte(out, '{');
    put_paths(out, &list);
    put_close(out, '}');
    return STATUS_OK;
}

static Status run_paths(OrreryPage *page)
{
    Buf *out = &page->text;
    PathList list = {0};
    list_init(&list, page);
    TRY(range_gather_run(&list.gather, &page->error));
    add_names(&list);
    put_open(out, NULL, '{');
    put_text(out, "database", page->database->info.id);
    put_text(out, "container", page->container->info.id);
    put_number(out, "time", page->now_s);
    put_missing(out, &list.gather, page->container);
    list.is_complete = list.is_complete && range_gather_is_complete(&list.gather);
    put_paths(out, &list);
    put_close(out, '}');
    return STATUS_OK;
}

static Status parse_paths(OrreryPage *page, Error *err)
{
    (void)err; /* it has no parameters */
    page->is_long = true;
    return STATUS_OK;
}

const OrreryKind ORRERY_PATHS = {
    .name = SLICE_INIT("paths"),
    .is_of_container = true,
    .tells_names = true,
    .parse = parse_paths,
    .run = run_paths,
    .run_part = run_part,
};
