/* load_report.c - see load_report.h. */
#include "load/load_report.h"

#include <inttypes.h>

/* The percentiles that are shown, in hundred-thousandths. */
static const struct {
    const char *name;
    const char *label;
    uint32_t share;
} PERCENTILES[] = {
    {"p50", "P50", 50000}, {"p90", "P90", 90000},    {"p95", "P95", 95000},
    {"p99", "P99", 99000}, {"p999", "P99.9", 99900}, {"p9999", "P99.99", 99990},
};

static const char *const ENDS[] = {
    [LOAD_END_DONE] = "done",
    [LOAD_END_MAX_RU] = "max-ru",
    [LOAD_END_INTERRUPTED] = "interrupted",
};

/* The results, computed once for both forms. */
typedef struct Figures {
    double seconds;
    double requests_per_s;
    double server_us; /* of CPU a request */
    double client_us;
    double bytes_per_answer; /* bodies only, of all pages */
    double pages_per_request;
    double client_busy; /* near 1 if the client was the bottleneck */
    double ru;
    double ru_per_request;
} Figures;

static Figures figures_of(const LoadResult *r)
{
    double elapsed_us = r->elapsed_us > 0 ? (double)r->elapsed_us : 1;
    uint64_t answered = r->succeeded + r->errors;
    double count = answered > 0 ? (double)answered : 1;
    return (Figures){
        .seconds = elapsed_us / 1e6,
        .requests_per_s = (double)r->succeeded * 1e6 / elapsed_us,
        .server_us = (double)r->server.cpu_us / count,
        .client_us = (double)r->client_cpu_us / count,
        .bytes_per_answer = (double)r->body_bytes / count,
        .pages_per_request = (double)r->pages / count,
        .client_busy = (double)r->client_cpu_us / elapsed_us,
        .ru = (double)r->milli_ru / 1000,
        .ru_per_request = r->succeeded > 0 ? (double)r->milli_ru / 1000 / (double)r->succeeded : 0,
    };
}

static void put_latency(const Histogram *h, Buf *out)
{
    buf_format(out, "\"latency_us\":{\"mean\":%.1f", histogram_mean(h));
    for (size_t i = 0; i < ARRAY_COUNT(PERCENTILES); i++)
        buf_format(out, ",\"%s\":%" PRIu64, PERCENTILES[i].name,
                   histogram_percentile(h, PERCENTILES[i].share));
    buf_format(out, ",\"max\":%" PRIu64 "}", h->value_max);
}

static void put_text(const char *text, Buf *out)
{
    for (; *text != '\0'; text++) {
        unsigned char c = (unsigned char)*text;
        if (c == '"' || c == '\\')
            buf_format(out, "\\%c", c);
        else
            buf_byte(out, c >= ' ' && c < 0x7f ? c : ' ');
    }
}

static void put_operations(const LoadResult *r, Buf *out)
{
    const char *separator = "";
    buf_slice(out, SLICE("\"operations\":{"));
    for (int i = 0; i < LOAD_ITEM_OPERATION_COUNT; i++) {
        const Histogram *h = &r->by_operation[i];
        if (h->count == 0)
            continue;
        buf_format(out, "%s\"%s\":{\"requests\":%" PRIu64 ",", separator,
                   item_operation_name((ItemOperation)i), h->count);
        put_latency(h, out);
        buf_byte(out, '}');
        separator = ",";
    }
    buf_slice(out, SLICE("},"));
}

static void put_histogram(const Histogram *h, Buf *out)
{
    size_t at = 0;
    uint64_t value = 0;
    uint64_t count = 0;
    const char *separator = "";
    buf_slice(out, SLICE("\"histogram_us\":["));
    while (histogram_next(h, &at, &value, &count)) {
        buf_format(out, "%s[%" PRIu64 ",%" PRIu64 "]", separator, value, count);
        separator = ",";
    }
    buf_slice(out, SLICE("],"));
}

static void put_statuses(const LoadResult *r, Buf *out)
{
    const char *separator = "";
    buf_slice(out, SLICE("\"statuses\":{"));
    for (int status = 0; status < LOAD_STATUS_MAX; status++) {
        if (r->by_status[status] == 0)
            continue;
        buf_format(out, "%s\"%d\":%" PRIu64, separator, status, r->by_status[status]);
        separator = ",";
    }
    buf_slice(out, SLICE("}"));
}

void load_report_json(const LoadReport *report, Buf *out)
{
    const LoadResult *r = report->result;
    const LoadOptions *o = report->options;
    Figures f = figures_of(r);
    buf_format(out,
               "{\"workload\":\"%s\",\"end\":\"%s\",\"connections\":%" PRIu32 ",\"rate\":%" PRIu64
               ",",
               report->workload, ENDS[r->end], o->connections, o->rate);
    put_operations(r, out);
    if (report->has_histogram)
        put_histogram(&r->latency_us, out);
    buf_format(out, "\"requests\":%" PRIu64 ",\"seconds\":%.3f,\"requests_per_s\":%.1f,",
               r->succeeded, f.seconds, f.requests_per_s);
    put_latency(&r->latency_us, out);
    buf_format(out, ",\"first_page_p50_us\":%" PRIu64 ",\"first_page_p99_us\":%" PRIu64 ",",
               histogram_percentile(&r->first_page_us, 50000),
               histogram_percentile(&r->first_page_us, 99000));
    buf_format(out,
               "\"ru\":%.3f,\"ru_per_s\":%.1f,\"ru_per_request\":%.3f,\"fill_ru\":%.3f,"
               "\"throttled\":%" PRIu64 ",\"unanswered\":%" PRIu64 ",\"errors\":%" PRIu64 ",",
               f.ru, f.ru / f.seconds, f.ru_per_request, (double)report->fill_milli_ru / 1000,
               r->throttled, r->unanswered, r->errors);
    if (r->errors > 0) {
        buf_slice(out, SLICE("\"first_error\":\""));
        put_text(r->error_text, out);
        buf_slice(out, SLICE("\","));
    }
    buf_format(out, "\"failures\":%" PRIu64 ",", r->failures);
    if (r->failures > 0) {
        buf_slice(out, SLICE("\"first_failure\":\""));
        put_text(r->first_failure.message, out);
        buf_slice(out, SLICE("\","));
    }
    put_statuses(r, out);
    buf_format(out,
               ",\"server_cpu_us_per_request\":%.3f,\"server_rss_bytes\":%" PRIu64
               ",\"client_cpu_us_per_request\":%.3f,\"client_busy\":%.2f,"
               "\"bytes_per_answer\":%.0f,\"pages_per_request\":%.2f}\n",
               f.server_us, r->server.rss_bytes, f.client_us, f.client_busy, f.bytes_per_answer,
               f.pages_per_request);
}

