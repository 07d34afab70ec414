/* tls.c - see tls_int.h. */
#include "http/tls_int.h"

#include <openssl/err.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

DEFINE_AUTO(SSL_CTX *, SSL_CTX_free)

/* For TLS 1.2: authenticated encryption (AEAD) with forward secrecy, and nothing else. Those of TLS
 * 1.3 are all of this kind. */
#define CIPHERS                                                  \
    "ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256:" \
    "ECDHE-ECDSA-AES256-GCM-SHA384:ECDHE-RSA-AES256-GCM-SHA384:" \
    "ECDHE-ECDSA-CHACHA20-POLY1305:ECDHE-RSA-CHACHA20-POLY1305"

static const unsigned char PROTOCOLS[] = "\x08http/1.1";

/* A client that offers only HTTP/2 gets no ALPN answer and may still try HTTP/1.1. */
static int choose_protocol(SSL *ssl, const unsigned char **out, unsigned char *out_len,
                           const unsigned char *offered, unsigned offered_len, void *arg)
{
    (void)ssl;
    (void)arg;
    unsigned char *chosen = NULL;
    int result = SSL_select_next_proto(&chosen, out_len, PROTOCOLS, sizeof(PROTOCOLS) - 1, offered,
                                       offered_len);
    *out = chosen;
    return result == OPENSSL_NPN_NEGOTIATED ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_NOACK;
}

static void configure(SSL_CTX *tls)
{
    SSL_CTX_set_options(tls, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION |
                                 SSL_OP_CIPHER_SERVER_PREFERENCE | SSL_OP_IGNORE_UNEXPECTED_EOF);
    /* An idle connection keeps no record buffers (32 KB); reading ahead makes it one read(2) a
     * record instead of two. */
    SSL_CTX_set_mode(tls, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE |
                              SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    SSL_CTX_set_read_ahead(tls, 1);
    /* Sessions are resumed from tickets that the client keeps: no table here, no lock. */
    SSL_CTX_set_session_cache_mode(tls, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_num_tickets(tls, 1);
    SSL_CTX_set_alpn_select_cb(tls, choose_protocol, NULL);
}

Status tls_open(const char *cert_file, const char *key_file, SSL_CTX **out, Error *err)
{
    ERR_clear_error();
    AUTO(SSL_CTX_free) SSL_CTX *tls = SSL_CTX_new(TLS_server_method());
    if (tls == NULL || SSL_CTX_set_min_proto_version(tls, TLS1_2_VERSION) != 1 ||
        SSL_CTX_set_cipher_list(tls, CIPHERS) != 1)
        return tls_error(err, "cannot set up TLS");
    configure(tls);
    if (SSL_CTX_use_certificate_chain_file(tls, cert_file) != 1)
        return tls_error(err, "cannot load the certificate '%s'", cert_file);
    if (SSL_CTX_use_PrivateKey_file(tls, key_file, SSL_FILETYPE_PEM) != 1) {
        if (ERR_GET_REASON(ERR_peek_error()) == X509_R_KEY_VALUES_MISMATCH)
            return tls_error(err, "the key '%s' does not belong to the certificate '%s'", key_file,
                             cert_file);
        return tls_error(err, "cannot load the key '%s'", key_file);
    }
    if (SSL_CTX_check_private_key(tls) != 1)
        return tls_error(err, "the key '%s' does not belong to the certificate '%s'", key_file,
                         cert_file);
    *out = TAKE(tls);
    return STATUS_OK;
}

Status tls_error(Error *err, const char *format, ...)
{
    char message[400];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(message, sizeof(message), format, args);
    va_end(args);
    unsigned long code = ERR_peek_error();
    ERR_clear_error();
    const char *reason =
        ERR_SYSTEM_ERROR(code) ? strerror(ERR_GET_REASON(code)) : ERR_reason_error_string(code);
    return error_set(err, STATUS_IO, SUB_NONE, "%s%s%s", message, reason != NULL ? ": " : "",
                     reason != NULL ? reason : "");
}
