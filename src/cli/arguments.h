/* arguments.h - arguments of commands: "--name value" and "--name=value". */
#pragma once

#include "base/error.h"

typedef struct ArgumentText {
    const char *name; /* with its dashes */
    const char **out;
} ArgumentText;

/* If 'argv[*at]' is one of the rows, takes its value and moves '*at' to the last argument that
 * belongs to it. '*found' is false if it is something else. */
MUST_USE Status arguments_take_text(int argc, char *const *argv, int *at, const ArgumentText *rows,
                                    size_t count, bool *found, Error *err);
