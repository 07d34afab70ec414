/* query_shape.c - see query_shape.h. Works on tokens: a tree has lost which spelling it came from,
 * and costs more than a text that is looked at once. */
#include "query/sql/query_shape.h"

#include "query/sql/lexer_int.h"

enum {
    NAMES_MAX = 64, /* parameters that are recognised when they come again */
};

typedef struct Shape {
    Lexer lexer;
    Json parameters;
    Buf *out;
    TokenKind last;         /* TOKEN_EOF before the first */
    bool was_operand;       /* the last token ended an operand */
    bool was_operand_first; /* the one before it did */
    uint32_t number;        /* of the last parameter that was made */
    Slice names[NAMES_MAX];
    uint32_t numbers[NAMES_MAX];
    size_t name_count;
} Shape;

static Slice text_of(const Shape *s, const Token *token)
{
    return slice_make(s->lexer.text.ptr + token->span.start, token->span.end - token->span.start);
}

/* The token after the one that was read last. */
static Token look(const Shape *s)
{
    Lexer ahead = s->lexer;
    return lexer_next(&ahead);
}

static bool is_exact_word(TokenKind kind)
{
    return kind == TOKEN_TRUE || kind == TOKEN_FALSE || kind == TOKEN_NULL_ ||
           kind == TOKEN_UNDEFINED || kind == TOKEN_NAN_ || kind == TOKEN_INFINITY_;
}

static bool is_value(TokenKind kind)
{
    return kind == TOKEN_NUMBER || kind == TOKEN_STRING || kind == TOKEN_PARAMETER;
}

static bool ends_operand(TokenKind kind)
{
    return kind == TOKEN_IDENTIFIER || is_value(kind) || is_exact_word(kind) ||
           kind == TOKEN_RIGHT_PAREN || kind == TOKEN_RIGHT_BRACKET || kind == TOKEN_RIGHT_BRACE;
}

/* ---- spaces ---- */

static bool opens(TokenKind kind)
{
    return kind == TOKEN_LEFT_PAREN || kind == TOKEN_LEFT_BRACKET || kind == TOKEN_LEFT_BRACE ||
           kind == TOKEN_DOT;
}

static bool needs_gap(const Shape *s, TokenKind kind)
{
    if (s->last == TOKEN_EOF || opens(s->last))
        return false;
    switch (kind) {
    case TOKEN_RIGHT_PAREN:
    case TOKEN_RIGHT_BRACKET:
    case TOKEN_RIGHT_BRACE:
    case TOKEN_COMMA:
    case TOKEN_COLON:
    case TOKEN_DOT:
        return false;
    case TOKEN_LEFT_PAREN:
        return s->last != TOKEN_IDENTIFIER && s->last != TOKEN_ARRAY && s->last != TOKEN_EXISTS;
    case TOKEN_LEFT_BRACKET:
        return !s->was_operand;
    default:
        return true;
    }
}

static void put(Shape *s, TokenKind kind, Slice text)
{
    if (needs_gap(s, kind))
        buf_byte(s->out, ' ');
    buf_slice(s->out, text);
    s->last = kind;
    s->was_operand_first = s->was_operand;
    s->was_operand = ends_operand(kind);
}

/* ---- values ---- */

static char letter_of(JsonType type)
{
    switch (type) {
    case JSON_STRING:
        return 's';
    case JSON_NUMBER:
        return 'n';
    case JSON_BOOL:
        return 'b';
    case JSON_ARRAY:
        return 'a';
    case JSON_OBJECT:
        return 'o';
    case JSON_UNDEFINED:
    case JSON_NULL:
        break;
    }
    return 'x';
}

static char letter_of_parameter(const Shape *s, Slice name)
{
    JsonIter it = json_iter(s->parameters);
    while (json_next(&it)) {
        Json given = json_get(it.value, SLICE("name"));
        if (json_is(given, JSON_STRING) && slice_equal(json_string(given), name))
            return letter_of(json_type(json_get(it.value, SLICE("value"))));
    }
    return 'x';
}

/* The number that stands for a parameter: the same each time it is named. */
static uint32_t number_of(Shape *s, Slice name)
{
    for (size_t i = 0; i < s->name_count; i++) {
        if (slice_equal(s->names[i], name))
            return s->numbers[i];
    }
    if (s->name_count < NAMES_MAX) {
        s->names[s->name_count] = name;
        s->numbers[s->name_count++] = s->number + 1;
    }
    return ++s->number;
}

static void put_parameter(Shape *s, char letter, uint32_t number)
{
    put(s, TOKEN_PARAMETER, SLICE("@"));
    buf_byte(s->out, (uint8_t)letter);
    buf_u64(s->out, number);
}

static void put_value(Shape *s, const Token *token)
{
    if (token->kind == TOKEN_PARAMETER) {
        Slice name = text_of(s, token);
        put_parameter(s, letter_of_parameter(s, name), number_of(s, name));
        return;
    }
    put_parameter(s, token->kind == TOKEN_STRING ? 's' : 'n', ++s->number);
}

/* ---- lists of constants ---- */

