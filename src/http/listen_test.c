/* listen_test.c - which addresses and ports are served. */
#include "http/listen_int.h"

#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static const Log QUIET = {.fd = -1, .level = LOG_LEVEL_ERROR};

static void open_ok(const char *host, uint16_t port, uint32_t loops, Listeners *out)
{
    Error err;
    if (listen_open(host, port, loops, &QUIET, out, &err) != STATUS_OK)
        fail_msg("%s", err.message);
}

static bool can_connect(int family, uint16_t port)
{
    struct sockaddr_in v4 = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct sockaddr_in6 v6 = {
        .sin6_family = AF_INET6, .sin6_port = htons(port), .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return false;
    int result = family == AF_INET ? connect(fd, (struct sockaddr *)&v4, sizeof(v4))
                                   : connect(fd, (struct sockaddr *)&v6, sizeof(v6));
    (void)close(fd);
    return result == 0;
}

static void every_loop_gets_every_address(void **state)
{
    (void)state;
    Listeners listeners;
    open_ok("127.0.0.1", 0, 3, &listeners);
    assert_int_not_equal(listeners.port, 0);
    assert_int_equal(listeners.address_count, 1);
    assert_int_equal(listeners.loop_count, 3);
    for (size_t i = 0; i < 3; i++)
        assert_true(fcntl(listeners.fds[i], F_GETFD) & FD_CLOEXEC);
    assert_true(can_connect(AF_INET, listeners.port));
    listen_close(&listeners);
}

static void a_port_in_use_is_named(void **state)
{
    (void)state;
    Listeners first, second;
    Error err;
    open_ok("127.0.0.1", 0, 2, &first);
    assert_int_equal(listen_open("127.0.0.1", first.port, 2, &QUIET, &second, &err),
                     STATUS_CONFLICT);
    char expected[128];
    (void)snprintf(expected, sizeof(expected),
                   "port %u on 127.0.0.1 is in use; choose another with --port", first.port);
    assert_string_equal(err.message, expected);

    /* And free again when the first one is gone. */
    uint16_t port = first.port;
    listen_close(&first);
    open_ok("127.0.0.1", port, 2, &second);
    assert_int_equal(second.port, port);
    listen_close(&second);
}

static void a_name_serves_all_its_addresses_on_one_port(void **state)
{
    (void)state;
    Listeners listeners;
    open_ok("localhost", 0, 1, &listeners);
    assert_in_range(listeners.address_count, 1, 2);
    assert_true(can_connect(AF_INET, listeners.port));
    if (listeners.address_count == 2)
        assert_true(can_connect(AF_INET6, listeners.port));
    listen_close(&listeners);
}

static void the_v6_wildcard_alone_serves_v4_too(void **state)
{
    (void)state;
    Listeners listeners;
    Error err;
    if (listen_open("::", 0, 1, &QUIET, &listeners, &err) == STATUS_NOT_FOUND)
        skip(); /* no IPv6 here */
    assert_true(can_connect(AF_INET, listeners.port));
    assert_true(can_connect(AF_INET6, listeners.port));
    listen_close(&listeners);
}

/* A network of our own in which there is only 127.0.0.1; false if we may not have one. */
static bool enter_network_without_v6(void)
{
    if (unshare(CLONE_NEWNET) != 0)
        return false;
    int setting = open("/proc/sys/net/ipv6/conf/all/disable_ipv6", O_WRONLY | O_CLOEXEC);
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    struct ifreq request = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};
    return fd >= 0 && (setting < 0 || write(setting, "1", 1) == 1) &&
           ioctl(fd, SIOCSIFFLAGS, &request) == 0;
}

/* In a child, because there is no way back from that network. */
static int serve_without_v6(void)
{
    enum { WENT_WELL = 0, WENT_WRONG = 1, NOT_POSSIBLE = 2 };
    Listeners listeners;
    Error err;
    if (!enter_network_without_v6())
        return NOT_POSSIBLE;
    if (listen_open("::1", 0, 1, &QUIET, &listeners, &err) != STATUS_NOT_FOUND)
        return WENT_WRONG;
    if (listen_open("localhost", 0, 2, &QUIET, &listeners, &err) != STATUS_OK)
        return WENT_WRONG;
    bool is_right = listeners.address_count == 1 && can_connect(AF_INET, listeners.port);
    listen_close(&listeners);
    return is_right ? WENT_WELL : WENT_WRONG;
}

static void an_address_that_the_machine_lacks_is_left_out(void **state)
{
    (void)state;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        _exit(serve_without_v6());
    int result = 0;
    assert_int_equal(waitpid(child, &result, 0), child);
    assert_true(WIFEXITED(result));
    if (WEXITSTATUS(result) == 2)
        skip(); /* only root may */
    assert_int_equal(WEXITSTATUS(result), 0);
}

static void hosts_that_cannot_be_served_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *host, *words;
        Status status;
    } rows[] = {
        {"no such host", "cannot resolve the host 'no such host'", STATUS_IO},
        {"203.0.113.7", "this machine has no address 203.0.113.7", STATUS_NOT_FOUND},
        {"2001:db8::7", "this machine has no address 2001:db8::7", STATUS_NOT_FOUND},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        Listeners listeners;
        Error err;
        assert_int_equal(listen_open(rows[i].host, 0, 1, &QUIET, &listeners, &err), rows[i].status);
        if (strstr(err.message, rows[i].words) == NULL)
            fail_msg("'%s' is not in '%s'", rows[i].words, err.message);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_loop_gets_every_address),
        cmocka_unit_test(a_port_in_use_is_named),
        cmocka_unit_test(a_name_serves_all_its_addresses_on_one_port),
        cmocka_unit_test(the_v6_wildcard_alone_serves_v4_too),
        cmocka_unit_test(an_address_that_the_machine_lacks_is_left_out),
        cmocka_unit_test(hosts_that_cannot_be_served_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
