/* document_remote_int.h - queries over ranges that several nodes serve.
 *
 *     client --> page here --+--> ranges here
 *                            +--> query_batch() of another node, by the client's own request
 *
 * A query goes to a node that serves something of what it asks for (document_query.c). That node
 * makes the page. Of ranges of other nodes it asks their owners for documents (remote_batch.h): it
 * sends them the client's request, with headers that name the range and what is asked of it. The
 * owner checks the credential, the session token and the budget once more, and is paid for what it
 * reads; the page's charge is the sum.
 *
 * An owner that is not the owner any more, or does not answer, makes the page begin again: it fails
 * with STATUS_NOT_OWNER, and forward_int.h runs it anew. Reading twice does no harm.
 *
 * A batch waits for no other node, and has threads of its own (ApiOptions.node_workers): nodes that
 * ask each other never wait in a circle.
 *
 * Threads    The page's worker, which gives its turn away while it waits for an answer.
 */
#pragma once

#include "api/items/document_query_int.h"

/* Of batches: each holds little, and waits for no other page's memory. */
#define BATCH_MEMORY_MAX ((size_t)64 << 20)

/* ---- the node that makes the page ---- */

/* Readies 'q' to ask for ranges of other nodes. After forward_keep. */
void document_remote_begin(DocumentQuery *q);

/* The target is another node's. */
void document_remote_target(DocumentQuery *q, QueryTarget *target);

/* What other nodes were paid, and their session tokens, for the answer. */
void document_remote_end(DocumentQuery *q);

/* ---- a node that is asked ---- */

/* Reads what is asked, if the request is for a batch ('is_batch' of the query). */
MUST_USE Status document_batch_read(ApiRequest *r, DocumentQuery *q, Error *err);
MUST_USE Status document_batch_run(DocumentQuery *q);
