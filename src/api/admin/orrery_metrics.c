/* orrery_metrics.c - the physical partitions of all containers, in Prometheus' text format.
 *
 * They name databases and containers, so they need a key, unlike /metrics. Scrapers cannot sign, so
 * they send the key itself ("Authorization: Bearer ...").
 */
#include "api/admin/orrery_int.h"

typedef struct Sample {
    const OrreryPage *page;
    const Container *container;
    const PartitionHandle *partition;
} Sample;

/* Each metric in hundredths, which most of them are counted in. */
static uint64_t sample_ru(const Sample *s)
{
    return history_total(handle_history(s->partition)).charge;
}

static uint64_t sample_requests(const Sample *s)
{
    return history_total(handle_history(s->partition)).requests * 100;
}

static uint64_t sample_throttled(const Sample *s)
{
    return history_total(handle_history(s->partition)).throttled * 100;
}

static uint64_t sample_allotted(const Sample *s)
{
    return handle_share(s->partition);
}

static uint64_t sample_consumption(const Sample *s)
{
    return orrery_consumption(s->page->snapshot, s->container, s->partition, s->page->now_s);
}

static uint64_t sample_credit(const Sample *s)
{
    return handle_credit(s->partition, s->page->now_us);
}

static uint64_t sample_items(const Sample *s)
{
    return handle_usage(s->partition).items * 100;
}

static uint64_t sample_bytes(const Sample *s)
{
    return handle_usage(s->partition).bytes * 100;
}

static const struct PartitionMetric {
    const char *name;
    const char *type;
    const char *help;
    uint64_t (*sample)(const Sample *s);
    bool is_statistic; /* it needs statistics */
} METRICS[] = {
#define COUNTER   "counter"
#define GAUGE     "gauge"
#define STATISTIC true
#define ALWAYS    false
#define PARTITION_METRIC_ROW(kind, name, help, sample, statistic) \
    {name, kind, help, sample, statistic},
#include "api/admin/partition_metrics.def"
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
        Sample sample = {page, container, container_handle_at(container, i)};
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
    SnapshotWalk walk = {0};
    while (snapshot_next(page->snapshot, &walk))
        put_container(out, page, metric, walk.database, walk.container);
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
