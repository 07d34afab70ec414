/* arguments.h - the options of a command, read from a table.
 *
 * A command has a .def file with a row for each option, from which come the struct that is filled,
 * the table and the help:
 *
 *     ARGUMENT_ROW(field, "name", KIND, "PLACEHOLDER", "default", "help")
 *
 * VALUE and LIST take --name value and --name=value; a LIST may be given more than once. A FLAG
 * takes nothing. What is no option is put into a list of its own, if the command takes such.
 *
 * Ownership  Values point into argv; lists live in the arena.
 */
#pragma once

#include "base/arena.h"
#include "base/error.h"
#include "base/slice.h"

#include <stdio.h>

typedef enum ArgumentKind { ARGUMENT_VALUE, ARGUMENT_FLAG, ARGUMENT_LIST } ArgumentKind;

typedef struct ArgumentList {
    const char **items;
    size_t count;
    size_t capacity;
} ArgumentList;

/* The type of a field of that kind. */
#define ARGUMENT_TYPE_VALUE const char *
#define ARGUMENT_TYPE_FLAG  bool
#define ARGUMENT_TYPE_LIST  ArgumentList

typedef struct ArgumentRow {
    const char *name; /* without "--" */
    ArgumentKind kind;
    const char *placeholder;
    const char *fallback; /* "" if there is none; the field is then NULL */
    const char *help;
    size_t at; /* offset of the field */
} ArgumentRow;

#define ARGUMENT_TABLE_ROW(type, field, name, kind, placeholder, fallback, help)  \
    {                                                                             \
        name, ARGUMENT_##kind, placeholder, fallback, help, offsetof(type, field) \
    }

typedef struct ArgumentTable {
    const char *command; /* "import" */
    const ArgumentRow *rows;
    size_t count;
} ArgumentTable;

/* Fills the struct at 'out', which the caller has zeroed. An unknown option is refused with a hint.
 * 'rest' takes what is no option; NULL for a command that has options only. */
MUST_USE Status arguments_parse(const ArgumentTable *table, Arena *arena, int argc,
                                char *const *argv, void *out, ArgumentList *rest, bool *help,
                                Error *err);

void arguments_print_help(const ArgumentTable *table, FILE *to);

/* The default of an option as it is shown; NULL if there is none. */
const char *argument_default(const ArgumentRow *row);

/* Prints one paragraph in lines of at most 'width' columns; the first begins where the cursor is,
 * the others after 'indent' spaces. */
void arguments_print_wrapped(Slice text, size_t indent, size_t width, FILE *to);

/* A whole number from 'min' to 'max'. */
MUST_USE Status argument_number(const char *name, const char *text, uint32_t min, uint32_t max,
                                uint32_t *out, Error *err);
