/* identity_keys.h - the public keys of an identity provider (a JSON Web Key Set), and signatures
 * of tokens (JSON Web Tokens) checked with them.
 *
 * The only file that knows cjose, which is loaded when the first set is read. Signatures are those
 * of public keys only: RS256, PS256 and ES256, and the same with 384 and 512. "none" and the
 * symmetric ones are not in the list of what is understood, so a public key can never be taken for
 * a shared secret.
 *
 * Ownership  The caller closes the IdentityKeys.
 * Threads    IdentityKeys are immutable, and verified with by any number of threads.
 */
#pragma once

#include "base/arena.h"
#include "base/error.h"
#include "base/slice.h"

#define IDENTITY_KEYS_BYTES_MAX ((size_t)256 << 10) /* of the text of a set */
#define IDENTITY_KEYS_MAX       100

typedef struct IdentityKeys IdentityKeys;

/* Keys that are not for signatures, or of an unknown kind, are left out. STATUS_BAD_REQUEST if the
 * text is no key set, or has no key that can be used; STATUS_INTERNAL if cjose cannot be loaded. */
MUST_USE Status identity_keys_parse(Slice text, IdentityKeys **out, Error *err);
void identity_keys_close(IdentityKeys *keys); /* accepts NULL */
DEFINE_AUTO(IdentityKeys *, identity_keys_close)

size_t identity_keys_count(const IdentityKeys *keys);

typedef enum IdentityVerdict {
    IDENTITY_GENUINE,
    IDENTITY_FORGED,      /* no key that it could be of has signed it */
    IDENTITY_UNKNOWN_KEY, /* it names a key that is not in the set */
} IdentityVerdict;

/* 'token' is the whole JWT; 'alg' and 'kid' are what its header says, and 'kid' may be empty. */
IdentityVerdict identity_keys_verify(const IdentityKeys *keys, Slice token, Slice alg, Slice kid);

/* Whether a signature of that name can be verified. */
bool identity_alg_is_known(Slice alg);
