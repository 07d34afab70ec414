/* utf8.c - see utf8_int.h. Most text is ASCII, so eight bytes are looked at together as long as
 * they are. */
#include "json/utf8_int.h"

#include "json/json.h"

static bool is_continuation(uint8_t byte)
{
    return (byte & 0xc0) == 0x80;
}

/* The bytes of the one character at 'p', of which 'left' are there; 0 if it is malformed. The
 * second byte alone decides about overlong forms, surrogates and the upper end. */
static size_t character_len(const uint8_t *p, size_t left)
{
    uint8_t first = p[0];
    if (first < 0x80)
        return 1;
    if (first < 0xc2 || first > 0xf4 || left < 2 || !is_continuation(p[1]))
        return 0;
    if (first < 0xe0)
        return 2;
    if (left < 3 || !is_continuation(p[2]))
        return 0;
    if (first < 0xf0) {
        bool overlong = first == 0xe0 && p[1] < 0xa0;
        bool surrogate = first == 0xed && p[1] > 0x9f;
        return overlong || surrogate ? 0 : 3;
    }
    if (left < 4 || !is_continuation(p[3]))
        return 0;
    bool overlong = first == 0xf0 && p[1] < 0x90;
    bool beyond = first == 0xf4 && p[1] > 0x8f;
    return overlong || beyond ? 0 : 4;
}

size_t utf8_valid_len(Slice text)
{
    const uint8_t *p = (const uint8_t *)text.ptr;
    size_t at = 0;
    while (at < text.len) {
        if (text.len - at >= 8) {
            uint64_t word;
            memcpy(&word, p + at, sizeof(word));
            if ((word & UINT64_C(0x8080808080808080)) == 0) {
                at += 8;
                continue;
            }
        }
        size_t len = character_len(p + at, text.len - at);
        if (len == 0)
            break;
        at += len;
    }
    return at;
}

bool json_utf8_valid(Slice text)
{
    return utf8_valid_len(text) == text.len;
}
