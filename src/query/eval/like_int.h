/* like_int.h - the patterns of LIKE.
 *
 *     %       any run of characters, also none
 *     _       one character
 *     [abc]   one of these; [a-f] one in the range; [^...] one that is not
 *
 * A character after the escape character stands for itself, and so does a wildcard in brackets.
 * A bracket that is never closed is an ordinary character.
 */
#pragma once

#include "query/eval/query_run_int.h"

/* 'escape' is a character, or TEXT_INVALID for none. */
MUST_USE Status like_match(Run *run, Slice text, Slice pattern, uint32_t escape, bool *matches);
