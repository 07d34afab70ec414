/* catalog_script_test.c - stored procedures, triggers and functions: changes, refusals, restarts.
 */
#include "catalog/testing_int.h"

#define NONE MANUAL(0)

/* A container and the scripts that it has. */
typedef struct Place {
    uint32_t database;
    uint32_t container;
} Place;

static Place make_place(TestCatalog *t, const char *name)
{
    Place place = {.database = make_database(t, name, NONE)};
    place.container = make_container(t, place.database, "c", NONE);
    return place;
}

static StoredScriptGroup group_of(Place place, StoredScriptKind kind)
{
    return (StoredScriptGroup){place.database, place.container, kind};
}

static const StoredScript *find(TestCatalog *t, StoredScriptGroup group, const char *id)
{
    return snapshot_script_by_id(test_read(t), group, slice_from_cstr(id));
}

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

static void kinds_and_containers_have_names_of_their_own(TestCatalog *t)
{
    Place place = make_place(t, "db");
    Place other = {place.database, make_container(t, place.database, "other", NONE)};
    static const char nibbles[] = {'g', 'c', 'Y'};
    for (int kind = 0; kind < STORED_SCRIPT_KINDS; kind++) {
        StoredScriptGroup group = group_of(place, (StoredScriptKind)kind);
        assert_int_equal(snapshot_script_count(test_read(t), group), 0);
        assert_null(snapshot_next_script(test_read(t), group, 0));
        uint32_t first = make_script(t, group, "s");
        uint32_t second = make_script(t, group, "a longer name");
        (void)make_script(t, group_of(other, (StoredScriptKind)kind), "s");
        assert_true(second > first);
        assert_int_equal(snapshot_script_count(test_read(t), group), 2);

        const StoredScript *script = find(t, group, "s");
        assert_non_null(script);
        assert_slice(script->body, SLICE("function () {}"));
        assert_int_equal(script->info.number, first);
        assert_int_equal(script->info.ts_s, TEST_BEGIN_S);
        Rid rid;
        assert_true(rid_parse(script->info.rid, &rid));
        assert_int_equal(rid.kind, stored_script_rid_kind((StoredScriptKind)kind));
        assert_int_equal(rid.database, place.database);
        assert_int_equal(rid.container, place.container);
        assert_int_equal(rid.child, first);
        /* The last byte is all but the kind's four bits zero: "gA==", "cA==", "YA==". */
        assert_int_equal(script->info.rid.ptr[20], nibbles[kind]);

        TestChange again;
        fill_script(&again, CATALOG_CREATE_SCRIPT, group,
                    row_script(&t->arena, group.kind, "s", "other"));
        expect_refusal(t, &again, STATUS_CONFLICT, SUB_NONE, "already exists");
    }
}

static void a_replaced_script_keeps_its_number_and_may_be_renamed(TestCatalog *t)
{
    StoredScriptGroup group = group_of(make_place(t, "db"), STORED_TRIGGER);
    uint32_t number = make_script(t, group, "t");
    (void)make_script(t, group, "taken");
    AUTO(stored_script_unref) StoredScript *old = stored_script_ref(find(t, group, "t"));
    fake_clock_advance(&t->clock, 5000000);

    AUTO(test_change_done) TestChange c;
    fill_script(&c, CATALOG_REPLACE_SCRIPT, group,
                row_script(&t->arena, group.kind, "renamed", "new"));
    c.change.script = number;
    c.change.if_match = old->info.etag;
    assert_int_equal(test_run(t->catalog, &c), STATUS_OK);
    assert_int_equal(c.change.script_count, 2);
    const StoredScript *new = find(t, group, "renamed");
    assert_ptr_equal(new, c.change.result_script);
    assert_null(find(t, group, "t"));
    assert_int_equal(new->info.number, number);
    assert_slice(new->info.rid, old->info.rid);
    assert_false(slice_equal(new->info.etag, old->info.etag));
    assert_true(new->info.lsn > old->info.lsn);
    assert_int_equal(new->info.ts_s, TEST_BEGIN_S + 5);
    assert_slice(new->body, SLICE("new"));
    assert_slice(old->body, SLICE("function () {}")); /* for those who run it */

    TestChange taken;
    fill_script(&taken, CATALOG_REPLACE_SCRIPT, group,
                row_script(&t->arena, group.kind, "taken", "new"));
    taken.change.script = number;
    expect_refusal(t, &taken, STATUS_CONFLICT, SUB_NONE, "already exists");
    TestChange stale;
    fill_script(&stale, CATALOG_REPLACE_SCRIPT, group,
                row_script(&t->arena, group.kind, "renamed", "newer"));
    stale.change.script = number;
    stale.change.if_match = old->info.etag;
    expect_refusal(t, &stale, STATUS_PRECONDITION_FAILED, SUB_NONE, "pre-condition");
    assert_non_null(find(t, group, "taken"));
    (void)make_script(t, group, "t"); /* the old name is free */
    Slice before = test_dump(t);
    test_reopen(t);
    assert_slice(test_dump(t), before);
}

