/* size_record_fuzz.c - any bytes as records of what a logical partition holds.
 *
 *     input = | existing? u8 | record bytes u8 | record | ... |
 *
 * Whatever is merged, and in whatever order operands are put together beforehand, the sum is the
 * same; what is refused is refused either way, unless parts overflow that the whole does not.
 */
#include "partition/size_record_int.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { RECORDS_MAX = 32 };

static size_t take_records(Slice input, Slice *out)
{
    size_t count = 0;
    while (input.len > 0 && count < RECORDS_MAX) {
        size_t len = (uint8_t)input.ptr[0];
        input = slice_from(input, 1);
        Slice record = slice_first(input, len);
        out[count++] = slice_make(record.ptr == NULL ? "" : record.ptr, record.len);
        input = slice_from(input, record.len);
    }
    return count;
}

/* With the operands before 'cut' merged first. */
static bool merge_in_two(Slice existing, const Slice *operands, size_t count, size_t cut, Buf *out)
{
    AUTO(buf_done) Buf partial;
    buf_init(&partial, 64);
    if (!size_merge((Slice){0}, operands, cut, true, &partial))
        return false;
    Slice rest[RECORDS_MAX + 1] = {buf_view(&partial)};
    for (size_t i = cut; i < count; i++)
        rest[i - cut + 1] = operands[i];
    return size_merge(existing, rest, count - cut + 1, false, out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    Slice records[RECORDS_MAX];
    size_t count = take_records(slice_make(data + 1, size - 1), records);
    bool has_existing = data[0] % 2 == 1 && count > 0;
    Slice existing = has_existing ? records[0] : (Slice){0};
    const Slice *operands = records + (has_existing ? 1 : 0);
    count -= has_existing ? 1 : 0;
    AUTO(buf_done) Buf whole;
    buf_init(&whole, 64);
    if (!size_merge(existing, operands, count, false, &whole))
        return 0;
    SizeSum sum;
    ASSERT(size_decode(buf_view(&whole), &sum));
    ASSERT(size_is_empty(buf_view(&whole)) == (sum.items == 0 && sum.bytes == 0));
    for (size_t cut = 0; cut <= count; cut++) {
        AUTO(buf_done) Buf again;
        buf_init(&again, 64);
        if (merge_in_two(existing, operands, count, cut, &again))
            ASSERT(slice_equal(buf_view(&again), buf_view(&whole)));
    }
    return 0;
}
