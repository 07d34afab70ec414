/* node_calls.c - requests to other nodes.
 *
 * Each names the engine and the newest of its timelines that this node has met, so that no node
 * goes on with an engine that was replaced.
 */
#include "cluster/cluster_int.h"

#include <stdio.h>

enum { PATH_BYTES_MAX = 512 };

Status node_call(Cluster *cluster, Slice address, const char *what, const char *query,
                 uint32_t timeout_ms, Buf *answer, Error *err)
{
    char path[PATH_BYTES_MAX];
    JournalEngineId engine = journal_engine_id(cluster->journal);
    int len = snprintf(path, sizeof(path), CLUSTER_PATH "%s?system=%llu&timeline=%u&%s", what,
                       (unsigned long long)engine.system, engine.timeline, query);
    ASSERT(len > 0 && (size_t)len < sizeof(path));
    ClusterCall call = {.address = address,
                        .path = slice_make(path, (size_t)len),
                        .timeout_ms = timeout_ms,
                        .answer = answer};
    buf_reset(answer);
    TRY(cluster->call(cluster->call_ctx, &call, err));
    Slice text = buf_view(answer);
    if (buf_full(answer))
        return error_set(err, STATUS_TOO_LARGE, SUB_NONE, "the answer of '%.*s' is too long",
                         SLICE_CUT(address, 100));
    if (call.status == 404)
        return error_set(err, STATUS_NOT_FOUND, SUB_NONE, "%.*s", SLICE_CUT(text, 200));
    if (call.status == 421)
        return error_set(err, STATUS_NOT_OWNER, SUB_NONE, "%.*s", SLICE_CUT(text, 200));
    if (call.status != 200)
        return error_set(err, STATUS_UNAVAILABLE, SUB_NONE, "'%.*s' answered %d: %.*s",
                         SLICE_CUT(address, 100), call.status, SLICE_CUT(text, 200));
    return STATUS_OK;
}

void node_tell(Cluster *cluster, Slice address, const char *what, const char *query)
{
    AUTO(buf_done) Buf answer;
    buf_init(&answer, 4096);
    Error err;
    if (node_call(cluster, address, what, query, CALL_MS, &answer, &err) != STATUS_OK)
        LOG_DEBUG(cluster->log, "cluster.call_failed", "message=\"%s\"", err.message);
}
