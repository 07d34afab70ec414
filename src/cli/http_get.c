/* http_get.c - see http_get.h. */
#include "cli/http_get.h"

#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

enum { READ_BYTES = 16 << 10 };

static void close_fd(int fd)
{
    if (fd >= 0)
        (void)close(fd);
}

static Status refuse_url(const char *url, Error *err)
{
    return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                     "'%.200s' is not an endpoint; expected a URL such as http://localhost:8081",
                     url);
}

/* The host and what follows it: "[::1]:8081" or "localhost:8081". */
static bool split_host(Slice text, Slice *host, Slice *port)
{
    if (text.len > 0 && text.ptr[0] == '[') {
        size_t end = slice_find(text, ']');
        if (end == text.len)
            return false;
        *host = slice_make(text.ptr + 1, end - 1);
        text = slice_from(text, end + 1);
        if (text.len > 0 && text.ptr[0] != ':')
            return false;
    } else {
        *host = slice_first(text, slice_find(text, ':'));
        text = slice_from(text, host->len);
    }
    *port = text.len > 0 ? slice_from(text, 1) : SLICE("80");
    return true;
}

static bool is_host(Slice host)
{
    bool good = host.len > 0 && host.len < sizeof(((Endpoint *)NULL)->host);
    for (size_t i = 0; good && i < host.len; i++) {
        char c = host.ptr[i];
        good = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
               c == '.' || c == '-' || c == '_' || c == ':' || c == '%';
    }
    return good;
}

Status endpoint_parse(const char *url, Endpoint *out, Error *err)
{
    Slice rest = slice_from_cstr(url);
    if (slice_equal_nocase(slice_first(rest, 8), SLICE("https://")))
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "'%.200s': https is not spoken here; the server answers http on the same "
                         "port, so say http://%.200s",
                         url, url + 8);
    if (!slice_equal_nocase(slice_first(rest, 7), SLICE("http://")))
        return refuse_url(url, err);
    rest = slice_from(rest, 7);
    if (slice_ends_with(rest, SLICE("/")))
        rest.len--;
    Slice host;
    Slice port;
    uint64_t number = 0;
    if (!split_host(rest, &host, &port) || !is_host(host) || !slice_to_u64(port, &number) ||
        number == 0 || number > UINT16_MAX)
        return refuse_url(url, err);
    memcpy(out->host, host.ptr, host.len);
    out->host[host.len] = '\0';
    (void)snprintf(out->port, sizeof(out->port), "%u", (unsigned)number);
    return STATUS_OK;
}

/* One question on its way. */
typedef struct Call {
    const HttpQuestion *question;
    uint64_t deadline_us;
    int fd;
} Call;

/* Until the socket is ready for 'events'. */
static Status wait_for(const Call *call, short events, Error *err)
{
    const Endpoint *endpoint = call->question->endpoint;
    for (;;) {
        uint64_t now_us = clock_monotonic_us(clock_real());
        if (now_us >= call->deadline_us)
            return error_set(err, STATUS_TIMEOUT, SUB_NONE, "%s:%s has not answered within %u ms",
                             endpoint->host, endpoint->port, call->question->timeout_ms);
        struct pollfd fds[] = {
            {.fd = call->fd, .events = events},
            {.fd = call->question->cancel_fd, .events = POLLIN}, /* -1 is passed over */
        };
        int ready = poll(fds, ARRAY_COUNT(fds), (int)((call->deadline_us - now_us + 999) / 1000));
        if (ready < 0 && errno != EINTR)
            return error_set_errno(err, errno, "cannot wait for %s:%s", endpoint->host,
                                   endpoint->port);
        if (ready > 0 && fds[1].revents != 0)
            return error_set(err, STATUS_TIMEOUT, SUB_NONE, "given up");
        if (ready > 0 && fds[0].revents != 0)
            return STATUS_OK;
    }
}

static Status unreachable(const Endpoint *endpoint, const char *reason, Error *err)
{
    return error_set(err, STATUS_UNAVAILABLE, SUB_NONE,
                     "cannot reach the server at http://%s:%s: %s", endpoint->host, endpoint->port,
                     reason);
}

