/* key_store.h - the files of a data folder that hold the account's keys.
 *
 *     DATA/keys          the keys, sealed (sealed_keys.h)
 *     DATA/seal.key      the sealing key; or a note that it is in another file
 *
 * There are none until a key is first made by the server: then both are. If only one of them is
 * there, something has been lost, and reading fails. Never is a lost file taken for a folder
 * without keys, in which the well-known development key would be good.
 *
 * Ownership  Nothing is kept between calls.
 * Threads    key_store_read from any thread. One thread of one process writes at a time.
 */
#pragma once

#include "api/core/sealed_keys.h"

typedef struct KeyStoreOptions {
    const char *data;          /* the folder */
    const char *seal_key_file; /* holds the sealing key instead of DATA/seal.key; NULL for that */
} KeyStoreOptions;

/* '*found' is false if no key was ever stored. STATUS_CORRUPT or STATUS_IO, with a message that
 * says which file is missing or damaged, and what can be done. */
MUST_USE Status key_store_read(const KeyStoreOptions *options, StoredKeys *out, bool *found,
                               Error *err);

/* Durable on return. If it fails, the files are what they were before. */
MUST_USE Status key_store_write(const KeyStoreOptions *options, const StoredKeys *keys, Error *err);
