/* parser_operand.c - what operators work on: literals, arrays and objects, calls, subqueries, and
 * the paths after them.
 */
#include "query/sql/parser_int.h"

static Status parse_literal(Parser *p, Value value, Node **out)
{
    *out = parser_node(p, NODE_LITERAL, p->token.span);
    (*out)->literal = value;
    (*out)->literal.stable = true;
    parser_advance(p);
    return STATUS_OK;
}

static Value number_literal(Slice token)
{
    bool is_integer;
    uint64_t integer;
    double number = lexer_number(token, &is_integer, &integer);
    bool hexadecimal = token.len > 2 && (token.ptr[1] == 'x' || token.ptr[1] == 'X');
    if (is_integer && (hexadecimal || integer <= INT64_MAX))
        return value_integer((int64_t)integer); /* hexadecimal: the bits as they are */
    return value_number(number);
}

static Status parse_parameter(Parser *p, Node **out)
{
    *out = parser_node(p, NODE_PARAMETER, p->token.span);
    (*out)->parameter.name = parser_slice(p, p->token.span);
    parser_advance(p);
    return STATUS_OK;
}

static Status parse_name(Parser *p, Node **out)
{
    *out = parser_node(p, NODE_NAME, p->token.span);
    (*out)->name.name = parser_slice(p, p->token.span);
    (*out)->name.slot = SLOT_NONE;
    parser_advance(p);
    return STATUS_OK;
}

/* Reads expressions from after an opening token up to the closing one. */
static Status parse_list(Parser *p, Node *parent, NodeList *list, TokenKind closing)
{
    if (p->token.kind != closing) {
        do {
            Node *item;
            TRY(parse_expression(p, &item));
            TRY(parser_append(p, parent, list, item));
        } while (parser_accept(p, TOKEN_COMMA));
    }
    parent->span.end = p->token.span.end;
    return parser_expect(p, closing);
}

static Status parse_array(Parser *p, Node **out)
{
    Node *array = parser_node(p, NODE_ARRAY, p->token.span);
    parser_advance(p);
    array->height = 1;
    *out = array;
    return parse_list(p, array, &array->list, TOKEN_RIGHT_BRACKET);
}

static Status parse_property(Parser *p, Property **out)
{
    Property *property = ARENA_NEW(p->arena, Property);
    Slice token = parser_slice(p, p->token.span);
    property->span = p->token.span;
    if (p->token.kind == TOKEN_STRING)
        property->name = lexer_string(p->arena, token);
    else if (p->token.kind == TOKEN_IDENTIFIER)
        property->name = token;
    else
        return parser_unexpected(p);
    parser_advance(p);
    TRY(parser_expect(p, TOKEN_COLON));
    TRY(parse_expression(p, &property->value));
    *out = property;
    return STATUS_OK;
}

static Status parse_object(Parser *p, Node **out)
{
    Node *object = parser_node(p, NODE_OBJECT, p->token.span);
    Property **tail = &object->object.first;
    object->height = 1;
    parser_advance(p);
    if (p->token.kind != TOKEN_RIGHT_BRACE) {
        do {
            TRY(parse_property(p, tail));
            TRY(parser_height(p, object, (*tail)->value->height, 1));
            tail = &(*tail)->next;
            object->object.count++;
        } while (parser_accept(p, TOKEN_COMMA));
    }
    object->span.end = p->token.span.end;
    *out = object;
    return parser_expect(p, TOKEN_RIGHT_BRACE);
}

