/* partition_key_int.h - partition keys as requests carry them. */
#pragma once

#include "api/request_int.h"
#include "partition/key.h"

/* Whether fewer components than the container has paths are accepted: feeds and purges take a
 * prefix of a hierarchical key, items are named by a whole one. */
typedef enum KeyExtent { KEY_WHOLE, KEY_PREFIX } KeyExtent;

/* x-ms-documentdb-partitionkey: a JSON array of one value per path, {} for "there is none".
 * '*found' is false if the header is absent. A container without a key takes any header and has an
 * empty key. */
MUST_USE Status partition_key_parse(Arena *arena, Slice header,
                                    const PartitionKeyDefinition *definition, KeyExtent extent,
                                    PartitionKey *out, bool *found, Error *err);

/* STATUS_BAD_REQUEST with the sub-status for it unless the header's key is the document's own. */
MUST_USE Status partition_key_match(const PartitionKey *header, const PartitionKey *document,
                                    Error *err);

/* x-ms-start-epk and x-ms-end-epk: hex text to bytes, in 'arena'. */
MUST_USE Status epk_header_parse(Arena *arena, Slice text, Slice *out, Error *err);
