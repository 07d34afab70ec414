/* row_mapping.c - see row_mapping.h. */
#include "transfer/row_mapping.h"

#include "base/array.h"
#include "base/encoding.h"
#include "base/murmur.h"
#include "transfer/field_path.h"
#include "transfer/item_digest.h"

/* Text, or the value at a path. */
typedef struct TemplatePart {
    Slice text;
    bool is_path;
    FieldPath path;
} TemplatePart;

typedef struct Template {
    FieldPath target;
    TemplatePart *parts;
    size_t count;
    size_t capacity;
} Template;

struct RowMapping {
    Template *sets;
    size_t set_count;
    bool has_id_from;
    FieldPath id_from;
    Slice id_from_text;
};

/* ---- parsing ---- */

static void add_part(Arena *arena, Template *template, TemplatePart part)
{
    if (!part.is_path && part.text.len == 0)
        return;
    ARRAY_GROW_IN(arena, template->parts, template->count, template->capacity, 4);
    template->parts[template->count++] = part;
}

static Status bad_template(Slice text, const char *reason, Error *err)
{
    return error_set(err, STATUS_BAD_REQUEST, SUB_NONE, "the template '%.*s' %s",
                     SLICE_CUT(text, 200), reason);
}

static Status parse_template(Arena *arena, Slice text, Template *out, Error *err)
{
    char *literal = arena_alloc(arena, text.len + 1);
    size_t begin = 0; /* of the literal part at hand */
    size_t len = 0;
    for (size_t at = 0; at < text.len; at++) {
        char c = text.ptr[at];
        bool is_double = at + 1 < text.len && text.ptr[at + 1] == c;
        if ((c == '{' || c == '}') && is_double) {
            literal[len++] = c;
            at++;
        } else if (c == '}') {
            return bad_template(text, "has a '}' without its '{'; write '}}' for a brace", err);
        } else if (c != '{') {
            literal[len++] = c;
        } else {
            Slice rest = slice_from(text, at + 1);
            size_t end = slice_find(rest, '}');
            TemplatePart part = {.is_path = true, .text = slice_first(rest, end)};
            if (end == rest.len)
                return bad_template(text, "has a '{' without its '}'; write '{{' for a brace", err);
            if (!field_path_parse(arena, part.text, &part.path))
                return bad_template(
                    text, "has something in braces that is not a path such as userId or a.b", err);
            add_part(arena, out, (TemplatePart){.text = slice_make(literal + begin, len - begin)});
            add_part(arena, out, part);
            begin = len;
            at += end + 1;
        }
    }
    add_part(arena, out, (TemplatePart){.text = slice_make(literal + begin, len - begin)});
    return STATUS_OK;
}

static Status parse_set(Arena *arena, const char *text, Template *out, Error *err)
{
    Slice whole = slice_from_cstr(text);
    size_t equals = slice_find(whole, '=');
    if (equals == whole.len || !json_utf8_valid(whole))
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "'%.*s' does not set a property; expected PATH=TEMPLATE such as "
                         "/pk={userId}-{date}",
                         SLICE_CUT(whole, 200));
    if (!field_path_parse(arena, slice_first(whole, equals), &out->target))
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "'%.*s' is not the path of a property such as /pk or /address/city",
                         SLICE_CUT(slice_first(whole, equals), 200));
    for (size_t i = 0; i < out->target.count; i++) {
        if (out->target.steps[i].is_index)
            return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                             "cannot set an element of an array: '%.*s'",
                             SLICE_CUT(slice_first(whole, equals), 200));
    }
    Slice value = equals + 1 < whole.len ? slice_from(whole, equals + 1) : SLICE("");
    return parse_template(arena, value, out, err);
}

Status row_mapping_parse(Arena *arena, const char *const *sets, size_t set_count,
                         const char *id_from, const RowMapping **out, Error *err)
{
    if (set_count > MAPPING_SETS_MAX)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE, "at most %d properties can be set",
                         MAPPING_SETS_MAX);
    RowMapping *mapping = ARENA_NEW(arena, RowMapping);
    mapping->sets = ARENA_NEW_ARRAY(arena, Template, set_count);
    mapping->set_count = set_count;
    for (size_t i = 0; i < set_count; i++)
        TRY(parse_set(arena, sets[i], &mapping->sets[i], err));
    if (id_from != NULL) {
        mapping->has_id_from = true;
        mapping->id_from_text = slice_from_cstr(id_from);
        if (!field_path_parse(arena, mapping->id_from_text, &mapping->id_from))
            return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                             "'%.200s' is not the path of a property such as /orderId", id_from);
    }
    *out = mapping;
    return STATUS_OK;
}

/* ---- applying ---- */

