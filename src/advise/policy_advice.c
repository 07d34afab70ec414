/* policy_advice.c - see policy_advice.h. */
#include "advise/policy_advice.h"

#include "advise/key_layout.h"
#include "query/page/page.h"

#include <math.h>

enum {
    PAGE_ROWS = 100,        /* that a client reads of a result without a bound */
    SPARED_ITEMS_MIN = 100, /* fewer are not worth an index */
};

static const double CHARGE_UNIT = 100;  /* a Charge counts hundredths */
static const double SAVED_RU_MIN = 0.1; /* on a query; less is not worth an index */

typedef struct Advisor {
    const PathTable *paths;
    const Sample *sample;
    const Workload *work;
    const IndexPolicy *current;
    const KeyCandidate *key;
    const ChargeModel *model;
    Arena *arena;
    PolicyAdvice *out;
    bool *is_charged; /* by row: in the index, and paid for */
    bool *is_used;    /* by row */
} Advisor;

/* ---- which paths are used ---- */

/* Whether 'path' is 'prefix' or below it. */
static bool is_below(Slice path, Slice prefix)
{
    return slice_starts_with(path, prefix) &&
           (path.len == prefix.len || path.ptr[prefix.len] == '/');
}

static bool is_always_indexed(const Advisor *a, const PathStats *row)
{
    Slice first = row->path.segments[0];
    if (row->has_element)
        return false;
    if (row->path.count == 1 && (slice_equal(first, SLICE("id")) || sample_is_system(first)))
        return true;
    for (size_t i = 0; i < a->key->path_count && a->key->kind <= KEY_HIERARCHICAL; i++) {
        if (property_path_equal(a->key->paths[i], row->path))
            return true;
    }
    return false;
}

/* Whether each create pays for the values of a row. */
static bool is_charged(const Advisor *a, const PathStats *row)
{
    IndexPath path;
    size_t position = 0;
    Slice text = arena_format(a->arena, "%.*s/?", SLICE_ARG(row->text));
    if (sample_is_system(row->path.segments[0]) || is_always_indexed(a, row))
        return false;
    return index_path_parse(a->arena, text, INDEX_PATH_SCALAR, &path, &position) &&
           index_policy_has(a->current, path.steps, path.step_count);
}

/* Whether a query uses something at, above or below 'path'. */
static bool is_touched(const Advisor *a, Slice path, bool also_below)
{
    for (size_t i = 0; i < a->work->count; i++) {
        const QueryUses *uses = &a->work->list[i].uses;
        for (size_t j = 0; j < uses->count; j++) {
            Slice used = uses->list[j].path;
            if (is_below(path, used) || (also_below && is_below(used, path)))
                return true;
        }
    }
    return false;
}

static void classify(Advisor *a)
{
    size_t terms = 0;
    a->out->is_known = true;
    for (size_t i = 0; i < a->work->count; i++)
        a->out->is_known = a->out->is_known && a->work->list[i].uses.is_complete;
    for (size_t i = 0; i < a->paths->count; i++) {
        const PathStats *row = &a->paths->rows[i];
        a->is_charged[i] = is_charged(a, row);
        a->is_used[i] = is_touched(a, row->text, false);
        terms += a->is_charged[i] ? row->values : 0;
    }
    double mean = (double)terms / (double)a->sample->count;
    size_t bytes = (size_t)sample_item_bytes(a->sample);
    a->out->create_ru =
        (double)charge_create(a->model, bytes, (uint32_t)lround(mean)) / CHARGE_UNIT;
}

/* ---- unused paths ---- */

/* The price of one more term for each of 'items' items, by the model. */
static double term_ru(const Advisor *a)
{
    size_t bytes = (size_t)sample_item_bytes(a->sample);
    uint32_t many = 100;
    double with = (double)charge_create(a->model, bytes, many);
    return (with - (double)charge_create(a->model, bytes, 0)) / CHARGE_UNIT / many;
}

/* Whether nothing at or below 'prefix' is needed: no query names it, and what is there is paid for.
 */
