/* session_int.h - session tokens: "what I have seen of each partition".
 *
 *     token = entry *( "," entry )
 *     entry = range id ":" version "#" global lsn *( "#" region "=" lsn )     (or, old, range ":"
 * lsn)
 *
 * A read must not be served by a partition that is behind what the client has seen.
 */
#pragma once

#include "base/arena.h"
#include "base/error.h"
#include "base/slice.h"

/* The LSN that the token asks of range 'id'; 0 if it says nothing about it. What is not understood
 * inside an entry of ours counts as nothing, because SDKs produce such (0:6#NaN);
 * STATUS_BAD_REQUEST if the whole is no list of entries at all. */
MUST_USE Status session_wanted(Slice token, uint32_t id, uint64_t *lsn, Error *err);

Slice session_print(Arena *arena, uint32_t id, uint64_t lsn); /* "0:-1#1234" */
