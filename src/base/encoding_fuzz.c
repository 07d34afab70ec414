/* encoding_fuzz.c - whatever a decoder accepts must encode to something that means the same. */
#include "base/arena.h"
#include "base/date.h"
#include "base/encoding.h"
#include "base/mem.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void try_base64(Base64 variant, Slice text)
{
    /* Exactly the room that is needed, so that the sanitizer sees a byte too many. */
    size_t room = text.len / 4 * 3;
    AUTO(mem_free) void *bytes = mem_alloc(room);
    AUTO(mem_free) void *again = mem_alloc(text.len);
    size_t len = 0;
    if (!base64_decode(variant, text, bytes, room, &len))
        return;
    ASSERT(BASE64_LEN(len) == text.len);
    base64_encode(variant, bytes, len, again);
    ASSERT(slice_equal(slice_make(again, text.len), text));
}

static void try_hex(Slice text)
{
    AUTO(mem_free) void *bytes = mem_alloc(text.len / 2);
    AUTO(mem_free) void *again = mem_alloc(text.len);
    size_t len = 0;
    if (!hex_decode(text, bytes, text.len / 2, &len))
        return;
    hex_encode(bytes, len, again);
    ASSERT(slice_equal_nocase(slice_make(again, text.len), text));
}

static void try_percent(Slice text)
{
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 256);
    Slice decoded;
    Slice again;
    if (percent_decode(&arena, text, &decoded))
        ASSERT(decoded.len <= text.len);
    bool ok = percent_decode(&arena, percent_encode(&arena, text, SLICE("-_.")), &again);
    ASSERT(ok);
    ASSERT(slice_equal(again, text));
}

static void try_date(Slice text)
{
    int64_t unix_s = 0;
    int64_t again = 0;
    if (!date_parse(text, &unix_s))
        return;
    char printed[DATE_LEN];
    date_print(unix_s, printed);
    bool ok = date_parse(slice_make(printed, DATE_LEN), &again);
    ASSERT(ok);
    ASSERT(again == unix_s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Slice text = slice_make(data, size);
    int64_t number = 0;
    try_base64(BASE64_STANDARD, text);
    try_base64(BASE64_RID, text);
    try_hex(text);
    try_percent(text);
    try_date(text);
    (void)slice_to_i64(text, &number); /* whether it is a number is not the question here */
    return 0;
}
