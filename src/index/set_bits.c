/* set_bits.c - words of bits and sorted arrays: see set_int.h.
 *
 * The oldest x86-64 processors have no instruction that counts bits, so the compiler does not use
 * it by default. The loops are compiled twice, and each call asks the processor which one to use.
 */
#include "index/set_int.h"

enum {
    /* An array that is this many times longer than the other is searched, not walked. */
    GALLOP_RATIO = 32,

    /* If both arrays have this many numbers, one becomes a bitmap: when two arrays are walked side
     * by side, each step waits for the one before. */
    BITMAP_PAYS = 256,

    LOAD_BLOCK = 64,
};

#define INLINE static inline __attribute__((always_inline))

INLINE uint64_t combine_words(BitsOp op, uint64_t a, uint64_t b)
{
    switch (op) {
    case BITS_AND:
        return a & b;
    case BITS_MINUS:
        return a & ~b;
    }
    return 0;
}

INLINE size_t combine_loop(BitsOp op, uint64_t *out, const uint64_t *a, const uint64_t *b)
{
    size_t count = 0;
    for (size_t i = 0; i < SET_WORDS; i++) {
        uint64_t word = combine_words(op, a[i], b[i]);
        out[i] = word;
        count += (size_t)__builtin_popcountll(word);
    }
    return count;
}

/* Compiled to a loop for each operation. */
INLINE size_t combine_any(BitsOp op, uint64_t *out, const uint64_t *a, const uint64_t *b)
{
    switch (op) {
    case BITS_AND:
        return combine_loop(BITS_AND, out, a, b);
    case BITS_MINUS:
        return combine_loop(BITS_MINUS, out, a, b);
    }
    return 0;
}

INLINE size_t and_count_loop(const uint64_t *a, const uint64_t *b)
{
    size_t count = 0;
    for (size_t i = 0; i < SET_WORDS; i++)
        count += (size_t)__builtin_popcountll(a[i] & b[i]);
    return count;
}

#ifdef __x86_64__

static __attribute__((target("popcnt"))) size_t combine_fast(BitsOp op, uint64_t *out,
                                                             const uint64_t *a, const uint64_t *b)
{
    return combine_any(op, out, a, b);
}

static __attribute__((target("popcnt"))) size_t and_count_fast(const uint64_t *a, const uint64_t *b)
{
    return and_count_loop(a, b);
}

static bool is_fast(void)
{
    return __builtin_cpu_supports("popcnt");
}

#else

#define combine_fast   combine_any
#define and_count_fast and_count_loop

static bool is_fast(void)
{
    return false;
}

#endif

size_t bits_combine(BitsOp op, uint64_t *out, const uint64_t *a, const uint64_t *b)
{
    return is_fast() ? combine_fast(op, out, a, b) : combine_any(op, out, a, b);
}

size_t bits_and_count(const uint64_t *a, const uint64_t *b)
{
    return is_fast() ? and_count_fast(a, b) : and_count_loop(a, b);
}

size_t bits_count(const uint64_t *bits)
{
    return bits_and_count(bits, bits);
}

void bits_add(uint64_t *bits, const uint16_t *array, size_t count)
{
    for (size_t i = 0; i < count; i++)
        bits[array[i] >> 6] |= UINT64_C(1) << (array[i] & 63);
}

void bits_remove(uint64_t *bits, const uint16_t *array, size_t count)
{
    for (size_t i = 0; i < count; i++)
        bits[array[i] >> 6] &= ~(UINT64_C(1) << (array[i] & 63));
}

size_t bits_to_array(const uint64_t *bits, uint16_t *out)
{
    uint16_t *next = out;
    for (size_t i = 0; i < SET_WORDS; i++) {
        for (uint64_t word = bits[i]; word != 0; word &= word - 1)
            *next++ = (uint16_t)(i * 64 + (size_t)__builtin_ctzll(word));
    }
    return (size_t)(next - out);
}

