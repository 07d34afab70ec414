/* access_test.c - what identities and read-only keys may do, by made-up principals. */
/* Rows leave out what they do not care about. */
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"

#include "api/core/access_int.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

typedef struct Row {
    const char *method, *path, *header; /* which has the value "True" */
    int reader, contributor;            /* sub-status of the refusal, 0 if it is allowed */
    bool is_read;                       /* a read-only key may do it */
} Row;

#define C "/dbs/d/colls/c"
#define R "/dbs/AQAAAA==/colls/AQAAAIAAAAE="

static const Row ROWS[] = {
    {"GET", "/", NULL, 0, 0, true},
    {"HEAD", "/", NULL, 0, 0, true},
    {"GET", "/dbs", NULL, 0, 0, true},
    {"POST", "/dbs", NULL, 5300, 5300, false},
    {"POST", "/dbs", "x-ms-documentdb-isquery", 0, 0, true},
    {"GET", "/dbs/d", NULL, 0, 0, true},
    {"DELETE", "/dbs/d", NULL, 5300, 5300, false},
    {"GET", "/dbs/d/colls", NULL, 0, 0, true},
    {"POST", "/dbs/d/colls", NULL, 5300, 5300, false},
    {"GET", C, NULL, 0, 0, true},
    {"PUT", C, NULL, 5300, 5300, false},
    {"DELETE", C, NULL, 5300, 5300, false},
    {"GET", C "/pkranges", NULL, 0, 0, true},
    {"GET", C "/docs", NULL, 0, 0, true},
    {"GET", C "/docs", "a-im", 0, 0, true},
    {"POST", C "/docs", "x-ms-documentdb-isquery", 0, 0, true},
    {"POST", C "/docs", "x-ms-cosmos-is-query-plan-request", 0, 0, true},
    {"POST", C "/docs", NULL, 5302, 0, false},
    {"POST", R "/docs", NULL, 5303, 0, false},
    {"POST", C "/docs", "x-ms-documentdb-is-upsert", 5302, 0, false},
    {"POST", C "/docs", "x-ms-cosmos-is-batch-request", 0, 0, false},
    {"GET", C "/docs/i", NULL, 0, 0, true},
    {"PUT", C "/docs/i", NULL, 5302, 0, false},
    {"PATCH", C "/docs/i", NULL, 5302, 0, false},
    {"DELETE", C "/docs/i", NULL, 5302, 0, false},
    {"POST", C "/operations/partitionkeydelete", NULL, 5302, 0, false},
    {"POST", C "/operations/partitionmerge", NULL, 5300, 5300, false},
    {"GET", C "/operations/partitionmerge", NULL, 5300, 5300, false},
    {"GET", C "/sprocs", NULL, 5300, 5300, true},
    {"GET", C "/triggers/t", NULL, 5300, 5300, true},
    {"PUT", C "/udfs/u", NULL, 5300, 5300, false},
    {"POST", C "/sprocs/s", NULL, 5302, 0, false},
    {"GET", C "/conflicts", NULL, 5302, 0, true},
    {"DELETE", C "/conflicts/x", NULL, 5302, 0, false},
    {"GET", "/dbs/d/users", NULL, 5300, 5300, true},
    {"GET", "/dbs/d/users/u/permissions", NULL, 5300, 5300, false},
    {"GET", "/dbs/d/users/u/permissions/p", NULL, 5300, 5300, false},
    {"POST", "/dbs/d/users/u/permissions", "x-ms-documentdb-isquery", 5300, 5300, false},
    {"GET", "/dbs/d/clientencryptionkeys/k", NULL, 0, 0, true},
    {"POST", "/dbs/d/clientencryptionkeys", NULL, 5300, 5300, false},
    {"PUT", "/dbs/d/clientencryptionkeys/k", NULL, 5300, 5300, false},
    {"GET", "/offers", NULL, 5300, 5300, true},
    {"PUT", "/offers/AAAA", NULL, 5300, 5300, false},
    {"GET", C "/schemas", NULL, 5300, 5300, true},
};

static Status check(const Row *row, Principal principal, bool is_admin, Error *err)
{
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 1024);
    Api api = {.options.account = SLICE("orrery")};
    HttpHeader header = {slice_from_cstr(row->header == NULL ? "" : row->header), SLICE("True")};
    HttpRequest http = {
        .method = slice_from_cstr(row->method),
        .path = slice_from_cstr(row->path),
        .headers = &header,
        .header_count = row->header != NULL ? 1 : 0,
    };
    ApiRequest r = {
        .http = &http,
        .api = &api,
        .arena = &arena,
        .principal = principal,
        .is_admin = is_admin,
        .is_head = slice_equal(http.method, SLICE("HEAD")),
    };
    assert_int_equal(address_parse(&arena, http.path, &r.address, err), STATUS_OK);
    assert_int_equal(request_choose_operation(&r, err), STATUS_OK);
    return access_check(&r, err);
}

static void expect(const Row *row, Principal principal, int sub)
{
    Error err = {0};
    Status status = check(row, principal, false, &err);
    print_message("%s %s as %d/%d: %s\n", row->method, row->path, principal.kind, principal.role,
                  status == STATUS_OK ? "yes" : err.message);
    assert_int_equal(status, sub == 0 ? STATUS_OK : STATUS_FORBIDDEN);
    if (sub != 0)
        assert_int_equal(sub_number(err.sub), sub);
}

