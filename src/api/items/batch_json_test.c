/* batch_json_test.c - the JSON form of a batch: what SDKs send, what is refused, what they get. */
#include "api/items/batch_testing_int.h"

#include "base/testing.h"
#include "partition/item.h"

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

static BatchOperation *decode(const char *text, size_t expected_count)
{
    BatchForm form;
    BatchOperation *operations;
    size_t count;
    Error err;
    Status status = batch_decode(&arena, slice_from_cstr(text), &form, &operations, &count, &err);
    if (status != STATUS_OK)
        fail_msg("%s: %s", text, err.message);
    assert_int_equal(form, BATCH_FORM_JSON);
    assert_int_equal(count, expected_count);
    return operations;
}

static void every_field_of_an_operation_arrives(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        BatchOp op;
        const char *id;
        const char *partition_key; /* NULL if not sent */
        const char *body;
        const char *if_match;
        const char *if_none_match;
        BatchIndexing indexing;
        bool minimal;
    } rows[] = {
        {"{\"operationType\":\"Create\",\"resourceBody\":{\"id\":\"a\",\"pk\":\"p\"}}",
         BATCH_CREATE, "", NULL, "{\"id\":\"a\",\"pk\":\"p\"}", "", "", BATCH_INDEXING_DEFAULT,
         false},
        {"{ \"operationType\": \"Upsert\", \"resourceBody\": { \"x\": [ 1, 2.50 ] },"
         " \"ifMatch\": \"\\\"e\\\"\" }",
         BATCH_UPSERT, "", NULL, "{\"x\":[1,2.5]}", "\"e\"", "", BATCH_INDEXING_DEFAULT, false},
        {"{\"operationType\":\"Read\",\"id\":\"b\",\"ifNoneMatch\":\"\\\"e\\\"\"}", BATCH_READ, "b",
         NULL, "", "", "\"e\"", BATCH_INDEXING_DEFAULT, false},
        {"{\"operationType\":\"Replace\",\"id\":\"b\",\"resourceBody\":{},\"partitionKey\":"
         "\"[\\\"p\\\"]\",\"minimalReturnPreference\":true}",
         BATCH_REPLACE, "b", "[\"p\"]", "{}", "", "", BATCH_INDEXING_DEFAULT, true},
        {"{\"operationType\":\"Delete\",\"id\":\"\\u00e9\",\"partitionKey\":\"[{}]\"}",
         BATCH_DELETE, "é", "[{}]", "", "", "", BATCH_INDEXING_DEFAULT, false},
        {"{\"operationType\":\"Patch\",\"id\":\"d\",\"resourceBody\":{\"operations\":[]}}",
         BATCH_PATCH, "d", NULL, "{\"operations\":[]}", "", "", BATCH_INDEXING_DEFAULT, false},
        {"{\"operationType\":\"Patch\",\"id\":\"d\",\"resourceBody\":[{\"op\":\"remove\"}]}",
         BATCH_PATCH, "d", NULL, "[{\"op\":\"remove\"}]", "", "", BATCH_INDEXING_DEFAULT, false},
        {"{\"operationType\":\"uPSERT\",\"resourceBody\":{},\"indexingDirective\":\"exclude\"}",
         BATCH_UPSERT, "", NULL, "{}", "", "", BATCH_INDEXING_EXCLUDE, false},
        /* An id may come with a body that has one; null and what is not known count as absent. */
        {"{\"operationType\":\"Create\",\"id\":\"a\",\"resourceBody\":{},\"indexingDirective\":"
         "\"Include\",\"minimalReturnPreference\":false}",
         BATCH_CREATE, "a", NULL, "{}", "", "", BATCH_INDEXING_INCLUDE, false},
        {"{\"operationType\":\"Delete\",\"id\":\"c\",\"resourceBody\":null,\"ifMatch\":null,"
         "\"ifNoneMatch\":null,\"partitionKey\":null,\"minimalReturnPreference\":null,"
         "\"indexingDirective\":null,\"timeToLiveInSeconds\":null,\"comment\":{\"a\":1}}",
         BATCH_DELETE, "c", NULL, "", "", "", BATCH_INDEXING_DEFAULT, false},
        {"{\"operationType\":\"Read\",\"id\":\"c\",\"resourceBody\":7,\"indexingDirective\":\"\"}",
         BATCH_READ, "c", NULL, "", "", "", BATCH_INDEXING_DEFAULT, false},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        Slice text = arena_format(&arena, "[%s]", rows[i].text);
        const BatchOperation *found = decode(arena_cstr(&arena, text), 1);
        assert_int_equal(found->op, rows[i].op);
        assert_slice_text(found->id, rows[i].id);
        assert_int_equal(found->has_partition_key, rows[i].partition_key != NULL);
        assert_slice_text(found->partition_key,
                          rows[i].partition_key != NULL ? rows[i].partition_key : "");
        assert_slice_text(json_print_arena(&arena, found->body), rows[i].body);
        assert_int_equal(found->body_bytes, json_size(found->body));
        assert_slice_text(found->if_match, rows[i].if_match);
        assert_slice_text(found->if_none_match, rows[i].if_none_match);
        assert_int_equal(found->indexing, rows[i].indexing);
        assert_int_equal(found->minimal, rows[i].minimal);
    }
}

