/* copy_state_test.c - what was written is read again; what is damaged or of others is refused. */
#include "transfer/copy_state.h"

#include "base/testing.h"

#define JOB "0123456789ABCDEF0123456789ABCDEF"

DEFINE_AUTO_VALUE(CopyState, copy_state_done)

static void a_copy_is_read_as_it_was_written(void **state)
{
    (void)state;
    AUTO(copy_state_done) CopyState before;
    copy_state_init(&before);
    before.source = SLICE("abc=");
    before.copy = SLICE("def=");
    before.old_name = SLICE("orders-before-x");
    before.copied = 1234567890123;
    before.has_versions = true;
    before.is_clean = true;
    CopyLane lane = {.position = "\"17\"", .base = "\"9\"", .follows = true, .is_level = true};
    copy_state_add_lane(&before, SLICE(""), SLICE("1F"), NULL);
    copy_state_add_lane(&before, SLICE("1F"), SLICE("FF"), &lane);
    assert_ok(copy_state_reject(&before, SLICE("1"), SLICE("[\"a\"]"), SLICE("why \"so\""), err));
    AUTO(buf_done) Buf text;
    buf_init(&text, 10000);
    copy_state_print(&before, SLICE(JOB), &text);
    AUTO(copy_state_done) CopyState after;
    copy_state_init(&after);
    assert_ok(copy_state_parse(&after, buf_view(&text), SLICE(JOB), err));
    AUTO(buf_done) Buf again;
    buf_init(&again, 10000);
    copy_state_print(&after, SLICE(JOB), &again);
    assert_slice(buf_view(&again), buf_view(&text));
    assert_int_equal(after.lane_count, 2);
    assert_true(after.lanes[1].follows);
    assert_false(after.lanes[1].is_level);
    assert_string_equal(after.lanes[1].position, "\"17\"");
}

static void rejects_are_there_once(void **state)
{
    (void)state;
    AUTO(copy_state_done) CopyState copy;
    copy_state_init(&copy);
    for (int i = 0; i < 3; i++)
        assert_ok(copy_state_reject(&copy, SLICE("1"), SLICE("[1]"), SLICE("x"), err));
    assert_ok(copy_state_reject(&copy, SLICE("1"), SLICE("[2]"), SLICE("y"), err));
    assert_ok(copy_state_reject(&copy, SLICE("1"), SLICE("[1]"), SLICE("z"), err));
    assert_int_equal(copy.reject_count, 2);
    assert_slice(copy.rejects[0].reason, SLICE("z"));
    copy_state_forget(&copy, SLICE("2"), SLICE("[1]"));
    assert_int_equal(copy.reject_count, 2);
    copy_state_forget(&copy, SLICE("1"), SLICE("[1]"));
    assert_int_equal(copy.reject_count, 1);
    assert_slice(copy.rejects[0].key, SLICE("[2]"));
}

static void positions_are_numbers_in_quotes(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool is_lsn;
        uint64_t lsn;
    } table[] = {{"\"17\"", true, 17}, {"17", true, 17}, {"", false, 0},
                 {"\"\"", false, 0},   {"\"", false, 0}, {"\"x\"", false, 0}};
    for (size_t i = 0; i < ARRAY_COUNT(table); i++) {
        uint64_t lsn = 0;
        assert_int_equal(copy_position_lsn(table[i].text, &lsn), table[i].is_lsn);
        if (table[i].is_lsn)
            assert_true(lsn == table[i].lsn);
    }
    char out[COPY_POSITION_LEN_MAX];
    char longer[COPY_POSITION_LEN_MAX + 1];
    memset(longer, 'x', sizeof(longer));
    assert_true(copy_position_set(out, slice_make(longer, COPY_POSITION_LEN_MAX - 1)));
    assert_false(copy_position_set(out, slice_make(longer, COPY_POSITION_LEN_MAX)));
    assert_false(copy_position_set(out, SLICE("1\r\nx-header: 2")));
}

static void what_is_damaged_or_of_others_is_refused(void **state)
{
    (void)state;
#define HEAD "{'orrery':'copy','job':'" JOB "','copied':0"
    static const char *const rows[] = {
        "",
        "{",
        "[]",
        "{'orrery':'import','job':'" JOB "'}",
        "{'orrery':'copy','job':'other','copied':0,'lanes':[],'rejects':[]}",
        HEAD "}",
        HEAD ",'lanes':[]}",
        "{'orrery':'copy','job':'" JOB "','copied':-1,'lanes':[],'rejects':[]}",
        HEAD ",'lanes':[{}],'rejects':[]}",
        HEAD ",'lanes':[{'min':'','max':'zz'}],'rejects':[]}",
        HEAD ",'lanes':[{'min':'FF','max':'05'}],'rejects':[]}",
        HEAD ",'lanes':[{'min':'','max':'FF','position':'a\\nb'}],'rejects':[]}",
        HEAD ",'lanes':[],'rejects':7}",
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        AUTO(copy_state_done) CopyState copy;
        copy_state_init(&copy);
        Error err;
        assert_int_equal(copy_state_parse(&copy, row_text(&test_arena, rows[i]), SLICE(JOB), &err),
                         STATUS_BAD_REQUEST);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, test_arena_setup, test_arena_teardown)
        TEST(a_copy_is_read_as_it_was_written),
        TEST(rejects_are_there_once),
        TEST(positions_are_numbers_in_quotes),
        TEST(what_is_damaged_or_of_others_is_refused),
#undef TEST
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
