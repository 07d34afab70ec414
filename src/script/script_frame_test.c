/* script_frame_test.c - every frame comes back as it was sent; what is cut, too long or not UTF-8
 * is refused. */
#include "script/script_frame_int.h"

#include "base/testing.h"

static Buf frame;

static int setup(void **state)
{
    buf_init(&frame, SCRIPT_FRAME_BYTES_MAX);
    return test_arena_setup(state);
}

static int teardown(void **state)
{
    buf_done(&frame);
    return test_arena_teardown(state);
}

/* What follows the head, after a check of it. */
static Slice payload(FrameType expected)
{
    FrameType type;
    size_t len = 0;
    assert_false(buf_full(&frame));
    assert_true(frame_head(frame.ptr, &type, &len));
    assert_int_equal(type, expected);
    assert_int_equal(len, frame.len);
    return slice_from(buf_view(&frame), SCRIPT_FRAME_HEAD_BYTES);
}

static bool read_any(FrameType type, Slice bytes)
{
    FrameHello hello;
    FrameRun run;
    FrameOperations operations;
    FrameAnswers answers;
    FrameDone done;
    FrameOpen open;
    FrameCalls calls;
    FrameResults results;
    switch (type) {
    case FRAME_HELLO:
        return frame_get_hello(bytes, &hello);
    case FRAME_RUN:
        return frame_get_run(bytes, &run);
    case FRAME_OPERATIONS:
        return frame_get_operations(bytes, &test_arena, &operations);
    case FRAME_ANSWERS:
        return frame_get_answers(bytes, &test_arena, &answers);
    case FRAME_DONE:
        return frame_get_done(bytes, &done);
    case FRAME_OPEN:
        return frame_get_open(bytes, &test_arena, &open);
    case FRAME_CALL:
        return frame_get_calls(bytes, &test_arena, &calls);
    case FRAME_RESULTS:
        return frame_get_results(bytes, &test_arena, &results);
    case FRAME_CLOSE:
    case FRAME_REPEAT:
    case FRAME_COUNT:
        break;
    }
    return false;
}

/* Each shorter or longer payload is refused. */
static void check_cuts(FrameType type)
{
    Slice whole = payload(type);
    assert_true(read_any(type, whole));
    for (size_t len = 0; len < whole.len; len++)
        assert_false(read_any(type, slice_first(whole, len)));
    buf_byte(&frame, 0);
    assert_false(read_any(type, slice_from(buf_view(&frame), SCRIPT_FRAME_HEAD_BYTES)));
    buf_reset(&frame);
}

static void runs_come_back_as_they_were(void **state)
{
    (void)state;
    FrameRun in = {.role = SCRIPT_ROLE_POST_TRIGGER,
                   .wants_log = true,
                   .hard_us = 1,
                   .soft_us = UINT64_MAX,
                   .assume_us = 3,
                   .id = SLICE("i"),
                   .body = SLICE("b"),
                   .arguments = SLICE("[1]"),
                   .self_link = SLICE("s"),
                   .alt_link = SLICE("a"),
                   .operation = SLICE("Create"),
                   .request_body = SLICE("{}"),
                   .response_body = SLICE("{\"a\":1}"),
                   .quota = SLICE("q"),
                   .usage = SLICE("\xC3\xA9")};
    FrameRun out;
    frame_put_run(&frame, &in);
    assert_true(frame_get_run(payload(FRAME_RUN), &out));
    assert_int_equal(out.role, in.role);
    assert_true(out.wants_log);
    assert_int_equal(out.hard_us, in.hard_us);
    assert_int_equal(out.soft_us, in.soft_us);
    assert_int_equal(out.assume_us, in.assume_us);
    assert_slice(out.arguments, in.arguments);
    assert_slice(out.response_body, in.response_body);
    assert_slice(out.usage, in.usage);
    check_cuts(FRAME_RUN);
}

