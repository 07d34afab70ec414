/* number.c - numbers as text, in the way of JavaScript: see json.h.
 *
 * The C++ library finds the shortest digits; where the point goes and when an exponent is used is
 * what ECMAScript's Number::toString says, in terms of the digits and of the power of ten 'n' for
 * which the value is 0.digits * 10^n.
 */
#include "json/format_int.h"
#include "json/simdjson_int.h"

#include <math.h>

/* Integers up to here are doubles exactly, and print with all their digits. */
#define INTEGER_EXACT_MAX ((int64_t)1 << 53)

enum { DIGITS_MAX = 17, NUMBER_TEXT_MAX = 40 };

typedef struct Decimal {
    bool negative;
    int count; /* of digits */
    int n;
    char digits[DIGITS_MAX];
} Decimal;

/* Most fractions that people write have few digits, and finding them is cheap: if a number of at
 * most fifteen digits, divided by a power of ten, gives the double back, it is the only one of that
 * length that does, and so what the long way would find. */
static bool short_decimal(double number, Decimal *out)
{
    const double scale = 1e7;
    const double digits_max = 1e15;
    double scaled = fabs(number) * scale;
    if (!(scaled < digits_max))
        return false;
    uint64_t integer = (uint64_t)(scaled + 0.5);
    if (integer == 0 || (double)integer / scale != fabs(number))
        return false;
    Decimal d = {.negative = number < 0};
    char reversed[20];
    int count = 0;
    for (; integer > 0; integer /= 10)
        reversed[count++] = (char)('0' + integer % 10);
    int zeros = 0;
    while (reversed[zeros] == '0')
        zeros++;
    d.count = count - zeros;
    d.n = count - 7;
    for (int i = 0; i < d.count; i++)
        d.digits[i] = reversed[count - 1 - i];
    *out = d;
    return true;
}

/* Takes apart "-d.ddde-xx". */
static Decimal shortest_decimal(double number)
{
    char text[DOUBLE_TEXT_MAX];
    size_t len = double_to_text(number, text);
    Decimal d = {0};
    size_t at = 0;
    if (text[at] == '-') {
        d.negative = true;
        at++;
    }
    for (; text[at] != 'e'; at++) {
        if (text[at] != '.')
            d.digits[d.count++] = text[at];
    }
    bool negative_exponent = text[++at] == '-';
    int exponent = 0;
    while (++at < len)
        exponent = 10 * exponent + (text[at] - '0');
    d.n = (negative_exponent ? -exponent : exponent) + 1;
    return d;
}

static char *put(char *out, const char *text, int len)
{
    memcpy(out, text, (size_t)len);
    return out + len;
}

static char *put_zeros(char *out, int count)
{
    memset(out, '0', (size_t)count);
    return out + count;
}

static char *put_exponent(char *out, const Decimal *d)
{
    int exponent = d->n - 1;
    out = put(out, d->digits, 1);
    if (d->count > 1) {
        *out++ = '.';
        out = put(out, d->digits + 1, d->count - 1);
    }
    *out++ = 'e';
    *out++ = exponent < 0 ? '-' : '+';
    exponent = exponent < 0 ? -exponent : exponent;
    if (exponent >= 100)
        *out++ = (char)('0' + exponent / 100);
    if (exponent >= 10)
        *out++ = (char)('0' + exponent / 10 % 10);
    *out++ = (char)('0' + exponent % 10);
    return out;
}

static char *put_decimal(char *out, const Decimal *d)
{
    if (d->negative)
        *out++ = '-';
    if (d->count <= d->n && d->n <= 21) {
        out = put(out, d->digits, d->count);
        return put_zeros(out, d->n - d->count);
    }
    if (0 < d->n && d->n <= 21) {
        out = put(out, d->digits, d->n);
        *out++ = '.';
        return put(out, d->digits + d->n, d->count - d->n);
    }
    if (-6 < d->n && d->n <= 0) {
        out = put(out, "0.", 2);
        out = put_zeros(out, -d->n);
        return put(out, d->digits, d->count);
    }
    return put_exponent(out, d);
}

