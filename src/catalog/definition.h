/* definition.h - the bodies of resources: checked once, kept in one normal form.
 *
 * A client sends a container's body; what is stored and returned is its normal form: exactly the
 * known properties, in a fixed order, defaults filled in, words in the protocol's spelling. The
 * normal form of a normal form is itself, so a client may read a container and send it back.
 *
 *     id                        required; see resource_id_check
 *     indexingPolicy            always present
 *     partitionKey              required, but for old-style containers (ContainerRules)
 *     defaultTtl                only if given
 *     uniqueKeyPolicy           only if given; fixed at creation
 *     conflictResolutionPolicy  always present; fixed at creation
 *     geospatialConfig          always present
 *     analyticalStorageTtl, computedProperties, vectorEmbeddingPolicy, fullTextPolicy,
 *     changeFeedPolicy          only if given
 *     clientEncryptionPolicy    only if given; fixed at creation
 *
 * docs/containers.md is the reference that users read; its examples are run by definition_test.c.
 *
 * Decisions where the protocol leaves room
 *   - null counts as absent, at every optional place but defaultTtl.
 *   - Properties that are not in the list are ignored and not kept: system properties (_rid, _self,
 *     _etag, _ts, _docs...) are the server's, and the service drops names it does not know.
 *   - Words (modes, kinds, types, orders) are accepted in any case and returned in one.
 *   - A replacement is checked like a new body first and compared with the old one second, so a
 *     body that would be refused at creation gets the same message here.
 *   - What is fixed at creation may be left out of a replacement, because SDKs without a
 *     parameter for it do so; a different value is refused. Only clientEncryptionPolicy must be
 *     repeated: a client that leaves it out would go on to write what should be encrypted.
 * Everything else that is left out returns to its default.
 *
 * Whether the query of a computed property is allowed is for the query layer to decide, which
 * takes the pairs from container_computed_properties() before the definition is stored.
 *
 * Ownership  Results live in the arena given. Bodies are borrowed for the call.
 * Threads    Nothing here has state; normal forms are immutable and may be shared.
 */
#pragma once

#include "base/arena.h"
#include "base/error.h"
#include "base/slice.h"
#include "partition/epk.h"
#include "partition/schema.h"
#include "json/json.h"
#include "json/property_path.h"

#define RESOURCE_ID_CHARS_MAX         255  /* databases, containers, users, scripts... */
#define ITEM_ID_BYTES_MAX             1023 /* items are counted in bytes */
#define TTL_S_MAX                     2147483647
#define UNIQUE_KEYS_MAX               10
#define UNIQUE_KEY_PATHS_MAX          16
#define INDEX_PATHS_MAX               1500 /* included; the same again excluded; also spatial */
#define COMPOSITE_INDEXES_MAX         100
#define COMPOSITE_PATHS_MAX           8
#define COMPUTED_PROPERTIES_MAX       20
#define COMPUTED_QUERY_BYTES_MAX      ((size_t)512 << 10) /* as any query text */
#define VECTOR_DIMENSIONS_MAX         4096
#define VECTOR_FLAT_DIMENSIONS_MAX    505
#define VECTOR_QUANTIZED_BYTES_MAX    512
#define VECTOR_SEARCH_LIST_MIN        25
#define VECTOR_SEARCH_LIST_MAX        500
#define VECTOR_SHARD_KEYS_MAX         1
#define POLICY_PATHS_MAX              100 /* of a vector, full-text or encryption policy each */
#define CHANGE_FEED_RETENTION_MIN_MAX INT32_MAX /* minutes; in effect no bound */
#define STORED_PROCEDURES_MAX         100       /* of a container, as the service has it */
#define STORED_TRIGGERS_MAX           100       /* the service publishes no number */
#define STORED_FUNCTIONS_MAX          50
#define DATABASE_USERS_MAX            20000 /* each is an object in memory, as is a permission */
#define USER_PERMISSIONS_MAX          2000

typedef struct ComputedProperty {
    Slice name;
    Slice query;
} ComputedProperty;

typedef enum ResourceIdKind { RESOURCE_ID_NAMED, RESOURCE_ID_ITEM } ResourceIdKind;

/* Scripts of a container, each kind with names of its own. */
typedef enum StoredScriptKind {
    STORED_PROCEDURE,
    STORED_TRIGGER,
    STORED_FUNCTION,
    STORED_SCRIPT_KINDS
} StoredScriptKind;

