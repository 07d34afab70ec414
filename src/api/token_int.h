/* token_int.h - the continuation tokens of queries.
 *
 *     token = base64 (as resource ids have it) of | mac 16 bytes | position |
 *
 * The position is the query layer's (page_int.h there). The code in front of it is made with a
 * secret that is kept in the data folder, over the container, the position and what of a query it
 * depends on (query_position_scope): a token is good after a restart and on any connection, for
 * queries with the same order, and nobody can make one up.
 *
 * Ownership  What comes out lives in the arena.
 */
#pragma once

#include "api/api.h"
#include "base/arena.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/slice.h"

Slice token_print(Arena *arena, const TokenSecret *secret, Slice container_rid, Slice scope,
                  Slice position);

/* Says that a token is none: STATUS_BAD_REQUEST. */
Status token_refuse(Slice token, Error *err);

/* Takes a token apart: STATUS_BAD_REQUEST if it is none. What it says is not to be believed before
 * token_check: STATUS_BAD_REQUEST if it is not one that token_print made for the same. */
MUST_USE Status token_parse(Arena *arena, Slice token, Slice *mac, Slice *position, Error *err);
MUST_USE Status token_check(Arena *arena, const TokenSecret *secret, Slice container_rid,
                            Slice scope, Slice token, Slice mac, Slice position, Error *err);
