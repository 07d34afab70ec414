/* serve_seed.h - `orrery serve --seed`: the server's own requests to itself, before it is ready.
 *
 * It is what `orrery seed` does, through the port of the server: so there is one implementation,
 * and what is seeded went through every check of the protocol, the audit log included.
 */
#pragma once

#include "api/core/key_store.h"
#include "base/error.h"
#include "base/log.h"
#include "seed/seed_file.h"

typedef struct ServeSeedOptions {
    const SeedFile *file;
    const char *endpoint;   /* of this server */
    const char *key;        /* of an option; NULL if there is none */
    KeyStoreOptions stored; /* where it is otherwise, unless the well-known key is used */
    const Log *log;
} ServeSeedOptions;

/* '*is_stopped' if a signal to stop has come; SIGINT and SIGTERM are blocked before and after. */
MUST_USE Status serve_seed(const ServeSeedOptions *options, bool *is_stopped, Error *err);
