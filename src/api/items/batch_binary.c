/* batch_binary.c - a batch as a stream of binary rows ("RecordIO" of "HybridRow"), as .NET has it.
 *
 *     body      = segment (record-header row)*
 *     segment   = | 81 | schema u32 | presence 01 | length u32 | comment, up to 'length' in all |
 *     record-   = | 81 | schema u32 | length u32 of the row | CRC-32 u32 of the row |
 *       header
 *     operation = | 81 | schema u32 | presence u8 | operationType i32 | resourceType i32 |
 *                 | partitionKey | effectivePartitionKey | id | binaryId | resourceBody | sparse* |
 *     result    = | 81 | schema u32 | presence u8 | statusCode i32 | subStatusCode i32 |
 *                 | eTag | resourceBody | sparse* |
 *     sparse    = | type u8 | path varuint | value |
 *
 * Integers are little-endian. Of the named fields after the integers only those are there whose
 * presence bit is set, each a varuint (seven bits a byte, lowest first) and as many bytes. Sparse
 * fields come in any order, up to the end of the row. The resource bodies are JSON text.
 *
 * A result has no field for a message. It goes where .NET looks for it when it turns a result into
 * an exception: into the resource body, as an object like the body of any failed request. Plain
 * text would do for that, but not for the typed accessors of a batch's response, which deserialize
 * the body.
 */
#include "api/items/batch_binary_int.h"

#include "api/items/batch_form_int.h"
#include "base/crc32.h"
#include "base/encoding.h"

/* The service's binary JSON, which clients may send only to a server that offers it. */
#define BINARY_JSON_VERSION 0x80

typedef struct Reader {
    const uint8_t *at;
    const uint8_t *end;
} Reader;

static Status read_segment(Reader *in, Error *err);
static Status read_record(Reader *in, Reader *row, Error *err);
static Status decode_operation(Arena *arena, Reader *row, BatchOperation *out, Error *err);

static Reader reader_of(Slice bytes)
{
    const uint8_t *at = (const uint8_t *)bytes.ptr;
    return (Reader){at, bytes.len > 0 ? at + bytes.len : at}; /* adding to NULL is undefined */
}

Status batch_binary_decode(Arena *arena, Slice body, BatchOperation **out, size_t *count,
                           Error *err)
{
    Reader in = reader_of(body);
    TRY(read_segment(&in, err));
    BatchOperation *operations = ARENA_NEW_ARRAY(arena, BatchOperation, BATCH_OPERATIONS_MAX);
    size_t operation_count = 0;
    while (in.at < in.end) {
        if (operation_count == BATCH_OPERATIONS_MAX)
            return batch_refuse_count(err);
        Reader row;
        if (read_record(&in, &row, err) != STATUS_OK ||
            decode_operation(arena, &row, &operations[operation_count], err) != STATUS_OK)
            return error_context(err, "operation %zu", operation_count);
        operation_count++;
    }
    *out = operations;
    *count = operation_count;
    return STATUS_OK;
}

/* Each of these returns false if the row ends before the value does. */

static bool take_bytes(Reader *in, uint64_t size, Slice *out)
{
    if (size > (uint64_t)(in->end - in->at))
        return false;
    *out = slice_make(in->at, size);
    in->at += size;
    return true;
}

static bool take_u8(Reader *in, uint8_t *out)
{
    if (in->at == in->end)
        return false;
    *out = *in->at++;
    return true;
}

static bool take_u32(Reader *in, uint32_t *out)
{
    Slice bytes;
    if (!take_bytes(in, sizeof(*out), &bytes))
        return false;
    memcpy(out, bytes.ptr, sizeof(*out));
    return true;
}

static bool take_varuint(Reader *in, uint64_t *out)
{
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        uint8_t byte;
        if (!take_u8(in, &byte))
            return false;
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) {
            *out = value;
            return shift < 63 || byte <= 1;
        }
    }
    return false;
}

static bool take_sized(Reader *in, Slice *out)
{
    uint64_t size;
    return take_varuint(in, &size) && take_bytes(in, size, out);
}

static Status refuse_cut(const char *what, Error *err)
{
    return error_set(err, STATUS_BAD_REQUEST, SUB_NONE, "%s is cut short or too long", what);
}

