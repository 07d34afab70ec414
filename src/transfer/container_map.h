/* container_map.h - what a client must know of a container: its partition key and its ranges.
 *
 * Both come from a server, as answers to GET of the container and of its pkranges. Everything in
 * them is checked.
 *
 * Ownership  What is parsed lives in the arena, and the names point into the answer.
 * Threads    Nothing here has state.
 */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "partition/epk.h"
#include "json/json.h"

#define MAP_RANGES_MAX 4096

typedef struct MapRange {
    Slice id;
    Slice min; /* hexadecimal; included */
    Slice max; /* excluded */
} MapRange;

typedef struct ContainerMap {
    MapRange *ranges; /* in order, without gaps, from "" to "FF" */
    size_t count;
} ContainerMap;

/* The definition of the partition key in the body of a container. */
MUST_USE Status container_key_parse(Arena *arena, Json container, PartitionKeyDefinition *out,
                                    Error *err);

/* The ranges in the body of a feed of pkranges. A range that others name as their parent is left
 * out. STATUS_UNAVAILABLE if they do not cover everything, as in the middle of a split: it is worth
 * asking again. */
MUST_USE Status container_map_parse(Arena *arena, Json feed, ContainerMap *out, Error *err);

/* The range of a hash in hexadecimal. */
const MapRange *container_map_find(const ContainerMap *map, Slice epk);

/* A key as requests carry it: a JSON array in which {} stands for a value that is not there. In a
 * header it must be ASCII. */
typedef enum KeyText { KEY_TEXT_UTF8, KEY_TEXT_ASCII } KeyText;
void container_key_print(const PartitionKey *key, KeyText form, Buf *out);

/* An EPK in hexadecimal. */
void container_epk_print(const Epk *epk, Buf *out);
