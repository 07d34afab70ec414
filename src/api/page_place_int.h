/* page_place_int.h - where the next page of a list of items goes on, and the
 * continuation tokens that tell it.
 *
 * A place belongs to the container and not to the partitions that it has today: a token that was
 * made before a split or a merge is good afterwards, for the whole container and for any range of
 * it. By EPK a place is one position, since (EPK, id) orders all items. By number each partition
 * has an order of its own, so a place says up to which EPK which position holds:
 *
 *     EPKs   |   done   |  from 'at' of [0]  |  from 'at' of [1]  |   nothing is done yet   |
 *                      from              [0].to               [1].to
 *
 * One piece is the rule. There are more when a partition was split since the piece was made, and
 * one of the new ones is further than the others.
 *
 * Ownership  A parsed place and a printed token live in the arena.
 */
#pragma once

#include "base/arena.h"
#include "base/error.h"
#include "base/slice.h"
#include "partition/partition.h"

/* The shortest limit that a client can set with x-ms-documentdb-responsecontinuationtokenlimitinkb,
 * and the one that the JS SDK always sets. All tokens are within it, so nobody needs to ask. */
#define TOKEN_TEXT_MAX 1024

#define PLACE_PIECES_MAX 8

typedef struct PlacePiece {
    Slice to; /* EPK, exclusive */
    Slice at; /* a position of partition_scan_position */
} PlacePiece;

typedef struct PagePlace {
    ScanOrder order;
    Slice from; /* by number: items with lower EPKs are done */
    PlacePiece pieces[PLACE_PIECES_MAX];
    size_t piece_count;
    Slice at; /* of what is behind the pieces: by EPK, of everything; by number, empty */
} PagePlace;

/* A page has ended at 'position' in a partition of the range ['min', 'max'), while it was walking
 * the piece 'index' of 'place', or what is behind them all: makes it the place of the next page. */
void place_advance(PagePlace *place, size_t index, Slice min, Slice max, Slice position);

Slice place_print(Arena *arena, const PagePlace *place);

/* STATUS_BAD_REQUEST if the token is none of this order. */
MUST_USE Status place_parse(Arena *arena, ScanOrder order, Slice token, PagePlace *out, Error *err);
