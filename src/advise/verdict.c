/* verdict.c - see verdict.h. The limits below are judgement, the numbers that are compared with
 * them are measured. */
#include "advise/verdict.h"

#include "advise/safe_text.h"
#include "advise/time_value.h"

#include <math.h>

static const double MISSING_REFUSED = 0.05; /* items without a key are one logical partition */
static const double HOT_WARNED = 1;         /* shares of a partition that one key takes */
static const double HOT_REFUSED = 2;
static const double FULL_WARNED_DAYS = 5 * 365.0;
static const double FULL_REFUSED_DAYS = 365;
static const double SKEW_WARNED = 2;
static const double SKEW_REFUSED = 3;
static const double VALUES_WARNED = 10; /* for each partition */
static const double ONE_SHARE_WARNED = 0.5;
static const double TOGETHER_WARNED = 0.999;
static const double SINGLE_ITEM_SHARE = 0.9; /* distinct values by items */
static const double SECONDS_PER_DAY = 86400;
enum { FEW_ITEMS = 500 };

typedef struct Judge {
    const KeyCandidate *key;
    const KeyLayout *layout;
    const KeyQueries *queries;
    const VerdictContext *context;
    Arena *arena;
    Verdict *out;
} Judge;

const char *finding_code(FindingCode code)
{
    static const char *const codes[] = {
#define FINDING_ROW(name, code) code,
#include "advise/findings.def"
    };
    return codes[code];
}

const char *finding_level(FindingLevel level)
{
    static const char *const names[] = {"note", "warning", "refusal"};
    return names[level];
}

bool verdict_has(const Verdict *verdict, FindingCode code)
{
    for (size_t i = 0; i < verdict->count; i++) {
        if (verdict->findings[i].code == code)
            return true;
    }
    return false;
}

/* Adds a finding in its place: the worst first, equal ones in the order of adding. */
static void add(Judge *j, FindingCode code, FindingLevel level, Slice text)
{
    Verdict *out = j->out;
    ASSERT(out->count < FINDING_COUNT);
    size_t at = out->count++;
    while (at > 0 && out->findings[at - 1].level < level) {
        out->findings[at] = out->findings[at - 1];
        at--;
    }
    out->findings[at] = (Finding){code, level, text};
    if (level > out->worst)
        out->worst = level;
}

/* What is wrong with a large container may be right for one that stays small. */
static FindingLevel unless_small(const Judge *j, FindingLevel level)
{
    return j->context->is_small ? FINDING_NOTE : level;
}

static double percent(double share)
{
    return 100 * share;
}

/* ---- the values ---- */

static void judge_values(Judge *j)
{
    double missing = (double)j->layout->missing / (double)j->context->sample->count;
    if (missing > 0)
        add(j, FINDING_MISSING_VALUES,
            missing > MISSING_REFUSED ? FINDING_REFUSAL : FINDING_WARNING,
            arena_format(
                j->arena,
                "%.1f%% of the items have no value for the key, or one that cannot be a key; "
                "all of these share one logical partition.",
                percent(missing)));
    if (j->layout->changed_share > 0)
        add(j, FINDING_VALUE_CHANGES, FINDING_REFUSAL,
            arena_format(
                j->arena,
                "The value changes: %.1f%% of the versions in the sample have another one. "
                "An item cannot change its partition key.",
                percent(j->layout->changed_share)));
}

static bool contains_nocase(Slice text, Slice part)
{
    for (size_t i = 0; i + part.len <= text.len; i++) {
        if (slice_equal_nocase(slice_make(text.ptr + i, part.len), part))
            return true;
    }
    return false;
}

/* Words in the names of properties whose values usually change while an item lives. */
static bool sounds_changing(Slice name)
{
    static const Slice words[] = {
        SLICE_INIT("status"),   SLICE_INIT("state"),    SLICE_INIT("updated"),
        SLICE_INIT("modified"), SLICE_INIT("changed"),  SLICE_INIT("version"),
        SLICE_INIT("price"),    SLICE_INIT("total"),    SLICE_INIT("count"),
        SLICE_INIT("amount"),   SLICE_INIT("balance"),  SLICE_INIT("score"),
        SLICE_INIT("lastSeen"), SLICE_INIT("quantity"),
    };
    for (size_t i = 0; i < ARRAY_COUNT(words); i++) {
        bool is_country = slice_starts_with(name, SLICE("count")) &&
                          slice_starts_with(slice_from(name, 5), SLICE("ry"));
        if (!is_country && contains_nocase(name, words[i]))
            return true;
    }
    return false;
}

static void judge_name(Judge *j)
{
    for (size_t i = 0; i < j->key->path_count; i++) {
        PropertyPath path = j->key->paths[i];
        Slice name = path.segments[path.count - 1];
        if (!sounds_changing(name))
            continue;
        add(j, FINDING_MAY_CHANGE, FINDING_WARNING,
            arena_format(
                j->arena,
                "'%.*s' sounds like a value that changes while an item lives, and a partition "
                "key cannot; such an item must be deleted and created again.",
                SLICE_ARG(safe_text_cut(name, 60))));
        return;
    }
}

