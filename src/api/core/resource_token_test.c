/* resource_token_test.c - tokens come back as they were issued, and no others do. */
#include "api/core/resource_token.h"

#include "base/date.h"
#include "base/random.h"
#include "base/test_seed.h"
#include "base/testing.h"
#include "json/json_testing.h"

#define NOW_S  INT64_C(1700000000)
#define NOW_US ((uint64_t)NOW_S * 1000000)

/* A snapshot with one user that has one permission. */
typedef struct Fixture {
    Arena arena;
    Snapshot *snapshot;
    ResourceTokenKey key;
} Fixture;

static void put_permission(Fixture *f, const char *mode, uint64_t granted_lsn)
{
    Slice row = arena_format(&f->arena,
                             "{'id':'p','permissionMode':'%s','resource':'dbs/d/colls/c'}", mode);
    PermissionRecord record = {.number = 3,
                               .owner = {1, 2},
                               .lsn = 9,
                               .granted_lsn = granted_lsn,
                               .definition = row_json(&f->arena, arena_cstr(&f->arena, row))};
    Permission *permission = NULL;
    assert_ok(permission_new(&record, &permission, err));
    assert_true(snapshot_put_permission(f->snapshot, permission));
}

static void fixture_open(Fixture *f)
{
    arena_init(&f->arena, 4096);
    f->snapshot = snapshot_new((HashKey){0});
    DatabaseRecord database = {.number = 1, .id = SLICE("d"), .lsn = 1};
    assert_true(snapshot_put_database(f->snapshot, database_new(&database)));
    UserRecord user = {.number = 2, .database = 1, .id = SLICE("u"), .lsn = 1};
    assert_true(snapshot_put_user(f->snapshot, user_new(&user)));
    put_permission(f, "All", 5);
    resource_token_key_init(&f->key, "secret", 6);
}

static void fixture_close(Fixture *f)
{
    snapshot_unref(f->snapshot);
    arena_done(&f->arena);
}
DEFINE_AUTO_VALUE(Fixture, fixture_close)

static Slice issue(Fixture *f, uint32_t lifetime_s)
{
    const Permission *permission = snapshot_permission(f->snapshot, (UserKey){1, 2}, 3);
    return resource_token_make(&f->key, permission, NOW_US, lifetime_s, &f->arena);
}

static Status check(Fixture *f, Slice text, int64_t now_s, Principal *out, Error *err)
{
    AuthToken token;
    TRY(auth_parse(&f->arena, text, &token, err));
    assert_int_equal(token.scheme, AUTH_RESOURCE);
    return resource_token_check(&f->key, &token, f->snapshot, now_s, &f->arena, out, err);
}

static void a_token_has_the_form_of_the_service(void **state)
{
    (void)state;
    AUTO(fixture_close) Fixture f;
    fixture_open(&f);
    Slice token = issue(&f, 3600);
    assert_true(slice_starts_with(token, SLICE("type=resource&ver=1&sig=")));
    Slice rest = slice_from(token, strlen("type=resource&ver=1&sig="));
    assert_int_equal(slice_cut(&rest, ';').len, 24);
    assert_true(slice_cut(&rest, ';').len > 0);
    assert_int_equal(rest.len, 0);
    assert_true(token.len < 2048);
    assert_int_equal(slice_find(token, ','), token.len);
    assert_false(slice_equal(
        token, resource_token_make(&f.key, snapshot_permission(f.snapshot, (UserKey){1, 2}, 3),
                                   NOW_US + 1, 3600, &f.arena)));
}

static void every_spelling_of_a_token_is_accepted(void **state)
{
    (void)state;
    AUTO(fixture_close) Fixture f;
    fixture_open(&f);
    Slice token = issue(&f, 3600);
    Slice rest = slice_from(token, strlen("type=resource&ver=1&sig="));
    Slice spellings[] = {
        token,
        slice_first(token, token.len - 1), /* without its ';' */
        percent_encode(&f.arena, token, SLICE_EMPTY),
        arena_format(&f.arena, "type=resource&ver=1.0&sig=%.*s", SLICE_ARG(rest)),
        arena_format(&f.arena, "type=Resource&ver=1&sig=%.*s", SLICE_ARG(rest)),
        arena_format(&f.arena, "%.*s,more", SLICE_ARG(token)),
    };
    for (size_t i = 0; i < ARRAY_COUNT(spellings); i++) {
        Principal principal = {.kind = PRINCIPAL_KEY};
        assert_ok(check(&f, spellings[i], NOW_S, &principal, err));
        assert_int_equal(principal.kind, PRINCIPAL_RESOURCE_TOKEN);
        assert_int_equal(principal.permission->info.number, 3);
        assert_true(principal.is_all);
        assert_slice(principal.name, SLICE("user 'u', permission 'p'"));
    }
}

