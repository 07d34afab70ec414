/* safe_text_test.c - nothing that others have written reaches a terminal or a page as it is. */
#include "advise/safe_text.h"

#include "base/testing.h"

static void expect(Slice text, size_t width, SafeTextFor target, const char *expected)
{
    AUTO(buf_done) Buf out;
    buf_init(&out, 4096);
    size_t used = safe_text(text, width, target, &out);
    if (!slice_equal(buf_view(&out), slice_from_cstr(expected)))
        fail_msg("expected '%s', found '%.*s'", expected, SLICE_ARG(buf_view(&out)));
    assert_true(used <= width);
}

static void what_is_not_plain_is_escaped(void **state)
{
    (void)state;
    expect(SLICE("/a b"), 80, SAFE_TEXT_ASCII, "/a b");
    expect(SLICE("\033[31m\r\n\0x\x7F"), 80, SAFE_TEXT_UTF8,
           "\\u001b[31m\\u000d\\u000a\\u0000x\\u007f");
    expect(SLICE("gr\xC3\xBC\xC3\x9F"), 80, SAFE_TEXT_UTF8, "gr\xC3\xBC\xC3\x9F");
    expect(SLICE("gr\xC3\xBC"), 80, SAFE_TEXT_ASCII, "gr\\u00fc");
    static const uint8_t turn[] = {0xE2, 0x80, 0xAE}; /* turns text around */
    expect(slice_make(turn, sizeof(turn)), 80, SAFE_TEXT_UTF8, "\\u202e");
    expect(SLICE("\xEF\xBB\xBF"), 80, SAFE_TEXT_UTF8, "\\ufeff");
    expect(SLICE("\xF0\x9F\x98\x80"), 80, SAFE_TEXT_UTF8, "\\ud83d\\ude00");
    expect(SLICE("\xC2\x9B"), 80, SAFE_TEXT_UTF8, "\\u009b"); /* begins a command */
    expect(SLICE("a\xFF\xC3"), 80, SAFE_TEXT_UTF8, "a\\u00ff\\u00c3");
}

static void markup_is_text(void **state)
{
    (void)state;
    expect(SLICE("<script>&'\""), 80, SAFE_TEXT_HTML, "&#60;script&#62;&#38;&#39;&#34;");
    expect(SLICE("\x01<"), 80, SAFE_TEXT_HTML, "\\u0001&#60;");
    expect(SLICE("<"), 80, SAFE_TEXT_ASCII, "<");
}

static void the_width_is_kept(void **state)
{
    (void)state;
    expect(SLICE("abcdef"), 6, SAFE_TEXT_ASCII, "abcdef");
    expect(SLICE("abcdefg"), 6, SAFE_TEXT_ASCII, "abc...");
    expect(SLICE("ab\n"), 5, SAFE_TEXT_ASCII, "ab...");
    expect(SLICE("abc"), 2, SAFE_TEXT_ASCII, "..");
    expect(SLICE("abc"), 0, SAFE_TEXT_ASCII, "");
    expect(SLICE("<<<<"), 3, SAFE_TEXT_HTML, "...");
}

static void a_cut_is_between_characters(void **state)
{
    (void)state;
    assert_int_equal(safe_text_cut(SLICE("abc"), 5).len, 3);
    assert_int_equal(safe_text_cut(SLICE("abc"), 2).len, 2);
    assert_int_equal(safe_text_cut(SLICE("a\xC3\xBC"), 2).len, 1);
    assert_int_equal(safe_text_cut(SLICE("\xF0\x9F\x98\x80"), 3).len, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_not_plain_is_escaped),
        cmocka_unit_test(markup_is_text),
        cmocka_unit_test(the_width_is_kept),
        cmocka_unit_test(a_cut_is_between_characters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
