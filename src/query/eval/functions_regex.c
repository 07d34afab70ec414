/* functions_regex.c - text that is searched for a pattern. */
#include "query/eval/call_int.h"
#include "query/eval/regex_int.h"
#include "query/sql/sql_text_int.h"

/* The pattern of a call; NULL if the arguments are not strings, or it is not valid. */
static Status take_pattern(Run *run, const Value *args, uint32_t count, Regex **out)
{
    *out = NULL;
    for (uint32_t i = 0; i < count; i++) {
        if (args[i].type != JSON_STRING)
            return STATUS_OK;
    }
    return regex_find(run, args[1].string, count == 3 ? args[2].string : SLICE_EMPTY, out);
}

Status function_regexmatch(Run *run, const Value *args, uint32_t count, Value *out)
{
    Regex *regex;
    RegexMatch match;
    TRY(take_pattern(run, args, count, &regex));
    if (regex == NULL)
        return STATUS_OK;
    TRY(regex_match(run, regex, args[0].string, 0, &match));
    *out = value_bool(match.found);
    return STATUS_OK;
}

Status function_regexextract(Run *run, const Value *args, uint32_t count, Value *out)
{
    Regex *regex;
    RegexMatch match;
    TRY(take_pattern(run, args, count, &regex));
    if (regex == NULL)
        return STATUS_OK;
    TRY(regex_match(run, regex, args[0].string, 0, &match));
    if (match.found && match.has_part)
        *out = value_string(match.part);
    return STATUS_OK;
}

Status function_regexextractall(Run *run, const Value *args, uint32_t count, Value *out)
{
    Regex *regex;
    RegexMatch match;
    TRY(take_pattern(run, args, count, &regex));
    if (regex == NULL)
        return STATUS_OK;
    Slice text = args[0].string;
    JsonBuilder b;
    json_build(&b, run->scratch);
    json_begin_array(&b);
    for (size_t from = 0; from <= text.len;) {
        TRY(regex_match(run, regex, text, from, &match));
        if (!match.found)
            break;
        if (match.has_part)
            json_add_string(&b, match.part);
        TRY(run_reserve(run, 0));
        from = match.end;
        /* After an empty match the search continues one character further. */
        if (match.start == match.end) {
            if (from == text.len)
                break;
            (void)text_next(text, &from);
        }
    }
    json_end(&b);
    return run_built(run, &b, out);
}
