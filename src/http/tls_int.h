/* tls_int.h - the TLS settings shared by connections: certificate, key, whom to trust.
 *
 * Settings never change. When the files do, new settings are made of them, and the old ones live
 * until the last connection that began with them has ended.
 *
 * Ownership  A Tls is counted: tls_ref and tls_unref. OpenSSL counts the references of connections
 *            to the context by itself.
 * Threads    Any; the loops use one Tls at the same time.
 */
#pragma once

#include "base/error.h"
#include "base/slice.h"

#include <openssl/ssl.h>
#include <stdatomic.h>

typedef struct Tls {
    /* Immutable after open. */
    SSL_CTX *context;
    Slice certificate; /* PEM text of the chain, without the key; owned */
    /* Atomic. */
    _Atomic uint32_t refs;
} Tls;

typedef struct TlsFiles {
    const char *cert;      /* PEM, the chain */
    const char *key;       /* PEM */
    const char *client_ca; /* PEM, one or more authorities: clients must show a certificate of one
                              of them; NULL if they need none */
} TlsFiles;

/* Loads the files. If one of them is not whole, or the key is not the certificate's, nothing is
 * made. */
MUST_USE Status tls_open(const TlsFiles *files, Tls **out, Error *err);
Tls *tls_ref(Tls *tls);   /* accepts NULL */
void tls_unref(Tls *tls); /* accepts NULL */
DEFINE_AUTO(Tls *, tls_unref)

/* What every context of the server has: how memory, reading and sessions work. */
void tls_configure(SSL_CTX *context);

/* STATUS_IO with OpenSSL's own words after the message. */
MUST_USE Status tls_error(Error *err, const char *format, ...) PRINTF_LIKE(2, 3);
