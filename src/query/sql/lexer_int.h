/* lexer_int.h - the text of a query as tokens.
 *
 * A Lexer is a position in the text and can be copied to look ahead. What is no token becomes one
 * of kind TOKEN_BAD, which no rule of the grammar accepts: the parser then reports the code that
 * the token carries, and does so only if it gets that far.
 */
#pragma once

#include "base/arena.h"
#include "base/slice.h"
#include "query/sql/sql_error_int.h"

typedef enum TokenKind {
    TOKEN_EOF,
    TOKEN_BAD,
    TOKEN_IDENTIFIER,
    TOKEN_NUMBER,
    TOKEN_STRING,
    TOKEN_PARAMETER, /* with its '@' */

    TOKEN_LEFT_PAREN,
    TOKEN_RIGHT_PAREN,
    TOKEN_LEFT_BRACKET,
    TOKEN_RIGHT_BRACKET,
    TOKEN_LEFT_BRACE,
    TOKEN_RIGHT_BRACE,
    TOKEN_COMMA,
    TOKEN_COLON,
    TOKEN_DOT,
    TOKEN_STAR,
    TOKEN_SLASH,
    TOKEN_PERCENT,
    TOKEN_PLUS,
    TOKEN_MINUS,
    TOKEN_AMPERSAND,
    TOKEN_PIPE,
    TOKEN_CARET,
    TOKEN_TILDE,
    TOKEN_CONCAT, /* || */
    TOKEN_EQUAL,
    TOKEN_NOT_EQUAL, /* != and <> */
    TOKEN_LESS,
    TOKEN_LESS_EQUAL,
    TOKEN_GREATER,
    TOKEN_GREATER_EQUAL,
    TOKEN_SHIFT_LEFT,
    TOKEN_SHIFT_RIGHT,
    TOKEN_SHIFT_RIGHT_ZERO, /* >>> */
    TOKEN_QUESTION,
    TOKEN_COALESCE, /* ?? */

#define KEYWORD(name)     TOKEN_##name,
#define EXACT(name, text) TOKEN_##name,
#include "query/sql/keywords.def"
} TokenKind;

typedef enum BadToken { BAD_CHARACTER, BAD_NUMBER, BAD_STRING } BadToken;

typedef struct Token {
    TokenKind kind;
    BadToken bad; /* of TOKEN_BAD */
    Span span;
} Token;

typedef struct Lexer {
    Slice text; /* valid UTF-8, at most QUERY_TEXT_BYTES_MAX */
    uint32_t at;
    uint32_t count; /* of tokens so far */
} Lexer;

Token lexer_next(Lexer *lexer);

/* The characters of a string token without quotes and escapes. */
Slice lexer_string(Arena *arena, Slice token);

/* The value of a number token. '*is_integer' if it was written as an integer of at most 64 bits;
 * '*integer' is then its magnitude, which may be 2^63 and more. Beyond doubles it is infinite. */
double lexer_number(Slice token, bool *is_integer, uint64_t *integer);