static void an_upsert_creates_or_replaces(TestCatalog *t)
{
    StoredScriptGroup group = group_of(make_place(t, "db"), STORED_FUNCTION);
    for (int i = 0; i < 2; i++) {
        AUTO(test_change_done) TestChange c;
        fill_script(&c, CATALOG_CREATE_SCRIPT, group,
                    row_script(&t->arena, group.kind, "f", i == 0 ? "a" : "b"));
        c.change.is_upsert = true;
        assert_int_equal(test_run(t->catalog, &c), STATUS_OK);
        assert_int_equal(c.change.has_replaced, i == 1);
        assert_int_equal(c.change.script_count, 1);
        assert_slice(find(t, group, "f")->body, i == 0 ? SLICE("a") : SLICE("b"));
    }
    TestChange stale;
    fill_script(&stale, CATALOG_CREATE_SCRIPT, group, row_script(&t->arena, group.kind, "f", "c"));
    stale.change.is_upsert = true;
    stale.change.if_match = SLICE("\"old\"");
    expect_refusal(t, &stale, STATUS_PRECONDITION_FAILED, SUB_NONE, "pre-condition");
}

static void a_deleted_script_is_gone(TestCatalog *t)
{
    StoredScriptGroup group = group_of(make_place(t, "db"), STORED_PROCEDURE);
    uint32_t number = make_script(t, group, "s");
    (void)make_script(t, group, "stays");
    TestChange stale;
    fill_script(&stale, CATALOG_DELETE_SCRIPT, group, JSON_NONE);
    stale.change.script = number;
    stale.change.if_match = SLICE("\"old\"");
    expect_refusal(t, &stale, STATUS_PRECONDITION_FAILED, SUB_NONE, "pre-condition");
    for (int i = 0; i < 2; i++) {
        AUTO(test_change_done) TestChange c;
        fill_script(&c, CATALOG_DELETE_SCRIPT, group, JSON_NONE);
        c.change.script = number;
        assert_int_equal(test_run(t->catalog, &c), i == 0 ? STATUS_OK : STATUS_NOT_FOUND);
        assert_int_equal(c.change.error.sub, SUB_NONE);
    }
    TestChange replace;
    fill_script(&replace, CATALOG_REPLACE_SCRIPT, group,
                row_script(&t->arena, group.kind, "s", ""));
    replace.change.script = number;
    expect_refusal(t, &replace, STATUS_NOT_FOUND, SUB_NONE, "stored procedure");
    assert_null(find(t, group, "s"));
    assert_int_equal(snapshot_script_count(test_read(t), group), 1);
    assert_true(make_script(t, group, "s") > number + 1); /* I3 */
    test_reopen(t);
    assert_int_equal(snapshot_script_count(test_read(t), group), 2);
}

static void scripts_go_with_their_container(TestCatalog *t)
{
    Place place = make_place(t, "db");
    Place other = make_place(t, "other");
    size_t keys = count_keys(t->store, SPACE_CATALOG);
    for (int kind = 0; kind < STORED_SCRIPT_KINDS; kind++) {
        (void)make_script(t, group_of(place, (StoredScriptKind)kind), "a");
        (void)make_script(t, group_of(place, (StoredScriptKind)kind), "b");
        (void)make_script(t, group_of(other, (StoredScriptKind)kind), "a");
    }
    assert_int_equal(count_keys(t->store, SPACE_CATALOG), keys + 9);
    assert_int_equal(delete_one(t, CATALOG_DELETE_CONTAINER, place.database, place.container),
                     STATUS_OK);
    StoredScriptGroup group = group_of(place, STORED_PROCEDURE);
    static const CatalogOp ops[] = {CATALOG_CREATE_SCRIPT, CATALOG_REPLACE_SCRIPT,
                                    CATALOG_DELETE_SCRIPT};
    for (size_t i = 0; i < ARRAY_COUNT(ops); i++) {
        TestChange late;
        fill_script(&late, ops[i], group, row_script(&t->arena, group.kind, "a", ""));
        late.change.script = 1;
        expect_refusal(t, &late, STATUS_NOT_FOUND, SUB_OWNER_NOT_FOUND, "container was deleted");
    }
    assert_null(find(t, group, "a"));
    assert_non_null(find(t, group_of(other, STORED_FUNCTION), "a"));
    assert_int_equal(delete_one(t, CATALOG_DELETE_DATABASE, other.database, 0), STATUS_OK);
    assert_null(find(t, group_of(other, STORED_FUNCTION), "a"));
    test_reopen(t);
    AUTO(store_cursor_close)
    StoreCursor *left =
        store_cursor_open(t->store, NULL, SPACE_CATALOG, SLICE("\x07"), SLICE_EMPTY);
    Slice key, value;
    bool found = true;
    assert_ok(store_cursor_next(left, &key, &value, &found, err));
    assert_false(found);
}

