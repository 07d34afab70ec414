/* entry_format.c - see entry_format_int.h.
 *
 *     entry = | format u8 | codec u8 | bytes of the writes u32 LE | writes, coded |
 *     codec = 0: as they are; 1: an LZ4 block
 *     write = | kind + 4 * shared: varint | rest: varint | rest bytes | value: varint | value |
 *     kind  = 1 put; 2 delete, which has no value; 3 merge, of which the value is an operand
 *
 * A key is the first 'shared' bytes of the key before it and the 'rest' bytes; it comes without its
 * space, which the journal knows. Keys that are put or deleted come in order within a transaction.
 *
 * The format is that of the cluster when the entry was made. All formats so far are the same.
 *
 * A varint has 7 bits in each byte, the lowest first; all bytes but the last have the highest bit
 * set.
 */
#include "store/replicated/entry_format_int.h"

#include "base/mem.h"

#include <lz4.h>

enum { HEAD_BYTES = 6, VARINT_BYTES_MAX = 5 };
enum { CODEC_PLAIN = 0, CODEC_LZ4 = 1 };
enum { KIND_PUT = 1, KIND_DELETE = 2, KIND_MERGE = 3, KIND_BITS = 2, KIND_MASK = 3 };

/* Below this LZ4 finds next to nothing. */
enum { LZ4_BYTES_MIN = 64 };

static_assert(JOURNAL_ENTRY_BYTES_MAX <= LZ4_MAX_INPUT_SIZE, "an entry is one LZ4 block");

/* ---- writing ---- */

void entry_writer_init(EntryWriter *writer)
{
    *writer = (EntryWriter){.last_len = 0};
    buf_init(&writer->body, JOURNAL_ENTRY_BYTES_MAX - HEAD_BYTES);
}

void entry_writer_done(EntryWriter *writer)
{
    buf_done(&writer->body);
}

void varint_put(Buf *out, size_t value)
{
    for (; value >= 0x80; value >>= 7)
        buf_byte(out, (uint8_t)(value | 0x80));
    buf_byte(out, (uint8_t)value);
}

static size_t shared_with_last(const EntryWriter *writer, Slice key)
{
    size_t most = key.len < writer->last_len ? key.len : writer->last_len;
    size_t shared = 0;
    while (shared < most && key.ptr[shared] == writer->last[shared])
        shared++;
    return shared;
}

static void add_key(EntryWriter *writer, unsigned kind, Slice full)
{
    Slice key = slice_from(full, SPACE_BYTES);
    size_t shared = shared_with_last(writer, key);
    varint_put(&writer->body, shared << KIND_BITS | kind);
    varint_put(&writer->body, key.len - shared);
    buf_slice(&writer->body, slice_from(key, shared));
    if (key.len > shared)
        memcpy(writer->last + shared, key.ptr + shared, key.len - shared);
    writer->last_len = key.len;
}

static void add_value(EntryWriter *writer, Slice value)
{
    varint_put(&writer->body, value.len);
    buf_slice(&writer->body, value);
}

static void add_entry(void *ctx, TreeEntry *entry)
{
    EntryWriter *writer = ctx;
    add_key(writer, entry->deleted ? KIND_DELETE : KIND_PUT, tree_entry_key(entry));
    if (!entry->deleted)
        add_value(writer, tree_entry_value(entry));
}

void entry_add(EntryWriter *writer, const EngineWrites *writes)
{
    tree_each(&writes->tree, add_entry, writer);
    Slice records = writes->merges;
    MergeRecord record;
    while (merge_record_next(&records, &record)) {
        add_key(writer, KIND_MERGE, record.key);
        add_value(writer, record.operand);
    }
}

static void put_head(Buf *out, uint32_t format, unsigned codec, size_t len)
{
    uint32_t bytes = (uint32_t)len;
    char head[HEAD_BYTES] = {(char)format, (char)codec};
    memcpy(head + 2, &bytes, sizeof(bytes));
    buf_bytes(out, head, sizeof(head));
}

/* False, and nothing is written, if it would not become shorter. */
static bool put_compressed(Buf *out, uint32_t format, Slice body)
{
    if (body.len < LZ4_BYTES_MIN || !buf_reserve(out, HEAD_BYTES + body.len))
        return false;
    int len = LZ4_compress_default(body.ptr, out->ptr + out->len + HEAD_BYTES, (int)body.len,
                                   (int)body.len - 1);
    if (len <= 0)
        return false;
    put_head(out, format, CODEC_LZ4, body.len);
    out->len += (size_t)len;
    return true;
}

Status entry_finish(EntryWriter *writer, uint32_t format, Buf *out, Error *err)
{
    ASSERT(format >= 1 && format <= UINT8_MAX);
    Slice body = buf_view(&writer->body);
    bool fits = !buf_full(&writer->body);
    if (fits && !put_compressed(out, format, body)) {
        put_head(out, format, CODEC_PLAIN, body.len);
        buf_slice(out, body);
    }
    buf_reset(&writer->body);
    writer->last_len = 0;
    if (!fits || buf_full(out))
        return error_set(err, STATUS_TOO_LARGE, SUB_NONE,
                         "what is written at once is longer than %zu MB",
                         JOURNAL_ENTRY_BYTES_MAX >> 20);
    return STATUS_OK;
}

/* ---- reading ---- */

static Status damaged(Error *err, const char *what)
{
    return error_set(err, STATUS_CORRUPT, SUB_NONE, "an entry of the journal is damaged: %s", what);
}

