/* definition_full_text.c - fullTextPolicy, and the fullTextIndexes that refer to it.
 *
 * The policy declares which properties are texts and in which language; an index in
 * indexingPolicy makes searching one fast, and is only for a declared path. Some messages contain
 * phrases that the SDKs' own tests look for.
 */
#include "catalog/definition_int.h"

/* The first is the default; the last is the number of the same language, which older clients send
 * and expect back. */
static const Slice LANGUAGES[] = {SLICE_INIT("en-US"), SLICE_INIT("de-DE"), SLICE_INIT("es-ES"),
                                  SLICE_INIT("fr-FR"), SLICE_INIT("it-IT"), SLICE_INIT("pt-BR"),
                                  SLICE_INIT("pt-PT"), SLICE_INIT("1033")};

static Status language(Json object, Slice name, Slice fallback, Slice *out, Error *err);
static Status full_text_path(const EntryList *list, Json in, PropertyPath *path, Error *err);
static Status full_text_index(const EntryList *list, Json in, PropertyPath *path, Error *err);

Status definition_check_full_text(Arena *arena, Json in, Json *out, Error *err)
{
    *out = JSON_NONE;
    TRY(body_want_object(in, "fullTextPolicy", err));
    if (json_is(in, JSON_UNDEFINED))
        return STATUS_OK;
    Slice standard;
    TRY(language(in, SLICE("defaultLanguage"), LANGUAGES[0], &standard, err));
    Json entries = body_member(in, SLICE("fullTextPaths"));
    TRY(body_want_array(entries, "'fullTextPaths' of fullTextPolicy", POLICY_PATHS_MAX, err));

    JsonBuilder b;
    json_build(&b, arena);
    json_begin_object(&b);
    body_add_text(&b, SLICE("defaultLanguage"), standard);
    if (!json_is(entries, JSON_UNDEFINED)) {
        json_key(&b, SLICE("fullTextPaths"));
        TRY(body_add_entries(arena, &b, entries, full_text_path, "fullTextPolicy", err));
    }
    json_end(&b);
    *out = json_built(&b);
    return STATUS_OK;
}

static Status full_text_path(const EntryList *list, Json in, PropertyPath *path, Error *err)
{
    if (!json_is(in, JSON_OBJECT))
        return REFUSE(err, "An element of 'fullTextPaths' must be an object; found %s.",
                      body_type_phrase(in));
    Slice text, spoken;
    size_t position;
    TRY(body_read_text(in, SLICE("path"), "a full-text path", SLICE_EMPTY, &text, err));
    if (!property_path_parse(list->arena, text, path, &position))
        return REFUSE(err,
                      "The Full Text Policy contains an invalid Path: %.*s. Specify the path of a "
                      "property, like '/a/b'; it failed near position '%zu'.",
                      SHOWN(text), position);
    TRY(language(in, SLICE("language"), SLICE_EMPTY, &spoken, err));
    json_begin_object(list->builder);
    body_add_text(list->builder, SLICE("path"), text);
    if (spoken.len > 0)
        body_add_text(list->builder, SLICE("language"), spoken);
    json_end(list->builder);
    return STATUS_OK;
}

static Status language(Json object, Slice name, Slice fallback, Slice *out, Error *err)
{
    Slice text;
    size_t at;
    TRY(body_read_text(object, name, "fullTextPolicy", fallback, &text, err));
    *out = fallback;
    if (json_is(body_member(object, name), JSON_UNDEFINED))
        return STATUS_OK;
    if (!body_find_word(text, WORDS(LANGUAGES), &at))
        return REFUSE(err,
                      "The Full Text Policy contains an unsupported language %.*s. Supported "
                      "languages are: en-US, de-DE, es-ES, fr-FR, it-IT, pt-BR, pt-PT.",
                      SHOWN(text));
    *out = LANGUAGES[at];
    return STATUS_OK;
}

Status definition_check_full_text_indexes(Arena *arena, Json in, Json *out, Error *err)
{
    *out = JSON_NONE;
    TRY(body_want_array(in, "'fullTextIndexes' of indexingPolicy", POLICY_PATHS_MAX, err));
    if (body_element_count(in) == 0)
        return STATUS_OK;
    JsonBuilder b;
    json_build(&b, arena);
    TRY(body_add_entries(arena, &b, in, full_text_index, "fullTextIndexes", err));
    *out = json_built(&b);
    return STATUS_OK;
}

static Status full_text_index(const EntryList *list, Json in, PropertyPath *path, Error *err)
{
    Json text = body_member(in, SLICE("path"));
    size_t position;
    if (!json_is(text, JSON_STRING))
        return REFUSE(err, "Missing path in full-text index specification at index (%zu).",
                      list->count);
    if (!property_path_parse(list->arena, json_string(text), path, &position))
        return REFUSE(err,
                      "Full-text index specification at index (%zu) contains invalid path "
                      "'%.*s', failed near position '%zu'.",
                      list->count, SHOWN(json_string(text)), position);
    json_begin_object(list->builder);
    body_add_member(list->builder, SLICE("path"), text);
    json_end(list->builder);
    return STATUS_OK;
}

Status definition_cross_check_full_text(Json normal, Error *err)
{
    Json paths = json_get(json_get(normal, SLICE("fullTextPolicy")), SLICE("fullTextPaths"));
    JsonIter it =
        json_iter(json_get(json_get(normal, SLICE("indexingPolicy")), SLICE("fullTextIndexes")));
    while (json_next(&it)) {
        Json path = json_get(it.value, SLICE("path"));
        if (json_is(body_find_entry(paths, path), JSON_UNDEFINED))
            return REFUSE(err,
                          "The path of the Full Text Index %.*s does not match the path specified "
                          "in the Full Text Policy.",
                          SHOWN(json_string(path)));
    }
    return STATUS_OK;
}
