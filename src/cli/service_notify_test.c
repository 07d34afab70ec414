/* service_notify_test.c - what a service manager gets, by both kinds of sockets. */
#include "cli/service_notify.h"

#include "base/testing.h"

#include <stddef.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* A manager that listens on 'name'; '@' stands for an abstract one. */
static int listen_on(const char *name)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t len = strlen(name);
    assert_true(len < sizeof(address.sun_path));
    memcpy(address.sun_path, name, len);
    if (name[0] == '@')
        address.sun_path[0] = '\0';
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, size), 0);
    return fd;
}

static void the_manager_gets_the_text(void **state)
{
    (void)state;
    char path[64];
    char abstract[64];
    (void)snprintf(path, sizeof(path), "/tmp/orrery-notify-%d", (int)getpid());
    (void)snprintf(abstract, sizeof(abstract), "@orrery-notify-%d", (int)getpid());
    const char *const names[] = {path, abstract};
    for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
        int fd = listen_on(names[i]);
        assert_true(service_notify(names[i], "READY=1"));
        char text[64] = "";
        assert_int_equal(recv(fd, text, sizeof(text), MSG_DONTWAIT), strlen("READY=1"));
        assert_string_equal(text, "READY=1");
        (void)close(fd);
        assert_false(service_notify(names[i], "READY=1"));
    }
    (void)unlink(path);
}

static void without_a_manager_nothing_happens(void **state)
{
    (void)state;
    char too_long[200];
    memset(too_long, 'x', sizeof(too_long));
    too_long[0] = '/';
    too_long[sizeof(too_long) - 1] = '\0';
    const char *const names[] = {NULL, "", "@", "x", "/nowhere/at/all", too_long};
    for (size_t i = 0; i < ARRAY_COUNT(names); i++)
        assert_false(service_notify(names[i], "READY=1"));
}

static void the_socket_is_found_in_the_environment(void **state)
{
    (void)state;
    char first[] = "NOTIFY_SOCKETS=/x";
    char second[] = "NOTIFY_SOCKET=/run/x";
    char *with[] = {first, second, NULL};
    char *without[] = {first, NULL};
    assert_string_equal(service_notify_socket(with), "/run/x");
    assert_null(service_notify_socket(without));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_manager_gets_the_text),
        cmocka_unit_test(without_a_manager_nothing_happens),
        cmocka_unit_test(the_socket_is_found_in_the_environment),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