void json_print_number(double number, Buf *out)
{
    if (!isfinite(number)) {
        buf_slice(out, SLICE("null"));
        return;
    }
    if (fabs(number) <= (double)INTEGER_EXACT_MAX && number == (double)(int64_t)number) {
        buf_i64(out, (int64_t)number);
        return;
    }
    Decimal decimal;
    if (!short_decimal(number, &decimal))
        decimal = shortest_decimal(number);
    char text[NUMBER_TEXT_MAX];
    buf_bytes(out, text, (size_t)(put_decimal(text, &decimal) - text));
}

static size_t skip_digits(Slice text, size_t at)
{
    while (at < text.len && text.ptr[at] >= '0' && text.ptr[at] <= '9')
        at++;
    return at;
}

/* Where the parts of a number begin and end; all of the text belongs to one of them. */
typedef struct NumberText {
    size_t whole, whole_end;       /* digits before the point */
    size_t fraction, fraction_end; /* digits after it */
    size_t exponent;               /* its sign or first digit; the end if there is none */
} NumberText;

static bool split_number(Slice text, NumberText *out)
{
    NumberText n = {0};
    n.whole = text.len > 0 && text.ptr[0] == '-';
    n.whole_end = n.fraction = n.fraction_end = skip_digits(text, n.whole);
    if (n.whole_end < text.len && text.ptr[n.whole_end] == '.') {
        n.fraction = n.whole_end + 1;
        n.fraction_end = skip_digits(text, n.fraction);
    }
    if (n.whole == n.whole_end && n.fraction == n.fraction_end)
        return false;
    size_t at = n.fraction_end;
    if (at < text.len && (text.ptr[at] == 'e' || text.ptr[at] == 'E')) {
        n.exponent = ++at;
        if (at < text.len && (text.ptr[at] == '+' || text.ptr[at] == '-'))
            at++;
        size_t end = skip_digits(text, at);
        if (end == at)
            return false;
        at = end;
    } else {
        n.exponent = at;
    }
    *out = n;
    return at == text.len;
}

/* The exponent as a number, cut to what is far beyond the length of any text. */
static int64_t exponent_value(Slice text, const NumberText *n)
{
    if (n->exponent == text.len)
        return 0;
    int64_t value = 0;
    for (size_t i = n->exponent; i < text.len; i++) {
        if (text.ptr[i] >= '0' && text.ptr[i] <= '9' && value < INT64_C(1) << 40)
            value = 10 * value + (text.ptr[i] - '0');
    }
    return text.ptr[n->exponent] == '-' ? -value : value;
}

static size_t skip_zeros(Slice text, size_t at, size_t end)
{
    while (at < end && text.ptr[at] == '0')
        at++;
    return at;
}

/* Of a number that is out of the range of a double: whether it is on the large side. */
static bool is_above_one(Slice text, const NumberText *n)
{
    size_t first = skip_zeros(text, n->whole, n->whole_end);
    int64_t power = (int64_t)(n->whole_end - first);
    if (power == 0)
        power = (int64_t)n->fraction - (int64_t)skip_zeros(text, n->fraction, n->fraction_end);
    return power + exponent_value(text, n) > 0;
}

bool json_number_from_text(Slice text, double *out)
{
    NumberText parts;
    if (!split_number(text, &parts))
        return false;
    double value = 0;
    switch (double_from_text(text.ptr, text.len, &value)) {
    case DOUBLE_OK:
        *out = value;
        return true;
    case DOUBLE_OUT_OF_RANGE:
        if (is_above_one(text, &parts))
            return false;
        *out = text.ptr[0] == '-' ? -0.0 : 0.0;
        return true;
    case DOUBLE_MALFORMED:
        break;
    }
    return false;
}
