/* report_text.c - see report.h: the report for a terminal. */
#include "advise/report_int.h"

#include "advise/safe_text.h"
#include "advise/time_value.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

enum {
    ROWS_MAX = 10,   /* of the table */
    REFUSED_MAX = 8, /* keys that are explained though they are refused */
    NUMBERS_COLUMNS = 57,
    KEY_COLUMNS_MIN = 4,
    LINE_MAX_BYTES = 1024,
    PATHS_SHOWN_MAX = 12,
    QUERIES_SHOWN_MAX = 12,
};
static const double SECONDS_PER_DAY = 86400;

typedef struct Writer {
    const Advice *advice;
    const ReportStyle *style;
    Buf *out;
} Writer;

static SafeTextFor target_of(const Writer *w)
{
    return w->style->is_utf8 ? SAFE_TEXT_UTF8 : SAFE_TEXT_ASCII;
}

/* Prints text in lines of at most the width, broken between words. The first line begins with
 * 'first', which is our own text, the others with as many spaces. Text of others is escaped. */
static void wrap(Writer *w, const char *first, Slice text)
{
    size_t indent = strlen(first);
    size_t room = w->style->width - indent;
    AUTO(buf_done) Buf safe;
    buf_init(&safe, REPORT_BYTES_MAX);
    (void)safe_text(text, SIZE_MAX / 2, target_of(w), &safe);
    Slice rest = buf_view(&safe);
    buf_slice(w->out, slice_from_cstr(first));
    while (rest.len > 0) {
        size_t cut = rest.len;
        if (rest.len > room) {
            cut = room;
            while (cut > 0 && rest.ptr[cut] != ' ')
                cut--;
            cut = cut == 0 ? safe_text_cut(rest, room).len : cut;
        }
        buf_slice(w->out, slice_first(rest, cut));
        buf_byte(w->out, '\n');
        rest = slice_from(rest, cut);
        while (rest.len > 0 && rest.ptr[0] == ' ')
            rest = slice_from(rest, 1);
        for (size_t i = 0; i < indent && rest.len > 0; i++)
            buf_byte(w->out, ' ');
    }
}

PRINTF_LIKE(3, 4)
static void wrap_format(Writer *w, const char *first, const char *format, ...)
{
    char text[LINE_MAX_BYTES];
    va_list args;
    va_start(args, format);
    int len = vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    size_t cut = len < 0 ? 0 : (size_t)len < sizeof(text) ? (size_t)len : sizeof(text) - 1;
    wrap(w, first, slice_make(text, cut));
}

static void colour(Writer *w, const char *code)
{
    if (w->style->has_colour)
        buf_format(w->out, "\033[%sm", code);
}

static void heading(Writer *w, const char *text)
{
    buf_byte(w->out, '\n');
    colour(w, "1");
    buf_slice(w->out, slice_from_cstr(text));
    colour(w, "0");
    buf_byte(w->out, '\n');
}

/* ---- what was looked at ---- */

static void put_time(Writer *w)
{
    const Sample *sample = w->advice->sample;
    char number[REPORT_NUMBER_MAX];
    char from[TIME_DAY_LEN];
    char to[TIME_DAY_LEN];
    if (sample->has_time) {
        time_print_day(sample->first_time_s, from);
        time_print_day(sample->last_time_s, to);
        wrap_format(w, "  ", "written from %.*s to %.*s", TIME_DAY_LEN, from, TIME_DAY_LEN, to);
    } else {
        wrap(w, "  ",
             SLICE("no time is known (--time-path): items count as written in the order given"));
    }
    if (w->advice->items_per_day > 0)
        wrap_format(w, "  ", "%s items a day, %s", report_number(w->advice->items_per_day, number),
                    w->advice->is_growth_given ? "as given" : "as observed");
    else
        wrap(w, "  ", SLICE("no rate is known (--growth): when a key is full cannot be told"));
}

static void put_workload(Writer *w)
{
    const Workload *work = w->advice->work;
    char rate[REPORT_NUMBER_MAX];
    char runs[REPORT_NUMBER_MAX];
    const char *noun = work->count == 1 ? "query" : "queries";
    if (work->is_recorded)
        wrap_format(w, "  ", "%zu %s that the server recorded, %s executions in %s hours",
                    work->count, noun, report_number(work->executions, runs),
                    report_number(work->seconds / SECONDS_PER_DAY * 24, rate));
    else
        wrap_format(w, "  ", "%zu %s, %s a second together", work->count, noun,
                    report_number(work->per_second, rate));
    if (work->left_out > 0)
        wrap_format(w, "  ",
                    "%zu more could not be used: their texts are too long, or not understood",
                    work->left_out);
}

