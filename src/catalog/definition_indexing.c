/* definition_indexing.c - indexingPolicy: mode, included and excluded paths.
 *
 * The root path stands in exactly one of the two lists, so that the policy says of every property
 * whether it is indexed; only a policy with no paths at all gets the default, which is to include
 * everything. The service excludes _etag in any case, and so do we, visibly.
 *
 * "indexes" of an included path is an older way to choose kinds of indexes. It is checked and not
 * kept, since every kind of lookup on a scalar is served by the one index that a path has; only
 * its spatial kind means something else and becomes an entry of spatialIndexes.
 */
#include "catalog/definition_int.h"
#include "index/index_path.h"

#include <stdlib.h>

/* The service has no lazy indexing any more; it takes the word and indexes consistently. */
enum { MODE_CONSISTENT, MODE_NONE, MODE_LAZY };
static const Slice MODES[] = {SLICE_INIT("consistent"), SLICE_INIT("none"), SLICE_INIT("lazy")};

static const Slice INDEX_KINDS[] = {SLICE_INIT("Range"), SLICE_INIT("Hash"), SLICE_INIT("Spatial")};
static const Slice DATA_TYPES[] = {SLICE_INIT("String"),  SLICE_INIT("Number"),
                                   SLICE_INIT("Point"),   SLICE_INIT("LineString"),
                                   SLICE_INIT("Polygon"), SLICE_INIT("MultiPolygon")};
enum { INDEXES_MAX = 16 }; /* two kinds and six types make twelve useful ones */

static const char ETAG_PATH[] = "/\"_etag\"/?";
static const char ETAG_CANONICAL[] = "/_etag/?";

typedef struct PolicyPath {
    IndexPath path;
    Slice text; /* as it is returned */
    bool excluded;
} PolicyPath;

/* Both lists in one, each in the client's order. */
typedef struct PolicyPaths {
    PolicyPath *items;
    size_t count;
} PolicyPaths;

static Status check_none(Json in, bool automatic, Error *err);
static Status read_paths(Arena *arena, Json in, PolicyPaths *out, Error *err);
static Status read_list(Arena *arena, Json list, bool excluded, PolicyPaths *out, Error *err);
static Status read_entry(Arena *arena, Json entry, bool excluded, PolicyPath *out, Error *err);
static Status check_indexes(Json indexes, Error *err);
static Status check_sets(Arena *arena, PolicyPaths *paths, Error *err);
static void build_paths(JsonBuilder *b, const PolicyPaths *paths);

Status definition_check_indexing(Arena *arena, Json in, Json *out, Error *err)
{
    TRY(body_want_object(in, "indexingPolicy", err));
    size_t mode;
    TRY(body_read_word(in, SLICE("indexingMode"), "indexingPolicy", WORDS(MODES), MODE_CONSISTENT,
                       &mode, err));
    mode = mode == MODE_LAZY ? MODE_CONSISTENT : mode;
    bool automatic;
    TRY(body_read_bool(in, SLICE("automatic"), "indexingPolicy", mode == MODE_CONSISTENT,
                       &automatic, err));
    if (mode == MODE_NONE)
        TRY(check_none(in, automatic, err));

    PolicyPaths paths = {.count = 0};
    Json composite, spatial, vector, full_text;
    TRY(read_paths(arena, in, &paths, err));
    if (mode == MODE_CONSISTENT)
        TRY(check_sets(arena, &paths, err));
    TRY(definition_check_composite_indexes(arena, body_member(in, SLICE("compositeIndexes")),
                                           &composite, err));
    TRY(definition_check_spatial_indexes(arena, body_member(in, SLICE("spatialIndexes")),
                                         body_member(in, SLICE("includedPaths")), &spatial, err));
    TRY(definition_check_vector_indexes(arena, body_member(in, SLICE("vectorIndexes")), &vector,
                                        err));
    TRY(definition_check_full_text_indexes(arena, body_member(in, SLICE("fullTextIndexes")),
                                           &full_text, err));

    JsonBuilder b;
    json_build(&b, arena);
    json_begin_object(&b);
    body_add_text(&b, SLICE("indexingMode"), MODES[mode]);
    json_key(&b, SLICE("automatic"));
    json_add_bool(&b, mode == MODE_CONSISTENT); /* follows from the mode, whatever was sent */
    build_paths(&b, &paths);
    body_add_member(&b, SLICE("compositeIndexes"), composite);
    body_add_member(&b, SLICE("spatialIndexes"), spatial);
    body_add_member(&b, SLICE("vectorIndexes"), vector);
    body_add_member(&b, SLICE("fullTextIndexes"), full_text);
    json_end(&b);
    *out = json_built(&b);
    return STATUS_OK;
}

