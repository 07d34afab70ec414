/* catalog_user_test.c - users and permissions: changes, refusals, restarts (I3, I17). */
#include "catalog/testing_int.h"

#define NONE MANUAL(0)
#define C    "'resource':'dbs/d/colls/c'"

static void expect_refusal(TestCatalog *t, TestChange *c, Status status, SubStatus sub,
                           const char *message)
{
    Slice before = test_dump(t);
    assert_int_equal(test_run(t->catalog, c), status);
    assert_int_equal(c->change.error.sub, sub);
    if (strstr(c->change.error.message, message) == NULL)
        fail_msg("expected '%s' in '%s'", message, c->change.error.message);
    assert_slice(test_dump(t), before);
    test_change_done(c);
}

static const User *find(TestCatalog *t, uint32_t database, const char *id)
{
    return snapshot_user_by_id(test_read(t), database, slice_from_cstr(id));
}

static const Permission *find_permission(TestCatalog *t, UserKey owner, const char *id)
{
    return snapshot_permission_by_id(test_read(t), owner, slice_from_cstr(id));
}

static void users_have_names_in_their_database(TestCatalog *t)
{
    uint32_t database = make_database(t, "db", NONE);
    uint32_t other = make_database(t, "other", NONE);
    uint32_t first = make_user(t, database, "u");
    uint32_t second = make_user(t, database, "v");
    (void)make_user(t, other, "u");
    assert_int_equal(second, first + 1);
    const User *user = find(t, database, "u");
    assert_int_equal(user->info.number, first);
    assert_int_equal(user->info.ts_s, TEST_BEGIN_S);
    Rid rid;
    assert_true(rid_parse(user->info.rid, &rid));
    assert_int_equal(rid.kind, RID_USER);
    assert_int_equal(rid.database, database);
    assert_int_equal(rid.user, first);
    assert_int_equal(snapshot_user_count(test_read(t), database), 2);
    assert_null(find(t, database, "w"));
    TestChange again;
    fill_user(&again, CATALOG_CREATE_USER, database, "u");
    expect_refusal(t, &again, STATUS_CONFLICT, SUB_NONE, "already exists");
    TestChange lost;
    fill_user(&lost, CATALOG_CREATE_USER, other + 1, "u");
    expect_refusal(t, &lost, STATUS_NOT_FOUND, SUB_OWNER_NOT_FOUND, "database was deleted");
}

static void an_upsert_of_a_user_goes_by_its_id(TestCatalog *t)
{
    uint32_t database = make_database(t, "db", NONE);
    for (int i = 0; i < 2; i++) {
        AUTO(test_change_done) TestChange c;
        fill_user(&c, CATALOG_CREATE_USER, database, "u");
        c.change.is_upsert = true;
        assert_int_equal(test_run(t->catalog, &c), STATUS_OK);
        assert_int_equal(c.change.has_replaced, i == 1);
        assert_int_equal(snapshot_user_count(test_read(t), database), 1);
    }
    TestChange stale;
    fill_user(&stale, CATALOG_CREATE_USER, database, "u");
    stale.change.is_upsert = true;
    stale.change.if_match = SLICE("\"old\"");
    expect_refusal(t, &stale, STATUS_PRECONDITION_FAILED, SUB_NONE, "pre-condition");
}

static void a_renamed_user_keeps_its_permissions(TestCatalog *t)
{
    uint32_t database = make_database(t, "db", NONE);
    UserKey key = {database, make_user(t, database, "u")};
    (void)make_user(t, database, "taken");
    (void)make_permission(t, key, "p", C);
    AUTO(user_unref) User *old = user_ref(find(t, database, "u"));
    AUTO(test_change_done) TestChange c;
    fill_user(&c, CATALOG_REPLACE_USER, database, "new");
    c.change.user = key.user;
    c.change.if_match = old->info.etag;
    assert_int_equal(test_run(t->catalog, &c), STATUS_OK);
    assert_null(find(t, database, "u"));
    const User *new = find(t, database, "new");
    assert_slice(new->info.rid, old->info.rid);
    assert_false(slice_equal(new->info.etag, old->info.etag));
    assert_non_null(find_permission(t, key, "p"));
    TestChange taken;
    fill_user(&taken, CATALOG_REPLACE_USER, database, "taken");
    taken.change.user = key.user;
    expect_refusal(t, &taken, STATUS_CONFLICT, SUB_NONE, "already exists");
    TestChange stale;
    fill_user(&stale, CATALOG_REPLACE_USER, database, "newer");
    stale.change.user = key.user;
    stale.change.if_match = old->info.etag;
    expect_refusal(t, &stale, STATUS_PRECONDITION_FAILED, SUB_NONE, "pre-condition");
    (void)make_user(t, database, "u"); /* the old name is free */
    Slice before = test_dump(t);
    test_reopen(t);
    assert_slice(test_dump(t), before);
}

