/* token_int.h - the continuation tokens of queries.
 *
 *     token = base64 (as resource ids have it) of | mac 16 bytes | position |
 *
 * The position is the query layer's (page_int.h there). The code in front of it is made with a
 * secret that is kept in the data folder, over the container, the text of the query and the
 * position: a token is good after a restart and on any connection, for this query only, and nobody
 * can make one up.
 *
 * Ownership  What comes out lives in the arena.
 */
#pragma once

#include "api/api.h"
#include "base/arena.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/slice.h"

Slice token_print(Arena *arena, const TokenSecret *secret, Slice container_rid, Slice query,
                  Slice position);

/* STATUS_BAD_REQUEST if the token is not one that token_print made for the same. */
MUST_USE Status token_parse(Arena *arena, const TokenSecret *secret, Slice container_rid,
                            Slice query, Slice token, Slice *position, Error *err);
