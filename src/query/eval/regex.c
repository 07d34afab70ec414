/* regex.c - see regex_int.h. The only file that knows PCRE2.
 *
 * The limits that the library has count backtracking, and count anew at every place where a match
 * may begin: a+[bc] on a million times "a" needs hours and reaches none of them. So patterns are
 * compiled with a callout before each of their items, and the callout pays from the run's steps:
 * something for itself, and something for each character between it and the callout before. What
 * can cost more without moving is an item that fails, which reads at most
 *   - as many characters as the pattern repeats it ("a{5000}"), known from the text of the pattern;
 *   - as many as a group has matched, if the pattern refers back to a group.
 * Both are paid in advance. That makes small matches two to three times slower than without
 * callouts, still less than the rest of a row costs.
 *
 * Compiling to machine code costs as much as some hundred small matches, so a pattern must have
 * been worth it first.
 */
#define PCRE2_CODE_UNIT_WIDTH 8

#include "query/eval/regex_int.h"

#include "base/mem.h"
#include "query/sql/sql_error_int.h"

#include <pcre2.h>

enum {
    CALLOUT_CHARS = 4,          /* what a callout costs */
    CHARS_PER_STEP = 8,         /* as in run_charge_chars */
    CHARS_PER_LOOK = 64 << 10,  /* at the clock */
    COMPILE_STEPS = 64,         /* and one for each byte of the pattern */
    JIT_AFTER_CHARS = 16 << 10, /* of matching */
    JIT_STACK_BYTES = 32 << 10,
    JIT_STACK_BYTES_MAX = 512 << 10,
};

struct Regex {
    char *pattern; /* NULL if the entry is free */
    size_t pattern_len;
    uint32_t options;
    pcre2_code *code; /* NULL if the pattern is not valid */
    uint64_t used_at; /* by Regexes.time */
    uint64_t chars;   /* cost of matching so far, in characters */
    uint64_t repeats; /* the largest minimum of a repetition in the pattern */
    bool refers_back;
    bool is_machine_code; /* it was compiled to machine code, or that is not possible */
};

/* What the callout sees of the match that runs. */
typedef struct Meter {
    uint64_t chars_left;
    uint64_t look_at; /* the value of 'chars_left' at which the clock is next read */
    size_t position;
    const Regex *regex;
    Run *run;
} Meter;

struct Regexes {
    Regex list[REGEXES_MAX];
    uint64_t time;
    Meter meter;
    pcre2_compile_context *compile;
    pcre2_match_context *match;
    pcre2_match_data *data;
    pcre2_jit_stack *jit_stack; /* NULL for the library's own small one */
};

static uint64_t chars_after_look(uint64_t chars_left)
{
    return chars_left > CHARS_PER_LOOK ? chars_left - CHARS_PER_LOOK : 0;
}

static int pay(pcre2_callout_block *block, void *context)
{
    Meter *meter = context;
    size_t at = block->current_position;
    uint64_t chars = CALLOUT_CHARS + meter->regex->repeats +
                     (at > meter->position ? at - meter->position : meter->position - at);
    meter->position = at;
    for (uint32_t i = 1; meter->regex->refers_back && i < block->capture_top; i++) {
        PCRE2_SIZE start = block->offset_vector[2 * i];
        PCRE2_SIZE end = block->offset_vector[2 * i + 1];
        chars += 1 + (start == PCRE2_UNSET || end < start ? 0 : end - start);
    }
    if (chars > meter->chars_left) {
        meter->chars_left = 0;
        return PCRE2_ERROR_CALLOUT;
    }
    meter->chars_left -= chars;
    if (meter->chars_left > meter->look_at)
        return 0;
    meter->look_at = chars_after_look(meter->chars_left);
    return run_look(meter->run) ? 0 : PCRE2_ERROR_CALLOUT;
}

