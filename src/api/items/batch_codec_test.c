/* batch_codec_test.c - both forms of a batch mean the same: random ones, and the largest. */
#include "api/items/batch_testing_int.h"
#include "base/random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

static Slice random_text(Random *random, Arena *arena, size_t pieces_max)
{
    static const char *const pieces[] = {"a",         "\"", "\\", "\n", "é", "\xf0\x9f\x98\x80",
                                         "0123456789"};
    AUTO(buf_done) Buf text;
    buf_init(&text, 4096);
    size_t count = random_below(random, pieces_max + 1);
    for (size_t i = 0; i < count; i++)
        buf_slice(&text, slice_from_cstr(pieces[random_below(random, ARRAY_COUNT(pieces))]));
    return arena_copy(arena, buf_view(&text));
}

static Json random_body(Random *random, Arena *arena, bool is_array)
{
    JsonBuilder b;
    json_build(&b, arena);
    if (is_array)
        json_begin_array(&b);
    else
        json_begin_object(&b);
    size_t count = random_below(random, 20);
    for (size_t i = 0; i < count; i++) {
        if (!is_array)
            json_key(&b, random_text(random, arena, 3));
        if (random_below(random, 2) == 0)
            json_add_string(&b, random_text(random, arena, 30));
        else
            json_add_i64(&b, (int64_t)random_below(random, 100000) - 50000);
    }
    json_end(&b);
    return json_built(&b);
}

static BatchOperation random_operation(Random *random, Arena *arena)
{
    BatchOperation operation = {
        .op = (BatchOp)random_below(random, BATCH_OP_COUNT),
        .has_partition_key = random_below(random, 2) == 0,
        .if_match = random_text(random, arena, 2),
        .if_none_match = random_text(random, arena, 2),
        .indexing = (BatchIndexing)random_below(random, 3),
        .minimal = random_below(random, 2) == 0,
    };
    const BatchKind *kind = &BATCH_KINDS[operation.op];
    operation.id = random_text(random, arena, 100);
    if (kind->needs_id && operation.id.len == 0)
        operation.id = SLICE("i");
    if (operation.has_partition_key)
        operation.partition_key = random_text(random, arena, 5);
    bool is_array = operation.op == BATCH_PATCH && random_below(random, 2) == 0;
    if (kind->needs_body)
        operation.body = random_body(random, arena, is_array);
    return operation;
}

static void any_batch_comes_back_from_both_forms(void **state)
{
    (void)state;
    Random random;
    random_init(&random, 12);
    for (int round = 0; round < 300; round++) {
        AUTO(arena_done) Arena arena;
        arena_init(&arena, 64 << 10);
        BatchOperation operations[BATCH_OPERATIONS_MAX];
        size_t count = 1 + random_below(&random, round % 10 == 0 ? BATCH_OPERATIONS_MAX : 5);
        for (size_t i = 0; i < count; i++)
            operations[i] = random_operation(&random, &arena);
        testing_check_again(BATCH_FORM_JSON, operations, count, &arena);
        testing_check_again(BATCH_FORM_BINARY, operations, count, &arena);
    }
}

/* A reader of answers that shares nothing with the library but the numbers of the format. */
typedef struct Cursor {
    const uint8_t *at;
    const uint8_t *end;
} Cursor;

static Slice take(Cursor *in, size_t size)
{
    assert_true((size_t)(in->end - in->at) >= size);
    Slice bytes = slice_make(in->at, size);
    in->at += size;
    return bytes;
}

static uint32_t take_number(Cursor *in)
{
    Slice bytes = take(in, 4);
    uint32_t number = 0;
    for (int i = 3; i >= 0; i--)
        number = number << 8 | (uint8_t)bytes.ptr[i];
    return number;
}

static Slice take_field(Cursor *in)
{
    size_t size = 0;
    unsigned shift = 0;
    uint8_t byte;
    do {
        byte = (uint8_t)take(in, 1).ptr[0];
        size |= (size_t)(byte & 0x7f) << shift;
        shift += 7;
    } while (byte >= 0x80);
    return take(in, size);
}

static BatchResult read_row(Cursor *in)
{
    assert_memory_equal(take(in, 5).ptr, "\x81\x71\x54\xe1\x7f", 5);
    uint8_t has = (uint8_t)take(in, 1).ptr[0];
    assert_int_equal(has & ~0x0c, 0x03);
    BatchResult result = {.status = (int)take_number(in), .sub_status = (int)take_number(in)};
    if ((has & 0x04) != 0)
        result.etag = take_field(in);
    if ((has & 0x08) != 0)
        result.resource_body = take_field(in);
    while (in->at < in->end) {
        Slice head = take(in, 2);
        if (memcmp(head.ptr, "\x0b\x05", 2) == 0) {
            result.retry_after_ms = take_number(in);
        } else {
            assert_memory_equal(head.ptr, "\x10\x06", 2);
            memcpy(&result.request_charge, take(in, 8).ptr, 8);
        }
    }
    return result;
}