static void a_container_has_so_many_scripts(TestCatalog *t)
{
    StoredScriptGroup group = group_of(make_place(t, "db"), STORED_FUNCTION);
    for (size_t i = 0; i < STORED_FUNCTIONS_MAX; i++)
        (void)make_script(t, group, arena_cstr(&t->arena, arena_format(&t->arena, "f%zu", i)));
    TestChange more;
    fill_script(&more, CATALOG_CREATE_SCRIPT, group, row_script(&t->arena, group.kind, "f", ""));
    expect_refusal(t, &more, STATUS_FORBIDDEN, SUB_NONE, "50 resources of type user-defined");
    AUTO(test_change_done) TestChange known; /* an upsert of one that is there needs no room */
    fill_script(&known, CATALOG_CREATE_SCRIPT, group, row_script(&t->arena, group.kind, "f7", ""));
    known.change.is_upsert = true;
    assert_int_equal(test_run(t->catalog, &known), STATUS_OK);
    StoredScriptGroup procedures = group;
    procedures.kind = STORED_PROCEDURE;
    (void)make_script(t, procedures, "f");
}

/* A change of the container, or a move of its ranges, has nothing to do with its scripts. */
static void other_changes_share_what_there_is(TestCatalog *t)
{
    Place place = make_place(t, "db");
    StoredScriptGroup group = group_of(place, STORED_PROCEDURE);
    (void)make_script(t, group, "s");
    const StoredScript *script = find(t, group, "s");
    Slice etag =
        arena_copy(&t->arena, test_container(t, place.database, place.container)->info.etag);
    (void)make_script(t, group, "t");
    (void)make_database(t, "more", NONE);
    assert_ptr_equal(find(t, group, "s"), script);
    assert_slice(test_container(t, place.database, place.container)->info.etag, etag);
    begin_move(t, place.database, place.container, 0, 0, "10");
    assert_ptr_equal(find(t, group, "s"), script);
    finish_move(t, CATALOG_END_MOVE, place.database, place.container);
    assert_ptr_equal(find(t, group, "s"), script);
}

static void a_restart_finds_large_bodies(TestCatalog *t)
{
    StoredScriptGroup group = group_of(make_place(t, "db"), STORED_PROCEDURE);
    enum { BYTES = 2 << 20 };
    char *text = arena_alloc(&t->arena, BYTES + 1);
    memset(text, 'x', BYTES);
    text[BYTES] = '\0';
    AUTO(test_change_done) TestChange c;
    fill_script(&c, CATALOG_CREATE_SCRIPT, group, row_script(&t->arena, group.kind, "s", text));
    assert_int_equal(test_run(t->catalog, &c), STATUS_OK);
    test_reopen(t);
    assert_slice(find(t, group, "s")->body, slice_make(text, BYTES));
}

int main(void)
{
    static const EngineTest tests[] = {
        ENGINE_TEST(kinds_and_containers_have_names_of_their_own),
        ENGINE_TEST(a_replaced_script_keeps_its_number_and_may_be_renamed),
        ENGINE_TEST(an_upsert_creates_or_replaces),
        ENGINE_TEST(a_deleted_script_is_gone),
        ENGINE_TEST(scripts_go_with_their_container),
        ENGINE_TEST(a_container_has_so_many_scripts),
        ENGINE_TEST(other_changes_share_what_there_is),
        ENGINE_TEST(a_restart_finds_large_bodies),
    };
    return run_on_every_engine("catalog_script", tests, ARRAY_COUNT(tests));
}