static Status check_none(Json in, bool automatic, Error *err)
{
    if (automatic)
        return REFUSE(err, "'automatic' of indexingPolicy must be false when 'indexingMode' is "
                           "'none'.");
    static const Slice LISTS[] = {SLICE_INIT("includedPaths"),    SLICE_INIT("excludedPaths"),
                                  SLICE_INIT("compositeIndexes"), SLICE_INIT("spatialIndexes"),
                                  SLICE_INIT("vectorIndexes"),    SLICE_INIT("fullTextIndexes")};
    for (size_t i = 0; i < ARRAY_COUNT(LISTS); ++i) {
        Json list = body_member(in, LISTS[i]);
        if (body_element_count(list) > 0)
            return REFUSE(err,
                          "'%.*s' of indexingPolicy must be empty when 'indexingMode' is 'none'; "
                          "found %zu elements.",
                          SLICE_ARG(LISTS[i]), json_count(list));
    }
    return STATUS_OK;
}

static Status read_paths(Arena *arena, Json in, PolicyPaths *out, Error *err)
{
    Json included = body_member(in, SLICE("includedPaths"));
    Json excluded = body_member(in, SLICE("excludedPaths"));
    /* One more than the limit, because the exclusion of _etag is not counted. */
    TRY(body_want_array(included, "'includedPaths' of indexingPolicy", INDEX_PATHS_MAX, err));
    TRY(body_want_array(excluded, "'excludedPaths' of indexingPolicy", INDEX_PATHS_MAX + 1, err));

    /* With room for the root and for _etag. */
    size_t count_max = body_element_count(included) + body_element_count(excluded) + 2;
    out->items = ARENA_NEW_ARRAY(arena, PolicyPath, count_max);
    TRY(read_list(arena, included, false, out, err));
    return read_list(arena, excluded, true, out, err);
}

static Status read_list(Arena *arena, Json list, bool excluded, PolicyPaths *out, Error *err)
{
    JsonIter it = json_iter(list);
    while (json_next(&it)) {
        TRY(read_entry(arena, it.value, excluded, &out->items[out->count], err));
        ++out->count;
    }
    return STATUS_OK;
}

static Status read_entry(Arena *arena, Json entry, bool excluded, PolicyPath *out, Error *err)
{
    const char *what = excluded ? "an excluded path" : "an included path";
    Json path = json_is(entry, JSON_OBJECT) ? body_member(entry, SLICE("path")) : JSON_NONE;
    if (!json_is(path, JSON_STRING))
        return REFUSE(err, "'%s' of indexingPolicy must hold objects with a text 'path'; found %s.",
                      excluded ? "excludedPaths" : "includedPaths", body_type_phrase(entry));
    Slice text = json_string(path);
    unsigned allowed = INDEX_PATH_SCALAR | INDEX_PATH_SUBTREE | (excluded ? 0 : INDEX_PATH_TUPLE);
    size_t position;
    if (!index_path_parse(arena, text, allowed, &out->path, &position))
        return REFUSE(
            err,
            "The indexing path '%.*s' could not be accepted as %s, failed near position "
            "'%zu'. A path ends with '/?' for a value or '/*' for all below, has '[]' for "
            "the elements of an array, and quotes around names of other characters than "
            "letters, digits and '_'.",
            SHOWN(text), what, position);
    out->text = out->path.is_root ? SLICE("/*") : text;
    out->excluded = excluded;
    return excluded ? STATUS_OK : check_indexes(body_member(entry, SLICE("indexes")), err);
}

