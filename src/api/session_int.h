/* session_int.h - session tokens: "what I have seen of each partition".
 *
 *     token = entry *( "," entry )
 *     entry = range id ":" version "#" global lsn *( "#" region "=" lsn )     (or, old, range ":"
 * lsn)
 *
 * A read must not be served by a partition that is behind what the client has seen. What was seen
 * of a range that has been split or merged was seen of those that came from it: their LSNs begin
 * where its own ended.
 */
#pragma once

#include "base/arena.h"
#include "base/error.h"
#include "base/slice.h"
#include "catalog/resource.h"

/* The LSN that the token asks of the range, by its own id or by those that it came from; 0 if it
 * says nothing about any. What is no number counts as nothing, because SDKs produce such (0:6#NaN).
 * STATUS_BAD_REQUEST if the whole is no list of entries, or a number is too large to be an LSN. */
MUST_USE Status session_wanted(Slice token, const PartitionRange *range, uint64_t *lsn, Error *err);

Slice session_print(Arena *arena, uint32_t id, uint64_t lsn); /* "0:-1#1234" */
