/* batch_binary_test.c - the binary form of a batch: bytes of .NET both ways, and damaged ones. */
#include "api/items/batch_testing_int.h"

#include "base/encoding.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

/* Create {"id":"a","pk":"p"} and Delete "b". */
#define REQUEST                                                            \
    "81f0d8ff7f010a000000"                                                 \
    "81f1d8ff7f220000001b7cd88b"                                           \
    "817054e17f430000000002000000137b226964223a2261222c22706b223a2270227d" \
    "81f1d8ff7f10000000dd0394ca"                                           \
    "817054e17f1304000000020000000162"

/* 201 with the etag "e1" for 5.5 units, and 404 for 1. */
#define ANSWER                                                   \
    "81f0d8ff7f010a000000"                                       \
    "81f1d8ff7f1d00000004a3bf68"                                 \
    "817154e17f07c900000000000000042265312210060000000000001640" \
    "81f1d8ff7f18000000419088e9"                                 \
    "817154e17f0394010000000000001006000000000000f03f"

static Arena arena;

static int set_up(void **state)
{
    (void)state;
    arena_init(&arena, 16 << 10);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    arena_done(&arena);
    return 0;
}

static Slice from_hex(const char *text)
{
    Slice hex = slice_from_cstr(text);
    char *bytes = arena_alloc(&arena, hex.len / 2 + 1);
    size_t len;
    assert_true(hex_decode(hex, bytes, hex.len / 2, &len));
    return slice_make(bytes, len);
}

/* A body with one record, whose row is given in hex. */
static Slice body_of_row(const char *row)
{
    AUTO(buf_done) Buf body;
    buf_init(&body, 4096);
    testing_segment(&body);
    testing_record(&body, from_hex(row));
    return arena_copy(&arena, buf_view(&body));
}

static Status decode(Slice body, BatchOperation **out, size_t *count, Error *err)
{
    BatchForm form = BATCH_FORM_JSON;
    Status status = batch_decode(&arena, body, &form, out, count, err);
    assert_int_equal(form, status == STATUS_OK ? BATCH_FORM_BINARY : BATCH_FORM_JSON);
    return status;
}

static void assert_refused(Slice body, const char *message)
{
    BatchOperation *operations = NULL;
    size_t count = 77;
    Error err;
    assert_int_equal(decode(body, &operations, &count, &err), STATUS_BAD_REQUEST);
    if (strstr(err.message, message) == NULL)
        fail_msg("found '%s', expected '%s'", err.message, message);
    assert_null(operations);
    assert_int_equal(count, 77);
}

static void a_request_of_the_sdk_is_decoded(void **state)
{
    (void)state;
    BatchOperation *found;
    size_t count;
    Error err;
    assert_int_equal(decode(from_hex(REQUEST), &found, &count, &err), STATUS_OK);
    assert_int_equal(count, 2);
    assert_int_equal(found[0].op, BATCH_CREATE);
    assert_int_equal(found[0].id.len, 0);
    assert_false(found[0].has_partition_key);
    assert_true(
        slice_equal(json_print_arena(&arena, found[0].body), SLICE("{\"id\":\"a\",\"pk\":\"p\"}")));
    assert_int_equal(found[0].body_bytes, 19);
    assert_int_equal(found[0].if_match.len, 0);
    assert_int_equal(found[0].if_none_match.len, 0);
    assert_int_equal(found[0].indexing, BATCH_INDEXING_DEFAULT);
    assert_false(found[0].minimal);
    assert_int_equal(found[1].op, BATCH_DELETE);
    assert_true(slice_equal(found[1].id, SLICE("b")));
    assert_true(json_is(found[1].body, JSON_UNDEFINED));
    assert_int_equal(found[1].body_bytes, 0);
}

static void the_encoder_of_these_tests_writes_what_the_sdk_writes(void **state)
{
    (void)state;
    BatchOperation *found;
    size_t count;
    Error err;
    Slice body = from_hex(REQUEST);
    assert_int_equal(decode(body, &found, &count, &err), STATUS_OK);
    AUTO(buf_done) Buf again;
    buf_init(&again, 4096);
    testing_encode_binary(found, count, &arena, &again);
    assert_true(slice_equal(buf_view(&again), body));
}

