/* csv_table.c - see csv_table.h.
 *
 * The columns form a tree: "a.b" and "a.x" are two members of the node "a". A node may have a
 * column of its own and children, since items of one file differ: "a" may be a number in one row
 * and an object in the next. In one row only one of them may be there.
 */
#include "transfer/csv_table.h"

#include "base/array.h"
#include "base/mem.h"
#include "transfer/field_path.h"

#include <math.h>

#define NO_COLUMN UINT32_MAX

typedef struct CsvNode CsvNode;
struct CsvNode {
    FieldStep step;
    uint32_t column; /* its own, NO_COLUMN if it has none */
    bool is_present; /* in the row at hand: it, or something below it */
    CsvNode **children;
    size_t child_count;
    size_t child_capacity;
};

struct CsvTable {
    Arena arena; /* names */
    CsvOptions options;
    size_t column_count;
    CsvNode root;
};

/* ---- records ---- */

bool csv_scan_record(CsvScan *scan, Slice bytes, bool is_last, size_t *len)
{
    for (; scan->at < bytes.len; scan->at++) {
        char c = bytes.ptr[scan->at];
        if (c == '"') {
            scan->in_quotes = !scan->in_quotes; /* two of them change nothing */
        } else if (c == '\n' && !scan->in_quotes) {
            *len = scan->at + 1;
            *scan = (CsvScan){0};
            return true;
        }
    }
    if (!is_last || bytes.len == 0)
        return false;
    *len = bytes.len;
    *scan = (CsvScan){0};
    return true;
}

/* The cell in quotes at the front of '*rest'. */
static Status split_quoted(Slice *rest, char delimiter, Arena *arena, CsvCell *out, Error *err)
{
    char *text = arena_alloc(arena, rest->len);
    size_t len = 0;
    size_t at = 1;
    for (;; at++) {
        if (at >= rest->len)
            return error_set(err, STATUS_BAD_REQUEST, SUB_NONE, "a quoted cell does not end");
        char c = rest->ptr[at];
        if (c == '"' && (at + 1 >= rest->len || rest->ptr[at + 1] != '"'))
            break;
        text[len++] = c;
        at += c == '"' ? 1 : 0;
    }
    at++;
    if (at < rest->len && rest->ptr[at] != delimiter)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "text follows a quoted cell, at byte %zu of what is left of the row", at);
    *out = (CsvCell){.text = slice_make(text, len), .is_quoted = true};
    *rest = at < rest->len ? slice_make(rest->ptr + at + 1, rest->len - at - 1) : SLICE_EMPTY;
    return STATUS_OK;
}

Status csv_split(Slice record, char delimiter, Arena *arena, CsvCell **cells, size_t *count,
                 Error *err)
{
    if (slice_ends_with(record, SLICE("\n")))
        record.len--;
    if (slice_ends_with(record, SLICE("\r")))
        record.len--;
    CsvCell *list = NULL;
    size_t found = 0;
    size_t capacity = 0;
    Slice rest = record.len > 0 ? record : SLICE("");
    while (rest.ptr != NULL) {
        if (found == CSV_COLUMNS_MAX)
            return error_set(err, STATUS_BAD_REQUEST, SUB_NONE, "more than %d columns",
                             CSV_COLUMNS_MAX);
        ARRAY_GROW_IN(arena, list, found, capacity, 16);
        if (rest.len > 0 && rest.ptr[0] == '"')
            TRY(split_quoted(&rest, delimiter, arena, &list[found], err));
        else
            list[found] = (CsvCell){.text = slice_cut(&rest, delimiter)};
        found++;
    }
    *cells = list;
    *count = found;
    return STATUS_OK;
}

/* ---- columns ---- */

static CsvNode *child_of(CsvNode *node, const FieldStep *step, Arena *arena)
{
    for (size_t i = 0; i < node->child_count; i++) {
        const FieldStep *have = &node->children[i]->step;
        if (have->is_index == step->is_index && have->index == step->index &&
            slice_equal(have->name, step->name))
            return node->children[i];
    }
    ARRAY_GROW_IN(arena, node->children, node->child_count, node->child_capacity, 4);
    CsvNode *child = ARENA_NEW(arena, CsvNode);
    *child = (CsvNode){.step = *step, .column = NO_COLUMN};
    /* Elements in the order of their positions, after the members. */
    size_t at = node->child_count++;
    while (at > 0 && step->is_index && node->children[at - 1]->step.is_index &&
           node->children[at - 1]->step.index > step->index) {
        node->children[at] = node->children[at - 1];
        at--;
    }
    node->children[at] = child;
    return child;
}

static Status add_column(CsvTable *table, Slice name, uint32_t column, Error *err)
{
    FieldPath path;
    if (!field_path_parse(&table->arena, arena_copy(&table->arena, name), &path))
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "'%.*s' in the header, column %u, is not the path of a property such as "
                         "address.city or tags[0]",
                         SLICE_CUT(name, 100), column + 1);
    CsvNode *node = &table->root;
    for (size_t i = 0; i < path.count; i++)
        node = child_of(node, &path.steps[i], &table->arena);
    if (node->column != NO_COLUMN)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "the header has '%.*s' twice, as columns %u and %u", SLICE_CUT(name, 100),
                         node->column + 1, column + 1);
    node->column = column;
    return STATUS_OK;
}

