/* metrics.h - counters that cost almost nothing to increase.
 *
 * Each thread counts in a shard of its own, with plain stores that no other thread writes; a
 * reader adds the shards up. The list of metrics is metrics.def.
 *
 * Ownership  A Metrics owns its shards until metrics_done.
 * Threads    A shard has one writer; metrics_total may be called from any thread.
 */
#pragma once

#include "base/buf.h"
#include "base/defs.h"

#include <stdatomic.h>

typedef enum Metric {
#define METRIC_ROW(name, kind, prometheus, help) METRIC_##name,
#include "base/metrics.def"
#undef METRIC_ROW
    METRIC_COUNT
} Metric;

typedef struct MetricsShard {
    _Alignas(CACHE_LINE_SIZE) _Atomic int64_t values[METRIC_COUNT];
} MetricsShard;

typedef struct Metrics {
    MetricsShard *shards;
    size_t count;
} Metrics;

void metrics_init(Metrics *metrics, size_t shard_count);
void metrics_done(Metrics *metrics);
int64_t metrics_total(const Metrics *metrics, Metric metric);

/* All of them in Prometheus' text format. */
void metrics_print(const Metrics *metrics, Buf *out);

/* Only the shard's own thread may call this: a load and a store, no locked instruction. */
static inline void metrics_add(MetricsShard *shard, Metric metric, int64_t amount)
{
    int64_t value = atomic_load_explicit(&shard->values[metric], memory_order_relaxed);
    atomic_store_explicit(&shard->values[metric], value + amount, memory_order_relaxed);
}