/* A scalar as text. */
static bool print_scalar(Json value, Buf *out)
{
    switch (json_type(value)) {
    case JSON_STRING:
        buf_slice(out, json_string(value));
        return true;
    case JSON_BOOL:
    case JSON_NUMBER:
        json_print(value, out);
        return true;
    case JSON_UNDEFINED:
    case JSON_NULL:
    case JSON_ARRAY:
    case JSON_OBJECT:
        break;
    }
    return false;
}

static Json string_value(Arena *arena, Slice text)
{
    JsonBuilder b;
    json_build(&b, arena);
    json_add_string(&b, text);
    return json_built(&b);
}

static Status expand(const Template *template, Json row, Arena *arena, Json *out, Error *err)
{
    AUTO(buf_done) Buf text;
    buf_init(&text, JSON_TEXT_BYTES_MAX);
    for (size_t i = 0; i < template->count; i++) {
        const TemplatePart *part = &template->parts[i];
        if (!part->is_path) {
            buf_slice(&text, part->text);
            continue;
        }
        Json value = field_path_get(&part->path, row);
        if (value.at == NULL)
            return error_set(err, STATUS_BAD_REQUEST, SUB_NONE, "the row has no '%.*s'",
                             SLICE_CUT(part->text, 100));
        if (template->count == 1) {
            *out = value;
            return STATUS_OK;
        }
        if (!print_scalar(value, &text))
            return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                             "'%.*s' is not text, a number or a boolean, as its template needs",
                             SLICE_CUT(part->text, 100));
    }
    if (buf_full(&text))
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE, "a template makes too long a text");
    *out = string_value(arena, buf_view(&text));
    return STATUS_OK;
}

/* The id that the item gets; undefined if it keeps its own. */
static Status choose_id(const RowMapping *mapping, Json row, Json item, Slice fallback_id,
                        Arena *arena, Json *out, Error *err)
{
    Json id = json_get(item, SLICE("id"));
    if (mapping->has_id_from) {
        id = field_path_get(&mapping->id_from, row);
        if (id.at == NULL)
            return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                             "the row has no '%.*s', from which its id is taken",
                             SLICE_CUT(mapping->id_from_text, 100));
    } else if (json_is(id, JSON_STRING)) {
        *out = JSON_NONE;
        return STATUS_OK;
    } else if (id.at == NULL) {
        *out = string_value(arena, fallback_id);
        return STATUS_OK;
    }
    AUTO(buf_done) Buf text;
    buf_init(&text, JSON_TEXT_BYTES_MAX);
    if (!print_scalar(id, &text))
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "the id must be text, a number or a boolean");
    *out = string_value(arena, buf_view(&text));
    return STATUS_OK;
}

/* A copy with that id, if it is defined, and without what a server has added. */
static Json finish(Json item, Json id, Arena *arena)
{
    JsonBuilder b;
    json_build(&b, arena);
    json_begin_object(&b);
    if (id.at != NULL) {
        json_key(&b, SLICE("id"));
        json_add(&b, id);
    }
    JsonIter it = json_iter(item);
    while (json_next(&it)) {
        bool is_replaced = id.at != NULL && slice_equal(it.name, SLICE("id"));
        if (is_replaced || item_is_system_name(it.name))
            continue;
        json_key(&b, it.name);
        json_add(&b, it.value);
    }
    json_end(&b);
    return json_built(&b);
}

Status row_mapping_apply(const RowMapping *mapping, Json row, Slice fallback_id, Arena *arena,
                         Json *out, bool *is_changed, Error *err)
{
    Json item = row;
    for (size_t i = 0; i < mapping->set_count; i++) {
        Json value = JSON_NONE;
        TRY(expand(&mapping->sets[i], row, arena, &value, err));
        TRY(field_path_put(&mapping->sets[i].target, item, value, arena, &item, err));
    }
    Json id = JSON_NONE;
    TRY(choose_id(mapping, row, item, fallback_id, arena, &id, err));
    bool has_system = false;
    JsonIter it = json_iter(item);
    while (json_next(&it))
        has_system = has_system || item_is_system_name(it.name);
    bool is_finished = id.at == NULL && !has_system;
    Json made = is_finished ? item : finish(item, id, arena);
    if (json_is(made, JSON_UNDEFINED))
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE, "the item is too large");
    *out = made;
    *is_changed = mapping->set_count > 0 || !is_finished;
    return STATUS_OK;
}

void row_id_make(Slice file, uint64_t number, Slice text, char out[ROW_ID_LEN])
{
    uint64_t words[5];
    murmur3_128(file, words);
    words[2] = number;
    murmur3_128(text, words + 3);
    uint64_t hash[2];
    murmur3_128(slice_make(words, sizeof(words)), hash);
    static_assert(ROW_ID_LEN == GUID_LEN, "the id of a row is a GUID");
    guid_print(hash[1], hash[0], out);
}
