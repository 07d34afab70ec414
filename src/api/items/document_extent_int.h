/* document_extent_int.h - which items a list or a query asks for, as a range of EPKs.
 *
 * A request names them by a partition key (or a prefix of a hierarchical one), by a physical range,
 * by a range of effective partition keys, or not at all. A query may add the keys that its filter
 * names.
 *
 * Ownership  Bounds live in the request's arena, or in the container, which the page holds.
 */
#pragma once

#include "api/core/target_int.h"
#include "query/plan/query_route.h"

typedef struct DocumentExtent {
    Slice epk_from;
    Slice epk_to;
    bool is_given; /* by a key or a range in the request's headers */
    bool is_fine;  /* it may be a part of a physical range: items come in order of their EPKs */
    bool has_key;
    PartitionKey key;
    const QueryRoute *route; /* the keys that a query's filter names; NULL for any */
} DocumentExtent;

/* Reads the request's headers. */
MUST_USE Status document_extent_read(const ApiRequest *r, DocumentExtent *out, Error *err);

/* Narrows the extent to items that have this key, or whose key begins with it. */
void document_extent_narrow(DocumentExtent *extent, Arena *arena, PartitionKind kind,
                            const PartitionKey *key);

/* Whether a partition can have items of the extent. */
bool document_extent_needs(const DocumentExtent *extent, const PartitionRange *range);

/* Whether the range of a partition overlaps ['from', 'to'). */
bool document_extent_overlaps(const PartitionRange *range, Slice from, Slice to);
