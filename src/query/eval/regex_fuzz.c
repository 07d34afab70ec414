/* regex_fuzz.c - modifiers, a pattern and a text, one a line: any three, within a budget.
 *
 * Beyond surviving: machine code finds what the interpreter found.
 */
#include "query/eval/regex_int.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { STEPS = 100000, INPUT_BYTES_MAX = 4 << 10, REPEATS_MAX = 3000 };

static void check_match(const RegexMatch *match, Slice text)
{
    if (!match->found)
        return;
    ASSERT(match->start <= match->end);
    ASSERT(match->end <= text.len);
    ASSERT(!match->has_part || json_utf8_valid(match->part));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Slice text = slice_make(data, size);
    if (size > INPUT_BYTES_MAX || !json_utf8_valid(text))
        return 0;
    Slice modifiers = slice_cut(&text, '\n');
    Slice pattern = slice_cut(&text, '\n');
    AUTO(arena_done) Arena keep;
    arena_init(&keep, 4096);
    Error err;
    AUTO(run_done) Run run;
    run_init(&run, (QueryOptions){.steps_max = STEPS}, &keep, &err);
    RegexMatch first;
    for (int i = 0; i < REPEATS_MAX; i++) {
        Regex *regex;
        RegexMatch match;
        if (regex_find(&run, pattern, modifiers, &regex) != STATUS_OK || regex == NULL ||
            regex_match(&run, regex, text, 0, &match) != STATUS_OK)
            return 0;
        check_match(&match, text);
        if (i == 0)
            first = match;
        ASSERT(match.found == first.found && match.start == first.start && match.end == first.end);
    }
    return 0;
}
