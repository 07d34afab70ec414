/* sql_print.c - see sql_print_int.h. */
#include "query/sql/sql_print_int.h"

#include "query/sql/lexer_int.h"
#include "query/sql/sql_text_int.h"

#include <math.h>

static const char *const BINARY_TEXT[] = {
    [BINARY_MULTIPLY] = "*",    [BINARY_DIVIDE] = "/",       [BINARY_MODULO] = "%",
    [BINARY_ADD] = "+",         [BINARY_SUBTRACT] = "-",     [BINARY_BITAND] = "&",
    [BINARY_BITOR] = "|",       [BINARY_BITXOR] = "^",       [BINARY_CONCAT] = "||",
    [BINARY_EQUAL] = "=",       [BINARY_NOT_EQUAL] = "!=",   [BINARY_LESS] = "<",
    [BINARY_LESS_EQUAL] = "<=", [BINARY_GREATER] = ">",      [BINARY_GREATER_EQUAL] = ">=",
    [BINARY_SHIFT_LEFT] = "<<", [BINARY_SHIFT_RIGHT] = ">>", [BINARY_SHIFT_RIGHT_ZERO] = ">>>",
};
static const char *const UNARY_TEXT[] = {
    [UNARY_MINUS] = "-", [UNARY_PLUS] = "+", [UNARY_BITNOT] = "~", [UNARY_NOT] = "NOT "};
static const char *const SUBQUERY_TEXT[] = {
    [SUBQUERY_SCALAR] = "", [SUBQUERY_EXISTS] = "EXISTS", [SUBQUERY_ARRAY] = "ARRAY",
    [SUBQUERY_ALL] = "ALL", [SUBQUERY_FIRST] = "FIRST",   [SUBQUERY_LAST] = "LAST"};

static void print_text(Buf *out, const char *text)
{
    buf_slice(out, slice_from_cstr(text));
}

static void print_list(const NodeList *list, const char *separator, Buf *out)
{
    for (const Node *node = list->first; node != NULL; node = node->next) {
        if (node != list->first)
            print_text(out, separator);
        print_node(node, out);
    }
}

/* Digits alone would be read as an integer, with more of them than a double has. */
static void print_double(double number, Buf *out)
{
    size_t before = out->len;
    json_print_number(number, out);
    bool is_digits = fabs(number) > 0x1p53;
    for (size_t i = before; i < out->len; i++)
        is_digits = is_digits && out->ptr[i] != 'e';
    if (is_digits)
        print_text(out, ".0");
}

static void print_literal(const Value *value, Buf *out)
{
    switch (value->type) {
    case JSON_UNDEFINED:
        print_text(out, "undefined");
        return;
    case JSON_NULL:
        print_text(out, "null");
        return;
    case JSON_BOOL:
        print_text(out, value->boolean ? "true" : "false");
        return;
    case JSON_NUMBER:
        if (value->is_integer)
            buf_i64(out, value->integer);
        else if (isfinite(value->number))
            print_double(value->number, out);
        else
            print_text(out, isnan(value->number) ? "NaN"
                            : value->number > 0  ? "Infinity"
                                                 : "-Infinity");
        return;
    case JSON_STRING:
        json_print_string(value->string, out);
        return;
    case JSON_ARRAY:
    case JSON_OBJECT:
        json_print(value->json, out);
        return;
    }
}

/* Whether a name may follow a dot: reserved words and most text may not. */
static bool is_identifier(Slice name)
{
    Lexer lexer = {.text = name};
    Token token = lexer_next(&lexer);
    return token.kind == TOKEN_IDENTIFIER && token.span.start == 0 && token.span.end == name.len;
}

static void print_step(const Step *step, Buf *out)
{
    if (step->index == NULL && is_identifier(step->name)) {
        buf_byte(out, '.');
        buf_slice(out, step->name);
        return;
    }
    buf_byte(out, '[');
    if (step->index == NULL)
        json_print_string(step->name, out);
    else
        print_node(step->index, out);
    buf_byte(out, ']');
}