static void judge_time(Judge *j)
{
    if (j->key->is_time && j->key->kind == KEY_SINGLE)
        add(j, FINDING_TIME_VALUE, FINDING_WARNING,
            SLICE("The key is a time. Programs seldom know it exactly when they read, and queries "
                  "for a range of time visit every partition."));
}

/* ---- storage ---- */

static void judge_few_values(Judge *j)
{
    double distinct = (double)j->layout->distinct;
    uint32_t partitions = j->context->partitions;
    if (partitions == 1 || distinct >= VALUES_WARNED * partitions)
        return;
    bool is_refused = distinct < partitions;
    Slice text = SLICE("All items have the same value, so all of them lie in one partition.");
    if (distinct > 1 && is_refused)
        text =
            arena_format(j->arena,
                         "There are only %.0f values for %u physical partitions: %u of them stay "
                         "empty, and more throughput would not help.",
                         distinct, partitions, j->layout->idle);
    else if (distinct > 1)
        text = arena_format(j->arena,
                            "There are only %.0f values for %u physical partitions; at least %.0f "
                            "spread well.",
                            distinct, partitions, VALUES_WARNED * partitions);
    add(j, FINDING_FEW_VALUES, unless_small(j, is_refused ? FINDING_REFUSAL : FINDING_WARNING),
        text);
}

static void judge_full(Judge *j)
{
    double days = j->layout->days_to_full;
    if (isnan(days) || days >= FULL_WARNED_DAYS)
        return;
    char day[TIME_DAY_LEN];
    time_print_day(j->context->now_s + days * SECONDS_PER_DAY, day);
    add(j, FINDING_FULL_SOON, days < FULL_REFUSED_DAYS ? FINDING_REFUSAL : FINDING_WARNING,
        arena_format(j->arena,
                     "A logical partition reaches 20 GB, which is all that it can hold, on %.*s; "
                     "writes to it fail from then on.",
                     TIME_DAY_LEN, day));
}

static void judge_storage(Judge *j)
{
    const KeyLayout *layout = j->layout;
    bool is_split = j->key->kind == KEY_HIERARCHICAL;
    double skew = is_split ? layout->split_skew : layout->skew;
    if (skew > SKEW_WARNED)
        add(j, FINDING_UNEVEN_STORAGE,
            unless_small(j, skew > SKEW_REFUSED ? FINDING_REFUSAL : FINDING_WARNING),
            arena_format(
                j->arena,
                "Storage is uneven: the fullest of %u physical partitions holds %.1f times "
                "the mean.",
                j->context->partitions, skew));
    else if (is_split && layout->skew > SKEW_WARNED)
        add(j, FINDING_UNEVEN_AT_FIRST, unless_small(j, FINDING_WARNING),
            arena_format(
                j->arena,
                "In a new container the fullest physical partition holds %.1f times the "
                "mean, because all items with the same first value begin in one partition; "
                "splits even that out to %.1f times.",
                layout->skew, layout->split_skew));
}

/* ---- writes ---- */

static void judge_hot_key(Judge *j)
{
    uint32_t partitions = j->context->partitions;
    double shares = j->layout->largest_share * partitions;
    if (partitions == 1 || shares <= HOT_WARNED ||
        (double)j->layout->missing >= j->layout->largest_share * (double)j->context->sample->count)
        return;
    Slice value = key_candidate_value(
        j->key, j->context->sample->items[j->layout->largest_item].document, j->arena);
    add(j, FINDING_HOT_KEY,
        unless_small(j, shares > HOT_REFUSED ? FINDING_REFUSAL : FINDING_WARNING),
        arena_format(
            j->arena,
            "One value, %.*s, has %.1f%% of all items: %.1f times what one of %u partitions "
            "should take, and a logical partition cannot be split.",
            SLICE_ARG(value), percent(j->layout->largest_share), shares, partitions));
}

static void judge_moving(Judge *j)
{
    const KeyLayout *layout = j->layout;
    if (!key_layout_is_moving(layout, j->context->partitions))
        return;
    add(j, FINDING_MOVING_HOT_SPOT, unless_small(j, FINDING_REFUSAL),
        arena_format(
            j->arena,
            "A moving hot spot: at any moment one value takes %.0f%% of the writes, and soon "
            "another one does. All new items go to one partition while %u are idle.",
            percent(layout->window_key_share), j->context->partitions - 1));
}

/* ---- use ---- */

static bool is_one_item(const Judge *j)
{
    return (double)j->layout->distinct >= SINGLE_ITEM_SHARE * (double)j->context->sample->count;
}