static void operations_and_answers_come_back_as_they_were(void **state)
{
    (void)state;
    ScriptCall in = {.kind = SCRIPT_CALL_REPLACE,
                     .is_rid = true,
                     .name = SLICE("n"),
                     .body = SLICE("{}"),
                     .if_match = SLICE("e"),
                     .page_size = -1,
                     .index_action = SCRIPT_INDEX_EXCLUDE,
                     .enables_scan = true,
                     .wants_item = true,
                     .continuation = SLICE("c")};
    ScriptCall assumed = {.kind = SCRIPT_CALL_DELETE, .page_size = 1, .is_assumed = true};
    FrameOperations operations;
    frame_begin_operations(&frame);
    frame_add_operation(&frame, &assumed);
    frame_add_operation(&frame, &in);
    frame_end_many(&frame, 2);
    assert_true(frame_get_operations(payload(FRAME_OPERATIONS), &test_arena, &operations));
    assert_int_equal(operations.count, 2);
    assert_true(operations.calls[0].is_assumed);
    assert_false(operations.calls[0].wants_item);
    ScriptCall *out = &operations.calls[1];
    assert_int_equal(out->kind, in.kind);
    assert_int_equal(out->page_size, -1);
    assert_int_equal(out->index_action, in.index_action);
    assert_true(out->wants_item);
    assert_false(out->is_assumed);
    assert_slice(out->if_match, in.if_match);
    assert_slice(out->continuation, in.continuation);
    check_cuts(FRAME_OPERATIONS);

    FrameAnswer first = {.status_code = 201, .resource = SLICE("{}")};
    FrameAnswer second = {.status_code = 409, .has_failed = true, .failure = SLICE("f")};
    FrameAnswers answers;
    frame_begin_answers(&frame);
    assert_true(frame_add_answer(&frame, &first));
    assert_true(frame_add_answer(&frame, &second));
    frame_end_many(&frame, 2);
    assert_true(frame_get_answers(payload(FRAME_ANSWERS), &test_arena, &answers));
    assert_int_equal(answers.count, 2);
    assert_slice(answers.answers[0].resource, first.resource);
    assert_int_equal(answers.answers[1].status_code, 409);
    assert_true(answers.answers[1].has_failed);
    assert_slice(answers.answers[1].failure, second.failure);
    check_cuts(FRAME_ANSWERS);

    FrameDone done = {.outcome = FRAME_OUTCOME_THROWN,
                      .number = UINT32_MAX,
                      .text = SLICE("t"),
                      .log = SLICE("l")};
    FrameDone ended;
    frame_put_done(&frame, &done);
    assert_true(frame_get_done(payload(FRAME_DONE), &ended));
    assert_int_equal(ended.number, UINT32_MAX);
    assert_slice(ended.log, done.log);
    check_cuts(FRAME_DONE);

    FrameHello hello = {.version = SCRIPT_FRAME_VERSION, .failure = SLICE("why")};
    frame_put_hello(&frame, &hello);
    check_cuts(FRAME_HELLO);
    frame_put_close(&frame);
    assert_int_equal(payload(FRAME_CLOSE).len, 0);
}

static void functions_come_back_as_they_were(void **state)
{
    (void)state;
    ScriptSource sources[] = {{.id = SLICE("a"), .body = SLICE("x")},
                              {.id = SLICE("b"), .body = SLICE("y")}};
    FrameOpen open = {.hard_us = 7, .count = 2, .sources = sources};
    FrameOpen opened;
    frame_put_open(&frame, &open);
    assert_true(frame_get_open(payload(FRAME_OPEN), &test_arena, &opened));
    assert_int_equal(opened.count, 2);
    assert_slice(opened.sources[1].body, sources[1].body);
    check_cuts(FRAME_OPEN);

    ScriptFunctionCall calls[] = {{.which = 3,
                                   .arguments = SLICE("[]"),
                                   .kind = SCRIPT_VALUE_ERROR,
                                   .number = 5,
                                   .text = SLICE("t")}};
    FrameCalls called = {.count = 1, .calls = calls};
    frame_put_calls(&frame, &called);
    check_cuts(FRAME_CALL);
    uint32_t cpu_us[] = {9};
    FrameResults results = {.count = 1, .calls = calls, .cpu_us = cpu_us};
    FrameResults got;
    frame_put_results(&frame, &results);
    assert_true(frame_get_results(payload(FRAME_RESULTS), &test_arena, &got));
    assert_int_equal(got.calls[0].kind, SCRIPT_VALUE_ERROR);
    assert_int_equal(got.calls[0].number, 5);
    assert_int_equal(got.cpu_us[0], 9);
    check_cuts(FRAME_RESULTS);
}

