/* document_position.c - see document_position_int.h.
 *
 *     token           = base64 of | 'L' | order u8 | place |
 *     order           = '0' by number, '1' by EPK, '2' by number, of one key
 *     place by EPK    = position
 *     place by number = | from | (| to | number u64 BE |) one or more times |
 *     from, to        = | length u16 LE | EPK |
 */
#include "api/items/document_position_int.h"

#include "api/core/request_int.h"
#include "base/encoding.h"
#include "catalog/epk_range.h"

enum {
    TOKEN_BYTES_MAX = TOKEN_TEXT_MAX / 4 * 3,
    HEAD_BYTES = 1 + 1,
    /* Of a range; a client's own bounds are not kept in tokens. */
    BOUND_BYTES_MAX = EPK_BOUND_BYTES_MAX,
};
static_assert(HEAD_BYTES + SCAN_POSITION_BYTES_MAX <= TOKEN_BYTES_MAX, "any position fits");
static_assert(HEAD_BYTES + 2 * (2 + BOUND_BYTES_MAX) + SCAN_NUMBER_BYTES <= TOKEN_BYTES_MAX,
              "any piece fits");

/* Joins the last two pieces, from the lower of their positions: items may then be listed twice, and
 * none is lost. More than POSITION_PIECES_MAX pieces are needed only if partitions are split again
 * and again while one list is read. */
static void merge_last(PositionPiece *pieces, size_t *count)
{
    PositionPiece *kept = &pieces[*count - 2];
    const PositionPiece *last = &pieces[*count - 1];
    if (slice_compare(last->at, kept->at) < 0)
        kept->at = last->at;
    kept->to = last->to;
    --*count;
}

void document_position_advance(DocumentPosition *place, size_t index, Slice min, Slice max,
                               Slice position)
{
    ASSERT(index <= place->piece_count);
    if (place->order == SCAN_BY_EPK) {
        place->at = position;
        return;
    }
    Slice from = index == 0 ? place->from : place->pieces[index - 1].to;
    place->from = slice_compare(min, from) > 0 ? min : from;
    bool is_piece = index < place->piece_count;
    bool cuts = is_piece && slice_compare(place->pieces[index].to, max) < 0;
    bool leaves = is_piece && slice_compare(max, place->pieces[index].to) < 0;
    PositionPiece next[POSITION_PIECES_MAX + 1];
    size_t count = 0;
    next[count++] = (PositionPiece){.to = cuts ? place->pieces[index].to : max, .at = position};
    for (size_t i = leaves ? index : index + 1; i < place->piece_count; i++)
        next[count++] = place->pieces[i];
    if (count > POSITION_PIECES_MAX)
        merge_last(next, &count);
    memcpy(place->pieces, next, count * sizeof(PositionPiece));
    place->piece_count = count;
}

static char order_tag(ScanOrder order, bool is_of_key)
{
    if (order == SCAN_BY_EPK)
        return '1';
    return is_of_key ? '2' : '0';
}

static size_t pieces_size(Slice from, const PositionPiece *pieces, size_t count)
{
    size_t size = 2 + from.len;
    for (size_t i = 0; i < count; i++)
        size += 2 + pieces[i].to.len + SCAN_NUMBER_BYTES;
    return size;
}

static void put_bound(Buf *out, Slice bound)
{
    ASSERT(bound.len <= BOUND_BYTES_MAX);
    uint16_t len = (uint16_t)bound.len;
    buf_bytes(out, &len, sizeof(len));
    buf_slice(out, bound);
}

static void put_pieces(Buf *out, const DocumentPosition *place)
{
    PositionPiece pieces[POSITION_PIECES_MAX];
    size_t count = place->piece_count;
    memcpy(pieces, place->pieces, count * sizeof(PositionPiece));
    while (pieces_size(place->from, pieces, count) > TOKEN_BYTES_MAX - HEAD_BYTES)
        merge_last(pieces, &count);
    put_bound(out, place->from);
    for (size_t i = 0; i < count; i++) {
        put_bound(out, pieces[i].to);
        buf_slice(out, pieces[i].at);
    }
}

Slice document_position_print(Arena *arena, const DocumentPosition *place)
{
    AUTO(buf_done) Buf bytes;
    buf_init(&bytes, TOKEN_BYTES_MAX);
    buf_byte(&bytes, 'L');
    buf_byte(&bytes, (uint8_t)order_tag(place->order, place->is_of_key));
    if (place->order == SCAN_BY_EPK)
        buf_slice(&bytes, place->at);
    else
        put_pieces(&bytes, place);
    ASSERT(!buf_full(&bytes));
    size_t len = BASE64_LEN(bytes.len);
    char *text = arena_alloc(arena, len);
    base64_encode(BASE64_RID, bytes.ptr, bytes.len, text);
    return slice_make(text, len);
}

static bool take(Slice *rest, size_t len, Slice *out)
{
    if (len > rest->len)
        return false;
    *out = slice_first(*rest, len);
    *rest = slice_from(*rest, len);
    return true;
}

static bool take_bound(Slice *rest, Slice *out)
{
    Slice bytes;
    uint16_t len = 0;
    if (!take(rest, sizeof(len), &bytes))
        return false;
    memcpy(&len, bytes.ptr, sizeof(len));
    return len <= BOUND_BYTES_MAX && take(rest, len, out);
}

static bool take_pieces(Slice rest, DocumentPosition *out)
{
    if (!take_bound(&rest, &out->from))
        return false;
    do {
        PositionPiece *piece = &out->pieces[out->piece_count];
        if (out->piece_count == POSITION_PIECES_MAX || !take_bound(&rest, &piece->to) ||
            !take(&rest, SCAN_NUMBER_BYTES, &piece->at))
            return false;
        /* A page visits partitions in their order, each once. */
        if (out->piece_count > 0 && slice_compare(piece[-1].to, piece->to) >= 0)
            return false;
        out->piece_count++;
    } while (rest.len > 0);
    return true;
}

static bool parse(Arena *arena, ScanOrder order, bool is_of_key, Slice token, DocumentPosition *out)
{
    char *bytes = arena_alloc(arena, TOKEN_BYTES_MAX);
    size_t len = 0;
    Slice head;
    if (!base64_decode(BASE64_RID, token, bytes, TOKEN_BYTES_MAX, &len))
        return false;
    Slice rest = slice_make(bytes, len);
    if (!take(&rest, HEAD_BYTES, &head) || head.ptr[0] != 'L' ||
        head.ptr[1] != order_tag(order, is_of_key))
        return false;
    *out = (DocumentPosition){.order = order, .is_of_key = is_of_key};
    if (order == SCAN_BY_NUMBER)
        return take_pieces(rest, out);
    out->at = rest;
    return partition_scan_is_position(order, rest);
}

Status document_position_parse(Arena *arena, ScanOrder order, Slice token, DocumentPosition *out,
                               Error *err)
{
    DocumentPosition place;
    if (!parse(arena, order, false, token, &place))
        return request_refuse_token(token, err);
    *out = place;
    return STATUS_OK;
}

Status document_position_parse_of_key(Arena *arena, Slice token, DocumentPosition *out, Error *err)
{
    DocumentPosition place;
    if (!parse(arena, SCAN_BY_NUMBER, true, token, &place) &&
        !parse(arena, SCAN_BY_EPK, false, token, &place))
        return request_refuse_token(token, err);
    *out = place;
    return STATUS_OK;
}
