/* session_int.h - session tokens: "what I have seen of each partition".
 *
 *     token = [ entry ] *( "," [ entry ] )
 *     entry = range id ":" version "#" global lsn *( "#" region "=" lsn )
 *           | range id ":" lsn                                                 (the old form)
 *
 * A partition must not serve a read to a client that has seen more of it. After a split or merge,
 * what was seen of the old range was seen of the ranges that came from it: their LSNs begin where
 * its own ended.
 *
 * The version would rise with a change of the regions of the account. Here it is always -1, and no
 * region is named. LSNs of different versions cannot be compared: an entry of a lower version asks
 * for nothing, one of a higher version for what this server does not have.
 */
#pragma once

#include "base/arena.h"
#include "base/error.h"
#include "base/slice.h"
#include "catalog/resource.h"

/* Asked for by an entry of a higher version; no partition comes as far as this. */
#define SESSION_LSN_UNREACHABLE UINT64_MAX

/* The LSN that the token asks of the range, by its own id or by the ids of the ranges that it came
 * from; 0 if it names none of them. An entry with "NaN" as version or LSN asks for nothing, because
 * SDKs make such entries of tokens that they do not understand (0:6#NaN). STATUS_BAD_REQUEST if any
 * entry is malformed, of whatever range it is, or a number in it is too large to be an LSN. */
MUST_USE Status session_wanted(Slice token, const PartitionRange *range, uint64_t *lsn, Error *err);

/* STATUS_BAD_REQUEST if any entry is malformed. */
MUST_USE Status session_check(Slice token, Error *err);

#define SESSION_ENTRY_TEXT_MAX 48 /* of what session_print returns */

Slice session_print(Arena *arena, uint32_t id, uint64_t lsn); /* "0:-1#1234" */
