/* key_ring.h - the keys that are good now, and changing them while requests are checked with them.
 *
 * A key comes from an option, from the data folder (key_store.h), or is the well-known development
 * key, in this order. Rotating makes a new random key, stores it and publishes it: every request
 * that begins after key_ring_rotate has returned is checked with the new set of keys, on every
 * loop. A key that an option gives cannot be rotated, because the next start would bring it back.
 *
 * Ownership  The caller closes the KeyRing after its last reader. Sets are wiped when the last
 *            reader has let go of them.
 * Threads    A KeyReader belongs to one thread, which pays one atomic load for the newest set.
 *            Everything else may be called by any thread; key_ring_rotate waits for the disk, so
 *            no loop calls it, and for other rotations.
 */
#pragma once

#include "api/core/auth.h"
#include "api/core/key_store.h"
#include "base/clock.h"

typedef struct KeyRing KeyRing;

/* How long a key is that the server makes. */
#define KEY_RING_KEY_BYTES 64
#define KEY_RING_TEXT_LEN  88 /* the same in base64 */

typedef struct KeyRingOptions {
    AuthKeyTexts given;                   /* by options; these win */
    const char *given_by[KEY_SLOT_COUNT]; /* the name of each option: "--key-file" */
    KeyStoreOptions store;                /* 'data' is NULL if keys cannot be stored */
    const Clock *clock;
} KeyRingOptions;

MUST_USE Status key_ring_open(const KeyRingOptions *options, KeyRing **out, Error *err);
void key_ring_close(KeyRing *ring); /* accepts NULL */
DEFINE_AUTO(KeyRing *, key_ring_close)

/* The newest keys, valid until this reader's next key_read. */
typedef struct KeyReader {
    KeyRing *ring;
    struct KeySet *set;
    uint64_t version; /* of the set; each has its own, and it only grows */
} KeyReader;

void key_reader_init(KeyReader *reader, KeyRing *ring);
void key_reader_done(KeyReader *reader);
const AuthKeys *key_read(KeyReader *reader);

uint64_t key_ring_version(const KeyRing *ring); /* of the newest set */

typedef enum KeySource {
    KEY_SOURCE_NONE, /* there is no such key */
    KEY_SOURCE_OPTION,
    KEY_SOURCE_STORED,
    KEY_SOURCE_DEVELOPMENT, /* the well-known key */
} KeySource;

/* What may be shown about a key. */
typedef struct KeyInfo {
    KeySource source;
    const char *given_by;    /* the option, if it is one */
    bool is_development_key; /* whatever its source */
    int64_t made_at_s;       /* wall clock; 0 if it is not known */
    uint32_t rotations;
    char fingerprint[KEY_FINGERPRINT_LEN];
} KeyInfo;

const char *key_source_name(KeySource source); /* "stored" */
void key_ring_list(KeyRing *ring, KeyInfo out[KEY_SLOT_COUNT]);

/* Makes a new key for the slot. It is durable and the only good one on return, and its text, which
 * is not terminated, is in 'text'. With a 'fingerprint', the slot must still hold the key that has
 * it; with a 'version' other than 0 no key may have been changed since the set of that version:
 * STATUS_PRECONDITION_FAILED otherwise. STATUS_CONFLICT if an option gives the key; STATUS_IO if it
 * cannot be stored. In all these cases nothing has changed. */
typedef struct KeyRotation {
    KeySlot slot;
    Slice fingerprint; /* or empty */
    uint64_t version;
} KeyRotation;
MUST_USE Status key_ring_rotate(KeyRing *ring, const KeyRotation *rotation,
                                char text[KEY_RING_TEXT_LEN], KeyInfo *info, Error *err);

/* The change to a set of stored keys that a rotation is, without a ring: for commands. */
void key_ring_renew(StoredKey *key, int64_t now_s, char text[KEY_RING_TEXT_LEN]);