static void print_path(const Node *node, Buf *out)
{
    const Node *base = node->path.base;
    bool is_number = base->kind == NODE_LITERAL && base->literal.type == JSON_NUMBER;
    if (is_number) /* a sign would be taken for an operator on the whole path */
        buf_byte(out, '(');
    print_node(base, out);
    if (is_number)
        buf_byte(out, ')');
    for (const Step *step = node->path.first; step != NULL; step = step->next)
        print_step(step, out);
}

static void print_chain(const Node *node, Buf *out)
{
    for (const Link *link = node->chain.links; link != NULL; link = link->next)
        buf_byte(out, '(');
    print_node(node->chain.first, out);
    for (const Link *link = node->chain.links; link != NULL; link = link->next) {
        buf_format(out, " %s ", BINARY_TEXT[link->op]);
        print_node(link->right, out);
        buf_byte(out, ')');
    }
}

static void print_joined(const Node *node, const char *separator, Buf *out)
{
    buf_byte(out, '(');
    print_list(&node->list, separator, out);
    buf_byte(out, ')');
}

static void print_conditional(const Node *node, Buf *out)
{
    size_t open = 0;
    const Node *item = node->list.first;
    for (; item->next != NULL; item = item->next->next, open++) {
        buf_byte(out, '(');
        print_node(item, out);
        print_text(out, " ? ");
        print_node(item->next, out);
        print_text(out, " : ");
    }
    print_node(item, out);
    while (open-- > 0)
        buf_byte(out, ')');
}

static void print_test(const Node *node, const Node *value, const char *test, Buf *out)
{
    buf_byte(out, '(');
    print_node(value, out);
    print_text(out, node->negated ? " NOT " : " ");
    print_text(out, test);
}

static void print_like(const Node *node, Buf *out)
{
    print_test(node, node->like.value, "LIKE ", out);
    print_node(node->like.pattern, out);
    if (node->like.escape != TEXT_INVALID) {
        char escape[TEXT_CHAR_BYTES];
        print_text(out, " ESCAPE ");
        json_print_string(slice_make(escape, text_put(escape, node->like.escape)), out);
    }
    buf_byte(out, ')');
}

static void print_object(const Node *node, Buf *out)
{
    buf_byte(out, '{');
    for (const Property *property = node->object.first; property != NULL;
         property = property->next) {
        if (property != node->object.first)
            print_text(out, ", ");
        json_print_string(property->name, out);
        print_text(out, ": ");
        print_node(property->value, out);
    }
    buf_byte(out, '}');
}

void print_node(const Node *node, Buf *out)
{
    switch (node->kind) {
    case NODE_LITERAL:
        print_literal(&node->literal, out);
        return;
    case NODE_PARAMETER:
        buf_slice(out, node->parameter.name);
        return;
    case NODE_NAME:
        buf_slice(out, node->name.name);
        return;
    case NODE_PATH:
        print_path(node, out);
        return;
    case NODE_UNARY:
        buf_format(out, "(%s", UNARY_TEXT[node->unary.op]);
        print_node(node->unary.operand, out);
        buf_byte(out, ')');
        return;
    case NODE_CHAIN:
        print_chain(node, out);
        return;
    case NODE_AND:
        print_joined(node, " AND ", out);
        return;
    case NODE_OR:
        print_joined(node, " OR ", out);
        return;
    case NODE_COALESCE:
        print_joined(node, " ?? ", out);
        return;
    case NODE_CONDITIONAL:
        print_conditional(node, out);
        return;
    case NODE_BETWEEN:
        print_test(node, node->between.value, "BETWEEN ", out);
        print_node(node->between.low, out);
        print_text(out, " AND ");
        print_node(node->between.high, out);
        buf_byte(out, ')');
        return;
    case NODE_IN:
        print_test(node, node->in.value, "IN (", out);
        print_list(&node->in.list, ", ", out);
        print_text(out, "))");
        return;
    case NODE_LIKE:
        print_like(node, out);
        return;
    case NODE_ARRAY:
        buf_byte(out, '[');
        print_list(&node->list, ", ", out);
        buf_byte(out, ']');
        return;
    case NODE_OBJECT:
        print_object(node, out);
        return;
    case NODE_CALL:
    case NODE_UDF:
        print_text(out, node->kind == NODE_UDF ? "udf." : "");
        buf_slice(out, node->call.name);
        buf_byte(out, '(');
        print_list(&node->call.args, ", ", out);
        buf_byte(out, ')');
        return;
    case NODE_SUBQUERY:
        buf_format(out, "%s(", SUBQUERY_TEXT[node->subquery.mode]);
        print_select(node->subquery.select, out);
        buf_byte(out, ')');
        return;
    case NODE_SLOT:
        buf_format(out, "#%u", node->slot);
        return;
    }
}

