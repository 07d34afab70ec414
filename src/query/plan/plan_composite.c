/* plan_composite.c - composite indexes for filters, as the service uses them: all parts are
 * compared with constants, all but the last for equality.
 *
 *     c.a = 1 AND c.b > 2 with an index of /a, /b:   [1, 2 exclusive] up to [1, end of numbers]
 *
 * The values of parts in descending order have all their bytes inverted, which turns a range round:
 * what begins with 'from' is then the end of it.
 */
#include "index/terms.h"
#include "query/plan/plan_int.h"

static bool is_value(const Filter *filter)
{
    return filter->kind == FILTER_TERM && filter->from.ptr[0] > TERM_PRESENT;
}

static bool is_range(const Filter *filter)
{
    return filter->kind == FILTER_RANGE && filter->to.len > 0 &&
           slice_compare(filter->from, filter->to) < 0 && filter->from.ptr[0] > TERM_PRESENT;
}

static Filter *find_part(Planner *planner, Filter *filter, const CompositePart *part)
{
    PlanPath path = {.steps = part->steps, .count = part->step_count};
    TermPath term = plan_term_path(planner, &path);
    Filter *found = NULL;
    Filter *first = filter->kind == FILTER_AND ? filter->children : filter;
    for (Filter *child = first; child != NULL; child = child->next) {
        bool is_part = child->path == term && (is_value(child) || is_range(child));
        if (is_part && (found == NULL || child->kind == FILTER_TERM))
            found = child;
        if (filter->kind != FILTER_AND)
            break;
    }
    return found;
}

static void put(Buf *out, Slice bytes, bool is_inverted)
{
    size_t before = out->len;
    buf_slice(out, bytes);
    for (size_t i = before; is_inverted && i < out->len; i++)
        out->ptr[i] = (char)~out->ptr[i];
}

/* The end of everything that begins with 'prefix' and then the inverted 'bytes'. */
static Slice inverted_end(Planner *planner, Slice prefix, Slice bytes)
{
    AUTO(buf_done) Buf end;
    buf_init(&end, TERM_VALUE_BYTES_MAX);
    buf_slice(&end, prefix);
    put(&end, bytes, true);
    term_after(&end);
    return arena_copy(planner->arena, buf_view(&end));
}

static Slice end_after(Planner *planner, Slice prefix, Slice bytes)
{
    AUTO(buf_done) Buf text;
    buf_init(&text, TERM_VALUE_BYTES_MAX);
    buf_slice(&text, prefix);
    buf_slice(&text, bytes);
    return arena_copy(planner->arena, buf_view(&text));
}

static void add_range(Planner *planner, Slice prefix, const Filter *part, bool is_inverted,
                      CompositeRange *out)
{
    out->is_value = false;
    out->from = is_inverted ? inverted_end(planner, prefix, part->to)
                            : end_after(planner, prefix, part->from);
    out->to = is_inverted ? inverted_end(planner, prefix, part->from)
                          : end_after(planner, prefix, part->to);
}

bool composite_range(Planner *planner, Filter *filter, const CompositeIndex *index,
                     CompositeRange *out)
{
    AUTO(buf_done) Buf prefix;
    buf_init(&prefix, TERM_VALUE_BYTES_MAX);
    *out = (CompositeRange){.is_value = true, .is_exact = true};
    for (size_t i = 0; i < index->part_count && out->is_value; i++) {
        Filter *part = find_part(planner, filter, &index->parts[i]);
        if (part == NULL)
            break;
        out->used[out->parts++] = part;
        out->is_exact = out->is_exact && part->exact;
        if (part->kind == FILTER_RANGE)
            add_range(planner, buf_view(&prefix), part, index->parts[i].is_descending, out);
        else
            put(&prefix, part->from, index->parts[i].is_descending);
    }
    if (out->is_value) {
        out->from = arena_copy(planner->arena, buf_view(&prefix));
        out->to = plan_after(planner, out->from);
    }
    return out->parts > 0;
}

Slice composite_spec(Arena *arena, const CompositeIndex *index)
{
    AUTO(buf_done) Buf spec;
    buf_init(&spec, 8192);
    for (size_t i = 0; i < index->part_count; i++)
        buf_format(&spec, "%s%.*s %s", i == 0 ? "" : ", ", SLICE_CUT(index->parts[i].text, 500),
                   index->parts[i].is_descending ? "DESC" : "ASC");
    return arena_copy(arena, buf_view(&spec));
}

static Filter *make_filter(Planner *planner, const CompositeIndex *index,
                           const CompositeRange *range)
{
    bool is_term = range->is_value && range->parts == index->part_count;
    Filter *filter = filter_new(planner, is_term ? FILTER_TERM : FILTER_RANGE, range->is_exact);
    filter->path = terms_composite_path(planner->index.key, index);
    filter->from = range->from;
    filter->to = range->to;
    filter->composite = index;
    filter->spec = composite_spec(planner->arena, index);
    return filter;
}

static uint64_t keys_of(const CompositeRange *range)
{
    uint64_t keys = 0;
    for (size_t i = 0; i < range->parts; i++)
        keys += range->used[i]->estimate.keys;
    return keys;
}

static bool is_used(const CompositeRange *range, const Filter *filter)
{
    for (size_t i = 0; i < range->parts; i++) {
        if (range->used[i] == filter)
            return true;
    }
    return false;
}

static void replace(Filter *filter, const CompositeRange *range, Filter *with)
{
    Filter *child = filter->children;
    filter->children = NULL;
    filter->child_count = 0;
    filter->is_estimated = false;
    filter_add_child(filter, with);
    while (child != NULL) {
        Filter *next = child->next;
        if (!is_used(range, child))
            filter_add_child(filter, child);
        child = next;
    }
    if (filter->child_count == 1) /* so that a long range can be walked */
        *filter = *with;
}

/* An item in the range is in every part of it, and an item has one value of the index. Estimates by
 * samples do not know that about each other. */
static void limit_by_parts(const CompositeRange *range, IndexEstimate *estimate)
{
    for (size_t i = 0; i < range->parts; i++) {
        uint64_t items = range->used[i]->estimate.items;
        estimate->items = estimate->items < items ? estimate->items : items;
    }
    estimate->keys = estimate->keys < estimate->items ? estimate->keys : estimate->items;
}

Status filter_use_composite(Planner *planner, Filter *filter)
{
    size_t count = 0;
    const CompositeIndex *indexes = NULL;
    if (filter->kind != FILTER_AND || planner->schema->index == NULL)
        return STATUS_OK;
    indexes = index_policy_composites(planner->schema->index, &count);
    Filter *best = NULL;
    CompositeRange best_range = {0};
    uint64_t saved = 0;
    for (size_t i = 0; i < count; i++) {
        CompositeRange range;
        if (indexes[i].array_steps > 0 || !composite_range(planner, filter, &indexes[i], &range) ||
            range.parts < indexes[i].part_count ||
            !partition_view_has_composite(planner->view, &indexes[i]))
            continue;
        for (size_t j = 0; j < range.parts; j++)
            TRY(filter_estimate(planner, range.used[j]));
        Filter *one = make_filter(planner, &indexes[i], &range);
        TRY(filter_estimate(planner, one));
        limit_by_parts(&range, &one->estimate);
        uint64_t keys = keys_of(&range);
        bool is_best = keys > one->estimate.keys && keys - one->estimate.keys > saved;
        if (plan_prefers(planner, is_best)) {
            saved = keys - one->estimate.keys;
            best = one;
            best_range = range;
        }
    }
    if (best != NULL)
        replace(filter, &best_range, best);
    return STATUS_OK;
}
