/* node_address_test.c - HOST:PORT, taken and refused. */
#include "http/node_address_int.h"

#include "base/testing.h"

#include <arpa/inet.h>
#include <netinet/in.h>

static void addresses_are_told_from_names_and_from_nonsense(void **state)
{
    static const struct {
        const char *text, *shown; /* NULL: is refused */
        bool is_name;
    } rows[] = {
        {"127.0.0.1:8081", "127.0.0.1 8081", false},
        {"[::1]:65535", "::1 65535", false},
        {"[2001:db8::7]:1", "2001:db8::7 1", false},
        {"node-1.example.org:8081", NULL, true},
        {"node-1.example.org", NULL, false},
        {"node-1:", NULL, false},
        {"node-1:0", NULL, false},
        {"node-1:65536", NULL, false},
        {"node-1:8081x", NULL, false},
        {"node-1:+80", NULL, false},
        {":8081", NULL, false},
        {"", NULL, false},
        {":", NULL, false},
        {"::1:8081", NULL, false},
        {"[]:8081", NULL, false},
        {"[::1:8081", NULL, false},
        {"no de:8081", NULL, false},
        {"no\nde:8081", NULL, false},
        {"n\xc3\xb6"
         "de:8081",
         NULL, false},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        Error err;
        NodeAddresses found;
        bool is_name = false;
        Status status = node_address_resolve(slice_from_cstr(rows[i].text), NODE_ADDRESS_NUMERIC,
                                             &found, &is_name, &err);
        if ((status == STATUS_OK) != (rows[i].shown != NULL) || is_name != rows[i].is_name)
            fail_msg("'%s': status %d, name %d", rows[i].text, status, is_name);
        if (status != STATUS_OK)
            continue;
        char host[64];
        char shown[80];
        assert_int_equal(found.count, 1);
        const struct sockaddr_storage *storage = &found.list[0].storage;
        const struct sockaddr_in *v4 = (const struct sockaddr_in *)storage;
        const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)storage;
        bool is_v6 = storage->ss_family == AF_INET6;
        assert_non_null(inet_ntop(storage->ss_family,
                                  is_v6 ? (const void *)&v6->sin6_addr : &v4->sin_addr, host,
                                  sizeof(host)));
        (void)snprintf(shown, sizeof(shown), "%s %u", host,
                       ntohs(is_v6 ? v6->sin6_port : v4->sin_port));
        assert_string_equal(shown, rows[i].shown);
    }
}

static void a_long_name_is_refused(void **state)
{
    char text[400];
    Error err;
    NodeAddresses found;
    bool is_name = false;
    (void)state;
    memset(text, 'a', sizeof(text));
    memcpy(text + sizeof(text) - 5, ":8081", 5);
    assert_int_equal(node_address_resolve(slice_make(text, sizeof(text)), NODE_ADDRESS_NUMERIC,
                                          &found, &is_name, &err),
                     STATUS_BAD_REQUEST);
    assert_false(is_name);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(addresses_are_told_from_names_and_from_nonsense),
        cmocka_unit_test(a_long_name_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
