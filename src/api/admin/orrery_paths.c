/* orrery_paths.c - the properties that the index of a container has: index/index_names.h says how
 * they are found. */
#include "api/admin/orrery_int.h"
#include "api/admin/yielding_clock_int.h"

#include <stdlib.h>

/* Of one answer, over all partitions of the container. A key is one path of one partition; each has
 * up to TERM_SAMPLES more paths for its samples. */
#define PATHS_KEYS_MAX  ((uint64_t)400000)
#define PATHS_BYTES_MAX ((size_t)16 << 20)
#define PATHS_US_MAX    ((uint64_t)1000000)

/* What follows the list in an answer that has no room for more. */
enum { REST_BYTES = 64 };

static Status collect(OrreryPage *page, IndexNames *names, bool *is_complete)
{
    const Container *container = page->container;
    const ApiRequest *r = page->request;
    YieldingClock clock;
    yielding_clock_init(&clock, r->api->options.clock, &r->http->is_abandoned);
    IndexBudget budget = {
        .keys_left = PATHS_KEYS_MAX,
        .bytes_left = PATHS_BYTES_MAX,
        .clock = &clock.clock,
        .deadline_us = page->now_us + PATHS_US_MAX,
    };
    *is_complete = true;
    for (size_t i = 0; i < container->range_count; i++) {
        AUTO(partition_view_close) PartitionView *view = NULL;
        bool is_whole = false;
        TRY(handle_view_open(container_handle_at(container, i), container->schema, STORE_READ_ANY,
                             &view, &page->error));
        partition_view_fill_cache(view, false);
        TRY(partition_view_names(view, &budget, names, &is_whole, &page->error));
        *is_complete = *is_complete && is_whole;
    }
    return STATUS_OK;
}

static int compare_texts(const void *left, const void *right)
{
    return slice_compare(*(const Slice *)left, *(const Slice *)right);
}

/* Sorted; a text that is longer than any path that a policy or a query could have is left out. */
static size_t list_texts(Arena *arena, const IndexNames *names, Slice *out, bool *is_complete)
{
    AUTO(buf_done) Buf text;
    buf_init(&text, PROPERTY_PATH_CANONICAL_BYTES_MAX);
    size_t count = 0;
    for (size_t position = 0; buf_reset(&text), index_names_next(names, &position, &text);) {
        if (buf_full(&text))
            *is_complete = false;
        else
            out[count++] = arena_copy(arena, buf_view(&text));
    }
    qsort(out, count, sizeof(Slice), compare_texts);
    return count;
}

static Status run_paths(OrreryPage *page)
{
    Arena *arena = page->request->arena;
    Buf *out = &page->text;
    IndexNames *names = index_names_new(arena);
    bool is_complete = false;
    TRY(collect(page, names, &is_complete));
    Slice *texts = ARENA_NEW_ARRAY(arena, Slice, INDEX_NAMES_MAX);
    size_t count = list_texts(arena, names, texts, &is_complete);
    put_open(out, NULL, '{');
    put_text(out, "database", page->database->info.id);
    put_text(out, "container", page->container->info.id);
    put_number(out, "time", page->now_s);
    put_open(out, "paths", '[');
    for (size_t i = 0; i < count; i++) {
        /* A byte prints as six at most. */
        if (out->len + 6 * texts[i].len + REST_BYTES > out->bytes_max) {
            is_complete = false;
            break;
        }
        put_text(out, NULL, texts[i]);
    }
    put_close(out, ']');
    put_bool(out, "isComplete", is_complete);
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
};