static void text_must_be_utf8(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool is_valid;
    } CASES[] = {
        {"plain text of more than eight bytes", true},
        {"\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80", true},
        {"12345678\xF4\x8F\xBF\xBF", true},
        {"\xED\x9F\xBF", true},
        {"\x80", false},
        {"12345678\xC3", false},
        {"\xC0\xAF", false},
        {"\xE0\x80\xAF", false},
        {"\xED\xA0\x80", false},
        {"\xF0\x80\x80\xAF", false},
        {"\xF4\x90\x80\x80", false},
        {"\xF5\x80\x80\x80", false},
        {"\xE2\x82", false},
        {"\xE2\x28\xA1", false},
    };
    for (size_t i = 0; i < ARRAY_COUNT(CASES); i++) {
        FrameHello hello = {.failure = slice_from_cstr(CASES[i].text)};
        frame_put_hello(&frame, &hello);
        assert_int_equal(read_any(FRAME_HELLO, payload(FRAME_HELLO)), CASES[i].is_valid);
        buf_reset(&frame);
    }
}

static void heads_and_sizes_are_bounded(void **state)
{
    (void)state;
    static const struct {
        uint8_t head[SCRIPT_FRAME_HEAD_BYTES];
        bool is_valid;
    } CASES[] = {
        {{1, 0, 0, 0, FRAME_CLOSE}, true},        {{0, 0, 0, 0, FRAME_CLOSE}, false},
        {{1, 0, 0, 0, FRAME_COUNT}, false},       {{255, 255, 255, 255, 0}, false},
        {{0xFC, 0xFF, 0xFF, 0, FRAME_RUN}, true}, {{0xFD, 0xFF, 0xFF, 0, FRAME_RUN}, false},
    };
    for (size_t i = 0; i < ARRAY_COUNT(CASES); i++) {
        FrameType type;
        size_t len = 0;
        assert_int_equal(frame_head((const char *)CASES[i].head, &type, &len), CASES[i].is_valid);
    }
    size_t len = SCRIPT_FRAME_BYTES_MAX;
    char *large = mem_alloc(len);
    FrameHello hello = {.failure = slice_make(large, len)};
    frame_put_hello(&frame, &hello);
    assert_true(buf_full(&frame));
    mem_free(large);
}

static void frames_of_no_operation_or_too_many_are_refused(void **state)
{
    (void)state;
    static const uint32_t COUNTS[] = {0, SCRIPT_FRAME_OPERATIONS_MAX + 1};
    ScriptCall call = {.kind = SCRIPT_CALL_DELETE, .page_size = 1};
    FrameAnswer answer = {.status_code = 204};
    for (size_t i = 0; i < ARRAY_COUNT(COUNTS); i++) {
        frame_begin_operations(&frame);
        for (uint32_t k = 0; k < COUNTS[i]; k++)
            frame_add_operation(&frame, &call);
        frame_end_many(&frame, COUNTS[i]);
        assert_false(read_any(FRAME_OPERATIONS, payload(FRAME_OPERATIONS)));
        buf_reset(&frame);
        frame_begin_answers(&frame);
        for (uint32_t k = 0; k < COUNTS[i]; k++)
            assert_true(frame_add_answer(&frame, &answer));
        frame_end_many(&frame, COUNTS[i]);
        assert_false(read_any(FRAME_ANSWERS, payload(FRAME_ANSWERS)));
        buf_reset(&frame);
    }
}

static void an_answer_without_room_is_left_out(void **state)
{
    (void)state;
    FrameAnswers answers;
    char *text = mem_alloc(SCRIPT_FRAME_BYTES_MAX);
    memset(text, 'x', SCRIPT_FRAME_BYTES_MAX);
    FrameAnswer large = {.status_code = 200, .resource = {text, SCRIPT_FRAME_BYTES_MAX}};
    FrameAnswer small = {.status_code = 413};
    frame_begin_answers(&frame);
    assert_false(frame_add_answer(&frame, &large));
    assert_true(frame_add_answer(&frame, &small));
    frame_end_many(&frame, 1);
    assert_true(frame_get_answers(payload(FRAME_ANSWERS), &test_arena, &answers));
    assert_int_equal(answers.answers[0].status_code, 413);
    mem_free(text);
    buf_reset(&frame);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(runs_come_back_as_they_were),
        TEST(operations_and_answers_come_back_as_they_were),
        TEST(frames_of_no_operation_or_too_many_are_refused),
        TEST(an_answer_without_room_is_left_out),
        TEST(functions_come_back_as_they_were),
        TEST(text_must_be_utf8),
        TEST(heads_and_sizes_are_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
