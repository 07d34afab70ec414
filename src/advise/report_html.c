/* report_html.c - see report.h: the report as one page, with charts drawn as SVG.
 *
 * The policy in the head lets a browser load nothing, not even if an escape were forgotten.
 */
#include "advise/report_int.h"

#include "advise/safe_text.h"

#include <math.h>
#include <stdio.h>

enum {
    CHARTS_MAX = 8,
    CHART_WIDTH = 360,
    CHART_HEIGHT = 90,
    CELL_HEIGHT = 6,
    TEXT_MAX = 2000,
};

static const char HEAD[] =
    "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\" />\n"
    "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
    "'unsafe-inline'\" />\n"
    "<meta name=\"viewport\" content=\"width=device-width\" />\n"
    "<title>Choosing a partition key</title>\n<style>\n"
    "body { font: 15px/1.5 system-ui, sans-serif; margin: 2em auto; max-width: 70em; padding: 0 "
    "1em; "
    "color: #1c2733; background: #fff }\n"
    "h1 { font-size: 1.4em } h2 { font-size: 1.15em; margin-top: 2em } h3 { font-size: 1em }\n"
    "table { border-collapse: collapse; width: 100% } td, th { padding: .3em .6em; text-align: "
    "right; "
    "border-bottom: 1px solid #dde3ea } td:first-child, th:first-child { text-align: left }\n"
    "code { font: 13px ui-monospace, monospace; overflow-wrap: anywhere }\n"
    ".yes { color: #14753c } .no, .refusal { color: #b3261e } .warning { color: #8a5a00 }\n"
    ".charts { display: flex; flex-wrap: wrap; gap: 1.5em } figure { margin: 0 } figcaption { "
    "color: "
    "#5b6b7c; font-size: .85em }\n"
    "</style>\n</head>\n<body>\n";

static void put_text(Buf *out, Slice text)
{
    (void)safe_text(text, TEXT_MAX, SAFE_TEXT_HTML, out);
}

static void put_code(Buf *out, Slice text)
{
    buf_slice(out, SLICE("<code>"));
    put_text(out, text);
    buf_slice(out, SLICE("</code>"));
}

/* ---- the table ---- */

static void put_row(const Advice *advice, const AdvisedKey *key, Buf *out)
{
    char text[REPORT_NUMBER_MAX];
    bool is_good = report_is_acceptable(key);
    buf_slice(out, SLICE("<tr><td>"));
    put_code(out, key->key.name);
    buf_format(out, "%s</td><td>%s</td><td class=\"%s\">%s</td><td>%.0f</td>",
               key->key.is_current ? " (current)" : "", key_kind_name(key->key.kind),
               is_good ? "yes" : "no", is_good ? "yes" : "no", key->verdict.score);
    buf_format(out, "<td>%s</td>", report_number((double)key->layout.distinct, text));
    buf_format(out, "<td>%s</td>", report_percent(key->layout.largest_share, text));
    buf_format(out, "<td>%s</td>", report_times(report_storage_skew(key), text));
    buf_format(out, "<td>%s</td>", report_times(key->layout.write_skew, text));
    buf_format(out, "<td>%s</td>",
               advice->work == NULL ? "-" : report_percent(key->queries.one_share, text));
    buf_format(out, "<td>%s</td></tr>\n", report_full_day(advice, &key->layout, text));
}

static void put_table(const Advice *advice, Buf *out)
{
    buf_slice(out, SLICE("<h2>Keys, the best first</h2>\n<table>\n<tr><th>key</th><th>kind</th>"
                         "<th>acceptable</th><th>score</th><th>values</th><th>largest value</th>"
                         "<th>storage, max/mean</th><th>writes, max/mean</th>"
                         "<th>queries to one partition</th><th>20 GB on</th></tr>\n"));
    for (size_t i = 0; i < advice->key_count; i++)
        put_row(advice, advice->keys[i], out);
    buf_slice(out, SLICE("</table>\n"));
}

/* ---- charts ---- */

