/* bulk_body_test.c - bodies of bulk requests, and answers of every kind. */
#include "transfer/bulk_body.h"

#include "json/json_testing.h"

static void bodies_are_arrays_of_operations(void **state)
{
    (void)state;
    AUTO(buf_done) Buf body;
    buf_init(&body, 10000);
    bulk_add(&body, SLICE("[\"p\"]"), SLICE("{\"id\":\"1\"}"));
    size_t first = body.len;
    bulk_add(&body, SLICE("[1,{}]"), SLICE("{\"id\":\"2\"}"));
    assert_in_range(first, 15, BULK_OPERATION_BYTES + 15);
    bulk_end(&body);
    assert_slice(buf_view(&body),
                 row_text(&test_arena,
                          "[{'operationType':'Upsert','partitionKey':'[\\'p\\']','resourceBody':"
                          "{'id':'1'}},{'operationType':'Upsert','partitionKey':'[1,{}]',"
                          "'resourceBody':{'id':'2'}}]"));
}

static void results_are_read(void **state)
{
    (void)state;
    BulkResult results[2];
    Slice body = row_text(&test_arena, "[{'statusCode':201,'requestCharge':6.5,'eTag':'x'},"
                                       "{'statusCode':429,'subStatusCode':3200,"
                                       "'retryAfterMilliseconds':12,'message':'slow\\r\\ndown'}]");
    assert_ok(bulk_answer_parse(&test_arena, body, 2, results, err));
    assert_int_equal(results[0].status, 201);
    assert_true(results[0].charge == 6.5);
    assert_int_equal(results[1].status, 429);
    assert_int_equal(results[1].sub_status, 3200);
    assert_int_equal(results[1].retry_after_ms, 12);
    assert_slice_text(results[1].message, "slow");
}

static void other_answers_are_refused_or_harmless(void **state)
{
    (void)state;
    static const char *const refused[] = {"", "{}", "[]", "[1", "[{},{}]"};
    for (size_t i = 0; i < ARRAY_COUNT(refused); i++) {
        BulkResult result;
        Error err;
        assert_status(bulk_answer_parse(&test_arena, slice_from_cstr(refused[i]), 1, &result, &err),
                      STATUS_UNAVAILABLE);
    }
    static const char *const odd[] = {"[1]", "[{}]", "[{'statusCode':-1,'requestCharge':'x'}]",
                                      "[{'statusCode':1e300,'message':7}]"};
    for (size_t i = 0; i < ARRAY_COUNT(odd); i++) {
        BulkResult result;
        assert_ok(bulk_answer_parse(&test_arena, row_text(&test_arena, odd[i]), 1, &result, err));
        assert_int_equal(result.status, 0);
        assert_int_equal(result.message.len, 0);
    }
    assert_slice_text(answer_message(&test_arena, SLICE("{\"message\":\"no\\nway\"}")), "no");
    assert_int_equal(answer_message(&test_arena, SLICE("<html>")).len, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, test_arena_setup, test_arena_teardown)
        TEST(bodies_are_arrays_of_operations),
        TEST(results_are_read),
        TEST(other_answers_are_refused_or_harmless),
#undef TEST
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
