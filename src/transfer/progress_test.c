/* progress_test.c - the line as it looks. */
#include "transfer/progress.h"

#include "base/testing.h"

static void lines_look_like_this(void **state)
{
    (void)state;
    static const struct {
        ProgressNow now;
        uint64_t passed_s;
        const char *text;
    } rows[] = {
        {{.items = 36102, .done = 36, .total = 100, .throttled = 12},
         4,
         "[=======>            ]  36%  36,102 items  8,412/s  52,300 RU/s  12 throttled  0:07 "
         "left"},
        {{.items = 7}, 4, "7 items  8,412/s  52,300 RU/s"},
        {{.items = 1234567, .rejected = 1000},
         4,
         "1,234,567 items  8,412/s  52,300 RU/s  1,000 rejected"},
        {{.items = 1, .done = 1, .total = 3000},
         4,
         "[>                   ]   0%  1 items  8,412/s  52,300 RU/s  3:19:56 left"},
        {{.items = 1, .done = 200, .total = 100},
         4,
         "[====================] 100%  1 items  8,412/s  52,300 RU/s  0:00 left"},
        {{.items = 1, .done = 50, .total = 100, .silent_us = 7900000},
         9,
         "[==========>         ]  50%  1 items  8,412/s  52,300 RU/s  no answer for 7 s"},
        {{.items = 1, .done = 50, .total = 100, .silent_us = 2900000},
         0,
         "[==========>         ]  50%  1 items  8,412/s  52,300 RU/s"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        Progress progress = {.items_per_s = 8412.9, .ru_per_s = 52300, .begun_us = 1000000};
        AUTO(buf_done) Buf text;
        buf_init(&text, 1000);
        progress_print(&progress, &rows[i].now, (1 + rows[i].passed_s) * 1000000, 200, &text);
        assert_slice_text(buf_view(&text), rows[i].text);
        buf_reset(&text);
        progress_print(&progress, &rows[i].now, (1 + rows[i].passed_s) * 1000000, 10, &text);
        assert_int_equal(text.len, 10);
    }
}

static void it_is_shown_when_it_is_time(void **state)
{
    (void)state;
    Progress progress;
    progress_init(&progress, false, 1000);
    progress.is_terminal = false;
    progress_show(&progress, &(ProgressNow){.items = 5}, 5000000);
    assert_int_equal(progress.shown_us, 1000);
    progress_show(&progress, &(ProgressNow){.items = 50, .ru = 500}, 10001000);
    assert_int_equal(progress.shown_us, 10001000);
    assert_int_equal((int)progress.items_per_s, 5);
    assert_int_equal((int)progress.ru_per_s, 50);
    progress_clear(&progress);
    Progress quiet;
    progress_init(&quiet, true, 0);
    progress_show(&quiet, &(ProgressNow){.items = 5}, 60000000);
    assert_int_equal(quiet.shown_us, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_look_like_this),
        cmocka_unit_test(it_is_shown_when_it_is_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
