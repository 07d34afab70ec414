/* document_token_int.h - the continuation tokens of queries.
 *
 *     token = base64 (as resource ids have it) of | mac 16 bytes | position |
 *
 * The position is the query layer's. The authentication code (mac) before it is made with a secret
 * from the data folder, over the container, the position and the part of the query that it depends
 * on (query_position_scope). So a token is valid after a restart and on any connection, for queries
 * with the same order, and clients cannot forge one.
 *
 * Ownership  Results live in the arena.
 */
#pragma once

#include "api/core/api_options.h"
#include "base/arena.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/slice.h"

Slice document_token_print(Arena *arena, const TokenSecret *secret, Slice container_rid,
                           Slice scope, Slice position);

/* STATUS_BAD_REQUEST, saying that this is not a token. */
Status document_token_refuse(Slice token, Error *err);

/* Takes a token apart; STATUS_BAD_REQUEST if it is not one. Its position must not be trusted before
 * document_token_check, which fails with STATUS_BAD_REQUEST unless document_token_print made the
 * token for the same container and scope. */
MUST_USE Status document_token_parse(Arena *arena, Slice token, Slice *mac, Slice *position,
                                     Error *err);
MUST_USE Status document_token_check(Arena *arena, const TokenSecret *secret, Slice container_rid,
                                     Slice scope, Slice token, Slice mac, Slice position,
                                     Error *err);
