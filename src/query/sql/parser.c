/* parser.c - the clauses of a query; expressions are in parser_expression.c. */
#include "query/sql/parser_int.h"

#include "query/sql/sql.h"

static Status parse_projection(Parser *p, Select *select);
static Status parse_from(Parser *p, Select *select);
static Status parse_group_by(Parser *p, Select *select);
static Status parse_order_by(Parser *p, Select *select);
static Status parse_offset_limit(Parser *p, Select *select);

Status parser_run(Arena *arena, Slice text, Select **out, Error *err)
{
    if (text.len == 0)
        text = SLICE(""); /* spans are added to a pointer, which must not be NULL */
    Parser p = {.arena = arena, .text = text, .lexer = {.text = text}, .err = err};
    p.token = lexer_next(&p.lexer);
    p.next = lexer_next(&p.lexer);
    Select *select;
    TRY(parse_select(&p, &select));
    if (p.token.kind != TOKEN_EOF)
        return parser_unexpected(&p);
    *out = select;
    return STATUS_OK;
}

void parser_advance(Parser *p)
{
    p->token = p->next;
    if (p->next.kind != TOKEN_EOF)
        p->next = lexer_next(&p->lexer);
}

bool parser_accept(Parser *p, TokenKind kind)
{
    if (p->token.kind != kind)
        return false;
    parser_advance(p);
    return true;
}

Status parser_expect(Parser *p, TokenKind kind)
{
    return parser_accept(p, kind) ? STATUS_OK : parser_unexpected(p);
}

Status parser_unexpected(Parser *p)
{
    static const struct {
        const char *code;
        const char *what;
    } BAD[] = {
        [BAD_CHARACTER] = {"SC1010", "invalid token"},
        [BAD_NUMBER] = {"SC1011", "invalid numeric value token"},
        [BAD_STRING] = {"SC1012", "invalid string literal token"},
    };
    Slice token = parser_slice(p, p->token.span);
    if (p->token.kind == TOKEN_EOF)
        return sql_error(p->err, p->text, p->token.span, "SC1002",
                         "Syntax error, unexpected end-of-file.");
    if (p->token.kind == TOKEN_BAD)
        return sql_error(p->err, p->text, p->token.span, BAD[p->token.bad].code,
                         "Syntax error, %s '%.*s'.", BAD[p->token.bad].what,
                         SLICE_CUT(token, SQL_QUOTE_BYTES));
    return sql_error(p->err, p->text, p->token.span, "SC1001",
                     "Syntax error, incorrect syntax near '%.*s'.",
                     SLICE_CUT(token, SQL_QUOTE_BYTES));
}

Status parser_enter(Parser *p, uint32_t levels)
{
    if (p->depth + levels > QUERY_DEPTH_MAX)
        return sql_error(p->err, p->text, p->token.span, "SC1030",
                         "Syntax error, the query is too complex: more than %d levels of nesting.",
                         QUERY_DEPTH_MAX);
    p->depth += levels;
    return STATUS_OK;
}

Node *parser_node(Parser *p, NodeKind kind, Span span)
{
    Node *node = ARENA_NEW(p->arena, Node);
    node->kind = kind;
    node->span = span;
    return node;
}

Status parser_height(Parser *p, Node *node, uint32_t below, uint32_t levels)
{
    uint32_t height = node->height > below + levels ? node->height : below + levels;
    if (height > QUERY_DEPTH_MAX)
        return sql_error(p->err, p->text, node->span, "SC1030",
                         "Syntax error, the query is too complex: more than %d levels of nesting.",
                         QUERY_DEPTH_MAX);
    node->height = (uint16_t)height;
    return STATUS_OK;
}

Status parser_append(Parser *p, Node *parent, NodeList *list, Node *child)
{
    list_append(list, child);
    return parser_height(p, parent, child->height, 1);
}

/* A bare number or a parameter. What it may be at most is the binder's business, which knows the
 * parameters; here it only has to be written as an integer. */
static Status parse_count(Parser *p, Count *out)
{
    *out = (Count){.is_given = true, .span = p->token.span};
    if (p->token.kind == TOKEN_PARAMETER) {
        out->parameter = ARENA_NEW(p->arena, Node);
        out->parameter->kind = NODE_PARAMETER;
        out->parameter->span = p->token.span;
        out->parameter->parameter.name = parser_slice(p, p->token.span);
        parser_advance(p);
        return STATUS_OK;
    }
    if (p->token.kind != TOKEN_NUMBER)
        return parser_unexpected(p);
    bool is_integer;
    uint64_t integer;
    double number = lexer_number(parser_slice(p, p->token.span), &is_integer, &integer);
    if (!is_integer) {
        /* Digits beyond 64 bits are an integer all the same, and too large. */
        if (number < (double)UINT64_MAX)
            return parser_unexpected(p);
        integer = UINT64_MAX;
    }
    out->value = integer;
    parser_advance(p);
    return STATUS_OK;
}

Status parse_select(Parser *p, Select **out)
{
    Select *select = ARENA_NEW(p->arena, Select);
    uint32_t start = p->token.span.start;
    TRY(parser_expect(p, TOKEN_SELECT));
    select->distinct = parser_accept(p, TOKEN_DISTINCT);
    if (parser_accept(p, TOKEN_TOP))
        TRY(parse_count(p, &select->top));
    TRY(parse_projection(p, select));
    if (parser_accept(p, TOKEN_FROM))
        TRY(parse_from(p, select));
    if (parser_accept(p, TOKEN_WHERE))
        TRY(parse_expression(p, &select->where));
    if (parser_accept(p, TOKEN_GROUP))
        TRY(parse_group_by(p, select));
    if (parser_accept(p, TOKEN_ORDER))
        TRY(parse_order_by(p, select));
    if (parser_accept(p, TOKEN_OFFSET))
        TRY(parse_offset_limit(p, select));
    select->span = (Span){start, p->token.span.start};
    *out = select;
    return STATUS_OK;
}