/* Of a body that may be near the limit the exact size of the text is known, however much longer
 * that is than the value: here each byte takes six. */
static void the_text_of_a_large_body_is_measured(void **state)
{
    (void)state;
    static char text[7 * ITEM_BYTES_MAX];
    static const size_t controls[] = {1000, ITEM_BYTES_MAX / 8, ITEM_BYTES_MAX / 6 + 1};
    for (size_t i = 0; i < ARRAY_COUNT(controls); i++) {
        size_t len = (size_t)sprintf(
            text, "[{\"operationType\":\"Create\",\"resourceBody\":{\"id\":\"a\",\"b\":\"");
        for (size_t k = 0; k < controls[i]; k++)
            len += (size_t)sprintf(text + len, "\\u0001");
        (void)sprintf(text + len, "\"}}]");
        const BatchOperation *found = decode(text, 1);
        size_t printed = json_print_arena(&arena, found->body).len;
        bool is_small = json_size(found->body) <= ITEM_BYTES_MAX / 8;
        assert_int_equal(is_small, i == 0);
        assert_int_equal(found->body_bytes, is_small ? json_size(found->body) : printed);
        assert_int_equal(found->body_bytes > ITEM_BYTES_MAX, i == 2);
    }
}

static void operations_keep_their_order(void **state)
{
    (void)state;
    const BatchOperation *found = decode("[{\"operationType\":\"Delete\",\"id\":\"a\"},"
                                         "{\"operationType\":\"Read\",\"id\":\"b\"},"
                                         "{\"operationType\":\"Delete\",\"id\":\"c\"}]",
                                         3);
    assert_slice_text(found[0].id, "a");
    assert_slice_text(found[1].id, "b");
    assert_slice_text(found[2].id, "c");
}

static void a_batch_may_be_empty(void **state)
{
    (void)state;
    (void)decode("[]", 0);
}

static void what_is_no_batch_is_refused_and_named(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *message;
    } rows[] = {
        {"", " at byte 0"},
        {"[", " at byte "},
        {"{}", "a batch must be an array"},
        {"null", "a batch must be an array"},
        {"[1]", "operation 0: an operation must be an object"},
        {"[null]", "operation 0: an operation must be an object"},
        {"[{}]", "operation 0: 'operationType' is '', expected"},
        {"[{\"operationType\":7}]", "operation 0: 'operationType' must be a string"},
        {"[{\"operationType\":\"Query\",\"id\":\"a\"}]", "operation 0: 'operationType' is 'Query'"},
        {"[{\"operationType\":\"Create\"}]", "operation 0: Create needs a 'resourceBody'"},
        {"[{\"operationType\":\"Upsert\",\"id\":\"a\"}]", "Upsert needs a 'resourceBody'"},
        {"[{\"operationType\":\"Upsert\",\"resourceBody\":null}]", "Upsert needs a 'resourceBody'"},
        {"[{\"operationType\":\"Replace\",\"id\":\"a\"}]", "Replace needs a 'resourceBody'"},
        {"[{\"operationType\":\"Patch\",\"id\":\"a\"}]", "Patch needs a 'resourceBody'"},
        {"[{\"operationType\":\"Replace\",\"resourceBody\":{\"id\":\"a\"}}]",
         "Replace needs an 'id'"},
        {"[{\"operationType\":\"Patch\",\"resourceBody\":{}}]", "Patch needs an 'id'"},
        {"[{\"operationType\":\"Read\"}]", "Read needs an 'id'"},
        {"[{\"operationType\":\"Delete\",\"id\":\"\"}]", "Delete needs an 'id'"},
        {"[{\"operationType\":\"Delete\",\"id\":\"a\"},{\"operationType\":\"Delete\",\"id\":7}]",
         "operation 1: 'id' must be a string"},
        {"[{\"operationType\":\"Create\",\"resourceBody\":[]}]",
         "'resourceBody' of Create must be an object"},
        {"[{\"operationType\":\"Replace\",\"id\":\"a\",\"resourceBody\":\"{}\"}]",
         "'resourceBody' of Replace must be an object"},
        {"[{\"operationType\":\"Patch\",\"id\":\"a\",\"resourceBody\":7}]",
         "'resourceBody' of Patch must be an object or an array"},
        {"[{\"operationType\":\"Read\",\"id\":\"a\",\"partitionKey\":[\"p\"]}]",
         "'partitionKey' must be a string"},
        {"[{\"operationType\":\"Read\",\"id\":\"a\",\"ifMatch\":1}]", "'ifMatch' must be a string"},
        {"[{\"operationType\":\"Read\",\"id\":\"a\",\"ifNoneMatch\":{}}]",
         "'ifNoneMatch' must be a string"},
        {"[{\"operationType\":\"Read\",\"id\":\"a\",\"minimalReturnPreference\":\"true\"}]",
         "'minimalReturnPreference' must be a boolean"},
        {"[{\"operationType\":\"Read\",\"id\":\"a\",\"indexingDirective\":\"Lazy\"}]",
         "'indexingDirective' is 'Lazy', expected Default, Include or Exclude"},
        {"[{\"operationType\":\"Read\",\"id\":\"a\",\"timeToLiveInSeconds\":5}]",
         "'timeToLiveInSeconds' is not supported in a batch"},
        {"[{\"operationType\":\"Read\",\"id\":\"a\",\"effectivePartitionKey\":\"05\"}]",
         "'effectivePartitionKey' is not supported in a batch"},
        {"[{\"operationType\":\"Read\",\"id\":\"a\",\"binaryId\":\"05\"}]",
         "'binaryId' is not supported in a batch"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        BatchForm form = BATCH_FORM_BINARY;
        BatchOperation *operations = NULL;
        size_t count = 77;
        Error err;
        Status status =
            batch_decode(&arena, slice_from_cstr(rows[i].text), &form, &operations, &count, &err);
        assert_int_equal(status, STATUS_BAD_REQUEST);
        if (strstr(err.message, rows[i].message) == NULL)
            fail_msg("%s: found '%s', expected '%s'", rows[i].text, err.message, rows[i].message);
        assert_int_equal(form, BATCH_FORM_BINARY);
        assert_null(operations);
        assert_int_equal(count, 77);
    }
}

