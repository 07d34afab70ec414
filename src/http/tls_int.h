/* tls_int.h - the TLS settings shared by all connections.
 *
 * Threads    An SSL_CTX may be used by all loops at once; OpenSSL counts the references.
 */
#pragma once

#include "base/error.h"

#include <openssl/ssl.h>

/* Loads the certificate chain and its key. '*out' is freed with SSL_CTX_free. */
MUST_USE Status tls_open(const char *cert_file, const char *key_file, SSL_CTX **out, Error *err);

/* STATUS_IO with OpenSSL's own words after the message. */
MUST_USE Status tls_error(Error *err, const char *format, ...) PRINTF_LIKE(2, 3);