/* Reads a constant with its sign, if it is one; false otherwise. */
static bool take_constant(Lexer *lexer, Token *out)
{
    Token token = lexer_next(lexer);
    if (token.kind == TOKEN_MINUS || token.kind == TOKEN_PLUS) {
        token = lexer_next(lexer);
        if (token.kind != TOKEN_NUMBER)
            return false;
    }
    *out = token;
    return is_value(token.kind) || is_exact_word(token.kind);
}

static uint32_t next_power(uint32_t count)
{
    uint32_t power = 1;
    while (power < count && power < QUERY_SHAPE_LIST_MAX)
        power *= 2;
    return power;
}

static void put_constant(Shape *s, const Token *token)
{
    if (is_exact_word(token->kind))
        put(s, token->kind, text_of(s, token));
    else
        put_value(s, token);
}

/* After the opening bracket of a list: writes it whole and moves past its end, if it has nothing
 * but constants. */
static bool put_list(Shape *s, TokenKind end)
{
    Lexer ahead = s->lexer;
    Token token = {0};
    uint32_t count = 0;
    do {
        if (!take_constant(&ahead, &token))
            return false;
        count++;
        token = lexer_next(&ahead);
    } while (token.kind == TOKEN_COMMA);
    if (token.kind != end || count < 2)
        return false;
    Slice close = text_of(s, &token);
    Token value = {0};
    uint32_t total = next_power(count);
    for (uint32_t i = 0; i < total; i++) {
        if (i > 0)
            put(s, TOKEN_COMMA, SLICE(","));
        if (i < count) {
            (void)take_constant(&s->lexer, &value); /* as before */
            (void)lexer_next(&s->lexer);
        }
        put_constant(s, &value);
    }
    s->lexer = ahead;
    put(s, end, close);
    return true;
}

/* ---- tokens ---- */

/* Whether a string is a name: ["name"] after an operand, {"name": ...}, AS "name". */
static bool is_name(const Shape *s)
{
    TokenKind next = look(s).kind;
    if (s->last == TOKEN_LEFT_BRACKET)
        return s->was_operand_first && next == TOKEN_RIGHT_BRACKET;
    if (s->last == TOKEN_LEFT_BRACE || s->last == TOKEN_COMMA)
        return next == TOKEN_COLON;
    return s->last == TOKEN_AS || s->was_operand;
}

static void put_string(Shape *s, const Token *token)
{
    if (s->last == TOKEN_ESCAPE)
        put(s, TOKEN_STRING, SLICE("\"!\""));
    else if (is_name(s))
        put(s, TOKEN_STRING, text_of(s, token));
    else
        put_value(s, token);
}

static void put_number(Shape *s, const Token *token)
{
    if (s->last == TOKEN_TOP || s->last == TOKEN_LIMIT)
        put(s, TOKEN_NUMBER, text_of(s, token));
    else if (s->last == TOKEN_LEFT_BRACKET && s->was_operand_first)
        put(s, TOKEN_NUMBER, SLICE("0")); /* which element does not matter to any index */
    else
        put_value(s, token);
}

/* A sign belongs to the number after it, unless it subtracts. */
static bool is_sign(const Shape *s, TokenKind kind)
{
    return (kind == TOKEN_MINUS || kind == TOKEN_PLUS) && !s->was_operand &&
           look(s).kind == TOKEN_NUMBER;
}

static void put_word(Shape *s, const Token *token)
{
    char upper[16];
    Slice text = text_of(s, token);
    bool is_keyword = token->kind >= TOKEN_AND && token->kind <= TOKEN_WITH;
    if (!is_keyword || text.len > sizeof(upper)) {
        put(s, token->kind, text);
        return;
    }
    for (size_t i = 0; i < text.len; i++)
        upper[i] = text.ptr[i] >= 'a' && text.ptr[i] <= 'z' ? (char)(text.ptr[i] - 'a' + 'A')
                                                            : text.ptr[i];
    put(s, token->kind, slice_make(upper, text.len));
}

static void put_token(Shape *s, const Token *token)
{
    bool is_in = s->last == TOKEN_IN;
    bool is_step = s->was_operand; /* c.tags[...], not an array */
    switch (token->kind) {
    case TOKEN_STRING:
        put_string(s, token);
        return;
    case TOKEN_NUMBER:
        put_number(s, token);
        return;
    case TOKEN_PARAMETER:
        put_value(s, token);
        return;
    case TOKEN_LEFT_PAREN:
        put(s, token->kind, SLICE("("));
        if (is_in)
            (void)put_list(s, TOKEN_RIGHT_PAREN); /* what else it holds follows token by token */
        return;
    case TOKEN_LEFT_BRACKET:
        put(s, token->kind, SLICE("["));
        if (!is_step)
            (void)put_list(s, TOKEN_RIGHT_BRACKET);
        return;
    default:
        put_word(s, token);
        return;
    }
}

bool query_shape(Slice text, Json parameters, Buf *out)
{
    if (text.len > QUERY_SHAPE_TEXT_MAX)
        return false;
    Shape s = {.lexer = {.text = text}, .parameters = parameters, .out = out, .last = TOKEN_EOF};
    for (;;) {
        Token token = lexer_next(&s.lexer);
        if (token.kind == TOKEN_EOF)
            return !buf_full(out);
        if (token.kind == TOKEN_BAD || buf_full(out))
            return false;
        if (!is_sign(&s, token.kind))
            put_token(&s, &token);
    }
}
