/* tls.c - see tls_int.h. */
#include "http/tls_int.h"

#include "base/mem.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void bio_free(BIO *bio)
{
    (void)BIO_free(bio); /* a memory buffer: nothing can fail */
}
DEFINE_AUTO(BIO *, bio_free)

static Status load_pair(SSL_CTX *context, const TlsFiles *files, Error *err);
static Status trust_clients(SSL_CTX *context, const char *path, Error *err);
static Status print_chain(Tls *tls, Error *err);

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

/* OpenSSL would ask on the terminal, and the server would wait there. */
static int give_no_password(char *text, int size, int is_writing, void *arg)
{
    (void)text;
    (void)size;
    (void)is_writing;
    (void)arg;
    return -1;
}

void tls_configure(SSL_CTX *tls)
{
    SSL_CTX_set_default_passwd_cb(tls, give_no_password);
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

Status tls_open(const TlsFiles *files, Tls **out, Error *err)
{
    ERR_clear_error();
    AUTO(tls_unref) Tls *tls = MEM_NEW(Tls);
    atomic_init(&tls->refs, 1);
    tls->context = SSL_CTX_new(TLS_server_method());
    if (tls->context == NULL || SSL_CTX_set_min_proto_version(tls->context, TLS1_2_VERSION) != 1 ||
        SSL_CTX_set_cipher_list(tls->context, CIPHERS) != 1)
        return tls_error(err, "cannot set up TLS");
    tls_configure(tls->context);
    TRY(load_pair(tls->context, files, err));
    if (files->client_ca != NULL)
        TRY(trust_clients(tls->context, files->client_ca, err));
    TRY(print_chain(tls, err));
    *out = TAKE(tls);
    return STATUS_OK;
}

Tls *tls_ref(Tls *tls)
{
    if (tls != NULL)
        atomic_fetch_add_explicit(&tls->refs, 1, memory_order_relaxed);
    return tls;
}

void tls_unref(Tls *tls)
{
    if (tls == NULL || atomic_fetch_sub_explicit(&tls->refs, 1, memory_order_acq_rel) > 1)
        return;
    SSL_CTX_free(tls->context);
    mem_free(UNCONST(char, tls->certificate.ptr));
    mem_free(tls);
}

static Status load_pair(SSL_CTX *context, const TlsFiles *files, Error *err)
{
    if (SSL_CTX_use_certificate_chain_file(context, files->cert) != 1)
        return tls_error(err, "cannot load the certificate '%s'", files->cert);
    if (SSL_CTX_use_PrivateKey_file(context, files->key, SSL_FILETYPE_PEM) != 1) {
        if (ERR_GET_REASON(ERR_peek_error()) == X509_R_KEY_VALUES_MISMATCH)
            return tls_error(err, "the key '%s' does not belong to the certificate '%s'",
                             files->key, files->cert);
        return tls_error(err, "cannot load the key '%s'", files->key);
    }
    if (SSL_CTX_check_private_key(context) != 1)
        return tls_error(err, "the key '%s' does not belong to the certificate '%s'", files->key,
                         files->cert);
    return STATUS_OK;
}

/* Sessions that were begun under other settings cannot be resumed, since each context has a ticket
 * key of its own. So a client of an authority that is no longer trusted must show a certificate
 * again. */
static Status trust_clients(SSL_CTX *context, const char *path, Error *err)
{
    static const unsigned char SESSIONS[] = "orrery";
    STACK_OF(X509_NAME) *names = SSL_load_client_CA_file(path);
    if (names == NULL || SSL_CTX_load_verify_locations(context, path, NULL) != 1) {
        sk_X509_NAME_pop_free(names, X509_NAME_free);
        return tls_error(err, "cannot load the authorities of clients '%s'", path);
    }
    SSL_CTX_set_client_CA_list(context, names); /* which clients are shown; takes it */
    if (SSL_CTX_set_session_id_context(context, SESSIONS, sizeof(SESSIONS) - 1) != 1)
        return tls_error(err, "cannot set up TLS sessions");
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
    return STATUS_OK;
}

/* From what was loaded, not from the file: that may hold the key too, or be another one by now. */
static Status print_chain(Tls *tls, Error *err)
{
    STACK_OF(X509) *chain = NULL;
    X509 *first = SSL_CTX_get0_certificate(tls->context);
    AUTO(bio_free) BIO *text = BIO_new(BIO_s_mem());
    bool is_good = text != NULL && PEM_write_bio_X509(text, first) == 1 &&
                   SSL_CTX_get0_chain_certs(tls->context, &chain) == 1;
    for (int i = 0; is_good && i < sk_X509_num(chain); i++)
        is_good = PEM_write_bio_X509(text, sk_X509_value(chain, i)) == 1;
    if (!is_good)
        return tls_error(err, "cannot print the certificate");
    char *bytes = NULL;
    long len = BIO_get_mem_data(text, &bytes);
    char *copy = mem_realloc(NULL, (size_t)len);
    memcpy(copy, bytes, (size_t)len);
    tls->certificate = slice_make(copy, (size_t)len);
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
