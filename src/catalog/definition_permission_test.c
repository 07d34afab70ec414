/* definition_permission_test.c - bodies of users and permissions, as tables (I6). */
#include "catalog/definition.h"

#include "base/testing.h"
#include "json/json_testing.h"

static Status make(Arena *arena, const char *row, Json *normal, Error *err)
{
    return permission_definition_create(arena, row_json(arena, row), normal, err);
}

#define LINK "'resource':'dbs/d/colls/c'"

static void permissions_have_a_normal_form(void **state)
{
    (void)state;
    static const struct {
        const char *body, *normal;
    } rows[] = {
        {"{" LINK ",'permissionMode':'Read','id':'p'}",
         "{'id':'p','permissionMode':'Read'," LINK "}"},
        /* as Java writes it */
        {"{'id':'p','permissionMode':'all'," LINK "}",
         "{'id':'p','permissionMode':'All'," LINK "}"},
        {"{'id':'p','permissionMode':'READ'," LINK ",'_token':'old','_rid':'x','more':1}",
         "{'id':'p','permissionMode':'Read'," LINK "}"},
        {"{'id':'p','permissionMode':'All'," LINK ",'resourcePartitionKey':null}",
         "{'id':'p','permissionMode':'All'," LINK "}"},
        {"{'id':'p','permissionMode':'All'," LINK ",'resourcePartitionKey':[1]}",
         "{'id':'p','permissionMode':'All'," LINK ",'resourcePartitionKey':[1]}"},
        {"{'id':'p','permissionMode':'All'," LINK ",'resourcePartitionKey':['a',null,true,{}]}",
         "{'id':'p','permissionMode':'All'," LINK ",'resourcePartitionKey':['a',null,true,{}]}"},
        {"{'id':'p','permissionMode':'All','resource':'/dbs/my%20db/colls/c/'}",
         "{'id':'p','permissionMode':'All','resource':'/dbs/my%20db/colls/c/'}"},
    };
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 1024);
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        Json normal = JSON_NONE;
        Json again = JSON_NONE;
        assert_ok(make(&arena, rows[i].body, &normal, err));
        assert_slice(json_print_arena(&arena, normal), row_text(&arena, rows[i].normal));
        assert_ok(permission_definition_create(&arena, normal, &again, err));
        assert_slice(json_print_arena(&arena, again), row_text(&arena, rows[i].normal));
    }
}

static void other_bodies_are_refused_with_a_reason(void **state)
{
    (void)state;
    static const struct {
        const char *body, *says;
    } rows[] = {
        {"[]", "object"},
        {"{'permissionMode':'Read'," LINK "}", "id"},
        {"{'id':'a/b','permissionMode':'Read'," LINK "}", "'/'"},
        {"{'id':'p'," LINK "}", "permissionMode"},
        {"{'id':'p','permissionMode':'Write'," LINK "}", "Write"},
        {"{'id':'p','permissionMode':7," LINK "}", "permissionMode"},
        {"{'id':'p','permissionMode':'Read'}", "'resource'"},
        {"{'id':'p','permissionMode':'Read','resource':''}", "'resource'"},
        {"{'id':'p','permissionMode':'Read','resource':7}", "resource"},
        {"{'id':'p','permissionMode':'Read','resource':'dbs/d'}", "'dbs/d'"},
        {"{'id':'p','permissionMode':'Read'," LINK ",'resourcePartitionKey':'x'}",
         "{\"Errors\":[\"Partition key supplied is not valid.\"]}"},
        {"{'id':'p','permissionMode':'Read'," LINK ",'resourcePartitionKey':[[1]]}", "not valid"},
        {"{'id':'p','permissionMode':'Read'," LINK ",'resourcePartitionKey':[{'a':1}]}",
         "not valid"},
        {"{'id':'p','permissionMode':'Read'," LINK ",'resourcePartitionKey':[1,2,3,4,5,6,7]}",
         "not valid"},
    };
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 1024);
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        Json normal = JSON_NONE;
        Error err = {0};
        print_message("%s\n", rows[i].body);
        assert_int_equal(make(&arena, rows[i].body, &normal, &err), STATUS_BAD_REQUEST);
        if (strstr(err.message, rows[i].says) == NULL)
            fail_msg("expected '%s' in '%s'", rows[i].says, err.message);
    }
}

static void users_have_an_id_and_nothing_else(void **state)
{
    (void)state;
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 1024);
    Slice id;
    assert_ok(user_definition_create(
        &arena, row_json(&arena, "{'id':'u 1','_rid':'x','_permissions':'permissions/'}"), &id,
        err));
    assert_slice(id, SLICE("u 1"));
    static const char *const bad[] = {
        "{}", "{'id':''}", "{'id':'a#'}", "{'id':7}", "{'id':'end '}", "{'id':'a?b'}", "7"};
    for (size_t i = 0; i < ARRAY_COUNT(bad); i++) {
        Error err = {0};
        assert_int_equal(user_definition_create(&arena, row_json(&arena, bad[i]), &id, &err),
                         STATUS_BAD_REQUEST);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(permissions_have_a_normal_form),
        cmocka_unit_test(other_bodies_are_refused_with_a_reason),
        cmocka_unit_test(users_have_an_id_and_nothing_else),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