/* A bar for each physical partition; the line is the mean. */
static void put_storage_chart(const Advice *advice, const KeyLayout *layout, Buf *out)
{
    uint32_t count = advice->options.partitions;
    double mean = 1.0 / count;
    double top = fmax(2 * mean, layout->skew * mean);
    double width = (double)CHART_WIDTH / count;
    buf_format(out,
               "<figure><svg width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\" role=\"img\" "
               "xmlns=\"http://www.w3.org/2000/svg\">",
               CHART_WIDTH, CHART_HEIGHT, CHART_WIDTH, CHART_HEIGHT);
    for (uint32_t i = 0; i < count; i++) {
        double share = layout->partition_share[i];
        double height = share / top * CHART_HEIGHT;
        buf_format(out,
                   "<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" fill=\"%s\">"
                   "<title>partition %u: %.1f%%</title></rect>",
                   i * width + 1, CHART_HEIGHT - height, fmax(width - 2, 1), height,
                   share > 2 * mean ? "#b3261e" : "#2f6fab", i, 100 * share);
    }
    double y = CHART_HEIGHT - mean / top * CHART_HEIGHT;
    buf_format(out,
               "<line x1=\"0\" x2=\"%d\" y1=\"%.2f\" y2=\"%.2f\" stroke=\"#5b6b7c\" "
               "stroke-dasharray=\"4 3\" />",
               CHART_WIDTH, y, y);
    buf_slice(out, SLICE("</svg><figcaption>storage of each physical partition; the line is the "
                         "mean</figcaption></figure>\n"));
}

/* A row for each window of time, a column for each partition: the darker, the more writes. */
static void put_write_chart(const Advice *advice, const KeyLayout *layout, Buf *out)
{
    uint32_t count = advice->options.partitions;
    double width = (double)CHART_WIDTH / count;
    int height = (int)layout->windows * CELL_HEIGHT;
    if (layout->windows == 0)
        return;
    buf_format(out,
               "<figure><svg width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\" role=\"img\" "
               "xmlns=\"http://www.w3.org/2000/svg\">",
               CHART_WIDTH, height, CHART_WIDTH, height);
    for (uint32_t i = 0; i < layout->windows; i++) {
        for (uint32_t j = 0; j < count; j++) {
            double share = (double)layout->window_share[i][j];
            double shade = share * count / 4; /* four times the mean is full */
            buf_format(out,
                       "<rect x=\"%.2f\" y=\"%u\" width=\"%.2f\" height=\"%d\" fill=\"%s\" "
                       "fill-opacity=\"%.2f\" />",
                       j * width, i * CELL_HEIGHT, width, CELL_HEIGHT - 1,
                       share * count > 3 ? "#b3261e" : "#2f6fab", shade > 1 ? 1 : shade);
        }
    }
    buf_slice(out, SLICE("</svg><figcaption>writes over time, downwards, by physical "
                         "partition</figcaption></figure>\n"));
}

static void put_findings(const Verdict *verdict, Buf *out)
{
    buf_slice(out, SLICE("<ul>\n"));
    for (size_t i = 0; i < verdict->count; i++) {
        buf_format(out, "<li class=\"%s\">", finding_level(verdict->findings[i].level));
        put_text(out, verdict->findings[i].text);
        buf_slice(out, SLICE("</li>\n"));
    }
    if (verdict->count == 0)
        buf_slice(out, SLICE("<li>Nothing speaks against it.</li>\n"));
    buf_slice(out, SLICE("</ul>\n"));
}

static void put_keys(const Advice *advice, Buf *out)
{
    size_t shown = 0;
    for (size_t i = 0; i < advice->key_count; i++) {
        const AdvisedKey *key = advice->keys[i];
        bool is_named = key->key.is_current || key->key.is_checked;
        if (!is_named && shown >= CHARTS_MAX)
            continue;
        shown++;
        buf_slice(out, SLICE("<h3>"));
        put_code(out, key->key.name);
        buf_format(out, "%s</h3>\n<div class=\"charts\">\n",
                   report_is_acceptable(key) ? "" : " <span class=\"no\">no</span>");
        put_storage_chart(advice, &key->layout, out);
        put_write_chart(advice, &key->layout, out);
        buf_slice(out, SLICE("</div>\n"));
        put_findings(&key->verdict, out);
    }
}