/* The version byte and the schema, with which every row begins. */
static Status expect_row(Reader *in, uint32_t schema, const char *what, Error *err)
{
    uint8_t version;
    uint32_t found;
    if (!take_u8(in, &version) || !take_u32(in, &found))
        return refuse_cut(what, err);
    if (version != ROW_VERSION || found != schema)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "%s has version 0x%02x and schema %u, expected 0x%02x and %u", what,
                         version, found, ROW_VERSION, schema);
    return STATUS_OK;
}

static Status read_segment(Reader *in, Error *err)
{
    static const char what[] = "the header of the batch";
    uint8_t presence;
    uint32_t length;
    Slice comment;
    TRY(expect_row(in, SCHEMA_SEGMENT, what, err));
    if (!take_u8(in, &presence) || !take_u32(in, &length))
        return refuse_cut(what, err);
    if (presence != SEGMENT_HAS_LENGTH || length < SEGMENT_BYTES ||
        !take_bytes(in, length - SEGMENT_BYTES, &comment))
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE, "%s has a wrong length", what);
    return STATUS_OK;
}

static Status read_record(Reader *in, Reader *row, Error *err)
{
    static const char what[] = "the record";
    uint32_t length;
    uint32_t crc;
    Slice bytes;
    TRY(expect_row(in, SCHEMA_RECORD, what, err));
    if (!take_u32(in, &length) || !take_u32(in, &crc) || !take_bytes(in, length, &bytes))
        return refuse_cut(what, err);
    if (crc32_of(bytes) != crc)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "the checksum of the record is 0x%08x, expected 0x%08x", crc,
                         crc32_of(bytes));
    *row = reader_of(bytes);
    return STATUS_OK;
}

static Status copy_text(Arena *arena, Slice text, const char *name, Slice *out, Error *err)
{
    if (!json_utf8_valid(text))
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE, "'%s' is not UTF-8", name);
    *out = arena_copy(arena, text);
    return STATUS_OK;
}

static Status read_op(Reader *row, uint8_t presence, BatchOp *out, Error *err)
{
    uint32_t code;
    uint32_t resource_type;
    if (!take_u32(row, &code) || !take_u32(row, &resource_type))
        return refuse_cut("the operation", err);
    if ((presence & HAS_OPERATION_TYPE) == 0 || (presence & HAS_RESOURCE_TYPE) == 0)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "'%s' and 'resourceType' must be present", BATCH_OPERATION_TYPE);
    if (resource_type != RESOURCE_TYPE_DOCUMENT)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "'resourceType' is %u, expected %d (document)", resource_type,
                         RESOURCE_TYPE_DOCUMENT);
    for (size_t i = 0; i < BATCH_OP_COUNT; i++) {
        if (BATCH_KINDS[i].code == code) {
            *out = (BatchOp)i;
            return STATUS_OK;
        }
    }
    return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                     "'%s' is %u, which is not an operation of a batch", BATCH_OPERATION_TYPE,
                     code);
}

/* A named field; '*out' stays empty if it is not there. */
static Status read_field(Reader *row, uint8_t presence, uint8_t bit, const char *name, Slice *out,
                         Error *err)
{
    if ((presence & bit) != 0 && !take_sized(row, out))
        return refuse_cut(name, err);
    return STATUS_OK;
}

static Status read_text(Arena *arena, Reader *row, uint8_t presence, uint8_t bit, const char *name,
                        Slice *out, Error *err)
{
    Slice text = SLICE_EMPTY;
    TRY(read_field(row, presence, bit, name, &text, err));
    return copy_text(arena, text, name, out, err);
}

static Status parse_body(Arena *arena, Slice text, BatchOperation *operation, Error *err)
{
    if (text.len == 0)
        return STATUS_OK;
    if ((uint8_t)text.ptr[0] == BINARY_JSON_VERSION)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "'%s' is binary JSON, which this server does not offer; send JSON text",
                         BATCH_RESOURCE_BODY);
    if (json_parse(arena, text, &operation->body, err) != STATUS_OK)
        return error_context(err, "'%s'", BATCH_RESOURCE_BODY);
    operation->body_bytes = text.len;
    return STATUS_OK;
}

static Status refuse_type(const char *name, uint8_t type, Error *err)
{
    return error_set(err, STATUS_BAD_REQUEST, SUB_NONE, "'%s' has the unexpected type 0x%02x", name,
                     type);
}

