/* lexer.c - see lexer_int.h. */
#include "query/sql/lexer_int.h"

#include "base/workers.h"
#include "query/sql/sql_text_int.h"
#include "json/json.h"

#include <math.h>

enum { TOKENS_PER_LOOK = 256 }; /* at whether others wait for a turn */

typedef struct Symbol {
    char text[4];
    TokenKind kind;
} Symbol;

/* Longer ones first: the first that fits is taken. */
static const Symbol SYMBOLS[] = {
    {">>>", TOKEN_SHIFT_RIGHT_ZERO},
    {"||", TOKEN_CONCAT},
    {"??", TOKEN_COALESCE},
    {"!=", TOKEN_NOT_EQUAL},
    {"<>", TOKEN_NOT_EQUAL},
    {"<=", TOKEN_LESS_EQUAL},
    {">=", TOKEN_GREATER_EQUAL},
    {"<<", TOKEN_SHIFT_LEFT},
    {">>", TOKEN_SHIFT_RIGHT},
    {"(", TOKEN_LEFT_PAREN},
    {")", TOKEN_RIGHT_PAREN},
    {"[", TOKEN_LEFT_BRACKET},
    {"]", TOKEN_RIGHT_BRACKET},
    {"{", TOKEN_LEFT_BRACE},
    {"}", TOKEN_RIGHT_BRACE},
    {",", TOKEN_COMMA},
    {":", TOKEN_COLON},
    {".", TOKEN_DOT},
    {"*", TOKEN_STAR},
    {"/", TOKEN_SLASH},
    {"%", TOKEN_PERCENT},
    {"+", TOKEN_PLUS},
    {"-", TOKEN_MINUS},
    {"&", TOKEN_AMPERSAND},
    {"|", TOKEN_PIPE},
    {"^", TOKEN_CARET},
    {"~", TOKEN_TILDE},
    {"=", TOKEN_EQUAL},
    {"<", TOKEN_LESS},
    {">", TOKEN_GREATER},
    {"?", TOKEN_QUESTION},
};

typedef struct Word {
    Slice text;
    TokenKind kind;
} Word;

static const Word KEYWORDS[] = {
#define KEYWORD(name) {SLICE_INIT(#name), TOKEN_##name},
#include "query/sql/keywords.def"
};

static const Word EXACT_WORDS[] = {
#define EXACT(name, text) {SLICE_INIT(text), TOKEN_##name},
#include "query/sql/keywords.def"
};