size_t array_find(const uint16_t *array, size_t from, size_t count, uint16_t number)
{
    /* Everything before 'low' is smaller; strides double until one goes too far. */
    size_t low = from;
    size_t high = from;
    for (size_t stride = 1; high < count && array[high] < number; stride *= 2) {
        low = high + 1;
        high += stride;
    }
    if (high > count)
        high = count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (array[middle] < number)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool does_bitmap_pay(size_t a_count, size_t b_count)
{
    return a_count >= BITMAP_PAYS && b_count >= BITMAP_PAYS;
}

/* The numbers of 'few' that 'many' has, or, with 'is_minus', those that it has not. 'out' may be
 * NULL, to count them only. */
static size_t gallop(const uint16_t *few, size_t few_count, const uint16_t *many, size_t many_count,
                     bool is_minus, uint16_t *out)
{
    size_t written = 0;
    size_t at = 0;
    for (size_t i = 0; i < few_count; i++) {
        uint16_t number = few[i];
        at = array_find(many, at, many_count, number);
        bool has = at < many_count && many[at] == number;
        if (has == is_minus)
            continue;
        if (out != NULL)
            out[written] = number;
        written++;
    }
    return written;
}

static bool is_far_longer(size_t count, size_t other)
{
    return count / GALLOP_RATIO > other;
}

size_t array_and(const uint16_t *a, size_t a_count, const uint16_t *b, size_t b_count,
                 uint16_t *out)
{
    if (is_far_longer(b_count, a_count))
        return gallop(a, a_count, b, b_count, false, out);
    if (is_far_longer(a_count, b_count))
        return gallop(b, b_count, a, a_count, false, out);
    if (does_bitmap_pay(a_count, b_count)) {
        uint64_t bits[SET_WORDS] = {0};
        bits_add(bits, b, b_count);
        return array_and_bits(a, a_count, bits, out);
    }
    /* Without branches: which of the two is smaller cannot be predicted. */
    size_t written = 0;
    for (size_t i = 0, j = 0; i < a_count && j < b_count;) {
        uint16_t x = a[i];
        uint16_t y = b[j];
        out[written] = x;
        written += x == y;
        i += x <= y;
        j += y <= x;
    }
    return written;
}

size_t array_and_count(const uint16_t *a, size_t a_count, const uint16_t *b, size_t b_count)
{
    if (is_far_longer(b_count, a_count))
        return gallop(a, a_count, b, b_count, false, NULL);
    if (is_far_longer(a_count, b_count))
        return gallop(b, b_count, a, a_count, false, NULL);
    if (does_bitmap_pay(a_count, b_count)) {
        uint64_t bits[SET_WORDS] = {0};
        bits_add(bits, b, b_count);
        return array_and_bits_count(a, a_count, bits);
    }
    size_t count = 0;
    for (size_t i = 0, j = 0; i < a_count && j < b_count;) {
        uint16_t x = a[i];
        uint16_t y = b[j];
        count += x == y;
        i += x <= y;
        j += y <= x;
    }
    return count;
}

size_t array_and_bits(const uint16_t *a, size_t count, const uint64_t *bits, uint16_t *out)
{
    size_t written = 0;
    for (size_t i = 0; i < count; i++) {
        out[written] = a[i];
        written += bits_has(bits, a[i]);
    }
    return written;
}

size_t array_and_bits_count(const uint16_t *a, size_t count, const uint64_t *bits)
{
    size_t both = 0;
    for (size_t i = 0; i < count; i++)
        both += bits_has(bits, a[i]);
    return both;
}

static size_t copy_rest(const uint16_t *array, size_t from, size_t count, uint16_t *out)
{
    if (count > from)
        memmove(out, array + from, (count - from) * sizeof(*array));
    return count - from;
}

size_t array_or(const uint16_t *a, size_t a_count, const uint16_t *b, size_t b_count, uint16_t *out)
{
    size_t written = 0;
    size_t i = 0;
    size_t j = 0;
    while (i < a_count && j < b_count) {
        uint16_t x = a[i];
        uint16_t y = b[j];
        out[written++] = x < y ? x : y;
        i += x <= y;
        j += y <= x;
    }
    written += copy_rest(a, i, a_count, out + written);
    written += copy_rest(b, j, b_count, out + written);
    return written;
}

size_t array_minus(const uint16_t *a, size_t a_count, const uint16_t *b, size_t b_count,
                   uint16_t *out)
{
    if (is_far_longer(b_count, a_count))
        return gallop(a, a_count, b, b_count, true, out);
    if (does_bitmap_pay(a_count, b_count)) {
        uint64_t bits[SET_WORDS] = {0};
        bits_add(bits, b, b_count);
        return array_minus_bits(a, a_count, bits, out);
    }
    size_t written = 0;
    size_t i = 0;
    size_t j = 0;
    while (i < a_count && j < b_count) {
        uint16_t x = a[i];
        uint16_t y = b[j];
        out[written] = x;
        written += x < y;
        i += x <= y;
        j += y <= x;
    }
    return written + copy_rest(a, i, a_count, out + written);
}

size_t array_minus_bits(const uint16_t *a, size_t count, const uint64_t *bits, uint16_t *out)
{
    size_t written = 0;
    for (size_t i = 0; i < count; i++) {
        out[written] = a[i];
        written += !bits_has(bits, a[i]);
    }
    return written;
}

/* Whether any of 'count' numbers is not smaller than the one after it. */
INLINE unsigned find_disorder(const uint16_t *array, size_t count)
{
    uint16_t wrong = 0;
    for (size_t i = 0; i < count; i++)
        wrong |= (uint16_t)(array[i] >= array[i + 1]);
    return wrong;
}

bool array_load(uint16_t *out, const char *stored, size_t count)
{
    if (count == 0)
        return true;
    memcpy(out, stored, count * sizeof(*out));
    /* Blocks of a fixed size and no early end, so that the compiler compares several at a time: the
     * numbers are nearly always sorted. */
    unsigned wrong = 0;
    size_t i = 0;
    for (; i + LOAD_BLOCK < count; i += LOAD_BLOCK)
        wrong |= find_disorder(out + i, LOAD_BLOCK);
    wrong |= find_disorder(out + i, count - 1 - i);
    return wrong == 0;
}
