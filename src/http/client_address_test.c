/* client_address_test.c - which addresses are one client, and how many connections it may have. */
#include "http/client_address_int.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static HttpClient client_of(const char *text)
{
    struct sockaddr_in v4 = {.sin_family = AF_INET};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6};
    if (inet_pton(AF_INET, text, &v4.sin_addr) == 1)
        return client_of_address((const struct sockaddr *)&v4);
    assert_int_equal(inet_pton(AF_INET6, text, &v6.sin6_addr), 1);
    return client_of_address((const struct sockaddr *)&v6);
}

static void an_address_is_one_client_and_so_is_a_64(void **state)
{
    (void)state;
    static const struct {
        const char *one, *other;
        bool is_same;
    } rows[] = {
        {"10.0.0.1", "10.0.0.1", true},
        {"10.0.0.1", "10.0.0.2", false},
        {"10.0.0.1", "::ffff:10.0.0.1", true},
        {"2001:db8:1:2::1", "2001:db8:1:2:ffff:ffff:ffff:ffff", true},
        {"2001:db8:1:2::1", "2001:db8:1:3::1", false},
        {"2001:db8::1", "10.0.0.1", false},
        {"::1", "127.0.0.1", false},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++)
        assert_int_equal(client_of(rows[i].one).number == client_of(rows[i].other).number,
                         rows[i].is_same);
}

static void loopback_is_local(void **state)
{
    (void)state;
    static const struct {
        const char *address;
        bool is_local;
    } rows[] = {
        {"127.0.0.1", true},  {"127.9.8.7", true},    {"::1", true},  {"::ffff:127.0.0.1", true},
        {"128.0.0.1", false}, {"2001:db8::1", false}, {"::2", false},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++)
        assert_int_equal(client_of(rows[i].address).is_local, rows[i].is_local);
    struct sockaddr other = {.sa_family = AF_UNIX};
    assert_true(client_of_address(&other).is_local);
}

static void a_client_can_be_printed(void **state)
{
    (void)state;
    static const struct {
        const char *address, *text;
    } rows[] = {
        {"10.0.0.1", "10.0.0.1"},
        {"255.255.255.255", "255.255.255.255"},
        {"::ffff:10.0.0.1", "10.0.0.1"},
        {"2001:db8:1:2::1", "2001:db8:1:2::/64"},
        {"::1", "::/64"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        char text[HTTP_CLIENT_TEXT_MAX];
        http_client_print(client_of(rows[i].address), text);
        assert_string_equal(text, rows[i].text);
    }
}

static void one_client_has_as_many_as_it_may(void **state)
{
    (void)state;
    AddressCounts counts;
    address_counts_open(&counts, 3);
    HttpClient greedy = client_of("10.0.0.1");
    HttpClient other = client_of("10.0.0.2");
    for (int i = 0; i < 3; i++)
        assert_true(address_counts_enter(&counts, greedy));
    for (int i = 0; i < 1000; i++)
        assert_false(address_counts_enter(&counts, greedy));
    assert_true(address_counts_enter(&counts, other));
    address_counts_leave(&counts, greedy);
    assert_true(address_counts_enter(&counts, greedy));
    assert_false(address_counts_enter(&counts, greedy));
    address_counts_close(&counts);
}

static void without_a_limit_nothing_is_counted(void **state)
{
    (void)state;
    AddressCounts counts;
    address_counts_open(&counts, 0);
    for (int i = 0; i < 1000; i++)
        assert_true(address_counts_enter(&counts, client_of("10.0.0.1")));
    address_counts_leave(&counts, client_of("10.0.0.1"));
    address_counts_close(&counts);
}

/* As many addresses as there are connections: hardly any is refused for the sake of others. */
static void a_full_server_does_not_confuse_clients(void **state)
{
    (void)state;
    enum { COUNT = 16384 };
    AddressCounts counts;
    address_counts_open(&counts, 4);
    int refused = 0;
    for (uint32_t i = 0; i < COUNT; i++)
        refused += !address_counts_enter(&counts, (HttpClient){.number = i});
    assert_true(refused <= 2); /* both cells of it would have to be full */
    address_counts_close(&counts);
}

enum { THREADS = 4, ROUNDS = 20000 };

static void *come_and_go(void *arg)
{
    AddressCounts *counts = arg;
    for (int i = 0; i < ROUNDS; i++)
        if (address_counts_enter(counts, (HttpClient){.number = 7}))
            address_counts_leave(counts, (HttpClient){.number = 7});
    return NULL;
}

static void threads_leave_nothing_behind(void **state)
{
    (void)state;
    AddressCounts counts;
    address_counts_open(&counts, 2);
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, come_and_go, &counts), 0);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    for (size_t i = 0; i < (size_t)ADDRESS_ROWS * ADDRESS_CELLS; i++)
        assert_int_equal(atomic_load(&counts.cells[i]), 0);
    address_counts_close(&counts);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_address_is_one_client_and_so_is_a_64),
        cmocka_unit_test(loopback_is_local),
        cmocka_unit_test(a_client_can_be_printed),
        cmocka_unit_test(one_client_has_as_many_as_it_may),
        cmocka_unit_test(without_a_limit_nothing_is_counted),
        cmocka_unit_test(a_full_server_does_not_confuse_clients),
        cmocka_unit_test(threads_leave_nothing_behind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