/* [[AS] identifier] */
static Status parse_alias(Parser *p, bool *has_alias, Slice *alias, Span *span)
{
    bool required = parser_accept(p, TOKEN_AS);
    if (p->token.kind != TOKEN_IDENTIFIER)
        return required ? parser_unexpected(p) : STATUS_OK;
    *has_alias = true;
    *alias = parser_slice(p, p->token.span);
    *span = p->token.span;
    parser_advance(p);
    return STATUS_OK;
}

/* AS 'any text' */
static void parse_quoted_name(Parser *p, SelectItem *item)
{
    parser_advance(p);
    item->has_name = true;
    item->is_quoted = true;
    item->name = lexer_string(p->arena, parser_slice(p, p->token.span));
    item->name_span = p->token.span;
    parser_advance(p);
}

static Status parse_item(Parser *p, SelectItem **out)
{
    SelectItem *item = ARENA_NEW(p->arena, SelectItem);
    TRY(parse_expression(p, &item->value));
    item->name_span = item->value->span;
    if (p->token.kind == TOKEN_AS && p->next.kind == TOKEN_STRING)
        parse_quoted_name(p, item);
    else
        TRY(parse_alias(p, &item->has_name, &item->name, &item->name_span));
    *out = item;
    return STATUS_OK;
}

static Status parse_projection(Parser *p, Select *select)
{
    if (p->token.kind == TOKEN_STAR) {
        select->projection = PROJECT_STAR;
        select->star = p->token.span;
        parser_advance(p);
        return STATUS_OK;
    }
    if (parser_accept(p, TOKEN_VALUE)) {
        select->projection = PROJECT_VALUE;
        TRY(parse_item(p, &select->items)); /* an alias has no meaning here and is allowed */
        select->items->has_name = false;
        return STATUS_OK;
    }
    select->projection = PROJECT_LIST;
    SelectItem **tail = &select->items;
    do {
        TRY(parse_item(p, tail));
        tail = &(*tail)->next;
    } while (parser_accept(p, TOKEN_COMMA));
    return STATUS_OK;
}

static Status parse_source(Parser *p, Source **out)
{
    Source *source = ARENA_NEW(p->arena, Source);
    source->span = p->token.span;
    if (p->token.kind == TOKEN_IDENTIFIER && p->next.kind == TOKEN_IN) {
        source->iterate = true;
        source->has_alias = true;
        source->alias = parser_slice(p, p->token.span);
        parser_advance(p);
        parser_advance(p);
    }
    if (p->token.kind == TOKEN_LEFT_PAREN && p->next.kind == TOKEN_SELECT) {
        Node *subquery;
        Span start = p->token.span;
        parser_advance(p);
        TRY(parse_subquery(p, SUBQUERY_SCALAR, start, &subquery));
        source->subquery = subquery->subquery.select;
        source->span = span_join(source->span, subquery->span);
    } else {
        TRY(parse_collection(p, &source->value));
        source->span = span_join(source->span, source->value->span);
    }
    if (!source->iterate)
        TRY(parse_alias(p, &source->has_alias, &source->alias, &source->span));
    *out = source;
    return STATUS_OK;
}

static Status parse_from(Parser *p, Select *select)
{
    Source **tail = &select->sources;
    do {
        TRY(parse_source(p, tail));
        tail = &(*tail)->next;
        select->source_count++;
    } while (parser_accept(p, TOKEN_JOIN));
    return STATUS_OK;
}

static Status parse_group_by(Parser *p, Select *select)
{
    TRY(parser_expect(p, TOKEN_BY));
    do {
        Node *key;
        TRY(parse_expression(p, &key));
        list_append(&select->group_by, key);
    } while (parser_accept(p, TOKEN_COMMA));
    return STATUS_OK;
}

/* RANK is no reserved word: it is one only where a function call follows. */
static bool at_rank(const Parser *p)
{
    return p->token.kind == TOKEN_IDENTIFIER && p->next.kind == TOKEN_IDENTIFIER &&
           slice_equal_nocase(parser_slice(p, p->token.span), SLICE("RANK"));
}

static Status parse_order_by(Parser *p, Select *select)
{
    TRY(parser_expect(p, TOKEN_BY));
    if (at_rank(p)) {
        select->by_rank = true;
        parser_advance(p);
    }
    Order **tail = &select->order_by;
    do {
        Order *order = ARENA_NEW(p->arena, Order);
        TRY(select->by_rank ? parse_call(p, &order->value) : parse_expression(p, &order->value));
        order->descending = p->token.kind == TOKEN_DESC;
        if (!parser_accept(p, TOKEN_DESC))
            (void)parser_accept(p, TOKEN_ASC); /* the default may be said */
        *tail = order;
        tail = &order->next;
        select->order_count++;
    } while (parser_accept(p, TOKEN_COMMA));
    return STATUS_OK;
}

static Status parse_offset_limit(Parser *p, Select *select)
{
    TRY(parse_count(p, &select->offset));
    TRY(parser_expect(p, TOKEN_LIMIT));
    return parse_count(p, &select->limit);
}
