/* report_test.c - reports as text, JSON and HTML: what they say, their bounds, hostile names. */
#include "advise/report.h"

#include "advise/advise_testing_int.h"

typedef struct Case {
    Arena arena;
    Sample sample;
    Workload work;
    Advice advice;
    KeyCandidate check;
    Buf out;
} Case;

static void run_case(Case *c, void (*generate)(Sample *), const char *queries, const char *check)
{
    arena_init(&c->arena, 4096);
    buf_init(&c->out, REPORT_BYTES_MAX);
    generate(&c->sample);
    KeyAdviceOptions options = key_advice_options(&c->arena);
    if (check != NULL) {
        c->check = key_of(&c->arena, check);
        options.check = &c->check;
    }
    if (queries != NULL)
        c->work = workload_of(&c->arena, queries);
    key_advice_make(&c->sample, queries == NULL ? NULL : &c->work, &options, &c->arena, &c->advice);
}

static void end_case(Case *c)
{
    buf_done(&c->out);
    sample_done(&c->sample);
    arena_done(&c->arena);
}

static void assert_has(const Buf *out, const char *text)
{
    if (memmem(out->ptr, out->len, text, strlen(text)) == NULL)
        fail_msg("there is no '%s' in:\n%.*s", text, SLICE_ARG(buf_view(out)));
}

static void assert_has_not(const Buf *out, const char *text)
{
    if (memmem(out->ptr, out->len, text, strlen(text)) != NULL)
        fail_msg("there is '%s' in:\n%.*s", text, SLICE_ARG(buf_view(out)));
}

static const char QUERIES[] = "SELECT * FROM c WHERE c.userId = @u ORDER BY c.country, c.price\n"
                              "SELECT * FROM c WHERE c.status = 's1'";

static void no_line_is_wider_than_the_style(void **state)
{
    (void)state;
    for (uint32_t width = REPORT_WIDTH_MIN; width <= REPORT_WIDTH_MAX; width += 22) {
        Case c = {0};
        run_case(&c, generate_users, QUERIES, NULL);
        report_text(&c.advice, &(ReportStyle){.width = width}, &c.out);
        size_t column = 0;
        for (size_t i = 0; i < c.out.len; i++) {
            uint8_t byte = (uint8_t)c.out.ptr[i];
            column = byte == '\n' ? 0 : column + 1;
            assert_true(byte == '\n' || (byte >= 0x20 && byte < 0x7F));
            if (column > width)
                fail_msg("wider than %u:\n%.*s", width, SLICE_ARG(buf_view(&c.out)));
        }
        end_case(&c);
    }
}

static void text_says_what_to_do_and_why(void **state)
{
    (void)state;
    Case c = {0};
    run_case(&c, generate_users, QUERIES, NULL);
    report_text(&c.advice, &(ReportStyle){.width = 120}, &c.out);
    assert_has(&c.out, "Use /userId.\n");
    assert_has(&c.out, "/country: no\n");
    assert_has(&c.out, "There are only 5 values for 10 physical partitions");
    assert_has(&c.out, "(/country ASC, /price ASC): needed by query 1");
    assert_has(&c.out, "2 queries, 2 a second together");
    assert_has_not(&c.out, "\033");
    buf_reset(&c.out);
    report_text(&c.advice, &(ReportStyle){.width = 120, .has_colour = true}, &c.out);
    assert_has(&c.out, "\033[32myes\033[0m");
    end_case(&c);
}

static void a_check_is_about_one_key(void **state)
{
    (void)state;
    Case c = {0};
    run_case(&c, generate_users, NULL, "/country");
    report_text(&c.advice, &(ReportStyle){.width = 100}, &c.out);
    assert_has(&c.out, "/country: not acceptable\n");
    assert_has(&c.out, "> /userId scores 100");
    assert_has_not(&c.out, "/status");
    end_case(&c);
}