static void put_row(const char *name, const Histogram *h, Buf *out)
{
    buf_format(out, "  %-18s %10" PRIu64, name, h->count);
    for (size_t i = 0; i < ARRAY_COUNT(PERCENTILES); i++)
        buf_format(out, " %9" PRIu64, histogram_percentile(h, PERCENTILES[i].share));
    buf_format(out, " %9" PRIu64 "\n", h->value_max);
}

static void put_table(const LoadReport *report, Buf *out)
{
    const LoadResult *r = report->result;
    buf_format(out, "%-20s %10s", "latency in us", "requests");
    for (size_t i = 0; i < ARRAY_COUNT(PERCENTILES); i++)
        buf_format(out, " %9s", PERCENTILES[i].label);
    buf_format(out, " %9s\n", "max");
    int kinds = 0;
    for (int i = 0; i < LOAD_ITEM_OPERATION_COUNT; i++)
        kinds += r->by_operation[i].count > 0;
    for (int i = 0; i < LOAD_ITEM_OPERATION_COUNT && kinds > 1; i++) {
        if (r->by_operation[i].count > 0)
            put_row(item_operation_name((ItemOperation)i), &r->by_operation[i], out);
    }
    put_row("all", &r->latency_us, out);
    if (kinds == 0 && r->pages > r->succeeded + r->errors)
        put_row("first pages", &r->first_page_us, out);
}

static void put_problems(const LoadResult *r, Buf *out)
{
    if (r->throttled > 0)
        buf_format(out, "throttled       %" PRIu64 " answers with 429\n", r->throttled);
    if (r->unanswered > 0)
        buf_format(out,
                   "unanswered      %" PRIu64
                   " requests; they are among the latencies with the time that they waited\n",
                   r->unanswered);
    if (r->errors > 0)
        buf_format(out, "errors          %" PRIu64 ", the first with %d: %s\n", r->errors,
                   r->error_status, r->error_text);
    if (r->failures > 0)
        buf_format(out, "failures        %" PRIu64 ", the first: %s\n", r->failures,
                   r->first_failure.message);
}

static void put_buckets(const Histogram *h, Buf *out)
{
    size_t at = 0;
    uint64_t value = 0;
    uint64_t count = 0;
    uint64_t seen = 0;
    buf_slice(out, SLICE("\nup to us       requests   percent\n"));
    while (histogram_next(h, &at, &value, &count)) {
        seen += count;
        buf_format(out, "%-12" PRIu64 " %10" PRIu64 " %9.4f\n",
                   value < h->value_max ? value : h->value_max, count,
                   (double)seen * 100 / (double)h->count);
    }
}

void load_report_text(const LoadReport *report, Buf *out)
{
    const LoadResult *r = report->result;
    const LoadOptions *o = report->options;
    Figures f = figures_of(r);
    buf_format(out, "%s: %.0f requests/s (%" PRIu64 " in %.2f s) over %" PRIu32 " connections",
               report->workload, f.requests_per_s, r->succeeded, f.seconds, o->connections);
    if (o->rate > 0)
        buf_format(out, ", %" PRIu64 "/s were due", o->rate);
    buf_slice(out, SLICE("\n\n"));
    put_table(report, out);
    buf_byte(out, '\n');
    if (r->milli_ru > 0)
        buf_format(out, "request units   %.2f (%.1f/s, %.3f a request)\n", f.ru, f.ru / f.seconds,
                   f.ru_per_request);
    if (report->fill_milli_ru > 0)
        buf_format(out, "                %.2f more to make the items\n",
                   (double)report->fill_milli_ru / 1000);
    buf_slice(out, SLICE("statuses       "));
    for (int status = 0; status < LOAD_STATUS_MAX; status++) {
        if (r->by_status[status] > 0)
            buf_format(out, " %d: %" PRIu64, status, r->by_status[status]);
    }
    buf_byte(out, '\n');
    put_problems(r, out);
    buf_format(out, "answers         %.0f bytes each, without headers; %.2f pages\n",
               f.bytes_per_answer, f.pages_per_request);
    if (o->pid != 0)
        buf_format(out, "server          %.2f us of CPU a request, %.1f MB of memory\n",
                   f.server_us, (double)r->server.rss_bytes / 1e6);
    buf_format(out, "client          %.2f us of CPU a request, %.0f%% busy%s\n", f.client_us,
               f.client_busy * 100,
               f.client_busy > 0.9 ? ": it was the bottleneck; run several, or use --rate" : "");
    if (r->end == LOAD_END_MAX_RU)
        buf_slice(out, SLICE("The run ended because --max-ru was reached.\n"));
    if (report->has_histogram)
        put_buckets(&r->latency_us, out);
}