static bool is_free(const Advisor *a, Slice prefix)
{
    if (is_touched(a, prefix, true))
        return false;
    for (size_t i = 0; i < a->paths->count; i++) {
        const PathStats *row = &a->paths->rows[i];
        if (is_below(row->text, prefix) && is_always_indexed(a, row))
            return false;
    }
    return true;
}

/* The next step of a canonical path after 'at'; text in quotes may have slashes. */
static size_t step_end(Slice path, size_t at)
{
    bool is_quoted = false;
    for (size_t i = at + 1; i < path.len; i++) {
        char c = path.ptr[i];
        if (is_quoted && c == '\\')
            i++;
        else if (c == '"')
            is_quoted = !is_quoted;
        else if (c == '/' && !is_quoted)
            return i;
    }
    return path.len;
}

/* The shortest path at or above a row that can be left out as a whole. */
static Slice exclusion(const Advisor *a, const PathStats *row)
{
    for (size_t end = step_end(row->text, 0); end < row->text.len; end = step_end(row->text, end)) {
        Slice prefix = slice_first(row->text, end);
        if (is_free(a, prefix))
            return arena_format(a->arena, "%.*s/*", SLICE_ARG(prefix));
    }
    return arena_format(a->arena, "%.*s/?", SLICE_ARG(row->text));
}

static void find_unused(Advisor *a)
{
    PolicyAdvice *out = a->out;
    double ru = term_ru(a);
    out->unused = ARENA_NEW_ARRAY(a->arena, UnusedPath, a->paths->count + 1);
    for (size_t i = 0; i < a->paths->count && out->is_known; i++) {
        if (!a->is_charged[i] || a->is_used[i])
            continue;
        Slice path = exclusion(a, &a->paths->rows[i]);
        size_t at = 0;
        while (at < out->unused_count && !slice_equal(out->unused[at].path, path))
            at++;
        out->unused_count += at == out->unused_count;
        UnusedPath *unused = &out->unused[at];
        double terms = (double)a->paths->rows[i].values / (double)a->sample->count;
        *unused = (UnusedPath){path, unused->terms + terms, unused->ru + terms * ru};
        out->unused_ru += terms * ru;
    }
}

/* ---- composite indexes ---- */

typedef struct PartList {
    Slice paths[COMPOSITE_PARTS_MAX];
    bool is_down[COMPOSITE_PARTS_MAX];
    size_t count;
} PartList;

static bool has_element(Slice path)
{
    return memmem(path.ptr, path.len, "/[]", 3) != NULL;
}

static bool has_part(const PartList *list, Slice path)
{
    for (size_t i = 0; i < list->count; i++) {
        if (slice_equal(list->paths[i], path))
            return true;
    }
    return false;
}

/* False if there is no room, or it is nothing that a composite index can have. */
static bool add_part(PartList *list, Slice path, bool is_down)
{
    if (has_part(list, path))
        return true;
    if (list->count == COMPOSITE_PARTS_MAX || has_element(path))
        return false;
    list->paths[list->count] = path;
    list->is_down[list->count++] = is_down;
    return true;
}

static bool is_order(QueryUseKind kind)
{
    return kind == QUERY_USE_ORDER_UP || kind == QUERY_USE_ORDER_DOWN;
}

/* The paths of one kind; false if an index cannot have them. */
static bool take_parts(const QueryUses *uses, bool orders, PartList *out)
{
    for (size_t i = 0; i < uses->count; i++) {
        const QueryUse *use = &uses->list[i];
        bool is_wanted = orders ? is_order(use->kind) : use->kind == QUERY_USE_EQUAL;
        if (is_wanted && !add_part(out, use->path, use->kind == QUERY_USE_ORDER_DOWN))
            return false;
    }
    return true;
}

