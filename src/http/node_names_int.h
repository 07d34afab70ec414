/* node_names_int.h - the addresses of nodes that have names, for threads that wait, but not for
 * long.
 *
 * The system's resolver knows no deadline, and may take many seconds while it is asked in vain. So
 * a thread asks it, for each name, and callers wait for that thread until their own time is over.
 * What was found is kept until no connection can be made to it; after that it is used only if
 * nothing newer is found in time.
 *
 * Ownership  node_names_free waits for the threads, hence for the resolver.
 * Threads    Any.
 */
#pragma once

#include "http/node_address_int.h"

/* Names that are kept at once. A cluster has fewer nodes. */
#define NODE_NAMES_MAX 256

typedef struct NodeNames NodeNames;

/* Resolves a name, and waits for that. */
typedef Status NodeResolve(Slice text, NodeAddresses *out, Error *err);

NodeNames *node_names_new(NodeResolve *resolve); /* NULL for the system's */
void node_names_free(NodeNames *names);          /* accepts NULL */

/* The addresses that HOST:PORT stands for. STATUS_TIMEOUT if none are known by the deadline, which
 * is one of cond_now_us. */
MUST_USE Status node_names_find(NodeNames *names, Slice text, uint64_t deadline_us,
                                NodeAddresses *out, Error *err);

/* No connection could be made to what was found: it is looked for again. */
void node_names_doubt(NodeNames *names, Slice text);
