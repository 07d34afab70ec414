/* remote_format.c - see remote_format_int.h. */
#include "query/page/remote_format_int.h"

#include "base/encoding.h"

#include <math.h>

enum {
    FORMAT = '1',
    ASK_ORDERED = 1,
    ASK_AFTER = 2,
    ASK_WHOLE = 4,
    BATCH_OVER = 1,
    BATCH_NUMBERS_DOWN = 2,
    BATCH_PASSED = 4,
    DOCUMENT_FETCHED = 1,
    GROUPS_TOLD = 1,
};

/* ---- parts ---- */

static void put_u32(Buf *out, uint32_t value)
{
    char bytes[sizeof(value)];
    be32_put(bytes, value);
    buf_bytes(out, bytes, sizeof(bytes));
}

static void put_u64(Buf *out, uint64_t value)
{
    char bytes[sizeof(value)];
    be64_put(bytes, value);
    buf_bytes(out, bytes, sizeof(bytes));
}

static void put_short(Buf *out, Slice bytes)
{
    ASSERT(bytes.len <= REMOTE_PLACE_BYTES_MAX);
    buf_byte(out, (uint8_t)(bytes.len >> 8));
    buf_byte(out, (uint8_t)bytes.len);
    buf_slice(out, bytes);
}

static bool take(Slice *rest, size_t len, Slice *out)
{
    if (rest->len < len)
        return false;
    *out = slice_first(*rest, len);
    *rest = slice_from(*rest, len);
    return true;
}

static bool take_byte(Slice *rest, uint8_t *out)
{
    Slice bytes;
    if (!take(rest, 1, &bytes))
        return false;
    *out = (uint8_t)bytes.ptr[0];
    return true;
}

static bool take_u32(Slice *rest, uint32_t *out)
{
    Slice bytes;
    if (!take(rest, sizeof(*out), &bytes))
        return false;
    *out = be32_get(bytes.ptr);
    return true;
}

static bool take_u64(Slice *rest, uint64_t *out)
{
    Slice bytes;
    if (!take(rest, sizeof(*out), &bytes))
        return false;
    *out = be64_get(bytes.ptr);
    return true;
}

static bool take_short(Slice *rest, Slice *out)
{
    Slice head;
    if (!take(rest, 2, &head))
        return false;
    size_t len = (size_t)(uint8_t)head.ptr[0] << 8 | (uint8_t)head.ptr[1];
    return len <= REMOTE_PLACE_BYTES_MAX && take(rest, len, out);
}

static bool take_flags(Slice *rest, uint8_t known, uint8_t *out)
{
    return take_byte(rest, out) && (*out & ~known) == 0;
}

static bool take_passed(Slice *rest, RemotePassed *out)
{
    return take_u64(rest, &out->documents) && take_u64(rest, &out->bytes);
}

/* Of documents that are read one by one. */
static bool take_mode(Slice *rest, PageMode *out)
{
    uint8_t mode = 0;
    if (!take_byte(rest, &mode))
        return false;
    *out = (PageMode)mode;
    switch (mode) {
    case PAGE_ANY:
    case PAGE_NUMBER:
    case PAGE_EPK:
    case PAGE_RANGE:
    case PAGE_ORDER:
        return true;
    default:
        return false;
    }
}

static bool take_head(Slice *rest, uint8_t *kind)
{
    uint8_t format = 0;
    return take_byte(rest, &format) && format == FORMAT && take_byte(rest, kind);
}

static void put_head(Buf *out, RemoteKind kind)
{
    buf_byte(out, FORMAT);
    buf_byte(out, (uint8_t)kind);
}

Status remote_malformed(Error *err)
{
    return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                     "Nodes of the cluster do not understand each other: what one has said about "
                     "a partition is malformed.");
}

/* ---- what is asked ---- */

void remote_ask_write(const RemoteAsk *ask, Buf *out)
{
    uint64_t rows = 0;
    memcpy(&rows, &ask->rows_wanted, sizeof(rows));
    put_head(out, ask->kind);
    buf_byte(out, (uint8_t)((ask->is_ordered ? ASK_ORDERED : 0) | (ask->is_after ? ASK_AFTER : 0) |
                            (ask->is_whole ? ASK_WHOLE : 0)));
    buf_byte(out, (uint8_t)ask->way);
    buf_byte(out, (uint8_t)ask->mode);
    put_u32(out, ask->count_max);
    put_u32(out, ask->looks_max);
    put_u32(out, ask->bytes_max);
    put_u64(out, rows);
    put_u64(out, ask->time_us);
    put_u32(out, ask->targets);
    put_u64(out, (uint64_t)ask->static_ticks);
    put_short(out, ask->epk_from);
    put_short(out, ask->epk_to);
    put_short(out, ask->place);
}

static bool take_numbers(Slice *rest, RemoteAsk *out)
{
    uint64_t rows = 0;
    uint64_t ticks = 0;
    if (!take_u32(rest, &out->count_max) || !take_u32(rest, &out->looks_max) ||
        !take_u32(rest, &out->bytes_max) || !take_u64(rest, &rows) ||
        !take_u64(rest, &out->time_us) || !take_u32(rest, &out->targets) || !take_u64(rest, &ticks))
        return false;
    memcpy(&out->rows_wanted, &rows, sizeof(rows));
    out->static_ticks = (int64_t)ticks;
    return out->count_max > 0 && out->looks_max > 0 && out->targets > 0 &&
           isfinite(out->rows_wanted) && out->rows_wanted >= 0;
}