static void results_are_printed_as_the_sdks_read_them(void **state)
{
    (void)state;
    static const struct {
        BatchResult result;
        const char *text;
    } rows[] = {
        {{.status = 201,
          .request_charge = 5.9,
          .etag = SLICE_INIT("\"e1\""),
          .resource_body = SLICE_INIT("{\"id\":\"a\"}")},
         "{\"statusCode\":201,\"requestCharge\":5.9,\"eTag\":\"\\\"e1\\\"\",\"resourceBody\":"
         "{\"id\":\"a\"}}"},
        {{.status = 204, .request_charge = 6}, "{\"statusCode\":204,\"requestCharge\":6}"},
        {{.status = 409, .request_charge = 1.2},
         "{\"statusCode\":409,\"subStatusCode\":0,\"requestCharge\":1.2}"},
        {{.status = 400, .sub_status = 1001, .request_charge = 1, .message = SLICE_INIT("a \"b\"")},
         "{\"statusCode\":400,\"subStatusCode\":1001,\"requestCharge\":1,\"message\":"
         "\"a \\\"b\\\"\"}"},
        {{.status = 429, .sub_status = 3200, .retry_after_ms = 4294967295},
         "{\"statusCode\":429,\"subStatusCode\":3200,\"requestCharge\":0,"
         "\"retryAfterMilliseconds\":4294967295}"},
        /* A message cut in the middle of a character. */
        {{.status = 400, .message = SLICE_INIT("caf\xc3")},
         "{\"statusCode\":400,\"subStatusCode\":0,\"requestCharge\":0,\"message\":\"caf?\"}"},
    };
    AUTO(buf_done) Buf all;
    AUTO(buf_done) Buf expected;
    buf_init(&all, 4096);
    buf_init(&expected, 4096);
    BatchResult results[ARRAY_COUNT(rows)];
    buf_byte(&expected, '[');
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        results[i] = rows[i].result;
        buf_format(&expected, "%s%s", i > 0 ? "," : "", rows[i].text);
    }
    buf_byte(&expected, ']');
    batch_encode(BATCH_FORM_JSON, results, ARRAY_COUNT(rows), &all);
    buf_byte(&expected, 0);
    assert_slice_text(buf_view(&all), expected.ptr);

    Json parsed;
    Error err;
    assert_int_equal(json_parse(&arena, buf_view(&all), &parsed, &err), STATUS_OK);
    assert_int_equal(json_count(parsed), ARRAY_COUNT(rows));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_field_of_an_operation_arrives, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_text_of_a_large_body_is_measured, set_up, tear_down),
        cmocka_unit_test_setup_teardown(operations_keep_their_order, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_batch_may_be_empty, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_is_no_batch_is_refused_and_named, set_up, tear_down),
        cmocka_unit_test_setup_teardown(results_are_printed_as_the_sdks_read_them, set_up,
                                        tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
