/* metrics.c - see metrics.h. */
#include "base/metrics.h"

#include "base/mem.h"

#include <stdlib.h>

typedef struct MetricInfo {
    const char *kind;
    const char *name; /* with its label set, if it has one */
    const char *help;
} MetricInfo;

#define COUNTER "counter"
#define GAUGE   "gauge"
static const MetricInfo INFOS[] = {
#define METRIC_ROW(name, kind, prometheus, help) [METRIC_##name] = {kind, prometheus, help},
#include "base/metrics.def"
#undef METRIC_ROW
};

void metrics_init(Metrics *metrics, size_t shard_count)
{
    ASSERT(shard_count > 0);
    size_t size = sizeof(MetricsShard) * shard_count;
    metrics->shards = aligned_alloc(CACHE_LINE_SIZE, size);
    ASSERT(metrics->shards != NULL);
    memset(metrics->shards, 0, size);
    metrics->count = shard_count;
}

void metrics_done(Metrics *metrics)
{
    free(metrics->shards);
    *metrics = (Metrics){0};
}

int64_t metrics_total(const Metrics *metrics, Metric metric)
{
    ASSERT(metric < METRIC_COUNT);
    int64_t total = 0;
    for (size_t i = 0; i < metrics->count; i++)
        total += atomic_load_explicit(&metrics->shards[i].values[metric], memory_order_relaxed);
    return total;
}

void metrics_print(const Metrics *metrics, Buf *out)
{
    Slice previous = SLICE_EMPTY;
    for (size_t i = 0; i < METRIC_COUNT; i++) {
        const MetricInfo *info = &INFOS[i];
        /* Rows of one metric with different labels share one heading. */
        Slice name = slice_from_cstr(info->name);
        Slice family = slice_first(name, slice_find(name, '{'));
        if (!slice_equal(family, previous)) {
            buf_format(out, "# HELP %.*s %s\n# TYPE %.*s %s\n", SLICE_ARG(family), info->help,
                       SLICE_ARG(family), info->kind);
        }
        previous = family;
        buf_slice(out, name);
        buf_byte(out, ' ');
        buf_i64(out, metrics_total(metrics, (Metric)i));
        buf_byte(out, '\n');
    }
}
