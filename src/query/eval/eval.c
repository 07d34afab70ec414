/* eval.c - see eval_int.h.
 *
 * eval() calls itself for every level of an expression, so what it needs of the C stack counts
 * QUERY_DEPTH_MAX times. Hence NOT_INLINE: the locals of one kind of node must not become part of
 * the frame of all the others. And hence no JsonBuilder here, which is large: parts are evaluated
 * first, and run_array() and build_object() put them together after the recursion.
 */
#include "query/eval/eval_int.h"

#include "query/eval/call_int.h"
#include "query/eval/like_int.h"
#include "query/eval/operators_int.h"

#include <math.h>

#define NOT_INLINE __attribute__((noinline))

enum { ARGS_FEW = 3 }; /* more than that are evaluated into the scratch arena */

static Status eval_path(Run *run, const Node *node, Value *out);
static Status eval_unary(Run *run, const Node *node, Value *out);
static Status eval_chain(Run *run, const Node *node, Value *out);
static Status eval_logic(Run *run, const Node *node, Value *out);
static Status eval_coalesce(Run *run, const Node *node, Value *out);
static Status eval_conditional(Run *run, const Node *node, Value *out);
static Status eval_between(Run *run, const Node *node, Value *out);
static Status eval_in(Run *run, const Node *node, Value *out);
static Status eval_like(Run *run, const Node *node, Value *out);
static Status eval_array(Run *run, const Node *node, Value *out);
static Status eval_object(Run *run, const Node *node, Value *out);
static Status eval_call(Run *run, const Node *node, Value *out);
static Status eval_user_call(Run *run, const Node *node, Value *out);

Status eval(Run *run, const Node *node, Value *out)
{
    TRY(run_charge(run, 1));
    switch (node->kind) {
    case NODE_LITERAL:
        *out = node->literal;
        return STATUS_OK;
    case NODE_PARAMETER:
        *out = node->parameter.value;
        return STATUS_OK;
    case NODE_NAME:
        *out = run->slots[node->name.slot];
        return STATUS_OK;
    case NODE_SLOT:
        *out = run->slots[node->slot];
        return STATUS_OK;
    case NODE_PATH:
        return eval_path(run, node, out);
    case NODE_UNARY:
        return eval_unary(run, node, out);
    case NODE_CHAIN:
        return eval_chain(run, node, out);
    case NODE_AND:
    case NODE_OR:
        return eval_logic(run, node, out);
    case NODE_COALESCE:
        return eval_coalesce(run, node, out);
    case NODE_CONDITIONAL:
        return eval_conditional(run, node, out);
    case NODE_BETWEEN:
        return eval_between(run, node, out);
    case NODE_IN:
        return eval_in(run, node, out);
    case NODE_LIKE:
        return eval_like(run, node, out);
    case NODE_ARRAY:
        return eval_array(run, node, out);
    case NODE_OBJECT:
        return eval_object(run, node, out);
    case NODE_CALL:
        return eval_call(run, node, out);
    case NODE_UDF:
        return eval_user_call(run, node, out);
    case NODE_SUBQUERY:
        return select_subquery(run, node, out);
    }
    return STATUS_OK;
}

static Value get_index(const Value *value, const Value *index)
{
    int64_t position;
    if (index->type == JSON_STRING)
        return value->type == JSON_OBJECT
                   ? value_of(json_get(value->json, index->string), value->stable)
                   : VALUE_UNDEFINED;
    if (value->type != JSON_ARRAY || !value_to_i64(index, &position) || position < 0)
        return VALUE_UNDEFINED;
    return value_of(json_at(value->json, (size_t)position), value->stable);
}

static NOT_INLINE Status eval_path(Run *run, const Node *node, Value *out)
{
    Value value;
    TRY(eval(run, node->path.base, &value));
    for (const Step *step = node->path.first; step != NULL; step = step->next) {
        if (value.type < JSON_ARRAY) {
            value = VALUE_UNDEFINED;
            break;
        }
        TRY(run_charge(run, 1 + json_count(value.json) / 32));
        if (step->index == NULL) {
            value = value_of(json_get(value.json, step->name), value.stable);
            continue;
        }
        Value index;
        TRY(eval(run, step->index, &index));
        value = get_index(&value, &index);
    }
    *out = value;
    return STATUS_OK;
}

static NOT_INLINE Status eval_unary(Run *run, const Node *node, Value *out)
{
    Value operand;
    TRY(eval(run, node->unary.operand, &operand));
    return operator_unary(node->unary.op, &operand, out);
}

static NOT_INLINE Status eval_chain(Run *run, const Node *node, Value *out)
{
    Value right;
    TRY(eval(run, node->chain.first, out));
    for (const Link *link = node->chain.links; link != NULL; link = link->next) {
        Value left = *out;
        TRY(eval(run, link->right, &right));
        TRY(operator_binary(run, link->op, &left, &right, out));
    }
    return STATUS_OK;
}

static NOT_INLINE Status eval_logic(Run *run, const Node *node, Value *out)
{
    bool is_and = node->kind == NODE_AND;
    Value result = value_bool(is_and); /* of no operands at all */
    for (const Node *item = node->list.first; item != NULL; item = item->next) {
        Value operand;
        TRY(eval(run, item, &operand));
        result = is_and ? operator_and(&result, &operand) : operator_or(&result, &operand);
        if (result.type == JSON_BOOL && result.boolean != is_and)
            break; /* nothing that follows can change it */
    }
    *out = result;
    return STATUS_OK;
}