/* Whether an index has these parts, in their orders or all in the opposite ones. */
static bool is_there(const Advisor *a, const PartList *parts)
{
    size_t count = 0;
    const CompositeIndex *indexes = index_policy_composites(a->current, &count);
    for (size_t i = 0; i < count; i++) {
        bool is_same = indexes[i].part_count == parts->count;
        bool is_opposite = is_same;
        for (size_t j = 0; j < parts->count && (is_same || is_opposite); j++) {
            const CompositePart *part = &indexes[i].parts[j];
            bool is_path = slice_equal(part->text, parts->paths[j]);
            is_same = is_same && is_path && part->is_descending == parts->is_down[j];
            is_opposite = is_opposite && is_path && part->is_descending != parts->is_down[j];
        }
        if (is_same || is_opposite)
            return true;
    }
    return false;
}

static CompositeAdvice *find_advised(PolicyAdvice *out, const Slice *parts, size_t count)
{
    for (size_t i = 0; i < out->composite_count; i++) {
        bool is_same = out->composites[i].part_count == count;
        for (size_t j = 0; j < count && is_same; j++)
            is_same = slice_equal(out->composites[i].parts[j], parts[j]);
        if (is_same)
            return &out->composites[i];
    }
    return NULL;
}

/* What an index does for one query. */
typedef struct Gain {
    bool is_required;
    double saved_ru;
    double spared_items;
} Gain;

static void add_composite(Advisor *a, const PartList *parts, size_t query, Gain gain)
{
    PolicyAdvice *out = a->out;
    if (parts->count < 2 || is_there(a, parts))
        return;
    Slice *texts = ARENA_NEW_ARRAY(a->arena, Slice, parts->count);
    for (size_t i = 0; i < parts->count; i++)
        texts[i] = arena_format(a->arena, "%.*s %s", SLICE_ARG(parts->paths[i]),
                                parts->is_down[i] ? "DESC" : "ASC");
    double saved_ru_s = gain.saved_ru * a->work->list[query].per_second;
    CompositeAdvice *advised = find_advised(out, texts, parts->count);
    if (advised != NULL)
        advised->saved_ru_s += saved_ru_s;
    if (advised != NULL || out->composite_count == POLICY_COMPOSITES_MAX)
        return;
    out->composites[out->composite_count++] = (CompositeAdvice){
        .parts = texts,
        .part_count = parts->count,
        .is_required = gain.is_required,
        .query = query,
        .spared_items = gain.spared_items,
        .saved_ru = gain.saved_ru,
        .saved_ru_s = saved_ru_s,
        .write_ru = term_ru(a),
    };
}

/* How many items a filter of these paths finds on average: all that there are, by the number of
 * different values. */
static double matches_of(const Advisor *a, const PartList *equal)
{
    KeyCandidate key = {.kind = KEY_SYNTHETIC};
    for (size_t i = 0; i < equal->count && key.path_count < PARTITION_KEY_PATHS_MAX; i++) {
        size_t position = 0;
        if (property_path_parse(a->arena, equal->paths[i], &key.paths[key.path_count], &position))
            key.path_count++;
    }
    if (key.path_count == 0)
        return sample_total_items(a->sample);
    LayoutOptions options = {.partitions = 1};
    KeyLayout layout;
    key_layout_make(&key, a->sample, &options, &layout);
    return sample_total_items(a->sample) / (double)layout.distinct;
}

/* What loading so many items and reading so many keys of the index costs a query. */
static double work_ru(const Advisor *a, double items, double index_keys)
{
    QueryWork work = {.items = (uint64_t)items,
                      .item_bytes = (uint64_t)(items * sample_item_bytes(a->sample)),
                      .index_keys = (uint64_t)index_keys};
    return (double)charge_query(a->model, &work) / CHARGE_UNIT;
}

/* What an index with the filter and the order would save a query, as it was measured: with it only
 * results are loaded. */
static double measured_saving(const Advisor *a, const WorkMeasure *measured)
{
    double needed = fmin(measured->results, measured->items);
    return work_ru(a, measured->items, measured->index_keys) - work_ru(a, needed, needed);
}

/* Items that an index would spare a query to load, by the planner's rule: without it all that the
 * filter finds is loaded and sorted, unless walking along the order finds enough of it sooner. The
 * server charges only for what comes out of that. */