static void judge_use(Judge *j)
{
    double together = j->layout->together_share;
    if (is_one_item(j))
        add(j, FINDING_ONE_ITEM_PER_KEY, FINDING_NOTE,
            j->key->kind == KEY_HIERARCHICAL
                ? SLICE(
                      "Nearly every item has a key of its own: a transaction can contain one item "
                      "only. Queries that name the first value of the key visit one partition, "
                      "until splits divide it.")
                : SLICE("Nearly every item has a value of its own. Point reads are cheap; a "
                        "transaction can contain one item only, and queries that do not name the "
                        "key visit every partition."));
    if (j->queries != NULL && j->queries->one_share < ONE_SHARE_WARNED)
        add(j, FINDING_QUERIES_FAN_OUT, FINDING_WARNING,
            arena_format(
                j->arena,
                "Only %.0f%% of the queries go to one partition. They visit %.1f on average, "
                "which takes %.1f RU/s more than if each visited one.",
                percent(j->queries->one_share), j->queries->visits_mean,
                j->queries->look_ru_s - j->queries->least_ru_s));
    if (!isnan(together) && together < TOGETHER_WARNED)
        add(j, FINDING_SPLIT_TRANSACTIONS, FINDING_WARNING,
            arena_format(j->arena,
                         "%.1f%% of the items that are written together would be apart from the "
                         "others, where no transaction reaches them.",
                         percent(1 - together)));
    if (j->key->kind == KEY_SYNTHETIC || j->key->kind == KEY_SUFFIXED)
        add(j, FINDING_NEW_PROPERTY, FINDING_NOTE,
            j->key->kind == KEY_SYNTHETIC
                ? SLICE("Needs a new property that programs compute when they write, and name in "
                        "queries.")
                : SLICE("Needs a new property that programs compute when they write; a query for "
                        "one value asks once for each suffix."));
}

static void judge_context(Judge *j)
{
    if (j->context->is_small)
        add(j, FINDING_SMALL_CONTAINER, FINDING_NOTE,
            SLICE("At the given growth one physical partition is enough for five years, so choose "
                  "by what queries and transactions need."));
    if (j->context->sample->count < FEW_ITEMS)
        add(j, FINDING_FEW_ITEMS, FINDING_NOTE,
            arena_format(j->arena,
                         "%zu items are few: the numbers are rough, and hot spots over time cannot "
                         "be seen.",
                         j->context->sample->count));
}

/* ---- score ---- */

typedef struct Mean {
    double logs;
    double weights;
} Mean;

/* A part of the weighted geometric mean; 'value' is 0 to 1. */
static void weigh(Mean *mean, double value, double weight)
{
    double floor = 0.01; /* one bad part does not hide all others */
    double bounded = value > 1 ? 1 : value > floor ? value : floor;
    mean->logs += weight * log(bounded);
    mean->weights += weight;
}

static double goodness(double skew)
{
    double tolerated = 1.5; /* what chance alone makes of an even spread */
    return skew <= tolerated ? 1 : tolerated / skew;
}

static double score_of(const Judge *j)
{
    static const double simplicity[] = {
        [KEY_SINGLE] = 1, [KEY_HIERARCHICAL] = 0.97, [KEY_SYNTHETIC] = 0.85, [KEY_SUFFIXED] = 0.8};
    static const double of_level[] = {
        [FINDING_NOTE] = 1, [FINDING_WARNING] = 0.92, [FINDING_REFUSAL] = 0.4};
    const KeyLayout *layout = j->layout;
    Mean mean = {0};
    bool is_small = j->context->is_small;
    double skew = j->key->kind == KEY_HIERARCHICAL ? layout->split_skew : layout->skew;
    double hot = layout->largest_share * j->context->partitions;
    weigh(&mean, is_small ? 1 : goodness(skew), 1);
    weigh(&mean, is_small ? 1 : goodness(layout->write_skew), 1);
    weigh(&mean, is_small || hot <= 1 ? 1 : 1 / hot, 1.5);
    if (j->key->kind == KEY_HIERARCHICAL && !is_small)
        weigh(&mean, goodness(layout->skew), 0.1); /* until the first splits */
    if (j->queries != NULL && j->queries->look_ru_s > 0)
        weigh(&mean, j->queries->least_ru_s / j->queries->look_ru_s, 2);
    if (!isnan(layout->together_share))
        weigh(&mean, layout->together_share, 1.5);
    double score = 100 * exp(mean.logs / mean.weights);
    score *= simplicity[j->key->kind] * of_level[j->out->worst];
    if (j->key->is_time)
        score *= 0.98; /* of two keys that do the same, the other one */
    double alone = j->key->kind == KEY_HIERARCHICAL ? 0.95 : 0.8;
    return is_one_item(j) ? alone * score : score;
}

void verdict_make(const KeyCandidate *key, const KeyLayout *layout, const KeyQueries *queries,
                  const VerdictContext *context, Arena *arena, Verdict *out)
{
    *out = (Verdict){.worst = FINDING_NOTE};
    Judge j = {.key = key,
               .layout = layout,
               .queries = queries,
               .context = context,
               .arena = arena,
               .out = out};
    judge_values(&j);
    judge_name(&j);
    judge_time(&j);
    judge_few_values(&j);
    judge_hot_key(&j);
    judge_moving(&j);
    judge_full(&j);
    judge_storage(&j);
    judge_use(&j);
    judge_context(&j);
    out->score = score_of(&j);
}