/* No record of a kind is left in the store. */
static void expect_no_records(TestCatalog *t, const char *from)
{
    AUTO(store_cursor_close)
    StoreCursor *left =
        store_cursor_open(t->store, NULL, SPACE_CATALOG, slice_from_cstr(from), SLICE_EMPTY);
    Slice key, value;
    bool found = true;
    assert_ok(store_cursor_next(left, &key, &value, &found, err));
    assert_false(found);
}

static void permissions_go_with_their_user_and_users_with_their_database(TestCatalog *t)
{
    uint32_t database = make_database(t, "db", NONE);
    UserKey gone = {database, make_user(t, database, "gone")};
    UserKey stays = {database, make_user(t, database, "stays")};
    (void)make_permission(t, gone, "p", C);
    (void)make_permission(t, gone, "q", "'resource':'dbs/d/colls/e'");
    (void)make_permission(t, stays, "p", C);
    TestChange stale;
    fill_user(&stale, CATALOG_DELETE_USER, database, "");
    stale.change.user = gone.user;
    stale.change.if_match = SLICE("\"old\"");
    expect_refusal(t, &stale, STATUS_PRECONDITION_FAILED, SUB_NONE, "pre-condition");
    for (int i = 0; i < 2; i++) {
        AUTO(test_change_done) TestChange c;
        fill_user(&c, CATALOG_DELETE_USER, database, "");
        c.change.user = gone.user;
        assert_int_equal(test_run(t->catalog, &c), i == 0 ? STATUS_OK : STATUS_NOT_FOUND);
    }
    assert_null(snapshot_permission(test_read(t), gone, 1));
    static const CatalogOp ops[] = {CATALOG_CREATE_PERMISSION, CATALOG_REPLACE_PERMISSION,
                                    CATALOG_DELETE_PERMISSION};
    for (size_t i = 0; i < ARRAY_COUNT(ops); i++) {
        TestChange late;
        fill_permission(&late, ops[i], gone, row_permission(&t->arena, "p", "All", C));
        late.change.permission = 1;
        expect_refusal(t, &late, STATUS_NOT_FOUND, SUB_OWNER_NOT_FOUND, "user was deleted");
    }
    Slice before = test_dump(t);
    test_reopen(t);
    assert_slice(test_dump(t), before);
    assert_int_equal(snapshot_permission_count(test_read(t), stays), 1);
    assert_int_equal(delete_one(t, CATALOG_DELETE_DATABASE, database, 0), STATUS_OK);
    expect_no_records(t, "\x09");
    TestChange late;
    fill_user(&late, CATALOG_DELETE_USER, database, "");
    late.change.user = stays.user;
    expect_refusal(t, &late, STATUS_NOT_FOUND, SUB_OWNER_NOT_FOUND, "database was deleted");
}