static Status read_sparse_text(Arena *arena, Reader *row, uint8_t type, const char *name,
                               Slice *out, Error *err)
{
    Slice text;
    if (type != TYPE_UTF8)
        return refuse_type(name, type, err);
    if (!take_sized(row, &text))
        return refuse_cut(name, err);
    return copy_text(arena, text, name, out, err);
}

static Status read_known(Arena *arena, Reader *row, uint8_t type, uint64_t token,
                         BatchOperation *operation, Error *err)
{
    Slice text;
    switch (token) {
    case TOKEN_INDEXING:
        TRY(read_sparse_text(arena, row, type, BATCH_INDEXING, &text, err));
        return batch_indexing_parse(text, &operation->indexing, err);
    case TOKEN_IF_MATCH:
        return read_sparse_text(arena, row, type, BATCH_IF_MATCH, &operation->if_match, err);
    case TOKEN_IF_NONE_MATCH:
        return read_sparse_text(arena, row, type, BATCH_IF_NONE_MATCH, &operation->if_none_match,
                                err);
    case TOKEN_TIME_TO_LIVE:
        return batch_refuse_field(BATCH_TIME_TO_LIVE, err);
    case TOKEN_MINIMAL:
        if (type != TYPE_TRUE && type != TYPE_FALSE)
            return refuse_type(BATCH_MINIMAL, type, err);
        operation->minimal = type == TYPE_TRUE;
        return STATUS_OK;
    default:
        /* Smaller numbers are those of the named fields, which come first. */
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE, "path %u cannot be a sparse field",
                         (unsigned)token);
    }
}

/* The bytes that the value of a scalar takes; arrays, objects and the like are refused. */
static bool take_scalar_size(Reader *in, uint8_t type, uint64_t *size)
{
    uint64_t number;
    switch (type) {
    case TYPE_NULL:
    case TYPE_FALSE:
    case TYPE_TRUE:
        *size = 0;
        return true;
    case TYPE_INT8:
    case TYPE_UINT8:
        *size = 1;
        return true;
    case TYPE_INT16:
    case TYPE_UINT16:
        *size = 2;
        return true;
    case TYPE_INT32:
    case TYPE_UINT32:
    case TYPE_FLOAT32:
        *size = 4;
        return true;
    case TYPE_INT64:
    case TYPE_UINT64:
    case TYPE_FLOAT64:
    case TYPE_DATE_TIME:
    case TYPE_UNIX_DATE_TIME:
        *size = 8;
        return true;
    case TYPE_OBJECT_ID:
        *size = 12;
        return true;
    case TYPE_DECIMAL:
    case TYPE_GUID:
    case TYPE_FLOAT128:
        *size = 16;
        return true;
    case TYPE_VARINT:
    case TYPE_VARUINT:
        *size = 0;
        return take_varuint(in, &number);
    case TYPE_UTF8:
    case TYPE_BINARY:
        return take_varuint(in, size);
    default:
        return false;
    }
}

/* A field whose path is written in full is none of the schema's: it is skipped, as an unknown
 * member of the JSON form is. */
static Status skip_unknown(Reader *row, uint8_t type, uint64_t path_bytes, Error *err)
{
    Slice skipped;
    uint64_t size;
    if (!take_bytes(row, path_bytes, &skipped) || !take_scalar_size(row, type, &size) ||
        !take_bytes(row, size, &skipped))
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "an unknown field of type 0x%02x cannot be skipped", type);
    return STATUS_OK;
}

static Status read_sparse(Arena *arena, Reader *row, BatchOperation *operation, Error *err)
{
    uint32_t seen = 0;
    static_assert(TOKEN_COUNT <= 32, "one bit each");
    while (row->at < row->end) {
        uint8_t type;
        uint64_t token;
        if (!take_u8(row, &type) || !take_varuint(row, &token))
            return refuse_cut("a sparse field", err);
        if (token >= TOKEN_COUNT) {
            TRY(skip_unknown(row, type, token - TOKEN_COUNT, err));
            continue;
        }
        if ((seen & 1u << token) != 0)
            return error_set(err, STATUS_BAD_REQUEST, SUB_NONE, "path %u is there twice",
                             (unsigned)token);
        seen |= 1u << token;
        TRY(read_known(arena, row, type, token, operation, err));
    }
    return STATUS_OK;
}

