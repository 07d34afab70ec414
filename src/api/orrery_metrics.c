/* orrery_metrics.c - the physical partitions of all containers, in Prometheus' text format.
 *
 * These have names of databases and containers in them, so they need a key, unlike /metrics. A
 * scraper shows it as it is ("Authorization: Bearer ..."), because none can sign.
 */
#include "api/orrery_int.h"

typedef struct Sample {
    const OrreryPage *page;
    const Container *container;
    const PartitionRange *range;
} Sample;

/* Each metric in hundredths, which most of them are counted in. */
static uint64_t sample_ru(const Sample *s)
{
    return history_total(s->range->history).charge;
}

static uint64_t sample_requests(const Sample *s)
{
    return history_total(s->range->history).requests * 100;
}

static uint64_t sample_throttled(const Sample *s)
{
    return history_total(s->range->history).throttled * 100;
}

static uint64_t sample_allotted(const Sample *s)
{
    return budget_share(s->range->budget);
}

static uint64_t sample_consumption(const Sample *s)
{
    return orrery_consumption(s->page->snapshot, s->container, s->range, s->page->now_s);
}

static uint64_t sample_credit(const Sample *s)
{
    return budget_credit(s->range->budget, s->page->now_us);
}

static uint64_t sample_items(const Sample *s)
{
    return partition_usage(s->range->partition).items * 100;
}

static uint64_t sample_bytes(const Sample *s)
{
    return partition_usage(s->range->partition).bytes * 100;
}

static const struct PartitionMetric {
    const char *name;
    const char *type;
    const char *help;
    uint64_t (*sample)(const Sample *s);
    bool is_statistic; /* there is none without statistics */
} METRICS[] = {
    {"orrery_partition_request_units_total", "counter", "Request units charged.", sample_ru, true},
    {"orrery_partition_requests_total", "counter",
     "Requests answered by a physical partition, throttled ones included.", sample_requests, true},
    {"orrery_partition_throttled_total", "counter", "Requests answered 429.", sample_throttled,
     true},
    {"orrery_partition_allotted_request_units", "gauge",
     "Request units a second that the partition may use.", sample_allotted, false},
    {"orrery_partition_normalized_consumption_percent", "gauge",
     "The most of them that was used in one second of the last minute, in percent.",
     sample_consumption, true},
    {"orrery_partition_burst_credit_request_units", "gauge",
     "Request units that could be used at once.", sample_credit, false},
    {"orrery_partition_items", "gauge", "Items stored.", sample_items, false},
    {"orrery_partition_bytes", "gauge", "Bytes of stored items, with their keys.", sample_bytes,
     false},
};

/* In quotes, where only three characters mean something. */
static void put_label(Buf *out, Slice value)
{
    for (size_t i = 0; i < value.len; i++) {
        char c = value.ptr[i];
        if (c == '\\' || c == '"')
            buf_byte(out, '\\');
        if (c == '\n')
            buf_slice(out, SLICE("\\n"));
        else
            buf_byte(out, (uint8_t)c);
    }
}

static void put_container(Buf *out, const OrreryPage *page, const struct PartitionMetric *metric,
                          const Database *database, const Container *container)
{
    for (size_t i = 0; i < container->range_count && !buf_full(out); i++) {
        Sample sample = {page, container, &container->ranges[i]};
        char text[CHARGE_TEXT_MAX];
        size_t len = charge_print(metric->sample(&sample), text);
        buf_format(out, "%s{database=\"", metric->name);
        put_label(out, database->info.id);
        buf_slice(out, SLICE("\",container=\""));
        put_label(out, container->info.id);
        buf_format(out, "\",range=\"%u\"} %.*s\n", container->ranges[i].id, (int)len, text);
    }
}

static void put_metric(Buf *out, const OrreryPage *page, const struct PartitionMetric *metric)
{
    buf_format(out, "# HELP %s %s\n# TYPE %s %s\n", metric->name, metric->help, metric->name,
               metric->type);
    const Database *database;
    for (uint32_t d = 0; (database = snapshot_next_database(page->snapshot, d)) != NULL;
         d = database->info.number + 1) {
        const Container *container;
        for (uint32_t c = 0;
             (container = snapshot_next_container(page->snapshot, database->info.number, c)) !=
             NULL;
             c = container->info.number + 1)
            put_container(out, page, metric, database, container);
    }
}

static Status run_metrics(OrreryPage *page)
{
    bool has_statistics = page->request->api->options.histories != NULL;
    for (size_t i = 0; i < ARRAY_COUNT(METRICS); i++) {
        if (has_statistics || !METRICS[i].is_statistic)
            put_metric(&page->text, page, &METRICS[i]);
    }
    return STATUS_OK;
}

const OrreryKind ORRERY_METRICS = {
    .name = SLICE_INIT("metrics"), .takes_bearer = true, .run = run_metrics};
