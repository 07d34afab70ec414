/* advise_container.h - a sample of a live container, read over the protocol.
 *
 * The items come from the change feed of each physical partition, from several moments of its life
 * in turn, each partition in proportion to what it holds. So the sample does not depend on the key
 * that the container has now. The queries are those that the server has recorded.
 *
 * Ownership  Results live in the arena given. Threads: the client's.
 */
#pragma once

#include "advise/key_advice.h"
#include "client/client.h"

typedef struct AdviseContainer {
    KeyCandidate key;          /* that it has; path_count 0 if it has none */
    const IndexPolicy *policy; /* that it has */
    Workload recorded;         /* queries that the server has recorded; may have none */
} AdviseContainer;

/* Adds at most as many items as the sample may hold. STATUS_NOT_FOUND if there is no such
 * container, STATUS_UNAUTHORIZED if the key is refused. */
MUST_USE Status advise_container_read(Client *client, Slice database, Slice container,
                                      Sample *sample, Arena *arena, AdviseContainer *out,
                                      Error *err);
