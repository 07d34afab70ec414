/* node_names_test.c - names that are resolved late, not at all, or to something else later. */
#include "http/node_names_int.h"

#include "base/cond.h"
#include "base/testing.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdatomic.h>

#define NAME SLICE("node-a.example:7000")

enum { LONG_MS = 20000, SHORT_MS = 60 };

/* The system's resolver. */
static _Atomic bool hangs;
static _Atomic bool fails;
static _Atomic unsigned asked;
static _Atomic uint16_t port_found;

static Status resolve(Slice text, NodeAddresses *out, Error *err)
{
    assert_true(slice_ends_with(text, SLICE(":7000")));
    atomic_fetch_add(&asked, 1);
    while (atomic_load(&hangs))
        sleep_ms(1);
    if (atomic_load(&fails))
        return error_set(err, STATUS_UNAVAILABLE, SUB_NONE, "no such name");
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons(atomic_load(&port_found))};
    *out = (NodeAddresses){.count = 1};
    memcpy(&out->list[0].storage, &address, sizeof(address));
    out->list[0].len = sizeof(address);
    return STATUS_OK;
}

static NodeNames *begin(void)
{
    atomic_store(&hangs, false);
    atomic_store(&fails, false);
    atomic_store(&asked, 0);
    atomic_store(&port_found, 1);
    return node_names_new(resolve);
}

/* The port of what is found, or 0. */
static unsigned find(NodeNames *names, Slice text, uint32_t ms, Status expected)
{
    NodeAddresses found = {0};
    Error error = {0};
    Status status = node_names_find(names, text, cond_after_ms(ms), &found, &error);
    assert_int_equal(status, expected);
    if (status != STATUS_OK)
        return 0;
    struct sockaddr_in address;
    memcpy(&address, &found.list[0].storage, sizeof(address));
    return ntohs(address.sin_port);
}

static void a_name_is_resolved_once(void **state)
{
    (void)state;
    NodeNames *names = begin();
    for (int i = 0; i < 3; i++)
        assert_int_equal(find(names, NAME, LONG_MS, STATUS_OK), 1);
    assert_int_equal(atomic_load(&asked), 1);
    assert_int_equal(find(names, SLICE("127.0.0.1:9"), 0, STATUS_OK), 9);
    (void)find(names, SLICE("node"), LONG_MS, STATUS_BAD_REQUEST);
    assert_int_equal(atomic_load(&asked), 1);
    node_names_free(names);
}

static void a_resolver_that_hangs_is_waited_for_until_the_deadline(void **state)
{
    (void)state;
    NodeNames *names = begin();
    atomic_store(&hangs, true);
    uint64_t begun_us = cond_now_us();
    for (int i = 0; i < 3; i++)
        (void)find(names, NAME, SHORT_MS, STATUS_TIMEOUT);
    uint64_t took_us = cond_now_us() - begun_us;
    assert_true(took_us >= 3 * SHORT_MS * 1000 && took_us < LONG_MS * 1000);
    assert_int_equal(atomic_load(&asked), 1); /* it is asked already */
    atomic_store(&hangs, false);
    assert_int_equal(find(names, NAME, LONG_MS, STATUS_OK), 1);
    assert_int_equal(atomic_load(&asked), 1);
    node_names_free(names);
}

static void what_was_found_is_good_while_the_resolver_is_not(void **state)
{
    (void)state;
    NodeNames *names = begin();
    assert_int_equal(find(names, NAME, LONG_MS, STATUS_OK), 1);
    node_names_doubt(names, NAME);
    atomic_store(&fails, true);
    assert_int_equal(find(names, NAME, LONG_MS, STATUS_OK), 1);
    assert_int_equal(atomic_load(&asked), 2);
    atomic_store(&hangs, true);
    assert_int_equal(find(names, NAME, SHORT_MS, STATUS_OK), 1);
    atomic_store(&fails, false);
    atomic_store(&port_found, 2); /* the node has moved */
    atomic_store(&hangs, false);
    assert_int_equal(find(names, NAME, LONG_MS, STATUS_OK), 2);
    unsigned before = atomic_load(&asked);
    assert_int_equal(find(names, NAME, LONG_MS, STATUS_OK), 2);
    assert_int_equal(atomic_load(&asked), before);
    node_names_free(names);
}

static void a_name_that_is_unknown_is_asked_for_again(void **state)
{
    (void)state;
    NodeNames *names = begin();
    node_names_doubt(names, NAME);
    atomic_store(&fails, true);
    (void)find(names, NAME, LONG_MS, STATUS_UNAVAILABLE);
    atomic_store(&fails, false);
    assert_int_equal(find(names, NAME, LONG_MS, STATUS_OK), 1);
    assert_int_equal(atomic_load(&asked), 2);
    node_names_free(names);
}

static void old_names_make_room_for_others(void **state)
{
    (void)state;
    NodeNames *names = begin();
    char text[64];
    for (int i = 0; i < NODE_NAMES_MAX + 10; i++) {
        (void)snprintf(text, sizeof(text), "node-%d:7000", i);
        assert_int_equal(find(names, slice_from_cstr(text), LONG_MS, STATUS_OK), 1);
    }
    assert_int_equal(atomic_load(&asked), NODE_NAMES_MAX + 10);
    assert_int_equal(find(names, slice_from_cstr(text), LONG_MS, STATUS_OK), 1);
    assert_int_equal(atomic_load(&asked), NODE_NAMES_MAX + 10);
    assert_int_equal(find(names, SLICE("node-0:7000"), LONG_MS, STATUS_OK), 1);
    assert_int_equal(atomic_load(&asked), NODE_NAMES_MAX + 11);
    node_names_free(names);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_name_is_resolved_once),
        cmocka_unit_test(a_resolver_that_hangs_is_waited_for_until_the_deadline),
        cmocka_unit_test(what_was_found_is_good_while_the_resolver_is_not),
        cmocka_unit_test(a_name_that_is_unknown_is_asked_for_again),
        cmocka_unit_test(old_names_make_room_for_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
