/* node_proof.c - see node_proof_int.h.
 *
 *     client                                  server
 *       | ------------ TLS 1.3 handshake -------> |
 *       | client nonce, 32 random bytes --------> |
 *       | <-------- server nonce, 32 random bytes |
 *       | client proof -------------------------> |  checked, or the connection is closed
 *       | <------------------------- server proof |  checked, or the connection is closed
 *       | requests                                |
 *
 *     proof = HMAC-SHA256(secret, role | client nonce | server nonce | exporter)
 *     role  = "orrery node client" or "orrery node server"
 *     exporter = 32 bytes (RFC 8446, 7.5) for EXPORTER_LABEL, without a context
 *
 * The roles differ, so a proof cannot be sent back to its maker. The server proves itself only
 * after the client has, so strangers learn nothing from it.
 *
 * TLS 1.2 is not offered, although the server speaks it with clients: its exporter binds both sides
 * only with an extension, and all nodes speak 1.3. There are no tickets: a resumed session would
 * save little, since connections are kept.
 */
#include "http/node_proof_int.h"

#include "base/mem.h"
#include "http/cert_int.h"
#include "http/tls_int.h"

#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/hmac.h>

#define EXPORTER_LABEL "EXPERIMENTAL-orrery-node"

enum { ROLE_BYTES = 18, EXPORTER_BYTES = 32 };

DEFINE_AUTO(EVP_PKEY *, EVP_PKEY_free)
DEFINE_AUTO(X509 *, X509_free)

static Status open_context(const SSL_METHOD *method, SSL_CTX **out, Error *err);
static Status add_certificate(SSL_CTX *context, Error *err);

Status node_tls_open(const NodeSecret *secret, NodeTls **out, Error *err)
{
    ERR_clear_error();
    AUTO(node_tls_close) NodeTls *tls = MEM_NEW(NodeTls);
    tls->secret = *secret;
    TRY(open_context(TLS_server_method(), &tls->server, err));
    TRY(open_context(TLS_client_method(), &tls->client, err));
    TRY(add_certificate(tls->server, err));
    *out = TAKE(tls);
    return STATUS_OK;
}

void node_tls_close(NodeTls *tls)
{
    if (tls == NULL)
        return;
    SSL_CTX_free(tls->server);
    SSL_CTX_free(tls->client);
    OPENSSL_cleanse(&tls->secret, sizeof(tls->secret));
    mem_free(tls);
}

static Status open_context(const SSL_METHOD *method, SSL_CTX **out, Error *err)
{
    *out = SSL_CTX_new(method);
    if (*out == NULL || SSL_CTX_set_min_proto_version(*out, TLS1_3_VERSION) != 1)
        return tls_error(err, "cannot set up TLS between nodes");
    tls_configure(*out);
    SSL_CTX_set_num_tickets(*out, 0);
    SSL_CTX_set_verify(*out, SSL_VERIFY_NONE, NULL); /* the proof takes its place */
    return STATUS_OK;
}

static Status add_certificate(SSL_CTX *context, Error *err)
{
    AUTO(EVP_PKEY_free) EVP_PKEY *key = NULL;
    AUTO(X509_free) X509 *cert = NULL;
    TRY(cert_make_own(&key, &cert, err));
    if (SSL_CTX_use_certificate(context, cert) != 1 || SSL_CTX_use_PrivateKey(context, key) != 1)
        return tls_error(err, "cannot use a certificate between nodes");
    return STATUS_OK;
}

