/* like.c - see like_int.h.
 *
 * Every element of a pattern but % takes exactly one character. So when something does not fit it
 * is enough to go back to the last %, let it take one character more and try again: an earlier %
 * could not help where the last one cannot. That takes time of text times pattern at worst, which
 * is charged, and no memory.
 */
#include "query/eval/like_int.h"

#include "query/sql/sql_text_int.h"

typedef struct Pattern {
    Slice text;
    uint32_t escape;
} Pattern;

/* The character at '*at', or the one after an escape, with '*literal' set. */
static uint32_t next_char(const Pattern *pattern, size_t *at, bool *literal)
{
    uint32_t c = text_next(pattern->text, at);
    *literal = c == pattern->escape && *at < pattern->text.len;
    return *literal ? text_next(pattern->text, at) : c;
}

/* Reads a set from after its '[' to its end. False if it has no end. */
static bool match_set(const Pattern *pattern, size_t *at, uint32_t c, bool *matches)
{
    bool literal;
    bool negated = *at < pattern->text.len && pattern->text.ptr[*at] == '^';
    bool found = false;
    *at += negated;
    while (*at < pattern->text.len) {
        uint32_t first = next_char(pattern, at, &literal);
        if (first == ']' && !literal) {
            *matches = found != negated;
            return true;
        }
        uint32_t last = first;
        size_t dash = *at;
        if (dash + 1 < pattern->text.len && pattern->text.ptr[dash] == '-' &&
            pattern->text.ptr[dash + 1] != ']') {
            *at = dash + 1;
            last = next_char(pattern, at, &literal);
        }
        found = found || (c >= first && c <= last);
    }
    return false;
}

/* Whether the element at '*at', which is not %, takes 'c'; moves past it. */
static bool match_one(const Pattern *pattern, size_t *at, uint32_t c)
{
    bool literal;
    uint32_t element = next_char(pattern, at, &literal);
    if (literal)
        return element == c;
    if (element == '_')
        return true;
    if (element == '[') {
        size_t inside = *at;
        bool matches;
        if (match_set(pattern, &inside, c, &matches)) {
            *at = inside;
            return matches;
        }
    }
    return element == c;
}

Status like_match(Run *run, Slice text, Slice pattern_text, uint32_t escape, bool *matches)
{
    Pattern pattern = {pattern_text, escape};
    size_t text_at = 0;
    size_t at = 0;
    size_t after_run = SIZE_MAX; /* after the last %, if there was one */
    size_t run_end = 0;          /* where in the text its run ends for now */
    *matches = false;
    /* Reading a set costs what it is long; charging for the longest possible keeps this simple. */
    uint64_t price = 1 + (slice_find(pattern_text, '[') < pattern_text.len) * pattern_text.len / 16;
    for (;;) {
        TRY(run_charge(run, price));
        bool more = at < pattern_text.len;
        if (more && pattern_text.ptr[at] == '%' && escape != '%') {
            after_run = ++at;
            run_end = text_at;
            continue;
        }
        if (!more && text_at == text.len) {
            *matches = true;
            return STATUS_OK;
        }
        if (more && text_at < text.len && match_one(&pattern, &at, text_next(text, &text_at)))
            continue;
        if (after_run == SIZE_MAX || run_end >= text.len)
            return STATUS_OK;
        (void)text_next(text, &run_end);
        text_at = run_end;
        at = after_run;
    }
}
