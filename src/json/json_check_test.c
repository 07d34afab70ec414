/* json_check_test.c - json_open refuses damaged bytes, and what it accepts is safe to use: I2, I3.
 */
#include "base/mem.h"
#include "base/test_seed.h"
#include "json/json_random_testing_int.h"
#include "json/json_testing.h"

static void damaged_documents_are_refused(void **state)
{
    (void)state;
    static const struct {
        Slice bytes;
        const char *what;
    } rows[] = {
        {SLICE_INIT(""), "byte 0: too short"},
        {SLICE_INIT("\x01"), "byte 0: too short"},
        {SLICE_INIT("\x02\x00"), "has version 2, expected 1"},
        {SLICE_INIT("\x00\x00"), "has version 0, expected 1"},
        {SLICE_INIT("\x01\x4f"), "byte 1: tag of no value"},
        {SLICE_INIT("\x01\x7f"), "byte 1: tag of no value"},
        {SLICE_INIT("\x01\x00\x00"), "byte 2: bytes after its end"},
        {SLICE_INIT("\x01\x43"), "number is cut off"},
        {SLICE_INIT("\x01\x44\x00"), "number is cut off"},
        {SLICE_INIT("\x01\x47\x00\x00\x00\x00\x00\x00\xf8"), "number is cut off"},
        {SLICE_INIT("\x01\x43\x3f"), "integer is not in its shortest form"},
        {SLICE_INIT("\x01\x44\x7f\x00"), "integer is not in its shortest form"},
        {SLICE_INIT("\x01\x45\x00\x01\x00\x00"), "integer is not in its shortest form"},
        {SLICE_INIT("\x01\x46\x00\x00\x01\x00\x00\x00\x00\x00"), "integer is not in its shortest"},
        {SLICE_INIT("\x01\x47\x00\x00\x00\x00\x00\x00\xf0\x3f"), "double is not in its one form"},
        {SLICE_INIT("\x01\x47\x00\x00\x00\x00\x00\x00\x00\x00"), "double is not in its one form"},
        {SLICE_INIT("\x01\x47\x00\x00\x00\x00\x00\x00\xf8\xff"), "double is not in its one form"},
        {SLICE_INIT("\x01\x82\x61"), "string is longer than what holds it"},
        {SLICE_INIT("\x01\x48"), "string is cut off"},
        {SLICE_INIT("\x01\x49\x00"), "string is cut off"},
        {SLICE_INIT("\x01\x4a\x00\x00\x01"), "string is cut off"},
        {SLICE_INIT("\x01\x48\x01\x61"), "string is not in its shortest form"},
        {SLICE_INIT("\x01\x4a\xff\xff\xff\xff\x61"), "string is longer than what holds it"},
        {SLICE_INIT("\x01\x81\xff"), "string is not UTF-8"},
        {SLICE_INIT("\x01\x4b\x01\x04"), "array or object is cut off"},
        {SLICE_INIT("\x01\x4b\x01\x03\x00"), "longer than what holds it"},
        {SLICE_INIT("\x01\x4b\x01\x05\x00"), "longer than what holds it"},
        {SLICE_INIT("\x01\x4b\x00\x04\x00"), "impossible depth"},
        {SLICE_INIT("\x01\x4b\x81\x04\x00"), "impossible depth"},
        {SLICE_INIT("\x01\x4b\x02\x04\x00"), "wrong depth"},
        {SLICE_INIT("\x01\x4b\x01\x04\x01"), "value expected"},
        {SLICE_INIT("\x01\x4b\x01\x05\x00\x00"), "bytes after its last value"},
        {SLICE_INIT("\x01\x4c\x01\x0a\x00\x00\x00\x00\x00\x00\x00"), "not in its small form"},
        {SLICE_INIT("\x01\x4c\x01\xff\xff\xff\xff\xff\xff\xff\xff"), "longer than what holds it"},
        {SLICE_INIT("\x01\x4e\x01\x0a\x00\x00\x00\xff\xff\xff\xff"), "no room for its members"},
        {SLICE_INIT("\x01\x4d\x01\x04\x01"), "no room for its members"},
        {SLICE_INIT("\x01\x4d\x01\x07\x01\x00\x00\x04"), "name of a member expected"},
        {SLICE_INIT("\x01\x4d\x01\x06\x01\x80\x04"), "value expected"},
        {SLICE_INIT("\x01\x4d\x01\x07\x01\x80\x00\x05"), "not in the order of names"},
        {SLICE_INIT("\x01\x4d\x01\x0a\x02\x80\x00\x80\x01\x04\x06"), "a name twice"},
        {SLICE_INIT("\x01\x4d\x01\x0c\x02\x81"
                    "a\x00\x81"
                    "b\x00\x07\x04"),
         "not in the order"},
        {SLICE_INIT("\x01\x4d\x01\x0c\x02\x81"
                    "a\x00\x81"
                    "b\x00\x04\x04"),
         "not in the order"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        /* In memory of its own, so that the sanitizer sees a step beyond the end. */
        char *copy = mem_copy(rows[i].bytes.ptr, rows[i].bytes.len);
        Json value = JSON_NONE;
        Error err;
        Status status = json_open(slice_make(copy, rows[i].bytes.len), &value, &err);
        assert_int_equal(status, STATUS_CORRUPT);
        if (strstr(err.message, rows[i].what) == NULL)
            fail_msg("row %zu: '%s', expected '%s'", i, err.message, rows[i].what);
        assert_null(value.at);
        mem_free(copy);
    }
}

/* Uses an opened document in every way. Building it again must give the same bytes, because each
 * value has one encoding. */
static void use(Slice bytes, Json value)
{
    check_look_ups(value);
    assert_int_equal(json_compare(value, value), 0);
    JsonBuilder b;
    json_build(&b, &test_arena);
    rebuild(&b, value);
    assert_true(slice_equal(json_bytes(&test_arena, json_built(&b)), bytes));
    assert_true(json_print_arena(&test_arena, value).len > 0);
}

static void open_every_change_of_a_byte(Slice bytes, size_t *accepted)
{
    uint8_t *copy = mem_copy(bytes.ptr, bytes.len);
    for (size_t at = 0; at < bytes.len; at++) {
        for (int change = 1; change < 256; change++) {
            arena_reset(&test_arena);
            copy[at] ^= (uint8_t)change;
            Json value;
            Error err;
            Slice changed = slice_make(copy, bytes.len);
            if (json_open(changed, &value, &err) == STATUS_OK) {
                use(changed, value);
                (*accepted)++;
            }
            copy[at] ^= (uint8_t)change;
        }
    }
    mem_free(copy);
}

static void every_change_of_a_byte_is_refused_or_harmless(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "[0,1,-1,100,1000,100000,10000000000,0.5,-0.0,1e300,null,true,false,\"\",\"abc\xc3\xa9\"]",
        "{\"id\":\"1\",\"b\":[1,[2,[3]]],\"a\":{\"x\":1,\"y\":{\"z\":[]}},\"name\":\"n\"}",
        "{\"large\":\"0123456789012345678901234567890123456789012345678901234567890123456789"
        "012345678901234567890123456789012345678901234567890123456789012345678901234567890"
        "123456789012345678901234567890123456789012345678901234567890123456789012345678901"
        "234567890\",\"k\":[true,{\"q\":1}],\"a\":7}",
    };
    Arena keep;
    arena_init(&keep, 4096);
    size_t accepted = 0;
    for (size_t i = 0; i < ARRAY_COUNT(texts); i++) {
        Json value;
        Error err;
        assert_int_equal(json_parse(&keep, slice_from_cstr(texts[i]), &value, &err), STATUS_OK);
        open_every_change_of_a_byte(json_bytes(&keep, value), &accepted);
    }
    /* A changed letter is still a letter; but if that were all, nothing would have been tested. */
    assert_true(accepted > 1000);
    arena_done(&keep);
}