static void put_source(Writer *w)
{
    const Advice *advice = w->advice;
    char kept[REPORT_NUMBER_MAX];
    char all[REPORT_NUMBER_MAX];
    char bytes[REPORT_NUMBER_MAX];
    heading(w, "Measured");
    wrap_format(w, "  ", "%s of %s items, %s bytes each, on %u physical partitions",
                report_number((double)advice->sample->count, kept),
                report_number(sample_total_items(advice->sample), all),
                report_number(round(sample_item_bytes(advice->sample)), bytes),
                advice->options.partitions);
    put_time(w);
    if (advice->work != NULL)
        put_workload(w);
    if (!advice->paths.is_complete)
        wrap_format(w, "  ",
                    "the items have more than %d paths, or very deep ones; some are left out",
                    PATH_STATS_MAX);
}

/* ---- the table ---- */

static uint32_t key_columns(const Writer *w)
{
    uint32_t columns = KEY_COLUMNS_MIN;
    for (size_t i = 0; i < w->advice->key_count && i < ROWS_MAX; i++) {
        size_t len = w->advice->keys[i]->key.name.len;
        columns = len > columns ? (uint32_t)(len < 80 ? len : 80) : columns;
    }
    uint32_t room = w->style->width - NUMBERS_COLUMNS;
    return columns < room ? columns : room;
}

static void put_row(Writer *w, const AdvisedKey *key, uint32_t columns)
{
    const KeyLayout *layout = &key->layout;
    char values[REPORT_NUMBER_MAX];
    char largest[REPORT_NUMBER_MAX];
    char storage[REPORT_NUMBER_MAX];
    char writes[REPORT_NUMBER_MAX];
    char one[REPORT_NUMBER_MAX];
    char full[REPORT_NUMBER_MAX];
    bool is_good = report_is_acceptable(key);
    colour(w, is_good ? "32" : "31");
    buf_format(w->out, "%s", is_good ? "yes" : "no ");
    colour(w, "0");
    buf_format(w->out, " %3.0f ", key->verdict.score);
    size_t used = safe_text(key->key.name, columns, target_of(w), w->out);
    for (; used < columns; used++)
        buf_byte(w->out, ' ');
    buf_format(
        w->out, " %8s %7s %6s %6s %5s  %s\n", report_number((double)layout->distinct, values),
        report_percent(layout->largest_share, largest),
        report_times(report_storage_skew(key), storage), report_times(layout->write_skew, writes),
        w->advice->work == NULL ? "-" : report_percent(key->queries.one_share, one),
        report_full_day(w->advice, layout, full));
}

static void put_table(Writer *w)
{
    uint32_t columns = key_columns(w);
    heading(w, "Keys, the best first");
    buf_format(w->out, "    sc. %-*s   values largest stored writes 1part  20 GB on\n",
               (int)columns, "key");
    for (size_t i = 0; i < w->advice->key_count && i < ROWS_MAX; i++)
        put_row(w, w->advice->keys[i], columns);
    wrap(w, "  ",
         SLICE("values: different ones in the sample. largest: share of the items with the most "
               "frequent one. stored, writes: the fullest and, at a time, the busiest physical "
               "partition, by the mean. 1part: queries that visit one partition. 20 GB on: when a "
               "logical partition is full."));
}

/* ---- reasons ---- */

static void put_findings(Writer *w, const AdvisedKey *key)
{
    static const char *const marks[] = {"  . ", "  ! ", "  X "};
    for (size_t i = 0; i < key->verdict.count; i++)
        wrap(w, marks[key->verdict.findings[i].level], key->verdict.findings[i].text);
    if (key->verdict.count == 0)
        wrap(w, "  . ", SLICE("Nothing speaks against it."));
}

