/* encoding_test.c - each text has one meaning and each meaning one text: I3. */
#include "base/encoding.h"

#include "base/random.h"
#include "base/testing.h"

#include <stdio.h>
#include <string.h>

static void base64_matches_the_examples_of_rfc_4648(void **state)
{
    (void)state;
    static const struct {
        Slice bytes, text;
    } rows[] = {
        {SLICE_INIT(""), SLICE_INIT("")},
        {SLICE_INIT("f"), SLICE_INIT("Zg==")},
        {SLICE_INIT("fo"), SLICE_INIT("Zm8=")},
        {SLICE_INIT("foo"), SLICE_INIT("Zm9v")},
        {SLICE_INIT("foob"), SLICE_INIT("Zm9vYg==")},
        {SLICE_INIT("fooba"), SLICE_INIT("Zm9vYmE=")},
        {SLICE_INIT("foobar"), SLICE_INIT("Zm9vYmFy")},
        {SLICE_INIT("\xfb\xef\xff"), SLICE_INIT("++//")},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        char text[16];
        assert_int_equal(BASE64_LEN(rows[i].bytes.len), rows[i].text.len);
        base64_encode(BASE64_STANDARD, rows[i].bytes.ptr, rows[i].bytes.len, text);
        assert_memory_equal(text, rows[i].text.ptr, rows[i].text.len);

        char bytes[16];
        size_t len = 77;
        assert_true(base64_decode(BASE64_STANDARD, rows[i].text, bytes, sizeof(bytes), &len));
        assert_true(slice_equal(slice_make(bytes, len), rows[i].bytes));
    }
}

static void resource_ids_write_a_dash_for_the_slash(void **state)
{
    (void)state;
    char text[4];
    base64_encode(BASE64_RID, "\xfb\xef\xff", 3, text);
    assert_memory_equal(text, "++--", 4);
    uint8_t bytes[3];
    size_t len = 0;
    assert_true(base64_decode(BASE64_RID, SLICE("++--"), bytes, sizeof(bytes), &len));
    assert_memory_equal(bytes, "\xfb\xef\xff", 3);
    assert_false(base64_decode(BASE64_RID, SLICE("++//"), bytes, sizeof(bytes), &len));
    assert_false(base64_decode(BASE64_STANDARD, SLICE("++--"), bytes, sizeof(bytes), &len));
}

static void base64_that_is_not_strict_is_refused(void **state)
{
    (void)state;
    static const Slice rows[] = {
        SLICE_INIT("Z"),
        SLICE_INIT("Zg"),
        SLICE_INIT("Zg="),
        SLICE_INIT("Zg==="),
        SLICE_INIT("===="),
        SLICE_INIT("Z==="),
        SLICE_INIT("=Zg="),
        SLICE_INIT("Z=g="),
        SLICE_INIT("Zg=="
                   "Zg=="),
        SLICE_INIT("Zg==\n"),
        SLICE_INIT("Zm 9"),
        SLICE_INIT("Zm9\0"),
        SLICE_INIT("Zm9_"),
        SLICE_INIT("Zm9\xff"),
        SLICE_INIT("Zm9v===="),
        /* Bits after the last byte are set: another spelling of "f" and "fo". */
        SLICE_INIT("Zh=="),
        SLICE_INIT("Zm9="),
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        char bytes[16];
        size_t len = 77;
        assert_false(base64_decode(BASE64_STANDARD, rows[i], bytes, sizeof(bytes), &len));
        assert_int_equal(len, 77);
    }
}

static void base64_that_does_not_fit_is_refused(void **state)
{
    (void)state;
    uint8_t bytes[2] = {0, 0xaa};
    size_t len = 77;
    assert_false(base64_decode(BASE64_STANDARD, SLICE("Zm8="), bytes, 1, &len));
    assert_false(base64_decode(BASE64_STANDARD, SLICE("Zg=="), bytes, 0, &len));
    assert_int_equal(len, 77);
    assert_true(base64_decode(BASE64_STANDARD, SLICE("Zg=="), bytes, 1, &len));
    assert_int_equal(len, 1);
    assert_int_equal(bytes[1], 0xaa);
    assert_true(base64_decode(BASE64_STANDARD, SLICE_EMPTY, bytes, 0, &len));
    assert_int_equal(len, 0);
}