static Principal identity(IdentityRole role)
{
    return (Principal){.kind = PRINCIPAL_IDENTITY, .role = role, .oid = SLICE("o-i-d")};
}

static void roles_of_identities_allow_their_actions(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(ROWS); i++) {
        expect(&ROWS[i], identity(IDENTITY_READER), ROWS[i].reader);
        expect(&ROWS[i], identity(IDENTITY_CONTRIBUTOR), ROWS[i].contributor);
    }
}

static void without_a_role_everything_is_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(ROWS); i++) {
        Error err = {0};
        assert_int_equal(check(&ROWS[i], identity(IDENTITY_NONE), false, &err), STATUS_FORBIDDEN);
        int sub = sub_number(err.sub);
        assert_true(sub >= 5300 && sub <= 5303);
    }
}

static void read_only_keys_read_and_nothing_else(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(ROWS); i++) {
        Error err = {0};
        Status status = check(&ROWS[i], (Principal){.kind = PRINCIPAL_READ_ONLY_KEY}, false, &err);
        print_message("%s %s\n", ROWS[i].method, ROWS[i].path);
        assert_int_equal(status, ROWS[i].is_read ? STATUS_OK : STATUS_UNAUTHORIZED);
        assert_int_equal(check(&ROWS[i], (Principal){.kind = PRINCIPAL_KEY}, false, &err),
                         STATUS_OK);
    }
}

static void refusals_of_identities_have_the_words_of_the_service(void **state)
{
    (void)state;
    Error err;
    Row row = {"POST", "/dbs/x/colls"};
    assert_int_equal(check(&row, identity(IDENTITY_READER), false, &err), STATUS_FORBIDDEN);
    assert_string_equal(err.message,
                        "Request blocked by Auth orrery : The given request [POST /dbs/x/colls] "
                        "cannot be authorized by AAD token in data plane. Learn more: "
                        "https://aka.ms/cosmos-native-rbac");
    row = (Row){"GET", "/"};
    assert_int_equal(check(&row, identity(IDENTITY_NONE), false, &err), STATUS_FORBIDDEN);
    assert_string_equal(err.message,
                        "Request blocked by Auth orrery : Request is blocked because principal "
                        "[o-i-d] does not have required RBAC permissions to perform action "
                        "[Microsoft.DocumentDB/databaseAccounts/readMetadata] on resource [/].");
    row = (Row){"DELETE", C "/docs/i"};
    assert_int_equal(check(&row, identity(IDENTITY_READER), false, &err), STATUS_FORBIDDEN);
    assert_non_null(strstr(err.message, "[Microsoft.DocumentDB/databaseAccounts/sqlDatabases/"
                                        "containers/items/delete] on resource "
                                        "[/dbs/d/colls/c/docs/i]"));
}

/* What a path under /_orrery is signed as does not say what it does. */
static void the_pages_of_the_server_are_for_keys(void **state)
{
    (void)state;
    Row row = {"GET", C};
    Error err;
    assert_int_equal(check(&row, identity(IDENTITY_CONTRIBUTOR), true, &err), STATUS_FORBIDDEN);
    assert_int_equal(sub_number(err.sub), 5300);
    Permission all = {.mode = PERMISSION_ALL, .target = {TARGET_CONTAINER, SLICE("d"), SLICE("c")}};
    Principal token = {.kind = PRINCIPAL_RESOURCE_TOKEN, .permission = &all, .is_all = true};
    assert_int_equal(check(&row, token, true, &err), STATUS_FORBIDDEN);
    assert_int_equal(check(&row, (Principal){.kind = PRINCIPAL_READ_ONLY_KEY}, true, &err),
                     STATUS_OK);
}

static void operations_in_a_batch_need_an_action_each(void **state)
{
    (void)state;
    Api api = {.options.account = SLICE("orrery")};
    ApiRequest r = {.api = &api, .principal = identity(IDENTITY_READER)};
    Error err;
    assert_int_equal(access_check_operation(&r, ACTION_ITEM_READ, &err), STATUS_OK);
    assert_int_equal(access_check_operation(&r, ACTION_ITEM_UPSERT, &err), STATUS_FORBIDDEN);
    assert_int_equal(sub_number(err.sub), 5302);
    r.principal.role = IDENTITY_CONTRIBUTOR;
    assert_int_equal(access_check_operation(&r, ACTION_ITEM_UPSERT, &err), STATUS_OK);
    r.principal = (Principal){.kind = PRINCIPAL_KEY};
    assert_int_equal(access_check_operation(&r, ACTION_ITEM_UPSERT, &err), STATUS_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(roles_of_identities_allow_their_actions),
        cmocka_unit_test(without_a_role_everything_is_refused),
        cmocka_unit_test(read_only_keys_read_and_nothing_else),
        cmocka_unit_test(refusals_of_identities_have_the_words_of_the_service),
        cmocka_unit_test(the_pages_of_the_server_are_for_keys),
        cmocka_unit_test(operations_in_a_batch_need_an_action_each),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
