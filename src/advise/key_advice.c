/* key_advice.c - see key_advice.h.
 *
 *     1  paths          path_stats_collect
 *     2  single keys    every path that can be one; measured
 *     3  joined keys    pairs and triples of the most promising paths, as hierarchical keys; where
 * a single key is refused, also joined into one property, or with a suffix 4  rank           by
 * acceptability, then by score
 */
#include "advise/key_advice.h"

#include "advise/safe_text.h"

#include <math.h>
#include <stdlib.h>

enum {
    SINGLES_MAX = 32,
    PARTS_MAX = 6,    /* paths that pairs are made of */
    TRIPLES_MAX = 10, /* hierarchical keys of three paths */
    REPAIRED_MAX = 3, /* refused keys for which a synthetic or a suffixed one is tried */
    KEY_BYTES_MEAN_MAX = 200,
    SMALL_YEARS = 5,
    SMALL_RU_S = 1000, /* writes a second, on average: peaks are ten times as high */
};

static const double PRESENT_MIN = 0.99;
static const double SECONDS_PER_DAY = 86400;
static const double DAYS_PER_YEAR = 365;
static const double OBSERVED_DAYS_MIN = 1; /* what was loaded in an hour says nothing about a day */
static const double CHARGE_UNIT = 100;     /* a Charge counts hundredths */

typedef struct Runner {
    Advice *advice;
    Arena *arena;
    VerdictContext context;
    LayoutOptions layout;
    bool may_stop;
} Runner;

/* ---- measuring ---- */

static AdvisedKey *find_key(const Advice *advice, const KeyCandidate *key)
{
    for (size_t i = 0; i < advice->key_count; i++) {
        if (key_candidate_equal(&advice->keys[i]->key, key))
            return advice->keys[i];
    }
    return NULL;
}

static bool is_over(Runner *r)
{
    AdviceStop stop = r->advice->options.stop;
    if (r->may_stop && !r->advice->is_cut_short && stop.is_due != NULL)
        r->advice->is_cut_short = stop.is_due(stop.ctx);
    return r->advice->is_cut_short;
}

/* Measures and judges a key; NULL if there are too many already, or no time. */
static AdvisedKey *try_key(Runner *r, const KeyCandidate *candidate, double promise)
{
    Advice *advice = r->advice;
    AdvisedKey *found = find_key(advice, candidate);
    if (found != NULL)
        found->promise = fmax(found->promise, promise);
    if (found != NULL || advice->key_count == KEY_ADVICE_CANDIDATES_MAX || is_over(r))
        return found;
    AdvisedKey *key = ARENA_NEW(r->arena, AdvisedKey);
    key->key = *candidate;
    key_candidate_name(r->arena, &key->key);
    key_layout_make(&key->key, advice->sample, &r->layout, &key->layout);
    if (advice->work != NULL)
        key_queries_make(&key->key, &key->layout, advice->work, r->context.partitions,
                         advice->options.model, r->arena, &key->queries);
    verdict_make(&key->key, &key->layout, advice->work == NULL ? NULL : &key->queries, &r->context,
                 r->arena, &key->verdict);
    key->promise = promise;
    advice->keys[advice->key_count++] = key;
    return key;
}

/* ---- candidates ---- */

/* A scalar in nearly every item, not long, not fractional, and not made by the server. */
static bool can_be_key(const Advice *advice, const PathStats *row)
{
    double present = (double)row->items / (double)advice->sample->count;
    if (row->has_element || present < PRESENT_MIN || row->fractions > 0)
        return false;
    if (row->bytes_max > PARTITION_KEY_BYTES_MAX ||
        (row->strings > 0 && row->bytes / row->strings > KEY_BYTES_MEAN_MAX))
        return false;
    for (size_t i = 0; i < row->path.count; i++) {
        if (row->path.segments[i].len == 0) /* no path can name it */
            return false;
    }
    return !sample_is_system(row->path.segments[0]);
}

