/* node_address_int.h - HOST:PORT of a node, and the socket addresses that it stands for.
 *
 * Threads    Pure functions, but a name takes as long to resolve as the system needs.
 */
#pragma once

#include "base/error.h"
#include "base/slice.h"

#include <sys/socket.h>

#define NODE_ADDRESS_TEXT_MAX 280
#define NODE_ADDRESSES_MAX    4

typedef struct NodeAddresses {
    size_t count;
    struct {
        struct sockaddr_storage storage;
        socklen_t len;
    } list[NODE_ADDRESSES_MAX];
} NodeAddresses;

typedef enum NodeAddressKind {
    NODE_ADDRESS_NUMERIC, /* fails for a name, with '*is_name' set, and never waits */
    NODE_ADDRESS_ANY,     /* asks the system for a name's addresses, and waits for them */
} NodeAddressKind;

MUST_USE Status node_address_resolve(Slice text, NodeAddressKind kind, NodeAddresses *out,
                                     bool *is_name, Error *err);

/* Begins to connect a socket that does not block; '*fd' is the caller's. */
MUST_USE Status node_address_connect(const NodeAddresses *addresses, size_t index, int *fd,
                                     Error *err);

/* When that socket is writable: whether it is connected. */
MUST_USE Status node_address_connected(int fd, Error *err);
