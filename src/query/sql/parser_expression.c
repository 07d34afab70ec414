/* parser_expression.c - expressions, from the loosest operator to the tightest.
 *
 *     level  operators                                     in the tree
 *     0      ? :                                           CONDITIONAL, flat
 *     1      ??                                            COALESCE, flat
 *     2      OR                                            OR, flat
 *     3      AND                                           AND, flat
 *     4      [NOT] IN, LIKE, BETWEEN (do not associate)    a node each
 *     5      = != < <= > >= << >> >>>                      CHAIN
 *     6      ||                                            CHAIN
 *     7      + - & | ^                                     CHAIN
 *     8      * / %                                         CHAIN
 *     -      unary - + ~ NOT, then .name [index] call
 *
 * Parentheses that open an expression are counted instead of recursed into: what they enclose is
 * the left operand of whatever follows the closing one, and that is exactly where the loop of
 * precedence climbing stands. So the left-leaning towers of parentheses that programs print need
 * no stack, and since a chain takes a left operand that is a chain into itself, no height either.
 */
#include "query/sql/parser_int.h"

#include "query/sql/sql.h"
#include "query/sql/sql_text_int.h"

enum {
    LEVEL_CONDITIONAL,
    LEVEL_COALESCE,
    LEVEL_OR,
    LEVEL_AND,
    LEVEL_TEST,
    LEVEL_COMPARE,
    LEVEL_CONCAT,
    LEVEL_ADD,
    LEVEL_MULTIPLY,
};

typedef struct Operator {
    TokenKind token;
    int level;
    BinaryOp op; /* of levels that make chains */
} Operator;

static const Operator OPERATORS[] = {
    {TOKEN_OR, LEVEL_OR, 0},
    {TOKEN_AND, LEVEL_AND, 0},
    {TOKEN_NOT, LEVEL_TEST, 0}, /* in front of the next three */
    {TOKEN_IN, LEVEL_TEST, 0},
    {TOKEN_LIKE, LEVEL_TEST, 0},
    {TOKEN_BETWEEN, LEVEL_TEST, 0},
    {TOKEN_EQUAL, LEVEL_COMPARE, BINARY_EQUAL},
    {TOKEN_NOT_EQUAL, LEVEL_COMPARE, BINARY_NOT_EQUAL},
    {TOKEN_LESS, LEVEL_COMPARE, BINARY_LESS},
    {TOKEN_LESS_EQUAL, LEVEL_COMPARE, BINARY_LESS_EQUAL},
    {TOKEN_GREATER, LEVEL_COMPARE, BINARY_GREATER},
    {TOKEN_GREATER_EQUAL, LEVEL_COMPARE, BINARY_GREATER_EQUAL},
    {TOKEN_SHIFT_LEFT, LEVEL_COMPARE, BINARY_SHIFT_LEFT},
    {TOKEN_SHIFT_RIGHT, LEVEL_COMPARE, BINARY_SHIFT_RIGHT},
    {TOKEN_SHIFT_RIGHT_ZERO, LEVEL_COMPARE, BINARY_SHIFT_RIGHT_ZERO},
    {TOKEN_CONCAT, LEVEL_CONCAT, BINARY_CONCAT},
    {TOKEN_PLUS, LEVEL_ADD, BINARY_ADD},
    {TOKEN_MINUS, LEVEL_ADD, BINARY_SUBTRACT},
    {TOKEN_AMPERSAND, LEVEL_ADD, BINARY_BITAND},
    {TOKEN_PIPE, LEVEL_ADD, BINARY_BITOR},
    {TOKEN_CARET, LEVEL_ADD, BINARY_BITXOR},
    {TOKEN_STAR, LEVEL_MULTIPLY, BINARY_MULTIPLY},
    {TOKEN_SLASH, LEVEL_MULTIPLY, BINARY_DIVIDE},
    {TOKEN_PERCENT, LEVEL_MULTIPLY, BINARY_MODULO},
};

static Status parse_level(Parser *p, int level, Node **out);
static Status parse_tail(Parser *p, int level, Node **node);
static Status climb(Parser *p, int level, Node **node);
static Status parse_unary(Parser *p, Node **out);

Status parse_expression(Parser *p, Node **out)
{
    return parse_level(p, LEVEL_CONDITIONAL, out);
}

/* An expression whose operators are of 'level' or tighter. */
static Status parse_level(Parser *p, int level, Node **out)
{
    TRY(parser_enter(p, 1));
    uint32_t open = 0;
    while (p->token.kind == TOKEN_LEFT_PAREN && !parser_at_subquery(p)) {
        if (++open > QUERY_PARENTHESES_MAX)
            return sql_error(p->err, p->text, p->token.span, "SC1030",
                             "Syntax error, the query is too complex: more than %d parentheses.",
                             QUERY_PARENTHESES_MAX);
        parser_advance(p);
    }
    Node *node;
    TRY(parse_unary(p, &node));
    for (; open > 0; open--) {
        TRY(parse_tail(p, LEVEL_CONDITIONAL, &node));
        TRY(parser_expect(p, TOKEN_RIGHT_PAREN));
        TRY(parse_postfix(p, &node));
    }
    TRY(parse_tail(p, level, &node));
    parser_leave(p, 1);
    *out = node;
    return STATUS_OK;
}

