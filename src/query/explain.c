/* explain.c - what was planned and touched, for people and for the service's metrics.
 *
 * Both travel in headers, and clients refuse those of more than some kilobytes: hence the bounds.
 */
#include "query/page_int.h"

enum {
    SPECS_MAX = 32,
    SPEC_BYTES_MAX = 200,
    READINGS_MAX = 16, /* targets that are explained, */
    FILTERS_MAX = 40,  /* and filters of all of them */
    COMPOSITES_MAX = 8,
};

static const char *const KINDS[] = {
    [FILTER_ALL] = "everything", [FILTER_NONE] = "nothing",     [FILTER_TERM] = "look-up",
    [FILTER_RANGE] = "range",    [FILTER_TEST] = "index scan",  [FILTER_AND] = "intersection",
    [FILTER_OR] = "union",       [FILTER_MINUS] = "difference", [FILTER_CELLS] = "spatial cells",
};

static void add_text(JsonBuilder *b, Slice name, Slice text)
{
    Slice cut = slice_first(text, SPEC_BYTES_MAX);
    json_key(b, name);
    json_add_string(b, json_utf8_valid(cut) ? cut : SLICE("?"));
}

static void add_count(JsonBuilder *b, Slice name, uint64_t count)
{
    json_key(b, name);
    json_add_i64(b, (int64_t)count);
}

/* The cells of a filter are counted, not listed. */
static bool has_parts(const Filter *filter)
{
    return filter->children != NULL && filter->kind != FILTER_CELLS;
}

static void add_filter(Page *page, JsonBuilder *b, const Filter *filter)
{
    page->explained_filters++;
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
    if (filter->child_count > 0)
        add_count(b, SLICE("parts"), filter->child_count);
    if (has_parts(filter) && page->explained_filters < FILTERS_MAX) {
        json_key(b, SLICE("of"));
        json_begin_array(b);
        for (const Filter *child = filter->children;
             child != NULL && page->explained_filters < FILTERS_MAX; child = child->next)
            add_filter(page, b, child);
        json_end(b);
    }
    json_end(b);
}

void explain_reading(Page *page, const Reading *reading, const char *how)
{
    if (!page->options->wants_explain || page->explained_count == READINGS_MAX)
        return;
    if (page->explained == NULL)
        page->explained = ARENA_NEW_ARRAY(page->arena, Json, READINGS_MAX);
    JsonBuilder b;
    json_build(&b, page->arena);
    json_begin_object(&b);
    add_text(&b, SLICE("by"), slice_from_cstr(how));
    if (reading->order != NULL)
        add_text(&b, SLICE("orderedBy"), reading->order->spec);
    add_count(&b, SLICE("items"), partition_view_items(reading->planner.view));
    if (page->explained_filters < FILTERS_MAX) {
        json_key(&b, SLICE("where"));
        add_filter(page, &b, reading->filter);
    }
    json_end(&b);
    Json one = json_built(&b);
    if (one.at != NULL)
        page->explained[page->explained_count++] = one;
}

static void add_spec(Arena *arena, const Slice **list, size_t *count, Slice spec)
{
    if (spec.len > SPEC_BYTES_MAX)
        return;
    if (*list == NULL)
        *list = ARENA_NEW_ARRAY(arena, Slice, SPECS_MAX);
    for (size_t i = 0; i < *count; i++) {
        if (slice_equal((*list)[i], spec))
            return;
    }
    if (*count < SPECS_MAX)
        ((Slice *)(uintptr_t)*list)[(*count)++] = arena_copy(arena, spec);
}

static bool is_same(QueryComposite a, QueryComposite b)
{
    bool same = a.part_count == b.part_count;
    for (size_t i = 0; i < a.part_count && same; i++)
        same = slice_equal(a.parts[i], b.parts[i]);
    return same;
}

void explain_add_composite(Arena *arena, const QueryComposite **list, size_t *count,
                           QueryComposite composite)
{
    if (*list == NULL)
        *list = ARENA_NEW_ARRAY(arena, QueryComposite, COMPOSITES_MAX);
    for (size_t i = 0; i < *count; i++) {
        if (is_same((*list)[i], composite))
            return;
    }
    if (*count < COMPOSITES_MAX)
        ((QueryComposite *)(uintptr_t)*list)[(*count)++] = composite;
}

static void add_used_composite(Page *page, const CompositeIndex *index)
{
    Slice *parts = ARENA_NEW_ARRAY(page->arena, Slice, index->part_count);
    for (size_t i = 0; i < index->part_count; i++) {
        Slice path = slice_first(index->parts[i].text, SPEC_BYTES_MAX);
        if (!json_utf8_valid(path)) /* in the middle of a character */
            path = SLICE("?");
        parts[i] = arena_format(page->arena, "%.*s %s", SLICE_ARG(path),
                                index->parts[i].is_descending ? "DESC" : "ASC");
    }
    explain_add_composite(page->arena, &page->out->used_composites,
                          &page->out->used_composite_count,
                          (QueryComposite){parts, index->part_count});
}

static void add_used(Page *page, const Filter *filter)
{
    bool is_used = filter->was_used || filter->is_walked || filter->is_named;
    if (is_used && filter->composite != NULL)
        add_used_composite(page, filter->composite);
    else if (is_used && filter->spec.len > 0)
        add_spec(page->arena, &page->out->used_paths, &page->out->used_path_count, filter->spec);
    for (const Filter *child = filter->children; child != NULL; child = child->next)
        add_used(page, child);
}

void explain_indexes(Page *page, const Reading *reading)
{
    if (!page->options->wants_indexes)
        return;
    const OrderBy *order = reading->source == NULL ? NULL : reading->order;
    if (reading->filter != NULL)
        add_used(page, reading->filter);
    if (order != NULL && order->composite != NULL)
        add_used_composite(page, order->composite);
    else if (order != NULL)
        add_spec(page->arena, &page->out->used_paths, &page->out->used_path_count, order->spec);
    for (size_t i = 0; i < reading->planner.excluded_count; i++)
        add_spec(page->arena, &page->out->potential_paths, &page->out->potential_path_count,
                 reading->planner.excluded[i]);
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
    if (page->options->partition_count > 0)
        add_count(&b, SLICE("partitionsTotal"), page->options->partition_count);
    add_count(&b, SLICE("indexKeysRead"), m->index_keys_read);
    add_count(&b, SLICE("itemsRead"), m->documents_read);
    add_count(&b, SLICE("itemBytesRead"), m->document_bytes_read);
    add_count(&b, SLICE("results"), m->results);
    add_count(&b, SLICE("microseconds"), m->total_us);
    json_end(&b);
    return json_built(&b);
}