static double spared_items(const Advisor *a, const QueryUses *uses, const PartList *equal)
{
    double matches = matches_of(a, equal);
    double rows = fmin(matches, uses->rows_max > 0 ? (double)uses->rows_max : PAGE_ROWS);
    return query_ordered_loads(rows, sample_total_items(a->sample), matches) - rows;
}

/* Whether nothing but equality, and bounds of what it is sorted by, is asked for: only then an
 * index of these leads to the results alone. */
static bool is_covered(const QueryUses *uses, const PartList *equal, const PartList *orders)
{
    for (size_t i = 0; i < uses->count; i++) {
        if (uses->list[i].kind == QUERY_USE_FILTER && !has_part(equal, uses->list[i].path) &&
            !has_part(orders, uses->list[i].path))
            return false;
    }
    return true;
}

static void advise_query(Advisor *a, size_t query)
{
    const QueryUses *uses = &a->work->list[query].uses;
    const WorkMeasure *measured = &a->work->list[query].measured;
    PartList orders = {0};
    PartList equal = {0};
    if (!take_parts(uses, true, &orders) || orders.count == 0)
        return;
    bool has_room = take_parts(uses, false, &equal);
    Gain gain = {0};
    if (has_room && uses->is_complete && is_covered(uses, &equal, &orders)) {
        gain.saved_ru = measured->is_known ? measured_saving(a, measured) : 0;
        gain.spared_items = spared_items(a, uses, &equal);
    }
    if (orders.count >= 2) /* without it the query is refused, so nothing is saved */
        add_composite(a, &orders, query, (Gain){.is_required = true});
    PartList both = equal;
    for (size_t i = 0; i < orders.count; i++) {
        if (!add_part(&both, orders.paths[i], orders.is_down[i]))
            return;
    }
    gain.saved_ru = gain.saved_ru >= SAVED_RU_MIN ? gain.saved_ru : 0;
    gain.spared_items = gain.spared_items >= SPARED_ITEMS_MIN ? gain.spared_items : 0;
    if (equal.count > 0 && (gain.saved_ru > 0 || gain.spared_items > 0))
        add_composite(a, &both, query, gain);
}

static bool is_used_by(const QueryUses *uses, Slice path)
{
    for (size_t i = 0; i < uses->count; i++) {
        if (slice_equal(uses->list[i].path, path))
            return true;
    }
    return false;
}

/* Whether a query could use the index: one that names all of its paths. */
static bool serves_any(const Advisor *a, const CompositeIndex *index)
{
    for (size_t i = 0; i < a->work->count; i++) {
        bool is_all = true;
        for (size_t j = 0; j < index->part_count && is_all; j++)
            is_all = is_used_by(&a->work->list[i].uses, index->parts[j].text);
        if (is_all)
            return true;
    }
    return false;
}

static void find_unused_composites(Advisor *a)
{
    PolicyAdvice *out = a->out;
    size_t count = 0;
    const CompositeIndex *indexes = index_policy_composites(a->current, &count);
    for (size_t i = 0; i < count && out->is_known; i++) {
        if (!serves_any(a, &indexes[i]) && out->unused_composite_count < POLICY_COMPOSITES_MAX)
            out->unused_composites[out->unused_composite_count++] =
                (UnusedComposite){&indexes[i], term_ru(a)};
    }
}

void policy_advice_make(const PathTable *paths, const Sample *sample, const Workload *work,
                        const IndexPolicy *current, const KeyCandidate *key,
                        const ChargeModel *model, Arena *arena, PolicyAdvice *out)
{
    *out = (PolicyAdvice){0};
    Advisor a = {
        .paths = paths,
        .sample = sample,
        .work = work,
        .current = current,
        .key = key,
        .model = model,
        .arena = arena,
        .out = out,
        .is_charged = ARENA_NEW_ARRAY(arena, bool, paths->count + 1),
        .is_used = ARENA_NEW_ARRAY(arena, bool, paths->count + 1),
    };
    classify(&a);
    find_unused(&a);
    find_unused_composites(&a);
    for (size_t i = 0; i < work->count; i++)
        advise_query(&a, i);
}