static Status parse_coalesce(Parser *p, Node **node)
{
    Node *coalesce = parser_node(p, NODE_COALESCE, (*node)->span);
    TRY(parser_append(p, coalesce, &coalesce->list, *node));
    while (parser_accept(p, TOKEN_COALESCE)) {
        Node *operand;
        TRY(parse_level(p, LEVEL_OR, &operand));
        TRY(parser_append(p, coalesce, &coalesce->list, operand));
        coalesce->span.end = operand->span.end;
    }
    *node = coalesce;
    return STATUS_OK;
}

/* a ? b : c ? d : e holds [a b c d e]: what follows a colon is a condition if a question follows.
 */
static Status parse_conditional(Parser *p, Node **node)
{
    Node *conditional = parser_node(p, NODE_CONDITIONAL, (*node)->span);
    TRY(parser_append(p, conditional, &conditional->list, *node));
    while (parser_accept(p, TOKEN_QUESTION)) {
        Node *part;
        TRY(parse_expression(p, &part));
        TRY(parser_append(p, conditional, &conditional->list, part));
        TRY(parser_expect(p, TOKEN_COLON));
        TRY(parse_level(p, LEVEL_COALESCE, &part));
        TRY(parser_append(p, conditional, &conditional->list, part));
        conditional->span.end = part->span.end;
    }
    *node = conditional;
    return STATUS_OK;
}

/* Goes on after the operand '*node' with operators of 'level' or tighter. */
static Status parse_tail(Parser *p, int level, Node **node)
{
    TRY(climb(p, level < LEVEL_OR ? LEVEL_OR : level, node));
    if (level <= LEVEL_COALESCE && p->token.kind == TOKEN_COALESCE)
        TRY(parse_coalesce(p, node));
    if (level <= LEVEL_CONDITIONAL && p->token.kind == TOKEN_QUESTION)
        TRY(parse_conditional(p, node));
    return STATUS_OK;
}

static const Operator *find_operator(TokenKind token)
{
    for (size_t i = 0; i < ARRAY_COUNT(OPERATORS); i++) {
        if (OPERATORS[i].token == token)
            return &OPERATORS[i];
    }
    return NULL;
}

static Status parse_logic(Parser *p, const Operator *op, Node **node)
{
    NodeKind kind = op->level == LEVEL_AND ? NODE_AND : NODE_OR;
    Node *right;
    parser_advance(p);
    TRY(parse_level(p, op->level + 1, &right));
    if ((*node)->kind != kind) {
        Node *logic = parser_node(p, kind, (*node)->span);
        TRY(parser_append(p, logic, &logic->list, *node));
        *node = logic;
    }
    (*node)->span.end = right->span.end;
    return parser_append(p, *node, &(*node)->list, right);
}

static Status parse_link(Parser *p, const Operator *op, Node **node)
{
    Link *link = ARENA_NEW(p->arena, Link);
    link->op = op->op;
    parser_advance(p);
    TRY(parse_level(p, op->level + 1, &link->right));
    if ((*node)->kind != NODE_CHAIN) {
        Node *chain = parser_node(p, NODE_CHAIN, (*node)->span);
        chain->chain.first = *node;
        chain->chain.links = link;
        TRY(parser_height(p, chain, (*node)->height, 1));
        *node = chain;
    } else {
        (*node)->chain.last->next = link;
    }
    (*node)->chain.last = link;
    (*node)->span.end = link->right->span.end;
    return parser_height(p, *node, link->right->height, 1);
}

static Status parse_in(Parser *p, Node **node)
{
    Node *in = parser_node(p, NODE_IN, (*node)->span);
    in->in.value = *node;
    TRY(parser_height(p, in, (*node)->height, 1));
    TRY(parser_expect(p, TOKEN_LEFT_PAREN));
    do {
        Node *item;
        TRY(parse_expression(p, &item));
        TRY(parser_append(p, in, &in->in.list, item));
    } while (parser_accept(p, TOKEN_COMMA));
    in->span.end = p->token.span.end;
    *node = in;
    return parser_expect(p, TOKEN_RIGHT_PAREN);
}

static Status parse_escape(Parser *p, uint32_t *escape)
{
    if (p->token.kind != TOKEN_STRING)
        return parser_unexpected(p);
    Slice text = lexer_string(p->arena, parser_slice(p, p->token.span));
    size_t at = 0;
    if (text.len > 0)
        *escape = text_next(text, &at);
    if (text.len == 0 || at != text.len)
        return parser_unexpected(p); /* one character it must be */
    parser_advance(p);
    return STATUS_OK;
}