/* A library that cannot get memory says NULL; no caller could do better than to end. */
static Regexes *regexes_new(void)
{
    Regexes *regexes = MEM_NEW(Regexes);
    regexes->compile = pcre2_compile_context_create(NULL);
    regexes->match = pcre2_match_context_create(NULL);
    regexes->data = pcre2_match_data_create(2, NULL); /* the whole, and the first group */
    ASSERT(regexes->compile != NULL);
    ASSERT(regexes->match != NULL);
    ASSERT(regexes->data != NULL);
    (void)pcre2_set_max_pattern_length(regexes->compile, REGEX_PATTERN_BYTES_MAX);
    (void)pcre2_set_parens_nest_limit(regexes->compile, REGEX_DEPTH_MAX);
    (void)pcre2_set_heap_limit(regexes->match, REGEX_HEAP_KB);
    (void)pcre2_set_callout(regexes->match, pay, &regexes->meter);
    return regexes;
}

static void forget(Regex *regex)
{
    pcre2_code_free(regex->code);
    mem_free(regex->pattern);
    *regex = (Regex){0};
}

void regexes_free(Regexes *regexes)
{
    if (regexes == NULL)
        return;
    for (size_t i = 0; i < REGEXES_MAX; i++)
        forget(&regexes->list[i]);
    pcre2_jit_stack_free(regexes->jit_stack);
    pcre2_match_data_free(regexes->data);
    pcre2_match_context_free(regexes->match);
    pcre2_compile_context_free(regexes->compile);
    mem_free(regexes);
}

static bool read_modifiers(Slice modifiers, uint32_t *options)
{
    /* A byte at a time would break characters apart; a dialect without Unicode classes is what
     * the service documents. */
    *options = PCRE2_UTF | PCRE2_NEVER_BACKSLASH_C | PCRE2_AUTO_CALLOUT;
    for (size_t i = 0; i < modifiers.len; i++) {
        switch (modifiers.ptr[i]) {
        case 'm':
            *options |= PCRE2_MULTILINE;
            break;
        case 's':
            *options |= PCRE2_DOTALL;
            break;
        case 'i':
            *options |= PCRE2_CASELESS;
            break;
        case 'x':
            *options |= PCRE2_EXTENDED;
            break;
        default:
            return false;
        }
    }
    return true;
}

/* The largest number after a brace: at most so often something is repeated in one item. */
static uint64_t most_repeats(Slice pattern)
{
    uint64_t most = 0;
    for (size_t i = 0; i < pattern.len; i++) {
        if (pattern.ptr[i] != '{')
            continue;
        uint64_t number = 0;
        for (i++; i < pattern.len && pattern.ptr[i] >= '0' && pattern.ptr[i] <= '9'; i++)
            number = number > UINT16_MAX ? number : 10 * number + (uint64_t)(pattern.ptr[i] - '0');
        i--;
        most = number > most ? number : most;
    }
    return most;
}

static void compile(Regexes *regexes, Regex *regex, Slice pattern, uint32_t options)
{
    int code;
    PCRE2_SIZE offset;
    *regex = (Regex){.pattern = mem_copy(pattern.ptr, pattern.len),
                     .pattern_len = pattern.len,
                     .options = options,
                     .repeats = most_repeats(pattern)};
    regex->code = pcre2_compile((PCRE2_SPTR)regex->pattern, pattern.len, options, &code, &offset,
                                regexes->compile);
    uint32_t references = 0;
    if (regex->code != NULL)
        (void)pcre2_pattern_info(regex->code, PCRE2_INFO_BACKREFMAX, &references);
    regex->refers_back = references > 0;
}

static bool is_same(const Regex *regex, Slice pattern, uint32_t options)
{
    return regex->pattern != NULL && regex->options == options &&
           slice_equal(slice_make(regex->pattern, regex->pattern_len), pattern);
}

Status regex_find(Run *run, Slice pattern, Slice modifiers, Regex **out)
{
    uint32_t options;
    *out = NULL;
    if (pattern.len > REGEX_PATTERN_BYTES_MAX || !read_modifiers(modifiers, &options))
        return STATUS_OK;
    TRY(run_charge_bytes(run, pattern.len));
    if (run->regexes == NULL)
        run->regexes = regexes_new();
    Regexes *regexes = run->regexes;
    Regex *oldest = &regexes->list[0];
    for (Regex *regex = regexes->list; regex < regexes->list + REGEXES_MAX; regex++) {
        if (is_same(regex, pattern, options)) {
            regex->used_at = ++regexes->time;
            *out = regex->code == NULL ? NULL : regex;
            return STATUS_OK;
        }
        if (regex->used_at < oldest->used_at)
            oldest = regex;
    }
    TRY(run_charge(run, COMPILE_STEPS + pattern.len));
    forget(oldest);
    compile(regexes, oldest, pattern, options);
    oldest->used_at = ++regexes->time;
    *out = oldest->code == NULL ? NULL : oldest;
    return STATUS_OK;
}

