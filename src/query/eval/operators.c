/* operators.c - see operators_int.h. */
#include "query/eval/operators_int.h"

#include <math.h>

/* A number as the bitwise operators see it: 32 bits, whatever is above them cut off. */
static uint32_t to_bits(const Value *value)
{
    double number = value->number;
    if (!isfinite(number))
        return 0;
    number = fmod(trunc(number), 0x1p32);
    return (uint32_t)(int64_t)number;
}

Value operator_not(const Value *operand)
{
    return operand->type == JSON_BOOL ? value_bool(!operand->boolean) : VALUE_UNDEFINED;
}

Value operator_and(const Value *left, const Value *right)
{
    bool left_false = left->type == JSON_BOOL && !left->boolean;
    bool right_false = right->type == JSON_BOOL && !right->boolean;
    if (left_false || right_false)
        return value_bool(false);
    return value_is_true(left) && value_is_true(right) ? value_bool(true) : VALUE_UNDEFINED;
}

Value operator_or(const Value *left, const Value *right)
{
    if (value_is_true(left) || value_is_true(right))
        return value_bool(true);
    bool both = left->type == JSON_BOOL && right->type == JSON_BOOL;
    return both ? value_bool(false) : VALUE_UNDEFINED;
}

Status operator_unary(UnaryOp op, const Value *operand, Value *out)
{
    *out = VALUE_UNDEFINED;
    if (op == UNARY_NOT) {
        *out = operator_not(operand);
        return STATUS_OK;
    }
    if (operand->type != JSON_NUMBER)
        return STATUS_OK;
    switch (op) {
    case UNARY_MINUS:
        *out = value_number(-operand->number);
        break;
    case UNARY_PLUS:
        *out = *operand;
        break;
    case UNARY_BITNOT:
        *out = value_integer((int32_t)~to_bits(operand));
        break;
    case UNARY_NOT:
        break;
    }
    return STATUS_OK;
}

static double arithmetic(BinaryOp op, double a, double b)
{
    switch ((int)op) {
    case BINARY_MULTIPLY:
        return a * b;
    case BINARY_DIVIDE:
        return a / b;
    case BINARY_MODULO:
        return fmod(a, b);
    case BINARY_ADD:
        return a + b;
    default:
        return a - b;
    }
}

static int64_t bitwise(BinaryOp op, uint32_t a, uint32_t b)
{
    switch ((int)op) {
    case BINARY_BITAND:
        return (int32_t)(a & b);
    case BINARY_BITOR:
        return (int32_t)(a | b);
    case BINARY_BITXOR:
        return (int32_t)(a ^ b);
    case BINARY_SHIFT_LEFT:
        return (int32_t)(a << (b & 31));
    case BINARY_SHIFT_RIGHT:
        return (int32_t)a >> (b & 31);
    default:
        return a >> (b & 31);
    }
}

static bool holds(BinaryOp op, int order)
{
    switch ((int)op) {
    case BINARY_LESS:
        return order < 0;
    case BINARY_LESS_EQUAL:
        return order <= 0;
    case BINARY_GREATER:
        return order > 0;
    default:
        return order >= 0;
    }
}

/* Defined for two values of one scalar type. */
static Status compare(Run *run, BinaryOp op, const Value *left, const Value *right, Value *out)
{
    if (left->type != right->type || left->type == JSON_UNDEFINED || left->type > JSON_STRING)
        return STATUS_OK;
    if (left->type == JSON_STRING)
        TRY(run_charge_bytes(run, left->string.len));
    bool unordered = left->type == JSON_NUMBER && (isnan(left->number) || isnan(right->number));
    *out = value_bool(!unordered && holds(op, value_compare(left, right)));
    return STATUS_OK;
}

static Status concatenate(Run *run, const Value *left, const Value *right, Value *out)
{
    if (left->type != JSON_STRING || right->type != JSON_STRING)
        return STATUS_OK;
    void *memory;
    TRY(run_alloc(run, left->string.len + right->string.len, &memory));
    Buf joined = {.ptr = memory, .capacity = left->string.len + right->string.len};
    buf_slice(&joined, left->string);
    buf_slice(&joined, right->string);
    *out = value_string(buf_view(&joined));
    return STATUS_OK;
}

Status operator_equal(Run *run, const Value *left, const Value *right, Value *out)
{
    *out = VALUE_UNDEFINED;
    if (!value_defined(left) || !value_defined(right))
        return STATUS_OK;
    if (left->type == right->type)
        TRY(run_charge_value(run, left));
    *out = value_bool(value_equal(left, right));
    return STATUS_OK;
}

Status operator_binary(Run *run, BinaryOp op, const Value *left, const Value *right, Value *out)
{
    *out = VALUE_UNDEFINED;
    bool numbers = left->type == JSON_NUMBER && right->type == JSON_NUMBER;
    switch (op) {
    case BINARY_MULTIPLY:
    case BINARY_DIVIDE:
    case BINARY_MODULO:
    case BINARY_ADD:
    case BINARY_SUBTRACT:
        if (numbers)
            *out = value_number(arithmetic(op, left->number, right->number));
        return STATUS_OK;
    case BINARY_BITAND:
    case BINARY_BITOR:
    case BINARY_BITXOR:
    case BINARY_SHIFT_LEFT:
    case BINARY_SHIFT_RIGHT:
    case BINARY_SHIFT_RIGHT_ZERO:
        if (numbers)
            *out = value_integer(bitwise(op, to_bits(left), to_bits(right)));
        return STATUS_OK;
    case BINARY_CONCAT:
        return concatenate(run, left, right, out);
    case BINARY_EQUAL:
        return operator_equal(run, left, right, out);
    case BINARY_NOT_EQUAL:
        TRY(operator_equal(run, left, right, out));
        *out = operator_not(out);
        return STATUS_OK;
    case BINARY_LESS:
    case BINARY_LESS_EQUAL:
    case BINARY_GREATER:
    case BINARY_GREATER_EQUAL:
        return compare(run, op, left, right, out);
    }
    return STATUS_OK;
}
