/* copy_plan.h - what becomes of a change of one container in another one with another partition
 * key.
 *
 * An item of the source is known by its key and its id; the copy knows both, because an item has
 * the values of all keys in itself. Where the copy has an item with the same id:
 *
 *     of the same key in the source, of the same new key    it is the older version: replaced
 *     of the same key in the source, of another new key     it is where the item was: deleted
 *     of another key in the source, of the same new key     a collision: two items of the source
 *                                                           would be one; neither is overwritten
 *
 * Threads    Nothing here has state.
 */
#pragma once

#include "base/arena.h"
#include "partition/epk.h"
#include "json/json.h"

typedef struct CopyKeys {
    PartitionKeyDefinition source;
    PartitionKeyDefinition target;
} CopyKeys;

/* Whether both have the same paths, so that an item has the same key in both. */
bool copy_keys_are_same(const CopyKeys *keys);

typedef struct CopyChange {
    Slice id;
    PartitionKey key; /* in the source */
    Json item;        /* undefined if it was deleted */
    bool has_lsn;     /* the feed has added "_lsn" to the item */
} CopyChange;

/* An item of the copy with the id of a change. */
typedef struct CopyFound {
    PartitionKey source_key;
    PartitionKey target_key;
    Slice etag;
} CopyFound;

typedef enum CopyAct { COPY_CREATE, COPY_UPSERT, COPY_REPLACE, COPY_DELETE } CopyAct;

typedef struct CopyStep {
    CopyAct act;
    size_t change; /* its position in the page */
    PartitionKey key;
    Slice etag; /* of what is replaced or deleted; empty if that does not matter */
} CopyStep;

/* Writes at most 'count' + 1 steps. False, and no step, if it is a collision. */
bool copy_plan(const CopyKeys *keys, const CopyChange *change, const CopyFound *found, size_t count,
               CopyStep *steps, size_t *step_count);

/* The changes of a page of a feed: items; {"current":...,"metadata":...}, deletes among them. A
 * later change of an item replaces an earlier one. STATUS_UNAVAILABLE if it is no such page. */
MUST_USE Status copy_changes_parse(Arena *arena, Json page, const CopyKeys *keys, CopyChange **out,
                                   size_t *count, Error *err);

/* The item as it is sent, without what a server has added. */
void copy_item_print(const CopyChange *change, Buf *out);
