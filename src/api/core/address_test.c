/* address_test.c - paths as the SDKs send them, and paths that are refused. */
#include "api/core/address.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

typedef struct Row {
    const char *path;
    ResourceType type;
    bool is_feed;
    const char *link;
    const char *last_id;
} Row;

static const Row GOOD[] = {
    {"/", RESOURCE_ACCOUNT, false, "", NULL},
    {"", RESOURCE_ACCOUNT, false, "", NULL},
    {"//", RESOURCE_ACCOUNT, false, "", NULL},
    {"/dbs", RESOURCE_DATABASE, true, "", NULL},
    {"/dbs/", RESOURCE_DATABASE, true, "", NULL},
    {"//dbs//Db1/", RESOURCE_DATABASE, false, "dbs/Db1", "Db1"},
    {"/dbs/Db1/colls", RESOURCE_CONTAINER, true, "dbs/Db1", "Db1"},
    {"/DBS/Db1/Colls/C%201", RESOURCE_CONTAINER, false, "DBS/Db1/Colls/C 1", "C 1"},
    {"/dbs/d/colls/c/docs/a+b", RESOURCE_DOCUMENT, false, "dbs/d/colls/c/docs/a+b", "a+b"},
    {"/dbs/d/colls/c/docs/a?b=c", RESOURCE_DOCUMENT, false, "dbs/d/colls/c/docs/a?b=c", "a?b=c"},
    {"/dbs/d/colls/c/docs/%2f", RESOURCE_DOCUMENT, false, "dbs/d/colls/c/docs//", "/"},
    {"/dbs/8wGqAA==/colls/8wGqAJI0Vgc%3D/pkranges", RESOURCE_PARTITION_KEY_RANGE, true,
     "dbs/8wGqAA==/colls/8wGqAJI0Vgc=", "8wGqAJI0Vgc="},
    {"/dbs/d/users/u/permissions/p", RESOURCE_PERMISSION, false, "dbs/d/users/u/permissions/p",
     "p"},
    {"/dbs/d/colls/c/docs/x/attachments", RESOURCE_ATTACHMENT, true, "dbs/d/colls/c/docs/x", "x"},
    {"/offers/Hu+t/", RESOURCE_OFFER, false, "offers/Hu+t", "Hu+t"},
    {"/dbs/dbs/colls/colls", RESOURCE_CONTAINER, false, "dbs/dbs/colls/colls", "colls"},
};

static void paths_of_the_sdks_are_understood(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(GOOD); i++) {
        const Row *row = &GOOD[i];
        AUTO(arena_done) Arena arena;
        arena_init(&arena, 256);
        Address address;
        Error err;
        print_message("%s\n", row->path);
        assert_int_equal(address_parse(&arena, slice_from_cstr(row->path), &address, &err), 0);
        assert_int_equal(address.type, row->type);
        assert_int_equal(address.is_feed, row->is_feed);
        assert_true(slice_equal(address.link, slice_from_cstr(row->link)));
        if (row->last_id == NULL)
            assert_int_equal(address.part_count, 0);
        else
            assert_true(slice_equal(address.parts[address.part_count - 1].id,
                                    slice_from_cstr(row->last_id)));
    }
}

static void an_operation_names_its_container(void **state)
{
    (void)state;
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 256);
    Address address;
    Error err;
    Slice path = SLICE("/dbs/d/colls/c/operations/partitionkeydelete");
    assert_int_equal(address_parse(&arena, path, &address, &err), STATUS_OK);
    assert_int_equal(address.type, RESOURCE_CONTAINER);
    assert_false(address.is_feed);
    assert_true(slice_equal(address.operation, SLICE("partitionkeydelete")));
    assert_true(slice_equal(address.link, SLICE("dbs/d/colls/c")));
}

static void other_paths_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *path;
        Status status;
    } rows[] = {
        {"/nothing", STATUS_NOT_FOUND},
        {"/colls/c", STATUS_NOT_FOUND},
        {"/dbs/d/docs", STATUS_NOT_FOUND},
        {"/dbs/d/colls/c/docs/x/attachments/y/more", STATUS_NOT_FOUND},
        {"/dbs/d/colls/c/docs/x/attachments/y/more/z/a/b/c", STATUS_NOT_FOUND},
        {"/dbs/d/operations/x", STATUS_NOT_FOUND},
        {"/dbs/%", STATUS_BAD_REQUEST},
        {"/dbs/%4", STATUS_BAD_REQUEST},
        {"/dbs/%zz", STATUS_BAD_REQUEST},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        AUTO(arena_done) Arena arena;
        arena_init(&arena, 256);
        Address address;
        Error err;
        print_message("%s\n", rows[i].path);
        assert_int_equal(address_parse(&arena, slice_from_cstr(rows[i].path), &address, &err),
                         rows[i].status);
        assert_true(err.message[0] != '\0');
    }
    static char longest[ADDRESS_BYTES_MAX + 1];
    memset(longest, 'a', sizeof(longest));
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 256);
    Address address;
    Error err;
    assert_int_equal(address_parse(&arena, slice_make(longest, sizeof(longest)), &address, &err),
                     STATUS_BAD_REQUEST);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(paths_of_the_sdks_are_understood),
        cmocka_unit_test(an_operation_names_its_container),
        cmocka_unit_test(other_paths_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