static Status connect_to(Call *call, const struct addrinfo *at, Error *err)
{
    const Endpoint *endpoint = call->question->endpoint;
    call->fd = socket(at->ai_family, at->ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (call->fd < 0)
        return unreachable(endpoint, strerror(errno), err);
    if (connect(call->fd, at->ai_addr, at->ai_addrlen) == 0)
        return STATUS_OK;
    if (errno != EINPROGRESS)
        return unreachable(endpoint, strerror(errno), err);
    TRY(wait_for(call, POLLOUT, err));
    int failed = 0;
    socklen_t size = sizeof(failed);
    if (getsockopt(call->fd, SOL_SOCKET, SO_ERROR, &failed, &size) != 0 || failed != 0)
        return unreachable(endpoint, strerror(failed), err);
    return STATUS_OK;
}

/* Tries one address after the other: localhost is two of them, and the server may have one. */
static Status connect_any(Call *call, Error *err)
{
    const Endpoint *endpoint = call->question->endpoint;
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    struct addrinfo *list = NULL;
    int failed = getaddrinfo(endpoint->host, endpoint->port, &hints, &list);
    if (failed != 0)
        return unreachable(endpoint, gai_strerror(failed), err);
    Status status = STATUS_UNAVAILABLE;
    for (const struct addrinfo *at = list; at != NULL && status == STATUS_UNAVAILABLE;
         at = at->ai_next) {
        close_fd(call->fd);
        status = connect_to(call, at, err);
    }
    freeaddrinfo(list);
    return status;
}

static Status send_all(const Call *call, Slice text, Error *err)
{
    while (text.len > 0) {
        ssize_t sent = send(call->fd, text.ptr, text.len, MSG_NOSIGNAL);
        if (sent > 0)
            text = slice_from(text, (size_t)sent);
        else if (sent < 0 && (errno == EAGAIN || errno == EINTR))
            TRY(wait_for(call, POLLOUT, err));
        else
            return unreachable(call->question->endpoint, strerror(errno), err);
    }
    return STATUS_OK;
}

static Status receive_all(const Call *call, Buf *buffer, Error *err)
{
    for (;;) {
        if (!buf_reserve(buffer, READ_BYTES))
            return error_set(
                err, STATUS_UNAVAILABLE, SUB_NONE, "the answer of %s:%s has more than %zu bytes",
                call->question->endpoint->host, call->question->endpoint->port, HTTP_GET_BYTES_MAX);
        ssize_t got = recv(call->fd, buffer->ptr + buffer->len, READ_BYTES, 0);
        if (got == 0)
            return STATUS_OK;
        if (got > 0)
            buffer->len += (size_t)got;
        else if (errno == EAGAIN || errno == EINTR)
            TRY(wait_for(call, POLLIN, err));
        else
            return unreachable(call->question->endpoint, strerror(errno), err);
    }
}

static Status not_http(Error *err)
{
    return error_set(err, STATUS_UNAVAILABLE, SUB_NONE,
                     "what answers there does not speak HTTP/1.1 as orrery does");
}

/* The lines between the status and the body: how long that is, and that it comes in one piece. */
static Status read_headers(Slice lines, uint64_t *length, bool *has_length, Error *err)
{
    *has_length = false;
    while (lines.len > 0) {
        Slice value = slice_cut(&lines, '\n');
        Slice name = slice_cut(&value, ':');
        if (value.len > 0 && value.ptr[value.len - 1] == '\r')
            value.len--;
        if (slice_equal_nocase(name, SLICE("transfer-encoding")) ||
            slice_equal_nocase(name, SLICE("content-encoding")))
            return not_http(err);
        if (!slice_equal_nocase(name, SLICE("content-length")))
            continue;
        if (!slice_to_u64(slice_trim(value), length))
            return not_http(err);
        *has_length = true;
    }
    return STATUS_OK;
}

Status http_reply_parse(Slice bytes, HttpReply *out, Error *err)
{
    const char *end = bytes.len == 0 ? NULL : memmem(bytes.ptr, bytes.len, "\r\n\r\n", 4);
    uint64_t status = 0;
    if (end == NULL || !slice_starts_with(bytes, SLICE("HTTP/1.")) || bytes.len < 12 ||
        bytes.ptr[8] != ' ' || !slice_to_u64(slice_make(bytes.ptr + 9, 3), &status) || status < 100)
        return not_http(err);
    Slice head = slice_make(bytes.ptr, (size_t)(end - bytes.ptr));
    (void)slice_cut(&head, '\n');
    uint64_t length = 0;
    bool has_length = false;
    TRY(read_headers(head, &length, &has_length, err));
    Slice body = slice_from(bytes, (size_t)(end - bytes.ptr) + 4);
    if (has_length && body.len < length)
        return error_set(err, STATUS_UNAVAILABLE, SUB_NONE,
                         "the connection was closed in the middle of an answer");
    *out = (HttpReply){.status = (int)status,
                       .body = has_length ? slice_first(body, (size_t)length) : body};
    return STATUS_OK;
}

static Status exchange(Call *call, Buf *buffer, HttpReply *out, Error *err)
{
    const HttpQuestion *question = call->question;
    const Endpoint *endpoint = question->endpoint;
    bool is_v6 = strchr(endpoint->host, ':') != NULL;
    TRY(connect_any(call, err));
    buf_reset(buffer);
    buf_format(buffer,
               "GET %.*s HTTP/1.1\r\nhost: %s%s%s:%s\r\nconnection: close\r\n"
               "user-agent: orrery-top/" ORRERY_VERSION "\r\n%.*s\r\n",
               SLICE_ARG(question->path), is_v6 ? "[" : "", endpoint->host, is_v6 ? "]" : "",
               endpoint->port, SLICE_ARG(question->headers));
    TRY(send_all(call, buf_view(buffer), err));
    buf_reset(buffer);
    TRY(receive_all(call, buffer, err));
    return http_reply_parse(buf_view(buffer), out, err);
}

Status http_get(const HttpQuestion *question, Buf *buffer, HttpReply *out, Error *err)
{
    Call call = {
        .question = question,
        .deadline_us = clock_monotonic_us(clock_real()) + (uint64_t)question->timeout_ms * 1000,
        .fd = -1,
    };
    Status status = exchange(&call, buffer, out, err);
    close_fd(call.fd);
    return status;
}
