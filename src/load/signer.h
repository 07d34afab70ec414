/* signer.h - master-key signatures, as an SDK makes them.
 *
 * Ownership  The Signer is the caller's; it holds what the key was turned into.
 * Threads    Belongs to one thread.
 */
#pragma once

#include "base/arena.h"
#include "base/date.h"
#include "base/error.h"
#include "base/slice.h"

#include <openssl/sha.h>

#define SIGNER_KEY_BYTES_MAX 256

typedef struct Signer {
    SHA256_CTX inner; /* after the key, xor 0x36 */
    SHA256_CTX outer; /* after the key, xor 0x5c */
} Signer;

/* 'key' in base64. */
MUST_USE Status signer_init(Signer *signer, Slice key, Error *err);

/* What a path addresses: "dbs/a/colls/b" is the resource of type "colls" with that link, and
 * "dbs/a/colls" is a feed of the same type whose link is its parent, "dbs/a". */
typedef struct SignerTarget {
    Slice type;
    Slice link;
} SignerTarget;

/* 'path' as in a request line. The result lives in 'arena' or is part of 'path'. */
MUST_USE Status signer_target_parse(Arena *arena, Slice path, SignerTarget *out, Error *err);

/* The value of the authorization header, percent-encoded, in 'arena'. */
Slice signer_authorization(const Signer *signer, Arena *arena, Slice method, SignerTarget target,
                           const char date[DATE_LEN]);
