/* json.h - JSON values in a compact binary form that is read in place.
 *
 * A Json is a view of one value inside a binary document; nothing is decoded until it is asked
 * for. The form is what is stored, so reading a property of a stored item costs no parsing.
 *
 * Ownership  A view borrows: it lives as long as the bytes it points into (an arena, or a value
 *            that the store keeps in place).
 * Threads    Views are immutable and may be shared.
 * Format     At the top of format_int.h.
 */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/slice.h"

#define JSON_DEPTH_MAX      128               /* as the service has it */
#define JSON_TEXT_BYTES_MAX ((size_t)4 << 20) /* larger than any request body we accept */

/* Bounds of what a JsonBuilder makes. Copying a stored value into a new one may go deeper than a
 * stored document may be, and that is fine for an answer; code that stores a built document must
 * compare its json_depth() with JSON_DEPTH_MAX. No text of JSON_TEXT_BYTES_MAX needs as many bytes.
 */
#define JSON_BUILD_DEPTH_MAX 255
#define JSON_BUILD_BYTES_MAX ((size_t)64 << 20)

/* In the order in which values of different types sort. */
typedef enum JsonType {
    JSON_UNDEFINED, /* no value; never stored */
    JSON_NULL,
    JSON_BOOL,
    JSON_NUMBER,
    JSON_STRING,
    JSON_ARRAY,
    JSON_OBJECT,
} JsonType;

typedef struct Json {
    const uint8_t *at; /* NULL if undefined */
} Json;

#define JSON_NONE ((Json){NULL})

/* Parses text into a document in 'arena'. Strict JSON: valid UTF-8, one value, no trailing bytes,
 * at most JSON_DEPTH_MAX levels; a byte order mark in front is skipped. Of a name that occurs twice
 * in an object the last value counts, in the place of the first. Numbers become doubles; one beyond
 * their range is refused, and so is half a surrogate pair. STATUS_BAD_REQUEST says what is
 * wrong and at which byte. */
MUST_USE Status json_parse(Arena *arena, Slice text, Json *out, Error *err);

/* The bytes of a value, to be stored or copied: a document of its own, with the version byte. */
Slice json_bytes(Arena *arena, Json value);

/* A view of stored bytes. Everything is checked here, once: lengths, types, UTF-8, depth; the
 * readers below then trust the bytes. STATUS_CORRUPT if they are not a document. */
MUST_USE Status json_open(Slice bytes, Json *out, Error *err);

/* The same without the check, for bytes that this process checked or wrote itself. */
Json json_trust(Slice bytes);

JsonType json_type(Json value);
static inline bool json_is(Json value, JsonType type)
{
    return json_type(value) == type;
}

/* Each of these may be called only on a value of its type. */
bool json_bool(Json value);
double json_number(Json value);
Slice json_string(Json value);
size_t json_count(Json value); /* elements of an array, members of an object */

/* True, and '*out' is set, if the value is a number without a fraction that fits. */
bool json_to_i64(Json value, int64_t *out);

/* The levels of arrays and objects in a value: 0 for a scalar, 1 for []. Costs no walk. */
uint32_t json_depth(Json value);

/* The bytes that a value takes, which is about what it costs to walk it all. Costs no walk. */
size_t json_size(Json value);

/* The member called 'name', or undefined; also undefined if 'object' is not an object. */
Json json_get(Json object, Slice name);

/* Element 'index', or undefined; also undefined if 'array' is not an array. */
Json json_at(Json array, size_t index);

/* Walks an array or an object in stored order; any other value has no members.
 *     JsonIter it = json_iter(value);
 *     while (json_next(&it)) use(it.name, it.value);          -- name is empty in an array */
typedef struct JsonIter {
    Slice name;
    Json value;
    const uint8_t *next;
    uint32_t left;
    bool is_object;
} JsonIter;
JsonIter json_iter(Json value);
bool json_next(JsonIter *iter);

/* A total order over all values: by type (see JsonType), false before true, numbers by value,
 * strings by UTF-8 bytes, arrays element by element, objects by their members sorted by name.
 * Numbers compare as doubles, with -0 equal to 0 and NaN equal to itself and before all others. */
int json_compare(Json a, Json b);

/* Equality as queries have it: the order of an object's members does not matter. */
bool json_equal(Json a, Json b);

/* Prints as JSON text, compact: integers of 64 bits with all their digits, other numbers as
 * JavaScript prints them (NaN and the infinities, which only queries can compute, print as null).
 * Undefined prints nothing. */
void json_print(Json value, Buf *out);
Slice json_print_arena(Arena *arena, Json value);

/* Prints one string with quotes and escapes as json_print does; one number as JavaScript does. */
void json_print_string(Slice text, Buf *out);
void json_print_number(double number, Buf *out);

/* The double nearest to decimal text: digits with at most one point among or beside them, then
 * perhaps an exponent; a minus may stand in front, nothing else. False if the text is not that, or
 * beyond the range of a double; what is too small for one is zero. */
bool json_number_from_text(Slice text, double *out);

/* Builds a document front to back. Names and values alternate inside objects; a wrong order of
 * calls is a bug and asserted. A name given twice counts as in json_parse. At most
 * JSON_DEPTH_MAX levels can be open at a time; beyond that, or beyond JSON_BUILD_DEPTH_MAX levels
 * with the copies inside, or JSON_BUILD_BYTES_MAX, json_built returns undefined.
 *     JsonBuilder b; json_build(&b, arena);
 *     json_begin_object(&b); json_key(&b, SLICE("id")); json_add_string(&b, id); json_end(&b);
 *     Json doc = json_built(&b); */
typedef struct JsonBuilder {
    Arena *arena;
    uint8_t *ptr; /* grows in the arena */
    size_t len;
    size_t capacity;
    uint32_t *names; /* positions of the names of open objects; grows in the arena too */
    uint32_t name_count;
    uint32_t name_capacity;
    uint32_t depth;
    bool named;  /* a name waits for its value */
    bool failed; /* a bound was reached: nothing more is written */
    struct {
        uint32_t start; /* where the open array or object begins */
        uint32_t count;
        uint16_t depth; /* levels inside, so far */
        bool is_object;
    } open[JSON_DEPTH_MAX];
} JsonBuilder;

void json_build(JsonBuilder *b, Arena *arena);
void json_begin_object(JsonBuilder *b);
void json_begin_array(JsonBuilder *b);
void json_key(JsonBuilder *b, Slice name);
void json_add_null(JsonBuilder *b);
void json_add_bool(JsonBuilder *b, bool value);
void json_add_number(JsonBuilder *b, double value);
void json_add_i64(JsonBuilder *b, int64_t value);  /* exact to json_to_i64 and in print */
void json_add_string(JsonBuilder *b, Slice value); /* must be valid UTF-8 */
void json_add(JsonBuilder *b, Json value);         /* a copy of any value but undefined */
void json_end(JsonBuilder *b);
Json json_built(JsonBuilder *b); /* lives in the arena */

/* True if the bytes are well-formed UTF-8. */
bool json_utf8_valid(Slice text);