/* What is decoded must not point into the body, which goes before the batch has run. */
static void operations_outlive_the_body(void **state)
{
    (void)state;
    Slice body = body_of_row("817054e17f17"
                             "0200000002000000"
                             "055b2270225d"
                             "0162"
                             "140903226522");
    BatchOperation *found;
    size_t count;
    Error err;
    assert_int_equal(decode(body, &found, &count, &err), STATUS_OK);
    memset(UNCONST(char, body.ptr), 'x', body.len);
    assert_int_equal(found->op, BATCH_READ);
    assert_true(slice_equal(found->partition_key, SLICE("[\"p\"]")));
    assert_true(slice_equal(found->id, SLICE("b")));
    assert_true(slice_equal(found->if_match, SLICE("\"e\"")));
}

#define DELETE_B "817054e17f1304000000020000000162"

static void sparse_fields_come_in_any_order(void **state)
{
    (void)state;
    static const struct {
        const char *sparse;
        const char *if_match;
        const char *if_none_match;
        BatchIndexing indexing;
        bool minimal;
    } rows[] = {
        {"", "", "", BATCH_INDEXING_DEFAULT, false},
        {"14090165", "e", "", BATCH_INDEXING_DEFAULT, false},
        {"140a0165", "", "e", BATCH_INDEXING_DEFAULT, false},
        {"030c", "", "", BATCH_INDEXING_DEFAULT, true},
        {"020c", "", "", BATCH_INDEXING_DEFAULT, false},
        {"1408074578636c756465", "", "", BATCH_INDEXING_EXCLUDE, false},
        {"030c140a016614090165140807496e636c756465", "e", "f", BATCH_INDEXING_INCLUDE, true},
        {"14898000"
         "810065",
         "e", "", BATCH_INDEXING_DEFAULT, false}, /* numbers longer than they need be */
        /* Paths in full: nothing this schema knows, of every type that can be skipped. */
        {"010e78", "", "", BATCH_INDEXING_DEFAULT, false},
        {"020e78030e78", "", "", BATCH_INDEXING_DEFAULT, false},
        {"050e78ff090e78ff", "", "", BATCH_INDEXING_DEFAULT, false},
        {"060e78ffff0a0e78ffff", "", "", BATCH_INDEXING_DEFAULT, false},
        {"070e78ffffffff0b0e78ffffffff0f0e78ffffffff", "", "", BATCH_INDEXING_DEFAULT, false},
        {"080e78ffffffffffffffff0c0e78ffffffffffffffff", "", "", BATCH_INDEXING_DEFAULT, false},
        {"100e78ffffffffffffffff120e78ffffffffffffffff", "", "", BATCH_INDEXING_DEFAULT, false},
        {"170e78ffffffffffffffff180e78ffffffffffffffffffffffff", "", "", BATCH_INDEXING_DEFAULT,
         false},
        {"110e78ffffffffffffffffffffffffffffffff", "", "", BATCH_INDEXING_DEFAULT, false},
        {"130e78ffffffffffffffffffffffffffffffff", "", "", BATCH_INDEXING_DEFAULT, false},
        {"160e78ffffffffffffffffffffffffffffffff", "", "", BATCH_INDEXING_DEFAULT, false},
        {"0d0e78ff7f0e0e78ffffffffffffffffff01", "", "", BATCH_INDEXING_DEFAULT, false},
        {"140e7802ffff150d02ffff030c", "", "", BATCH_INDEXING_DEFAULT, true},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        Slice row = arena_format(&arena, "%s%s", DELETE_B, rows[i].sparse);
        BatchOperation *found;
        size_t count;
        Error err;
        if (decode(body_of_row(arena_cstr(&arena, row)), &found, &count, &err) != STATUS_OK)
            fail_msg("row %zu: %s", i, err.message);
        assert_int_equal(count, 1);
        assert_true(slice_equal(found->if_match, slice_from_cstr(rows[i].if_match)));
        assert_true(slice_equal(found->if_none_match, slice_from_cstr(rows[i].if_none_match)));
        assert_int_equal(found->indexing, rows[i].indexing);
        assert_int_equal(found->minimal, rows[i].minimal);
    }
}