static void assert_binary_answer(const BatchResult *results, size_t count, Slice answer)
{
    Cursor in = {(const uint8_t *)answer.ptr, (const uint8_t *)answer.ptr + answer.len};
    assert_memory_equal(take(&in, 10).ptr, "\x81\xf0\xd8\xff\x7f\x01\x0a\0\0\0", 10);
    for (size_t i = 0; i < count; i++) {
        assert_memory_equal(take(&in, 5).ptr, "\x81\xf1\xd8\xff\x7f", 5);
        uint32_t length = take_number(&in);
        uint32_t crc = take_number(&in);
        Slice row = take(&in, length);
        assert_int_equal(crc, crc32_of(row));
        Cursor part = {(const uint8_t *)row.ptr, (const uint8_t *)row.ptr + row.len};
        BatchResult found = read_row(&part);
        assert_int_equal(found.status, results[i].status);
        assert_int_equal(found.sub_status, results[i].sub_status);
        assert_true(found.request_charge == results[i].request_charge);
        assert_true(slice_equal(found.etag, results[i].etag));
        assert_true(slice_equal(found.resource_body, results[i].resource_body));
        assert_int_equal(found.retry_after_ms, results[i].retry_after_ms);
    }
    assert_ptr_equal(in.at, in.end);
}

static double member_number(Json object, const char *name)
{
    Json value = json_get(object, slice_from_cstr(name));
    return json_is(value, JSON_UNDEFINED) ? 0 : json_number(value);
}

static void assert_json_answer(const BatchResult *results, size_t count, Slice answer, Arena *arena)
{
    Json list;
    Error err;
    assert_int_equal(json_parse(arena, answer, &list, &err), STATUS_OK);
    assert_int_equal(json_count(list), count);
    for (size_t i = 0; i < count; i++) {
        Json found = json_at(list, i);
        Json etag = json_get(found, SLICE("eTag"));
        Json body = json_get(found, SLICE("resourceBody"));
        assert_true(member_number(found, "statusCode") == results[i].status);
        assert_true(member_number(found, "subStatusCode") == results[i].sub_status);
        assert_true(member_number(found, "requestCharge") == results[i].request_charge);
        assert_true(member_number(found, "retryAfterMilliseconds") == results[i].retry_after_ms);
        assert_int_equal(json_is(etag, JSON_STRING), results[i].etag.len > 0);
        if (results[i].etag.len > 0)
            assert_true(slice_equal(json_string(etag), results[i].etag));
        assert_true(slice_equal(json_print_arena(arena, body), results[i].resource_body));
    }
}

static void any_answer_comes_back_from_both_forms(void **state)
{
    (void)state;
    Random random;
    random_init(&random, 34);
    for (int round = 0; round < 300; round++) {
        AUTO(arena_done) Arena arena;
        arena_init(&arena, 64 << 10);
        AUTO(buf_done) Buf out;
        buf_init(&out, 4 << 20);
        BatchResult results[BATCH_OPERATIONS_MAX];
        size_t count = random_below(&random, round % 10 == 0 ? BATCH_OPERATIONS_MAX + 1 : 5);
        for (size_t i = 0; i < count; i++) {
            results[i] = (BatchResult){
                .status = 200 + (int)random_below(&random, 300),
                .sub_status = random_below(&random, 2) == 0 ? 0 : (int)random_below(&random, 5000),
                .request_charge = (double)random_below(&random, 100000) / 100,
                .etag = random_text(&random, &arena, 3),
                .retry_after_ms = (uint32_t)random_below(&random, 3) * 1000,
            };
            if (random_below(&random, 2) == 0)
                results[i].resource_body =
                    json_print_arena(&arena, random_body(&random, &arena, false));
        }
        batch_encode(BATCH_FORM_BINARY, results, count, &out);
        assert_binary_answer(results, count, buf_view(&out));
        buf_reset(&out);
        batch_encode(BATCH_FORM_JSON, results, count, &out);
        assert_json_answer(results, count, buf_view(&out), &arena);
    }
}

static void a_hundred_operations_are_taken_and_one_more_is_refused(void **state)
{
    (void)state;
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 64 << 10);
    BatchOperation operations[BATCH_OPERATIONS_MAX + 1];
    for (size_t i = 0; i < ARRAY_COUNT(operations); i++)
        operations[i] = (BatchOperation){.op = BATCH_DELETE, .id = SLICE("a")};
    for (int form = BATCH_FORM_JSON; form <= BATCH_FORM_BINARY; form++) {
        testing_check_again((BatchForm)form, operations, BATCH_OPERATIONS_MAX, &arena);

        AUTO(buf_done) Buf body;
        buf_init(&body, 64 << 10);
        if (form == BATCH_FORM_JSON)
            testing_encode_json(operations, ARRAY_COUNT(operations), &body);
        else
            testing_encode_binary(operations, ARRAY_COUNT(operations), &arena, &body);
        BatchForm found_form;
        BatchOperation *found;
        size_t count;
        Error err;
        assert_int_equal(batch_decode(&arena, buf_view(&body), &found_form, &found, &count, &err),
                         STATUS_BAD_REQUEST);
        assert_string_equal(
            err.message,
            "Batch request has more operations than what is supported. At most 100 are.");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_batch_comes_back_from_both_forms),
        cmocka_unit_test(any_answer_comes_back_from_both_forms),
        cmocka_unit_test(a_hundred_operations_are_taken_and_one_more_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
