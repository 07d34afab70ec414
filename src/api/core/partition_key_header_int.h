/* partition_key_header_int.h - partition keys as requests carry them. */
#pragma once

#include "api/core/request_int.h"
#include "partition/epk.h"

/* Whether fewer components than the container has paths are accepted: feeds and purges take a
 * prefix of a hierarchical key, items are named by a whole one. */
typedef enum KeyExtent { KEY_WHOLE, KEY_PREFIX } KeyExtent;

/* x-ms-documentdb-partitionkey: a JSON array of one value per path, {} if there is none.
 * '*found' is false if the header is absent. A container without a key accepts any header and has
 * an empty key. */
MUST_USE Status key_header_parse(Arena *arena, Slice header,
                                 const PartitionKeyDefinition *definition, KeyExtent extent,
                                 PartitionKey *out, bool *found, Error *err);

/* The same without a definition: the values alone. False if the header is no list of at most
 * PARTITION_KEY_PARTS_MAX values that a key can have. */
bool key_header_values(Arena *arena, Slice header, PartitionKey *out);

/* STATUS_BAD_REQUEST, with its sub-status, unless the header's key is the document's own. */
MUST_USE Status key_header_match(const PartitionKey *header, const PartitionKey *document,
                                 Error *err);

/* x-ms-start-epk and x-ms-end-epk: hex text to bytes, in 'arena'. */
MUST_USE Status key_header_parse_epk(Arena *arena, Slice text, Slice *out, Error *err);
