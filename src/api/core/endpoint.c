/* endpoint.c - the address of the server as the client can use it. */
#include "api/core/request_int.h"

/* Host names, numeric addresses and a port; nothing that could mean something else in a URL. */
static bool is_authority(Slice text)
{
    if (text.len == 0 || text.len > 255)
        return false;
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        bool good = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                    c == '.' || c == '-' || c == '_' || c == ':' || c == '[' || c == ']';
        if (!good)
            return false;
    }
    return true;
}

/* "localhost:" is allowed by the grammar and means the default port. */
static Slice without_empty_port(Slice authority)
{
    return slice_ends_with(authority, SLICE(":")) ? slice_first(authority, authority.len - 1)
                                                  : authority;
}

static bool has_port(Slice authority)
{
    size_t i = authority.len;
    while (i > 0 && authority.ptr[i - 1] >= '0' && authority.ptr[i - 1] <= '9')
        i--;
    /* "::1" without brackets is no authority; "[::1]" ends in a bracket. */
    return i > 0 && i < authority.len && authority.ptr[i - 1] == ':';
}

/* The first of a comma-separated list, which is what the nearest client sent to the first proxy. */
static Slice forwarded(const ApiRequest *r, const char *name)
{
    Slice list = request_header(r, name);
    return slice_trim(slice_cut(&list, ','));
}

Status request_endpoint(const ApiRequest *r, Slice *out, Error *err)
{
    const ApiOptions *options = &r->api->options;
    if (options->public_endpoint.len > 0) {
        *out = options->public_endpoint;
        return STATUS_OK;
    }
    Slice scheme = r->http->is_tls ? SLICE("https") : SLICE("http");
    Slice authority = r->http->authority;
    if (options->trust_forwarded) {
        Slice proto = forwarded(r, "x-forwarded-proto");
        if (slice_equal_nocase(proto, SLICE("https")) || slice_equal_nocase(proto, SLICE("http")))
            scheme = proto.len == 5 ? SLICE("https") : SLICE("http");
        Slice host = forwarded(r, "x-forwarded-host");
        authority = host.len > 0 ? host : authority;
    }
    authority = without_empty_port(authority);
    if (!is_authority(authority))
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "The Host header '%.*s' is not a host name and port.",
                         SLICE_CUT(authority, 80));
    const char *port = has_port(authority) ? "" : scheme.len == 5 ? ":443" : ":80";
    *out = arena_format(r->arena, "%.*s://%.*s%s/", SLICE_ARG(scheme), SLICE_ARG(authority), port);
    return STATUS_OK;
}

/* Hot: every read of an item has it. */
Status request_location(const ApiRequest *r, Slice *out, Error *err)
{
    const ApiOptions *options = &r->api->options;
    Slice path = r->http->path;
    Slice parts[3] = {r->http->is_tls ? SLICE("https://") : SLICE("http://"), r->http->authority,
                      path};
    if (UNLIKELY(options->public_endpoint.len > 0 || options->trust_forwarded)) {
        parts[0] = SLICE_EMPTY;
        TRY(request_endpoint(r, &parts[1], err));
        parts[2] = slice_from(path, path.len > 0 && path.ptr[0] == '/' ? 1 : 0);
    }
    char *text = arena_alloc(r->arena, parts[0].len + parts[1].len + parts[2].len);
    size_t len = 0;
    for (size_t i = 0; i < ARRAY_COUNT(parts); len += parts[i++].len) {
        if (parts[i].len > 0)
            memcpy(text + len, parts[i].ptr, parts[i].len);
    }
    *out = slice_make(text, len);
    return STATUS_OK;
}