bool varint_take(Slice *in, size_t *value)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < VARINT_BYTES_MAX && i < in->len; i++) {
        uint64_t byte = (uint8_t)in->ptr[i];
        sum |= (byte & 0x7F) << (7 * i);
        if (byte < 0x80) {
            *value = sum;
            *in = slice_from(*in, i + 1);
            return true;
        }
    }
    return false;
}

static bool take_bytes(Slice *in, size_t len, Slice *out)
{
    if (len > in->len)
        return false;
    *out = slice_first(*in, len);
    *in = slice_from(*in, len);
    return true;
}

typedef struct EntryReader {
    const StoreMerge *kinds;
    StoreSpace space;
    FullKey key;
    size_t key_len; /* without the space */
    Tree *tree;
    Buf *merges;
} EntryReader;

static Status take_key(EntryReader *reader, Slice *in, unsigned *kind, Error *err)
{
    size_t shared = 0, rest_len = 0;
    Slice rest = {0};
    if (!varint_take(in, &shared) || !varint_take(in, &rest_len))
        return damaged(err, "it ends within a key");
    *kind = shared & KIND_MASK;
    shared >>= KIND_BITS;
    if (shared > reader->key_len || rest_len > STORE_KEY_BYTES_MAX - shared)
        return damaged(err, "a key is too long");
    if (!take_bytes(in, rest_len, &rest))
        return damaged(err, "it ends within a key");
    if (rest_len > 0)
        memcpy(reader->key.bytes + SPACE_BYTES + shared, rest.ptr, rest_len);
    reader->key_len = shared + rest_len;
    return STATUS_OK;
}

static Status take_value(Slice *in, Slice *value, Error *err)
{
    size_t len = 0;
    if (!varint_take(in, &len) || len > STORE_VALUE_BYTES_MAX || !take_bytes(in, len, value))
        return damaged(err, "it ends within a value");
    return STATUS_OK;
}

static Status add_merge(EntryReader *reader, Slice key, bool is_merged, Slice operand, Error *err)
{
    if (key.len <= SPACE_BYTES)
        return damaged(err, "it merges into an empty key");
    if (!is_merged)
        return error_set(err, STATUS_NOT_IMPLEMENTED, SUB_NONE,
                         "an entry of the journal merges keys of kind %u, which this program does "
                         "not know: it needs a newer one",
                         (uint8_t)key.ptr[SPACE_BYTES]);
    merge_record_append(reader->merges, reader->space, slice_from(key, SPACE_BYTES), operand);
    return STATUS_OK;
}

static Status take_write(EntryReader *reader, Slice *in, Error *err)
{
    unsigned kind = 0;
    Slice value = {0};
    TRY(take_key(reader, in, &kind, err));
    if (kind == KIND_PUT || kind == KIND_MERGE)
        TRY(take_value(in, &value, err));
    Slice key = slice_make(reader->key.bytes, SPACE_BYTES + reader->key_len);
    bool is_merged = merge_of(reader->kinds, key) != NULL;
    if (kind == KIND_MERGE)
        return add_merge(reader, key, is_merged, value, err);
    if (is_merged)
        return damaged(err, "it puts or deletes a key that is only merged");
    if (kind == KIND_PUT)
        tree_put(reader->tree, key, value);
    else if (kind == KIND_DELETE)
        tree_mark_deleted(reader->tree, key);
    else
        return damaged(err, "a write is of no kind");
    return STATUS_OK;
}

static Status read_writes(Slice body, const StoreMerge *kinds, StoreSpace space, Tree *tree,
                          Buf *merges, Error *err)
{
    EntryReader reader = {.kinds = kinds, .space = space, .tree = tree, .merges = merges};
    (void)full_key(&reader.key, space, SLICE_EMPTY);
    while (body.len > 0)
        TRY(take_write(&reader, &body, err));
    return STATUS_OK;
}

static Status read_compressed(Slice coded, size_t len, const StoreMerge *kinds, StoreSpace space,
                              Tree *tree, Buf *merges, Error *err)
{
    /* LZ4 makes at most 255 bytes of one: a short entry does not take much memory. */
    if (len > JOURNAL_ENTRY_BYTES_MAX || len / 255 > coded.len)
        return damaged(err, "its length is wrong");
    AUTO(mem_free) void *body = mem_realloc(NULL, len + 1);
    int got = LZ4_decompress_safe(coded.ptr, body, (int)coded.len, (int)len);
    if (got < 0 || (size_t)got != len)
        return damaged(err, "it cannot be decompressed");
    return read_writes(slice_make(body, len), kinds, space, tree, merges, err);
}

Status entry_read(Slice bytes, const EntryKnown *known, StoreSpace space, Tree *tree, Buf *merges,
                  Error *err)
{
    if (bytes.len < HEAD_BYTES || bytes.len > JOURNAL_ENTRY_BYTES_MAX)
        return damaged(err, "its length is wrong");
    unsigned format = (uint8_t)bytes.ptr[0];
    unsigned codec = (uint8_t)bytes.ptr[1];
    uint32_t len = 0;
    memcpy(&len, bytes.ptr + 2, sizeof(len));
    if (format > known->format)
        return error_set(err, STATUS_NOT_IMPLEMENTED, SUB_NONE,
                         "an entry of the journal has format %u, and this program reads %u: it "
                         "needs a newer one",
                         format, known->format);
    if (format == 0 || codec > CODEC_LZ4)
        return damaged(err, "its head is of no format");
    Slice rest = slice_from(bytes, HEAD_BYTES);
    if (codec == CODEC_LZ4)
        return read_compressed(rest, len, known->kinds, space, tree, merges, err);
    if (len != rest.len)
        return damaged(err, "its length is wrong");
    return read_writes(rest, known->kinds, space, tree, merges, err);
}