static void a_user_has_one_permission_for_a_link_and_a_key(TestCatalog *t)
{
    uint32_t database = make_database(t, "db", NONE);
    UserKey user = {database, make_user(t, database, "u")};
    UserKey other = {database, make_user(t, database, "v")};
    (void)make_permission(t, user, "name", C);
    (void)make_permission(t, user, "rid", "'resource':'dbs/AQAAAA==/colls/AQAAAIAAAAE='");
    (void)make_permission(t, user, "key1", C ",'resourcePartitionKey':['1']");
    (void)make_permission(t, user, "key2", C ",'resourcePartitionKey':['2']");
    (void)make_permission(t, user, "item", "'resource':'dbs/d/colls/c/docs/1'");
    (void)make_permission(t, other, "name", C);
    const Permission *permission = find_permission(t, user, "key1");
    Rid rid;
    assert_true(rid_parse(permission->info.rid, &rid));
    assert_int_equal(rid.kind, RID_PERMISSION);
    assert_int_equal(rid.user, user.user);
    assert_int_equal(rid.child, permission->info.number);
    assert_true(permission->has_key);
    assert_int_equal(permission->key.count, 1);
    static const char *const taken[] = {
        C,
        "'resource':'/dbs/d/colls/c/'",
        "'resource':'dbs/d/colls/c/','resourcePartitionKey':['2']",
        "'resource':'dbs/d/colls/c/docs/1'",
    };
    for (size_t i = 0; i < ARRAY_COUNT(taken); i++) {
        for (int is_upsert = 0; is_upsert < 2; is_upsert++) {
            TestChange same;
            fill_permission(&same, CATALOG_CREATE_PERMISSION, user,
                            row_permission(&t->arena, "more", "All", taken[i]));
            same.change.is_upsert = is_upsert == 1;
            expect_refusal(t, &same, STATUS_CONFLICT, SUB_NONE, "for the same resource");
        }
    }
    TestChange named;
    fill_permission(&named, CATALOG_CREATE_PERMISSION, user,
                    row_permission(&t->arena, "rid", "All", "'resource':'dbs/d/colls/e'"));
    expect_refusal(t, &named, STATUS_CONFLICT, SUB_NONE, "'rid'");
}

/* Replaces "p" of the user; returns it, valid until the next change. */
static const Permission *replace(TestCatalog *t, UserKey user, uint32_t number, const char *mode,
                                 const char *rest)
{
    AUTO(test_change_done) TestChange c;
    fill_permission(&c, CATALOG_REPLACE_PERMISSION, user,
                    row_permission(&t->arena, "p", mode, rest));
    c.change.permission = number;
    if (test_run(t->catalog, &c) != STATUS_OK)
        fail_msg("%s", c.change.error.message);
    return find_permission(t, user, "p");
}

/* What was issued for a permission is good as long as it grants as much. */
static void a_grant_is_renewed_when_less_or_something_else_is_granted(TestCatalog *t)
{
    uint32_t database = make_database(t, "db", NONE);
    UserKey user = {database, make_user(t, database, "u")};
    uint32_t number = make_permission(t, user, "p", C);
    uint64_t granted = find_permission(t, user, "p")->granted_lsn;
    assert_int_equal(granted, find_permission(t, user, "p")->info.lsn);
    static const struct {
        const char *mode, *rest;
        bool is_renewed;
    } rows[] = {
        {"Read", C, false},
        {"All", C, false},
        {"All", "'resource':'dbs/d/colls/c/'", false},
        {"Read", C, true},
        {"Read", "'resource':'dbs/d/colls/e'", true},
        {"Read", "'resource':'dbs/d/colls/e','resourcePartitionKey':[1]", true},
        {"Read", "'resource':'dbs/d/colls/e','resourcePartitionKey':[1]", false},
        {"Read", "'resource':'dbs/d/colls/e','resourcePartitionKey':[2]", true},
        {"All", "'resource':'dbs/d/colls/e'", true},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        const Permission *now = replace(t, user, number, rows[i].mode, rows[i].rest);
        print_message("%zu\n", i);
        assert_int_equal(now->info.number, number);
        assert_int_equal(now->granted_lsn != granted, rows[i].is_renewed);
        granted = now->granted_lsn;
        test_reopen(t);
        assert_int_equal(find_permission(t, user, "p")->granted_lsn, granted);
    }
}