/* Where it is not possible (no executable memory) the library goes on without, and so do we. */
static void make_machine_code(Regexes *regexes, Regex *regex)
{
    regex->is_machine_code = true;
    if (pcre2_jit_compile(regex->code, PCRE2_JIT_COMPLETE) != 0 || regexes->jit_stack != NULL)
        return;
    regexes->jit_stack = pcre2_jit_stack_create(JIT_STACK_BYTES, JIT_STACK_BYTES_MAX, NULL);
    pcre2_jit_stack_assign(regexes->match, NULL, regexes->jit_stack);
}

/* Runs the library within the steps that are left, and takes from them what it used. */
static Status match(Run *run, Regex *regex, Slice text, size_t from, uint32_t options, int *result)
{
    Regexes *regexes = run->regexes;
    uint64_t steps = run_steps_at_once(run);
    uint64_t chars = steps < UINT64_MAX / CHARS_PER_STEP ? steps * CHARS_PER_STEP : UINT64_MAX;
    regexes->meter = (Meter){.chars_left = chars,
                             .look_at = chars_after_look(chars),
                             .position = from,
                             .regex = regex,
                             .run = run};
    /* Documents and queries were checked: their strings are UTF-8. */
    *result = pcre2_match(regex->code, (PCRE2_SPTR)text.ptr, text.len, from,
                          options | PCRE2_NO_UTF_CHECK, regexes->data, regexes->match);
    uint64_t used = chars - regexes->meter.chars_left;
    regex->chars += used + CALLOUT_CHARS;
    return run_charge(run, used / CHARS_PER_STEP);
}

static Status fail(Run *run, const Regex *regex, int result)
{
    Slice pattern = slice_make(regex->pattern, regex->pattern_len);
    if (result == PCRE2_ERROR_CALLOUT || result == PCRE2_ERROR_MATCHLIMIT)
        return run_out_of_steps(run);
    return sql_error_plain(run->err, "The regular expression '%.*s' is too complex to be matched.",
                           SLICE_CUT(pattern, SQL_QUOTE_BYTES));
}

Status regex_match(Run *run, Regex *regex, Slice text, size_t from, RegexMatch *out)
{
    int result;
    *out = (RegexMatch){0};
    if (text.len == 0)
        text = SLICE("");                        /* the library takes no NULL */
    TRY(run_charge_bytes(run, text.len - from)); /* searching where a match could begin */
    if (regex->chars > JIT_AFTER_CHARS && !regex->is_machine_code)
        make_machine_code(run->regexes, regex);
    TRY(match(run, regex, text, from, 0, &result));
    if (result == PCRE2_ERROR_JIT_STACKLIMIT)
        TRY(match(run, regex, text, from, PCRE2_NO_JIT, &result));
    if (result == PCRE2_ERROR_NOMATCH)
        return STATUS_OK;
    if (result < 0)
        return fail(run, regex, result);
    const PCRE2_SIZE *offsets = pcre2_get_ovector_pointer(run->regexes->data);
    uint32_t groups = 0;
    (void)pcre2_pattern_info(regex->code, PCRE2_INFO_CAPTURECOUNT, &groups);
    const PCRE2_SIZE *part = groups > 0 ? offsets + 2 : offsets;
    out->found = true;
    out->start = offsets[0];
    out->end = offsets[1];
    out->has_part = part[0] != PCRE2_UNSET; /* the group may be in a branch that was not taken */
    if (out->has_part)
        out->part = slice_make(text.ptr + part[0], part[1] - part[0]);
    return STATUS_OK;
}
