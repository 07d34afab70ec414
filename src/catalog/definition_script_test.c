/* definition_script_test.c - the bodies of stored procedures, triggers and functions, as tables. */
#include "catalog/definition_test_int.h"

static void a_script_is_kept_as_it_was_sent(void **state)
{
    (void)state;
    static const struct {
        StoredScriptKind kind;
        const char *body, *normal;
    } ROWS[] = {
        {STORED_PROCEDURE, "{'id':'sample sproc','body':'function () {}'}",
         "{'id':'sample sproc','body':'function () {}'}"},
        /* Neither white space nor letter case nor what is no JavaScript is changed. */
        {STORED_PROCEDURE, "{'body':'\\ufeff// a\\r\\n\\tb  ','id':'s'}",
         "{'id':'s','body':'\xef\xbb\xbf// a\\r\\n\\tb  '}"},
        {STORED_FUNCTION, "{'id':'f','body':''}", "{'id':'f','body':''}"},
        {STORED_FUNCTION, "{'id':' f,=.:~+-@()^${}[]!_%20\xc3\xa9','body':'x => x'}",
         "{'id':' f,=.:~+-@()^${}[]!_%20\xc3\xa9','body':'x => x'}"},
        {STORED_TRIGGER,
         "{'triggerOperation':'uPSERT','id':'t','triggerType':'POST','body':'serverScript() {}'}",
         "{'id':'t','body':'serverScript() {}','triggerType':'POST','triggerOperation':'uPSERT'}"},
        /* What is the server's, what is unknown and what only triggers have is left out. */
        {STORED_PROCEDURE,
         "{'id':'s','body':'1','_rid':'x','_etag':1,'_ts':0,'more':{},'triggerType':7}",
         "{'id':'s','body':'1'}"},
    };
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 4096);
    for (size_t i = 0; i < ARRAY_COUNT(ROWS); i++) {
        Json normal, again;
        Error err = {0};
        Json body = row_json(&arena, ROWS[i].body);
        if (stored_script_definition_create(&arena, ROWS[i].kind, body, &normal, &err) != STATUS_OK)
            fail_msg("%s: %s", ROWS[i].body, err.message);
        assert_text(&arena, normal, ROWS[i].normal);
        assert_int_equal(
            stored_script_definition_create(&arena, ROWS[i].kind, normal, &again, &err), STATUS_OK);
        assert_text(&arena, again, ROWS[i].normal);
    }
}

#define MISSING(names) \
    "The input content is invalid because the required properties - '" names "' - are missing"
#define INVALID "One of the specified inputs is invalid"

static void what_is_missing_or_wrong_is_said(void **state)
{
    (void)state;
    static const struct {
        StoredScriptKind kind;
        const char *body, *message;
    } ROWS[] = {
        {STORED_PROCEDURE, "[]", "must be a JSON object; found an array"},
        {STORED_PROCEDURE, "{'body':''}", MISSING("id; ")},
        {STORED_PROCEDURE, "{'id':7,'body':''}", MISSING("id; ")},
        {STORED_PROCEDURE, "{'id':null,'body':''}", MISSING("id; ")},
        {STORED_FUNCTION, "{'id':'f'}", MISSING("body; ")},
        {STORED_FUNCTION, "{'id':'f','body':null}", MISSING("body; ")},
        {STORED_FUNCTION, "{}", MISSING("id; body; ")},
        {STORED_TRIGGER, "{}", MISSING("id; body; triggerType; triggerOperation; ")},
        {STORED_TRIGGER, "{'id':'t','body':'','triggerOperation':'All'}", MISSING("triggerType; ")},
        {STORED_TRIGGER, "{'id':'t','body':'','triggerType':'Pre'}", MISSING("triggerOperation; ")},
        {STORED_FUNCTION, "{'id':'f','body':7}",
         INVALID ": 'body' of a user-defined function must"},
        {STORED_FUNCTION, "{'id':'f','body':{}}", INVALID},
        {STORED_TRIGGER, "{'id':'t','body':'','triggerType':'','triggerOperation':'All'}", INVALID},
        {STORED_TRIGGER, "{'id':'t','body':'','triggerType':0,'triggerOperation':'All'}", INVALID},
        {STORED_TRIGGER, "{'id':'t','body':'','triggerType':'Both','triggerOperation':'All'}",
         INVALID ": 'triggerType' of trigger is 'Both'; expected one of: Pre, Post."},
        {STORED_TRIGGER, "{'id':'t','body':'','triggerType':'Pre','triggerOperation':'Read'}",
         INVALID ": 'triggerOperation'"},
        {STORED_PROCEDURE, "{'id':'','body':''}", "id"},
        {STORED_PROCEDURE, "{'id':'a/b','body':''}", "'/'"},
        {STORED_PROCEDURE, "{'id':'a\\\\b','body':''}", "must not contain"},
        {STORED_PROCEDURE, "{'id':'a?b','body':''}", "must not contain"},
        {STORED_PROCEDURE, "{'id':'a#b','body':''}", "must not contain"},
    };
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 4096);
    for (size_t i = 0; i < ARRAY_COUNT(ROWS); i++) {
        Json normal;
        Error err = {0};
        Json body = row_json(&arena, ROWS[i].body);
        Status status = stored_script_definition_create(&arena, ROWS[i].kind, body, &normal, &err);
        assert_refused(status, &err, ROWS[i].message);
    }
}

static void the_words_of_a_trigger_have_a_meaning(void **state)
{
    (void)state;
    static const struct {
        const char *type, *operation;
        TriggerType expected_type;
        TriggerOperation expected_operation;
    } ROWS[] = {
        {"pre", "all", TRIGGER_PRE, TRIGGER_ON_ALL},
        {"Pre", "Create", TRIGGER_PRE, TRIGGER_ON_CREATE},
        {"POST", "Update", TRIGGER_POST, TRIGGER_ON_UPDATE},
        {"post", "replace", TRIGGER_POST, TRIGGER_ON_REPLACE},
        {"Post", "DELETE", TRIGGER_POST, TRIGGER_ON_DELETE},
        {"Pre", "upsert", TRIGGER_PRE, TRIGGER_ON_UPSERT},
    };
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 4096);
    TriggerType type;
    TriggerOperation operation;
    Error err = {0};
    for (size_t i = 0; i < ARRAY_COUNT(ROWS); i++) {
        Slice row = arena_format(&arena, "{'triggerType':'%s','triggerOperation':'%s'}",
                                 ROWS[i].type, ROWS[i].operation);
        Json normal = row_json(&arena, arena_cstr(&arena, row));
        assert_int_equal(stored_script_trigger(normal, &type, &operation, &err), STATUS_OK);
        assert_int_equal(type, ROWS[i].expected_type);
        assert_int_equal(operation, ROWS[i].expected_operation);
    }
    static const char *const DAMAGED[] = {
        "{}",
        "{'triggerType':'Pre'}",
        "{'triggerType':'Pre','triggerOperation':7}",
        "{'triggerType':'Pree','triggerOperation':'All'}",
    };
    for (size_t i = 0; i < ARRAY_COUNT(DAMAGED); i++)
        assert_int_equal(
            stored_script_trigger(row_json(&arena, DAMAGED[i]), &type, &operation, &err),
            STATUS_CORRUPT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_script_is_kept_as_it_was_sent),
        cmocka_unit_test(what_is_missing_or_wrong_is_said),
        cmocka_unit_test(the_words_of_a_trigger_have_a_meaning),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