static void random_bytes_come_back_from_base64_and_hex(void **state)
{
    (void)state;
    Random random;
    random_init(&random, 1);
    for (size_t len = 0; len < 100; len++) {
        uint8_t bytes[100];
        uint8_t back[100];
        char text[BASE64_LEN(100) + 100];
        size_t back_len = 0;
        for (size_t i = 0; i < len; i++)
            bytes[i] = (uint8_t)random_u64(&random);
        Base64 variant = len % 2 == 0 ? BASE64_STANDARD : BASE64_RID;
        base64_encode(variant, bytes, len, text);
        assert_true(
            base64_decode(variant, slice_make(text, BASE64_LEN(len)), back, len, &back_len));
        assert_int_equal(back_len, len);
        assert_int_equal(memcmp(back, bytes, len), 0);
        hex_encode(bytes, len, text);
        assert_true(hex_decode(slice_make(text, 2 * len), back, len, &back_len));
        assert_int_equal(back_len, len);
        assert_int_equal(memcmp(back, bytes, len), 0);
    }
}

static void hex_is_printed_in_upper_case_and_read_in_both(void **state)
{
    (void)state;
    char text[8];
    hex_encode("\x00\x9f\xa5\xff", 4, text);
    assert_memory_equal(text, "009FA5FF", 8);
    static const Slice rows[] = {SLICE_INIT("009FA5FF"), SLICE_INIT("009fa5ff"),
                                 SLICE_INIT("009Fa5fF")};
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        char bytes[4];
        size_t len = 0;
        assert_true(hex_decode(rows[i], bytes, sizeof(bytes), &len));
        assert_int_equal(len, 4);
        assert_memory_equal(bytes, "\x00\x9f\xa5\xff", 4);
    }
}

static void malformed_hex_is_refused(void **state)
{
    (void)state;
    static const Slice rows[] = {SLICE_INIT("0"),    SLICE_INIT("0g"),        SLICE_INIT("g0"),
                                 SLICE_INIT("0x"),   SLICE_INIT(" 0"),        SLICE_INIT("00\0"),
                                 SLICE_INIT("/0:0"), SLICE_INIT("@0`0"),      SLICE_INIT("G0"),
                                 SLICE_INIT("000"),  SLICE_INIT("0000000000")};
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        char bytes[4];
        size_t len = 77;
        assert_false(hex_decode(rows[i], bytes, sizeof(bytes), &len));
        assert_int_equal(len, 77);
    }
}

static void percent_sequences_become_bytes(void **state)
{
    (void)state;
    static const struct {
        Slice in, out;
    } rows[] = {
        {SLICE_INIT(""), SLICE_INIT("")},
        {SLICE_INIT("a+b c"), SLICE_INIT("a+b c")},
        {SLICE_INIT("%41"), SLICE_INIT("A")},
        {SLICE_INIT("a%2Fb%2fc"), SLICE_INIT("a/b/c")},
        {SLICE_INIT("%00%ff"), SLICE_INIT("\0\xff")},
        {SLICE_INIT("%2541"), SLICE_INIT("%41")}, /* once, not twice */
        {SLICE_INIT("%c3%a4x"), SLICE_INIT("\xc3\xa4x")},
    };
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 1024);
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        Slice out = SLICE_EMPTY;
        assert_true(percent_decode(&arena, rows[i].in, &out));
        assert_true(slice_equal(out, rows[i].out));
    }
}

static void text_without_percent_is_returned_as_it_is(void **state)
{
    (void)state;
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 1024);
    Slice in = SLICE("dbs/a");
    Slice out = SLICE_EMPTY;
    assert_true(percent_decode(&arena, in, &out));
    assert_ptr_equal(out.ptr, in.ptr);
    assert_int_equal(arena_used(&arena), 0);
}

static void broken_percent_sequences_are_refused(void **state)
{
    (void)state;
    static const Slice rows[] = {SLICE_INIT("%"),   SLICE_INIT("a%"),  SLICE_INIT("%4"),
                                 SLICE_INIT("%4g"), SLICE_INIT("%g4"), SLICE_INIT("%%41"),
                                 SLICE_INIT("% 4"), SLICE_INIT("%41%")};
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 1024);
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        Slice out = SLICE("untouched");
        assert_false(percent_decode(&arena, rows[i], &out));
        assert_true(slice_equal(out, SLICE("untouched")));
    }
}

