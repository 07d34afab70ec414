/* transport.c - see transport_int.h. */
#include "http/transport_int.h"

#include <errno.h>
#include <limits.h>
#include <linux/sockios.h>
#include <openssl/err.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

TransportStep transport_peek(Transport *transport, uint8_t *byte)
{
    ssize_t got = recv(transport->fd, byte, 1, MSG_PEEK);
    if (got == 1)
        return TRANSPORT_DONE;
    if (got == 0)
        return TRANSPORT_ENDED;
    return errno == EAGAIN || errno == EINTR ? TRANSPORT_BLOCKED : TRANSPORT_BROKEN;
}

TransportStep transport_handshake(Transport *transport, SSL_CTX *tls, TransportSide side,
                                  bool *wants_write)
{
    *wants_write = false;
    if (transport->ssl == NULL) {
        transport->ssl = SSL_new(tls);
        if (transport->ssl == NULL || SSL_set_fd(transport->ssl, transport->fd) != 1) {
            transport->tls_is_broken = true;
            return TRANSPORT_BROKEN;
        }
        if (side == TRANSPORT_SERVER)
            SSL_set_accept_state(transport->ssl);
        else
            SSL_set_connect_state(transport->ssl);
    }
    ERR_clear_error();
    int result = SSL_do_handshake(transport->ssl);
    if (result == 1)
        return TRANSPORT_DONE;
    int reason = SSL_get_error(transport->ssl, result);
    *wants_write = reason == SSL_ERROR_WANT_WRITE;
    if (reason == SSL_ERROR_WANT_READ || reason == SSL_ERROR_WANT_WRITE)
        return TRANSPORT_BLOCKED;
    transport->tls_is_broken = true;
    return TRANSPORT_BROKEN;
}

static TransportStep read_plain(Transport *transport, char *bytes, size_t size, size_t *len)
{
    ssize_t got = recv(transport->fd, bytes, size, 0);
    if (got > 0) {
        *len = (size_t)got;
        return TRANSPORT_DONE;
    }
    if (got == 0)
        return TRANSPORT_ENDED;
    return errno == EAGAIN || errno == EINTR ? TRANSPORT_BLOCKED : TRANSPORT_BROKEN;
}

static TransportStep read_tls(Transport *transport, char *bytes, size_t size, size_t *len)
{
    ERR_clear_error();
    int got = SSL_read(transport->ssl, bytes, size < INT_MAX ? (int)size : INT_MAX);
    if (got > 0) {
        *len = (size_t)got;
        return TRANSPORT_DONE;
    }
    switch (SSL_get_error(transport->ssl, got)) {
    case SSL_ERROR_WANT_READ:
    case SSL_ERROR_WANT_WRITE: /* the answer to a key update waits; the next write carries it */
        return TRANSPORT_BLOCKED;
    case SSL_ERROR_ZERO_RETURN:
        return TRANSPORT_ENDED;
    default:
        transport->tls_is_broken = true;
        return TRANSPORT_BROKEN;
    }
}

TransportStep transport_read(Transport *transport, char *bytes, size_t size, size_t *len,
                             bool *has_more)
{
    *has_more = false;
    if (transport->ssl == NULL)
        return read_plain(transport, bytes, size, len);
    TransportStep step = read_tls(transport, bytes, size, len);
    *has_more = step == TRANSPORT_DONE && SSL_has_pending(transport->ssl) == 1;
    return step;
}

TransportStep transport_discard(Transport *transport, char *bytes, size_t size)
{
    size_t len = 0;
    return read_plain(transport, bytes, size, &len);
}

static size_t total(const Output *output)
{
    return output->head.len + output->body.len;
}