/* ---- queries and indexes ---- */

static void put_queries(const Advice *advice, Buf *out)
{
    const AdvisedKey *first = advice->keys[0];
    char number[REPORT_NUMBER_MAX];
    buf_slice(out, SLICE("<h2>Queries, with the first key</h2>\n<table>\n<tr><th>query</th>"
                         "<th>a second</th><th>partitions visited</th></tr>\n"));
    for (size_t i = 0; i < advice->work->count; i++) {
        buf_slice(out, SLICE("<tr><td>"));
        put_code(out, advice->work->list[i].text);
        buf_format(out, "</td><td>%s</td>",
                   report_number(advice->work->list[i].per_second, number));
        buf_format(out, "<td>%s</td></tr>\n",
                   report_number((double)first->queries.visits[i], number));
    }
    buf_slice(out, SLICE("</table>\n"));
}

static void put_policy(const PolicyAdvice *policy, Buf *out)
{
    char ru[REPORT_NUMBER_MAX];
    char rate[REPORT_NUMBER_MAX];
    buf_slice(out,
              SLICE("<h2>Indexing policy</h2>\n<p>Estimates, by the charge model.</p>\n<ul>\n"));
    for (size_t i = 0; i < policy->unused_count; i++) {
        buf_slice(out, SLICE("<li>No query uses "));
        put_code(out, policy->unused[i].path);
        buf_format(out, ": excluding it saves about %s RU on each create.</li>\n",
                   report_number(policy->unused[i].ru, ru));
    }
    for (size_t i = 0; i < policy->composite_count; i++) {
        const CompositeAdvice *advice = &policy->composites[i];
        buf_slice(out, SLICE("<li>Composite index "));
        for (size_t j = 0; j < advice->part_count; j++) {
            put_code(out, advice->parts[j]);
            buf_byte(out, ' ');
        }
        if (advice->is_required)
            buf_format(out, "is needed by query %zu.</li>\n", advice->query + 1);
        else if (advice->saved_ru > 0)
            buf_format(out, "saves query %zu about %s RU each time, %s RU/s in all.</li>\n",
                       advice->query + 1, report_number(advice->saved_ru, ru),
                       report_number(advice->saved_ru_s, rate));
        else
            buf_format(out, "spares query %zu loading and sorting about %s items.</li>\n",
                       advice->query + 1, report_number(round(advice->spared_items), ru));
    }
    for (size_t i = 0; i < policy->unused_composite_count; i++) {
        const CompositeIndex *index = policy->unused_composites[i].index;
        buf_slice(out, SLICE("<li>No query uses the composite index "));
        for (size_t j = 0; j < index->part_count; j++) {
            put_code(out, index->parts[j].text);
            buf_slice(out, index->parts[j].is_descending ? SLICE(" DESC ") : SLICE(" ASC "));
        }
        buf_format(out, "; dropping it saves about %s RU on each write.</li>\n",
                   report_number(policy->unused_composites[i].ru, ru));
    }
    if (policy->unused_count + policy->composite_count + policy->unused_composite_count == 0)
        buf_slice(out, SLICE("<li>Nothing to change.</li>\n"));
    buf_slice(out, SLICE("</ul>\n"));
}

void report_html(const Advice *advice, Buf *out)
{
    char kept[REPORT_NUMBER_MAX];
    char all[REPORT_NUMBER_MAX];
    buf_slice(out, SLICE(HEAD));
    buf_slice(out, SLICE("<h1>Choosing a partition key</h1>\n<p><strong>"));
    put_text(out, advice->conclusion);
    buf_format(out,
               "</strong></p>\n<p>Measured on %s of %s items, laid out on %u physical partitions.",
               report_number((double)advice->sample->count, kept),
               report_number(sample_total_items(advice->sample), all), advice->options.partitions);
    buf_slice(out, SLICE("</p>\n"));
    if (advice->key_count > 0) {
        put_table(advice, out);
        put_keys(advice, out);
        if (advice->work != NULL)
            put_queries(advice, out);
    }
    if (advice->work != NULL)
        put_policy(&advice->policy, out);
    buf_slice(out, SLICE("</body>\n</html>\n"));
}
