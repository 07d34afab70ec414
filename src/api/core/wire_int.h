/* wire_int.h - the catalogue's resources as the protocol shows them: bodies, links and names in
 * URIs.
 *
 * Reading a container is by far the most frequent request on the catalogue. So a resource is
 * printed once, when it is first asked for, and kept with it (resource_keep_view): a read
 * sends the text as it is. What changes by itself, an offer, is printed for each request, and so is
 * what may be large, a script, and what shows a new token each time, a permission.
 *
 * Ownership  A WireResource lives as long as its resource, that of an offer, a script or a
 * permission as long as the arena. Threads    Any thread; two that are first at the same time both
 * print, and one of them is kept.
 */
#pragma once

#include "api/core/resource_token.h"
#include "catalog/resource.h"
#include "catalog/stored_script.h"
#include "catalog/user.h"

/* What a whole partition map may take: ancestors, and bounds of the longest keys, included. */
enum { WIRE_RANGE_BYTES_MAX = 8 << 10 };

/* A range's resource number is its id plus this. */
#define WIRE_RANGE_RID_BASE 2

typedef struct WireResource {
    uint32_t number;
    Slice etag;
    Slice uri_id;  /* as encodeURI writes it; the JS SDK finds session tokens by a path of these */
    Slice self;    /* "dbs/8wGqAA==/colls/8wGqAJI0Vgc=/" */
    Json document; /* what queries see: the definition with system properties */
    Slice body;    /* the same as JSON text */
} WireResource;

const WireResource *wire_database(const Database *database);
const WireResource *wire_key(const EncryptionKey *key);

const WireResource *wire_user(const User *user);

/* How the tokens are made that permissions show. */
typedef struct WireTokens {
    const ResourceTokenKey *key;
    uint64_t now_us; /* of the wall clock */
    uint32_t lifetime_s;
} WireTokens;

/* The permission with a new token, in 'arena'. */
WireResource *wire_permission(const Permission *permission, const WireTokens *tokens, Arena *arena);

/* A container without a partition key has a system key for all but old clients, which do not know
 * of it. */
const WireResource *wire_container(const Container *container, bool is_old_client);

/* The offer with what 'usage' says, in 'arena'; and the path of what it belongs to. */
WireResource *wire_offer(const Offer *offer, const OfferUsage *usage, Arena *arena);
Slice wire_offer_owner(const Offer *offer, Arena *arena);

/* The part of a script that is asked for, in 'arena'; the other one is empty. */
typedef enum WirePart { WIRE_DOCUMENT, WIRE_BODY } WirePart;
WireResource *wire_script(const StoredScript *script, WirePart part, Arena *arena);

/* The script's body as text; 'out' is not initialised before. */
void wire_script_print(const StoredScript *script, Buf *out);

/* Appends the body of one partition key range: at most WIRE_RANGE_BYTES_MAX. */
void wire_range_print(const Container *container, const PartitionRange *range, Buf *out);
