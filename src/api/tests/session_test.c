/* session_test.c - session tokens: what is understood, ignored and refused. */
#include "api/core/session_int.h"

#include "api/tests/testing_int.h"

static void a_token_says_what_was_seen_of_a_range(void **state)
{
    (void)state;
    static const struct {
        const char *token;
        uint32_t id;
        uint64_t lsn;
    } rows[] = {
        {"0:-1#1234", 0, 1234},
        {"0:-1#5280#1=5279#5=4000", 0, 5280},
        {"0:-1#5,1:-1#9", 1, 9},
        {"0:-1#5 , 1:-1#9", 1, 9},
        {"0:-1#5,1:-1#9", 2, 0},
        {"1:-1#9,1:-1#7", 1, 9}, /* the most of what is said */
        {"10:-1#3", 1, 0},
        {"1:-1#3", 10, 0},
        {"0:1234", 0, 1234}, /* the old form */
        {"0:-1#18446744073709551615", 0, UINT64_MAX},
        /* What SDKs make of tokens that they do not understand. */
        {"0:6#NaN", 0, 0},
        {"0:NaN#6", 0, 0},
        {"0:NaN#NaN", 0, 0},
        {"0:NaN", 0, 0},
        {"0:-1#-1", 0, 0},
        {"0:-1", 0, 0},
        {"0:-1#6#1=NaN", 0, 6},
        {"0:-1#6#1=-1", 0, 6},
        /* LSNs of different versions cannot be compared. */
        {"0:-2#6", 0, 0},
        {"0:0#6", 0, SESSION_LSN_UNREACHABLE},
        {"0:1#6#1=5", 0, SESSION_LSN_UNREACHABLE},
        {"0:7#1,0:-1#9", 0, SESSION_LSN_UNREACHABLE},
        {"1:7#1,0:-1#9", 0, 9},
        {"99999999999999999999:-1#6", 0, 0},
        {"4294967296:-1#6", 0, 0}, /* not range 0 with something above */
        {"", 0, 0},
        {",", 0, 0},
        {"0:-1#5,", 0, 5},
        {",,0:-1#5", 0, 5},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        uint64_t lsn = 77;
        Error err;
        PartitionRange range = {.id = rows[i].id};
        Status status = session_wanted(slice_from_cstr(rows[i].token), &range, &lsn, &err);
        if (status != STATUS_OK || lsn != rows[i].lsn)
            fail_msg("'%s': %s, %llu", rows[i].token, status_code(status), (unsigned long long)lsn);
    }
}

static void what_was_seen_of_a_range_was_seen_of_those_that_came_from_it(void **state)
{
    (void)state;
    static const uint32_t parents[] = {0, 2, 3, 10};
    static const PartitionRange range = {.id = 12, .parents = parents, .parent_count = 4};
    static const struct {
        const char *token;
        uint64_t lsn;
    } rows[] = {
        {"12:-1#7", 7},
        {"0:-1#5", 5},
        {"2:-1#6,3:-1#9", 9},
        {"10:-1#8,12:-1#7", 8},
        {"12:-1#8,10:-1#7", 8},
        /* others, of which some are children of ours */
        {"1:-1#5", 0},
        {"4:-1#5,11:-1#5,13:-1#5", 0},
        {"100:-1#5", 0},
        {"4294967298:-1#5", 0}, /* not range 2 with something above */
        {"2:6#NaN", 0},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        uint64_t lsn = 77;
        Error err;
        assert_int_equal(session_wanted(slice_from_cstr(rows[i].token), &range, &lsn, &err),
                         STATUS_OK);
        if (lsn != rows[i].lsn)
            fail_msg("'%s': %llu", rows[i].token, (unsigned long long)lsn);
    }
}

