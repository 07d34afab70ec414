/* connection.c - see connection.h. */
#include "bench/connection.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

Status address_resolve(const Url *url, struct addrinfo **out, Error *err)
{
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 1024);
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    int code =
        getaddrinfo(arena_cstr(&arena, url->host), arena_cstr(&arena, url->port), &hints, out);
    if (code != 0)
        return error_set(err, STATUS_IO, SUB_NONE, "cannot resolve '%.*s': %s",
                         SLICE_CUT(url->authority, 100), gai_strerror(code));
    return STATUS_OK;
}

void address_free(struct addrinfo *address)
{
    if (address != NULL)
        freeaddrinfo(address);
}

void connection_init(Connection *c, bool keep_body)
{
    *c = (Connection){.fd = -1};
    buf_init(&c->out, REPLY_BODY_BYTES_MAX);
    reply_init(&c->reply, keep_body);
}

void connection_done(Connection *c)
{
    if (c->fd >= 0)
        (void)close(c->fd); /* nothing of ours is lost with it */
    c->fd = -1;
    buf_done(&c->out);
    reply_done(&c->reply);
}

Status connection_open(Connection *c, const struct addrinfo *address, Error *err)
{
    if (c->fd >= 0)
        (void)close(c->fd);
    buf_reset(&c->out);
    reply_reset(&c->reply);
    c->out_sent = 0;
    c->is_busy = false;
    c->fd = socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (c->fd < 0)
        return error_set_errno(err, errno, "cannot make a socket");
    /* The timeout for sending also limits connect. */
    struct timeval timeout = {.tv_sec = CONNECTION_TIMEOUT_S};
    int on = 1;
    if (setsockopt(c->fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout)) != 0 ||
        setsockopt(c->fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout)) != 0 ||
        setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) != 0)
        return error_set_errno(err, errno, "cannot set the options of a socket");
    if (connect(c->fd, address->ai_addr, address->ai_addrlen) != 0)
        return error_set_errno(err, errno, "cannot connect");
    return STATUS_OK;
}

Status connection_unblock(Connection *c, Error *err)
{
    int flags = fcntl(c->fd, F_GETFL);
    if (flags < 0 || fcntl(c->fd, F_SETFL, flags | O_NONBLOCK) != 0)
        return error_set_errno(err, errno, "cannot make a socket non-blocking");
    return STATUS_OK;
}

Status connection_send(Connection *c, bool *complete, Error *err)
{
    while (c->out_sent < c->out.len) {
        ssize_t sent =
            send(c->fd, c->out.ptr + c->out_sent, c->out.len - c->out_sent, MSG_NOSIGNAL);
        if (sent < 0 && errno == EAGAIN) {
            *complete = false;
            return STATUS_OK;
        }
        if (sent < 0 && errno != EINTR)
            return error_set_errno(err, errno, "cannot send");
        c->out_sent += sent > 0 ? (size_t)sent : 0;
    }
    *complete = true;
    return STATUS_OK;
}

Status connection_receive(Connection *c, bool *complete, Error *err)
{
    char bytes[32768];
    ssize_t got = recv(c->fd, bytes, sizeof(bytes), 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
        *complete = false;
        return STATUS_OK;
    }
    if (got < 0)
        return error_set_errno(err, errno, "cannot receive");
    if (got == 0)
        return error_set(err, STATUS_IO, SUB_NONE, "the server closed the connection");
    size_t used = 0;
    TRY(reply_feed(&c->reply, slice_make(bytes, (size_t)got), &used, complete, err));
    if (used != (size_t)got)
        return error_set(err, STATUS_IO, SUB_NONE,
                         "expected one answer, found more bytes after it");
    return STATUS_OK;
}
