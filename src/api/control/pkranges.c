/* pkranges.c - /dbs/{db}/colls/{coll}/pkranges: the partition map as SDKs read it.
 *
 * The feed's ETag is the number of the newest change to the map. A client that sends it back gets
 * the ranges made since, or 304; .NET asks again until it gets 304. Each range names those that it
 * came from, which the client removes from its own map; so a client that has missed several splits
 * and merges catches up at once.
 *
 * The map may change between two pages. The continuation is the bound where
 * the next range begins: after a split the pages still cover everything once; after a merge across
 * that bound the range that is there now names among its parents what the page before has shown.
 */
#include "api/control/feed_int.h"
#include "api/control/resource_handlers_int.h"
#include "api/core/response_int.h"
#include "api/core/target_int.h"
#include "base/encoding.h"
#include "catalog/epk_range.h"

/* "123" with or without its quotes; false if the client sent something else. */
static bool parse_etag(Slice text, uint64_t *out)
{
    if (text.len >= 2 && text.ptr[0] == '"' && text.ptr[text.len - 1] == '"')
        text = slice_make(text.ptr + 1, text.len - 2);
    return slice_to_u64(text, out);
}

/* Where a page begins: the range that has the token's bound, or the first one. */
static Status page_begin(const ApiRequest *r, const PartitionRange **out, Error *err)
{
    Slice token = slice_trim(request_header(r, "x-ms-continuation"));
    uint8_t bytes[EPK_BYTES_MAX];
    size_t len = 0;
    if (!epk_is_bound(token) || !hex_decode(token, bytes, sizeof(bytes), &len))
        return request_refuse_token(token, err);
    *out = target_range(r->container, slice_make(bytes, len));
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
        since = 0; /* not an ETag of this feed: start over, as without one */
    Slice etag = arena_format(r->arena, "\"%llu\"", (unsigned long long)container->ranges_lsn);
    if (since >= container->ranges_lsn) {
        Response response;
        response_begin(r, &response, 304, response_charge_read(r));
        response_header(&response, SLICE("etag"), etag);
        response_header(&response, SLICE("x-ms-content-path"), container->info.rid);
        response_send(r, &response);
        return STATUS_OK;
    }
    const PartitionRange *range = NULL;
    TRY(page_begin(r, &range, err));
    Buf documents;
    buf_init(&documents, (size_t)RANGES_MAX * WIRE_RANGE_BYTES_MAX);
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
        wire_range_print(container, range, &documents);
    }
    ASSERT(!buf_full(&documents));
    feed_send(r, container->info.rid, &documents, count, continuation, etag,
              response_charge_read(r));
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
        number = mine ? rid.child - WIRE_RANGE_RID_BASE : UINT64_MAX;
    }
    const PartitionRange *range =
        number > UINT32_MAX ? NULL : container_range(container, (uint32_t)number);
    if (range == NULL)
        return error_set(err, STATUS_NOT_FOUND, SUB_NONE,
                         "Resource Not Found. There is no pkranges/%.*s.", SLICE_CUT(id, 80));
    AUTO(buf_done) Buf text;
    buf_init(&text, WIRE_RANGE_BYTES_MAX);
    wire_range_print(container, range, &text);
    Response response;
    response_begin(r, &response, 200, response_charge_read(r));
    response_header(&response, SLICE("content-type"), SLICE("application/json"));
    response.body = arena_copy(r->arena, buf_view(&text));
    response_send(r, &response);
    return STATUS_OK;
}
