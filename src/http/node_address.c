/* node_address.c - see node_address_int.h. */
#include "http/node_address_int.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <unistd.h>

enum { PORT_TEXT_MAX = 6 };

/* "host:port" or "[2001:db8::1]:port". */
static bool split(Slice text, char host[NODE_ADDRESS_TEXT_MAX], char port[PORT_TEXT_MAX])
{
    size_t colon = text.len;
    while (colon > 0 && text.ptr[colon - 1] != ':')
        colon--;
    if (colon < 2 || text.len >= NODE_ADDRESS_TEXT_MAX)
        return false;
    Slice name = slice_first(text, colon - 1);
    Slice number = slice_from(text, colon);
    uint64_t value = 0;
    if (!slice_to_u64(number, &value) || value == 0 || value > UINT16_MAX)
        return false;
    if (name.ptr[0] == '[') {
        if (name.len < 3 || name.ptr[name.len - 1] != ']')
            return false;
        name = slice_make(name.ptr + 1, name.len - 2);
    } else if (slice_find(name, ':') < name.len) {
        return false; /* where would the port begin? */
    }
    for (size_t i = 0; i < name.len; i++)
        if ((unsigned char)name.ptr[i] <= ' ' || (unsigned char)name.ptr[i] >= 0x7f)
            return false;
    (void)snprintf(host, NODE_ADDRESS_TEXT_MAX, "%.*s", SLICE_ARG(name));
    (void)snprintf(port, PORT_TEXT_MAX, "%u", (unsigned)value);
    return true;
}

Status node_address_resolve(Slice text, NodeAddressKind kind, NodeAddresses *out, bool *is_name,
                            Error *err)
{
    char host[NODE_ADDRESS_TEXT_MAX];
    char port[PORT_TEXT_MAX];
    if (!split(text, host, port))
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "The address '%.*s' of a node is not HOST:PORT.", SLICE_CUT(text, 100));
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM,
                             .ai_flags = AI_NUMERICSERV |
                                         (kind == NODE_ADDRESS_NUMERIC ? AI_NUMERICHOST : 0)};
    struct addrinfo *found = NULL;
    int code = getaddrinfo(host, port, &hints, &found);
    *is_name = code == EAI_NONAME && kind == NODE_ADDRESS_NUMERIC;
    if (code != 0)
        return error_set(err, STATUS_UNAVAILABLE, SUB_NONE, "Cannot resolve the node '%s': %s.",
                         host, gai_strerror(code));
    NodeAddresses addresses = {0};
    for (const struct addrinfo *info = found; info != NULL; info = info->ai_next) {
        bool is_usable = info->ai_family == AF_INET || info->ai_family == AF_INET6;
        if (!is_usable || addresses.count == NODE_ADDRESSES_MAX)
            continue;
        memcpy(&addresses.list[addresses.count].storage, info->ai_addr, info->ai_addrlen);
        addresses.list[addresses.count++].len = info->ai_addrlen;
    }
    freeaddrinfo(found);
    if (addresses.count == 0)
        return error_set(err, STATUS_UNAVAILABLE, SUB_NONE, "The node '%s' has no address.", host);
    *out = addresses;
    return STATUS_OK;
}

static Status cannot_connect(int code, Error *err)
{
    return error_set(err, STATUS_UNAVAILABLE, SUB_NONE, "Cannot connect to the node: %s.",
                     strerror(code));
}

Status node_address_connect(const NodeAddresses *addresses, size_t index, int *fd, Error *err)
{
    const struct sockaddr *address = (const struct sockaddr *)&addresses->list[index].storage;
    int sock = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (sock < 0)
        return cannot_connect(errno, err);
    int on = 1; /* without it requests are slower, and not wrong */
    (void)setsockopt(sock, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    if (connect(sock, address, addresses->list[index].len) != 0 && errno != EINPROGRESS) {
        Status status = cannot_connect(errno, err);
        (void)close(sock);
        return status;
    }
    *fd = sock;
    return STATUS_OK;
}

Status node_address_connected(int fd, Error *err)
{
    int code = 0;
    socklen_t len = sizeof(code);
    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &code, &len) != 0)
        code = errno;
    return code == 0 ? STATUS_OK : cannot_connect(code, err);
}