static void skip_space(Lexer *lexer);
static Token lex_word(Lexer *lexer);
static Token lex_parameter(Lexer *lexer);
static Token lex_number(Lexer *lexer);
static Token lex_string(Lexer *lexer);
static Token lex_symbol(Lexer *lexer);

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static int hex_digit(char c)
{
    if (is_digit(c))
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* The byte 'ahead' of the position, or 0 at the end; no token but a string holds a zero byte. */
static char peek(const Lexer *lexer, size_t ahead)
{
    size_t at = lexer->at + ahead;
    return at < lexer->text.len ? lexer->text.ptr[at] : '\0';
}

static bool at_letter(const Lexer *lexer)
{
    unsigned char c = (unsigned char)peek(lexer, 0);
    if (LIKELY(c < 0x80))
        return ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') || c == '_';
    size_t at = lexer->at;
    return text_is_letter(text_next(lexer->text, &at));
}

static Token token_from(const Lexer *lexer, uint32_t start, TokenKind kind)
{
    return (Token){.kind = kind, .span = {start, lexer->at}};
}

static Token bad_from(const Lexer *lexer, uint32_t start, BadToken bad)
{
    return (Token){.kind = TOKEN_BAD, .bad = bad, .span = {start, lexer->at}};
}

Token lexer_next(Lexer *lexer)
{
    if (++lexer->count % TOKENS_PER_LOOK == 0)
        (void)worker_yield(); /* a long text is read on a worker */
    skip_space(lexer);
    if (lexer->at >= lexer->text.len)
        return token_from(lexer, lexer->at, TOKEN_EOF);
    char c = peek(lexer, 0);
    if (at_letter(lexer))
        return lex_word(lexer);
    if (is_digit(c) || (c == '.' && is_digit(peek(lexer, 1))))
        return lex_number(lexer);
    if (c == '"' || c == '\'')
        return lex_string(lexer);
    if (c == '@')
        return lex_parameter(lexer);
    return lex_symbol(lexer);
}

static void skip_space(Lexer *lexer)
{
    while (lexer->at < lexer->text.len) {
        if (peek(lexer, 0) == '-' && peek(lexer, 1) == '-') {
            while (lexer->at < lexer->text.len && peek(lexer, 0) != '\n' && peek(lexer, 0) != '\r')
                lexer->at++;
            continue;
        }
        if (peek(lexer, 0) > ' ')
            return; /* as almost always */
        size_t at = lexer->at;
        if (!text_is_space(text_next(lexer->text, &at)))
            return;
        lexer->at = (uint32_t)at;
    }
}

static void skip_name(Lexer *lexer)
{
    while (at_letter(lexer) || is_digit(peek(lexer, 0))) {
        if ((unsigned char)peek(lexer, 0) < 0x80) {
            lexer->at++;
            continue;
        }
        size_t at = lexer->at;
        (void)text_next(lexer->text, &at);
        lexer->at = (uint32_t)at;
    }
}

static Token lex_word(Lexer *lexer)
{
    uint32_t start = lexer->at;
    skip_name(lexer);
    Slice word = slice_make(lexer->text.ptr + start, lexer->at - start);
    char first = (char)(word.ptr[0] | 0x20);
    for (size_t i = 0; i < ARRAY_COUNT(KEYWORDS); i++) {
        if (KEYWORDS[i].text.len == word.len && (KEYWORDS[i].text.ptr[0] | 0x20) == first &&
            slice_equal_nocase(KEYWORDS[i].text, word))
            return token_from(lexer, start, KEYWORDS[i].kind);
    }
    for (size_t i = 0; i < ARRAY_COUNT(EXACT_WORDS); i++) {
        if (slice_equal(EXACT_WORDS[i].text, word))
            return token_from(lexer, start, EXACT_WORDS[i].kind);
    }
    return token_from(lexer, start, TOKEN_IDENTIFIER);
}

static Token lex_parameter(Lexer *lexer)
{
    uint32_t start = lexer->at++;
    if (!at_letter(lexer))
        return bad_from(lexer, start, BAD_CHARACTER);
    skip_name(lexer);
    return token_from(lexer, start, TOKEN_PARAMETER);
}

static size_t skip_digits(Lexer *lexer)
{
    uint32_t start = lexer->at;
    while (is_digit(peek(lexer, 0)))
        lexer->at++;
    return lexer->at - start;
}

static bool lex_hexadecimal(Lexer *lexer)
{
    lexer->at += 2;
    size_t digits = 0;
    while (hex_digit(peek(lexer, 0)) >= 0) {
        lexer->at++;
        digits++;
    }
    return digits >= 1 && digits <= 16;
}

static bool lex_decimal(Lexer *lexer)
{
    skip_digits(lexer);
    if (peek(lexer, 0) == '.') {
        lexer->at++;
        skip_digits(lexer);
    }
    if (peek(lexer, 0) == 'e' || peek(lexer, 0) == 'E') {
        size_t sign = peek(lexer, 1) == '+' || peek(lexer, 1) == '-';
        if (!is_digit(peek(lexer, 1 + sign)))
            return false;
        lexer->at += (uint32_t)(1 + sign);
        skip_digits(lexer);
    }
    return true;
}

static Token lex_number(Lexer *lexer)
{
    uint32_t start = lexer->at;
    bool hexadecimal = peek(lexer, 0) == '0' && (peek(lexer, 1) == 'x' || peek(lexer, 1) == 'X');
    bool good = hexadecimal ? lex_hexadecimal(lexer) : lex_decimal(lexer);
    if (!at_letter(lexer))
        return good ? token_from(lexer, start, TOKEN_NUMBER) : bad_from(lexer, start, BAD_NUMBER);
    skip_name(lexer); /* all of "12ab" is the offending token */
    return bad_from(lexer, start, BAD_NUMBER);
}

/* The four hex digits 'ahead' of the position; -1 if they are not. */
static int32_t hex4(const Lexer *lexer, size_t ahead)
{
    int32_t value = 0;
    for (size_t i = 0; i < 4; i++) {
        int digit = hex_digit(peek(lexer, ahead + i));
        if (digit < 0)
            return -1;
        value = value << 4 | digit;
    }
    return value;
}

/* At a backslash; moves past the escape. False if it is a \u that stands for no character: JSON
 * strings are UTF-8 here, which has no place for half of a surrogate pair. */
static bool skip_escape(Lexer *lexer)
{
    if (peek(lexer, 1) != 'u') {
        lexer->at++;
        if (lexer->at >= lexer->text.len)
            return true; /* the missing end quote is found next */
        size_t at = lexer->at;
        (void)text_next(lexer->text, &at);
        lexer->at = (uint32_t)at;
        return true;
    }
    int32_t unit = hex4(lexer, 2);
    bool pair = unit >= 0xD800 && unit < 0xDC00;
    if (unit < 0 || (unit >= 0xDC00 && unit < 0xE000))
        return false;
    if (pair) {
        int32_t low = peek(lexer, 6) == '\\' && peek(lexer, 7) == 'u' ? hex4(lexer, 8) : -1;
        if (low < 0xDC00 || low >= 0xE000)
            return false;
    }
    lexer->at += pair ? 12 : 6;
    return true;
}

static Token lex_string(Lexer *lexer)
{
    uint32_t start = lexer->at;
    char quote = peek(lexer, 0);
    bool good = true;
    lexer->at++;
    while (lexer->at < lexer->text.len && peek(lexer, 0) != quote) {
        if (peek(lexer, 0) != '\\') {
            lexer->at++;
        } else if (!skip_escape(lexer)) {
            good = false;
            lexer->at++;
        }
    }
    if (lexer->at >= lexer->text.len)
        return bad_from(lexer, start, BAD_STRING);
    lexer->at++;
    return good ? token_from(lexer, start, TOKEN_STRING) : bad_from(lexer, start, BAD_STRING);
}

static Token lex_symbol(Lexer *lexer)
{
    uint32_t start = lexer->at;
    Slice rest = slice_from(lexer->text, start);
    for (size_t i = 0; i < ARRAY_COUNT(SYMBOLS); i++) {
        if (SYMBOLS[i].text[0] != rest.ptr[0])
            continue;
        Slice symbol = slice_from_cstr(SYMBOLS[i].text);
        if (slice_starts_with(rest, symbol)) {
            lexer->at += (uint32_t)symbol.len;
            return token_from(lexer, start, SYMBOLS[i].kind);
        }
    }
    size_t at = start;
    (void)text_next(lexer->text, &at);
    lexer->at = (uint32_t)at;
    return bad_from(lexer, start, BAD_CHARACTER);
}

static size_t decode_escape(Lexer *lexer, char *out)
{
    char c = peek(lexer, 1);
    if (c == 'u') {
        uint32_t unit = (uint32_t)hex4(lexer, 2);
        lexer->at += 6;
        if (unit >= 0xD800 && unit < 0xDC00) {
            unit = 0x10000 + ((unit - 0xD800) << 10 | ((uint32_t)hex4(lexer, 2) - 0xDC00));
            lexer->at += 6;
        }
        return text_put(out, unit);
    }
    static const char FROM[] = "bfnrt";
    static const char TO[] = "\b\f\n\r\t";
    const char *known = c == '\0' ? NULL : strchr(FROM, c);
    lexer->at += 2; /* of a longer character the other bytes follow as they are */
    out[0] = known != NULL ? TO[known - FROM] : c;
    return 1;
}

Slice lexer_string(Arena *arena, Slice token)
{
    Lexer inside = {.text = slice_make(token.ptr + 1, token.len - 2)};
    if (slice_find(inside.text, '\\') == inside.text.len)
        return inside.text;
    char *out = arena_alloc(arena, inside.text.len); /* no escape grows */
    size_t len = 0;
    while (inside.at < inside.text.len) {
        if (peek(&inside, 0) == '\\')
            len += decode_escape(&inside, out + len);
        else
            out[len++] = inside.text.ptr[inside.at++];
    }
    return slice_make(out, len);
}

double lexer_number(Slice token, bool *is_integer, uint64_t *integer)
{
    if (token.len > 2 && (token.ptr[1] == 'x' || token.ptr[1] == 'X')) {
        uint64_t value = 0;
        for (size_t i = 2; i < token.len; i++)
            value = value << 4 | (uint64_t)hex_digit(token.ptr[i]);
        *is_integer = true;
        *integer = value;
        return (double)(int64_t)value;
    }
    *is_integer = slice_to_u64(token, integer);
    double number;
    return json_number_from_text(token, &number) ? number : (double)INFINITY;
}
