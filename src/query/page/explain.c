/* explain.c - what was planned and touched, for people and for the service's metrics.
 *
 * Both travel in headers, and clients refuse those of more than some kilobytes: hence the bounds.
 */
#include "base/encoding.h"
#include "query/page/page_reader_int.h"
#include "query/page/remote_batch.h"

enum {
    SPECS_MAX = 32,
    SPEC_BYTES_MAX = 200,
    READINGS_MAX = 16, /* targets that are explained */
    FILTERS_MAX = 40,  /* filters of all these targets */
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

static void add_filter(PageNotes *notes, JsonBuilder *b, const Filter *filter)
{
    notes->filter_count++;
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
    if (has_parts(filter) && notes->filter_count < FILTERS_MAX) {
        json_key(b, SLICE("of"));
        json_begin_array(b);
        for (const Filter *child = filter->children;
             child != NULL && notes->filter_count < FILTERS_MAX; child = child->next)
            add_filter(notes, b, child);
        json_end(b);
    }
    json_end(b);
}

static void make_room(PageNotes *notes)
{
    if (notes->plans != NULL)
        return;
    notes->plans = ARENA_NEW_ARRAY(notes->arena, Json, READINGS_MAX);
    notes->remotes = ARENA_NEW_ARRAY(notes->arena, const QueryTarget *, READINGS_MAX);
}

/* What is said of every target that is read, here or by another node. */
static void begin_plan(PageNotes *notes, JsonBuilder *b, const Reading *reading, const char *how)
{
    make_room(notes);
    json_build(b, notes->arena);
    json_begin_object(b);
    char id[U64_TEXT_MAX];
    add_text(b, SLICE("partition"), (Slice){id, u64_print(reading->target->range_id, id)});
    add_text(b, SLICE("by"), slice_from_cstr(how));
    if (reading->order != NULL)
        add_text(b, SLICE("orderedBy"), reading->order->spec);
}

void page_notes_plan(PageNotes *notes, const Reading *reading, const char *how)
{
    if (notes == NULL || !notes->options->wants_explain || notes->plan_count == READINGS_MAX)
        return;
    JsonBuilder b;
    begin_plan(notes, &b, reading, how);
    add_count(&b, SLICE("items"), partition_view_items(reading->planner.view));
    if (notes->filter_count < FILTERS_MAX) {
        json_key(&b, SLICE("where"));
        add_filter(notes, &b, reading->filter);
    }
    json_end(&b);
    Json one = json_built(&b);
    if (one.at != NULL)
        notes->plans[notes->plan_count++] = one;
}

void page_notes_remote(PageNotes *notes, const Reading *reading)
{
    if (notes == NULL || !notes->options->wants_explain || notes->plan_count == READINGS_MAX)
        return;
    JsonBuilder b;
    begin_plan(notes, &b, reading, "another node");
    notes->remotes[notes->plan_count] = reading->target;
    json_end(&b);
    notes->plans[notes->plan_count++] = json_built(&b);
}

/* Adds 'spec' unless it is there already, is too long, or the list is full. */
static void add_spec(Arena *arena, SpecList *to, Slice spec)
{
    if (spec.len > SPEC_BYTES_MAX)
        return;
    if (to->list == NULL)
        to->list = ARENA_NEW_ARRAY(arena, Slice, SPECS_MAX);
    for (size_t i = 0; i < to->count; i++) {
        if (slice_equal(to->list[i], spec))
            return;
    }
    if (to->count < SPECS_MAX)
        to->list[to->count++] = arena_copy(arena, spec);
}

static bool is_same(QueryComposite a, QueryComposite b)
{
    bool same = a.part_count == b.part_count;
    for (size_t i = 0; i < a.part_count && same; i++)
        same = slice_equal(a.parts[i], b.parts[i]);
    return same;
}

/* A copy of it, unless it is there. */
static void add_composite(Arena *arena, CompositeList *to, QueryComposite composite)
{
    if (to->list == NULL)
        to->list = ARENA_NEW_ARRAY(arena, QueryComposite, COMPOSITES_MAX);
    for (size_t i = 0; i < to->count; i++) {
        if (is_same(to->list[i], composite))
            return;
    }
    if (to->count == COMPOSITES_MAX)
        return;
    Slice *parts = ARENA_NEW_ARRAY(arena, Slice, composite.part_count);
    for (size_t i = 0; i < composite.part_count; i++)
        parts[i] = arena_copy(arena, composite.parts[i]);
    to->list[to->count++] = (QueryComposite){parts, composite.part_count};
}

static void add_used_composite(PageNotes *notes, const CompositeIndex *index)
{
    Slice *parts = ARENA_NEW_ARRAY(notes->arena, Slice, index->part_count);
    for (size_t i = 0; i < index->part_count; i++) {
        Slice path = slice_first(index->parts[i].text, SPEC_BYTES_MAX);
        if (!json_utf8_valid(path)) /* in the middle of a character */
            path = SLICE("?");
        parts[i] = arena_format(notes->arena, "%.*s %s", SLICE_ARG(path),
                                index->parts[i].is_descending ? "DESC" : "ASC");
    }
    add_composite(notes->arena, &notes->used_composites,
                  (QueryComposite){parts, index->part_count});
}

static void add_used(PageNotes *notes, const Filter *filter)
{
    bool is_used = filter->was_used || filter->is_walked || filter->is_named;
    if (is_used && filter->composite != NULL)
        add_used_composite(notes, filter->composite);
    else if (is_used && filter->spec.len > 0)
        add_spec(notes->arena, &notes->used_paths, filter->spec);
    for (const Filter *child = filter->children; child != NULL; child = child->next)
        add_used(notes, child);
}

void page_notes_indexes(PageNotes *notes, const Reading *reading)
{
    if (notes == NULL || !notes->options->wants_indexes)
        return;
    const OrderBy *order = reading->source == NULL ? NULL : reading->order;
    if (reading->filter != NULL)
        add_used(notes, reading->filter);
    if (order != NULL && order->composite != NULL)
        add_used_composite(notes, order->composite);
    else if (order != NULL)
        add_spec(notes->arena, &notes->used_paths, order->spec);
    for (size_t i = 0; i < reading->planner.excluded_count; i++)
        add_spec(notes->arena, &notes->potential_paths, reading->planner.excluded[i]);
    for (size_t i = 0; i < reading->advice.count; i++)
        add_composite(
            notes->arena, &notes->potential_composites,
            (QueryComposite){reading->advice.list[i].parts, reading->advice.list[i].part_count});
}

/* Of a target that another node reads, what that node says of it, once it has been asked. */
static Json plan_of(const PageNotes *notes, size_t index)
{
    const QueryTarget *target = notes->remotes[index];
    Slice text = target == NULL ? SLICE_EMPTY : target->remote->plan(target->remote->ctx, target);
    Json told;
    Error ignored;
    if (text.len > 0 && json_parse(notes->arena, text, &told, &ignored) == STATUS_OK &&
        json_is(told, JSON_OBJECT))
        return told;
    return notes->plans[index];
}

static Json explain_all(const PageNotes *notes, const QueryMetrics *m)
{
    JsonBuilder b;
    json_build(&b, notes->arena);
    json_begin_object(&b);
    json_key(&b, SLICE("partitions"));
    json_begin_array(&b);
    for (size_t i = 0; i < notes->plan_count; i++)
        json_add(&b, plan_of(notes, i));
    json_end(&b);
    add_count(&b, SLICE("partitionsVisited"), m->partitions);
    if (notes->options->partition_count > 0)
        add_count(&b, SLICE("partitionsTotal"), notes->options->partition_count);
    add_count(&b, SLICE("indexKeysRead"), m->index_keys_read);
    add_count(&b, SLICE("itemsRead"), m->documents_read);
    add_count(&b, SLICE("itemBytesRead"), m->document_bytes_read);
    add_count(&b, SLICE("results"), m->results);
    add_count(&b, SLICE("microseconds"), m->total_us);
    json_end(&b);
    return json_built(&b);
}

void page_notes_finish(const PageNotes *notes, QueryPage *out)
{
    out->used_paths = notes->used_paths.list;
    out->used_path_count = notes->used_paths.count;
    out->potential_paths = notes->potential_paths.list;
    out->potential_path_count = notes->potential_paths.count;
    out->used_composites = notes->used_composites.list;
    out->used_composite_count = notes->used_composites.count;
    out->potential_composites = notes->potential_composites.list;
    out->potential_composite_count = notes->potential_composites.count;
    if (notes->options->wants_explain)
        out->explain = explain_all(notes, &out->metrics);
}