/* How often a path is compared for equality, a second. */
static double asked_per_second(const Workload *work, Slice path)
{
    double sum = 0;
    for (size_t i = 0; work != NULL && i < work->count; i++) {
        const QueryUses *uses = &work->list[i].uses;
        for (size_t j = 0; j < uses->count; j++) {
            if (uses->list[j].kind == QUERY_USE_EQUAL && slice_equal(uses->list[j].path, path))
                sum += work->list[i].per_second;
        }
    }
    return sum;
}

static bool names_thing(Slice name)
{
    static const Slice ends[] = {SLICE_INIT("id"), SLICE_INIT("Id"), SLICE_INIT("ID"),
                                 SLICE_INIT("key"), SLICE_INIT("Key")};
    for (size_t i = 0; i < ARRAY_COUNT(ends); i++) {
        if (slice_ends_with(name, ends[i]))
            return true;
    }
    return false;
}

typedef struct Part {
    const PathStats *row;
    const AdvisedKey *single;
    double promise; /* the higher, the sooner it is tried; at least 1 if it names a thing */
} Part;

static int compare_parts(const void *a, const void *b)
{
    const Part *x = a;
    const Part *y = b;
    return (x->promise < y->promise) - (x->promise > y->promise);
}

/* What is asked for comes first, then what names a thing, then the rest in the order of the items.
 */
static size_t find_parts(const Advice *advice, Part *out)
{
    size_t count = 0;
    for (size_t i = 0; i < advice->paths.count; i++) {
        const PathStats *row = &advice->paths.rows[i];
        if (!can_be_key(advice, row))
            continue;
        Slice name = row->path.segments[row->path.count - 1];
        double promise = asked_per_second(advice->work, row->text);
        promise = promise > 0 ? 3 + promise : names_thing(name) ? 2 : 0;
        out[count++] = (Part){.row = row, .promise = promise - (double)i * 1e-6};
    }
    qsort(out, count, sizeof(Part), compare_parts);
    return count;
}

static bool is_time(const Part *part)
{
    return part->row->times == part->row->values;
}

static void try_singles(Runner *r, Part *parts, size_t count)
{
    for (size_t i = 0; i < count && i < SINGLES_MAX; i++) {
        KeyCandidate key = {
            .kind = KEY_SINGLE,
            .paths = {parts[i].row->path},
            .path_count = 1,
            .is_time = is_time(&parts[i]),
        };
        parts[i].single = try_key(r, &key, parts[i].promise);
    }
}

static KeyCandidate joined_key(KeyKind kind, const Part *const *parts, size_t count)
{
    KeyCandidate key = {.kind = kind, .path_count = count};
    for (size_t i = 0; i < count; i++) {
        key.paths[i] = parts[i]->row->path;
        key.is_time = key.is_time || is_time(parts[i]);
    }
    return key;
}

/* Whether 'below' divides the items of one value of 'above': it has more values, or follows the
 * time. What follows the time is never first: it would make a hot spot of the first level. */
static bool can_follow(const Runner *r, const Part *above, const Part *below)
{
    if (above == below || above->single == NULL || below->single == NULL)
        return false;
    const KeyLayout *first = &above->single->layout;
    const KeyLayout *second = &below->single->layout;
    uint32_t partitions = r->context.partitions;
    return first->distinct > 1 && !key_layout_is_moving(first, partitions) &&
           (first->distinct < second->distinct || key_layout_is_moving(second, partitions)) &&
           (double)first->distinct < 0.9 * (double)r->advice->sample->count;
}

static void try_joined(Runner *r, const Part *parts, size_t count)
{
    size_t used = count < PARTS_MAX ? count : PARTS_MAX;
    size_t triples = 0;
    for (size_t i = 0; i < used; i++) {
        for (size_t j = 0; j < used; j++) {
            if (!can_follow(r, &parts[i], &parts[j]))
                continue;
            KeyCandidate pair =
                joined_key(KEY_HIERARCHICAL, (const Part *[]){&parts[i], &parts[j]}, 2);
            double promise = parts[i].promise + parts[j].promise / 100;
            (void)try_key(r, &pair, promise);
            for (size_t k = 0; k < used && triples < TRIPLES_MAX; k++) {
                if (!can_follow(r, &parts[j], &parts[k]))
                    continue;
                KeyCandidate triple = joined_key(
                    KEY_HIERARCHICAL, (const Part *[]){&parts[i], &parts[j], &parts[k]}, 3);
                (void)try_key(r, &triple, promise);
                triples++;
            }
        }
    }
}

