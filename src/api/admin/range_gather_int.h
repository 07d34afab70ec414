/* range_gather_int.h - answers under /_orrery about ranges that several nodes serve.
 *
 *     client --> page here --+--> read_here() for each range that this node serves
 *                            +--> other owners: the client's own request, with NODE_HEADER_PART
 *                                 --> OrreryKind.run_part there --> take() here, with its text
 *
 * An owner is asked once for all that it serves; its text begins with the ranges that it is about,
 * so that a range which moves meanwhile counts once. What no node has told is tried again for a
 * moment, as an owner may be in transition. What is left after that is missing, and the answer
 * names it ("missingRanges").
 *
 * A node that is asked reads its own ranges and asks nobody, on threads of its own
 * (ApiOptions.node_workers), so that nodes which ask each other never wait in a circle.
 *
 * Ownership  A RangeGather is the caller's; its ranges live in the request's arena.
 * Threads    The page's worker, which gives its turn away while it waits for an answer.
 * Bounds     'time_us' for all answers of other nodes, 'answer_bytes_max' for each of them.
 */
#pragma once

#include "api/admin/orrery_int.h"

typedef struct GatherRange {
    const Container *container;
    const PartitionRange *range;
    size_t row;    /* the caller's */
    bool is_taken; /* it is in the answer */
} GatherRange;

typedef struct RangeGather {
    OrreryPage *page;
    Slice part;              /* what other nodes are asked for; empty: nobody is asked */
    uint64_t time_us;        /* to ask other nodes */
    size_t answer_bytes_max; /* of each */
    bool asks_once; /* what a node tells is its own: one that has told is not asked again */
    void *ctx;

    /* STATUS_NOT_OWNER if this node does not serve it any more. */
    Status (*read_here)(void *ctx, const GatherRange *range, Error *err);

    /* Takes what another node has sent, which is not to be trusted: the text lives for the call. A
     * failure is that of the node, and leaves its ranges missing if they were not claimed. */
    Status (*take)(struct RangeGather *gather, Slice text, Arena *arena, Error *err);

    GatherRange *ranges; /* in order of container and id */
    size_t count;
} RangeGather;

/* Prepares 'ranges': those of the page's container, or of all containers if it has none. 'row' is
 * the place of the container in the walk over the snapshot. */
void range_gather_init(RangeGather *gather, OrreryPage *page);

/* Leaves out all ranges but this one, which may be none. */
void range_gather_keep(RangeGather *gather, uint32_t range);

/* All ranges that can be reached are taken. The failure of read_here is that of the page. */
MUST_USE Status range_gather_run(RangeGather *gather, Error *err);

/* For take: the range, if it is one of those and was not taken yet, which it is from now on;
 * otherwise NULL. */
const GatherRange *range_gather_claim(RangeGather *gather, uint64_t container, uint64_t range);

/* For run_part: the ranges that this node serves, one after the other, as read_here gets them. */
MUST_USE Status range_gather_here(RangeGather *gather, Error *err);

/* For take: the text is not what it should be. */
MUST_USE Status range_gather_refuse(Error *err);

/* Whether all ranges were taken. */
bool range_gather_is_complete(const RangeGather *gather);

/* The first line of a part that is about ranges of one container: the ids of those that were taken;
 * and the other way round: claims those of another node's line. False if it is no such line: then
 * none is claimed. */
void range_gather_put_ids(const RangeGather *gather, Buf *out);
bool range_gather_claim_ids(RangeGather *gather, Slice line);

/* Splits and merges are driven by the node that serves the catalogue, and only it knows them. Asks
 * that node for 'part' of the page; its answer is JSON of that type, and lives in the request's
 * arena. Empty if this node is the one, if there is no cluster, or if there was no such answer. */
Slice catalog_owner_ask(OrreryPage *page, Slice part, JsonType type);

/* The member "missingRanges" with the ranges of 'container' that were not taken; nothing if the
 * server is not a node of a cluster. */
void put_missing(Buf *out, const RangeGather *gather, const Container *container);

/* For answers about this node alone: the members "node", its name, and for those about a container
 * "missingRanges", which other nodes serve. Nothing without a cluster. */
void put_node(Buf *out, const OrreryPage *page);