static void every_cut_of_a_document_is_refused(void **state)
{
    (void)state;
    Random random;
    random_init(&random, 7);
    Json document = random_document(&random, &test_arena, 5, 8);
    while (!json_is(document, JSON_OBJECT) || json_count(document) < 4)
        document = random_document(&random, &test_arena, 5, 8);
    Slice bytes = json_bytes(&test_arena, document);
    for (size_t len = 0; len < bytes.len; len++) {
        char *copy = mem_copy(bytes.ptr, len);
        Json value;
        Error err;
        assert_int_equal(json_open(slice_make(copy, len), &value, &err), STATUS_CORRUPT);
        mem_free(copy);
    }
}

static void random_documents_are_accepted(void **state)
{
    (void)state;
    Random random;
    random_init(&random, test_seed());
    for (int i = 0; i < 1000; i++) {
        arena_reset(&test_arena);
        bool wide = i % 50 == 0;
        Json document = random_document(
            &random, &test_arena, wide ? 1 : (uint32_t)random_below(&random, 6), wide ? 90 : 5);
        Slice bytes = json_bytes(&test_arena, document);
        Json value;
        Error err;
        assert_int_equal(json_open(bytes, &value, &err), STATUS_OK);
        use(bytes, value);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(damaged_documents_are_refused),
        cmocka_unit_test(every_change_of_a_byte_is_refused_or_harmless),
        cmocka_unit_test(every_cut_of_a_document_is_refused),
        cmocka_unit_test(random_documents_are_accepted),
    };
    return cmocka_run_group_tests(tests, test_arena_setup, test_arena_teardown);
}