static void permissions_are_replaced_renamed_and_deleted(TestCatalog *t)
{
    uint32_t database = make_database(t, "db", NONE);
    UserKey user = {database, make_user(t, database, "u")};
    uint32_t number = make_permission(t, user, "p", C);
    (void)make_permission(t, user, "taken", "'resource':'dbs/d/colls/e'");
    AUTO(permission_unref) Permission *old = permission_ref(find_permission(t, user, "p"));
    AUTO(test_change_done) TestChange c;
    fill_permission(&c, CATALOG_REPLACE_PERMISSION, user,
                    row_permission(&t->arena, "renamed", "All", "'resource':'dbs/d/colls/f'"));
    c.change.permission = number;
    c.change.if_match = old->info.etag;
    assert_int_equal(test_run(t->catalog, &c), STATUS_OK);
    assert_null(find_permission(t, user, "p"));
    assert_slice(find_permission(t, user, "renamed")->info.rid, old->info.rid);
    (void)make_permission(t, user, "p", C); /* name and grant are free */
    static const struct {
        const char *id, *rest;
        const char *says;
    } refusals[] = {
        {"taken", "'resource':'dbs/d/colls/f'", "'taken'"},
        {"renamed", "'resource':'dbs/d/colls/e'", "for the same resource"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(refusals); i++) {
        TestChange taken;
        fill_permission(&taken, CATALOG_REPLACE_PERMISSION, user,
                        row_permission(&t->arena, refusals[i].id, "All", refusals[i].rest));
        taken.change.permission = number;
        expect_refusal(t, &taken, STATUS_CONFLICT, SUB_NONE, refusals[i].says);
    }
    TestChange stale;
    fill_permission(&stale, CATALOG_DELETE_PERMISSION, user, JSON_NONE);
    stale.change.permission = number;
    stale.change.if_match = old->info.etag;
    expect_refusal(t, &stale, STATUS_PRECONDITION_FAILED, SUB_NONE, "pre-condition");
    for (int i = 0; i < 2; i++) {
        AUTO(test_change_done) TestChange delete;
        fill_permission(&delete, CATALOG_DELETE_PERMISSION, user, JSON_NONE);
        delete.change.permission = number;
        assert_int_equal(test_run(t->catalog, &delete), i == 0 ? STATUS_OK : STATUS_NOT_FOUND);
    }
    assert_null(find_permission(t, user, "renamed"));
    Slice before = test_dump(t);
    test_reopen(t);
    assert_slice(test_dump(t), before);
    assert_true(make_permission(t, user, "new", "'resource':'dbs/d/colls/f'") > number); /* I3 */
}

static void a_user_has_so_many_permissions(TestCatalog *t)
{
    uint32_t database = make_database(t, "db", NONE);
    UserKey user = {database, make_user(t, database, "u")};
    for (int i = 0; i < USER_PERMISSIONS_MAX; i++) {
        Slice id = arena_format(&t->arena, "p%d", i);
        Slice rest = arena_format(&t->arena, "'resource':'dbs/d/colls/c%d'", i);
        (void)make_permission(t, user, arena_cstr(&t->arena, id), arena_cstr(&t->arena, rest));
    }
    TestChange more;
    fill_permission(&more, CATALOG_CREATE_PERMISSION, user,
                    row_permission(&t->arena, "more", "All", C));
    expect_refusal(t, &more, STATUS_FORBIDDEN, SUB_NONE, "2000 permissions");
    AUTO(test_change_done) TestChange known; /* an upsert of one that is there needs no room */
    fill_permission(&known, CATALOG_CREATE_PERMISSION, user,
                    row_permission(&t->arena, "p7", "All", "'resource':'dbs/d/colls/c7'"));
    known.change.is_upsert = true;
    assert_int_equal(test_run(t->catalog, &known), STATUS_OK);
}

int main(void)
{
    static const EngineTest tests[] = {
        ENGINE_TEST(users_have_names_in_their_database),
        ENGINE_TEST(an_upsert_of_a_user_goes_by_its_id),
        ENGINE_TEST(a_renamed_user_keeps_its_permissions),
        ENGINE_TEST(permissions_go_with_their_user_and_users_with_their_database),
        ENGINE_TEST(a_user_has_one_permission_for_a_link_and_a_key),
        ENGINE_TEST(a_grant_is_renewed_when_less_or_something_else_is_granted),
        ENGINE_TEST(permissions_are_replaced_renamed_and_deleted),
        ENGINE_TEST(a_user_has_so_many_permissions),
    };
    return run_on_every_engine("catalog_user", tests, ARRAY_COUNT(tests));
}
