/* cluster_settings_test.c - what a node is told of its cluster, and what is refused. */
#include "cli/cluster_settings.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define ENGINE "postgresql://orrery@db1:5432,db2:5432/orrery"

static void a_node_is_told_everything_or_nothing(void **state UNUSED)
{
    static const struct {
        ClusterTexts texts;
        const char *message; /* NULL if it is good */
        const char *host;
        uint16_t port;
    } rows[] = {
        {{"", "", "", "", ""}, NULL, NULL, 0},
        {{ENGINE, "f", "a", "http://10.0.0.1:8081", ""}, NULL, "10.0.0.1", 0},
        {{ENGINE, "f", "a", "https://a.example/", ""}, NULL, "a.example", 0},
        {{ENGINE, "f", "a.b-c_9", "http://[::1]:8081", ""}, NULL, "::1", 0},
        {{ENGINE, "f", "a", "http://10.0.0.1:8081", "10.1.0.1:9000"}, NULL, "10.1.0.1", 9000},
        {{ENGINE, "f", "a", "http://10.0.0.1:8081", "[fd00::1]:9000"}, NULL, "fd00::1", 9000},
        {{ENGINE, "", "a", "http://10.0.0.1:8081", ""}, "--cluster-secret", NULL, 0},
        {{ENGINE, "f", "", "http://10.0.0.1:8081", ""}, "--node", NULL, 0},
        {{"", "", "", "", "10.1.0.1:9000"}, "--cluster URL", NULL, 0},
        {{"db1:5432", "f", "a", "http://10.0.0.1:8081", ""}, "postgresql://", NULL, 0},
        {{ENGINE, "f", "a b", "http://10.0.0.1:8081", ""}, "--node", NULL, 0},
        {{ENGINE, "f", "a", "10.0.0.1:8081", ""}, "--advertise", NULL, 0},
        {{ENGINE, "f", "a", "http://10.0.0.1:8081/path", ""}, "--advertise", NULL, 0},
        {{ENGINE, "f", "a", "http://u@10.0.0.1", ""}, "--advertise", NULL, 0},
        {{ENGINE, "f", "a", "http://10.0.0.1:99999", ""}, "--advertise", NULL, 0},
        {{ENGINE, "f", "a", "http://fd00::1", ""}, "--advertise", NULL, 0},
        {{ENGINE, "f", "a", "http://10.0.0.1", "10.0.0.1:x"}, "--peer", NULL, 0},
        {{ENGINE, "f", "a", "http://10.0.0.1", "[fd00::1:9000"}, "--peer", NULL, 0},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        AUTO(arena_done) Arena arena;
        arena_init(&arena, 1024);
        ClusterSettings settings = {0};
        Error err = {0};
        Status status = cluster_settings_read(&arena, &rows[i].texts, &settings, &err);
        if (rows[i].message != NULL) {
            assert_int_equal(status, STATUS_BAD_REQUEST);
            if (strstr(err.message, rows[i].message) == NULL)
                fail_msg("row %zu: '%s' in '%s'", i, rows[i].message, err.message);
            continue;
        }
        if (status != STATUS_OK)
            fail_msg("row %zu: %s", i, err.message);
        if (rows[i].host == NULL) {
            assert_null(settings.engine);
            continue;
        }
        assert_string_equal(settings.peer_host, rows[i].host);
        assert_int_equal(settings.peer_port, rows[i].port);
    }
}

/* A file with this text and mode; the caller removes it. */
static void make_file(char path[64], const char *text, mode_t mode)
{
    (void)snprintf(path, 64, "/tmp/orrery_secret_XXXXXX");
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    assert_int_equal(fchmod(fd, mode), 0);
    assert_int_equal(close(fd), 0);
}

#define SECRET "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="

static void only_a_whole_secret_that_nobody_else_can_read_is_taken(void **state UNUSED)
{
    static const struct {
        const char *text;
        mode_t mode;
        const char *message;
    } rows[] = {
        {SECRET "\n", 0600, NULL},           {SECRET, 0400, NULL},
        {SECRET, 0640, "chmod 600"},         {SECRET, 0604, "chmod 600"},
        {"", 0600, "orrery cluster secret"}, {"AAECAw==\n", 0600, "orrery cluster secret"},
        {SECRET SECRET, 0600, "secret"},     {"not base64!", 0600, "secret"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char path[64];
        uint8_t secret[CLUSTER_SECRET_BYTES] = {0};
        Error err = {0};
        make_file(path, rows[i].text, rows[i].mode);
        Status status = cluster_secret_read(path, secret, &err);
        (void)unlink(path);
        if (rows[i].message == NULL) {
            assert_int_equal(status, STATUS_OK);
            assert_int_equal(secret[31], 31);
        } else {
            assert_int_not_equal(status, STATUS_OK);
            assert_non_null(strstr(err.message, rows[i].message));
            assert_null(strstr(err.message, "AAEC")); /* no part of the secret */
        }
    }
}

static void each_use_has_a_secret_of_its_own(void **state UNUSED)
{
    uint8_t secret[CLUSTER_SECRET_BYTES] = {1};
    uint8_t a[CLUSTER_SECRET_BYTES], b[CLUSTER_SECRET_BYTES], again[CLUSTER_SECRET_BYTES];
    cluster_secret_derive(secret, "journal", a);
    cluster_secret_derive(secret, "links", b);
    cluster_secret_derive(secret, "journal", again);
    assert_memory_equal(a, again, sizeof(a));
    assert_memory_not_equal(a, b, sizeof(a));
    assert_memory_not_equal(a, secret, sizeof(a));
}

static void small_journals_have_small_tables(void **state UNUSED)
{
    static const struct {
        uint64_t journal_mb, rotate_mb; /* 0: the journal's own choice */
    } rows[] = {{256, 16}, {1024, 64}, {4095, 255}, {4096, 0}, {8192, 0}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        ClusterSettings settings = {.journal_bytes = rows[i].journal_mb << 20};
        assert_int_equal(cluster_settings_rotate_bytes(&settings) >> 20, rows[i].rotate_mb);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_node_is_told_everything_or_nothing),
        cmocka_unit_test(only_a_whole_secret_that_nobody_else_can_read_is_taken),
        cmocka_unit_test(each_use_has_a_secret_of_its_own),
        cmocka_unit_test(small_journals_have_small_tables),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
