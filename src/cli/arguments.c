/* arguments.c - see arguments.h. */
#include "cli/arguments.h"

#include "base/array.h"
#include "base/slice.h"
#include "cli/options.h"

enum { LINE_WIDTH = 96, HELP_COLUMN = 26, HELP_BYTES_MAX = 1000 };

static void *field_at(void *out, const ArgumentRow *row)
{
    return (char *)out + row->at;
}

static const ArgumentRow *row_of(const ArgumentTable *table, Slice name)
{
    for (size_t i = 0; i < table->count; i++) {
        if (slice_equal(slice_from_cstr(table->rows[i].name), name))
            return &table->rows[i];
    }
    return NULL;
}

static Status unknown(const ArgumentTable *table, Arena *arena, const char *argument, Error *err)
{
    const char **names = ARENA_NEW_ARRAY(arena, const char *, table->count + 2);
    for (size_t i = 0; i < table->count; i++)
        names[i] = arena_cstr(arena, arena_format(arena, "--%s", table->rows[i].name));
    names[table->count] = "--help";
    const char *nearest = options_nearest(argument, names);
    if (nearest == NULL)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "there is no option '%.80s'; 'orrery %s --help' lists them", argument,
                         table->command);
    return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                     "there is no option '%.80s'; did you mean '%s'?", argument, nearest);
}

static void add(Arena *arena, ArgumentList *list, const char *text)
{
    ARRAY_GROW_IN(arena, list->items, list->count, list->capacity, 8);
    list->items[list->count++] = text;
}

/* The option at argv[*at], and its value, which may be the next argument. */
static Status parse_option(const ArgumentTable *table, Arena *arena, int argc, char *const *argv,
                           int *at, void *out, Error *err)
{
    Slice whole = slice_from_cstr(argv[*at] + 2);
    size_t equals = slice_find(whole, '=');
    const ArgumentRow *row = row_of(table, slice_first(whole, equals));
    if (row == NULL)
        return unknown(table, arena, argv[*at], err);
    bool has_value = equals < whole.len;
    if (row->kind == ARGUMENT_FLAG) {
        if (has_value)
            return error_set(err, STATUS_BAD_REQUEST, SUB_NONE, "--%s takes no value", row->name);
        *(bool *)field_at(out, row) = true;
        return STATUS_OK;
    }
    if (!has_value && *at + 1 == argc)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE, "--%s needs a value: --%s %s",
                         row->name, row->name, row->placeholder);
    const char *value = has_value ? whole.ptr + equals + 1 : argv[++*at];
    if (value[0] == '\0')
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE, "--%s must not be empty", row->name);
    if (row->kind == ARGUMENT_LIST)
        add(arena, field_at(out, row), value);
    else
        *(const char **)field_at(out, row) = value;
    return STATUS_OK;
}

Status arguments_parse(const ArgumentTable *table, Arena *arena, int argc, char *const *argv,
                       void *out, ArgumentList *rest, bool *help, Error *err)
{
    *help = false;
    for (size_t i = 0; i < table->count; i++) {
        const ArgumentRow *row = &table->rows[i];
        if (row->kind == ARGUMENT_VALUE && row->fallback[0] != '\0')
            *(const char **)field_at(out, row) = row->fallback;
    }
    bool only_rest = false; /* after "--" */
    for (int i = 0; i < argc; i++) {
        Slice argument = slice_from_cstr(argv[i]);
        if (!only_rest &&
            (slice_equal(argument, SLICE("--help")) || slice_equal(argument, SLICE("-h")))) {
            *help = true;
            return STATUS_OK;
        }
        if (!only_rest && slice_equal(argument, SLICE("--")))
            only_rest = true;
        else if (!only_rest && slice_starts_with(argument, SLICE("--")))
            TRY(parse_option(table, arena, argc, argv, &i, out, err));
        else if (!only_rest && argument.len > 1 && argument.ptr[0] == '-')
            return unknown(table, arena, argv[i], err);
        else if (rest == NULL)
            return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                             "'%.80s' is not an option; 'orrery %s --help' lists them", argv[i],
                             table->command);
        else
            add(arena, rest, argv[i]);
    }
    return STATUS_OK;
}

void arguments_print_wrapped(Slice text, size_t indent, size_t width, FILE *to)
{
    size_t at = indent;
    while (text.len > 0) {
        Slice word = slice_cut(&text, ' ');
        if (at > indent && at + word.len + 1 > width) {
            (void)fprintf(to, "\n%*s", (int)indent, "");
            at = indent;
        }
        (void)fprintf(to, "%s%.*s", at > indent ? " " : "", SLICE_ARG(word));
        at += word.len + (at > indent ? 1 : 0);
    }
    (void)fprintf(to, "\n");
}

const char *argument_default(const ArgumentRow *row)
{
    return row->kind == ARGUMENT_FLAG || row->fallback[0] == '\0' ? NULL : row->fallback;
}

void arguments_print_help(const ArgumentTable *table, FILE *to)
{
    (void)fprintf(to, "Options (default):\n");
    for (size_t i = 0; i < table->count; i++) {
        const ArgumentRow *row = &table->rows[i];
        char left[80];
        int len = snprintf(left, sizeof(left), "  --%s%s%s", row->name,
                           row->placeholder[0] == '\0' ? "" : " ", row->placeholder);
        if (len >= HELP_COLUMN)
            (void)fprintf(to, "%s\n%*s", left, HELP_COLUMN, "");
        else
            (void)fprintf(to, "%-*s", HELP_COLUMN, left);
        char text[HELP_BYTES_MAX];
        const char *fallback = argument_default(row);
        len = snprintf(text, sizeof(text), "%s%s%s%s", row->help, fallback == NULL ? "" : " (",
                       fallback == NULL ? "" : fallback, fallback == NULL ? "" : ")");
        ASSERT(len < HELP_BYTES_MAX);
        arguments_print_wrapped(slice_from_cstr(text), HELP_COLUMN, LINE_WIDTH, to);
    }
}

Status argument_number(const char *name, const char *text, uint32_t min, uint32_t max,
                       uint32_t *out, Error *err)
{
    uint64_t value = 0;
    if (!slice_to_u64(slice_from_cstr(text), &value) || value < min || value > max)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "--%s must be a whole number from %u to %u, not '%.80s'", name, min, max,
                         text);
    *out = (uint32_t)value;
    return STATUS_OK;
}
