/* log_test.c - what a line looks like, and that a client cannot forge one: I4. */
#include "base/log.h"

#include "base/testing.h"

#include <pthread.h>
#include <string.h>
#include <unistd.h>

typedef struct Fixture {
    FakeClock clock;
    Log log;
    int read_fd;
    char text[65536];
} Fixture;

static void fixture_open(Fixture *fixture, LogLevel level)
{
    int fds[2];
    assert_int_equal(pipe(fds), 0);
    fake_clock_init(&fixture->clock, UINT64_C(1727784000123456));
    fixture->read_fd = fds[0];
    fixture->log = (Log){.fd = fds[1], .level = level, .clock = &fixture->clock.clock};
}

/* What was logged, terminated; ends the log. */
static const char *fixture_close(Fixture *fixture)
{
    (void)close(fixture->log.fd);
    size_t len = 0;
    ssize_t got;
    while ((got = read(fixture->read_fd, fixture->text + len, sizeof(fixture->text) - 1 - len)) > 0)
        len += (size_t)got;
    (void)close(fixture->read_fd);
    fixture->text[len] = '\0';
    return fixture->text;
}

static void a_line_has_time_level_event_and_fields(void **state)
{
    (void)state;
    Fixture f;
    fixture_open(&f, LOG_LEVEL_INFO);
    LOG_INFO(&f.log, "server.ready", "port=%d took_ms=%u", 8081, 14u);
    LOG_ERROR(&f.log, "store.failed", "reason='%s'", "disk");
    assert_string_equal(fixture_close(&f),
                        "2024-10-01T12:00:00.123Z info  server.ready port=8081 took_ms=14\n"
                        "2024-10-01T12:00:00.123Z error store.failed reason='disk'\n");
}

static void events_below_the_level_are_left_out(void **state)
{
    (void)state;
    static const struct {
        LogLevel level;
        size_t lines;
    } rows[] = {
        {LOG_LEVEL_ERROR, 1}, {LOG_LEVEL_WARN, 2}, {LOG_LEVEL_INFO, 3}, {LOG_LEVEL_DEBUG, 4}};
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        Fixture f;
        fixture_open(&f, rows[i].level);
        LOG_DEBUG(&f.log, "a", "%d", 1);
        LOG_INFO(&f.log, "a", "%d", 1);
        LOG_WARN(&f.log, "a", "%d", 1);
        LOG_ERROR(&f.log, "a", "%d", 1);
        size_t lines = 0;
        for (const char *at = fixture_close(&f); *at != '\0'; at++)
            lines += *at == '\n' ? 1 : 0;
        assert_int_equal(lines, rows[i].lines);
    }
}

static void client_text_cannot_forge_a_line(void **state)
{
    (void)state;
    Fixture f;
    fixture_open(&f, LOG_LEVEL_INFO);
    LOG_INFO(&f.log, "request", "agent='%s'", "x'\r\n2024 error owned \x1b[2J\x7f\t\xc3\xa4");
    assert_string_equal(fixture_close(&f), "2024-10-01T12:00:00.123Z info  request agent='x'??2024 "
                                           "error owned ?[2J??\xc3\xa4'\n");
}

static void long_fields_are_cut_and_the_line_still_ends(void **state)
{
    (void)state;
    char long_text[5000];
    memset(long_text, 'x', sizeof(long_text));
    /* Around the length at which a line is cut. */
    for (size_t len = 900; len < 1100; len++) {
        Fixture f;
        fixture_open(&f, LOG_LEVEL_INFO);
        LOG_INFO(&f.log, "request", "%.*s", (int)len, long_text);
        const char *line = fixture_close(&f);
        size_t line_len = strlen(line);
        assert_true(line_len <= 1024);
        assert_ptr_equal(strchr(line, '\n'), line + line_len - 1);
        assert_int_equal(line[line_len - 2], 'x');
    }
}

enum { THREADS = 4, LINES = 100 };

static void *write_lines(void *arg)
{
    for (int i = 0; i < LINES; i++)
        LOG_INFO((const Log *)arg, "thread", "%s", "abcdefghijklmnopqrstuvwxyz");
    return NULL;
}

static void lines_of_many_threads_do_not_mix(void **state)
{
    (void)state;
    Fixture f;
    fixture_open(&f, LOG_LEVEL_INFO);
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, write_lines, &f.log), 0);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    static const char expected[] =
        "2024-10-01T12:00:00.123Z info  thread abcdefghijklmnopqrstuvwxyz\n";
    const char *at = fixture_close(&f);
    for (int i = 0; i < THREADS * LINES; i++, at += sizeof(expected) - 1)
        assert_memory_equal(at, expected, sizeof(expected) - 1);
    assert_int_equal(*at, '\0');
}

static void level_names_are_exact(void **state)
{
    (void)state;
    static const struct {
        Slice name;
        LogLevel level;
    } rows[] = {{SLICE_INIT("error"), LOG_LEVEL_ERROR},
                {SLICE_INIT("warn"), LOG_LEVEL_WARN},
                {SLICE_INIT("info"), LOG_LEVEL_INFO},
                {SLICE_INIT("debug"), LOG_LEVEL_DEBUG}};
    LogLevel level = LOG_LEVEL_WARN;
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        assert_true(log_level_parse(rows[i].name, &level));
        assert_int_equal(level, rows[i].level);
    }
    static const Slice wrong[] = {
        {NULL, 0}, SLICE_INIT(""), SLICE_INIT("INFO"), SLICE_INIT("warning"), SLICE_INIT("1")};
    for (size_t i = 0; i < ARRAY_COUNT(wrong); i++)
        assert_false(log_level_parse(wrong[i], &level));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_line_has_time_level_event_and_fields),
        cmocka_unit_test(events_below_the_level_are_left_out),
        cmocka_unit_test(client_text_cannot_forge_a_line),
        cmocka_unit_test(long_fields_are_cut_and_the_line_still_ends),
        cmocka_unit_test(lines_of_many_threads_do_not_mix),
        cmocka_unit_test(level_names_are_exact),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
