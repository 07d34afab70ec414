/* key_candidate.h - a partition key that a container could have, and its value in an item.
 *
 *     single        /userId                 the value of a path
 *     hierarchical  /tenantId, /userId      up to three paths, one below the other
 *     synthetic     /tenantId-/userId       a new property: the values joined by '-'
 *     suffixed      /tenantId-(0..9)        a new property: the value and a number made of the id
 *
 * Ownership  A candidate borrows its paths. Threads: nothing here has state.
 */
#pragma once

#include "partition/epk.h"

typedef enum KeyKind {
    KEY_SINGLE,
    KEY_HIERARCHICAL,
    KEY_SYNTHETIC,
    KEY_SUFFIXED,
} KeyKind;

#define KEY_SUFFIXES_MAX 100

typedef struct KeyCandidate {
    KeyKind kind;
    PropertyPath paths[PARTITION_KEY_PATHS_MAX];
    size_t path_count;
    uint32_t suffixes; /* of KEY_SUFFIXED: how many different numbers */
    Slice name;        /* as drawn above, in canonical form */
    bool is_time;      /* the values of one of its paths are times */
    bool is_current;   /* the container has this key now */
    bool is_checked;   /* the caller asked about this one */
} KeyCandidate;

const char *key_kind_name(KeyKind kind); /* "single" */

/* Sets the name from the rest; it lives in 'arena'. */
void key_candidate_name(Arena *arena, KeyCandidate *key);

/* "/userId", or "/tenantId,/userId" with spaces where one likes. STATUS_BAD_REQUEST if it is not
 * such a list. The paths live in 'arena'. */
MUST_USE Status key_candidate_parse(Arena *arena, Slice text, KeyCandidate *out, Error *err);

bool key_candidate_equal(const KeyCandidate *a, const KeyCandidate *b);

/* The hash of an item's key, as the server computes it; false if a part of the key is missing there
 * (an array or an object counts as missing, and text that is too long, which a server refuses). */
bool key_candidate_epk(const KeyCandidate *key, Json document, Arena *scratch, Epk *out);

/* The value as text, such as ["acme","ada"], cut to a sane length; in 'arena'. */
Slice key_candidate_value(const KeyCandidate *key, Json document, Arena *arena);

/* The definition by whose paths queries are routed. For synthetic and suffixed keys it says which
 * queries name all that the key is made of. */
void key_candidate_definition(const KeyCandidate *key, PartitionKeyDefinition *out);