/* What a key does for queries and transactions. */
static void put_use(Writer *w, const AdvisedKey *key)
{
    char share[REPORT_NUMBER_MAX];
    char ru[REPORT_NUMBER_MAX];
    char least[REPORT_NUMBER_MAX];
    if (w->advice->work != NULL)
        wrap_format(w, "  = ",
                    "%s of the queries visit one partition. Visits take %s RU/s; %s if each query "
                    "visited one.",
                    report_percent(key->queries.one_share, share),
                    report_number(key->queries.look_ru_s, ru),
                    report_number(key->queries.least_ru_s, least));
    if (!isnan(key->layout.together_share))
        wrap_format(w, "  = ", "%s of the items that are written together stay together.",
                    report_percent(key->layout.together_share, share));
}

static void put_name(Writer *w, const AdvisedKey *key, const char *what)
{
    buf_byte(w->out, '\n');
    colour(w, "1");
    (void)safe_text(key->key.name, w->style->width - 30, target_of(w), w->out);
    colour(w, "0");
    buf_format(w->out, "%s%s\n", what, key->key.is_current ? " (the current key)" : "");
}

static void put_reasons(Writer *w)
{
    const Advice *advice = w->advice;
    if (advice->best != NULL) {
        put_name(w, advice->best, ": the advice");
        put_use(w, advice->best);
        put_findings(w, advice->best);
    }
    size_t shown = 0;
    for (size_t i = 0; i < advice->key_count && shown < REFUSED_MAX; i++) {
        const AdvisedKey *key = advice->keys[i];
        bool is_simple = key->key.kind == KEY_SINGLE || advice->best == NULL;
        if (key == advice->best ||
            !(key->key.is_current || (is_simple && !report_is_acceptable(key))))
            continue;
        put_name(w, key, report_is_acceptable(key) ? ": possible" : ": no");
        put_findings(w, key);
        shown++;
    }
}

/* ---- indexing ---- */

/* What an index saves and costs a second, if both rates are known. */
static void put_balance(const Advice *advice, const CompositeAdvice *composite, Buf *out)
{
    double writes = advice->items_per_day / SECONDS_PER_DAY * composite->write_ru;
    char saved[REPORT_NUMBER_MAX];
    char cost[REPORT_NUMBER_MAX];
    if (composite->saved_ru_s > 0 && writes > 0)
        buf_format(out, "; %s RU/s saved, %s RU/s more for writes",
                   report_number(composite->saved_ru_s, saved), report_number(writes, cost));
    else if (composite->saved_ru_s > 0)
        buf_format(out, "; %s RU/s saved", report_number(composite->saved_ru_s, saved));
}

static void put_composite(Writer *w, const CompositeAdvice *advice)
{
    AUTO(buf_done) Buf text;
    buf_init(&text, 64 << 10);
    buf_slice(&text, SLICE("composite index ("));
    for (size_t i = 0; i < advice->part_count; i++) {
        buf_slice(&text, i == 0 ? SLICE("") : SLICE(", "));
        buf_slice(&text, advice->parts[i]);
    }
    char saved[REPORT_NUMBER_MAX];
    char cost[REPORT_NUMBER_MAX];
    if (advice->is_required)
        buf_format(&text, "): needed by query %zu, for ORDER BY; about %s RU more on each write",
                   advice->query + 1, report_number(advice->write_ru, cost));
    else if (advice->saved_ru > 0)
        buf_format(&text, "): saves query %zu about %s RU each time, for about %s RU on each write",
                   advice->query + 1, report_number(advice->saved_ru, saved),
                   report_number(advice->write_ru, cost));
    else
        buf_format(&text,
                   "): spares query %zu loading and sorting about %s items each time, which takes "
                   "time and is not charged, for about %s RU on each write",
                   advice->query + 1, report_number(round(advice->spared_items), saved),
                   report_number(advice->write_ru, cost));
    put_balance(w->advice, advice, &text);
    wrap(w, "  + ", buf_view(&text));
}

static void put_unused_composite(Writer *w, const UnusedComposite *unused)
{
    AUTO(buf_done) Buf text;
    buf_init(&text, 64 << 10);
    buf_slice(&text, SLICE("drop the composite index ("));
    for (size_t i = 0; i < unused->index->part_count; i++)
        buf_format(&text, "%s%.*s %s", i == 0 ? "" : ", ",
                   SLICE_ARG(safe_text_cut(unused->index->parts[i].text, 200)),
                   unused->index->parts[i].is_descending ? "DESC" : "ASC");
    char ru[REPORT_NUMBER_MAX];
    buf_format(&text, "): no query uses it; about %s RU less on each write",
               report_number(unused->ru, ru));
    wrap(w, "  - ", buf_view(&text));
}

