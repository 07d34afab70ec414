/* error_test.c - messages that are cut instead of failing (I6), and the table of statuses. */
#include "base/error.h"

#include "base/testing.h"

#include <errno.h>
#include <string.h>

static void setting_an_error_fills_every_field(void **state)
{
    (void)state;
    Error err;
    memset(&err, 0xff, sizeof(err));
    Status status = error_set(&err, STATUS_NOT_FOUND, SUB_OWNER_NOT_FOUND, "no '%s'", "x");
    assert_int_equal(status, STATUS_NOT_FOUND);
    assert_int_equal(err.status, STATUS_NOT_FOUND);
    assert_int_equal(err.sub, SUB_OWNER_NOT_FOUND);
    assert_int_equal(err.retry_after_ms, 0);
    assert_string_equal(err.message, "no 'x'");
}

static void system_errors_carry_the_words_of_the_system(void **state)
{
    (void)state;
    Error err;
    memset(&err, 0xff, sizeof(err));
    Status status = error_set_errno(&err, ENOENT, "cannot open '%s'", "/x");
    assert_int_equal(status, STATUS_IO);
    assert_int_equal(err.status, STATUS_IO);
    assert_int_equal(err.sub, SUB_NONE);
    assert_int_equal(err.retry_after_ms, 0);
    assert_string_equal(err.message, "cannot open '/x': No such file or directory");
}

static void context_goes_in_front_and_keeps_the_status(void **state)
{
    (void)state;
    Error err = {0};
    Status status = error_set(&err, STATUS_THROTTLED, SUB_REQUEST_RATE_TOO_LARGE, "slow down");
    assert_int_equal(status, STATUS_THROTTLED);
    err.retry_after_ms = 17;
    status = error_context(&err, "operation %d", 3);
    assert_int_equal(status, STATUS_THROTTLED);
    assert_int_equal(err.sub, SUB_REQUEST_RATE_TOO_LARGE);
    assert_int_equal(err.retry_after_ms, 17);
    assert_string_equal(err.message, "operation 3: slow down");
}

static void long_messages_are_cut_and_terminated(void **state)
{
    (void)state;
    char text[2000];
    memset(text, 'x', sizeof(text));
    text[sizeof(text) - 1] = '\0';
    Error err = {0};
    Status status = error_set(&err, STATUS_BAD_REQUEST, SUB_NONE, "%s", text);
    assert_int_equal(status, STATUS_BAD_REQUEST);
    assert_int_equal(strlen(err.message), sizeof(err.message) - 1);
    status = error_context(&err, "%s", "in front");
    assert_int_equal(status, STATUS_BAD_REQUEST);
    assert_int_equal(strlen(err.message), sizeof(err.message) - 1);
    assert_memory_equal(err.message, "in front: xxx", 13);
    status = error_context(&err, "%s", text);
    assert_int_equal(status, STATUS_BAD_REQUEST);
    assert_int_equal(strlen(err.message), sizeof(err.message) - 1);
    status = error_set_errno(&err, EIO, "%s", text);
    assert_int_equal(status, STATUS_IO);
    assert_int_equal(strlen(err.message), sizeof(err.message) - 1);
}

static Status fail_with(Status status, Error *err)
{
    return status == STATUS_OK ? status : error_set(err, status, SUB_NONE, "failed");
}

static Status count_after(Status status, int *count, Error *err)
{
    TRY(fail_with(status, err));
    (*count)++;
    return STATUS_OK;
}

static void try_returns_failures_and_goes_on_otherwise(void **state)
{
    (void)state;
    Error err = {0};
    int count = 0;
    assert_int_equal(count_after(STATUS_OK, &count, &err), STATUS_OK);
    assert_int_equal(count, 1);
    assert_int_equal(count_after(STATUS_GONE, &count, &err), STATUS_GONE);
    assert_int_equal(count, 1);
}

static void statuses_have_the_numbers_of_the_protocol(void **state)
{
    (void)state;
    static const struct {
        Status status;
        int http;
        const char *code;
    } rows[] = {
        {STATUS_OK, 200, "Ok"},
        {STATUS_BAD_REQUEST, 400, "BadRequest"},
        {STATUS_NOT_FOUND, 404, "NotFound"},
        {STATUS_CONFLICT, 409, "Conflict"},
        {STATUS_GONE, 410, "Gone"},
        {STATUS_PRECONDITION_FAILED, 412, "PreconditionFailed"},
        {STATUS_TOO_LARGE, 413, "RequestEntityTooLarge"},
        {STATUS_THROTTLED, 429, "TooManyRequests"},
        {STATUS_CORRUPT, 500, "InternalServerError"},
        {STATUS_IO, 503, "ServiceUnavailable"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        assert_int_equal(status_http(rows[i].status), rows[i].http);
        assert_string_equal(status_code(rows[i].status), rows[i].code);
    }
    assert_int_equal(sub_number(SUB_NONE), 0);
    assert_int_equal(sub_number(SUB_OWNER_NOT_FOUND), 1003);
    assert_int_equal(sub_number(SUB_PARTITION_KEY_RANGE_GONE), 1002);
    assert_int_equal(sub_number(SUB_REQUEST_RATE_TOO_LARGE), 3200);
}

static void every_row_of_the_table_is_complete(void **state)
{
    (void)state;
    for (int i = 0; i < STATUS_COUNT; i++) {
        assert_in_range(status_http((Status)i), 200, 599);
        assert_true(strlen(status_code((Status)i)) > 0);
    }
    /* docs/errors.md is made of these: whole sentences. */
    static const char *const sentences[] = {
#define STATUS_ROW(name, http, code, meaning, advice) meaning, advice,
#define SUB_ROW(name, kind, number, meaning, advice)  meaning, advice,
#include "base/status.def"
    };
    assert_int_equal(ARRAY_COUNT(sentences), 2 * (STATUS_COUNT + SUB_COUNT));
    for (size_t i = 0; i < ARRAY_COUNT(sentences); i++) {
        size_t len = strlen(sentences[i]);
        assert_true(len > 5 && sentences[i][len - 1] == '.');
    }
    /* A reason belongs to one kind, and its number means one thing for that kind. */
    static const Status kinds[] = {
#define SUB_ROW(name, kind, number, meaning, advice) [SUB_##name] = STATUS_##kind,
#include "base/status.def"
    };
    for (int i = 0; i < SUB_COUNT; i++) {
        for (int j = 0; j < i; j++) {
            assert_true(kinds[i] != kinds[j] ||
                        sub_number((SubStatus)i) != sub_number((SubStatus)j));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(setting_an_error_fills_every_field),
        cmocka_unit_test(system_errors_carry_the_words_of_the_system),
        cmocka_unit_test(context_goes_in_front_and_keeps_the_status),
        cmocka_unit_test(long_messages_are_cut_and_terminated),
        cmocka_unit_test(try_returns_failures_and_goes_on_otherwise),
        cmocka_unit_test(statuses_have_the_numbers_of_the_protocol),
        cmocka_unit_test(every_row_of_the_table_is_complete),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
