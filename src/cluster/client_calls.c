/* client_calls.c - requests to other nodes by a NodeClient; a test has another way. */
#include "cluster/cluster.h"

#include "http/node_link.h"

enum { ANSWER_BYTES_MAX = 16 << 20 };

Status cluster_call_with_client(void *ctx, ClusterCall *call, Error *err)
{
    AUTO(arena_done) Arena arena;
    arena_init(&arena, ARENA_LARGE_BYTES);
    NodeCall node_call = {.address = call->address,
                          .method = SLICE("POST"),
                          .path = call->path,
                          .timeout_ms = call->timeout_ms,
                          .answer_bytes_max = ANSWER_BYTES_MAX,
                          .arena = &arena};
    node_client_call(ctx, &node_call);
    if (node_call.outcome != NODE_CALL_ANSWERED) {
        *err = node_call.error;
        if (err->status == STATUS_OK)
            return error_set(err, STATUS_UNAVAILABLE, SUB_NONE, "no answer from '%.*s'",
                             SLICE_CUT(call->address, 100));
        return err->status;
    }
    call->status = node_call.status;
    buf_slice(call->answer, node_call.answer_body);
    return STATUS_OK;
}
