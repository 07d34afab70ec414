/* regex_int.h - regular expressions: compiled once for a run, matched within its budget.
 *
 * Patterns are those of Perl (PCRE2), over UTF-8. A hostile one cannot hold up a thread: the run
 * pays for every item of the pattern that is tried and for every character it moves, and when the
 * steps end the query fails. So a match costs what it costs, and the same every time.
 *
 * Ownership  A Regexes belongs to its Run, a Regex to the Regexes; it is valid until the next call
 *            of regex_find().
 * Bounds     REGEX_PATTERN_BYTES_MAX; REGEX_DEPTH_MAX levels of parentheses, which cost some 90 KB
 *            of the C stack while a pattern is compiled; REGEXES_MAX patterns are kept; matching
 *            one takes at most REGEX_HEAP_KB of memory.
 */
#pragma once

#include "query/eval/query_run_int.h"

#define REGEX_PATTERN_BYTES_MAX ((size_t)16 << 10)
#define REGEX_DEPTH_MAX         100
#define REGEX_HEAP_KB           ((uint32_t)16 << 10)
enum { REGEXES_MAX = 16 };

typedef struct Regex Regex;

void regexes_free(Regexes *regexes); /* accepts NULL */

/* Modifiers: 'm' ^ and $ at every line, 's' a dot is any character, 'i' ignore case, 'x' spaces
 * have no meaning. '*out' is NULL if they or the pattern are not valid. */
MUST_USE Status regex_find(Run *run, Slice pattern, Slice modifiers, Regex **out);

/* What was found, in bytes of the text. */
typedef struct RegexMatch {
    bool found;
    size_t start; /* of the whole match */
    size_t end;
    Slice part; /* what the first group matched, if the pattern has one; otherwise the whole */
    bool has_part;
} RegexMatch;

/* The first match that begins at byte 'from' or later. */
MUST_USE Status regex_match(Run *run, Regex *regex, Slice text, size_t from, RegexMatch *out);
