/* listen.c - see listen_int.h.
 *
 * The sockets of the loops share the port with SO_REUSEPORT. That would also let them share it with
 * another Orrery on the same machine, and the kernel would distribute the clients over the two. So
 * each address is first bound without that option, which fails if another process listens there,
 * and the loops' sockets are bound after that one is closed. If another process takes the port in
 * between, the second bind fails, unless it is an Orrery that starts in the same millisecond.
 */
#include "http/listen_int.h"

#include "base/mem.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { BACKLOG = 4096, PORT_ATTEMPTS = 16 };

typedef struct Address {
    struct sockaddr_storage storage;
    socklen_t len;
    int family;
    bool is_only_v6;
    char text[NI_MAXHOST];
} Address;

typedef struct Addresses {
    size_t count;
    Address list[LISTEN_ADDRESSES_MAX];
} Addresses;

static Status resolve(const char *host, Addresses *out, Error *err);
static Status probe_all(Addresses *addresses, uint16_t *port, const Log *log, Error *err);
static Status bind_all(const Addresses *addresses, Listeners *listeners, Error *err);

Status listen_open(const char *host, uint16_t port, uint32_t loop_count, const Log *log,
                   Listeners *out, Error *err)
{
    ASSERT(loop_count > 0);
    Addresses addresses = {0};
    TRY(resolve(host, &addresses, err));

    Status status = STATUS_OK;
    for (int attempt = 0; attempt < PORT_ATTEMPTS; attempt++) {
        uint16_t chosen = port;
        Listeners listeners = {.loop_count = loop_count};
        status = probe_all(&addresses, &chosen, log, err);
        if (status == STATUS_OK) {
            listeners.port = chosen;
            status = bind_all(&addresses, &listeners, err);
        }
        if (status == STATUS_OK) {
            *out = listeners;
            return STATUS_OK;
        }
        /* A port that was free on one address may be taken on the next; then another is tried. */
        if (port != 0 || status != STATUS_CONFLICT)
            break;
    }
    return status;
}

void listen_close(Listeners *listeners)
{
    for (size_t i = 0; i < listeners->loop_count * listeners->address_count; i++)
        if (listeners->fds[i] >= 0)
            (void)close(listeners->fds[i]);
    mem_free(listeners->fds);
    *listeners = (Listeners){0};
}

static void add_address(Addresses *addresses, const struct addrinfo *info)
{
    if (addresses->count == LISTEN_ADDRESSES_MAX ||
        (info->ai_family != AF_INET && info->ai_family != AF_INET6))
        return;
    for (size_t i = 0; i < addresses->count; i++)
        if (addresses->list[i].len == info->ai_addrlen &&
            memcmp(&addresses->list[i].storage, info->ai_addr, info->ai_addrlen) == 0)
            return; /* the same line twice in /etc/hosts */
    Address *address = &addresses->list[addresses->count];
    address->len = info->ai_addrlen;
    address->family = info->ai_family;
    memcpy(&address->storage, info->ai_addr, info->ai_addrlen);
    if (getnameinfo(info->ai_addr, info->ai_addrlen, address->text, sizeof(address->text), NULL, 0,
                    NI_NUMERICHOST) == 0)
        addresses->count++;
}

static Status resolve(const char *host, Addresses *out, Error *err)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE};
    struct addrinfo *found = NULL;
    int code = getaddrinfo(host, NULL, &hints, &found);
    if (code != 0)
        return error_set(err, STATUS_IO, SUB_NONE, "cannot resolve the host '%s': %s", host,
                         gai_strerror(code));
    for (const struct addrinfo *info = found; info != NULL; info = info->ai_next)
        add_address(out, info);
    freeaddrinfo(found);
    if (out->count == 0)
        return error_set(err, STATUS_IO, SUB_NONE, "the host '%s' has no address", host);
    /* "::" alone serves IPv4 as well; next to an IPv4 address it must leave that port alone. */
    for (size_t i = 0; i < out->count; i++)
        out->list[i].is_only_v6 = out->count > 1;
    return STATUS_OK;
}

static void set_port(Address *address, uint16_t port)
{
    if (address->family == AF_INET)
        ((struct sockaddr_in *)&address->storage)->sin_port = htons(port);
    else
        ((struct sockaddr_in6 *)&address->storage)->sin6_port = htons(port);
}

static bool get_port(int fd, uint16_t *port)
{
    struct sockaddr_storage storage = {0};
    socklen_t len = sizeof(storage);
    if (getsockname(fd, (struct sockaddr *)&storage, &len) != 0)
        return false;
    *port = ntohs(storage.ss_family == AF_INET ? ((struct sockaddr_in *)&storage)->sin_port
                                               : ((struct sockaddr_in6 *)&storage)->sin6_port);
    return true;
}