static TransportStep write_plain(Transport *transport, Output *output)
{
    while (output->sent < total(output)) {
        struct iovec parts[2]; /* sendmsg only reads */
        struct msghdr message = {.msg_iov = parts};
        Slice head = slice_from(output->head, output->sent);
        Slice body = output->sent <= output->head.len
                         ? output->body
                         : slice_from(output->body, output->sent - output->head.len);
        if (head.len > 0)
            parts[message.msg_iovlen++] =
                (struct iovec){.iov_base = UNCONST(char, head.ptr), .iov_len = head.len};
        if (body.len > 0)
            parts[message.msg_iovlen++] =
                (struct iovec){.iov_base = UNCONST(char, body.ptr), .iov_len = body.len};
        ssize_t sent = sendmsg(transport->fd, &message, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent < 0)
            return errno == EAGAIN ? TRANSPORT_BLOCKED : TRANSPORT_BROKEN;
        output->sent += (size_t)sent;
        if (output->sent < total(output))
            return TRANSPORT_BLOCKED; /* the socket is full, and another call would fail */
    }
    return TRANSPORT_DONE;
}

/* The next record's worth of the output. It depends on 'sent' alone, because OpenSSL wants the very
 * same bytes again after it was blocked. */
static Slice next_record(const Output *output, char record[TLS_RECORD_BYTES])
{
    ASSERT(output->sent < total(output));
    Slice head = slice_from(output->head, output->sent);
    if (head.len == 0)
        return slice_first(slice_from(output->body, output->sent - output->head.len),
                           TLS_RECORD_BYTES);
    if (head.len >= TLS_RECORD_BYTES)
        return slice_first(head, TLS_RECORD_BYTES);
    Slice body = slice_first(output->body, TLS_RECORD_BYTES - head.len);
    memcpy(record, head.ptr, head.len);
    if (body.len > 0)
        memcpy(record + head.len, body.ptr, body.len);
    return slice_make(record, head.len + body.len);
}

static TransportStep write_tls(Transport *transport, Output *output, char record[TLS_RECORD_BYTES])
{
    while (output->sent < total(output)) {
        Slice next = next_record(output, record);
        ERR_clear_error();
        int sent = SSL_write(transport->ssl, next.ptr, (int)next.len);
        if (sent > 0) {
            output->sent += (size_t)sent;
            continue;
        }
        if (SSL_get_error(transport->ssl, sent) == SSL_ERROR_WANT_WRITE)
            return TRANSPORT_BLOCKED;
        transport->tls_is_broken = true;
        return TRANSPORT_BROKEN;
    }
    return TRANSPORT_DONE;
}

TransportStep transport_write(Transport *transport, Output *output, char record[TLS_RECORD_BYTES])
{
    return transport->ssl == NULL ? write_plain(transport, output)
                                  : write_tls(transport, output, record);
}

uint64_t transport_written(const Transport *transport)
{
    return transport->ssl == NULL ? 0 : BIO_number_written(SSL_get_wbio(transport->ssl));
}

uint64_t transport_received(const Transport *transport)
{
    return transport->ssl == NULL ? 0 : BIO_number_read(SSL_get_rbio(transport->ssl));
}

size_t transport_queued(const Transport *transport)
{
    int queued = 0;
    return ioctl(transport->fd, SIOCOUTQ, &queued) == 0 && queued > 0 ? (size_t)queued : 0;
}

/* Best effort: a client that has gone, or whose socket is full, does not get it. */
static void say_goodbye(Transport *transport)
{
    if (transport->ssl == NULL || transport->tls_is_broken ||
        SSL_is_init_finished(transport->ssl) != 1)
        return;
    ERR_clear_error();
    (void)SSL_shutdown(transport->ssl);
}

void transport_finish(Transport *transport)
{
    say_goodbye(transport);
    (void)shutdown(transport->fd, SHUT_WR); /* fails if the peer was faster: nothing to do then */
}

void transport_close(Transport *transport)
{
    say_goodbye(transport);
    SSL_free(transport->ssl);
    if (transport->sock != NULL)
        h2o_socket_close(transport->sock);
    else if (transport->fd >= 0)
        (void)close(transport->fd); /* nothing is left to be said */
    *transport = (Transport){.fd = -1};
}
