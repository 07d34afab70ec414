/* connection_test.c - which key a command uses, and what is refused before anything is sent. */
#include "cli/connection.h"

#include "api/core/auth.h"
#include "base/testing.h"

#include <stdlib.h>
#include <unistd.h>

static void the_nearest_key_is_used(void **state)
{
    (void)state;
    char path[] = "/tmp/orrery-connection-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, "filed\n", 6), 6);
    assert_int_equal(close(fd), 0);
    const struct {
        const char *key;
        const char *key_file;
        const char *variable;
        const char *expected;
    } rows[] = {
        {"given", NULL, "ORRERY_KEY=other", "given"},
        {NULL, path, "ORRERY_KEY=other", "filed"},
        {NULL, NULL, "ORRERY_KEY=other", "other"},
        {NULL, NULL, "ORRERY_KEY=", AUTH_DEVELOPMENT_KEY},
        {NULL, NULL, "ORRERY_KEY_FILE=/nothing", AUTH_DEVELOPMENT_KEY},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        char *variable = arena_cstr(&test_arena, slice_from_cstr(rows[i].variable));
        char *environment[] = {variable, NULL};
        const char *key = NULL;
        assert_ok(connection_choose_key(rows[i].key, rows[i].key_file, &test_arena, environment,
                                        &key, err));
        variable[strlen(variable) - 1] = '*';
        assert_string_equal(key, rows[i].expected); /* a copy */
    }
    assert_int_equal(unlink(path), 0);
}

static void wrong_arguments_are_refused(void **state)
{
    (void)state;
    static const struct {
        ConnectionArguments arguments;
        const char *says;
    } rows[] = {
        {{.database = "d"}, "--database and --container are needed"},
        {{.container = "c"}, "--database and --container are needed"},
        {{.database = "d", .container = "c", .insecure = true, .cert = "f"},
         "--insecure and --cert exclude each other"},
        {{.database = "d", .container = "c", .key = "k", .key_file = "f"},
         "--key and --key-file exclude each other"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        ConnectionArguments arguments = rows[i].arguments;
        arguments.endpoint = "http://localhost:1";
        char *environment[] = {NULL};
        Client *client = NULL;
        Error err = {0};
        Status status = connection_open(&arguments, &test_arena, environment, 0, &client, &err);
        assert_status(status, STATUS_BAD_REQUEST);
        assert_null(client);
        if (strstr(err.message, rows[i].says) == NULL)
            fail_msg("row %zu: %s", i, err.message);
    }
}

static void a_refusal_is_one_harmless_line(void **state)
{
    (void)state;
    static const struct {
        int http_status;
        const char *body;
        Status status;
        const char *says;
    } rows[] = {
        {401, "{\"message\":\"no such key\\r\\nActivityId: 1\"}", STATUS_UNAUTHORIZED,
         "the server answered 401: no such key"},
        {403, "{}", STATUS_UNAUTHORIZED, "the server answered 403: "},
        {404, "{\"message\":7}", STATUS_NOT_FOUND, "the server answered 404: "},
        {503, "{\"reason\":\"disk full\"}", STATUS_UNAVAILABLE,
         "the server answered 503: disk full"},
        {500, "not json \033[2J", STATUS_UNAVAILABLE, "the server answered 500: "},
        {500, "", STATUS_UNAVAILABLE, "the server answered 500: "},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        ClientCall call = {.http_status = rows[i].http_status,
                           .body = slice_from_cstr(rows[i].body),
                           .arena = &test_arena};
        Error err = {0};
        assert_status(connection_refused(&call, &err), rows[i].status);
        assert_string_equal(err.message, rows[i].says);
    }
    static const char body[] = "{\"message\":\"a\\u001b[2J\\u0007\\u202e\"}";
    ClientCall call = {.http_status = 500, .body = slice_from_cstr(body), .arena = &test_arena};
    Error err = {0};
    assert_status(connection_refused(&call, &err), STATUS_UNAVAILABLE);
    for (const char *c = err.message; *c != '\0'; c++)
        assert_true(*c >= ' ' && *c < 0x7f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, test_arena_setup, test_arena_teardown)
        TEST(the_nearest_key_is_used),
        TEST(wrong_arguments_are_refused),
        TEST(a_refusal_is_one_harmless_line),
#undef TEST
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
