/* permission_link_test.c - which links name something, and what. */
#include "catalog/permission_link.h"

#include "base/testing.h"

static void links_name_containers_and_what_is_in_them(void **state)
{
    (void)state;
    static const struct {
        const char *link;
        PermissionTargetKind kind;
        const char *database, *container, *child;
    } rows[] = {
        {"dbs/d/colls/c", TARGET_CONTAINER, "d", "c", ""},
        {"dbs/d/colls/c/", TARGET_CONTAINER, "d", "c", ""},
        {"//dbs/d/colls/c//", TARGET_CONTAINER, "d", "c", ""},
        {"DBS/d/Colls/c", TARGET_CONTAINER, "d", "c", ""},
        {"dbs/AQAAAA==/colls/AQAAAJ0fgTc=", TARGET_CONTAINER, "AQAAAA==", "AQAAAJ0fgTc=", ""},
        {"dbs/d/colls/myContainer0=", TARGET_CONTAINER, "d", "myContainer0=", ""},
        {"dbs/my%20db/colls/%C3%A9", TARGET_CONTAINER, "my db", "\xc3\xa9", ""},
        {"dbs/my db/colls/100%", TARGET_CONTAINER, "my db", "100%", ""},
        {"dbs/d/colls/c/docs/a%2Fb", TARGET_ITEM, "d", "c", "a/b"},
        {"dbs/d/colls/c/docs/i/", TARGET_ITEM, "d", "c", "i"},
        {"dbs/d/colls/c/sprocs/s", TARGET_PROCEDURE, "d", "c", "s"},
        {"dbs/d/colls/c/triggers/t", TARGET_TRIGGER, "d", "c", "t"},
        {"dbs/d/colls/c/udfs/u", TARGET_FUNCTION, "d", "c", "u"},
    };
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 1024);
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        PermissionTarget target;
        print_message("%s\n", rows[i].link);
        assert_true(permission_link_parse(&arena, slice_from_cstr(rows[i].link), &target));
        assert_int_equal(target.kind, rows[i].kind);
        assert_slice(target.database, slice_from_cstr(rows[i].database));
        assert_slice(target.container, slice_from_cstr(rows[i].container));
        assert_slice(target.child, slice_from_cstr(rows[i].child));
    }
}

static void other_links_name_nothing(void **state)
{
    (void)state;
    static const char *const rows[] = {
        "",
        "/",
        "dbs",
        "dbs/d",
        "dbs/d/colls",
        "dbs//colls/c",
        "dbs/d//colls/c",
        "dbs/d/colls//docs/i",
        "dbs/d/users/u",
        "dbs/d/colls/c/docs",
        "dbs/d/colls/c/pkranges/0",
        "dbs/d/colls/c/docs/i/attachments/a",
        "dbs/d/colls/%FF",
        "colls/c",
        "offers/AAAA",
    };
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 1024);
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        PermissionTarget target = {.kind = TARGET_FUNCTION};
        if (permission_link_parse(&arena, slice_from_cstr(rows[i]), &target))
            fail_msg("'%s' was taken for a link", rows[i]);
        assert_int_equal(target.kind, TARGET_FUNCTION); /* not written */
    }
}

static void a_link_has_a_length(void **state)
{
    (void)state;
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 1024);
    char text[PERMISSION_LINK_BYTES_MAX + 1];
    memset(text, 'x', sizeof(text));
    memcpy(text, "dbs/d/colls/", 12);
    PermissionTarget target;
    assert_true(permission_link_parse(&arena, slice_make(text, sizeof(text) - 1), &target));
    assert_false(permission_link_parse(&arena, slice_make(text, sizeof(text)), &target));
}

static void slashes_around_a_link_do_not_matter(void **state)
{
    (void)state;
    assert_slice(permission_link_trim(SLICE("//dbs/d/colls/c/")), SLICE("dbs/d/colls/c"));
    assert_slice(permission_link_trim(SLICE("///")), SLICE(""));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(links_name_containers_and_what_is_in_them),
        cmocka_unit_test(other_links_name_nothing),
        cmocka_unit_test(a_link_has_a_length),
        cmocka_unit_test(slashes_around_a_link_do_not_matter),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