/* When a trigger runs, before or after the operation, and for which operations it may be named. */
typedef enum TriggerType { TRIGGER_PRE, TRIGGER_POST } TriggerType;
typedef enum TriggerOperation {
    TRIGGER_ON_ALL,
    TRIGGER_ON_CREATE,
    TRIGGER_ON_UPDATE,
    TRIGGER_ON_REPLACE,
    TRIGGER_ON_DELETE,
    TRIGGER_ON_UPSERT,
} TriggerOperation;

/* What a permission allows on what it names. */
typedef enum PermissionMode { PERMISSION_READ, PERMISSION_ALL } PermissionMode;

/* What the request's API version allows. */
typedef struct ContainerRules {
    bool allow_no_partition_key; /* versions before 2018-12-31 */
} ContainerRules;

/* STATUS_BAD_REQUEST if 'id' cannot be a resource's id. A named resource's is not empty, has at
 * most RESOURCE_ID_CHARS_MAX characters, none of / \ ? # and no control character, and does not
 * end with a space. An item's has at most ITEM_ID_BYTES_MAX bytes and no / or \. */
MUST_USE Status resource_id_check(Slice id, ResourceIdKind kind, Error *err);

/* The id of a database's body, copied into 'arena'. */
MUST_USE Status database_definition_create(Arena *arena, Json body, Slice *id, Error *err);

/* Checks the body of a client encryption key and makes its normal form: 'id',
 * 'encryptionAlgorithm', 'wrappedDataEncryptionKey' (base64) and 'keyWrapMetadata' (an object, kept
 * as it is). */
MUST_USE Status encryption_key_definition_create(Arena *arena, Json body, Json *normal, Error *err);

/* The id of a user's body, copied into 'arena'. */
MUST_USE Status user_definition_create(Arena *arena, Json body, Slice *id, Error *err);

/* Checks the body of a permission and makes its normal form: 'id', 'permissionMode' as "Read" or
 * "All", 'resource' and 'resourcePartitionKey' (only if given) as they were sent. What 'resource'
 * names need not exist. */
MUST_USE Status permission_definition_create(Arena *arena, Json body, Json *normal, Error *err);

/* What a permission's normal form says. STATUS_CORRUPT if it is not one. '*has_key' tells whether
 * it is for one partition key; 'key' borrows from the normal form. */
MUST_USE Status permission_definition_read(Json normal, PermissionMode *mode, Slice *resource,
                                           bool *has_key, PartitionKey *key, Error *err);

/* Checks the body of a script and makes its normal form: 'id', 'body' and, of a trigger,
 * 'triggerType' and 'triggerOperation', all as they were sent. That 'body' is JavaScript is not
 * checked: the service finds out when the script runs. */
MUST_USE Status stored_script_definition_create(Arena *arena, StoredScriptKind kind, Json body,
                                                Json *normal, Error *err);

/* What the words of a trigger's normal form mean. STATUS_CORRUPT if it is not one. */
MUST_USE Status stored_script_trigger(Json normal, TriggerType *type, TriggerOperation *operation,
                                      Error *err);

/* "stored procedure": what messages call one. */
const char *stored_script_noun(StoredScriptKind kind);
size_t stored_script_count_max(StoredScriptKind kind); /* of a container */

/* Checks a container's body and makes its normal form. STATUS_BAD_REQUEST says what was expected
 * and what was found. */
MUST_USE Status container_definition_create(Arena *arena, Json body, ContainerRules rules,
                                            Json *normal, Error *err);

/* The same for a replacement of 'old', a normal form. The parts fixed at creation must not differ;
 * a vector embedding or a vector index that exists may not be altered. An old-style container
 * accepts the system key that newer clients see on it, and stays without a key. */
MUST_USE Status container_definition_replace(Arena *arena, Json old, Json body, Json *normal,
                                             Error *err);

/* Readers of what the engine itself acts on, for normal forms. They fail, with STATUS_CORRUPT,
 * only if what was stored is not one. */
MUST_USE Status container_partition_key(Arena *arena, Json normal, PartitionKeyDefinition *out,
                                        Error *err);
MUST_USE Status container_unique_keys(Arena *arena, Json normal, UniqueKey keys[UNIQUE_KEYS_MAX],
                                      size_t *count, Error *err);

/* The pairs, in order, and how many there are. */
size_t container_computed_properties(Json normal, ComputedProperty out[COMPUTED_PROPERTIES_MAX]);

/* Seconds; -1 if items live for ever unless they have a ttl of their own, 0 if they never expire.
 */
int64_t container_default_ttl_s(Json normal);

/* How long all versions of its items are kept for the change feed; 0 if they are not. */
uint64_t container_retention_s(Json normal);
