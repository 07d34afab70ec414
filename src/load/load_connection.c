/* load_connection.c - see load_connection.h. */
#include "load/load_connection.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509_vfy.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

void load_connection_init(LoadConnection *c, bool keep_body)
{
    *c = (LoadConnection){.fd = -1};
    buf_init(&c->out, REPLY_BODY_BYTES_MAX);
    reply_init(&c->reply, keep_body);
}

static void close_socket(LoadConnection *c)
{
    SSL_free(c->tls); /* nothing of ours is lost with either */
    if (c->fd >= 0)
        (void)close(c->fd);
    c->tls = NULL;
    c->fd = -1;
}

void load_connection_done(LoadConnection *c)
{
    close_socket(c);
    buf_done(&c->out);
    reply_done(&c->reply);
}

static Status connect_to(LoadConnection *c, const struct addrinfo *address, Error *err)
{
    close_socket(c);
    c->fd = socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (c->fd < 0)
        return error_set_errno(err, errno, "cannot make a socket");
    /* The timeout for sending also limits connect. */
    struct timeval timeout = {.tv_sec = LOAD_CONNECTION_TIMEOUT_S};
    int on = 1;
    if (setsockopt(c->fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout)) != 0 ||
        setsockopt(c->fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout)) != 0 ||
        setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) != 0)
        return error_set_errno(err, errno, "cannot set the options of a socket");
    if (connect(c->fd, address->ai_addr, address->ai_addrlen) != 0) {
        int code = errno == EINPROGRESS ? ETIMEDOUT : errno;
        return error_set_errno(err, code, "cannot connect");
    }
    return STATUS_OK;
}

/* What OpenSSL says about its last failure. */
static Status tls_error(LoadConnection *c, const char *what, Error *err)
{
    long verified = SSL_get_verify_result(c->tls);
    unsigned long code = ERR_get_error();
    const char *reason = verified != X509_V_OK ? X509_verify_cert_error_string(verified)
                         : code != 0           ? ERR_reason_error_string(code)
                                               : NULL;
    ERR_clear_error();
    return error_set(err, STATUS_IO, SUB_NONE, "cannot %s with TLS: %s", what,
                     reason != NULL ? reason : "the server closed the connection");
}

static Status shake_hands(LoadConnection *c, const LoadTarget *target, Error *err)
{
    struct in6_addr ignored;
    bool is_address = inet_pton(AF_INET, target->host, &ignored) == 1 ||
                      inet_pton(AF_INET6, target->host, &ignored) == 1;
    c->tls = SSL_new(target->tls);
    if (c->tls == NULL || SSL_set_fd(c->tls, c->fd) != 1)
        return error_set(err, STATUS_IO, SUB_NONE, "cannot use TLS");
    int is_named = is_address ? X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(c->tls), target->host)
                              : SSL_set1_host(c->tls, target->host);
    if (is_named != 1 || (!is_address && SSL_set_tlsext_host_name(c->tls, target->host) != 1))
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE, "'%.100s' is no name of a host",
                         target->host);
    ERR_clear_error();
    int result = SSL_connect(c->tls);
    if (result == 1)
        return STATUS_OK;
    if (SSL_get_error(c->tls, result) == SSL_ERROR_WANT_READ)
        return error_set(err, STATUS_TIMEOUT, SUB_NONE, "no answer to TLS within %d s",
                         LOAD_CONNECTION_TIMEOUT_S);
    return tls_error(c, "connect", err);
}

Status load_connection_open(LoadConnection *c, LoadTarget *target, Error *err)
{
    reply_reset(&c->reply);
    c->out_sent = 0;
    c->state = LOAD_CONNECTION_IDLE;
    const struct addrinfo *address = target->current;
    if (address != NULL) {
        TRY(connect_to(c, address, err));
    } else {
        /* A name may have several, and not every server listens on all of them. */
        Status status = STATUS_UNAVAILABLE;
        for (address = target->addresses; address != NULL; address = address->ai_next) {
            status = connect_to(c, address, err);
            if (status == STATUS_OK)
                break;
        }
        TRY(status);
        target->current = address;
    }
    return target->tls != NULL ? shake_hands(c, target, err) : STATUS_OK;
}

