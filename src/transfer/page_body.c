/* page_body.c - see page_body.h. */
#include "transfer/page_body.h"

typedef struct Scanner {
    Slice text;
    size_t at;
} Scanner;

static void skip_space(Scanner *s)
{
    while (s->at < s->text.len && strchr(" \t\r\n", s->text.ptr[s->at]) != NULL &&
           s->text.ptr[s->at] != '\0')
        s->at++;
}

static bool take(Scanner *s, char c)
{
    skip_space(s);
    if (s->at >= s->text.len || s->text.ptr[s->at] != c)
        return false;
    s->at++;
    return true;
}

/* A string with its quotes. */
static bool take_string(Scanner *s, Slice *out)
{
    skip_space(s);
    size_t begin = s->at;
    if (!take(s, '"'))
        return false;
    for (;;) {
        Slice rest = slice_from(s->text, s->at);
        const char *quote = rest.len == 0 ? NULL : memchr(rest.ptr, '"', rest.len);
        if (quote == NULL)
            return false;
        size_t len = (size_t)(quote - rest.ptr);
        const char *escape = memchr(rest.ptr, '\\', len);
        if (escape == NULL) {
            s->at += len + 1;
            break;
        }
        s->at += (size_t)(escape - rest.ptr) + 2;
    }
    *out = slice_make(s->text.ptr + begin, s->at - begin);
    return true;
}

/* Any value: brackets are counted outside of strings. */
static bool take_value(Scanner *s, Slice *out)
{
    skip_space(s);
    size_t begin = s->at;
    size_t depth = 0;
    while (s->at < s->text.len) {
        char c = s->text.ptr[s->at];
        Slice ignored;
        if (c == '"') {
            if (!take_string(s, &ignored))
                return false;
            continue;
        }
        if ((c == ',' || c == '}' || c == ']') && depth == 0)
            break;
        depth += c == '{' || c == '[' ? 1 : 0;
        depth -= c == '}' || c == ']' ? 1 : 0;
        s->at++;
    }
    *out = slice_make(s->text.ptr + begin, s->at - begin);
    return depth == 0 && out->len > 0;
}

bool page_body_documents(Slice body, Slice *out)
{
    Scanner s = {.text = body};
    Slice found = SLICE_EMPTY;
    if (!take(&s, '{'))
        return false;
    do {
        Slice name;
        Slice value;
        if (!take_string(&s, &name) || !take(&s, ':') || !take_value(&s, &value))
            return false;
        if (slice_equal(name, SLICE("\"Documents\"")))
            found = value;
    } while (take(&s, ','));
    if (!take(&s, '}') || !slice_starts_with(found, SLICE("[")))
        return false;
    *out = found;
    return true;
}
