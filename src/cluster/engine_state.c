/* engine_state.c - what the manager has read last of the engine itself: how much it keeps, and what
 * an operator should know of it, such as that it has no synchronous standby.
 *
 * It is read now and then, so that whoever is asked for it need not ask the engine.
 */
#include "cluster/cluster_int.h"

#define ENGINE_IS_SILENT SLICE("the engine does not answer: nothing can be written")

static void note(Cluster *cluster, const JournalUsage *usage, Slice warning)
{
    Slice text = slice_first(warning, CLUSTER_WARNING_MAX);
    (void)pthread_mutex_lock(&cluster->lock);
    EngineState *engine = &cluster->engine;
    if (usage != NULL)
        engine->bytes = usage->bytes;
    bool is_same = slice_equal(slice_make(engine->warning, engine->warning_len), text);
    if (text.len > 0)
        memcpy(engine->warning, text.ptr, text.len);
    engine->warning_len = text.len;
    (void)pthread_mutex_unlock(&cluster->lock);
    if (!is_same && text.len > 0)
        LOG_WARN(cluster->log, "cluster.engine_warning", "message=\"%.*s\"", SLICE_ARG(text));
    else if (!is_same)
        LOG_INFO(cluster->log, "cluster.engine_warning_ended", "bytes=%llu",
                 usage == NULL ? 0ULL : (unsigned long long)usage->bytes);
}

void engine_step(Cluster *cluster, bool is_answering)
{
    uint64_t now_us = cluster_now_us(cluster);
    if (cluster->engine_asked_us != 0 && now_us - cluster->engine_asked_us < ENGINE_US)
        return;
    AUTO(arena_done) Arena arena;
    arena_init(&arena, ARENA_SMALL_BYTES);
    JournalUsage usage;
    Error err;
    (void)pthread_mutex_lock(&cluster->admin_lane);
    Status status = journal_usage(cluster->journal, JOURNAL_LANE_ADMIN, &arena, &usage, &err);
    (void)pthread_mutex_unlock(&cluster->admin_lane);
    cluster->engine_asked_us = now_us;
    if (status != STATUS_OK) {
        note(cluster, NULL, ENGINE_IS_SILENT);
        return;
    }
    bool is_full = usage.bytes >= cluster->journal_bytes_max;
    cluster->store.set_full(cluster->store.ctx, is_full);
    Slice warning = usage.warning;
    if (is_full)
        warning = SLICE("the journal is full (--journal-bytes): writes are answered 429. It is "
                        "trimmed when another node has a copy of each partition that follows the "
                        "journal");
    else if (warning.len == 0 && !is_answering)
        warning = ENGINE_IS_SILENT;
    note(cluster, &usage, warning);
}

size_t cluster_engine_warning(Cluster *cluster, char out[CLUSTER_WARNING_MAX])
{
    (void)pthread_mutex_lock(&cluster->lock);
    size_t len = cluster->engine.warning_len;
    memcpy(out, cluster->engine.warning, len);
    (void)pthread_mutex_unlock(&cluster->lock);
    return len;
}

uint64_t engine_bytes(Cluster *cluster)
{
    (void)pthread_mutex_lock(&cluster->lock);
    uint64_t bytes = cluster->engine.bytes;
    (void)pthread_mutex_unlock(&cluster->lock);
    return bytes;
}
