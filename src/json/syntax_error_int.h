/* syntax_error_int.h - what is wrong with a text that could not be parsed. */
#pragma once

#include "base/slice.h"

typedef struct TextFault {
    size_t at; /* the byte */
    const char *expected;
} TextFault;

/* Finds the first thing that keeps 'text' from being JSON within our bounds. False if there is
 * nothing wrong with it. */
bool text_find_fault(Slice text, TextFault *fault);
