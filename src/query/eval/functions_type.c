/* functions_type.c - what a value is, values out of JSON text, one of several values, and the
 * number of a document. */
#include "query/eval/call_int.h"

#include "base/rid.h"

#include <math.h>

#define DEFINE_IS(function, condition)                                                     \
    Status function(Run *run UNUSED, const Value *args, uint32_t count UNUSED, Value *out) \
    {                                                                                      \
        const Value *value = &args[0];                                                     \
        *out = value_bool(condition);                                                      \
        return STATUS_OK;                                                                  \
    }

DEFINE_IS(function_is_array, value->type == JSON_ARRAY)
DEFINE_IS(function_is_bool, value->type == JSON_BOOL)
DEFINE_IS(function_is_defined, value->type != JSON_UNDEFINED)
DEFINE_IS(function_is_finite_number, value->type == JSON_NUMBER && isfinite(value->number))
DEFINE_IS(function_is_null, value->type == JSON_NULL)
DEFINE_IS(function_is_number, value->type == JSON_NUMBER)
DEFINE_IS(function_is_object, value->type == JSON_OBJECT)
DEFINE_IS(function_is_primitive, value->type >= JSON_NULL && value->type <= JSON_STRING)
DEFINE_IS(function_is_string, value->type == JSON_STRING)

Status function_is_integer(Run *run UNUSED, const Value *args, uint32_t count UNUSED, Value *out)
{
    int64_t integer;
    *out = value_bool(value_to_i64(&args[0], &integer));
    return STATUS_OK;
}

/* The value that the text is, if it is JSON of the wanted type. */
static Status parse_as(Run *run, const Value *arg, JsonType type, Value *out)
{
    if (arg->type != JSON_STRING || arg->string.len > JSON_TEXT_BYTES_MAX)
        return STATUS_OK;
    TRY(run_charge_bytes(run, arg->string.len));
    TRY(run_reserve(run, 2 * arg->string.len));
    Error unused;
    Json json;
    if (json_parse(run->scratch, arg->string, &json, &unused) == STATUS_OK && json_is(json, type))
        *out = value_of(json, false);
    return STATUS_OK;
}

#define DEFINE_PARSE(function, type)                                                \
    Status function(Run *run, const Value *args, uint32_t count UNUSED, Value *out) \
    {                                                                               \
        return parse_as(run, &args[0], type, out);                                  \
    }

DEFINE_PARSE(function_stringtoarray, JSON_ARRAY)
DEFINE_PARSE(function_stringtoboolean, JSON_BOOL)
DEFINE_PARSE(function_stringtonull, JSON_NULL)
DEFINE_PARSE(function_stringtonumber, JSON_NUMBER)
DEFINE_PARSE(function_stringtoobject, JSON_OBJECT)

Status function_iif(Run *run UNUSED, const Value *args, uint32_t count UNUSED, Value *out)
{
    *out = value_is_true(&args[0]) ? args[1] : args[2];
    return STATUS_OK;
}

Status function_choose(Run *run UNUSED, const Value *args, uint32_t count, Value *out)
{
    int64_t index;
    if (value_to_i64(&args[0], &index) && index >= 1 && index < (int64_t)count)
        *out = args[index];
    return STATUS_OK;
}

Status function_documentid(Run *run UNUSED, const Value *args, uint32_t count UNUSED, Value *out)
{
    if (args[0].type != JSON_OBJECT)
        return STATUS_OK;
    Json text = json_get(args[0].json, SLICE("_rid"));
    Rid rid;
    if (json_is(text, JSON_STRING) && rid_parse(json_string(text), &rid) &&
        rid.kind == RID_DOCUMENT)
        *out = value_integer((int64_t)rid.child); /* the kind takes four bits of the 64 */
    return STATUS_OK;
}

/* The _rid of the item that the row at hand is made of. Plans for several partitions ask for it
 * where no source of the query is the whole item. */
Status function_document_rid(Run *run, const Value *args UNUSED, uint32_t count UNUSED, Value *out)
{
    const Value *document = &run->slots[SLOT_DOCUMENT];
    if (document->type == JSON_OBJECT)
        *out = value_of(json_get(document->json, SLICE("_rid")), document->stable);
    return STATUS_OK;
}