static void a_segment_may_carry_a_comment(void **state)
{
    (void)state;
    BatchOperation *found;
    size_t count;
    Error err;
    Slice body = from_hex("81f0d8ff7f010e00000014020161"
                          "81f1d8ff7f10000000dd0394ca" DELETE_B);
    assert_int_equal(decode(body, &found, &count, &err), STATUS_OK);
    assert_int_equal(count, 1);
}

static void rows_that_are_no_operation_are_refused_and_named(void **state)
{
    (void)state;
    static const struct {
        const char *row;
        const char *message;
    } rows[] = {
        {"", "operation 0: the operation is cut short"},
        {"827054e17f1304000000020000000162", "the operation has version 0x82"},
        {"817154e17f1304000000020000000162", "schema 2145473649, expected"},
        {"817054e17f1204000000020000000162", "'operationType' and 'resourceType' must"},
        {"817054e17f1104000000020000000162", "'operationType' and 'resourceType' must"},
        {"817054e17f1303000000020000000162", "'operationType' is 3, which is not"},
        {"817054e17f13ffffffff020000000162", "which is not an operation of a batch"},
        {"817054e17f1304000000030000000162", "'resourceType' is 3, expected 2"},
        {"817054e17f030400000002000000", "Delete needs an 'id'"},
        {"817054e17f13040000000200000000", "Delete needs an 'id'"},
        {"817054e17f13040000000200000001ff", "'id' is not UTF-8"},
        {"817054e17f07000000000200000001ff", "'partitionKey' is not UTF-8"},
        {"817054e17f1305000000020000000162", "Replace needs a 'resourceBody'"},
        {"817054e17f530500000002000000016200", "Replace needs a 'resourceBody'"},
        {"817054e17f430500000002000000027b7d", "Replace needs an 'id'"},
        {"817054e17f430100000002000000027b7d", "Patch needs an 'id'"},
        {"817054e17f1301000000020000000162", "Patch needs a 'resourceBody'"},
        {"817054e17f030000000002000000", "Create needs a 'resourceBody'"},
        {"817054e17f031400000002000000", "Upsert needs a 'resourceBody'"},
        {"817054e17f430000000002000000025b5d", "'resourceBody' of Create must be an"},
        {"817054e17f4314000000020000000137", "'resourceBody' of Upsert must be an"},
        {"817054e17f53010000000200000001620137", "must be an object or an array"},
        {"817054e17f430000000002000000017b", "'resourceBody': "},
        {"817054e17f4300000000020000000280ea", "'resourceBody' is binary JSON"},
        {"817054e17f1b040000000200000001ff0162", "'effectivePartitionKey' is not sup"},
        {"817054e17f330400000002000000016201ff", "'binaryId' is not supported"},
        {"817054e17f9304000000020000000162", "the operation has unknown fields"},
        {"817054e17f1304000000020000000262", "id is cut short"},
        {"817054e17f130400000002000000ffffffffffffffffff01", "id is cut short"},
        {"817054e17f130400000002000000ffffffffffffffffff02", "id is cut short"},
        {"817054e17f1304000000020000008080808080808080808000", "id is cut short"},
        {DELETE_B "14", "a sparse field is cut short"},
        {DELETE_B "1480", "a sparse field is cut short"},
        {DELETE_B "140902", "ifMatch is cut short"},
        {DELETE_B "140901ff", "'ifMatch' is not UTF-8"},
        {DELETE_B "15090165", "'ifMatch' has the unexpected type 0x15"},
        {DELETE_B "030a", "'ifNoneMatch' has the unexpected type 0x03"},
        {DELETE_B "14080165", "'indexingDirective' is 'e', expected"},
        {DELETE_B "0708ffffffff", "'indexingDirective' has the unexpected type 0x07"},
        {DELETE_B "140c0174", "'minimalReturnPreference' has the unexpected type 0x14"},
        {DELETE_B "010c", "'minimalReturnPreference' has the unexpected type 0x01"},
        {DELETE_B "070b05000000", "'timeToLiveInSeconds' is not supported"},
        {DELETE_B "030c020c", "path 12 is there twice"},
        {DELETE_B "1409016514090165", "path 9 is there twice"},
        {DELETE_B "14050163", "path 5 cannot be a sparse field"},
        {DELETE_B "1400", "path 0 cannot be a sparse field"},
        {DELETE_B "030e", "an unknown field of type 0x03 cannot be skipped"},
        {DELETE_B "070e78ffffff", "an unknown field of type 0x07 cannot be skipped"},
        {DELETE_B "140e7802ff", "an unknown field of type 0x14 cannot be skipped"},
        {DELETE_B "0e0e78ff", "an unknown field of type 0x0e cannot be skipped"},
        {DELETE_B "000d", "an unknown field of type 0x00 cannot be skipped"},
        {DELETE_B "040d", "an unknown field of type 0x04 cannot be skipped"},
        {DELETE_B "1e0d", "an unknown field of type 0x1e cannot be skipped"},
        {DELETE_B "ff0d", "an unknown field of type 0xff cannot be skipped"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++)
        assert_refused(body_of_row(rows[i].row), rows[i].message);
}

static void streams_that_are_no_batch_are_refused_and_named(void **state)
{
    (void)state;
    static const struct {
        const char *body;
        const char *message;
    } rows[] = {
        {"81", "the header of the batch is cut short"},
        {"81f0d8ff7f010a0000", "the header of the batch is cut short"},
        {"81f1d8ff7f010a000000", "the header of the batch has version 0x81 and schema 2147473649"},
        {"81f0d8ff7f000a000000", "the header of the batch has a wrong length"},
        {"81f0d8ff7f0109000000", "the header of the batch has a wrong length"},
        {"81f0d8ff7f01ffffffff", "the header of the batch has a wrong length"},
        {"81f0d8ff7f010a00000000", "operation 0: the record is cut short"},
        {"81f0d8ff7f010a00000081f1d8ff7f11000000dd0394ca" DELETE_B, "the record is cut short"},
        {"81f0d8ff7f010a00000081f1d8ff7fffffffffdd0394ca" DELETE_B, "the record is cut short"},
        {"81f0d8ff7f010a00000081f1d8ff7f10000000dd0394cb" DELETE_B,
         "operation 0: the checksum of the record is 0xcb9403dd, expected 0xca9403dd"},
        {REQUEST "00", "operation 2: the record is cut short"},
        {REQUEST "81f0d8ff7f010a000000", "operation 2: the record has version 0x81 and schema"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++)
        assert_refused(from_hex(rows[i].body), rows[i].message);
}

static void a_request_that_is_cut_is_refused(void **state)
{
    (void)state;
    Slice whole = from_hex(REQUEST);
    size_t head_end = 10; /* no operations: the caller decides whether that is a batch */
    size_t first_end = head_end + 13 + 34;
    for (size_t len = 1; len < whole.len; len++) {
        BatchOperation *found;
        size_t count;
        Error err;
        Status status = decode(slice_first(whole, len), &found, &count, &err);
        bool is_whole = len == head_end || len == first_end;
        assert_int_equal(status, is_whole ? STATUS_OK : STATUS_BAD_REQUEST);
    }
}

static void a_request_with_any_bit_wrong_is_refused(void **state)
{
    (void)state;
    Slice whole = from_hex(REQUEST);
    char *damaged = arena_cstr(&arena, whole);
    for (size_t bit = 0; bit < whole.len * 8; bit++) {
        BatchOperation *found;
        size_t count;
        Error err;
        damaged[bit / 8] ^= (char)(1 << bit % 8);
        assert_int_equal(decode(slice_make(damaged, whole.len), &found, &count, &err),
                         STATUS_BAD_REQUEST);
        damaged[bit / 8] ^= (char)(1 << bit % 8);
    }
}

static void assert_answer(const BatchResult *results, size_t count, const char *hex)
{
    AUTO(buf_done) Buf out;
    buf_init(&out, 4096);
    batch_encode(BATCH_FORM_BINARY, results, count, &out);
    assert_false(buf_full(&out));
    Slice expected = from_hex(hex);
    assert_int_equal(out.len, expected.len);
    assert_memory_equal(out.ptr, expected.ptr, expected.len);
}

static void an_answer_has_the_bytes_that_the_sdk_reads(void **state)
{
    (void)state;
    static const BatchResult results[] = {
        {.status = 201, .request_charge = 5.5, .etag = SLICE_INIT("\"e1\"")},
        {.status = 404, .request_charge = 1},
    };
    assert_answer(results, ARRAY_COUNT(results), ANSWER);
}

/* Rows written by hand; without their checksums, which the example above covers. */
static void every_field_of_a_result_has_its_place(void **state)
{
    (void)state;
    static const struct {
        BatchResult result;
        const char *row;
    } rows[] = {
        {{.status = 200, .request_charge = 1, .resource_body = SLICE_INIT("{}")},
         "817154e17f0bc80000000000000002"
         "7b7d1006000000000000f03f"},
        {{.status = 429, .sub_status = 3200, .retry_after_ms = 1000},
         "817154e17f03ad010000800c00000b05e803000010060000000000000000"},
        {{.status = 400, .message = SLICE_INIT("no")},
         "817154e17f0b9001000000000000107b226d657373616765223a226e6f227d"
         "10060000000000000000"},
        /* An item is kept, and the message left out. */
        {{.status = 412,
          .etag = SLICE_INIT("e"),
          .resource_body = SLICE_INIT("{}"),
          .message = SLICE_INIT("no")},
         "817154e17f0f9c010000000000000165027b7d10060000000000000000"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        AUTO(buf_done) Buf out;
        buf_init(&out, 4096);
        batch_encode(BATCH_FORM_BINARY, &rows[i].result, 1, &out);
        Slice expected = from_hex(rows[i].row);
        Slice row = slice_from(buf_view(&out), SEGMENT_BYTES + RECORD_HEADER_BYTES);
        assert_int_equal(row.len, expected.len);
        assert_memory_equal(row.ptr, expected.ptr, expected.len);
    }
}

static void an_answer_that_does_not_fit_says_so(void **state)
{
    (void)state;
    static const BatchResult results[] = {
        {.status = 201, .request_charge = 5.5, .etag = SLICE_INIT("\"e1\"")},
        {.status = 404, .request_charge = 1},
    };
    size_t whole = (sizeof(ANSWER) - 1) / 2;
    for (size_t bytes_max = 1; bytes_max <= whole; bytes_max++) {
        AUTO(buf_done) Buf out;
        buf_init(&out, bytes_max);
        batch_encode(BATCH_FORM_BINARY, results, ARRAY_COUNT(results), &out);
        assert_int_equal(buf_full(&out), bytes_max < whole);
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(a_request_of_the_sdk_is_decoded),
        TEST(the_encoder_of_these_tests_writes_what_the_sdk_writes),
        TEST(operations_outlive_the_body),
        TEST(sparse_fields_come_in_any_order),
        TEST(a_segment_may_carry_a_comment),
        TEST(rows_that_are_no_operation_are_refused_and_named),
        TEST(streams_that_are_no_batch_are_refused_and_named),
        TEST(a_request_that_is_cut_is_refused),
        TEST(a_request_with_any_bit_wrong_is_refused),
        TEST(an_answer_has_the_bytes_that_the_sdk_reads),
        TEST(every_field_of_a_result_has_its_place),
        TEST(an_answer_that_does_not_fit_says_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
