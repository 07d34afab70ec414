/* schema.h - what a container's definition says that its partitions act on.
 *
 * Ownership  Reference counted. Threads: immutable after it is made, any thread may read it.
 */
#pragma once

#include "base/arena.h"
#include "base/slice.h"
#include "index/index_policy.h"
#include "partition/epk.h"
#include "json/property_path.h"

#include <stdatomic.h>

/* Within a logical partition no two items have the same values at these paths. */
typedef struct UniqueKey {
    const PropertyPath *paths;
    size_t path_count;
} UniqueKey;

typedef struct PartitionSchema {
    _Atomic uint32_t refs;
    Arena arena;
    uint32_t database; /* numbers, for resource ids and links */
    uint32_t container;
    Slice self; /* the container's link, with its slash at the end */
    PartitionKeyDefinition key;
    int64_t default_ttl_s; /* 0 if items never expire; -1 if only those do that have a "ttl" */
    uint32_t generation;   /* of the container, see write_hold.h */
    uint64_t retention_s; /* how long all versions of items are kept for feeds; 0 if they are not */
    const UniqueKey *unique_keys;
    size_t unique_key_count;
    const IndexPolicy *index; /* NULL if nothing is indexed */
    Slice index_text;         /* the stored form of the policy; empty if nothing is indexed */
} PartitionSchema;

/* An empty one to be filled; its arena holds what its fields point to. */
PartitionSchema *schema_new(void);
PartitionSchema *schema_ref(PartitionSchema *schema);
void schema_unref(PartitionSchema *schema); /* accepts NULL */
DEFINE_AUTO(PartitionSchema *, schema_unref)
