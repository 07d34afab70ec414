/* cluster_view.h - the nodes and partitions of a cluster as a table, for `orrery cluster status`.
 */
#pragma once

#include "base/arena.h"
#include "base/error.h"
#include "base/slice.h"

#include <stdio.h>

/* Prints the answer of GET /_orrery/cluster. */
MUST_USE Status cluster_view_print(Arena *arena, Slice json, FILE *to, Error *err);
