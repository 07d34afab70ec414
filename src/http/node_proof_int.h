/* node_proof_int.h - TLS between nodes, and the proof that both sides know the cluster's secret.
 *
 * The certificate is made at every start, belongs to nobody and is checked by nobody. Instead, each
 * side proves over the finished TLS connection that it has the secret. The proof covers the TLS
 * exporter, which only the two ends of one TLS connection know: somebody who terminates TLS on both
 * sides and passes the bytes on has two connections with two exporters, so the proof of one is
 * worthless on the other. The formats are at the top of node_proof.c.
 *
 * Ownership  The caller ends a NodeTls after the last connection; OpenSSL counts its contexts.
 * Threads    A NodeTls never changes: any thread. A NodeProof belongs to its connection.
 */
#pragma once

#include "http/node_link.h"
#include "http/transport_int.h"

#define NODE_NONCE_BYTES 32
#define NODE_PROOF_BYTES 32

/* What nodes need for connections between them. */
typedef struct NodeTls {
    NodeSecret secret;
    SSL_CTX *server;
    SSL_CTX *client;
} NodeTls;

MUST_USE Status node_tls_open(const NodeSecret *secret, NodeTls **out, Error *err);
void node_tls_close(NodeTls *tls); /* accepts NULL */
DEFINE_AUTO(NodeTls *, node_tls_close)

/*     BEGIN ──> NONCE ──> PROOF ──> PROVED       what is awaited from the other side */
typedef enum NodeProofState {
    NODE_PROOF_BEGIN,
    NODE_PROOF_NONCE,
    NODE_PROOF_PROOF,
    NODE_PROOF_PROVED,
} NodeProofState;

/* All zero but 'side' is the beginning. */
typedef struct NodeProof {
    TransportSide side;
    NodeProofState state;
    uint8_t nonce[NODE_NONCE_BYTES];       /* our own */
    uint8_t other_nonce[NODE_NONCE_BYTES]; /* the other side's */
    uint8_t incoming[NODE_PROOF_BYTES];    /* the message that is arriving */
    size_t arrived;                        /* bytes of it */
} NodeProof;
static_assert(NODE_NONCE_BYTES == NODE_PROOF_BYTES, "both fit into 'incoming'");

/* Goes on with the proof over a transport whose handshake is complete. DONE: the other side has
 * proved itself. BROKEN: it has not, or has gone. */
TransportStep node_proof_step(NodeProof *proof, const NodeTls *tls, Transport *transport,
                              char record[TLS_RECORD_BYTES]);