static void print_count(const Count *count, const char *word, Buf *out)
{
    if (!count->is_given)
        return;
    print_text(out, word);
    if (count->parameter != NULL)
        print_node(count->parameter, out);
    else
        buf_u64(out, count->value);
}

static void print_item_name(const SelectItem *item, Buf *out)
{
    print_text(out, " AS ");
    if (item->is_quoted)
        json_print_string(item->name, out);
    else
        buf_slice(out, item->name);
}

static void print_projection(const Select *select, Buf *out)
{
    if (select->projection == PROJECT_STAR)
        print_text(out, " *");
    if (select->projection == PROJECT_VALUE)
        print_text(out, " VALUE");
    for (const SelectItem *item = select->items; item != NULL; item = item->next) {
        print_text(out, item == select->items ? " " : ", ");
        print_node(item->value, out);
        if (item->has_name)
            print_item_name(item, out);
    }
}

static void print_source(const Source *source, Buf *out)
{
    if (source->iterate)
        buf_format(out, "%.*s IN ", SLICE_ARG(source->alias));
    if (source->subquery != NULL) {
        buf_byte(out, '(');
        print_select(source->subquery, out);
        buf_byte(out, ')');
    } else {
        print_node(source->value, out);
    }
    if (source->has_alias && !source->iterate)
        buf_format(out, " AS %.*s", SLICE_ARG(source->alias));
}

/* Clauses are separated by 'gap'; those of subqueries stay on their line. */
static void print_clauses(const Select *select, const char *gap, Buf *out)
{
    print_text(out, select->distinct ? "SELECT DISTINCT" : "SELECT");
    print_count(&select->top, " TOP ", out);
    print_projection(select, out);
    for (const Source *source = select->sources; source != NULL; source = source->next) {
        buf_format(out, "%s%s ", gap, source == select->sources ? "FROM" : "JOIN");
        print_source(source, out);
    }
    if (select->where != NULL) {
        buf_format(out, "%sWHERE ", gap);
        print_node(select->where, out);
    }
    if (select->group_by.count > 0) {
        buf_format(out, "%sGROUP BY ", gap);
        print_list(&select->group_by, ", ", out);
    }
    if (select->order_by != NULL)
        buf_format(out, "%sORDER BY %s", gap, select->by_rank ? "RANK " : "");
    for (const Order *order = select->order_by; order != NULL; order = order->next) {
        if (order != select->order_by)
            print_text(out, ", ");
        print_node(order->value, out);
        print_text(out, order->descending ? " DESC" : "");
    }
    if (select->limit.is_given)
        print_text(out, gap);
    print_count(&select->offset, "OFFSET ", out);
    print_count(&select->limit, " LIMIT ", out);
}

void print_select(const Select *select, Buf *out)
{
    print_clauses(select, " ", out);
}

void print_select_lines(const Select *select, Buf *out)
{
    print_clauses(select, "\n", out);
}
