/* encoding.c - see encoding.h. */
#include "base/encoding.h"

static const char STANDARD[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
static const char RID[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+-";

void base64_encode(Base64 variant, const void *bytes, size_t len, char *out)
{
    const char *alphabet = variant == BASE64_RID ? RID : STANDARD;
    const uint8_t *in = bytes;
    size_t i = 0;
    for (; i + 3 <= len; i += 3) {
        uint32_t v = (uint32_t)in[i] << 16 | (uint32_t)in[i + 1] << 8 | in[i + 2];
        *out++ = alphabet[v >> 18];
        *out++ = alphabet[(v >> 12) & 63];
        *out++ = alphabet[(v >> 6) & 63];
        *out++ = alphabet[v & 63];
    }
    if (i < len) {
        bool two = i + 2 == len;
        uint32_t v = (uint32_t)in[i] << 16 | (two ? (uint32_t)in[i + 1] << 8 : 0);
        *out++ = alphabet[v >> 18];
        *out++ = alphabet[(v >> 12) & 63];
        *out++ = two ? alphabet[(v >> 6) & 63] : '=';
        *out++ = '=';
    }
}

/* What each character from '+' to 'z' stands for: -1 for nothing, -2 for '-' and '/', which depend
 * on the variant. */
static const int8_t DIGITS['z' - '+' + 1] = {
    62, -1, -2, -1, -2,                                 /* + , - . / */
    52, 53, 54, 55, 56, 57, 58, 59, 60, 61,             /* 0 to 9 */
    -1, -1, -1, -1, -1, -1, -1,                         /* : to @ */
    0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, /* A to M */
    13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, /* N to Z */
    -1, -1, -1, -1, -1, -1,                             /* [ to ` */
    26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, /* a to m */
    39, 40, 41, 42, 43, 44, 45, 46, 47, 48, 49, 50, 51, /* n to z */
};

static inline int base64_digit(Base64 variant, char c)
{
    unsigned at = (unsigned)(unsigned char)c - '+';
    if (at >= sizeof(DIGITS))
        return -1;
    if (DIGITS[at] != -2)
        return DIGITS[at];
    return c == (variant == BASE64_RID ? '-' : '/') ? 63 : -1;
}

bool base64_decode(Base64 variant, Slice text, void *out, size_t size, size_t *len)
{
    if (text.len % 4 != 0)
        return false;
    size_t padding = 0;
    while (padding < 2 && padding < text.len && text.ptr[text.len - 1 - padding] == '=')
        padding++;
    size_t needed = text.len / 4 * 3 - padding;
    if (needed > size)
        return false;
    uint8_t *to = out;
    size_t written = 0;
    size_t i = 0;
    for (; i + 4 < text.len; i += 4, written += 3) {
        int a = base64_digit(variant, text.ptr[i]);
        int b = base64_digit(variant, text.ptr[i + 1]);
        int c = base64_digit(variant, text.ptr[i + 2]);
        int d = base64_digit(variant, text.ptr[i + 3]);
        if ((a | b | c | d) < 0)
            return false;
        int v = a << 18 | b << 12 | c << 6 | d;
        to[written] = (uint8_t)(v >> 16);
        to[written + 1] = (uint8_t)(v >> 8);
        to[written + 2] = (uint8_t)v;
    }
    for (; i < text.len; i += 4) {
        uint32_t v = 0;
        for (size_t j = 0; j < 4; j++) {
            bool pad = i + j >= text.len - padding;
            int digit = pad ? 0 : base64_digit(variant, text.ptr[i + j]);
            if (digit < 0)
                return false;
            v = v << 6 | (uint32_t)digit;
        }
        for (int shift = 16; shift >= 0 && written < needed; shift -= 8)
            to[written++] = (uint8_t)(v >> shift);
        /* Bits that the padding cuts off must be zero: one value has one spelling. */
        if (i + 4 == text.len && padding > 0 && (v & ((1u << (8 * padding)) - 1)) != 0)
            return false;
    }
    ASSERT(written == needed);
    *len = written;
    return true;
}

/* The hexadecimal digits of 32 bits as eight bytes: nibbles are spread out to a byte each, and
 * those beyond 9 are moved on to the letters. */
static void put_hex32(uint32_t value, char out[8])
{
    uint64_t v = value;
    v = (v | v << 16) & UINT64_C(0x0000FFFF0000FFFF);
    v = (v | v << 8) & UINT64_C(0x00FF00FF00FF00FF);
    v = (v | v << 4) & UINT64_C(0x0F0F0F0F0F0F0F0F);
    uint64_t letters = (v + UINT64_C(0x0606060606060606)) >> 4 & UINT64_C(0x0101010101010101);
    v += UINT64_C(0x3030303030303030) + letters * ('a' - '0' - 10);
    be64_put(out, v);
}

void guid_print(uint64_t high, uint64_t low, char out[GUID_LEN])
{
    char digits[32];
    put_hex32((uint32_t)(high >> 32), digits);
    put_hex32((uint32_t)high, digits + 8);
    put_hex32((uint32_t)(low >> 32), digits + 16);
    put_hex32((uint32_t)low, digits + 24);
    memcpy(out, digits, 8);
    out[8] = '-';
    memcpy(out + 9, digits + 8, 4);
    out[13] = '-';
    memcpy(out + 14, digits + 12, 4);
    out[18] = '-';
    memcpy(out + 19, digits + 16, 4);
    out[23] = '-';
    memcpy(out + 24, digits + 20, 12);
}

void hex_encode(const void *bytes, size_t len, char *out)
{
    static const char digits[] = "0123456789ABCDEF";
    const uint8_t *in = bytes;
    for (size_t i = 0; i < len; i++) {
        *out++ = digits[in[i] >> 4];
        *out++ = digits[in[i] & 15];
    }
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return -1;
}

bool hex_decode(Slice text, void *out, size_t size, size_t *len)
{
    if (text.len % 2 != 0 || text.len / 2 > size)
        return false;
    uint8_t *to = out;
    for (size_t i = 0; i < text.len; i += 2) {
        int high = hex_digit(text.ptr[i]);
        int low = hex_digit(text.ptr[i + 1]);
        if (high < 0 || low < 0)
            return false;
        *to++ = (uint8_t)(high << 4 | low);
    }
    *len = text.len / 2;
    return true;
}

bool percent_decode(Arena *arena, Slice text, Slice *out)
{
    if (slice_find(text, '%') == text.len) {
        *out = text;
        return true;
    }
    char *decoded = arena_alloc(arena, text.len);
    size_t len = 0;
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] != '%') {
            size_t run = slice_find(slice_from(text, i), '%');
            memcpy(decoded + len, text.ptr + i, run);
            len += run;
            i += run - 1;
            continue;
        }
        if (text.len - i < 3)
            return false;
        int high = hex_digit(text.ptr[i + 1]);
        int low = hex_digit(text.ptr[i + 2]);
        if (high < 0 || low < 0)
            return false;
        decoded[len++] = (char)(high << 4 | low);
        i += 2;
    }
    *out = slice_make(decoded, len);
    return true;
}

Slice percent_encode(Arena *arena, Slice text, Slice keep)
{
    char *encoded = arena_alloc(arena, text.len * 3);
    size_t len = 0;
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                     slice_find(keep, c) < keep.len;
        if (plain) {
            encoded[len++] = c;
        } else {
            encoded[len++] = '%';
            hex_encode(&c, 1, encoded + len);
            len += 2;
        }
    }
    return slice_make(encoded, len);
}

size_t u64_print(uint64_t value, char out[U64_TEXT_MAX])
{
    char digits[U64_TEXT_MAX];
    size_t at = sizeof(digits);
    do {
        digits[--at] = (char)('0' + value % 10);
        value /= 10;
    } while (value > 0);
    memcpy(out, digits + at, sizeof(digits) - at);
    return sizeof(digits) - at;
}
