/* arguments.c - see arguments.h. */
#include "cli/arguments.h"

#include <string.h>

static Status take(int argc, char *const *argv, int *at, const ArgumentText *row, bool *found,
                   Error *err)
{
    size_t len = strlen(row->name);
    const char *argument = argv[*at];
    *found =
        strncmp(argument, row->name, len) == 0 && (argument[len] == '\0' || argument[len] == '=');
    if (!*found)
        return STATUS_OK;
    if (argument[len] == '=')
        *row->out = argument + len + 1;
    else if (*at + 1 < argc)
        *row->out = argv[++*at];
    else
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE, "%s needs a value", row->name);
    if (**row->out == '\0')
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE, "%s must not be empty", row->name);
    return STATUS_OK;
}

Status arguments_take_text(int argc, char *const *argv, int *at, const ArgumentText *rows,
                           size_t count, bool *found, Error *err)
{
    *found = false;
    for (size_t i = 0; i < count && !*found; i++)
        TRY(take(argc, argv, at, &rows[i], found, err));
    return STATUS_OK;
}