static void what_is_no_list_of_entries_is_refused(void **state)
{
    (void)state;
    static const char *const rows[] = {
        "x",
        "0",
        "-1#5",
        "0:-1#5,x",
        "x,0:-1#5",
        "{}",
        "0=5",
        "0:1#5#0=5,broken-token",
        /* parts that are missing, or no numbers */
        "0:",
        "0:#",
        "0:-1#",
        "0:-1#5#",
        "0:-1#5#1",
        "0:-1#5#1=",
        "0:-1#5#=5",
        "0:-1#5#x=5",
        "0:-1#5#1=x",
        "0:x#5",
        "0:-1#x",
        "0:-1#--5",
        "0:x",
        ":-1#6",
        "x:-1#6",
        "-0:-1#6",
        "7:x,0:-1#5",
        /* 2^64, far beyond, in the old form, and of another range */
        "0:-1#18446744073709551616",
        "0:-1#99999999999999999999999999999999999999999",
        "0:18446744073709551616",
        "7:-1#18446744073709551616,0:-1#5",
        "0:-1#5#1=18446744073709551616",
        "0:9223372036854775808#5",
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        uint64_t lsn = 0;
        Error err;
        Slice token = slice_from_cstr(rows[i]);
        if (session_wanted(token, &(PartitionRange){0}, &lsn, &err) != STATUS_BAD_REQUEST ||
            session_check(token, &err) != STATUS_BAD_REQUEST)
            fail_msg("'%s' is not refused", rows[i]);
        expect_holds(slice_from_cstr(err.message), "InvalidSessionToken");
    }
}

static void what_is_printed_is_understood(void **state)
{
    (void)state;
    static const struct {
        uint32_t id;
        uint64_t lsn;
        const char *text;
    } rows[] = {
        {0, 1, "0:-1#1"},
        {17, 1234, "17:-1#1234"},
        {UINT32_MAX, UINT64_MAX, "4294967295:-1#18446744073709551615"},
    };
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 256);
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        Slice token = session_print(&arena, rows[i].id, rows[i].lsn);
        assert_slice(token, slice_from_cstr(rows[i].text));
        uint64_t lsn = 0;
        Error err;
        PartitionRange range = {.id = rows[i].id};
        assert_int_equal(session_wanted(token, &range, &lsn, &err), STATUS_OK);
        assert_true(lsn == rows[i].lsn);
    }
}

/* From here on: what the handlers do with them. */

static void a_read_is_not_served_by_less_than_what_was_seen(void **state)
{
    (void)state;
    static const struct {
        const char *token;
        int status, sub;
    } rows[] = {
        {"0:-1#1", 200, 0},   {"0:-1#3", 200, 0},  {"0:-1#4", 404, 1002},
        {"0:4", 404, 1002},   {"5:-1#99", 200, 0}, {"0:6#NaN", 200, 0},
        {"0:1#2", 404, 1002}, {"rubbish", 400, 0}, {"5:-1#9,0:-1#4", 404, 1002},
    };
    AUTO(fake_server_close) FakeServer server;
    open_with_container(&server);
    make_item(&server, "{'id':'1','pk':'a'}");
    make_item(&server, "{'id':'2','pk':'a'}"); /* a partition begins at 1, so it is at 3 now */
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        const Ask asks[] = {
            {"GET", DOCS "/1", .headers = {PK("['a']"), {"x-ms-session-token", rows[i].token}}},
            {"GET", DOCS, .headers = {{"x-ms-session-token", rows[i].token}}},
            {"POST", DOCS, "{'query':'SELECT * FROM c'}",
             .headers = {{"x-ms-session-token", rows[i].token},
                         {"x-ms-documentdb-isquery", "true"},
                         {"x-ms-documentdb-query-enablecrosspartition", "true"}}},
        };
        for (size_t j = 0; j < ARRAY_COUNT(asks); j++) {
            FakeAnswer answer = expect_status(&server, &asks[j], rows[i].status);
            assert_int_equal(sub_status_of(&answer), rows[i].sub);
            if (rows[i].status == 200 || (rows[i].sub == 0 && j == 0))
                expect_header(&answer, "x-ms-session-token", "0:-1#3");
            else
                expect_header(&answer, "x-ms-session-token", "");
        }
    }
}

static void a_write_does_not_ask_what_was_seen(void **state)
{
    (void)state;
    AUTO(fake_server_close) FakeServer server;
    open_with_container(&server);
    Ask create = {"POST", DOCS, "{'id':'1','pk':'a'}",
                  .headers = {{"x-ms-session-token", "0:-1#4711"}}};
    FakeAnswer answer = expect_status(&server, &create, 201);
    expect_header(&answer, "x-ms-session-token", "0:-1#2");
    expect_header(&answer, "lsn", "2");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_token_says_what_was_seen_of_a_range),
        cmocka_unit_test(what_was_seen_of_a_range_was_seen_of_those_that_came_from_it),
        cmocka_unit_test(what_is_no_list_of_entries_is_refused),
        cmocka_unit_test(what_is_printed_is_understood),
        cmocka_unit_test(a_read_is_not_served_by_less_than_what_was_seen),
        cmocka_unit_test(a_write_does_not_ask_what_was_seen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
