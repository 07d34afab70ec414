/* identity_source.h - the issuer of identity tokens as the server knows it: its rules, the newest
 * set of its keys, and tokens that were verified not long ago.
 *
 * Keys are read again on request (SIGHUP), and when a token names a key that is not in the set, at
 * most once in 'reload_ms_min'. That is done by a thread of the source: the token is refused
 * meanwhile, and no loop waits. A set that cannot be read leaves the one before it in place.
 *
 * Ownership  The caller closes the IdentitySource after its last reader.
 * Threads    An IdentityReader belongs to one loop. Reload and close are for the thread that opened
 *            the source.
 */
#pragma once

#include "api/core/identity_token.h"
#include "base/log.h"

typedef struct IdentitySource IdentitySource;

typedef struct IdentitySourceOptions {
    IdentityRules rules; /* copied; without an issuer only tokens of emulators can be good */
    /* Reads the text of the key set into the arena, on the caller's thread or the source's own.
     * STATUS_UNAVAILABLE means that it may work later. NULL without an issuer. */
    Status (*load)(void *ctx, Arena *arena, Slice *text, Error *err);
    void *ctx;
    const Log *log;
    uint32_t reload_ms_min;
} IdentitySourceOptions;

/* Reads the keys. If that fails with STATUS_UNAVAILABLE the source opens without keys, and tries
 * again when a token comes. */
MUST_USE Status identity_source_open(const IdentitySourceOptions *options, IdentitySource **out,
                                     Error *err);
void identity_source_close(IdentitySource *source); /* accepts NULL */
DEFINE_AUTO(IdentitySource *, identity_source_close)

/* Reads the keys again; does nothing without an issuer. */
MUST_USE Status identity_source_reload(IdentitySource *source, Error *err);

/* How many tokens a reader remembers. */
#define IDENTITY_CACHE_COUNT 256

typedef struct IdentityReader {
    IdentitySource *source;
    struct IdentitySet *set; /* the newest keys that it has seen */
    uint64_t version;
    struct IdentityEntry *cache; /* IDENTITY_CACHE_COUNT of them; NULL until the first token */
} IdentityReader;

void identity_reader_init(IdentityReader *reader, IdentitySource *source);
void identity_reader_done(IdentityReader *reader);

/* Who the token is of; see identity_token_check for the failures. A token that was verified with
 * the same keys is not verified again; 'account_version' is that of 'account_keys'. */
MUST_USE Status identity_read(IdentityReader *reader, const AuthKeys *account_keys,
                              uint64_t account_version, Slice token, int64_t now_s, Arena *arena,
                              Principal *out, Error *err);
