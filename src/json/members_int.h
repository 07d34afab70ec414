/* members_int.h - the members of an object in the order of their names.
 *
 * Writing an object needs that order for its offsets and to find names that occur twice; checking
 * one needs it to see that the offsets are right.
 */
#pragma once

#include "json/format_int.h"

/* A name, with enough of its bytes to decide most comparisons without reading it. */
typedef struct Member {
    uint32_t offset; /* of its tag, from the 'base' of the object at hand */
    uint64_t prefix; /* its first eight bytes as a number; zeros fill up a shorter name */
} Member;

/* Up to this many members are sorted in place; more need scratch memory. */
enum { MEMBERS_FEW = 32 };

/* Sorts members, of which only the offsets need be set, by name; those of the same name stay in
 * their order. 'scratch' has room for 'count' members if there are more than MEMBERS_FEW. Returns
 * whether all names are distinct. */
bool members_sort(const uint8_t *base, Member *members, Member *scratch, size_t count);
