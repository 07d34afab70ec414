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

static int base64_digit(Base64 variant, char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    if (c == '+')
        return 62;
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
    for (size_t i = 0; i < text.len; i += 4) {
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
    *len = written;
    return true;
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
            decoded[len++] = text.ptr[i];
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
