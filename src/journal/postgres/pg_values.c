/* pg_values.c - parameters and results in the binary form of PostgreSQL's protocol.
 *
 *     array   = | dimensions i32 | has nulls i32 | type u32 | count i32 | first index i32 |
 * element* element = | size i32 | bytes |
 *
 * An array without elements has no dimensions, and ends after its type. Numbers are big-endian.
 */
#include "journal/postgres/pg_int.h"

/* Numbers of types, which never change. */
enum { TYPE_BYTEA = 17, TYPE_INT8 = 20, TYPE_TEXT = 25 };
enum { ARRAY_HEAD_BYTES = 20, NUMBER_BYTES = 8 };

void pg_params_init(PgParams *params)
{
    arena_init(&params->arena, 4096);
    params->count = 0;
}

void pg_params_done(PgParams *params)
{
    arena_done(&params->arena);
}

static void add(PgParams *params, const char *value, size_t len)
{
    ASSERT(params->count < PG_PARAMS_MAX);
    ASSERT(len <= INT32_MAX);
    params->values[params->count] = value;
    params->lengths[params->count] = (int)len;
    params->count++;
}

static char *put_u32(char *out, uint32_t value)
{
    for (unsigned i = 0; i < 4; i++)
        out[i] = (char)(uint8_t)(value >> (24 - 8 * i));
    return out + 4;
}

static char *put_u64(char *out, uint64_t value)
{
    return put_u32(put_u32(out, (uint32_t)(value >> 32)), (uint32_t)value);
}

void pg_param_u64(PgParams *params, uint64_t number)
{
    char *value = arena_alloc(&params->arena, NUMBER_BYTES);
    (void)put_u64(value, number);
    add(params, value, NUMBER_BYTES);
}

void pg_param_i64(PgParams *params, int64_t number)
{
    pg_param_u64(params, (uint64_t)number);
}

void pg_param_bytes(PgParams *params, Slice bytes)
{
    /* A NULL pointer would be the SQL NULL. */
    add(params, bytes.len == 0 ? "" : bytes.ptr, bytes.len);
}

void pg_param_lane(PgParams *params, JournalLane lane)
{
    pg_param_u64(params, (uint64_t)lane);
}

void pg_param_self(PgParams *params, const JournalSelf *self)
{
    pg_param_bytes(params, self->node);
    pg_param_u64(params, self->incarnation);
}

static PgArray add_array(PgParams *params, uint32_t type, size_t count, size_t bytes)
{
    size_t len = count == 0 ? ARRAY_HEAD_BYTES - 8 : ARRAY_HEAD_BYTES + count * 4 + bytes;
    char *value = arena_alloc(&params->arena, len);
    add(params, value, len);
    char *next = put_u32(value, count == 0 ? 0 : 1);
    next = put_u32(next, 0);
    next = put_u32(next, type);
    if (count > 0) {
        next = put_u32(next, (uint32_t)count);
        next = put_u32(next, 1);
    }
    return (PgArray){.next = next, .end = value + len};
}

PgArray pg_param_u64_array(PgParams *params, size_t count)
{
    return add_array(params, TYPE_INT8, count, count * NUMBER_BYTES);
}

PgArray pg_param_bytes_array(PgParams *params, size_t count, size_t bytes)
{
    return add_array(params, TYPE_BYTEA, count, bytes);
}

PgArray pg_param_text_array(PgParams *params, size_t count, size_t bytes)
{
    return add_array(params, TYPE_TEXT, count, bytes);
}

void pg_array_u64(PgArray *array, uint64_t number)
{
    ASSERT(array->end - array->next >= 4 + NUMBER_BYTES);
    array->next = put_u64(put_u32(array->next, NUMBER_BYTES), number);
}

void pg_array_bytes(PgArray *array, Slice bytes)
{
    ASSERT((size_t)(array->end - array->next) >= 4 + bytes.len);
    array->next = put_u32(array->next, (uint32_t)bytes.len);
    if (bytes.len > 0)
        memcpy(array->next, bytes.ptr, bytes.len);
    array->next += bytes.len;
}

/* ---- results ---- */

void pg_result_done(PgResult *result)
{
    if (result->result != NULL)
        result->libpq->clear(result->result);
    result->result = NULL;
}

size_t pg_rows(const PgResult *result)
{
    return (size_t)result->libpq->ntuples(result->result);
}

bool pg_is_null(const PgResult *result, size_t row, int column)
{
    return result->libpq->getisnull(result->result, (int)row, column) != 0;
}

Slice pg_get_bytes(const PgResult *result, size_t row, int column)
{
    return slice_make(result->libpq->getvalue(result->result, (int)row, column),
                      (size_t)result->libpq->getlength(result->result, (int)row, column));
}

Status pg_get_fixed(const PgResult *result, size_t row, int column, void *out, size_t size,
                    Error *err)
{
    Slice value = pg_get_bytes(result, row, column);
    if (pg_is_null(result, row, column) || value.len != size)
        return error_set(err, STATUS_CORRUPT, SUB_NONE,
                         "column %d of an answer of the engine has %zu bytes, not %zu", column,
                         value.len, size);
    memcpy(out, value.ptr, size);
    return STATUS_OK;
}

Status pg_get_u64(const PgResult *result, size_t row, int column, uint64_t *out, Error *err)
{
    int64_t number = 0;
    TRY(pg_get_i64(result, row, column, &number, err));
    if (number < 0)
        return error_set(err, STATUS_CORRUPT, SUB_NONE,
                         "column %d of an answer of the engine is %lld", column, (long long)number);
    *out = (uint64_t)number;
    return STATUS_OK;
}

Status pg_get_i64(const PgResult *result, size_t row, int column, int64_t *out, Error *err)
{
    uint8_t bytes[NUMBER_BYTES];
    TRY(pg_get_fixed(result, row, column, bytes, sizeof(bytes), err));
    uint64_t number = 0;
    for (unsigned i = 0; i < NUMBER_BYTES; i++)
        number = number << 8 | bytes[i];
    *out = (int64_t)number;
    return STATUS_OK;
}