/* The proof that 'prover' must send. */
static bool compute(const NodeProof *proof, const NodeTls *tls, SSL *ssl, TransportSide prover,
                    uint8_t out[NODE_PROOF_BYTES])
{
    bool is_client = proof->side == TRANSPORT_CLIENT;
    const char *role = prover == TRANSPORT_CLIENT ? "orrery node client" : "orrery node server";
    uint8_t text[ROLE_BYTES + 2 * NODE_NONCE_BYTES + EXPORTER_BYTES];
    uint8_t *at = text;
    memcpy(at, role, ROLE_BYTES);
    at += ROLE_BYTES;
    memcpy(at, is_client ? proof->nonce : proof->other_nonce, NODE_NONCE_BYTES);
    at += NODE_NONCE_BYTES;
    memcpy(at, is_client ? proof->other_nonce : proof->nonce, NODE_NONCE_BYTES);
    at += NODE_NONCE_BYTES;
    ERR_clear_error();
    bool is_made = SSL_export_keying_material(ssl, at, EXPORTER_BYTES, EXPORTER_LABEL,
                                              sizeof(EXPORTER_LABEL) - 1, NULL, 0, 0) == 1 &&
                   HMAC(EVP_sha256(), tls->secret.bytes, NODE_SECRET_BYTES, text, sizeof(text), out,
                        NULL) != NULL;
    OPENSSL_cleanse(text, sizeof(text));
    return is_made;
}

/* Nothing else is being sent, so a socket without room for this has a dead peer. */
static bool send_message(Transport *transport, const uint8_t bytes[NODE_PROOF_BYTES],
                         char record[TLS_RECORD_BYTES])
{
    Output output = {.head = slice_make(bytes, NODE_PROOF_BYTES)};
    return transport_write(transport, &output, record) == TRANSPORT_DONE;
}

static bool send_proof(const NodeProof *proof, const NodeTls *tls, Transport *transport,
                       char record[TLS_RECORD_BYTES])
{
    uint8_t own[NODE_PROOF_BYTES];
    return compute(proof, tls, transport->ssl, proof->side, own) &&
           send_message(transport, own, record);
}

static bool check_proof(const NodeProof *proof, const NodeTls *tls, const Transport *transport)
{
    uint8_t expected[NODE_PROOF_BYTES];
    TransportSide other = proof->side == TRANSPORT_CLIENT ? TRANSPORT_SERVER : TRANSPORT_CLIENT;
    return compute(proof, tls, transport->ssl, other, expected) &&
           CRYPTO_memcmp(expected, proof->incoming, NODE_PROOF_BYTES) == 0;
}

static bool begin(NodeProof *proof, Transport *transport, char record[TLS_RECORD_BYTES])
{
    random_secret(proof->nonce, sizeof(proof->nonce));
    proof->state = NODE_PROOF_NONCE;
    return send_message(transport, proof->nonce, record);
}

/* A whole message has arrived. */
static bool take_message(NodeProof *proof, const NodeTls *tls, Transport *transport,
                         char record[TLS_RECORD_BYTES])
{
    proof->arrived = 0;
    bool is_client = proof->side == TRANSPORT_CLIENT;
    if (proof->state == NODE_PROOF_NONCE) {
        memcpy(proof->other_nonce, proof->incoming, NODE_NONCE_BYTES);
        proof->state = NODE_PROOF_PROOF;
        return !is_client || send_proof(proof, tls, transport, record);
    }
    ASSERT(proof->state == NODE_PROOF_PROOF);
    if (!check_proof(proof, tls, transport))
        return false;
    proof->state = NODE_PROOF_PROVED;
    return is_client || send_proof(proof, tls, transport, record);
}

TransportStep node_proof_step(NodeProof *proof, const NodeTls *tls, Transport *transport,
                              char record[TLS_RECORD_BYTES])
{
    if (proof->state == NODE_PROOF_BEGIN && !begin(proof, transport, record))
        return TRANSPORT_BROKEN;
    while (proof->state != NODE_PROOF_PROVED) {
        size_t len = 0;
        bool has_more = false;
        TransportStep step = transport_read(transport, (char *)proof->incoming + proof->arrived,
                                            NODE_PROOF_BYTES - proof->arrived, &len, &has_more);
        if (step != TRANSPORT_DONE)
            return step == TRANSPORT_BLOCKED ? TRANSPORT_BLOCKED : TRANSPORT_BROKEN;
        proof->arrived += len;
        if (proof->arrived == NODE_PROOF_BYTES && !take_message(proof, tls, transport, record))
            return TRANSPORT_BROKEN;
    }
    return TRANSPORT_DONE;
}