static NOT_INLINE Status eval_coalesce(Run *run, const Node *node, Value *out)
{
    for (const Node *item = node->list.first; item != NULL; item = item->next) {
        TRY(eval(run, item, out));
        if (value_defined(out))
            break;
    }
    return STATUS_OK;
}

static NOT_INLINE Status eval_conditional(Run *run, const Node *node, Value *out)
{
    const Node *item = node->list.first;
    for (; item->next != NULL; item = item->next->next) {
        TRY(eval(run, item, out));
        if (value_is_true(out))
            return eval(run, item->next, out);
    }
    return eval(run, item, out);
}

static NOT_INLINE Status eval_between(Run *run, const Node *node, Value *out)
{
    Value value, low, high;
    TRY(eval(run, node->between.value, &value));
    TRY(eval(run, node->between.low, &low));
    TRY(eval(run, node->between.high, &high));
    Value above, below;
    TRY(operator_binary(run, BINARY_GREATER_EQUAL, &value, &low, &above));
    TRY(operator_binary(run, BINARY_LESS_EQUAL, &value, &high, &below));
    Value inside = operator_and(&above, &below);
    *out = node->negated ? operator_not(&inside) : inside;
    return STATUS_OK;
}

static NOT_INLINE Status eval_in(Run *run, const Node *node, Value *out)
{
    Value value, item_value, equal;
    TRY(eval(run, node->in.value, &value));
    *out = VALUE_UNDEFINED;
    if (!value_defined(&value))
        return STATUS_OK;
    bool found = false;
    for (const Node *item = node->in.list.first; item != NULL && !found; item = item->next) {
        TRY(eval(run, item, &item_value));
        TRY(operator_equal(run, &value, &item_value, &equal));
        found = value_is_true(&equal);
    }
    *out = value_bool(found != node->negated);
    return STATUS_OK;
}

static NOT_INLINE Status eval_like(Run *run, const Node *node, Value *out)
{
    Value value, pattern;
    TRY(eval(run, node->like.value, &value));
    TRY(eval(run, node->like.pattern, &pattern));
    *out = VALUE_UNDEFINED;
    if (value.type != JSON_STRING || pattern.type != JSON_STRING)
        return STATUS_OK;
    bool matches;
    TRY(like_match(run, value.string, pattern.string, node->like.escape, &matches));
    *out = value_bool(matches != node->negated);
    return STATUS_OK;
}

/* Room for the values of 'count' parts, in 'few' if that is enough. */
static Status alloc_values(Run *run, uint32_t count, Value few[ARGS_FEW], Value **out)
{
    *out = few;
    if (count <= ARGS_FEW)
        return STATUS_OK;
    void *memory;
    TRY(run_alloc(run, count * sizeof(Value), &memory));
    *out = memory;
    return STATUS_OK;
}

static NOT_INLINE Status eval_array(Run *run, const Node *node, Value *out)
{
    Value few[ARGS_FEW];
    Value *values;
    TRY(alloc_values(run, node->list.count, few, &values));
    Value *at = values;
    for (const Node *item = node->list.first; item != NULL; item = item->next)
        TRY(eval(run, item, at++));
    return run_array(run, values, node->list.count, out);
}

static NOT_INLINE Status build_object(Run *run, const Property *first, const Value *values,
                                      Value *out)
{
    JsonBuilder b;
    json_build(&b, run->scratch);
    json_begin_object(&b);
    for (const Property *property = first; property != NULL; property = property->next) {
        (void)value_add(&b, &property->name, values++); /* undefined has no place in an object */
        TRY(run_reserve(run, 0));
    }
    json_end(&b);
    TRY(run_charge_bytes(run, b.len));
    return run_built(run, &b, out);
}

static NOT_INLINE Status eval_object(Run *run, const Node *node, Value *out)
{
    Value few[ARGS_FEW];
    Value *values;
    TRY(alloc_values(run, node->object.count, few, &values));
    Value *at = values;
    for (const Property *property = node->object.first; property != NULL; property = property->next)
        TRY(eval(run, property->value, at++));
    return build_object(run, node->object.first, values, out);
}

static NOT_INLINE Status eval_call(Run *run, const Node *node, Value *out)
{
    const Function *function = node->call.function;
    if (function->aggregate != AGGREGATE_NONE) {
        *out = run->slots[node->call.slot];
        return STATUS_OK;
    }
    Value few[ARGS_FEW];
    Value *args;
    TRY(alloc_values(run, node->call.args.count, few, &args));
    Value *at = args;
    for (const Node *arg = node->call.args.first; arg != NULL; arg = arg->next)
        TRY(eval(run, arg, at++));
    return function_call(run, function, args, node->call.args.count, out);
}

static NOT_INLINE Status eval_user_call(Run *run, const Node *node, Value *out)
{
    Value few[ARGS_FEW];
    Value *args;
    TRY(alloc_values(run, node->call.args.count, few, &args));
    Value *at = args;
    for (const Node *arg = node->call.args.first; arg != NULL; arg = arg->next)
        TRY(eval(run, arg, at++));
    return user_call(run, node, args, node->call.args.count, out);
}
