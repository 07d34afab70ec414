/* item.c - see item.h.
 *
 *     | version u8 | flags u8 | order u16 | ts u32 | ttl i32 | stamp u32 | number u64 | lsn u64 |
 *     | document |
 *
 * Integers are little-endian. The document is in the json layer's form, with its version byte.
 */
#include "partition/item.h"

#include "base/encoding.h"

#include <stdio.h>

enum {
    ITEM_VERSION = 1,
    DOCUMENT_BYTES_MIN = 2, /* its version byte and a value */
};

enum { ITEM_FLAG_UNINDEXED = 1, ITEM_FLAG_RESTORED = 2 };

typedef struct ItemHeader {
    uint8_t version;
    uint8_t flags;  /* ITEM_FLAG_...; 0 in items from before there were flags */
    uint16_t order; /* 0 in items from before there was a change log */
    uint32_t ts_s;
    int32_t ttl_s;
    uint32_t stamp; /* 0 in items from before there were transactions */
    uint64_t number;
    uint64_t lsn;
} ItemHeader;
static_assert(sizeof(ItemHeader) == ITEM_HEADER_BYTES,
              "the header is written as it lies in memory");

static const Slice SYSTEM_PROPERTIES[] = {
    SLICE_INIT("_rid"), SLICE_INIT("_self"),        SLICE_INIT("_etag"),
    SLICE_INIT("_ts"),  SLICE_INIT("_attachments"),
};

Slice item_encode(Arena *arena, const Item *item)
{
    ItemHeader header = {
        .version = ITEM_VERSION,
        .flags = (uint8_t)((item->is_unindexed ? ITEM_FLAG_UNINDEXED : 0) |
                           (item->is_restored ? ITEM_FLAG_RESTORED : 0)),
        .order = item->order,
        .ts_s = item->ts_s,
        .ttl_s = item->ttl_s,
        .stamp = item->stamp,
        .number = item->number,
        .lsn = item->lsn,
    };
    Slice document = json_bytes(arena, item->document);
    char *bytes = arena_alloc(arena, sizeof(header) + document.len);
    memcpy(bytes, &header, sizeof(header));
    memcpy(bytes + sizeof(header), document.ptr, document.len);
    return slice_make(bytes, sizeof(header) + document.len);
}

Status item_decode(Slice bytes, Item *out, Error *err)
{
    ItemHeader header;
    if (bytes.len < sizeof(header) + DOCUMENT_BYTES_MIN || (uint8_t)bytes.ptr[0] != ITEM_VERSION)
        return error_set(err, STATUS_CORRUPT, SUB_NONE, "a stored item is damaged");
    memcpy(&header, bytes.ptr, sizeof(header));
    *out = (Item){
        .number = header.number,
        .lsn = header.lsn,
        .ts_s = header.ts_s,
        .ttl_s = header.ttl_s,
        .stamp = header.stamp,
        .order = header.order,
        .is_unindexed = (header.flags & ITEM_FLAG_UNINDEXED) != 0,
        .is_restored = (header.flags & ITEM_FLAG_RESTORED) != 0,
        .document = json_trust(slice_from(bytes, sizeof(header))),
        .bytes = bytes.len,
    };
    return STATUS_OK;
}

void item_etag(const Item *item, char out[ITEM_ETAG_LEN])
{
    /* LSN, partition and time: in the form of a GUID, different for every version. A transaction
     * does not know its LSN yet when it shows an item, so such an item has its stamp instead; the
     * lowest bit tells the two kinds apart. */
    uint64_t lsn = item->is_restored ? item->lsn - item->stamp : item->lsn;
    uint64_t mark = (lsn & 0xFFFFFFFF) << 32 | (lsn >> 32 & 0xFFFF) << 16;
    uint64_t low = (uint64_t)item->ts_s << 16;
    if (UNLIKELY(item->stamp != 0 && !item->is_restored)) {
        mark = (uint64_t)item->stamp << 32 | (item->number & 0xFFFF) << 16;
        low |= 1;
    }
    uint64_t high = mark | (item->number >> ITEM_COUNT_BITS & 0xFFFF);
    out[0] = '"';
    guid_print(high, low, out + 1);
    out[1 + GUID_LEN] = '"';
}

void item_restore(Item *item, uint64_t lsn)
{
    ASSERT(lsn > item->lsn);
    uint64_t shown = item->is_restored ? item->lsn - item->stamp : item->lsn;
    bool has_stamp = item->stamp != 0 && !item->is_restored; /* then no LSN is in the ETag */
    item->lsn = lsn;
    if (has_stamp)
        return;
    item->is_restored = lsn - shown <= UINT32_MAX;
    item->stamp = item->is_restored ? (uint32_t)(lsn - shown) : 0;
}

/* The rid's 16 bytes are the container's 8 and the number; see base/rid.h for the layout. */
enum { RID_LEN = 24 };
static void print_rid(const PartitionSchema *schema, uint64_t number, char out[RID_LEN])
{
    uint8_t bytes[16];
    memcpy(bytes, &schema->database, 4);
    be32_put(bytes + 4, schema->container | 0x80000000u);
    memcpy(bytes + 8, &number, 8);
    base64_encode(BASE64_RID, bytes, sizeof(bytes), out);
}

