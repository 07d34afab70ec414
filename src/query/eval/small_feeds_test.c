/* small_feeds_test.c - the queries that SDKs send to the feeds of small resources. */
#include "query/eval/query_testing_int.h"

static const char DATABASES[] =
    "[{\"id\":\"shop\",\"_rid\":\"AAAAAA==\",\"_self\":\"dbs/AAAAAA==/\"},"
    " {\"id\":\"blog\",\"_rid\":\"BAAAAA==\",\"_self\":\"dbs/BAAAAA==/\"}]";

static const char OFFERS[] =
    "[{\"id\":\"o1\",\"offerVersion\":\"V2\",\"resource\":\"dbs/AAAAAA==/colls/AAAAAIA=/\","
    "  \"offerResourceId\":\"AAAAAIA=\",\"content\":{\"offerThroughput\":400}},"
    " {\"id\":\"o2\",\"offerVersion\":\"V2\",\"resource\":\"dbs/BAAAAA==/\","
    "  \"offerResourceId\":\"BAAAAA==\",\"content\":{\"offerThroughput\":1000}}]";

static void databases_are_found_by_id(void **state)
{
    (void)state;
    static const QueryCase CASES[] = {
        {"SELECT * FROM root r WHERE r.id = @id",
         "[{\"id\":\"blog\",\"_rid\":\"BAAAAA==\",\"_self\":\"dbs/BAAAAA==/\"}]"},
        {"select * from root r where r.id=@id and r._rid = 'AAAAAA=='", "[]"},
        {"SELECT VALUE r.id FROM root r", "[\"shop\",\"blog\"]"},
        {"SELECT VALUE r.id FROM root r ORDER BY r.id", "[\"blog\",\"shop\"]"},
        {"SELECT VALUE COUNT(1) FROM root r", "[2]"},
        {"SELECT * FROM root r WHERE r.id = @other", "!\"code\":\"SC2004\""},
        {"SELECT * FROM root r WHERE id = @id", "!Identifier 'id' could not be resolved."},
    };
    CHECK_CASES(CASES, DATABASES, "[{\"name\":\"@id\",\"value\":\"blog\"}]");
}

static void offers_are_found_by_resource(void **state)
{
    (void)state;
    static const QueryCase CASES[] = {
        {"SELECT * from root where root.resource = \"dbs/BAAAAA==/\"",
         "[{\"id\":\"o2\",\"offerVersion\":\"V2\",\"resource\":\"dbs/BAAAAA==/\","
         "\"offerResourceId\":\"BAAAAA==\",\"content\":{\"offerThroughput\":1000}}]"},
        {"select * from root r where r.offerResourceId= @targetRID",
         "[{\"id\":\"o1\",\"offerVersion\":\"V2\",\"resource\":\"dbs/AAAAAA==/colls/AAAAAIA=/\","
         "\"offerResourceId\":\"AAAAAIA=\",\"content\":{\"offerThroughput\":400}}]"},
        {"SELECT r.content.offerThroughput FROM root r WHERE r.offerVersion = 'V2'",
         "[{\"offerThroughput\":400},{\"offerThroughput\":1000}]"},
    };
    CHECK_CASES(CASES, OFFERS, "[{\"name\":\"@targetRID\",\"value\":\"AAAAAIA=\"}]");
}

typedef struct BodyCase {
    const char *body;
    const char *text;     /* NULL if the body is refused */
    const char *expected; /* the parameters as text, or a part of the error's message */
} BodyCase;

static void bodies_are_taken_apart_or_refused(void **state)
{
    (void)state;
    static const BodyCase CASES[] = {
        {"{\"query\":\"SELECT 1\"}", "SELECT 1", ""},
        {"\"SELECT 1\"", "SELECT 1", ""},
        {"{\"query\":\"SELECT 1\",\"parameters\":null}", "SELECT 1", ""},
        {"{\"query\":\"SELECT 1\",\"parameters\":[]}", "SELECT 1", ""},
        {"{\"query\":\"SELECT @a\",\"parameters\":[{\"name\":\"@a\",\"value\":[1]}]}", "SELECT @a",
         "[{\"name\":\"@a\",\"value\":[1]}]"},
        {"{\"parameters\":[{\"value\":{},\"name\":\"@_1\"},{\"name\":\"@b\"}],\"query\":\"\"}", "",
         "[{\"value\":{},\"name\":\"@_1\"},{\"name\":\"@b\"}]"},
        {"", NULL, ""},
        {"SELECT 1", NULL, ""},
        {"[]", NULL, "must be an object"},
        {"{}", NULL, "\"query\" of a query request must be a string"},
        {"{\"query\":1}", NULL, "\"query\" of a query request must be a string"},
        {"{\"query\":\"\",\"parameters\":{}}", NULL, "must be an array"},
        {"{\"query\":\"\",\"parameters\":[1]}", NULL, "parameter 0 of the query must be an object"},
        {"{\"query\":\"\",\"parameters\":[{\"name\":1}]}", NULL, "an object with a \"name\""},
        {"{\"query\":\"\",\"parameters\":[{\"name\":\"a\"}]}", NULL, "not 'a'"},
        {"{\"query\":\"\",\"parameters\":[{\"name\":\"@\"}]}", NULL, "not '@'"},
        {"{\"query\":\"\",\"parameters\":[{\"name\":\"@1\"}]}", NULL, "not '@1'"},
        {"{\"query\":\"\",\"parameters\":[{\"name\":\"@a b\"}]}", NULL, "not '@a b'"},
        {"{\"query\":\"\",\"parameters\":[{\"name\":\"@a\"},{\"name\":\"@a\"}]}", NULL,
         "more than one parameter '@a'"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(CASES); i++) {
        const BodyCase *c = &CASES[i];
        AUTO(arena_done) Arena arena;
        arena_init(&arena, 4096);
        Error err;
        Slice text;
        Json parameters;
        Status status = query_request(&arena, slice_from_cstr(c->body), &text, &parameters, &err);
        if (c->text == NULL) {
            if (status != STATUS_BAD_REQUEST || strstr(err.message, c->expected) == NULL)
                fail_msg("%s: status %d, %s", c->body, status,
                         status == STATUS_OK ? "accepted" : err.message);
            continue;
        }
        if (status != STATUS_OK)
            fail_msg("%s was refused: %s", c->body, err.message);
        assert_true(slice_equal(text, slice_from_cstr(c->text)));
        Slice printed = json_print_arena(&arena, parameters);
        assert_true(slice_equal(printed, slice_from_cstr(c->expected)));
    }
}

static void a_parameter_without_a_value_is_undefined(void **state)
{
    (void)state;
    static const QueryCase CASES[] = {
        {"SELECT @a AS a, @b AS b, IS_DEFINED(@a) AS c", "[{\"b\":null,\"c\":false}]"},
    };
    CHECK_CASES(CASES, NULL, "[{\"name\":\"@a\"},{\"name\":\"@b\",\"value\":null}]");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(databases_are_found_by_id),
        cmocka_unit_test(offers_are_found_by_resource),
        cmocka_unit_test(bodies_are_taken_apart_or_refused),
        cmocka_unit_test(a_parameter_without_a_value_is_undefined),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
