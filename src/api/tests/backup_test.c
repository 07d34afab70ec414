/* backup_test.c - requests under /_orrery/backup: who may ask, and what is refused. */
#include "api/tests/testing_int.h"

#define PATH "/_orrery/backup"

static void only_a_master_key_may_copy(void **state)
{
    (void)state;
    AUTO(fake_server_close) FakeServer server;
    fake_server_open(&server, NULL);
    static const Ask rows[] = {
        {"POST", PATH},         {"POST", PATH "?owner=AB"},
        {"GET", PATH "/00/0"},  {"GET", PATH "/00/0/sum"},
        {"DELETE", PATH "/00"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        Ask a = rows[i];
        a.key = FAKE_READ_KEY;
        (void)expect_status(&server, &a, 401);
        a.key = "";
        (void)expect_status(&server, &a, 401);
    }
}

static void what_is_not_there_is_refused(void **state)
{
    (void)state;
    AUTO(fake_server_close) FakeServer server;
    fake_server_open(&server, NULL);
    static const struct {
        Ask ask;
        int status;
    } rows[] = {
        {{"POST", PATH}, 501}, /* this engine has no files */
        {{"POST", PATH "/"}, 501},
        {{"POST", PATH "?owner="}, 400},
        {{"POST", PATH "?other=1"}, 400},
        {{"POST",
          PATH "?owner=0123456789012345678901234567890123456789012345678901234567890123456"},
         400},
        {{"GET", PATH}, 404},
        {{"PUT", PATH}, 404},
        {{"DELETE", PATH}, 404},
        {{"GET", PATH "/x/0"}, 404},
        {{"GET", PATH "/x/0?offset=1"}, 404},
        {{"DELETE", PATH "/x"}, 404},
        {{"POST", PATH "/x"}, 404},
        {{"POST", "/_orrery/backups"}, 405},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++)
        (void)expect_status(&server, &rows[i].ask, rows[i].status);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_a_master_key_may_copy),
        cmocka_unit_test(what_is_not_there_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
