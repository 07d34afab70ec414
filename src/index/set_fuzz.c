/* set_fuzz.c - any bytes as stored chunks and operands: refused, or merged to the same whichever
 * way they are grouped.
 *
 *     input = ( | length u16 LE | bytes | )*        the first is the value, the rest are operands
 */
#include "index/set.h"

#include "base/defs.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { PIECES_MAX = 16 };

static size_t split(const uint8_t *data, size_t size, Slice *pieces)
{
    size_t count = 0;
    Slice rest = slice_make(data, size);
    while (rest.len >= 2 && count < PIECES_MAX) {
        uint16_t len;
        memcpy(&len, rest.ptr, sizeof(len));
        rest = slice_from(rest, 2);
        pieces[count++] = slice_first(rest, len);
        rest = slice_from(rest, len);
    }
    return count;
}

static void check_value(Slice value)
{
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 4096);
    Error err;
    SetBuilder *b = set_builder_new(&arena);
    Status status = set_builder_add_value(b, 7, value, &err);
    if (status == STATUS_OK && set_builder_add_value(b, 7, value, &err) == STATUS_OK) {
        NumberSet set;
        set_builder_finish(b, &set);
        ASSERT(set.count == set_value_count(value));
        ASSERT(set_value_is_empty(value) == (set.count == 0));
        ASSERT(set_and_count(&set, &set) == set.count);
        uint64_t number;
        uint64_t seen = 0;
        for (SetWalk walk = set_walk_down(&set, UINT64_MAX); set_walk_next(&walk, &number); seen++)
            ASSERT(set_has(&set, number));
        ASSERT(seen == set.count);
    }
}

static void check_merge(Slice existing, const Slice *operands, size_t count)
{
    AUTO(buf_done) Buf together;
    AUTO(buf_done) Buf partial;
    AUTO(buf_done) Buf apart;
    buf_init(&together, 1 << 20);
    buf_init(&partial, 1 << 20);
    buf_init(&apart, 1 << 20);
    bool merged = set_merge(existing, operands, count, false, &together);
    if (!set_merge(SLICE_EMPTY, operands, count, true, &partial)) {
        ASSERT(!merged);
        return;
    }
    Slice one = buf_view(&partial);
    ASSERT(set_merge(existing, &one, 1, false, &apart) == merged);
    if (merged) {
        ASSERT(slice_equal(buf_view(&together), buf_view(&apart)));
        check_value(buf_view(&together));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Slice pieces[PIECES_MAX];
    size_t count = split(data, size, pieces);
    for (size_t i = 0; i < count; i++)
        check_value(pieces[i]);
    if (count > 0) {
        check_merge(pieces[0], pieces + 1, count - 1);
        check_merge(SLICE_EMPTY, pieces, count);
    }
    return 0;
}
