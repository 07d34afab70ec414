/* value_terms.c - see value_terms_int.h. */
#include "query/eval/value_terms_int.h"

#include "index/term.h"

void value_put_term(Buf *out, const Value *value, bool *exact)
{
    switch (value->type) {
    case JSON_UNDEFINED:
        term_put_tag(out, TERM_UNDEFINED);
        break;
    case JSON_NULL:
        term_put_tag(out, TERM_NULL);
        break;
    case JSON_BOOL:
        term_put_bool(out, value->boolean);
        break;
    case JSON_NUMBER:
        term_put_number(out, value->number, exact);
        break;
    case JSON_STRING:
        term_put_string(out, value->string, exact);
        break;
    case JSON_ARRAY:
    case JSON_OBJECT: /* the index knows that there is one, not which */
        term_put_tag(out, value->type == JSON_ARRAY ? TERM_ARRAY : TERM_OBJECT);
        *exact = false;
        break;
    }
}

/* A zero byte in it is followed by 0xFF, and the end by 0x01: what is shorter comes first. */
void value_put_text(Buf *out, Slice text, size_t max)
{
    Slice known = slice_first(text, max);
    for (size_t i = 0; i < known.len; i++) {
        buf_byte(out, (uint8_t)known.ptr[i]);
        if (known.ptr[i] == '\0')
            buf_byte(out, 0xFF);
    }
    buf_bytes(out, "\0\1", 2);
}
