/* group_list.c - see group_list_int.h. */
#include "query/page/group_list_int.h"

#include "base/encoding.h"

#include <math.h>

/* Types of values: those that an index has whole. */
typedef enum ListedType {
    LISTED_UNDEFINED,
    LISTED_NULL,
    LISTED_FALSE,
    LISTED_TRUE,
    LISTED_NUMBER,
    LISTED_STRING,
} ListedType;

Status group_list_add(GroupList *list, Run *run, Arena *arena, size_t aggregates, const Value *key,
                      Group **out)
{
    TRY(RUN_GROW(run, arena, list->groups, list->count, list->capacity, 64));
    TRY(run_reserve(run, aggregates * sizeof(Counted)));
    *out = &list->groups[list->count++];
    **out = (Group){.key = *key, .counted = ARENA_NEW_ARRAY(arena, Counted, aggregates)};
    return STATUS_OK;
}

/* ---- writing ---- */

static void put_u32(Buf *out, size_t value)
{
    char bytes[sizeof(uint32_t)];
    ASSERT(value <= UINT32_MAX);
    be32_put(bytes, (uint32_t)value);
    buf_bytes(out, bytes, sizeof(bytes));
}

static void put_u64(Buf *out, uint64_t value)
{
    char bytes[sizeof(value)];
    be64_put(bytes, value);
    buf_bytes(out, bytes, sizeof(bytes));
}

static void put_double(Buf *out, double number)
{
    uint64_t bits = 0;
    memcpy(&bits, &number, sizeof(bits));
    put_u64(out, bits);
}

static void put_value(Buf *out, const Value *value)
{
    switch (value->type) {
    case JSON_UNDEFINED:
        buf_byte(out, LISTED_UNDEFINED);
        return;
    case JSON_NULL:
        buf_byte(out, LISTED_NULL);
        return;
    case JSON_BOOL:
        buf_byte(out, value->boolean ? LISTED_TRUE : LISTED_FALSE);
        return;
    case JSON_NUMBER:
        buf_byte(out, LISTED_NUMBER);
        put_double(out, value->number);
        return;
    case JSON_STRING:
        buf_byte(out, LISTED_STRING);
        put_u32(out, value->string.len);
        buf_slice(out, value->string);
        return;
    case JSON_ARRAY:
    case JSON_OBJECT:
        break;
    }
    ASSERT(!"an index has no such value whole");
}

void group_list_write(const GroupList *list, size_t aggregates, Buf *out)
{
    put_u32(out, list->count);
    put_u32(out, aggregates);
    for (size_t i = 0; i < list->count; i++) {
        put_value(out, &list->groups[i].key);
        for (size_t j = 0; j < aggregates; j++) {
            const Counted *counted = &list->groups[i].counted[j];
            buf_byte(out, counted->is_spoiled);
            put_u64(out, counted->count);
            put_double(out, counted->sum);
            put_value(out, &counted->best);
        }
    }
}

/* ---- reading ---- */

static bool take(Slice *rest, size_t len, Slice *out)
{
    if (rest->len < len)
        return false;
    *out = slice_first(*rest, len);
    *rest = slice_from(*rest, len);
    return true;
}

static bool take_u32(Slice *rest, uint32_t *out)
{
    Slice bytes;
    if (!take(rest, sizeof(*out), &bytes))
        return false;
    *out = be32_get(bytes.ptr);
    return true;
}

static bool take_double(Slice *rest, double *out)
{
    Slice bytes;
    if (!take(rest, sizeof(uint64_t), &bytes))
        return false;
    uint64_t bits = be64_get(bytes.ptr);
    memcpy(out, &bits, sizeof(bits));
    return isfinite(*out);
}

static bool take_string(Slice *rest, Arena *arena, Value *out)
{
    uint32_t len = 0;
    Slice text;
    if (!take_u32(rest, &len) || !take(rest, len, &text) || !json_utf8_valid(text))
        return false;
    *out = value_string(arena_copy(arena, text));
    out->stable = true;
    return true;
}

static bool take_value(Slice *rest, Arena *arena, Value *out)
{
    Slice type;
    double number = 0;
    if (!take(rest, 1, &type))
        return false;
    switch ((uint8_t)type.ptr[0]) {
    case LISTED_UNDEFINED:
        *out = VALUE_UNDEFINED;
        return true;
    case LISTED_NULL:
        *out = VALUE_NULL;
        return true;
    case LISTED_FALSE:
    case LISTED_TRUE:
        *out = value_bool((uint8_t)type.ptr[0] == LISTED_TRUE);
        return true;
    case LISTED_NUMBER:
        if (!take_double(rest, &number))
            return false;
        *out = value_number(number);
        return true;
    case LISTED_STRING:
        return take_string(rest, arena, out);
    default:
        return false;
    }
}

static bool take_counted(Slice *rest, Arena *arena, Counted *out)
{
    Slice head;
    if (!take(rest, 1 + sizeof(uint64_t), &head) || (uint8_t)head.ptr[0] > 1)
        return false;
    out->is_spoiled = head.ptr[0] != 0;
    out->count = be64_get(head.ptr + 1);
    return take_double(rest, &out->sum) && take_value(rest, arena, &out->best);
}

Status group_list_read(Slice bytes, Run *run, Arena *arena, size_t aggregates, GroupList *out,
                       bool *is_list)
{
    uint32_t count = 0;
    uint32_t each = 0;
    Slice rest = bytes;
    *is_list = take_u32(&rest, &count) && take_u32(&rest, &each) && each == aggregates;
    for (uint32_t i = 0; i < count && *is_list; i++) {
        Value key;
        Group *group = NULL;
        *is_list = take_value(&rest, arena, &key);
        if (!*is_list)
            return STATUS_OK;
        TRY(group_list_add(out, run, arena, aggregates, &key, &group));
        for (size_t j = 0; j < aggregates && *is_list; j++)
            *is_list = take_counted(&rest, arena, &group->counted[j]);
    }
    *is_list = *is_list && rest.len == 0;
    return STATUS_OK;
}