Status load_connection_unblock(LoadConnection *c, Error *err)
{
    int flags = fcntl(c->fd, F_GETFL);
    if (flags < 0 || fcntl(c->fd, F_SETFL, flags | O_NONBLOCK) != 0)
        return error_set_errno(err, errno, "cannot make a socket non-blocking");
    return STATUS_OK;
}

/* As send() and recv() do: -1 with EAGAIN if nothing is possible for now, -1 with errno 0 for what
 * only OpenSSL can explain. */
static ssize_t tls_result(const LoadConnection *c, int result)
{
    if (result > 0)
        return result;
    int reason = SSL_get_error(c->tls, result);
    if (reason == SSL_ERROR_ZERO_RETURN)
        return 0;
    bool is_later = reason == SSL_ERROR_WANT_READ || reason == SSL_ERROR_WANT_WRITE;
    if (is_later || reason != SSL_ERROR_SYSCALL)
        errno = is_later ? EAGAIN : 0;
    return -1;
}

static ssize_t send_some(LoadConnection *c, const char *bytes, size_t len)
{
    if (c->tls == NULL)
        return send(c->fd, bytes, len, MSG_NOSIGNAL);
    ERR_clear_error();
    return tls_result(c, SSL_write(c->tls, bytes, len < INT32_MAX ? (int)len : INT32_MAX));
}

static ssize_t receive_some(LoadConnection *c, char *bytes, size_t size)
{
    if (c->tls == NULL)
        return recv(c->fd, bytes, size, 0);
    ERR_clear_error();
    return tls_result(c, SSL_read(c->tls, bytes, (int)size));
}

static Status system_error(LoadConnection *c, const char *what, Error *err)
{
    return c->tls != NULL && errno == 0 ? tls_error(c, what, err)
                                        : error_set_errno(err, errno, "cannot %s", what);
}

Status load_connection_send(LoadConnection *c, bool *complete, Error *err)
{
    while (c->out_sent < c->out.len) {
        ssize_t sent = send_some(c, c->out.ptr + c->out_sent, c->out.len - c->out_sent);
        if (sent < 0 && errno == EAGAIN) {
            *complete = false;
            return STATUS_OK;
        }
        if (sent < 0 && errno != EINTR)
            return system_error(c, "send", err);
        c->out_sent += sent > 0 ? (size_t)sent : 0;
    }
    *complete = true;
    return STATUS_OK;
}

Status load_connection_receive(LoadConnection *c, bool *complete, Error *err)
{
    char bytes[32768];
    do {
        ssize_t got = receive_some(c, bytes, sizeof(bytes));
        if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
            *complete = false;
            return STATUS_OK;
        }
        if (got < 0)
            return system_error(c, "receive", err);
        if (got == 0)
            return error_set(err, STATUS_IO, SUB_NONE, "the server closed the connection");
        size_t used = 0;
        TRY(reply_feed(&c->reply, slice_make(bytes, (size_t)got), &used, complete, err));
        if (used != (size_t)got)
            return error_set(err, STATUS_IO, SUB_NONE,
                             "expected one answer, found more bytes after it");
        /* What OpenSSL has read and not yet handed out does not make the socket readable. */
    } while (c->tls != NULL && !*complete);
    return STATUS_OK;
}

bool load_connection_is_open(LoadConnection *c)
{
    char byte;
    ssize_t got;
    if (c->tls != NULL) {
        ERR_clear_error();
        got = tls_result(c, SSL_peek(c->tls, &byte, 1));
    } else {
        got = recv(c->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    }
    return got < 0 && errno == EAGAIN;
}