static Status parse_like(Parser *p, Node **node)
{
    Node *like = parser_node(p, NODE_LIKE, (*node)->span);
    like->like.value = *node;
    like->like.escape = TEXT_INVALID;
    TRY(parse_level(p, LEVEL_COMPARE, &like->like.pattern));
    TRY(parser_height(p, like, (*node)->height, 1));
    TRY(parser_height(p, like, like->like.pattern->height, 1));
    like->span.end = like->like.pattern->span.end;
    if (p->token.kind == TOKEN_ESCAPE) {
        parser_advance(p);
        like->span.end = p->token.span.end;
        TRY(parse_escape(p, &like->like.escape));
    }
    *node = like;
    return STATUS_OK;
}

static Status parse_between(Parser *p, Node **node)
{
    Node *between = parser_node(p, NODE_BETWEEN, (*node)->span);
    between->between.value = *node;
    TRY(parse_level(p, LEVEL_COMPARE, &between->between.low));
    TRY(parser_expect(p, TOKEN_AND));
    TRY(parse_level(p, LEVEL_COMPARE, &between->between.high));
    between->span.end = between->between.high->span.end;
    TRY(parser_height(p, between, (*node)->height, 1));
    TRY(parser_height(p, between, between->between.low->height, 1));
    TRY(parser_height(p, between, between->between.high->height, 1));
    *node = between;
    return STATUS_OK;
}

static Status parse_test(Parser *p, Node **node)
{
    bool negated = parser_accept(p, TOKEN_NOT);
    TokenKind kind = p->token.kind;
    parser_advance(p);
    if (kind == TOKEN_IN)
        TRY(parse_in(p, node));
    else if (kind == TOKEN_LIKE)
        TRY(parse_like(p, node));
    else
        TRY(parse_between(p, node));
    (*node)->negated = negated;
    return STATUS_OK;
}

/* NOT after an operand is an operator only together with what follows it. */
static bool at_lone_not(const Parser *p)
{
    return p->token.kind == TOKEN_NOT && p->next.kind != TOKEN_IN && p->next.kind != TOKEN_LIKE &&
           p->next.kind != TOKEN_BETWEEN;
}

static Status climb(Parser *p, int level, Node **node)
{
    int tightest = LEVEL_MULTIPLY;
    for (;;) {
        const Operator *op = find_operator(p->token.kind);
        if (op == NULL || op->level < level || op->level > tightest || at_lone_not(p))
            return STATUS_OK;
        if (op->level == LEVEL_TEST) {
            TRY(parse_test(p, node));
            tightest = LEVEL_AND; /* a test is no operand of another one, or of = and the like */
        } else if (op->level < LEVEL_TEST) {
            TRY(parse_logic(p, op, node));
        } else {
            TRY(parse_link(p, op, node));
        }
    }
}

static bool unary_of(TokenKind token, UnaryOp *op)
{
    switch ((int)token) {
    case TOKEN_MINUS:
        *op = UNARY_MINUS;
        return true;
    case TOKEN_PLUS:
        *op = UNARY_PLUS;
        return true;
    case TOKEN_TILDE:
        *op = UNARY_BITNOT;
        return true;
    case TOKEN_NOT:
        *op = UNARY_NOT;
        return true;
    default:
        return false;
    }
}

/* -9223372036854775808 is an integer although 9223372036854775808 is none, so the sign belongs to
 * the number. */
static bool negate_literal(Node *node)
{
    if (node->kind != NODE_LITERAL || node->literal.type != JSON_NUMBER)
        return false;
    if (node->literal.is_integer && node->literal.integer != INT64_MIN &&
        node->literal.integer != 0)
        node->literal = value_integer(-node->literal.integer);
    else if (!node->literal.is_integer && node->literal.number == 0x1p63)
        node->literal = value_integer(INT64_MIN);
    else
        node->literal = value_number(-node->literal.number);
    return true;
}

static Status parse_unary(Parser *p, Node **out)
{
    UnaryOp op;
    if (!unary_of(p->token.kind, &op)) {
        TRY(parse_primary(p, out));
        return parse_postfix(p, out);
    }
    Span span = p->token.span;
    Node *operand;
    parser_advance(p);
    TRY(parser_enter(p, 1));
    TRY(parse_unary(p, &operand));
    parser_leave(p, 1);
    span.end = operand->span.end;
    if (op == UNARY_MINUS && negate_literal(operand)) {
        operand->span = span;
        *out = operand;
        return STATUS_OK;
    }
    Node *unary = parser_node(p, NODE_UNARY, span);
    unary->unary.op = op;
    unary->unary.operand = operand;
    *out = unary;
    return parser_height(p, unary, operand->height, 1);
}