static uint32_t max_height(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

static uint32_t node_height(const Node *node)
{
    return node == NULL ? 0 : node->height;
}

/* The greatest height of an expression in the query. */
static uint32_t select_height(const Select *select)
{
    uint32_t height = node_height(select->where);
    for (const SelectItem *item = select->items; item != NULL; item = item->next)
        height = max_height(height, node_height(item->value));
    for (const Source *source = select->sources; source != NULL; source = source->next) {
        uint32_t below =
            source->subquery == NULL ? node_height(source->value) : select_height(source->subquery);
        height = max_height(height, below + (source->subquery == NULL ? 0 : SUBQUERY_LEVELS));
    }
    for (const Node *key = select->group_by.first; key != NULL; key = key->next)
        height = max_height(height, node_height(key));
    for (const Order *order = select->order_by; order != NULL; order = order->next)
        height = max_height(height, node_height(order->value));
    return height;
}

Status parse_subquery(Parser *p, SubqueryMode mode, Span start, Node **out)
{
    Node *node = parser_node(p, NODE_SUBQUERY, start);
    node->subquery.mode = mode;
    TRY(parser_enter(p, SUBQUERY_LEVELS));
    TRY(parse_select(p, &node->subquery.select));
    parser_leave(p, SUBQUERY_LEVELS);
    node->span.end = p->token.span.end;
    TRY(parser_expect(p, TOKEN_RIGHT_PAREN));
    *out = node;
    return parser_height(p, node, select_height(node->subquery.select), SUBQUERY_LEVELS);
}

static bool subquery_mode(Slice name, SubqueryMode *mode)
{
    static const struct {
        Slice name;
        SubqueryMode mode;
    } MODES[] = {
        {SLICE_INIT("ALL"), SUBQUERY_ALL},
        {SLICE_INIT("FIRST"), SUBQUERY_FIRST},
        {SLICE_INIT("LAST"), SUBQUERY_LAST},
    };
    for (size_t i = 0; i < ARRAY_COUNT(MODES); i++) {
        if (slice_equal_nocase(MODES[i].name, name)) {
            *mode = MODES[i].mode;
            return true;
        }
    }
    return false;
}

/* ARRAY(SELECT ...) and EXISTS(SELECT ...), whose names are reserved. */
static Status parse_reserved_subquery(Parser *p, SubqueryMode mode, Node **out)
{
    Span start = p->token.span;
    parser_advance(p);
    TRY(parser_expect(p, TOKEN_LEFT_PAREN));
    if (p->token.kind != TOKEN_SELECT)
        return parser_unexpected(p);
    return parse_subquery(p, mode, start, out);
}

static Status parse_arguments(Parser *p, NodeKind kind, Span start, Span name, Node **out)
{
    Node *call = parser_node(p, kind, start);
    call->call.name = parser_slice(p, name);
    call->call.name_span = name;
    call->call.slot = SLOT_NONE;
    call->height = 1;
    TRY(parser_expect(p, TOKEN_LEFT_PAREN));
    SubqueryMode mode;
    if (kind == NODE_CALL && p->token.kind == TOKEN_SELECT && subquery_mode(call->call.name, &mode))
        return parse_subquery(p, mode, start, out);
    *out = call;
    return parse_list(p, call, &call->call.args, TOKEN_RIGHT_PAREN);
}

Status parse_call(Parser *p, Node **out)
{
    Span name = p->token.span;
    bool callable = p->token.kind == TOKEN_IDENTIFIER || p->token.kind == TOKEN_LEFT ||
                    p->token.kind == TOKEN_RIGHT;
    if (!callable)
        return parser_unexpected(p);
    parser_advance(p);
    return parse_arguments(p, NODE_CALL, name, name, out);
}

static Status parse_udf(Parser *p, Node **out)
{
    Span start = p->token.span;
    parser_advance(p);
    TRY(parser_expect(p, TOKEN_DOT));
    Span name = p->token.span;
    TRY(parser_expect(p, TOKEN_IDENTIFIER));
    return parse_arguments(p, NODE_UDF, start, name, out);
}

Status parse_primary(Parser *p, Node **out)
{
    Slice token = parser_slice(p, p->token.span);
    switch ((int)p->token.kind) {
    case TOKEN_NUMBER:
        return parse_literal(p, number_literal(token), out);
    case TOKEN_STRING:
        return parse_literal(p, value_string(lexer_string(p->arena, token)), out);
    case TOKEN_TRUE:
        return parse_literal(p, value_bool(true), out);
    case TOKEN_FALSE:
        return parse_literal(p, value_bool(false), out);
    case TOKEN_NULL_:
        return parse_literal(p, VALUE_NULL, out);
    case TOKEN_UNDEFINED:
        return parse_literal(p, VALUE_UNDEFINED, out);
    case TOKEN_NAN_:
        return parse_literal(p, value_number((double)__builtin_nanf("")), out);
    case TOKEN_INFINITY_:
        return parse_literal(p, value_number((double)__builtin_inff()), out);
    case TOKEN_PARAMETER:
        return parse_parameter(p, out);
    case TOKEN_IDENTIFIER:
    case TOKEN_LEFT:
    case TOKEN_RIGHT:
        if (p->next.kind == TOKEN_LEFT_PAREN)
            return parse_call(p, out);
        return p->token.kind == TOKEN_IDENTIFIER ? parse_name(p, out) : parser_unexpected(p);
    case TOKEN_UDF:
        return parse_udf(p, out);
    case TOKEN_LEFT_BRACKET:
        return parse_array(p, out);
    case TOKEN_LEFT_BRACE:
        return parse_object(p, out);
    case TOKEN_ARRAY:
        return parse_reserved_subquery(p, SUBQUERY_ARRAY, out);
    case TOKEN_EXISTS:
        return parse_reserved_subquery(p, SUBQUERY_EXISTS, out);
    case TOKEN_LEFT_PAREN:
        if (parser_at_subquery(p)) {
            Span start = p->token.span;
            parser_advance(p);
            return parse_subquery(p, SUBQUERY_SCALAR, start, out);
        }
        parser_advance(p);
        TRY(parse_expression(p, out));
        return parser_expect(p, TOKEN_RIGHT_PAREN);
    default:
        return parser_unexpected(p);
    }
}

/* A step "[...]"; what is known to be a name already is treated as one. */
static Status parse_index(Parser *p, Step *step)
{
    parser_advance(p);
    Node *index;
    TRY(parse_expression(p, &index));
    if (index->kind == NODE_LITERAL && index->literal.type == JSON_STRING)
        step->name = index->literal.string;
    else
        step->index = index;
    return STATUS_OK;
}

static Status add_step(Parser *p, Node **node, Step *step)
{
    if ((*node)->kind != NODE_PATH) {
        Node *path = parser_node(p, NODE_PATH, (*node)->span);
        path->path.base = *node;
        path->path.first = step;
        TRY(parser_height(p, path, (*node)->height, 1));
        *node = path;
    } else {
        (*node)->path.last->next = step;
    }
    (*node)->path.last = step;
    return parser_height(p, *node, node_height(step->index), 1);
}

static Status parse_step(Parser *p, Node **node)
{
    Step *step = ARENA_NEW(p->arena, Step);
    Span end;
    if (p->token.kind == TOKEN_DOT) {
        parser_advance(p);
        end = p->token.span;
        step->name = parser_slice(p, end);
        TRY(parser_expect(p, TOKEN_IDENTIFIER));
    } else {
        TRY(parse_index(p, step));
        end = p->token.span;
        TRY(parser_expect(p, TOKEN_RIGHT_BRACKET));
    }
    TRY(add_step(p, node, step));
    (*node)->span.end = end.end;
    return STATUS_OK;
}

Status parse_postfix(Parser *p, Node **node)
{
    while (p->token.kind == TOKEN_DOT || p->token.kind == TOKEN_LEFT_BRACKET)
        TRY(parse_step(p, node));
    return STATUS_OK;
}

/* "[0]" or "["name"]" and nothing else. */
static Status parse_literal_step(Parser *p, Node **node)
{
    bool literal = p->next.kind == TOKEN_STRING || p->next.kind == TOKEN_NUMBER;
    if (p->token.kind == TOKEN_LEFT_BRACKET && !literal) {
        parser_advance(p);
        return parser_unexpected(p);
    }
    Step **tail = (*node)->kind == NODE_PATH ? &(*node)->path.last->next : NULL;
    TRY(parse_step(p, node));
    const Step *step = tail == NULL ? (*node)->path.first : *tail;
    if (step->index != NULL &&
        !(step->index->kind == NODE_LITERAL && step->index->literal.is_integer))
        return sql_error(p->err, p->text, step->index->span, "SC1001",
                         "Syntax error, incorrect syntax near '%.*s'.",
                         SLICE_CUT(parser_slice(p, step->index->span), SQL_QUOTE_BYTES));
    return STATUS_OK;
}

Status parse_collection(Parser *p, Node **out)
{
    if (p->token.kind == TOKEN_UDF)
        return parse_udf(p, out);
    if (p->next.kind == TOKEN_LEFT_PAREN)
        return parse_call(p, out);
    if (p->token.kind != TOKEN_IDENTIFIER)
        return parser_unexpected(p);
    TRY(parse_name(p, out));
    while (p->token.kind == TOKEN_DOT || p->token.kind == TOKEN_LEFT_BRACKET)
        TRY(parse_literal_step(p, out));
    return STATUS_OK;
}
