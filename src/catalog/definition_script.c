/* definition_script.c - the bodies of stored procedures, triggers and user-defined functions: see
 * definition.h.
 *
 * The texts of the refusals are the service's as far as tests of SDKs look at them.
 */
#include "catalog/definition_int.h"

#include <stdio.h>

static const Slice TYPES[] = {
    [TRIGGER_PRE] = SLICE_INIT("Pre"),
    [TRIGGER_POST] = SLICE_INIT("Post"),
};

static const Slice OPERATIONS[] = {
    [TRIGGER_ON_ALL] = SLICE_INIT("All"),       [TRIGGER_ON_CREATE] = SLICE_INIT("Create"),
    [TRIGGER_ON_UPDATE] = SLICE_INIT("Update"), [TRIGGER_ON_REPLACE] = SLICE_INIT("Replace"),
    [TRIGGER_ON_DELETE] = SLICE_INIT("Delete"), [TRIGGER_ON_UPSERT] = SLICE_INIT("Upsert"),
};

/* The properties that are kept, in their order; only a trigger has the last two. */
static const Slice MEMBERS[] = {
    SLICE_INIT("id"),
    SLICE_INIT("body"),
    SLICE_INIT("triggerType"),
    SLICE_INIT("triggerOperation"),
};

static size_t member_count(StoredScriptKind kind)
{
    return kind == STORED_TRIGGER ? ARRAY_COUNT(MEMBERS) : 2;
}

const char *stored_script_noun(StoredScriptKind kind)
{
    static const char *const nouns[] = {
        [STORED_PROCEDURE] = "stored procedure",
        [STORED_TRIGGER] = "trigger",
        [STORED_FUNCTION] = "user-defined function",
    };
    static_assert(ARRAY_COUNT(nouns) == STORED_SCRIPT_KINDS, "every kind has a noun");
    return nouns[kind];
}

size_t stored_script_count_max(StoredScriptKind kind)
{
    static const size_t counts[] = {
        [STORED_PROCEDURE] = STORED_PROCEDURES_MAX,
        [STORED_TRIGGER] = STORED_TRIGGERS_MAX,
        [STORED_FUNCTION] = STORED_FUNCTIONS_MAX,
    };
    static_assert(ARRAY_COUNT(counts) == STORED_SCRIPT_KINDS, "every kind has a bound");
    return counts[kind];
}

/* Names all that is missing at once. An id that is not a string counts as missing. */
static Status check_present(StoredScriptKind kind, Json body, Error *err)
{
    char missing[80] = "";
    size_t len = 0;
    for (size_t i = 0; i < member_count(kind); i++) {
        Json value = body_member(body, MEMBERS[i]);
        bool is_there = json_is(value, JSON_STRING) || (i > 0 && !json_is(value, JSON_UNDEFINED));
        if (!is_there)
            len += (size_t)snprintf(missing + len, sizeof(missing) - len, "%.*s; ",
                                    SLICE_ARG(MEMBERS[i]));
    }
    ASSERT(len < sizeof(missing));
    if (len == 0)
        return STATUS_OK;
    return REFUSE(err,
                  "The input content is invalid because the required properties - '%s' - are "
                  "missing.",
                  missing);
}

static Status check_word(StoredScriptKind kind, Json body, Slice name, WordList words, Error *err)
{
    size_t word;
    Error why;
    if (body_read_word(body, name, stored_script_noun(kind), words, WORD_REQUIRED, &word, &why) ==
        STATUS_OK)
        return STATUS_OK;
    return REFUSE(err, "One of the specified inputs is invalid: %s", why.message);
}

Status stored_script_definition_create(Arena *arena, StoredScriptKind kind, Json body, Json *normal,
                                       Error *err)
{
    if (!json_is(body, JSON_OBJECT))
        return REFUSE(err, "The body of a %s must be a JSON object; found %s.",
                      stored_script_noun(kind), body_type_phrase(body));
    TRY(check_present(kind, body, err));
    TRY(resource_id_check(json_string(json_get(body, SLICE("id"))), RESOURCE_ID_NAMED, err));
    Json text = json_get(body, SLICE("body"));
    if (!json_is(text, JSON_STRING))
        return REFUSE(err,
                      "One of the specified inputs is invalid: 'body' of a %s must be a string; "
                      "found %s.",
                      stored_script_noun(kind), body_type_phrase(text));
    if (kind == STORED_TRIGGER) {
        TRY(check_word(kind, body, SLICE("triggerType"), WORDS(TYPES), err));
        TRY(check_word(kind, body, SLICE("triggerOperation"), WORDS(OPERATIONS), err));
    }
    JsonBuilder b;
    json_build(&b, arena);
    json_begin_object(&b);
    for (size_t i = 0; i < member_count(kind); i++)
        body_add_member(&b, MEMBERS[i], json_get(body, MEMBERS[i]));
    json_end(&b);
    *normal = json_built(&b);
    return STATUS_OK;
}

Status stored_script_trigger(Json normal, TriggerType *type, TriggerOperation *operation,
                             Error *err)
{
    Json type_word = json_get(normal, SLICE("triggerType"));
    Json operation_word = json_get(normal, SLICE("triggerOperation"));
    size_t type_at;
    size_t operation_at;
    if (!json_is(type_word, JSON_STRING) || !json_is(operation_word, JSON_STRING) ||
        !body_find_word(json_string(type_word), WORDS(TYPES), &type_at) ||
        !body_find_word(json_string(operation_word), WORDS(OPERATIONS), &operation_at))
        return error_set(err, STATUS_CORRUPT, SUB_NONE,
                         "a stored trigger does not say when it runs");
    *type = (TriggerType)type_at;
    *operation = (TriggerOperation)operation_at;
    return STATUS_OK;
}
