/* identity_fetch_test.c - key sets from files and from servers that are not there. */
#include "cli/identity_fetch.h"

#include "api/core/identity_keys.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static Status fetch(Arena *arena, const char *from, Slice *text, Error *err)
{
    char source[200];
    (void)snprintf(source, sizeof(source), "%s", from);
    *err = (Error){0};
    return identity_fetch(source, arena, text, err);
}

static void a_file_is_read_up_to_its_bound(void **state)
{
    (void)state;
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 1024);
    char path[] = "/tmp/orrery-identity-fetch-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    Slice text;
    Error err;
    assert_int_equal(fetch(&arena, path, &text, &err), STATUS_OK);
    assert_int_equal(text.len, 0);
    assert_int_equal(write(fd, "{\"keys\":[]}", 11), 11);
    assert_int_equal(fetch(&arena, path, &text, &err), STATUS_OK);
    assert_int_equal(text.len, 11);
    assert_memory_equal(text.ptr, "{\"keys\":[]}", 11);
    assert_int_equal(ftruncate(fd, (off_t)IDENTITY_KEYS_BYTES_MAX * 2), 0);
    assert_int_equal(fetch(&arena, path, &text, &err), STATUS_OK);
    assert_int_equal(text.len, IDENTITY_KEYS_BYTES_MAX + 1); /* too long, which the reader sees */
    (void)close(fd);
    (void)unlink(path);
}

static void what_cannot_be_read_is_named(void **state)
{
    (void)state;
    static const struct {
        const char *from;
        Status status;
    } rows[] = {
        {"/nothing/here", STATUS_IO},
        {"/tmp", STATUS_IO},
        {"http://127.0.0.1:1/keys", STATUS_UNAVAILABLE},
        {"http://127.0.0.1:1", STATUS_UNAVAILABLE},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        AUTO(arena_done) Arena arena;
        arena_init(&arena, 1024);
        Slice text;
        Error err;
        assert_int_equal(fetch(&arena, rows[i].from, &text, &err), rows[i].status);
        assert_non_null(strstr(err.message, rows[i].from));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_is_read_up_to_its_bound),
        cmocka_unit_test(what_cannot_be_read_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
