/* document_position_int.h - where the next page of a list of items begins, and its continuation
 * token.
 *
 * A position belongs to the container and not to its present partitions: a token that was made
 * before a split or a merge is valid afterwards, for the whole container and for any range of it.
 * By EPK it is one position of a scan, since (EPK, id) orders all items. By number each partition
 * has an order of its own, so it says up to which EPK which position of a scan holds:
 *
 *     EPKs   |   done   |  from 'at' of [0]  |  from 'at' of [1]  |   nothing is done yet   |
 *                      from              [0].to               [1].to
 *
 * The items of one key are shown by number, too, if they are few. Their token differs from a token
 * of the container, which would go on at another item.
 *
 * Usually there is one piece. There are more when a partition was split since the piece was made,
 * and one of the new partitions is ahead of the others.
 *
 * Ownership  A parsed position and a printed token live in the arena.
 */
#pragma once

#include "base/arena.h"
#include "base/error.h"
#include "base/slice.h"
#include "partition/partition.h"

/* The shortest limit that a client can set with x-ms-documentdb-responsecontinuationtokenlimitinkb,
 * and the one that the JS SDK always sets. All tokens are within it, so the header is not read. */
#define TOKEN_TEXT_MAX 1024

#define POSITION_PIECES_MAX 8

typedef struct PositionPiece {
    Slice to; /* EPK, exclusive */
    Slice at; /* a position of partition_scan_position */
} PositionPiece;

typedef struct DocumentPosition {
    ScanOrder order;
    bool is_of_key; /* by number: of the items of one key */
    Slice from;     /* by number: items with lower EPKs are done */
    PositionPiece pieces[POSITION_PIECES_MAX];
    size_t piece_count;
    Slice at; /* of what comes after the pieces; by EPK of everything, by number empty */
} DocumentPosition;

/* A page has ended at 'position' in a partition of the range ['min', 'max'), while it was walking
 * the piece 'index' of 'place' or, if that is the count, what comes after the pieces. Changes
 * 'place' to where the next page begins. */
void document_position_advance(DocumentPosition *place, size_t index, Slice min, Slice max,
                               Slice position);

Slice document_position_print(Arena *arena, const DocumentPosition *place);

/* STATUS_BAD_REQUEST if the token was not made for this order. */
MUST_USE Status document_position_parse(Arena *arena, ScanOrder order, Slice token,
                                        DocumentPosition *out, Error *err);

/* The same for the items of one key, in either order. */
MUST_USE Status document_position_parse_of_key(Arena *arena, Slice token, DocumentPosition *out,
                                               Error *err);