static Status check_indexes(Json indexes, Error *err)
{
    TRY(body_want_array(indexes, "'indexes' of an included path", INDEXES_MAX, err));
    JsonIter it = json_iter(indexes);
    while (json_next(&it)) {
        const char *what = "an element of 'indexes'";
        if (!json_is(it.value, JSON_OBJECT))
            return REFUSE(err, "An element of 'indexes' must be an object; found %s.",
                          body_type_phrase(it.value));
        size_t word;
        int64_t precision;
        bool found;
        TRY(body_read_word(it.value, SLICE("kind"), what, WORDS(INDEX_KINDS), 0, &word, err));
        TRY(body_read_word(it.value, SLICE("dataType"), what, WORDS(DATA_TYPES), 0, &word, err));
        TRY(body_read_whole(it.value, SLICE("precision"), what, -1, 100, &precision, &found, err));
    }
    return STATUS_OK;
}

static int compare_paths(const void *a, const void *b)
{
    const PolicyPath *left = *(PolicyPath *const *)a;
    const PolicyPath *right = *(PolicyPath *const *)b;
    return slice_compare(left->path.canonical, right->path.canonical);
}

/* Checks the rules between the paths, and adds the defaults. Equal paths are found by sorting: to
 * compare each of twice INDEX_PATHS_MAX with each would be a cheap attack. */
static Status check_sets(Arena *arena, PolicyPaths *paths, Error *err)
{
    if (paths->count == 0) {
        paths->items[paths->count++] =
            (PolicyPath){.path = {.is_root = true, .canonical = SLICE("/*")}, .text = SLICE("/*")};
    }
    PolicyPath **sorted = ARENA_NEW_ARRAY(arena, PolicyPath *, paths->count);
    bool has_root = false;
    bool has_etag = false;
    size_t excluded_count = 0; /* without _etag, which the client may not have asked for */
    for (size_t i = 0; i < paths->count; ++i) {
        sorted[i] = &paths->items[i];
        has_root |= sorted[i]->path.is_root;
        bool is_etag = slice_equal(sorted[i]->path.canonical, SLICE(ETAG_CANONICAL));
        has_etag |= is_etag;
        excluded_count += sorted[i]->excluded && !is_etag;
    }
    if (!has_root)
        return REFUSE(err,
                      "The special mandatory indexing path \"/*\" is not provided in any of the "
                      "path type sets. Please provide it in includedPaths or in "
                      "excludedPaths.");
    qsort(sorted, paths->count, sizeof(PolicyPath *), compare_paths);
    for (size_t i = 1; i < paths->count; ++i) {
        if (compare_paths(&sorted[i - 1], &sorted[i]) != 0)
            continue;
        bool both = sorted[i - 1]->excluded != sorted[i]->excluded;
        return REFUSE(err, "The indexing path '%.*s' is given %s.", SHOWN(sorted[i]->text),
                      both ? "in both includedPaths and excludedPaths"
                           : "more than once in the same list");
    }
    if (excluded_count > INDEX_PATHS_MAX)
        return REFUSE(err, "'excludedPaths' of indexingPolicy has %zu elements; the maximum is %d.",
                      excluded_count, INDEX_PATHS_MAX);
    if (!has_etag)
        paths->items[paths->count++] = (PolicyPath){.text = SLICE(ETAG_PATH), .excluded = true};
    return STATUS_OK;
}

static void build_paths(JsonBuilder *b, const PolicyPaths *paths)
{
    for (int excluded = 0; excluded <= 1; ++excluded) {
        json_key(b, excluded ? SLICE("excludedPaths") : SLICE("includedPaths"));
        json_begin_array(b);
        for (size_t i = 0; i < paths->count; ++i) {
            if (paths->items[i].excluded != (excluded == 1))
                continue;
            json_begin_object(b);
            body_add_text(b, SLICE("path"), paths->items[i].text);
            json_end(b);
        }
        json_end(b);
    }
}
