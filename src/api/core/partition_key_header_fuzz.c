/* partition_key_header_fuzz.c - any header: a key that is understood has as many values as the
 * container allows, is placed, and is the same when it is printed and read again. */
#include "api/core/partition_key_header_int.h"

#include <math.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct {
    PartitionKind kind;
    size_t path_count;
    bool system_key;
} SHAPES[] = {
    {PARTITION_HASH_V1, 1, false},    {PARTITION_HASH_V2, 1, false},
    {PARTITION_MULTI_HASH, 2, false}, {PARTITION_MULTI_HASH, 3, false},
    {PARTITION_NONE, 0, false},       {PARTITION_HASH_V2, 1, true},
};

/* As a client would send it: unlike in an answer, the sign of -0 is kept, for it is hashed. */
static void print_part(Buf *text, Json part)
{
    if (json_is(part, JSON_UNDEFINED))
        buf_slice(text, SLICE("{}"));
    else if (json_is(part, JSON_NUMBER) && json_number(part) == 0 && signbit(json_number(part)))
        buf_slice(text, SLICE("-0.0"));
    else
        json_print(part, text);
}

static Slice print(Arena *arena, const PartitionKey *key)
{
    AUTO(buf_done) Buf text;
    buf_init(&text, 1 << 20);
    buf_byte(&text, '[');
    for (size_t i = 0; i < key->count; i++) {
        if (i > 0)
            buf_byte(&text, ',');
        print_part(&text, key->parts[i]);
    }
    buf_byte(&text, ']');
    ASSERT(!buf_full(&text));
    return arena_copy(arena, buf_view(&text));
}

static void check_key(Arena *arena, const PartitionKeyDefinition *definition, KeyExtent extent,
                      const PartitionKey *key)
{
    ASSERT(key->count <= definition->path_count);
    ASSERT(key->count == definition->path_count ||
           (extent == KEY_PREFIX && definition->kind == PARTITION_MULTI_HASH));
    ASSERT(key->count > 0 || definition->kind == PARTITION_NONE);
    Epk epk;
    epk_make(definition->kind, key, &epk);
    ASSERT(epk.len <= EPK_BYTES_MAX);
    PartitionKey again;
    bool found = false;
    Error err;
    /* What was short with escapes is not longer without them, so it is not too long now. */
    Status status =
        key_header_parse(arena, print(arena, key), definition, extent, &again, &found, &err);
    ASSERT(status == STATUS_OK);
    ASSERT(partition_key_equal(key, &again));
    Epk same;
    epk_make(definition->kind, &again, &same);
    ASSERT(slice_equal(epk_slice(&epk), epk_slice(&same)));
}

static void check_bound(Arena *arena, Slice text)
{
    Slice bytes;
    Error err;
    if (key_header_parse_epk(arena, text, &bytes, &err) == STATUS_OK)
        ASSERT(2 * bytes.len == text.len);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1)
        return 0;
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 1024);
    size_t shape = (data[0] & 0x0F) % ARRAY_COUNT(SHAPES);
    KeyExtent extent = data[0] & 0x10 ? KEY_PREFIX : KEY_WHOLE;
    PartitionKeyDefinition definition = {.kind = SHAPES[shape].kind,
                                         .path_count = SHAPES[shape].path_count,
                                         .system_key = SHAPES[shape].system_key};
    Slice header = slice_make(data + 1, size - 1);
    PartitionKey key;
    bool found = false;
    Error err;
    Status status = key_header_parse(&arena, header, &definition, extent, &key, &found, &err);
    ASSERT(status == STATUS_OK || status == STATUS_BAD_REQUEST);
    ASSERT(status != STATUS_OK || found == (header.len > 0));
    if (status == STATUS_OK && found)
        check_key(&arena, &definition, extent, &key);
    check_bound(&arena, header);
    return 0;
}
