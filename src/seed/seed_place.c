/* seed_place.c - see seed_place.h. */
#include "seed/seed_place.h"

#include "json/json.h"

#include <stdarg.h>
#include <stdio.h>

enum { NAME_SHOWN_BYTES = 80 };

static bool is_plain(Slice name)
{
    for (size_t i = 0; i < name.len; i++) {
        char c = name.ptr[i];
        bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
        if (!is_letter && !(i > 0 && c >= '0' && c <= '9'))
            return false;
    }
    return name.len > 0;
}

static void print(const SeedPlace *place, Buf *out)
{
    if (place->up == NULL) {
        buf_byte(out, '$');
        return;
    }
    print(place->up, out);
    if (place->name.ptr == NULL) {
        buf_format(out, "[%zu]", place->index);
    } else if (is_plain(place->name)) {
        buf_format(out, ".%.*s", SLICE_CUT(place->name, NAME_SHOWN_BYTES));
    } else {
        size_t len = place->name.len < NAME_SHOWN_BYTES ? place->name.len : NAME_SHOWN_BYTES;
        while (len > 0 && len < place->name.len && ((uint8_t)place->name.ptr[len] & 0xC0) == 0x80)
            len--;
        buf_byte(out, '[');
        json_print_string(slice_first(place->name, len), out);
        buf_byte(out, ']');
    }
}

SeedPlaceText seed_place_text(const SeedPlace *place)
{
    SeedPlaceText out = {""};
    AUTO(buf_done) Buf text;
    buf_init(&text, sizeof(out.text) - 1);
    print(place, &text);
    if (text.len > 0)
        memcpy(out.text, text.ptr, text.len);
    return out;
}

Status seed_place_context(const SeedPlace *place, Error *err)
{
    return error_context(err, "%s", seed_place_text(place).text);
}

Status seed_refuse(const SeedPlace *place, Error *err, const char *format, ...)
{
    char message[400];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(message, sizeof(message), format, args);
    va_end(args);
    return error_set(err, STATUS_BAD_REQUEST, SUB_NONE, "%s: %s", seed_place_text(place).text,
                     message);
}