static Status set_option(int fd, int level, int option, const char *name, Error *err)
{
    int on = 1;
    if (setsockopt(fd, level, option, &on, sizeof(on)) != 0)
        return error_set_errno(err, errno, "cannot set %s", name);
    return STATUS_OK;
}

static Status bind_socket(int fd, const Address *address, uint16_t port, Error *err)
{
    TRY(set_option(fd, SOL_SOCKET, SO_REUSEADDR, "SO_REUSEADDR", err));
    if (address->family == AF_INET6 && address->is_only_v6)
        TRY(set_option(fd, IPPROTO_IPV6, IPV6_V6ONLY, "IPV6_V6ONLY", err));
    if (bind(fd, (const struct sockaddr *)&address->storage, address->len) == 0)
        return STATUS_OK;
    if (errno == EADDRINUSE)
        return error_set(err, STATUS_CONFLICT, SUB_NONE,
                         "port %u on %s is in use; choose another with --port", port,
                         address->text);
    if (errno == EADDRNOTAVAIL || errno == EAFNOSUPPORT)
        return error_set(err, STATUS_NOT_FOUND, SUB_NONE, "this machine has no address %s",
                         address->text);
    return error_set_errno(err, errno, "cannot bind port %u on %s", port, address->text);
}

/* Whether the address is free. The first one chooses the port if it is still 0. */
static Status probe(Address *address, uint16_t *port, Error *err)
{
    int fd = socket(address->family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 && errno == EAFNOSUPPORT)
        return error_set(err, STATUS_NOT_FOUND, SUB_NONE, "this machine cannot use %s",
                         address->text);
    if (fd < 0)
        return error_set_errno(err, errno, "cannot open a socket");
    set_port(address, *port);
    Status status = bind_socket(fd, address, *port, err);
    if (status == STATUS_OK && *port == 0 && !get_port(fd, port))
        status = error_set_errno(err, errno, "cannot tell the port on %s", address->text);
    (void)close(fd);
    if (status == STATUS_OK)
        set_port(address, *port);
    return status;
}

/* Removes addresses from the list that this machine does not have, as long as one remains. */
static Status probe_all(Addresses *addresses, uint16_t *port, const Log *log, Error *err)
{
    Status missing = STATUS_OK;
    size_t usable = 0;
    for (size_t i = 0; i < addresses->count; i++) {
        Address *address = &addresses->list[i];
        Status status = probe(address, port, err);
        if (status == STATUS_NOT_FOUND && address->family == AF_INET6) {
            missing = status;
            LOG_WARN(log, "http.address_skipped", "address=%s reason=\"%s\"", address->text,
                     err->message);
            continue;
        }
        if (status != STATUS_OK)
            return status;
        addresses->list[usable++] = *address;
    }
    if (usable == 0)
        return missing; /* 'err' describes the last one */
    addresses->count = usable;
    return STATUS_OK;
}

static Status bind_one(const Address *address, uint16_t port, int *out, Error *err)
{
    int fd = socket(address->family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return error_set_errno(err, errno, "cannot open a socket");
    Status status = set_option(fd, SOL_SOCKET, SO_REUSEPORT, "SO_REUSEPORT", err);
    /* Accepted sockets inherit it. */
    if (status == STATUS_OK)
        status = set_option(fd, IPPROTO_TCP, TCP_NODELAY, "TCP_NODELAY", err);
    if (status == STATUS_OK)
        status = bind_socket(fd, address, port, err);
    if (status == STATUS_OK && listen(fd, BACKLOG) != 0)
        status = error_set_errno(err, errno, "cannot listen on port %u of %s", port, address->text);
    if (status != STATUS_OK) {
        (void)close(fd);
        return status;
    }
    *out = fd;
    return STATUS_OK;
}

static Status bind_all(const Addresses *addresses, Listeners *listeners, Error *err)
{
    listeners->address_count = addresses->count;
    size_t count = listeners->loop_count * addresses->count;
    listeners->fds = MEM_NEW_ARRAY(int, count);
    for (size_t i = 0; i < count; i++)
        listeners->fds[i] = -1;
    for (size_t i = 0; i < count; i++) {
        Status status = bind_one(&addresses->list[i % addresses->count], listeners->port,
                                 &listeners->fds[i], err);
        if (status != STATUS_OK) {
            listen_close(listeners);
            return status;
        }
    }
    return STATUS_OK;
}