/* ---- repairs ---- */

/* What a suffix can repair: too much under one value. */
static bool is_too_large(const AdvisedKey *key)
{
    return verdict_has(&key->verdict, FINDING_HOT_KEY) ||
           verdict_has(&key->verdict, FINDING_MOVING_HOT_SPOT) ||
           verdict_has(&key->verdict, FINDING_FEW_VALUES) ||
           verdict_has(&key->verdict, FINDING_FULL_SOON);
}

static void try_suffix(Runner *r, const Part *part)
{
    const KeyLayout *layout = &part->single->layout;
    double share = fmax(layout->largest_share, layout->window_key_share);
    double wanted = ceil(4 * share * r->context.partitions / 10) * 10; /* a round number */
    KeyCandidate key = {
        .kind = KEY_SUFFIXED,
        .paths = {part->row->path},
        .path_count = 1,
        .suffixes = wanted > KEY_SUFFIXES_MAX ? KEY_SUFFIXES_MAX : (uint32_t)wanted,
    };
    (void)try_key(r, &key, part->promise);
}

static bool is_id(const Part *part)
{
    return slice_equal(part->row->text, SLICE("/id"));
}

/* For the refused keys of which most is expected: joined with another path, and with a suffix. */
static void try_repairs(Runner *r, const Part *parts, size_t count)
{
    size_t repaired = 0;
    size_t used = count < PARTS_MAX ? count : PARTS_MAX;
    for (size_t i = 0; i < used && repaired < REPAIRED_MAX; i++) {
        const Part *part = &parts[i];
        if (part->single == NULL || part->single->layout.distinct < 2 ||
            !is_too_large(part->single))
            continue;
        repaired++;
        try_suffix(r, part);
        for (size_t j = 0; j < used; j++) {
            const Part *other = &parts[j];
            if (other == part || other->single == NULL || other->single->layout.distinct < 2 ||
                is_id(other) || other->promise < 1)
                continue;
            bool is_first = part->single->layout.distinct <= other->single->layout.distinct;
            KeyCandidate key =
                joined_key(KEY_SYNTHETIC,
                           (const Part *[]){is_first ? part : other, is_first ? other : part}, 2);
            (void)try_key(r, &key, part->promise);
        }
    }
}

/* ---- conclusion ---- */

static int compare_keys(const void *a, const void *b)
{
    const AdvisedKey *x = *(AdvisedKey *const *)a;
    const AdvisedKey *y = *(AdvisedKey *const *)b;
    int order = (x->verdict.worst == FINDING_REFUSAL) - (y->verdict.worst == FINDING_REFUSAL);
    if (order == 0) { /* in whole points: what differs less is the same */
        double a_score = round(x->verdict.score);
        double b_score = round(y->verdict.score);
        order = (a_score < b_score) - (a_score > b_score);
    }
    if (order == 0)
        order = (x->promise < y->promise) - (x->promise > y->promise);
    if (order == 0)
        order = (x->verdict.score < y->verdict.score) - (x->verdict.score > y->verdict.score);
    if (order == 0)
        order = (x->key.path_count > y->key.path_count) - (x->key.path_count < y->key.path_count);
    return order != 0 ? order : slice_compare(x->key.name, y->key.name);
}