Status csv_table_open(const CsvCell *header, size_t count, CsvOptions options, CsvTable **out,
                      Error *err)
{
    AUTO(csv_table_free) CsvTable *table = MEM_NEW(CsvTable);
    *table = (CsvTable){.options = options, .column_count = count, .root = {.column = NO_COLUMN}};
    arena_init(&table->arena, 4096);
    for (size_t i = 0; i < count; i++)
        TRY(add_column(table, header[i].text, (uint32_t)i, err));
    *out = TAKE(table);
    return STATUS_OK;
}

void csv_table_free(CsvTable *table)
{
    if (table == NULL)
        return;
    arena_done(&table->arena);
    mem_free(table);
}

/* ---- items ---- */

static bool is_there(const CsvTable *table, const CsvCell *cell)
{
    return cell->text.len > 0 || cell->is_quoted || table->options.all_are_text;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* A number as JSON writes it, that a double holds as it is written. */
static bool to_number(Slice text, double *out)
{
    size_t first = text.len > 0 && text.ptr[0] == '-' ? 1 : 0;
    if (text.len <= first || !is_digit(text.ptr[first]) || !is_digit(text.ptr[text.len - 1]))
        return false;
    if (text.ptr[first] == '0' && text.len > first + 1 && is_digit(text.ptr[first + 1]))
        return false;
    for (size_t i = first; i + 1 < text.len; i++) {
        if (text.ptr[i] == '.' && !is_digit(text.ptr[i + 1]))
            return false;
    }
    double number = 0;
    if (!json_number_from_text(text, &number))
        return false;
    bool is_integer = true;
    for (size_t i = first; i < text.len; i++)
        is_integer = is_integer && is_digit(text.ptr[i]);
    if (is_integer && fabs(number) >= CSV_INTEGER_MAX)
        return false;
    *out = number;
    return true;
}

static void add_cell(const CsvTable *table, const CsvCell *cell, JsonBuilder *b)
{
    double number = 0;
    if (cell->is_quoted || table->options.all_are_text) {
        json_add_string(b, cell->text);
    } else if (slice_equal(cell->text, SLICE("null"))) {
        json_add_null(b);
    } else if (slice_equal(cell->text, SLICE("true")) || slice_equal(cell->text, SLICE("false"))) {
        json_add_bool(b, cell->text.ptr[0] == 't');
    } else if (slice_equal(cell->text, SLICE("{}"))) {
        json_begin_object(b);
        json_end(b);
    } else if (slice_equal(cell->text, SLICE("[]"))) {
        json_begin_array(b);
        json_end(b);
    } else if (to_number(cell->text, &number)) {
        json_add_number(b, number);
    } else {
        json_add_string(b, cell->text);
    }
}

/* Finds which nodes the row has; refuses a row in which a value is also an object. */
static Status mark(const CsvTable *table, CsvNode *node, const CsvCell *cells, Error *err)
{
    bool has_own = node->column != NO_COLUMN && is_there(table, &cells[node->column]);
    bool has_members = false;
    bool has_elements = false;
    for (size_t i = 0; i < node->child_count; i++) {
        CsvNode *child = node->children[i];
        TRY(mark(table, child, cells, err));
        has_members = has_members || (child->is_present && !child->step.is_index);
        has_elements = has_elements || (child->is_present && child->step.is_index);
    }
    node->is_present = has_own || has_members || has_elements;
    if (has_own + has_members + has_elements > 1)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "'%.*s' would be a value and an object or array at the same time",
                         SLICE_CUT(node->step.name, 100));
    return STATUS_OK;
}

static void build(const CsvTable *table, const CsvNode *node, const CsvCell *cells, JsonBuilder *b)
{
    if (node->column != NO_COLUMN && is_there(table, &cells[node->column])) {
        add_cell(table, &cells[node->column], b);
        return;
    }
    bool is_array = false;
    for (size_t i = 0; i < node->child_count; i++)
        is_array = is_array || (node->children[i]->is_present && node->children[i]->step.is_index);
    if (is_array)
        json_begin_array(b);
    else
        json_begin_object(b);
    uint32_t next = 0;
    for (size_t i = 0; i < node->child_count; i++) {
        const CsvNode *child = node->children[i];
        if (!child->is_present)
            continue;
        if (is_array) {
            for (; next < child->step.index; next++)
                json_add_null(b); /* an element between others that is not there */
            next++;
        } else {
            json_key(b, child->step.name);
        }
        build(table, child, cells, b);
    }
    json_end(b);
}

Status csv_table_item(CsvTable *table, const CsvCell *cells, size_t count, Arena *arena, Json *out,
                      Error *err)
{
    if (count != table->column_count)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "expected %zu cells as in the header, found %zu", table->column_count,
                         count);
    for (size_t i = 0; i < count; i++) {
        if (!json_utf8_valid(cells[i].text))
            return error_set(err, STATUS_BAD_REQUEST, SUB_NONE, "column %zu is not valid UTF-8",
                             i + 1);
    }
    TRY(mark(table, &table->root, cells, err));
    JsonBuilder b;
    json_build(&b, arena);
    build(table, &table->root, cells, &b);
    Json built = json_built(&b);
    if (!json_is(built, JSON_OBJECT))
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE, "the row is too large for an item");
    *out = built;
    return STATUS_OK;
}
