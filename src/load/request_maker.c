/* request_maker.c - see request_maker.h. */
#include "load/request_maker.h"

/* Cuts "host:port" apart; an IPv6 address stands in brackets. */
static bool split_authority(Url *url)
{
    Slice rest = url->authority;
    url->port = url->is_tls ? SLICE("443") : SLICE("80");
    if (slice_starts_with(rest, SLICE("["))) {
        rest = slice_from(rest, 1);
        url->host = slice_cut(&rest, ']');
        if (rest.ptr == NULL || (rest.len > 0 && rest.ptr[0] != ':'))
            return rest.ptr == NULL && slice_ends_with(url->authority, SLICE("]"));
        if (rest.len > 0)
            url->port = slice_from(rest, 1);
        return true;
    }
    url->host = slice_cut(&rest, ':');
    if (rest.ptr != NULL)
        url->port = rest;
    return true;
}

Status url_parse(Slice text, Url *out, Error *err)
{
    static const Slice schemes[] = {SLICE_INIT("http://"), SLICE_INIT("https://")};
    Url url = {.is_tls = slice_starts_with(text, schemes[1])};
    if (!url.is_tls && !slice_starts_with(text, schemes[0]))
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "expected 'http://...' or 'https://...', found '%.*s'",
                         SLICE_CUT(text, 100));
    Slice rest = slice_from(text, schemes[url.is_tls].len);
    size_t slash = slice_find(rest, '/');
    url.authority = slice_first(rest, slash);
    url.path = slice_from(rest, slash);
    if (url.path.len == 0)
        url.path = SLICE("/");
    uint64_t number = 0;
    if (!split_authority(&url) || url.host.len == 0 || !slice_to_u64(url.port, &number) ||
        number == 0 || number > UINT16_MAX)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "expected a host and a port from 1 to 65535, found '%.*s'",
                         SLICE_CUT(url.authority, 100));
    for (size_t i = 0; i < text.len; i++) {
        if ((unsigned char)text.ptr[i] <= ' ' || text.ptr[i] == 0x7f)
            return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                             "expected a URL without spaces and control characters; write %%20");
    }
    *out = url;
    return STATUS_OK;
}

Status request_maker_init(RequestMaker *maker, const RequestOptions *options, Error *err)
{
    *maker = (RequestMaker){.options = options, .signed_at_s = INT64_MIN};
    arena_init(&maker->memory, 4096);
    arena_init(&maker->scratch, 4096);
    ASSERT(options->kind != WORKLOAD_ITEMS || options->sign_each);
    if (options->kind == WORKLOAD_ITEMS)
        item_maker_init(&maker->items, &options->items);
    if (options->kind == WORKLOAD_QUERY)
        query_maker_init(&maker->queries, &options->query);
    if (options->signer == NULL)
        return STATUS_OK;
    return signer_target_parse(&maker->memory, options->url.path, &maker->target, err);
}

void request_maker_done(RequestMaker *maker)
{
    item_maker_done(&maker->items);
    query_maker_done(&maker->queries);
    arena_done(&maker->memory);
    arena_done(&maker->scratch);
}

/* Not that of an SDK: those merge the results of several partitions by themselves, and a server
 * that knows them leaves it to them. It is about as long, so that a request costs a server the
 * same. */
#define USER_AGENT "orrery-bench/" ORRERY_VERSION " (linux) as-an-sdk-would-send-it"

/* What the path and link of an item have after those of all items. */
#define ITEMS_PATH "docs"

static SignerTarget target_of(RequestMaker *maker, Slice id)
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
    return (SignerTarget){.type = maker->target.type, .link = slice_make(link, len)};
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
    maker->authorization = signer_authorization(options->signer, &maker->scratch, request->method,
                                                target_of(maker, request->id), maker->date);
}

void request_maker_begin(RequestMaker *maker, uint64_t number, RequestTurn *out)
{
    *out = (RequestTurn){.number = number};
    if (maker->options->kind == WORKLOAD_ITEMS)
        item_maker_choose(&maker->items, &out->item);
}

static ItemRequest choose(RequestMaker *maker, const RequestTurn *turn, Slice continuation)
{
    const RequestOptions *options = maker->options;
    switch (options->kind) {
    case WORKLOAD_ITEMS:
        return item_maker_print(&maker->items, &turn->item, continuation);
    case WORKLOAD_QUERY:
        return query_maker_print(&maker->queries, turn->number, continuation);
    case WORKLOAD_FEED:
    case WORKLOAD_REQUEST:
        break;
    }
    return (ItemRequest){.method = options->method, .body = options->body};
}

static Slice content_type(const ItemRequest *request)
{
    if (request->is_query)
        return SLICE("Content-Type: application/query+json");
    return slice_equal(request->method, SLICE("PATCH"))
               ? SLICE("Content-Type: application/json_patch+json")
               : SLICE("Content-Type: application/json");
}

void request_maker_print(RequestMaker *maker, const RequestTurn *turn, Slice continuation,
                         int64_t now_s, Buf *out)
{
    const RequestOptions *options = maker->options;
    bool is_feed = options->kind == WORKLOAD_FEED;
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
                         "User-Agent: " USER_AGENT "\r\n"
                         "x-ms-useragent: " USER_AGENT "\r\n"
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
    if (is_feed)
        buf_slice(out, SLICE("A-IM: Incremental Feed\r\n"));
    if (is_feed && continuation.len > 0) {
        buf_slice(out, SLICE("If-None-Match: "));
        buf_slice(out, continuation);
        buf_slice(out, SLICE("\r\n"));
    }
    if (request.body.len > 0) {
        buf_slice(out, content_type(&request));
        buf_slice(out, SLICE("\r\nContent-Length: "));
        buf_u64(out, request.body.len);
        buf_slice(out, SLICE("\r\n"));
    }
    buf_slice(out, SLICE("Host: "));
    buf_slice(out, options->url.authority);
    buf_slice(out, SLICE("\r\nConnection: keep-alive\r\n\r\n"));
    buf_slice(out, request.body);
}