static void json_is_json_with_everything(void **state)
{
    (void)state;
    Case c = {0};
    run_case(&c, generate_users, QUERIES, "/country");
    report_json(&c.advice, &c.out);
    Json report = text_json(&c.arena, slice_trim(slice_first(buf_view(&c.out), c.out.len - 1)));
    assert_true(slice_equal(json_string(json_get(report, SLICE("best"))), SLICE("/userId")));
    assert_int_equal(json_count(json_get(report, SLICE("keys"))), c.advice.key_count);
    Json checked = json_get(report, SLICE("checked"));
    assert_false(json_bool(json_get(checked, SLICE("acceptable"))));
    Json first = json_at(json_get(report, SLICE("keys")), 0);
    static const char *const members[] = {
        "key",         "kind",      "paths",  "score",   "values",  "largestShare",
        "storageSkew", "writeSkew", "fullOn", "queries", "storage", "findings",
    };
    for (size_t i = 0; i < ARRAY_COUNT(members); i++)
        assert_false(json_is(json_get(first, slice_from_cstr(members[i])), JSON_UNDEFINED));
    assert_int_equal(json_count(json_get(first, SLICE("storage"))), 10);
    assert_true(json_is(json_get(report, SLICE("indexing")), JSON_OBJECT));
    end_case(&c);
}

/* Names and values with commands to a terminal, and with markup. */
static void generate_hostile(Sample *sample)
{
    begin_sample(sample);
    for (int i = 0; i < 1000; i++)
        add_item(sample,
                 "{\"id\":\"%d\",\"\\u001b[2J\":\"\\u001b]0;x\\u0007%d\","
                 "\"<script>alert(1)</script>\":\"<b>&%d\",\"\":1,\"\\u202e\":%d}",
                 i, i % 3, i % 400, i % 50);
    end_sample(sample);
}

static void hostile_names_are_harmless(void **state)
{
    (void)state;
    Case c = {0};
    run_case(&c, generate_hostile, "SELECT * FROM c WHERE c['<i>'] = '\x7F' ORDER BY c['\033']",
             NULL);
    report_text(&c.advice, &(ReportStyle){.width = 100, .is_utf8 = true}, &c.out);
    assert_has(&c.out, "\\u001b");
    for (size_t i = 0; i < c.out.len; i++)
        assert_true(c.out.ptr[i] == '\n' ||
                    ((uint8_t)c.out.ptr[i] >= 0x20 && c.out.ptr[i] != 0x7F));
    buf_reset(&c.out);
    report_html(&c.advice, &c.out);
    assert_has(&c.out, "&#60;script&#62;");
    assert_has_not(&c.out, "<script");
    assert_has_not(&c.out, "<b>");
    assert_has_not(&c.out, "<i>");
    buf_reset(&c.out);
    report_json(&c.advice, &c.out);
    (void)text_json(&c.arena, slice_first(buf_view(&c.out), c.out.len - 1));
    end_case(&c);
}

static void a_page_has_charts_and_needs_nothing_else(void **state)
{
    (void)state;
    Case c = {0};
    run_case(&c, generate_users, QUERIES, NULL);
    report_html(&c.advice, &c.out);
    assert_has(&c.out, "<!DOCTYPE html>");
    assert_has(&c.out, "default-src 'none'");
    assert_has(&c.out, "<svg ");
    assert_has(&c.out, "storage of each physical partition");
    assert_has(&c.out, "writes over time");
    assert_has_not(&c.out, "src=");
    assert_has_not(&c.out, "href=");
    assert_has(&c.out, "</html>\n");
    assert_false(buf_full(&c.out));
    end_case(&c);
}

static void generate_nothing_useful(Sample *sample)
{
    begin_sample(sample);
    add_item(sample, "{\"list\":[1]}");
    end_sample(sample);
}

static void without_any_key_there_are_reports_too(void **state)
{
    (void)state;
    Case c = {0};
    run_case(&c, generate_nothing_useful, "SELECT * FROM c", NULL);
    report_text(&c.advice, &(ReportStyle){.width = 100}, &c.out);
    assert_has(&c.out, "nothing can be a partition key");
    report_html(&c.advice, &c.out);
    report_json(&c.advice, &c.out);
    assert_has(&c.out, "\"best\":null");
    end_case(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_line_is_wider_than_the_style),
        cmocka_unit_test(text_says_what_to_do_and_why),
        cmocka_unit_test(a_check_is_about_one_key),
        cmocka_unit_test(json_is_json_with_everything),
        cmocka_unit_test(hostile_names_are_harmless),
        cmocka_unit_test(a_page_has_charts_and_needs_nothing_else),
        cmocka_unit_test(without_any_key_there_are_reports_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
