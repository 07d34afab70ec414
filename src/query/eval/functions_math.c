/* functions_math.c - numbers: doubles as the C library has them, and 64-bit integers. */
#include "query/eval/call_int.h"

#include <math.h>

double math_cot(double x)
{
    return 1 / tan(x);
}

double math_degrees(double x)
{
    return x * (180 / M_PI);
}

double math_radians(double x)
{
    return x * (M_PI / 180);
}

double math_sign(double x)
{
    return isnan(x) ? x : (double)((x > 0) - (x < 0));
}

double math_square(double x)
{
    return x * x;
}

static bool are_numbers(const Value *args, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (args[i].type != JSON_NUMBER)
            return false;
    }
    return true;
}

Status function_atn2(Run *run UNUSED, const Value *args, uint32_t count, Value *out)
{
    if (are_numbers(args, count))
        *out = value_number(atan2(args[0].number, args[1].number));
    return STATUS_OK;
}

Status function_log(Run *run UNUSED, const Value *args, uint32_t count, Value *out)
{
    if (!are_numbers(args, count))
        return STATUS_OK;
    double x = args[0].number;
    if (count == 1)
        *out = value_number(log(x));
    else if (args[1].number == 10) /* powers of 10 give integers, which the quotient may miss */
        *out = value_number(log10(x));
    else
        *out = value_number(log(x) / log(args[1].number));
    return STATUS_OK;
}

Status function_numberbin(Run *run UNUSED, const Value *args, uint32_t count, Value *out)
{
    if (!are_numbers(args, count))
        return STATUS_OK;
    double size = count == 1 ? 1 : args[1].number;
    if (size != 0)
        *out = value_number(floor(args[0].number / size) * size);
    return STATUS_OK;
}

Status function_pi(Run *run UNUSED, const Value *args UNUSED, uint32_t count UNUSED, Value *out)
{
    *out = value_number(M_PI);
    return STATUS_OK;
}

Status function_power(Run *run UNUSED, const Value *args, uint32_t count, Value *out)
{
    if (are_numbers(args, count))
        *out = value_number(pow(args[0].number, args[1].number));
    return STATUS_OK;
}

Status function_rand(Run *run, const Value *args UNUSED, uint32_t count UNUSED, Value *out)
{
    *out = value_number((double)(random_u64(run_random(run)) >> 11) * 0x1p-53);
    return STATUS_OK;
}

/* Both arguments as integers of 64 bits; what is none makes the result undefined, and so does an
 * overflow. */
static bool are_integers(const Value *args, int64_t *a, int64_t *b)
{
    return value_to_i64(&args[0], a) && value_to_i64(&args[1], b);
}

Status function_intadd(Run *run UNUSED, const Value *args, uint32_t count UNUSED, Value *out)
{
    int64_t a, b, result;
    if (are_integers(args, &a, &b) && !__builtin_add_overflow(a, b, &result))
        *out = value_integer(result);
    return STATUS_OK;
}

Status function_intsub(Run *run UNUSED, const Value *args, uint32_t count UNUSED, Value *out)
{
    int64_t a, b, result;
    if (are_integers(args, &a, &b) && !__builtin_sub_overflow(a, b, &result))
        *out = value_integer(result);
    return STATUS_OK;
}

Status function_intmul(Run *run UNUSED, const Value *args, uint32_t count UNUSED, Value *out)
{
    int64_t a, b, result;
    if (are_integers(args, &a, &b) && !__builtin_mul_overflow(a, b, &result))
        *out = value_integer(result);
    return STATUS_OK;
}

Status function_intdiv(Run *run UNUSED, const Value *args, uint32_t count UNUSED, Value *out)
{
    int64_t a, b;
    if (are_integers(args, &a, &b) && b != 0 && !(a == INT64_MIN && b == -1))
        *out = value_integer(a / b);
    return STATUS_OK;
}

Status function_intmod(Run *run UNUSED, const Value *args, uint32_t count UNUSED, Value *out)
{
    int64_t a, b;
    if (are_integers(args, &a, &b) && b != 0)
        *out = value_integer(b == -1 ? 0 : a % b); /* the smallest by -1 would trap */
    return STATUS_OK;
}

Status function_intbitand(Run *run UNUSED, const Value *args, uint32_t count UNUSED, Value *out)
{
    int64_t a, b;
    if (are_integers(args, &a, &b))
        *out = value_integer(a & b);
    return STATUS_OK;
}

Status function_intbitor(Run *run UNUSED, const Value *args, uint32_t count UNUSED, Value *out)
{
    int64_t a, b;
    if (are_integers(args, &a, &b))
        *out = value_integer(a | b);
    return STATUS_OK;
}

Status function_intbitxor(Run *run UNUSED, const Value *args, uint32_t count UNUSED, Value *out)
{
    int64_t a, b;
    if (are_integers(args, &a, &b))
        *out = value_integer(a ^ b);
    return STATUS_OK;
}

Status function_intbitnot(Run *run UNUSED, const Value *args, uint32_t count UNUSED, Value *out)
{
    int64_t a;
    if (value_to_i64(&args[0], &a))
        *out = value_integer(~a);
    return STATUS_OK;
}

/* Shifts take the count modulo 64, as the operators take theirs modulo 32. */
Status function_intbitleftshift(Run *run UNUSED, const Value *args, uint32_t count UNUSED,
                                Value *out)
{
    int64_t a, b;
    if (are_integers(args, &a, &b))
        *out = value_integer((int64_t)((uint64_t)a << (b & 63)));
    return STATUS_OK;
}

Status function_intbitrightshift(Run *run UNUSED, const Value *args, uint32_t count UNUSED,
                                 Value *out)
{
    int64_t a, b;
    if (are_integers(args, &a, &b))
        *out = value_integer(a >> (b & 63));
    return STATUS_OK;
}
