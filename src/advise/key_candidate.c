/* key_candidate.c - see key_candidate.h. */
#include "advise/key_candidate.h"

#include "advise/safe_text.h"
#include "base/hash.h"

enum { VALUE_TEXT_MAX = 60 };

const char *key_kind_name(KeyKind kind)
{
    static const char *const names[] = {"single", "hierarchical", "synthetic", "suffixed"};
    return names[kind];
}

void key_candidate_name(Arena *arena, KeyCandidate *key)
{
    AUTO(buf_done) Buf text;
    buf_init(&text, PARTITION_KEY_PATHS_MAX * PROPERTY_PATH_CANONICAL_BYTES_MAX);
    for (size_t i = 0; i < key->path_count; i++) {
        if (i > 0)
            buf_slice(&text, key->kind == KEY_SYNTHETIC ? SLICE("-") : SLICE(", "));
        property_path_print(key->paths[i], &text);
    }
    if (key->kind == KEY_SUFFIXED)
        buf_format(&text, "-(0..%u)", key->suffixes - 1);
    key->name = arena_copy(arena, buf_view(&text));
}

/* The end of the path that 'text' begins with: a comma outside of quotes, or the end. */
static size_t path_end(Slice text)
{
    char quote = 0;
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        if (quote != 0 && c == '\\')
            i++;
        else if (quote != 0)
            quote = c == quote ? 0 : quote;
        else if (c == '"' || c == '\'')
            quote = c;
        else if (c == ',')
            return i;
    }
    return text.len;
}

Status key_candidate_parse(Arena *arena, Slice text, KeyCandidate *out, Error *err)
{
    KeyCandidate key = {.kind = KEY_SINGLE};
    Slice rest = text;
    bool is_more = true;
    while (is_more) {
        size_t end = path_end(rest);
        Slice path = slice_trim(slice_first(rest, end));
        is_more = end < rest.len;
        rest = slice_from(rest, end + 1);
        size_t position = 0;
        if (key.path_count == PARTITION_KEY_PATHS_MAX)
            return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                             "a partition key has at most %d paths, '%.*s' has more",
                             PARTITION_KEY_PATHS_MAX, SLICE_CUT(text, 80));
        if (!property_path_parse(arena, path, &key.paths[key.path_count], &position))
            return error_set(
                err, STATUS_BAD_REQUEST, SUB_NONE,
                "'%.*s' is not a partition key; expected a path such as /userId, or up "
                "to three such as /tenantId,/userId",
                SLICE_CUT(text, 80));
        key.path_count++;
    }
    key.kind = key.path_count > 1 ? KEY_HIERARCHICAL : KEY_SINGLE;
    key_candidate_name(arena, &key);
    *out = key;
    return STATUS_OK;
}

bool key_candidate_equal(const KeyCandidate *a, const KeyCandidate *b)
{
    if (a->kind != b->kind || a->path_count != b->path_count || a->suffixes != b->suffixes)
        return false;
    for (size_t i = 0; i < a->path_count; i++) {
        if (!property_path_equal(a->paths[i], b->paths[i]))
            return false;
    }
    return true;
}

/* ---- values ---- */

static bool is_scalar(Json value)
{
    JsonType type = json_type(value);
    return type != JSON_UNDEFINED && type != JSON_ARRAY && type != JSON_OBJECT;
}

/* Text as a program would join it: strings without quotes. */
static void put_part(Json value, Buf *out)
{
    if (json_is(value, JSON_STRING))
        buf_slice(out, json_string(value));
    else
        json_print(value, out);
}

static uint32_t suffix_of(const KeyCandidate *key, Json document, Arena *scratch)
{
    Slice id = json_print_arena(scratch, json_get(document, SLICE("id")));
    HashKey fixed = {3, 4};
    return (uint32_t)(hash_keyed(fixed, id) % key->suffixes);
}

static Json joined(const KeyCandidate *key, const Json *parts, Json document, Arena *scratch)
{
    AUTO(buf_done) Buf text;
    buf_init(&text, PARTITION_KEY_PATHS_MAX * PARTITION_KEY_BYTES_MAX + 16);
    for (size_t i = 0; i < key->path_count; i++) {
        if (i > 0)
            buf_byte(&text, '-');
        put_part(parts[i], &text);
    }
    if (key->kind == KEY_SUFFIXED)
        buf_format(&text, "-%u", suffix_of(key, document, scratch));
    JsonBuilder b;
    json_build(&b, scratch);
    json_add_string(&b, buf_view(&text));
    return json_built(&b);
}

/* The values of the key that the server would see; false if one is missing. */
static bool read_key(const KeyCandidate *key, Json document, Arena *scratch, PartitionKey *out)
{
    Error ignored;
    bool is_whole = true;
    *out = (PartitionKey){.count = key->path_count};
    for (size_t i = 0; i < key->path_count; i++) {
        Json value = property_path_get(key->paths[i], document);
        bool has_value = is_scalar(value);
        is_whole = is_whole && has_value;
        out->parts[i] = has_value ? value : JSON_NONE;
    }
    if (partition_key_check(out, &ignored) != STATUS_OK) {
        *out = (PartitionKey){.count = key->path_count};
        return false;
    }
    if (key->kind == KEY_SYNTHETIC || key->kind == KEY_SUFFIXED) {
        Json value = is_whole ? joined(key, out->parts, document, scratch) : JSON_NONE;
        *out = (PartitionKey){.count = 1, .parts = {value}};
        if (partition_key_check(out, &ignored) != STATUS_OK) {
            *out = (PartitionKey){.count = 1};
            return false;
        }
    }
    return is_whole;
}

static PartitionKind kind_of(const KeyCandidate *key)
{
    return key->kind == KEY_HIERARCHICAL ? PARTITION_MULTI_HASH : PARTITION_HASH_V2;
}

bool key_candidate_epk(const KeyCandidate *key, Json document, Arena *scratch, Epk *out)
{
    PartitionKey values;
    bool is_whole = read_key(key, document, scratch, &values);
    epk_make(kind_of(key), &values, out);
    return is_whole;
}

Slice key_candidate_value(const KeyCandidate *key, Json document, Arena *arena)
{
    PartitionKey values;
    (void)read_key(key, document, arena, &values); /* what is missing is printed as such */
    AUTO(buf_done) Buf text;
    buf_init(&text, PARTITION_KEY_PATHS_MAX * (size_t)6 * PARTITION_KEY_BYTES_MAX + 64);
    for (size_t i = 0; i < values.count; i++) {
        if (i > 0)
            buf_byte(&text, ',');
        if (values.parts[i].at == NULL)
            buf_slice(&text, SLICE("(none)"));
        else
            json_print(values.parts[i], &text);
    }
    Slice whole = buf_view(&text);
    if (whole.len <= VALUE_TEXT_MAX)
        return arena_copy(arena, whole);
    return arena_format(arena, "%.*s...", SLICE_ARG(safe_text_cut(whole, VALUE_TEXT_MAX)));
}

void key_candidate_definition(const KeyCandidate *key, PartitionKeyDefinition *out)
{
    *out = (PartitionKeyDefinition){
        .kind = key->path_count > 1 ? PARTITION_MULTI_HASH : PARTITION_HASH_V2,
        .path_count = key->path_count,
    };
    for (size_t i = 0; i < key->path_count; i++)
        out->paths[i] = key->paths[i];
}
