/* term_fuzz.c - any bytes as values and keys: refused, or written again as they were read. */
#include "index/term.h"

#include "base/arena.h"

#include <math.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void write_again(const TermValue *value, Buf *out)
{
    bool exact = true;
    if (value->tag == TERM_NUMBER)
        term_put_number(out, value->number, &exact);
    else if (value->tag == TERM_STRING)
        term_put_string(out, value->text, &exact);
    else
        term_put_tag(out, value->tag);
}

static void check_value(Slice read, const TermValue *value)
{
    AUTO(buf_done) Buf again;
    buf_init(&again, 4096);
    write_again(value, &again);
    ASSERT(read.len <= TERM_VALUE_BYTES_MAX);
    if (value->tag == TERM_STRING && !value->exact) {
        /* What was cut off is gone: only the mark at the end differs. */
        ASSERT(value->text.len == TERM_STRING_BYTES && again.len == read.len);
        ASSERT(memcmp(again.ptr, read.ptr, read.len - 1) == 0);
    } else if (value->tag != TERM_NUMBER || (!isnan(value->number) && value->number != 0)) {
        ASSERT(slice_equal(buf_view(&again), read));
    }
}

static void check_key(Slice key)
{
    TermPath path;
    Slice value;
    uint64_t high;
    if (!term_key_read(key, &path, &value, &high))
        return;
    AUTO(buf_done) Buf again;
    buf_init(&again, key.len);
    term_key(&again, path, value, high);
    ASSERT(slice_equal(buf_view(&again), key));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 4096);
    Slice all = slice_make(data, size);
    check_key(all);
    Slice rest = all;
    TermValue value;
    for (Slice before = rest; term_read(&arena, &rest, &value); before = rest)
        check_value(slice_first(before, before.len - rest.len), &value);
    return 0;
}