static Status decode_operation(Arena *arena, Reader *row, BatchOperation *out, Error *err)
{
    static const char what[] = "the operation";
    BatchOperation operation = {.body = JSON_NONE};
    uint8_t has;
    TRY(expect_row(row, SCHEMA_OPERATION, what, err));
    if (!take_u8(row, &has))
        return refuse_cut(what, err);
    TRY(read_op(row, has, &operation.op, err));
    if ((has & HAS_EFFECTIVE_KEY) != 0)
        return batch_refuse_field(BATCH_EFFECTIVE_KEY, err);
    if ((has & HAS_BINARY_ID) != 0)
        return batch_refuse_field(BATCH_BINARY_ID, err);
    if ((has & HAS_UNKNOWN) != 0)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE, "%s has unknown fields", what);

    TRY(read_text(arena, row, has, HAS_PARTITION_KEY, BATCH_PARTITION_KEY, &operation.partition_key,
                  err));
    operation.has_partition_key = (has & HAS_PARTITION_KEY) != 0;
    TRY(read_text(arena, row, has, HAS_ID, BATCH_ID, &operation.id, err));
    Slice body = SLICE_EMPTY;
    TRY(read_field(row, has, HAS_RESOURCE_BODY, BATCH_RESOURCE_BODY, &body, err));
    TRY(read_sparse(arena, row, &operation, err));
    if (BATCH_KINDS[operation.op].needs_body)
        TRY(parse_body(arena, body, &operation, err));
    TRY(batch_operation_check(&operation, err));
    *out = operation;
    return STATUS_OK;
}

static void put_u32(Buf *out, uint32_t value)
{
    buf_bytes(out, &value, sizeof(value)); /* encoding.h asserts the byte order */
}

static void put_row(Buf *out, uint32_t schema)
{
    buf_byte(out, ROW_VERSION);
    put_u32(out, schema);
}

static void put_sized(Buf *out, Slice bytes)
{
    size_t size = bytes.len;
    for (; size >= 0x80; size >>= 7)
        buf_byte(out, (uint8_t)(size | 0x80));
    buf_byte(out, (uint8_t)size);
    buf_slice(out, bytes);
}

static void put_message(Buf *out, Slice message)
{
    AUTO(buf_done) Buf body;
    buf_init(&body, 6 * message.len + 64); /* a byte may become six */
    buf_slice(&body, SLICE("{\"message\":"));
    batch_print_message(message, &body);
    buf_byte(&body, '}');
    put_sized(out, buf_view(&body));
}

static void encode_result(const BatchResult *result, Buf *out)
{
    uint8_t has = RESULT_HAS_STATUS | RESULT_HAS_SUB_STATUS;
    if (result->etag.len > 0)
        has |= RESULT_HAS_ETAG;
    if (result->resource_body.len > 0 || result->message.len > 0)
        has |= RESULT_HAS_BODY;

    put_row(out, SCHEMA_RESULT);
    buf_byte(out, has);
    put_u32(out, (uint32_t)result->status);
    put_u32(out, (uint32_t)result->sub_status);
    if (result->etag.len > 0)
        put_sized(out, result->etag);
    if (result->resource_body.len > 0)
        put_sized(out, result->resource_body);
    else if (result->message.len > 0)
        put_message(out, result->message);

    if (result->retry_after_ms > 0) {
        buf_byte(out, TYPE_UINT32);
        buf_byte(out, RESULT_TOKEN_RETRY_AFTER);
        put_u32(out, result->retry_after_ms);
    }
    buf_byte(out, TYPE_FLOAT64);
    buf_byte(out, RESULT_TOKEN_CHARGE);
    buf_bytes(out, &result->request_charge, sizeof(result->request_charge));
}

void batch_binary_encode(const BatchResult *results, size_t count, Buf *out)
{
    put_row(out, SCHEMA_SEGMENT);
    buf_byte(out, SEGMENT_HAS_LENGTH);
    put_u32(out, SEGMENT_BYTES);
    for (size_t i = 0; i < count; i++) {
        /* Length and checksum come before the row, and are filled in after it. */
        put_row(out, SCHEMA_RECORD);
        put_u32(out, 0);
        put_u32(out, 0);
        size_t start = out->len;
        encode_result(&results[i], out);
        if (buf_full(out))
            return;
        uint32_t header[2] = {(uint32_t)(out->len - start),
                              crc32_of(slice_make(out->ptr + start, out->len - start))};
        memcpy(out->ptr + start - sizeof(header), header, sizeof(header));
    }
}