static void expect_refused(Fixture *f, Slice token, int64_t now_s, Status status, const char *says)
{
    Principal principal = {.kind = PRINCIPAL_KEY};
    Error err = {0};
    assert_int_equal(check(f, token, now_s, &principal, &err), status);
    if (strstr(err.message, says) == NULL)
        fail_msg("expected '%s' in '%s'", says, err.message);
    assert_int_equal(principal.kind, PRINCIPAL_KEY); /* not written */
}

/* Any single change of a bit makes a token worthless, as does another secret. */
static void a_forged_token_is_refused(void **state)
{
    (void)state;
    AUTO(fixture_close) Fixture f;
    fixture_open(&f);
    Slice token = issue(&f, 3600);
    size_t begin = strlen("type=resource&ver=1&sig=");
    for (size_t i = begin; i + 1 < token.len; i++) {
        for (int bit = 0; bit < 7; bit++) {
            char *forged = arena_cstr(&f.arena, token);
            forged[i] = (char)(forged[i] ^ (1 << bit));
            if (forged[i] == '%' || forged[i] == ',' || forged[i] == '\0')
                continue;
            Principal principal = {.kind = PRINCIPAL_KEY};
            Error err;
            assert_int_equal(check(&f, slice_make(forged, token.len), NOW_S, &principal, &err),
                             STATUS_UNAUTHORIZED);
        }
    }
    for (size_t len = begin + 1; len + 1 < token.len; len++)
        expect_refused(&f, slice_first(token, len), NOW_S, STATUS_UNAUTHORIZED, "can't serve");
    resource_token_key_init(&f.key, "Secret", 6);
    expect_refused(&f, token, NOW_S, STATUS_UNAUTHORIZED, "can't serve");
}

static void a_token_is_good_for_its_time(void **state)
{
    (void)state;
    AUTO(fixture_close) Fixture f;
    fixture_open(&f);
    Slice token = issue(&f, 10);
    Principal principal;
    assert_ok(check(&f, token, NOW_S + 9, &principal, err));
    assert_ok(check(&f, token, NOW_S - 900, &principal, err));
    const char *says = "The authorization token is not valid at the current time";
    expect_refused(&f, token, NOW_S + 10, STATUS_FORBIDDEN, says);
    expect_refused(&f, token, NOW_S - 901, STATUS_FORBIDDEN, says);
    expect_refused(&f, token, INT64_C(1) << 40, STATUS_FORBIDDEN,
                   "token start time: Tue, 14 Nov 2023 22:13:20 GMT, token expiry time: Tue, 14 "
                   "Nov 2023 22:13:30 GMT");
}

static void a_token_dies_with_what_it_was_issued_for(void **state)
{
    (void)state;
    AUTO(fixture_close) Fixture f;
    fixture_open(&f);
    Slice token = issue(&f, 3600);
    const char *says = "Insufficient permissions provided in the authorization header";
    put_permission(&f, "Read", 9); /* less than it was */
    expect_refused(&f, token, NOW_S, STATUS_FORBIDDEN, says);
    Slice read = issue(&f, 3600);
    put_permission(&f, "All", 9); /* more: what was issued stays what it was */
    Principal principal;
    assert_ok(check(&f, read, NOW_S, &principal, err));
    assert_false(principal.is_all);
    snapshot_remove_permission(f.snapshot, (UserKey){1, 2}, 3);
    expect_refused(&f, read, NOW_S, STATUS_FORBIDDEN, says);
    snapshot_remove_user(f.snapshot, (UserKey){1, 2});
    expect_refused(&f, read, NOW_S, STATUS_FORBIDDEN, says);
    snapshot_remove_database(f.snapshot, 1);
    expect_refused(&f, read, NOW_S, STATUS_FORBIDDEN, says);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_token_has_the_form_of_the_service),
        cmocka_unit_test(every_spelling_of_a_token_is_accepted),
        cmocka_unit_test(a_forged_token_is_refused),
        cmocka_unit_test(a_token_is_good_for_its_time),
        cmocka_unit_test(a_token_dies_with_what_it_was_issued_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
