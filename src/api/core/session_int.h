/* session_int.h - session tokens: "what I have seen of each partition".
 *
 *     token = entry *( "," entry )
 *     entry = range id ":" version "#" global lsn *( "#" region "=" lsn )     (or, old, range ":"
 * lsn)
 *
 * A partition must not serve a read to a client that has seen more of it. After a split or merge,
 * what was seen of the old range was seen of the ranges that came from it: their LSNs begin where
 * its own ended.
 */
#pragma once

#include "base/arena.h"
#include "base/error.h"
#include "base/slice.h"
#include "catalog/resource.h"

/* The LSN that the token asks of the range, by its own id or by the ids of the ranges that it came
 * from; 0 if it names none of them. An entry that is not a number is skipped, because SDKs send
 * such (0:6#NaN). STATUS_BAD_REQUEST if the token is not a list of entries, or a number is too
 * large to be an LSN. */
MUST_USE Status session_wanted(Slice token, const PartitionRange *range, uint64_t *lsn, Error *err);

Slice session_print(Arena *arena, uint32_t id, uint64_t lsn); /* "0:-1#1234" */
