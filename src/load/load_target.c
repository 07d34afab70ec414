/* load_target.c - see load_target.h. */
#include "load/load_target.h"

#include "base/mem.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <openssl/ssl.h>

static Status resolve(const Url *url, LoadTarget *target, Error *err)
{
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 1024);
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    int code = getaddrinfo(target->host, arena_cstr(&arena, url->port), &hints, &target->addresses);
    if (code != 0)
        return error_set(err, STATUS_UNAVAILABLE, SUB_NONE, "cannot resolve '%.*s': %s",
                         SLICE_CUT(url->authority, 100), gai_strerror(code));
    return STATUS_OK;
}

static Status open_tls(const LoadTargetOptions *options, LoadTarget *target, Error *err)
{
    target->tls = SSL_CTX_new(TLS_client_method());
    if (target->tls == NULL)
        return error_set(err, STATUS_UNAVAILABLE, SUB_NONE, "cannot use TLS");
    SSL_CTX_set_mode(target->tls,
                     SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    if (options->is_insecure)
        return STATUS_OK;
    SSL_CTX_set_verify(target->tls, SSL_VERIFY_PEER, NULL);
    int is_set = options->cert_file != NULL
                     ? SSL_CTX_load_verify_locations(target->tls, options->cert_file, NULL)
                     : SSL_CTX_set_default_verify_paths(target->tls);
    if (is_set != 1)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "cannot read certificates from '%.200s'",
                         options->cert_file != NULL ? options->cert_file : "the system");
    return STATUS_OK;
}

Status load_target_open(const LoadTargetOptions *options, LoadTarget **out, Error *err)
{
    AUTO(load_target_close) LoadTarget *target = MEM_NEW(LoadTarget);
    Slice host = options->url.host;
    target->host = mem_alloc(host.len + 1);
    memcpy(target->host, host.ptr, host.len);
    TRY(resolve(&options->url, target, err));
    if (options->url.is_tls)
        TRY(open_tls(options, target, err));
    *out = TAKE(target);
    return STATUS_OK;
}

void load_target_close(LoadTarget *target)
{
    if (target == NULL)
        return;
    if (target->addresses != NULL)
        freeaddrinfo(target->addresses);
    SSL_CTX_free(target->tls);
    mem_free(target->host);
    mem_free(target);
}

static bool is_loopback(const struct sockaddr *address)
{
    if (address->sa_family == AF_INET) {
        struct sockaddr_in v4;
        memcpy(&v4, address, sizeof(v4));
        return ntohl(v4.sin_addr.s_addr) >> 24 == 127;
    }
    struct sockaddr_in6 v6;
    memcpy(&v6, address, sizeof(v6));
    const uint8_t *bytes = v6.sin6_addr.s6_addr;
    return IN6_IS_ADDR_LOOPBACK(&v6.sin6_addr) ||
           (IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr) && bytes[12] == 127);
}

bool load_target_is_loopback(const LoadTarget *target)
{
    for (const struct addrinfo *at = target->addresses; at != NULL; at = at->ai_next) {
        if (!is_loopback(at->ai_addr))
            return false;
    }
    return true;
}
