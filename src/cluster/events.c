/* events.c - what has happened to owners and nodes, for operators: the newest CLUSTER_EVENTS_MAX,
 * and all in the log. */
#include "cluster/cluster_int.h"

#include <stdarg.h>
#include <stdio.h>

void cluster_event(Cluster *cluster, const char *kind, StoreSpace space, uint64_t epoch, Slice node,
                   const char *format, ...)
{
    ClusterEvent event = {.at_us = clock_wall_us(cluster_clock(cluster)),
                          .kind = kind,
                          .space = space,
                          .epoch = epoch};
    Slice name = slice_first(node, JOURNAL_NAME_MAX);
    if (name.len > 0)
        memcpy(event.node, name.ptr, name.len);
    va_list args;
    va_start(args, format);
    (void)vsnprintf(event.reason, sizeof(event.reason), format, args);
    va_end(args);
    (void)pthread_mutex_lock(&cluster->lock);
    event.number = ++cluster->event_count;
    cluster->events[(event.number - 1) % CLUSTER_EVENTS_MAX] = event;
    (void)pthread_mutex_unlock(&cluster->lock);
    LOG_INFO(cluster->log, "cluster.event", "kind=%s space=%llu epoch=%llu node=%s reason=\"%s\"",
             kind, (unsigned long long)space, (unsigned long long)epoch, event.node, event.reason);
}

void cluster_event_fence(Cluster *cluster, StoreSpace space, uint64_t epoch, uint64_t fence_us)
{
    bool found = false;
    (void)pthread_mutex_lock(&cluster->lock);
    for (uint64_t number = cluster->event_count;
         number > 0 && !found && cluster->event_count - number < CLUSTER_EVENTS_MAX; number--) {
        ClusterEvent *event = &cluster->events[(number - 1) % CLUSTER_EVENTS_MAX];
        found = event->space == space && event->epoch == epoch &&
                slice_equal(slice_from_cstr(event->kind), SLICE("serving"));
        if (found) {
            event->has_fence = true;
            event->fence_us = fence_us;
        }
    }
    (void)pthread_mutex_unlock(&cluster->lock);
    LOG_INFO(cluster->log, "cluster.fence", "space=%llu epoch=%llu fence_us=%llu",
             (unsigned long long)space, (unsigned long long)epoch, (unsigned long long)fence_us);
}

size_t cluster_events(Cluster *cluster, ClusterEvent *out, size_t max)
{
    (void)pthread_mutex_lock(&cluster->lock);
    size_t count = 0;
    for (uint64_t number = cluster->event_count;
         number > 0 && count < max && cluster->event_count - number < CLUSTER_EVENTS_MAX; number--)
        out[count++] = cluster->events[(number - 1) % CLUSTER_EVENTS_MAX];
    (void)pthread_mutex_unlock(&cluster->lock);
    return count;
}
