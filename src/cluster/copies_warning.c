/* copies_warning.c - that partitions have fewer copies than they should, what the journal keeps for
 * that, and how full it is.
 *
 * As long as only one node has copies nothing may be trimmed (J6), so the journal grows to its
 * bound and writes end there, however well that node works. An operator must hear of it long
 * before.
 */
#include "cluster/cluster_int.h"

#include <stdarg.h>
#include <stdio.h>

/* How full the journal is, of what it may hold. */
enum { PRESSING_PERCENT = 50, URGENT_PERCENT = 90 };

void note_living(Cluster *cluster, const ClusterView *view)
{
    uint32_t living = 0;
    for (size_t i = 0; i < view->node_count; i++)
        living += view->nodes[i].state != NODE_DEAD;
    atomic_store(&cluster->living, living);
}

static uint64_t percent_of(uint64_t bytes, uint64_t bytes_max)
{
    return bytes >= bytes_max ? 100 : bytes * 100 / bytes_max;
}

/* In the log, once for each step on the way to full. */
static void tell_fuller(Cluster *cluster, uint64_t percent)
{
    static const uint64_t steps[] = {PRESSING_PERCENT, URGENT_PERCENT, 100};
    uint64_t reached = 0;
    for (size_t i = 0; i < ARRAY_COUNT(steps); i++)
        reached = percent >= steps[i] ? steps[i] : reached;
    if (reached > cluster->journal_told_percent)
        LOG_WARN(cluster->log, "cluster.journal_fills",
                 "percent=%d partitions=%u message=\"nothing is trimmed while only one node has "
                 "copies\"",
                 (int)percent, cluster->untrimmed_before);
    cluster->journal_told_percent = reached;
}

/* A partition that is new has no other copy in the first round. */
void note_untrimmed(Cluster *cluster, uint32_t count)
{
    bool is_lasting = cluster->untrimmed_before > 0 && count > 0;
    cluster->untrimmed_before = count;
    atomic_store(&cluster->untrimmed, is_lasting ? count : 0);
    tell_fuller(cluster,
                count > 0 ? percent_of(engine_bytes(cluster), cluster->journal_bytes_max) : 0);
}

static uint64_t megabytes(uint64_t bytes)
{
    return (bytes + (1 << 20) - 1) >> 20;
}

/* What 'len' is after more text; the text is cut at its end. */
static size_t add(char out[CLUSTER_WARNING_MAX], size_t len, const char *format, ...)
    PRINTF_LIKE(3, 4);
static size_t add(char out[CLUSTER_WARNING_MAX], size_t len, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int more = vsnprintf(out + len, CLUSTER_WARNING_MAX - len, format, args);
    va_end(args);
    size_t end = len + (more > 0 ? (size_t)more : 0);
    return end < CLUSTER_WARNING_MAX ? end : CLUSTER_WARNING_MAX - 1;
}

/* The fuller the journal is, the more it comes to the point. */
static size_t add_journal(Cluster *cluster, char out[CLUSTER_WARNING_MAX], size_t len)
{
    uint64_t bytes = engine_bytes(cluster);
    uint64_t bytes_max = cluster->journal_bytes_max;
    uint64_t percent = percent_of(bytes, bytes_max);
    if (percent >= 100)
        len = add(out, len, "Writes are answered 429, because the journal is full: ");
    else if (percent >= URGENT_PERCENT)
        len = add(out, len, "Writes will soon be answered 429: the journal is %d %% full, ",
                  (int)percent);
    else if (percent >= PRESSING_PERCENT)
        len = add(out, len,
                  "The journal is %d %% full, and writes are answered 429 when it is full: ",
                  (int)percent);
    len =
        add(out, len,
            "the journal keeps everything while only one node has a copy of a partition, now %llu "
            "of at most %llu MB (--journal-bytes)%s. Add a node, or start this one with "
            "--replicas 1",
            (unsigned long long)megabytes(bytes), (unsigned long long)megabytes(bytes_max),
            percent < PRESSING_PERCENT ? "; then writes are answered 429" : "");
    return len;
}

size_t cluster_copies_warning(Cluster *cluster, char out[CLUSTER_WARNING_MAX])
{
    uint32_t living = atomic_load(&cluster->living);
    bool are_few = living != 0 && living < cluster->replicas;
    bool keeps_all = cluster->replicas > 1 && (living == 1 || atomic_load(&cluster->untrimmed) > 0);
    size_t len = 0;
    bool is_pressing = keeps_all && percent_of(engine_bytes(cluster), cluster->journal_bytes_max) >=
                                        PRESSING_PERCENT;
    if (is_pressing)
        len = add_journal(cluster, out, len);
    if (are_few)
        len = add(out, len,
                  "%s%u of the %u nodes live that are to have a copy of each partition "
                  "(--replicas): it has fewer copies until more nodes join",
                  len > 0 ? ". Only " : "", living, cluster->replicas);
    if (keeps_all && !is_pressing) {
        len = add(out, len, "%s", len > 0 ? "; and " : "");
        len = add_journal(cluster, out, len);
    }
    return len;
}
