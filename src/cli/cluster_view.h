/* cluster_view.h - what `orrery cluster` prints of a node's answers: nodes and partitions as a
 * table, the format that the cluster writes.
 */
#pragma once

#include "base/arena.h"
#include "base/error.h"
#include "base/slice.h"

#include <stdio.h>

/* Prints the answer of GET /_orrery/cluster. */
MUST_USE Status cluster_view_print(Arena *arena, Slice json, FILE *to, Error *err);

/* How many partitions a node owns, by the same answer; 0 if the node is not in it. */
MUST_USE Status cluster_view_owned(Arena *arena, Slice json, Slice node, long long *owned,
                                   Error *err);

/* Prints that of POST /_orrery/cluster/move. */
MUST_USE Status cluster_view_print_move(Arena *arena, Slice json, FILE *to, Error *err);

/* Prints that of POST /_orrery/cluster/upgrade. */
MUST_USE Status cluster_view_print_upgrade(Arena *arena, Slice json, FILE *to, Error *err);
