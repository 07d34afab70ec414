/* explain.c - what was planned and touched, for people and for the service's metrics. */
#include "query/page_int.h"

enum { SPECS_MAX = 64, EXPLAINED_MAX = 256 };

static const char *const KINDS[] = {
    [FILTER_ALL] = "everything", [FILTER_NONE] = "nothing",     [FILTER_TERM] = "look-up",
    [FILTER_RANGE] = "range",    [FILTER_TEST] = "index scan",  [FILTER_AND] = "intersection",
    [FILTER_OR] = "union",       [FILTER_MINUS] = "difference", [FILTER_CELLS] = "spatial cells",
};

static void add_text(JsonBuilder *b, Slice name, Slice text)
{
    json_key(b, name);
    json_add_string(b, json_utf8_valid(text) ? text : SLICE("?"));
}

static void add_count(JsonBuilder *b, Slice name, uint64_t count)
{
    json_key(b, name);
    json_add_i64(b, (int64_t)count);
}

static void add_filter(JsonBuilder *b, const Filter *filter, int depth)
{
    json_begin_object(b);
    add_text(b, SLICE("filter"), slice_from_cstr(KINDS[filter->kind]));
    if (filter->spec.len > 0)
        add_text(b, SLICE("index"), filter->spec);
    json_key(b, SLICE("exact"));
    json_add_bool(b, filter->exact);
    if (filter->is_estimated)
        add_count(b, SLICE("estimatedItems"), filter->estimate.items);
    if (filter->was_used)
        add_count(b, SLICE("foundItems"), filter->found);
    if (filter->children != NULL && depth < 16) {
        json_key(b, SLICE("of"));
        json_begin_array(b);
        for (const Filter *child = filter->children; child != NULL; child = child->next)
            add_filter(b, child, depth + 1);
        json_end(b);
    }
    json_end(b);
}

void explain_target(Page *page, const char *how)
{
    if (!page->options->wants_explain || page->explained_count == EXPLAINED_MAX)
        return;
    if (page->explained == NULL)
        page->explained = ARENA_NEW_ARRAY(page->arena, Json, EXPLAINED_MAX);
    JsonBuilder b;
    json_build(&b, page->arena);
    json_begin_object(&b);
    add_text(&b, SLICE("by"), slice_from_cstr(how));
    if (page->order != NULL)
        add_text(&b, SLICE("orderedBy"), page->order->spec);
    add_count(&b, SLICE("items"), partition_view_items(page->planner.view));
    json_key(&b, SLICE("where"));
    add_filter(&b, page->filter, 0);
    json_end(&b);
    Json one = json_built(&b);
    if (one.at != NULL)
        page->explained[page->explained_count++] = one;
}

static void add_spec(Arena *arena, const Slice **list, size_t *count, Slice spec)
{
    if (*list == NULL)
        *list = ARENA_NEW_ARRAY(arena, Slice, SPECS_MAX);
    for (size_t i = 0; i < *count; i++) {
        if (slice_equal((*list)[i], spec))
            return;
    }
    if (*count < SPECS_MAX)
        ((Slice *)(uintptr_t)*list)[(*count)++] = spec;
}

static void add_used(Page *page, const Filter *filter, int depth)
{
    if (filter->was_used && filter->spec.len > 0)
        add_spec(page->arena, &page->out->used_paths, &page->out->used_path_count, filter->spec);
    for (const Filter *child = filter->children; child != NULL && depth < QUERY_DEPTH_MAX;
         child = child->next)
        add_used(page, child, depth + 1);
}

void explain_indexes(Page *page)
{
    if (page->filter != NULL)
        add_used(page, page->filter, 0);
    if (page->order != NULL && page->order->is_composite)
        page->out->used_composite = page->order->spec;
    else if (page->order != NULL)
        add_spec(page->arena, &page->out->used_paths, &page->out->used_path_count,
                 page->order->spec);
    for (size_t i = 0; i < page->planner.excluded_count; i++)
        add_spec(page->arena, &page->out->potential_paths, &page->out->potential_path_count,
                 page->planner.excluded[i]);
}

Json explain_all(Page *page)
{
    const QueryMetrics *m = &page->out->metrics;
    JsonBuilder b;
    json_build(&b, page->arena);
    json_begin_object(&b);
    json_key(&b, SLICE("partitions"));
    json_begin_array(&b);
    for (size_t i = 0; i < page->explained_count; i++)
        json_add(&b, page->explained[i]);
    json_end(&b);
    add_count(&b, SLICE("partitionsVisited"), m->partitions);
    add_count(&b, SLICE("indexKeysRead"), m->index_keys_read);
    add_count(&b, SLICE("itemsRead"), m->documents_read);
    add_count(&b, SLICE("itemBytesRead"), m->document_bytes_read);
    add_count(&b, SLICE("results"), m->results);
    add_count(&b, SLICE("microseconds"), m->total_us);
    json_end(&b);
    return json_built(&b);
}