void item_print(const PartitionSchema *schema, const Item *item, Buf *out)
{
    char rid[RID_LEN];
    char etag[ITEM_ETAG_LEN];
    print_rid(schema, item->number, rid);
    item_etag(item, etag);
    json_print(item->document, out);
    if (buf_full(out))
        return;
    out->len--; /* the closing brace; a document has an id, so there is a member before it */
    buf_slice(out, SLICE(",\"_rid\":\""));
    buf_bytes(out, rid, RID_LEN);
    buf_slice(out, SLICE("\",\"_self\":\""));
    buf_slice(out, schema->self);
    buf_slice(out, SLICE("docs/"));
    buf_bytes(out, rid, RID_LEN);
    buf_slice(out, SLICE("/\",\"_etag\":\"\\\""));
    buf_bytes(out, etag + 1, ITEM_ETAG_LEN - 2);
    buf_slice(out, SLICE("\\\"\",\"_attachments\":\"attachments/\",\"_ts\":"));
    buf_u64(out, item->ts_s);
    buf_byte(out, '}');
}

Json item_document(Arena *arena, const PartitionSchema *schema, const Item *item)
{
    char rid[RID_LEN];
    char etag[ITEM_ETAG_LEN];
    print_rid(schema, item->number, rid);
    item_etag(item, etag);
    JsonBuilder b;
    json_build(&b, arena);
    json_begin_object(&b);
    JsonIter it = json_iter(item->document);
    while (json_next(&it)) {
        json_key(&b, it.name);
        json_add(&b, it.value);
    }
    json_key(&b, SLICE("_rid"));
    json_add_string(&b, slice_make(rid, RID_LEN));
    json_key(&b, SLICE("_self"));
    json_add_string(&b,
                    arena_format(arena, "%.*sdocs/%.*s/", SLICE_ARG(schema->self), RID_LEN, rid));
    json_key(&b, SLICE("_etag"));
    json_add_string(&b, slice_make(etag, ITEM_ETAG_LEN));
    json_key(&b, SLICE("_attachments"));
    json_add_string(&b, SLICE("attachments/"));
    json_key(&b, SLICE("_ts"));
    json_add_i64(&b, item->ts_s);
    json_end(&b);
    return json_built(&b);
}

uint64_t item_expires_at_s(const PartitionSchema *schema, const Item *item)
{
    if (schema->default_ttl_s == 0)
        return UINT64_MAX;
    int64_t ttl_s = item->ttl_s != 0 ? item->ttl_s : schema->default_ttl_s;
    return ttl_s < 0 ? UINT64_MAX : (uint64_t)item->ts_s + (uint64_t)ttl_s;
}

bool item_is_system(Slice name)
{
    for (size_t i = 0; i < ARRAY_COUNT(SYSTEM_PROPERTIES); i++) {
        if (slice_equal(name, SYSTEM_PROPERTIES[i]))
            return true;
    }
    return false;
}

static Status check_id(Json id, Error *err)
{
    if (!json_is(id, JSON_STRING))
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "The input content is invalid because the required properties - 'id; ' - "
                         "are missing: an item needs an 'id' that is a string.");
    Slice text = json_string(id);
    if (text.len == 0 || text.len > ITEM_ID_BYTES_MAX)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "The item's id has %zu bytes; it must have 1 to %d. Ensure to provide a "
                         "unique non-empty string less than '%d' characters.",
                         text.len, ITEM_ID_BYTES_MAX, ITEM_ID_BYTES_MAX + 1);
    if (slice_find(text, '/') < text.len || slice_find(text, '\\') < text.len)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "The item's id '%.*s' must not contain '/' or '\\'.", SLICE_CUT(text, 80));
    return STATUS_OK;
}

static Status check_ttl(Json ttl, int32_t *out, Error *err)
{
    *out = 0;
    if (json_is(ttl, JSON_UNDEFINED))
        return STATUS_OK;
    int64_t value = 0;
    if (!json_to_i64(ttl, &value) || value < -1 || value == 0 || value > INT32_MAX)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "The item's 'ttl' must be a whole number from 1 to 2147483647, or -1.");
    *out = (int32_t)value;
    return STATUS_OK;
}

Status item_prepare(Arena *arena, Json body, Json *document, Slice *id, int32_t *ttl_s, Error *err)
{
    if (!json_is(body, JSON_OBJECT))
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE, "An item must be a JSON object.");
    TRY(check_id(json_get(body, SLICE("id")), err));
    TRY(check_ttl(json_get(body, SLICE("ttl")), ttl_s, err));
    bool clean = true;
    for (size_t i = 0; i < ARRAY_COUNT(SYSTEM_PROPERTIES); i++)
        clean = clean && json_is(json_get(body, SYSTEM_PROPERTIES[i]), JSON_UNDEFINED);
    *document = body;
    if (!clean) {
        JsonBuilder b;
        json_build(&b, arena);
        json_begin_object(&b);
        JsonIter it = json_iter(body);
        while (json_next(&it)) {
            if (item_is_system(it.name))
                continue;
            json_key(&b, it.name);
            json_add(&b, it.value);
        }
        json_end(&b);
        *document = json_built(&b);
    }
    *id = json_string(json_get(*document, SLICE("id")));
    return STATUS_OK;
}
