/* request.c - see request.h. */
#include "bench/request.h"

Status url_parse(Slice text, Url *out, Error *err)
{
    Slice scheme = SLICE("http://");
    if (!slice_starts_with(text, scheme))
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE, "expected 'http://...', found '%.*s'",
                         SLICE_CUT(text, 100));
    Slice rest = slice_from(text, scheme.len);
    size_t slash = slice_find(rest, '/');
    Url url = {.authority = slice_first(rest, slash), .path = slice_from(rest, slash)};
    if (url.path.len == 0)
        url.path = SLICE("/");
    Slice port = url.authority;
    url.host = slice_cut(&port, ':');
    url.port = port.ptr != NULL ? port : SLICE("80");
    uint64_t number = 0;
    if (url.host.len == 0 || !slice_to_u64(url.port, &number) || number == 0 || number > UINT16_MAX)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "expected a host and a port from 1 to 65535, found '%.*s'",
                         SLICE_CUT(url.authority, 100));
    *out = url;
    return STATUS_OK;
}

Status request_maker_init(RequestMaker *maker, const RequestOptions *options, Error *err)
{
    *maker = (RequestMaker){.options = options, .signed_at_s = INT64_MIN};
    arena_init(&maker->memory, 4096);
    arena_init(&maker->scratch, 4096);
    ASSERT(!options->is_items || options->sign_each);
    ASSERT(!options->is_items || !options->is_query);
    if (options->is_items)
        item_maker_init(&maker->items, &options->items);
    if (options->is_query)
        query_maker_init(&maker->queries, &options->query);
    if (options->signer == NULL)
        return STATUS_OK;
    return sign_target_parse(&maker->memory, options->url.path, &maker->target, err);
}

void request_maker_done(RequestMaker *maker)
{
    item_maker_done(&maker->items);
    query_maker_done(&maker->queries);
    arena_done(&maker->memory);
    arena_done(&maker->scratch);
}

/* What the path and link of an item have after those of all items. */
#define ITEMS_PATH "docs"

static SignTarget target_of(RequestMaker *maker, Slice id)
{
    if (id.len == 0)
        return maker->target;
    static const char between[] = "/" ITEMS_PATH "/";
    Slice feed = maker->target.link;
    size_t len = feed.len + sizeof(between) - 1 + id.len;
    char *link = arena_alloc(&maker->scratch, len);
    memcpy(link, feed.ptr, feed.len);
    memcpy(link + feed.len, between, sizeof(between) - 1);
    memcpy(link + len - id.len, id.ptr, id.len);
    return (SignTarget){.type = maker->target.type, .link = slice_make(link, len)};
}

/* Without sign_each the client does less work; the server cannot tell, and verifies each one. */
static void sign(RequestMaker *maker, const ItemRequest *request, int64_t now_s)
{
    const RequestOptions *options = maker->options;
    if (maker->signed_at_s == now_s && !options->sign_each)
        return;
    if (maker->signed_at_s != now_s)
        date_print(now_s, maker->date);
    maker->signed_at_s = now_s;
    if (options->signer == NULL)
        return;
    arena_reset(&maker->scratch);
    maker->authorization = sign_authorization(options->signer, &maker->scratch, request->method,
                                              target_of(maker, request->id), maker->date);
}

static ItemRequest choose(RequestMaker *maker, uint64_t turn, Slice continuation)
{
    const RequestOptions *options = maker->options;
    if (options->is_items)
        return item_next(&maker->items);
    if (options->is_query)
        return query_turn(&maker->queries, turn, continuation);
    return (ItemRequest){.method = options->method, .body = options->body};
}

void request_print(RequestMaker *maker, uint64_t turn, Slice continuation, int64_t now_s, Buf *out)
{
    const RequestOptions *options = maker->options;
    ItemRequest request = choose(maker, turn, continuation);
    sign(maker, &request, now_s);
    buf_slice(out, request.method);
    buf_byte(out, ' ');
    buf_slice(out, options->url.path);
    if (request.id.len > 0) {
        buf_byte(out, '/');
        buf_slice(out, request.id);
    }
    buf_slice(out, SLICE(" HTTP/1.1\r\n"
                         "x-ms-documentdb-responsecontinuationtokenlimitinkb: 1\r\n"
                         "x-ms-documentdb-query-enablecrosspartition: true\r\n"
                         "Cache-Control: no-cache\r\n"
                         "x-ms-version: 2020-07-15\r\n"
                         "User-Agent: Node.js/20.20.2 (linux; x64) azure-cosmos-js/4.4.1\r\n"
                         "x-ms-useragent: Node.js/20.20.2 (linux; x64) azure-cosmos-js/4.4.1\r\n"
                         "x-ms-cosmos-sdk-supportedcapabilities: 1\r\n"
                         "x-ms-cosmos-allow-tentative-writes: true\r\n"
                         "x-ms-date: "));
    buf_bytes(out, maker->date, DATE_LEN);
    buf_slice(out, SLICE("\r\nAccept: application/json\r\n"));
    if (options->signer != NULL) {
        buf_slice(out, SLICE("authorization: "));
        buf_slice(out, maker->authorization);
        buf_slice(out, SLICE("\r\n"));
    }
    for (size_t i = 0; i < options->header_count; i++) {
        buf_slice(out, options->headers[i]);
        buf_slice(out, SLICE("\r\n"));
    }
    buf_slice(out, request.headers);
    if (options->is_feed)
        buf_slice(out, SLICE("A-IM: Incremental Feed\r\n"));
    if (options->is_feed && continuation.len > 0) {
        buf_slice(out, SLICE("If-None-Match: "));
        buf_slice(out, continuation);
        buf_slice(out, SLICE("\r\n"));
    }
    if (request.body.len > 0) {
        buf_slice(out, request.is_query ? SLICE("Content-Type: application/query+json")
                                        : SLICE("Content-Type: application/json"));
        buf_slice(out, SLICE("\r\nContent-Length: "));
        buf_u64(out, request.body.len);
        buf_slice(out, SLICE("\r\n"));
    }
    buf_slice(out, SLICE("Host: "));
    buf_slice(out, options->url.authority);
    buf_slice(out, SLICE("\r\nConnection: keep-alive\r\n\r\n"));
    buf_slice(out, request.body);
}