bool remote_ask_read(Slice bytes, RemoteAsk *out)
{
    uint8_t kind = 0;
    uint8_t flags = 0;
    uint8_t way = 0;
    Slice rest = bytes;
    *out = (RemoteAsk){0};
    if (!take_head(&rest, &kind) || (kind != REMOTE_DOCUMENTS && kind != REMOTE_GROUPS) ||
        !take_flags(&rest, ASK_ORDERED | ASK_AFTER | ASK_WHOLE, &flags) ||
        !take_byte(&rest, &way) || way > PAGE_REPEATS || !take_mode(&rest, &out->mode) ||
        !take_numbers(&rest, out) || !take_short(&rest, &out->epk_from) ||
        !take_short(&rest, &out->epk_to) || !take_short(&rest, &out->place))
        return false;
    out->kind = (RemoteKind)kind;
    out->way = (PageWay)way;
    out->is_ordered = (flags & ASK_ORDERED) != 0;
    out->is_after = (flags & ASK_AFTER) != 0;
    out->is_whole = (flags & ASK_WHOLE) != 0;
    return rest.len == 0;
}

/* ---- answers ---- */

int remote_kind(Slice answer)
{
    uint8_t kind = 0;
    return take_head(&answer, &kind) ? kind : 0;
}

void remote_refused_write(Buf *out)
{
    put_head(out, REMOTE_REFUSED);
}

static void put_passed(Buf *out, const RemotePassed *passed)
{
    put_u64(out, passed->documents);
    put_u64(out, passed->bytes);
}

void remote_batch_write(const RemoteBatch *batch, Buf *out)
{
    put_head(out, REMOTE_DOCUMENTS);
    buf_byte(out, (uint8_t)((batch->is_over ? BATCH_OVER : 0) |
                            (batch->numbers_down ? BATCH_NUMBERS_DOWN : 0) |
                            (batch->is_passed ? BATCH_PASSED : 0)));
    buf_byte(out, (uint8_t)batch->mode);
    put_passed(out, &batch->passed);
    put_u64(out, batch->keys);
    put_short(out, batch->place);
    put_u32(out, batch->count);
    buf_slice(out, batch->documents);
}

bool remote_batch_read(Slice answer, RemoteBatch *out)
{
    uint8_t kind = 0;
    uint8_t flags = 0;
    Slice rest = answer;
    *out = (RemoteBatch){0};
    if (!take_head(&rest, &kind) || kind != REMOTE_DOCUMENTS ||
        !take_flags(&rest, BATCH_OVER | BATCH_NUMBERS_DOWN | BATCH_PASSED, &flags) ||
        !take_mode(&rest, &out->mode) || !take_passed(&rest, &out->passed) ||
        !take_u64(&rest, &out->keys) || !take_short(&rest, &out->place) ||
        !take_u32(&rest, &out->count))
        return false;
    out->is_over = (flags & BATCH_OVER) != 0;
    out->numbers_down = (flags & BATCH_NUMBERS_DOWN) != 0;
    out->is_passed = (flags & BATCH_PASSED) != 0;
    out->documents = rest;
    /* A batch that is not over has come further, and says where. */
    return out->mode != PAGE_ANY && (out->is_over || out->place.len > 0);
}

void remote_document_write(const RemoteDocument *document, Slice item, Buf *out)
{
    buf_byte(out, document->was_fetched ? DOCUMENT_FETCHED : 0);
    put_passed(out, &document->passed);
    put_u64(out, document->keys);
    put_u64(out, document->item.bytes);
    put_short(out, document->place);
    put_u32(out, (uint32_t)item.len);
    buf_slice(out, item);
}

/* The document of an item is read without checks later, so it is checked here. */
static bool is_item(Slice bytes, Item *out, Error *err)
{
    Json document;
    return item_decode(bytes, out, err) == STATUS_OK &&
           json_open(slice_from(bytes, ITEM_HEADER_BYTES), &document, err) == STATUS_OK &&
           json_is(document, JSON_OBJECT);
}

Status remote_document_read(Slice *documents, RemoteDocument *out, Error *err)
{
    uint8_t flags = 0;
    uint64_t bytes = 0;
    uint32_t len = 0;
    Slice item;
    if (!take_flags(documents, DOCUMENT_FETCHED, &flags) || !take_passed(documents, &out->passed) ||
        !take_u64(documents, &out->keys) || !take_u64(documents, &bytes) ||
        !take_short(documents, &out->place) || !take_u32(documents, &len) ||
        !take(documents, len, &item) || !is_item(item, &out->item, err))
        return remote_malformed(err);
    out->was_fetched = (flags & DOCUMENT_FETCHED) != 0;
    out->item.bytes = (size_t)bytes;
    return STATUS_OK;
}

void remote_groups_write(const RemoteGroups *groups, Buf *out)
{
    put_head(out, REMOTE_GROUPS);
    buf_byte(out, groups->is_told ? GROUPS_TOLD : 0);
    put_u64(out, groups->keys);
    buf_slice(out, groups->list);
}

bool remote_groups_read(Slice answer, RemoteGroups *out)
{
    uint8_t kind = 0;
    uint8_t flags = 0;
    *out = (RemoteGroups){0};
    if (!take_head(&answer, &kind) || kind != REMOTE_GROUPS ||
        !take_flags(&answer, GROUPS_TOLD, &flags) || !take_u64(&answer, &out->keys))
        return false;
    out->is_told = (flags & GROUPS_TOLD) != 0;
    out->list = answer;
    return true;
}
