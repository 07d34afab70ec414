/* radix_int.h - the sorted set of entries that RocksDB keeps in memory before it writes a file.
 *
 * RocksDB's own is a skip list: twenty levels of comparisons by function pointers, most of them in
 * memory that no cache holds. An indexed item has some twenty keys, and inserting them took four
 * fifths of the commit thread. This is a radix tree over the bytes of keys: a node for each byte in
 * which keys differ, paths without a branch left out, nodes that grow from 2 to 256 children.
 *
 * An entry is RocksDB's: | length varint | user key | tag u64 LE | value... |, where a tag is a
 * sequence number and a type, and belongs to one version of the key. The order is that of user
 * keys, bytewise, and among those of one key from the highest tag, the newest, to the lowest.
 *
 * Ownership  Memory comes from 'allocate' and is never given back: it all goes at once.
 * Threads    One writer at a time, any number of readers meanwhile, without locks. A node that is
 *            replaced, because it has grown, stays as it is for readers that are still there: they
 *            may miss what was inserted since they began. A reader that reads as of a sequence
 *            number whose inserts were complete when it began, as RocksDB does, misses nothing
 * (R9).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct Radix Radix;
typedef struct RadixEntry RadixEntry;
typedef struct RadixNode RadixNode;

enum { RADIX_PATH_NODES = 16 };

/* The last nodes on the way from the root to where a walk stands, so that a step need not begin at
 * the root. A zeroed one knows no node, which is always valid. Each reader has its own. */
typedef struct RadixPath {
    const RadixNode *nodes[RADIX_PATH_NODES]; /* the one of level i at i % RADIX_PATH_NODES */
    uint32_t count;                           /* of levels on the way */
    uint32_t known;                           /* how many of the last levels are in 'nodes' */
} RadixPath;

/* 'allocate' never fails; what it gives need not be aligned. */
Radix *radix_new(void *(*allocate)(void *ctx, size_t bytes), void *ctx);

/* Room for an entry, which the caller writes to radix_data() before it is inserted. */
RadixEntry *radix_entry_new(Radix *radix, size_t data_bytes);
char *radix_data(RadixEntry *entry);
const char *radix_read(const RadixEntry *entry);

/* False if there is one with the same key and tag. */
bool radix_insert(Radix *radix, RadixEntry *entry);

/* 'target' is | user key | tag |, as in an entry. All of these return NULL if there is none, and
 * leave in 'path' the way to what they return. */
const RadixEntry *radix_first(const Radix *radix, RadixPath *path);
const RadixEntry *radix_last(const Radix *radix, RadixPath *path);
const RadixEntry *radix_at_or_after(const Radix *radix, const char *target, size_t len,
                                    RadixPath *path);
const RadixEntry *radix_at_or_before(const Radix *radix, const char *target, size_t len,
                                     RadixPath *path);

/* 'path' leads to 'entry', or knows no node. */
const RadixEntry *radix_next(const Radix *radix, const RadixEntry *entry, RadixPath *path);
const RadixEntry *radix_prev(const Radix *radix, const RadixEntry *entry, RadixPath *path);

/* Whether the entry's key and tag are these. */
bool radix_is(const RadixEntry *entry, const char *target, size_t len);

#ifdef __cplusplus
}
#endif
