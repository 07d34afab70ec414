/* epk_range.h - how the space of effective partition keys is divided when a container is made, and
 * how a range of them is cut by a split that does not look at what is stored.
 *
 * An effective partition key is upper-case hex text, ordered byte by byte, from "" to below "FF".
 * A new container of n physical partitions gets n ranges of equal width; the SDKs never compute
 * them, but the service chooses them the same way, and tests of routing depend on them.
 *
 * Ownership  The bounds live in the arena.
 */
#pragma once

#include "base/arena.h"
#include "base/slice.h"
#include "catalog/definition.h"

#define EPK_MIN SLICE("")
#define EPK_MAX SLICE("FF")

/* The longest bound of a range that a client can ask for. EPKs of items are shorter, and the tokens
 * of lists have room for two such bounds. */
#define EPK_BOUND_BYTES_MAX 256
static_assert(EPK_NUMBER_BYTES_MAX + EPK_COMPONENT_BYTES_MAX <= EPK_BOUND_BYTES_MAX,
              "the EPK of an item can be a bound");

/* Whether this is the text of a bound: of whole bytes, in upper case, not too long. */
bool epk_is_bound(Slice text);

/* Hashes of version 2 as numbers of 16 bytes, for cuts between them. Bytes after the 16th are
 * ignored, and missing ones are 0. EPK_NUMBERS_END is above them all. */
typedef unsigned __int128 EpkNumber;
#define EPK_NUMBERS_END ((EpkNumber)1 << 126)
EpkNumber epk_number(Slice bytes);
Slice epk_number_text(Arena *arena, EpkNumber number);
Slice epk_text(Arena *arena, Slice bytes);

/* Cuts ['min', 'max'), two bounds as bytes, into 'parts' ranges of equally many hashes. 'texts'
 * gets the cuts as text, in rising order and strictly inside. Returns how many there are: parts -
 * 1, or fewer if the range is too narrow. A hierarchical range that is narrow in its first
 * component is cut in the next one. */
size_t epk_cuts(Arena *arena, PartitionKind kind, Slice min, Slice max, uint32_t parts,
                Slice *texts);

/* The first bound is EPK_MIN, the last EPK_MAX, and range i of 'count' goes from bound i to bound
 * i + 1: so there are count + 1 of them. A container without a partition key has one range. */
const Slice *epk_initial_bounds(Arena *arena, PartitionKind kind, uint32_t count);
