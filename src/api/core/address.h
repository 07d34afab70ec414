/* address.h - which resource a request's path names.
 *
 * A path is a chain of (type, id) pairs, /dbs/{db}/colls/{coll}/docs/{doc}; one that ends in a type
 * names the feed of that type. Ids are user ids or resource ids; the catalogue decides later which
 * of the two.
 *
 * Ownership  Slices point into the path, or into the arena where something had to be decoded.
 */
#pragma once

#include "base/arena.h"
#include "base/error.h"
#include "base/slice.h"

typedef enum ResourceType {
#define RESOURCE_ROW(name, segment, feed, parent) RESOURCE_##name,
#include "api/core/resources.def"
#undef RESOURCE_ROW
    RESOURCE_COUNT
} ResourceType;

#define ADDRESS_PARTS_MAX 4                 /* dbs, colls, docs, attachments */
#define ADDRESS_BYTES_MAX ((size_t)8 << 10) /* four ids of 1023 bytes, all of them encoded */

typedef struct Address {
    ResourceType type; /* of the resource or feed that is named */
    bool is_feed;
    size_t part_count; /* a feed has no part for its own level */
    struct {
        ResourceType type;
        Slice id; /* decoded */
    } parts[ADDRESS_PARTS_MAX];
    Slice operation; /* POST {container}/operations/{operation}; empty otherwise */
    Slice link;      /* what a signature covers: the resource, or the parent of a feed; decoded */
    Slice link_raw;  /* the same as sent */
} Address;

/* STATUS_NOT_FOUND for a path that names nothing in this protocol, STATUS_BAD_REQUEST for one that
 * cannot be decoded. Leading, doubled and trailing slashes do not matter. */
MUST_USE Status address_parse(Arena *arena, Slice path, Address *out, Error *err);

Slice address_segment(ResourceType type);   /* "colls" */
Slice address_feed_name(ResourceType type); /* "DocumentCollections" */