/* The queries that advice names by their numbers. */
static void put_queries(Writer *w)
{
    const Workload *work = w->advice->work;
    char rate[REPORT_NUMBER_MAX];
    char ru[REPORT_NUMBER_MAX];
    heading(w, "Queries");
    for (size_t i = 0; i < work->count && i < QUERIES_SHOWN_MAX; i++) {
        const WorkQuery *query = &work->list[i];
        AUTO(buf_done) Buf text;
        buf_init(&text, 64 << 10);
        buf_format(&text, "%zu: %.*s (%s a second", i + 1,
                   SLICE_ARG(safe_text_cut(query->text, 300)),
                   report_number(query->per_second, rate));
        if (query->measured.is_known)
            buf_format(&text, ", %s RU each", report_number(query->measured.ru, ru));
        buf_byte(&text, ')');
        wrap(w, "  ", buf_view(&text));
    }
    if (work->count > QUERIES_SHOWN_MAX)
        wrap_format(w, "  ", "and %zu more; --json lists them", work->count - QUERIES_SHOWN_MAX);
}

static void put_policy(Writer *w)
{
    const PolicyAdvice *policy = &w->advice->policy;
    char ru[REPORT_NUMBER_MAX];
    char all[REPORT_NUMBER_MAX];
    if (w->advice->work->is_recorded || policy->composite_count > 0)
        put_queries(w);
    heading(w, "Indexing policy (estimates, by the charge model)");
    if (!policy->is_known)
        wrap(w, "  ", SLICE("a query may use any path, so no path is called unused"));
    else if (policy->unused_count == 0)
        wrap(w, "  ", SLICE("the queries use every path that is indexed"));
    else
        wrap_format(
            w, "  ",
            "no query uses these paths; without them a create costs about %s RU less, of %s",
            report_number(policy->unused_ru, ru), report_number(policy->create_ru, all));
    for (size_t i = 0; i < policy->unused_count && i < PATHS_SHOWN_MAX; i++) {
        const UnusedPath *unused = &policy->unused[i];
        wrap_format(w, "  - ", "exclude %.*s: %s RU", SLICE_ARG(safe_text_cut(unused->path, 200)),
                    report_number(unused->ru, ru));
    }
    if (policy->unused_count > PATHS_SHOWN_MAX)
        wrap_format(w, "  - ", "and %zu more; --json lists them",
                    policy->unused_count - PATHS_SHOWN_MAX);
    for (size_t i = 0; i < policy->unused_composite_count; i++)
        put_unused_composite(w, &policy->unused_composites[i]);
    for (size_t i = 0; i < policy->composite_count; i++)
        put_composite(w, &policy->composites[i]);
}

static void put_check(Writer *w)
{
    const AdvisedKey *key = w->advice->checked;
    put_name(w, key, report_is_acceptable(key) ? ": acceptable" : ": not acceptable");
    put_use(w, key);
    put_findings(w, key);
    const AdvisedKey *best = w->advice->best;
    if (best != NULL && best != key && best->verdict.score > key->verdict.score) {
        AUTO(buf_done) Buf text;
        buf_init(&text, 64 << 10);
        buf_format(&text, "%.*s scores %.0f instead of %.0f.",
                   SLICE_ARG(safe_text_cut(best->key.name, 200)), best->verdict.score,
                   key->verdict.score);
        wrap(w, "  > ", buf_view(&text));
    }
}

void report_text(const Advice *advice, const ReportStyle *style, Buf *out)
{
    ASSERT(style->width >= REPORT_WIDTH_MIN);
    ASSERT(style->width <= REPORT_WIDTH_MAX);
    Writer w = {.advice = advice, .style = style, .out = out};
    if (advice->checked != NULL) {
        put_source(&w);
        put_check(&w);
        return;
    }
    wrap(&w, "", advice->conclusion);
    put_source(&w);
    if (advice->key_count > 0)
        put_table(&w);
    put_reasons(&w);
    if (advice->work != NULL)
        put_policy(&w);
}
