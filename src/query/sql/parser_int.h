/* parser_int.h - the grammar: from tokens to a tree.
 *
 * Recursive descent with precedence climbing. The whole grammar is accepted here, including what
 * cannot be run yet; names mean nothing to the parser.
 */
#pragma once

#include "query/sql/ast_int.h"
#include "query/sql/lexer_int.h"

/* 'text' is valid UTF-8 of at most QUERY_TEXT_BYTES_MAX. */
MUST_USE Status parser_run(Arena *arena, Slice text, Select **out, Error *err);

/* What follows is for the files of the parser. */

typedef struct Parser {
    Arena *arena;
    Slice text;
    Lexer lexer;
    Token token; /* the current one, not yet consumed */
    Token next;  /* the one after it */
    uint32_t depth;
    Error *err;
} Parser;

void parser_advance(Parser *p);
bool parser_accept(Parser *p, TokenKind kind);
MUST_USE Status parser_expect(Parser *p, TokenKind kind);

/* The error for the current token, which no rule accepts. */
MUST_USE Status parser_unexpected(Parser *p);

/* SC1030 if 'levels' more would be too many. */
MUST_USE Status parser_enter(Parser *p, uint32_t levels);
static inline void parser_leave(Parser *p, uint32_t levels)
{
    p->depth -= levels;
}

Node *parser_node(Parser *p, NodeKind kind, Span span);

/* Puts 'node' 'levels' above a part of height 'below', or says SC1030. */
MUST_USE Status parser_height(Parser *p, Node *node, uint32_t below, uint32_t levels);
MUST_USE Status parser_append(Parser *p, Node *parent, NodeList *list, Node *child);

static inline bool parser_at_subquery(const Parser *p)
{
    return p->token.kind == TOKEN_LEFT_PAREN && p->next.kind == TOKEN_SELECT;
}

static inline Slice parser_slice(const Parser *p, Span span)
{
    return span_text(p->text, span);
}

MUST_USE Status parse_expression(Parser *p, Node **out);
MUST_USE Status parse_select(Parser *p, Select **out);

/* A literal, name, call or constructor, and the steps of a path after an operand. */
MUST_USE Status parse_primary(Parser *p, Node **out);
MUST_USE Status parse_postfix(Parser *p, Node **node);

/* A function call or an alias with a path, as FROM has it: indexes are literals. */
MUST_USE Status parse_collection(Parser *p, Node **out);

/* A function call, as ORDER BY RANK has it. */
MUST_USE Status parse_call(Parser *p, Node **out);

/* An expression in parentheses that is a query; the current token is SELECT. */
MUST_USE Status parse_subquery(Parser *p, SubqueryMode mode, Span start, Node **out);