static void percent_encoding_keeps_what_it_is_told_to_keep(void **state)
{
    (void)state;
    static const struct {
        Slice in, keep, out;
    } rows[] = {
        {SLICE_INIT("azAZ09"), {NULL, 0}, SLICE_INIT("azAZ09")},
        {SLICE_INIT("a-b/c"), {NULL, 0}, SLICE_INIT("a%2Db%2Fc")},
        {SLICE_INIT("a-b/c"), SLICE_INIT("-"), SLICE_INIT("a-b%2Fc")},
        {SLICE_INIT("%\0\xff"), SLICE_INIT("-"), SLICE_INIT("%25%00%FF")},
        {SLICE_INIT("type=master&sig=+/="),
         {NULL, 0},
         SLICE_INIT("type%3Dmaster%26sig%3D%2B%2F%3D")},
        {{NULL, 0}, {NULL, 0}, SLICE_INIT("")},
    };
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 1024);
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        Slice out = percent_encode(&arena, rows[i].in, rows[i].keep);
        assert_true(slice_equal(out, rows[i].out));
        Slice back = SLICE_EMPTY;
        assert_true(percent_decode(&arena, out, &back));
        assert_true(slice_equal(back, rows[i].in));
    }
}

static void big_endian_numbers_sort_as_bytes(void **state)
{
    (void)state;
    static const uint64_t rows[] = {
        0,          1,         255,       256, 0x01020304, INT32_MAX, (uint64_t)INT32_MAX + 1,
        UINT32_MAX, INT64_MAX, UINT64_MAX};
    uint8_t previous[8] = {0};
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        uint8_t bytes[8];
        be64_put(bytes, rows[i]);
        assert_true(be64_get(bytes) == rows[i]);
        assert_true(i == 0 || memcmp(previous, bytes, 8) < 0);
        memcpy(previous, bytes, 8);
        uint8_t four[4];
        be32_put(four, (uint32_t)rows[i]);
        assert_true(be32_get(four) == (uint32_t)rows[i]);
    }
    uint8_t bytes[5] = {0}; /* off its alignment, as in the middle of a key */
    be32_put(bytes + 1, 0x01020304);
    assert_memory_equal(bytes, "\0\1\2\3\4", 5);
}

static void guids_and_numbers_print_as_printf_does(void **state)
{
    (void)state;
    static const uint64_t rows[] = {
        0, 9, 10, 0x0123456789ABCDEF, 0xFEDCBA9876543210, UINT64_MAX, UINT64_MAX / 10,
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        uint64_t high = rows[i];
        uint64_t low = rows[ARRAY_COUNT(rows) - 1 - i];
        char expected[64];
        char guid[GUID_LEN];
        (void)snprintf(expected, sizeof(expected), "%08llx-%04llx-%04llx-%04llx-%012llx",
                       (unsigned long long)high >> 32, (unsigned long long)high >> 16 & 0xFFFF,
                       (unsigned long long)high & 0xFFFF, (unsigned long long)low >> 48,
                       (unsigned long long)low & 0xFFFFFFFFFFFF);
        guid_print(high, low, guid);
        assert_memory_equal(guid, expected, GUID_LEN);
        char number[U64_TEXT_MAX];
        int len = snprintf(expected, sizeof(expected), "%llu", (unsigned long long)high);
        assert_int_equal(u64_print(high, number), len);
        assert_memory_equal(number, expected, (size_t)len);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(base64_matches_the_examples_of_rfc_4648),
        cmocka_unit_test(resource_ids_write_a_dash_for_the_slash),
        cmocka_unit_test(base64_that_is_not_strict_is_refused),
        cmocka_unit_test(base64_that_does_not_fit_is_refused),
        cmocka_unit_test(random_bytes_come_back_from_base64_and_hex),
        cmocka_unit_test(hex_is_printed_in_upper_case_and_read_in_both),
        cmocka_unit_test(malformed_hex_is_refused),
        cmocka_unit_test(percent_sequences_become_bytes),
        cmocka_unit_test(text_without_percent_is_returned_as_it_is),
        cmocka_unit_test(broken_percent_sequences_are_refused),
        cmocka_unit_test(percent_encoding_keeps_what_it_is_told_to_keep),
        cmocka_unit_test(big_endian_numbers_sort_as_bytes),
        cmocka_unit_test(guids_and_numbers_print_as_printf_does),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
