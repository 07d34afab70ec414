/* operators_int.h - what operators give for values, undefined included. */
#pragma once

#include "query/eval/query_run_int.h"
#include "query/sql/ast_int.h"

MUST_USE Status operator_unary(UnaryOp op, const Value *operand, Value *out);
MUST_USE Status operator_binary(Run *run, BinaryOp op, const Value *left, const Value *right,
                                Value *out);

/* '=': undefined if one side is, otherwise whether they are deeply equal. */
MUST_USE Status operator_equal(Run *run, const Value *left, const Value *right, Value *out);

/* AND and OR over three values, in which everything that is not boolean is undefined. */
Value operator_and(const Value *left, const Value *right);
Value operator_or(const Value *left, const Value *right);
Value operator_not(const Value *operand);