static Slice conclude(const Advice *advice, Arena *arena)
{
    if (advice->key_count == 0)
        return SLICE("No property is in nearly every item with a short value, so nothing can be a "
                     "partition key. Give every item such a property: the user, tenant or device "
                     "that it belongs to.");
    const AdvisedKey *first = advice->keys[0];
    if (advice->best == NULL)
        return arena_format(
            arena,
            "No key fits; %.*s comes nearest. Look for a property with many values that the items "
            "do not have yet, add one (a synthetic key joins two values, a suffix divides a hot "
            "one), or divide the data into containers that each have a good key.",
            SLICE_ARG(safe_text_cut(first->key.name, 200)));
    const char *how = "";
    switch (first->key.kind) {
    case KEY_SINGLE:
        break;
    case KEY_HIERARCHICAL:
        how = " as a hierarchical key";
        break;
    case KEY_SYNTHETIC:
        how = " joined into a new property";
        break;
    case KEY_SUFFIXED:
        how = " with a suffix, in a new property";
        break;
    }
    return arena_format(arena, "Use %.*s%s.%s", SLICE_ARG(safe_text_cut(first->key.name, 200)), how,
                        advice->work == NULL && advice->options.no_queries != NULL
                            ? advice->options.no_queries
                            : "");
}

/* ---- growth ---- */

static double observed_per_day(const Sample *sample)
{
    double days = sample_span_days(sample);
    return days >= OBSERVED_DAYS_MIN ? sample_total_items(sample) / days : 0;
}

/* Whether one physical partition holds everything for years, and has throughput to spare. Only by
 * the user's own word: samples of test data are always small. */
static bool is_small(const Advice *advice)
{
    const Sample *sample = advice->sample;
    if (!advice->is_growth_given || advice->options.are_partitions_given)
        return false;
    double item_bytes = sample_item_bytes(sample);
    double items = sample_total_items(sample) + advice->items_per_day * DAYS_PER_YEAR * SMALL_YEARS;
    double create_ru =
        (double)charge_create(advice->options.model, (size_t)item_bytes, 20) / CHARGE_UNIT;
    return items * item_bytes < LAYOUT_LOGICAL_BYTES_MAX &&
           advice->items_per_day / SECONDS_PER_DAY * create_ru < SMALL_RU_S;
}

static void try_named(Runner *r)
{
    Advice *advice = r->advice;
    if (advice->options.current != NULL) {
        AdvisedKey *key = try_key(r, advice->options.current, 0);
        key->key.is_current = true;
    }
    if (advice->options.check != NULL) {
        AdvisedKey *key = try_key(r, advice->options.check, 0);
        key->key.is_checked = true;
        advice->checked = key;
    }
}

void key_advice_make(const Sample *sample, const Workload *work, const KeyAdviceOptions *options,
                     Arena *arena, Advice *out)
{
    ASSERT(sample->count > 0);
    *out = (Advice){
        .sample = sample,
        .work = work,
        .options = *options,
        .keys = ARENA_NEW_ARRAY(arena, AdvisedKey *, KEY_ADVICE_CANDIDATES_MAX),
        .items_per_day = options->growth > 0 ? options->growth : observed_per_day(sample),
        .is_growth_given = options->growth > 0,
    };
    out->is_small = is_small(out);
    path_stats_collect(sample, arena, &out->paths);
    Runner r = {
        .advice = out,
        .arena = arena,
        .context = {.sample = sample,
                    .partitions = options->partitions,
                    .now_s = options->now_s,
                    .is_small = out->is_small},
        .layout = {.partitions = options->partitions,
                   .items_per_day = out->items_per_day,
                   .together = options->together},
    };
    Part *parts = ARENA_NEW_ARRAY(arena, Part, PATH_STATS_MAX);
    size_t count = find_parts(out, parts);
    try_named(&r);
    r.may_stop = true;
    try_singles(&r, parts, count);
    try_joined(&r, parts, count);
    try_repairs(&r, parts, count);
    qsort(out->keys, out->key_count, sizeof(AdvisedKey *), compare_keys);
    if (out->key_count > 0 && out->keys[0]->verdict.worst != FINDING_REFUSAL)
        out->best = out->keys[0];
    out->conclusion = conclude(out, arena);
    if (work != NULL) {
        KeyCandidate none = {.kind = KEY_SINGLE};
        policy_advice_make(&out->paths, sample, work, options->policy,
                           out->best == NULL ? &none : &out->best->key, options->model, arena,
                           &out->policy);
    }
}
