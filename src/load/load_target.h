/* load_target.h - where the server is: its addresses, and how to trust it.
 *
 * Ownership  The caller closes the target, after all its connections. Its options are copied.
 * Threads    Belongs to one thread.
 */
#pragma once

#include "load/request_maker.h"

#include <netdb.h>

typedef struct LoadTargetOptions {
    Url url;
    const char *cert_file; /* PEM, trusted instead of the system's authorities; NULL for those */
    bool is_insecure;      /* any certificate is trusted */
} LoadTargetOptions;

typedef struct LoadTarget {
    char *host; /* for TLS */
    struct addrinfo *addresses;
    const struct addrinfo *current; /* the one that has answered; NULL until then */
    struct ssl_ctx_st *tls;         /* NULL without TLS */
} LoadTarget;

/* Looks up the host. Nothing is connected yet. */
MUST_USE Status load_target_open(const LoadTargetOptions *options, LoadTarget **out, Error *err);
void load_target_close(LoadTarget *target); /* accepts NULL */
DEFINE_AUTO(LoadTarget *, load_target_close)

/* Every address is one of this machine itself. */
bool load_target_is_loopback(const LoadTarget *target);
