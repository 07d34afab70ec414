/* pkranges.c - /dbs/{db}/colls/{coll}/pkranges: the partition map as SDKs read it.
 *
 * The feed's ETag is the number of the newest change to the map. A client that sends it back gets
 * the ranges made since, or 304: .NET asks again until it gets that, so it must come. Each names
 * those that it came from, which the client strikes from its own map; so a client that has missed
 * several splits and merges catches up at once.
 *
 * Who reads by page may see the map change between two pages. The continuation is the bound where
 * the next range begins: after a split the pages still cover everything once; after a merge across
 * that bound the range that is there now names among its parents what the page before has shown.
 */
#include "api/feed_int.h"
#include "api/item_int.h"
#include "api/respond_int.h"
#include "base/encoding.h"
#include "catalog/epk_range.h"

/* "123" with or without its quotes; false if the client sent something else. */
static bool parse_etag(Slice text, uint64_t *out)
{
    if (text.len >= 2 && text.ptr[0] == '"' && text.ptr[text.len - 1] == '"')
        text = slice_make(text.ptr + 1, text.len - 2);
    return slice_to_u64(text, out);
}

/* What the whole map may take: ancestors, and bounds of the longest keys, included. */
enum { RANGE_TEXT_BYTES_MAX = 8 << 10 };
static_assert(RANGE_PARENTS_MAX * sizeof("\"1048575\"") + 2 * 2 * EPK_BYTES_MAX + 1024 <=
                  RANGE_TEXT_BYTES_MAX,
              "a range's text fits");

/* Where a page begins: with the range that has this bound, or the first of all. */
static Status page_begin(const ApiRequest *r, const PartitionRange **out, Error *err)
{
    Slice token = slice_trim(request_header(r, "x-ms-continuation"));
    uint8_t bytes[EPK_BYTES_MAX];
    size_t len = 0;
    if (!epk_is_bound(token) || !hex_decode(token, bytes, sizeof(bytes), &len))
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "Invalid Continuation Token: '%.*s' was not given by this server for this "
                         "feed.",
                         SLICE_CUT(token, 80));
    *out = range_of(r->container, slice_make(bytes, len));
    return STATUS_OK;
}

Status pkranges_list(ApiRequest *r, Error *err)
{
    const Container *container = r->container;
    uint32_t items_max = 0;
    TRY(request_max_items(r, &items_max, err));
    Slice given = slice_trim(request_header(r, "if-none-match"));
    uint64_t since = 0;
    if (given.len > 0 && !parse_etag(given, &since))
        since = 0; /* a token of another kind: start over, as with none */
    Slice etag = arena_format(r->arena, "\"%llu\"", (unsigned long long)container->ranges_lsn);
    if (since >= container->ranges_lsn) {
        Response response;
        response_begin(r, &response, 304, charge_text_read(r));
        response_header(&response, SLICE("etag"), etag);
        response_header(&response, SLICE("x-ms-content-path"), container->info.rid);
        response_send(r, &response);
        return STATUS_OK;
    }
    const PartitionRange *range = NULL;
    TRY(page_begin(r, &range, err));
    Buf documents;
    buf_init(&documents, (size_t)RANGES_MAX * RANGE_TEXT_BYTES_MAX);
    size_t count = 0;
    Slice continuation = SLICE_EMPTY;
    for (; range < container->ranges + container->range_count; range++) {
        if (range->lsn <= since)
            continue;
        if (count == items_max) {
            continuation = arena_copy(r->arena, range->min);
            break;
        }
        if (count++ > 0)
            buf_byte(&documents, ',');
        partition_range_print(container, range, &documents);
    }
    ASSERT(!buf_full(&documents));
    feed_send(r, container->info.rid, &documents, count, continuation, etag, charge_text_read(r));
    return STATUS_OK;
}

Status pkranges_read(ApiRequest *r, Error *err)
{
    const Container *container = r->container;
    Slice id = r->address.parts[r->address.part_count - 1].id;
    uint64_t number = 0;
    Rid rid;
    if (!slice_to_u64(id, &number)) {
        bool mine = rid_parse(id, &rid) && rid.kind == RID_PARTITION_KEY_RANGE &&
                    rid.container == container->info.number;
        number = mine ? rid.child - PARTITION_RANGE_RID_BASE : UINT64_MAX;
    }
    const PartitionRange *range =
        number > UINT32_MAX ? NULL : container_range(container, (uint32_t)number);
    if (range == NULL)
        return error_set(err, STATUS_NOT_FOUND, SUB_NONE,
                         "Resource Not Found. There is no pkranges/%.*s.", SLICE_CUT(id, 80));
    AUTO(buf_done) Buf text;
    buf_init(&text, RANGE_TEXT_BYTES_MAX);
    partition_range_print(container, range, &text);
    Response response;
    response_begin(r, &response, 200, charge_text_read(r));
    response_header(&response, SLICE("content-type"), SLICE("application/json"));
    response.body = arena_copy(r->arena, buf_view(&text));
    response_send(r, &response);
    return STATUS_OK;
}
