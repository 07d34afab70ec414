/* page_random_int.h - for tests: random documents, policies and queries from a grammar. Not part of
 * the library. */
#pragma once

#include "base/buf.h"
#include "base/defs.h"
#include "base/random.h"

#include <string.h>

enum { RANDOM_TEXT_BYTES = 8192 };

static const char *const RANDOM_POLICIES[] = {
    NULL,
    "{\"indexingMode\":\"consistent\",\"automatic\":true,\"includedPaths\":[{\"path\":\"/*\"}],"
    "\"excludedPaths\":[{\"path\":\"/\\\"_etag\\\"/?\"}],\"compositeIndexes\":[[{\"path\":\"/a\","
    "\"order\":\"ascending\"},{\"path\":\"/n\",\"order\":\"descending\"}],[{\"path\":\"/s\","
    "\"order\":\"ascending\"},{\"path\":\"/a\",\"order\":\"ascending\"}],[{\"path\":\"/n\","
    "\"order\":\"descending\"},{\"path\":\"/s\",\"order\":\"descending\"},{\"path\":\"/o/x\","
    "\"order\":\"ascending\"}],[{\"path\":\"/s\",\"order\":\"ascending\"},{\"path\":\"/o/x\","
    "\"order\":\"descending\"}],[{\"path\":\"/i\",\"order\":\"ascending\"},{\"path\":\"/_ts\","
    "\"order\":\"descending\"}]],\"spatialIndexes\":[{\"path\":\"/g/?\",\"types\":[\"Point\","
    "\"LineString\",\"Polygon\",\"MultiPolygon\"]}]}",
    "{\"indexingMode\":\"consistent\",\"automatic\":true,\"includedPaths\":[{\"path\":\"/a/?\"},"
    "{\"path\":\"/o/*\"},{\"path\":\"/t/[]/?\"}],\"excludedPaths\":[{\"path\":\"/*\"}],"
    "\"spatialIndexes\":[{\"path\":\"/g/*\",\"types\":[\"Point\"]}]}",
    "{\"indexingMode\":\"none\",\"automatic\":false}",
    "{\"indexingMode\":\"consistent\",\"automatic\":true,\"includedPaths\":[{\"path\":\"/*\"}],"
    "\"excludedPaths\":[{\"path\":\"/o/x/?\"},{\"path\":\"/t/*\"}],\"spatialIndexes\":[{\"path\":"
    "\"/g/*\",\"types\":[\"Point\",\"Polygon\"]}]}",
};

static inline const char *random_pick(Random *r, const char *const *list, size_t count)
{
    return list[random_below(r, count)];
}
#define PICK(r, ...)                                     \
    random_pick((r), (const char *const[]){__VA_ARGS__}, \
                sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *))

/* ---- policies ---- */

enum { RANDOM_POLICY_BYTES = 4096 };

/* The paths of one list of a policy: the root, or not, and some of those that documents have. */
static inline void random_paths(bool has_root, uint32_t chosen, Buf *out)
{
    static const char *const paths[] = {"/a/?",   "/n/?",   "/s/?",      "/s/*",    "/o/*",
                                        "/o/x/?", "/o/y/?", "/t/*",      "/t/[]/?", "/t/[]/x/?",
                                        "/i/?",   "/pk/?",  "/o/x/[]/*", "/_ts/?",  "/g/*"};
    const char *separator = "";
    if (has_root) {
        buf_slice(out, SLICE("{\"path\":\"/*\"}"));
        separator = ",";
    }
    for (size_t i = 0; i < ARRAY_COUNT(paths); i++) {
        if ((chosen >> i & 1) == 0)
            continue;
        buf_format(out, "%s{\"path\":\"%s\"}", separator, paths[i]);
        separator = ",";
    }
}

/* Two or three different paths, by their number so that no index comes twice. */
static inline void random_composites(Random *r, Buf *out)
{
    static const char *const paths[] = {"/a", "/n", "/s", "/i", "/o/x", "/_ts", "/pk", "/t/[]"};
    uint64_t seen = 0;
    const char *separator = "";
    for (uint64_t left = random_below(r, 4); left > 0; left--) {
        uint64_t first = random_below(r, ARRAY_COUNT(paths));
        uint64_t second =
            (first + 1 + random_below(r, ARRAY_COUNT(paths) - 1)) % ARRAY_COUNT(paths);
        uint64_t pair = first * ARRAY_COUNT(paths) + second;
        if ((seen >> pair & 1) != 0)
            continue;
        seen |= UINT64_C(1) << pair;
        buf_format(out, "%s[{\"path\":\"%s\",\"order\":\"%s\"},{\"path\":\"%s\",\"order\":\"%s\"}",
                   separator, paths[first], PICK(r, "ascending", "descending"), paths[second],
                   PICK(r, "ascending", "descending"));
        uint64_t third = random_below(r, ARRAY_COUNT(paths) - 1);
        if (third != first && third != second && random_below(r, 2) == 0)
            buf_format(out, ",{\"path\":\"%s\",\"order\":\"%s\"}", paths[third],
                       PICK(r, "ascending", "descending"));
        buf_byte(out, ']');
        separator = ",";
    }
}

/* One of those above, or any. It lives in 'text'. */
static inline const char *random_policy(Random *r, char text[RANDOM_POLICY_BYTES])
{
    if (random_below(r, 2) == 0)
        return random_pick(r, RANDOM_POLICIES, ARRAY_COUNT(RANDOM_POLICIES));
    uint32_t included = (uint32_t)random_below(r, 1 << 15) & (uint32_t)random_below(r, 1 << 15);
    uint32_t excluded = (uint32_t)random_below(r, 1 << 15) & (uint32_t)random_below(r, 1 << 15);
    bool is_root_included = random_below(r, 3) > 0;
    AUTO(buf_done) Buf out;
    buf_init(&out, RANDOM_POLICY_BYTES - 1);
    buf_slice(&out,
              SLICE("{\"indexingMode\":\"consistent\",\"automatic\":true,\"includedPaths\":["));
    random_paths(is_root_included, included & ~excluded, &out);
    buf_slice(&out, SLICE("],\"excludedPaths\":["));
    random_paths(!is_root_included, excluded, &out);
    buf_slice(&out, SLICE("],\"compositeIndexes\":["));
    random_composites(r, &out);
    buf_slice(&out, SLICE("],\"spatialIndexes\":["));
    if (random_below(r, 2) == 0)
        buf_format(&out, "{\"path\":\"%s\",\"types\":[\"Point\"%s]}", PICK(r, "/g/?", "/g/*", "/*"),
                   PICK(r, "", ",\"Polygon\"", ",\"Polygon\",\"LineString\",\"MultiPolygon\""));
    buf_slice(&out, SLICE("]}"));
    memcpy(text, out.ptr, out.len);
    text[out.len] = '\0';
    return text;
}

/* ---- documents ---- */

static inline void random_long(Random *r, Buf *out)
{
    /* Strings that differ only after the part that a term keeps, or at the end of that part. A
     * position cannot hold several of them. */
    size_t len = random_below(r, 3) == 0 ? 90 + (size_t)random_below(r, 9) : 120;
    buf_byte(out, '"');
    for (size_t i = 0; i < len; i++)
        buf_byte(out, 'x');
    buf_format(out, "%s%llu\"", random_below(r, 8) == 0 ? "\\u0000" : "",
               (unsigned long long)random_below(r, 4));
}

static inline void random_scalar(Random *r, Buf *out)
{
    switch (random_below(r, 10)) {
    case 0:
        buf_slice(out, SLICE("null"));
        return;
    case 1:
        buf_slice(out, random_below(r, 2) == 0 ? SLICE("true") : SLICE("false"));
        return;
    case 2:
    case 3:
    case 4:
        buf_format(out, "%d", (int)random_below(r, 7) - 3);
        return;
    case 5:
        buf_slice(out, slice_from_cstr(PICK(r, "0.5", "1e300", "9007199254740993",
                                            "9007199254740992", "-2.25", "-0", "0.1")));
        return;
    case 6:
        random_long(r, out);
        return;
    default:
        buf_format(out, "\"%s\"",
                   PICK(r, "", "a", "ab", "abc", "B", "b", "b\\u0000c", "\\u00e9t\\u00e9",
                        "\\ud83d\\ude00", "2024-01-01"));
        return;
    }
}

static inline void random_value(Random *r, Buf *out, int depth)
{
    uint64_t kind = random_below(r, 8);
    if (kind > 1 || depth == 0) {
        random_scalar(r, out);
        return;
    }
    buf_byte(out, kind == 0 ? '[' : '{');
    uint64_t count = random_below(r, 4);
    for (uint64_t i = 0; i < count; i++) {
        if (i > 0)
            buf_byte(out, ',');
        if (kind == 1)
            buf_format(out, "\"%c\":", (char)('x' + i));
        random_value(r, out, depth - 1);
    }
    buf_byte(out, kind == 0 ? ']' : '}');
}

static inline double random_degrees(Random *r, double from, double to)
{
    double share = (double)random_below(r, 1000) / 1000;
    return from + (to - from) * share;
}

/* Shapes near [0, 0], near the antimeridian, and a few that are not valid. */
static inline void random_shape(Random *r, Buf *out)
{
    double x = random_below(r, 4) == 0 ? 179 : 0;
    x += random_degrees(r, -3, 1);
    double y = random_degrees(r, -3, 3);
    double size = random_degrees(r, 0.001, random_below(r, 3) == 0 ? 20 : 1);
    double east = x + size > 180 ? x + size - 360 : x + size;
    switch (random_below(r, 8)) {
    case 0:
        buf_format(out, "{\"type\":\"LineString\",\"coordinates\":[[%g,%g],[%g,%g]]}", x, y, east,
                   y + size);
        return;
    case 1:
        buf_format(out,
                   "{\"type\":\"%s\",\"coordinates\":[[[%g,%g],[%g,%g],[%g,%g],[%g,%g],[%g,%g]]]}",
                   random_below(r, 9) == 0 ? "Sphere" : "Polygon", x, y, east, y, east, y + size, x,
                   y + size, x, y);
        return;
    case 2:
        buf_format(out,
                   "{\"type\":\"MultiPolygon\",\"coordinates\":[[[[%g,%g],[%g,%g],[%g,%g],[%g,%g]]"
                   "]]}",
                   x, y, east, y, east, y + size, x, y);
        return;
    default:
        buf_format(out, "{\"type\":\"Point\",\"coordinates\":[%g,%g]}",
                   random_below(r, 30) == 0 ? 200 : x, y);
        return;
    }
}

/* A member that is a long way down, under a name longer than a step's hash takes at once. */
static inline void random_deep(Random *r, Buf *out)
{
    buf_slice(out, SLICE(",\"d\":{\""));
    for (int i = 0; i < 130; i++)
        buf_byte(out, 'N');
    buf_slice(out, SLICE("\":"));
    for (int i = 0; i < 30; i++)
        buf_slice(out, SLICE("{\"d\":"));
    random_scalar(r, out);
    for (int i = 0; i < 31; i++)
        buf_byte(out, '}');
}

static inline void random_document(Random *r, uint64_t number, bool may_expire, Buf *out)
{
    buf_format(out, "{\"id\":\"%llu\",\"pk\":\"p%llu\",\"sub\":%llu", (unsigned long long)number,
               (unsigned long long)(number % 5), (unsigned long long)(number % 3));
    static const char *const names[] = {"a", "n", "s", "o"};
    for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
        if (random_below(r, 5) == 0)
            continue;
        buf_format(out, ",\"%s\":", names[i]);
        random_value(r, out, 2);
    }
    if (random_below(r, 4) > 0) {
        buf_slice(out, SLICE(",\"t\":["));
        uint64_t count = random_below(r, 4);
        for (uint64_t i = 0; i < count; i++) {
            if (i > 0)
                buf_byte(out, ',');
            random_value(r, out, 1);
        }
        buf_byte(out, ']');
    }
    if (random_below(r, 2) == 0) {
        buf_slice(out, SLICE(",\"g\":"));
        random_shape(r, out);
    }
    if (random_below(r, 10) == 0)
        random_deep(r, out);
    buf_format(out, ",\"i\":%llu", (unsigned long long)random_below(r, 20));
    if (may_expire && random_below(r, 3) == 0)
        buf_format(out, ",\"ttl\":%u", (unsigned)random_below(r, 50) + 1);
    buf_byte(out, '}');
}

/* ---- conditions ---- */

static inline const char *random_path(Random *r)
{
    return PICK(r, "c.a", "c.n", "c.s", "c.o", "c.o.x", "c.o.y", "c.t", "c.t[0]", "c.id", "c.pk",
                "c[\"a\"]", "c.none", "c.o[\"x\"]", "c._ts", "c.i", "c.sub", "c.o[@name]");
}

static inline void random_deep_path(Buf *out)
{
    buf_slice(out, SLICE("c.d[\""));
    for (int i = 0; i < 130; i++)
        buf_byte(out, 'N');
    buf_slice(out, SLICE("\"]"));
    for (int i = 0; i < 30; i++)
        buf_slice(out, SLICE(".d"));
}

static inline void random_constant(Random *r, Buf *out)
{
    switch (random_below(r, 12)) {
    case 0:
        buf_slice(out, slice_from_cstr(PICK(r, "undefined", "@none", "(0/0)", "(1/0)")));
        return;
    case 1:
        buf_slice(out, slice_from_cstr(PICK(r, "[1]", "{\"x\":1}", "[]", "@object")));
        return;
    case 2:
        buf_slice(out, slice_from_cstr(PICK(r, "(1 + 1)", "-1", "CONCAT('a','b')", "'p1'", "'7'",
                                            "@number", "@string", "@long", "-0.0")));
        return;
    default:
        random_scalar(r, out);
    }
}

static inline const char *random_odd(Random *r)
{
    return PICK(r, "c.a", "c.n % 2 = 0", "LENGTH(c.s) > 1", "LOWER(c.s) = 'b'", "c.a = c.n",
                "c.n + c.a > 1", "true", "false", "NOT IS_DEFINED(c.a) OR c.a > 1",
                "(c.a ?? 1) = 1", "c.n > 0 ? true : false", "ABS(c.n) = 1", "c._ts > 0",
                "1 / c.n < 0", "TOSTRING(c.n) = '-0'", "SUBSTRING(c.s, 0, 1) = 'a'",
                "LEFT(c.s, 2) = 'ab'", "INDEX_OF(c.s, 'b') = 1", "REGEXMATCH(c.s, '^a.*$')",
                "ARRAY_LENGTH(c.t) > 1", "IS_DEFINED(c.t[1])", "c.i IN (1, 2, 3, 4, 5, 6, 7)",
                "c.i BETWEEN 3 AND 9", "c.i > 5 AND c.i < 12", "c.i = 3 OR c.i = 4", "c.t[0] = 1",
                "FLOOR(c.n) = c.n", "c.a IN (c.n, 1)", "c.pk = 'p1'", "c.sub = 1",
                "c.pk = 'p1' AND c.sub = 1", "c.pk = @pk", "c.a = 1 AND c.n > 0",
                "c.s >= 'a' AND c.a = 1", "c.i = 3 AND c._ts > 1700000020",
                "c.i = 4 AND c._ts < 1700000010", "c.s = 'a' AND c.a = 1",
                "c.n = 1 AND c.s = 'a' AND c.o.x < 5", "c.n < 2 AND c.s = 'a'",
                "c.n = 1 AND c.s > 'a'", "c.a = 1 AND c.n BETWEEN -1 AND 2",
                "c.o.x = 1 OR IS_STRING(c.o.x)", "ARRAY_CONTAINS(c.t, {\"x\": 1}, true)",
                "EXISTS(SELECT VALUE e FROM e IN c.t WHERE e.x = 1)", "c.n IN (-1, 1, null, 'a')",
                "-c.n > 0", "(c.n + 1) BETWEEN 1 AND 2", "(c.n + 1) IN (1, 2)",
                "{\"x\": c.n} = {\"x\": 1}", "[c.n] = [1]", "(c.s || 'x') LIKE 'a%'",
                "c.s LIKE c.a", "c.s LIKE 5", "NOT (c.n)", "c.n", "(c.n = 1) = true",
                "IS_DEFINED(c.n) AND c.n < 2", "IS_DEFINED(c.a) AND c.i > 3", "IS_DEFINED(c.s)",
                "c.s > 'a' AND c.s < 'b'", "c.a >= 1 AND c.n = 1", "LENGTH(c.s) > 1 AND c.i < 10",
                "ARRAY_CONTAINS(c.t, c.a)", "ARRAY_CONTAINS_ANY(c.t, c.a, 1)");
}

static inline void random_spatial(Random *r, Buf *out)
{
    switch (random_below(r, 5)) {
    case 0:
        buf_slice(out, SLICE("ST_WITHIN(c.g, "));
        random_shape(r, out);
        buf_byte(out, ')');
        return;
    case 1:
        buf_slice(out, SLICE("ST_INTERSECTS("));
        random_shape(r, out);
        buf_slice(out, SLICE(", c.g)"));
        return;
    case 2:
        buf_slice(out, SLICE("ST_WITHIN("));
        random_shape(r, out);
        buf_slice(out, SLICE(", c.g)"));
        return;
    case 3:
        buf_format(out, "%llu >= ST_DISTANCE(c.g, ", (unsigned long long)random_below(r, 200000));
        random_shape(r, out);
        buf_byte(out, ')');
        return;
    default:
        buf_slice(out, SLICE("ST_DISTANCE("));
        random_shape(r, out);
        buf_format(out, ", c.g) %s %d", PICK(r, "<", "<=", ">", "="),
                   (int)random_below(r, 400000) - 1000);
        return;
    }
}

static inline void random_predicate(Random *r, Buf *out, const char *alias)
{
    const char *p = alias != NULL ? alias : random_path(r);
    switch (random_below(r, 16)) {
    case 0:
    case 1:
    case 2:
        buf_format(out, "%s %s ", p, PICK(r, "=", "!=", "<", "<=", ">", ">="));
        random_constant(r, out);
        return;
    case 3:
        random_constant(r, out);
        buf_format(out, " %s %s", PICK(r, "=", "<", ">="), p);
        return;
    case 4:
        buf_format(out, "%s %sIN (", p, PICK(r, "", "NOT "));
        random_constant(r, out);
        buf_slice(out, SLICE(", "));
        random_constant(r, out);
        buf_byte(out, ')');
        return;
    case 5:
        buf_format(out, "(%s %sBETWEEN ", p, PICK(r, "", "NOT "));
        random_constant(r, out);
        buf_slice(out, SLICE(" AND "));
        random_constant(r, out);
        buf_byte(out, ')');
        return;
    case 6:
        buf_format(out, "%s(%s)",
                   PICK(r, "IS_DEFINED", "IS_NULL", "IS_BOOL", "IS_NUMBER", "IS_STRING", "IS_ARRAY",
                        "IS_OBJECT", "IS_PRIMITIVE", "IS_INTEGER", "IS_FINITE_NUMBER"),
                   p);
        return;
    case 7:
        buf_format(out, "%s(%s, %s%s)",
                   PICK(r, "STARTSWITH", "CONTAINS", "ENDSWITH", "STRINGEQUALS"), p,
                   PICK(r, "'a'", "'ab'", "''", "'B'", "'xxxxxxxxxx'", "5", "@long"),
                   PICK(r, "", ", false", ", true"));
        return;
    case 8:
        buf_format(out, "%s %sLIKE %s", p, PICK(r, "", "NOT "),
                   PICK(r, "'a%'", "'%b%'", "'ab'", "'a_'", "'_'", "'[ab]%'", "'x%1'", "'%'",
                        "@string", "'a!%' ESCAPE '!'", "'b\\u0000%'"));
        return;
    case 9:
        buf_format(out, "ARRAY_CONTAINS(%s, ", p);
        random_constant(r, out);
        buf_byte(out, ')');
        return;
    case 10:
        buf_format(out, "ARRAY_CONTAINS(%s, %s)",
                   PICK(r, "[1, 'a', null, true]", "@list", "[[1], 0]"), p);
        return;
    case 11:
        buf_slice(out, slice_from_cstr(random_odd(r)));
        return;
    case 12:
        buf_format(out, "%s(SELECT VALUE e FROM e IN %s WHERE ", PICK(r, "EXISTS", "NOT EXISTS"),
                   PICK(r, "c.t", "c.o", "c.a"));
        random_predicate(r, out, "e");
        buf_byte(out, ')');
        return;
    case 13:
        random_spatial(r, out);
        return;
    case 14:
        random_deep_path(out);
        buf_format(out, " %s ", PICK(r, "=", "<", ">="));
        random_constant(r, out);
        return;
    default:
        buf_format(out, "ARRAY_CONTAINS_%s(c.t, ", PICK(r, "ANY", "ALL"));
        random_constant(r, out);
        buf_slice(out, SLICE(", "));
        random_constant(r, out);
        buf_byte(out, ')');
    }
}

static inline void random_condition(Random *r, Buf *out, int depth)
{
    uint64_t kind = depth == 0 ? 9 : random_below(r, 10);
    if (kind < 3) {
        buf_byte(out, '(');
        random_condition(r, out, depth - 1);
        buf_slice(out, kind == 0 ? SLICE(" OR ") : SLICE(" AND "));
        random_condition(r, out, depth - 1);
        buf_byte(out, ')');
    } else if (kind == 3) {
        buf_slice(out, SLICE("NOT ("));
        random_condition(r, out, depth - 1);
        buf_byte(out, ')');
    } else {
        random_predicate(r, out, NULL);
    }
}

/* ---- queries ---- */

#define RANDOM_PARAMETERS                                                                       \
    "[{\"name\":\"@number\",\"value\":1},{\"name\":\"@string\",\"value\":\"ab\"},{\"name\":"    \
    "\"@object\",\"value\":{\"x\":1}},{\"name\":\"@list\",\"value\":[1,\"b\",null]},{\"name\":" \
    "\"@pk\",\"value\":\"p2\"},{\"name\":\"@name\",\"value\":\"x\"},{\"name\":\"@none\"},"      \
    "{\"name\":\"@long\",\"value\":\"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx" \
    "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\"}]"

typedef enum RandomOrder {
    RANDOM_ORDER_NONE,
    RANDOM_ORDER_KEYS, /* a result is what was ordered by, followed by an id */
    RANDOM_ORDER_SELF, /* or the result itself */
} RandomOrder;

typedef struct RandomQuery {
    char text[RANDOM_TEXT_BYTES];
    char cut[64];     /* TOP, or OFFSET and LIMIT; which of the results come is then not said */
    bool cut_is_last; /* OFFSET: at the end of the text */
    RandomOrder order;
    bool is_whole; /* all documents are read for each page */
    bool is_sum;   /* the result is a sum that doubles may have to round */
} RandomQuery;

static inline void random_where(Random *r, Buf *out, int depth)
{
    buf_slice(out, SLICE(" WHERE "));
    random_condition(r, out, depth);
}

/* Orders of several keys are those that some policy has an index for. */
static inline const char *random_keys(Random *r)
{
    switch (random_below(r, 10)) {
    case 0:
        return PICK(r, "c.a, c.n DESC", "c.a DESC, c.n");
    case 1:
        return PICK(r, "c.s, c.a", "c.s DESC, c.a DESC");
    case 2:
        return PICK(r, "c.n, c.s, c.o.x DESC", "c.n DESC, c.s DESC, c.o.x");
    case 3:
        return PICK(r, "c.i, c._ts DESC", "c.i DESC, c._ts");
    case 4:
        return PICK(r, "c.s, c.o.x DESC", "c.s DESC, c.o.x");
    case 5: /* seldom */
        return PICK(r, "c.a, c.i", "c.n, c.a", "c.i DESC, c.n DESC", "c.pk, c.n",
                    "c._ts, c.a DESC");
    default:
        return PICK(r, "c.a", "c.n", "c.s", "c.o.x", "c._ts", "c.id", "c.i", "c.a DESC", "c.n DESC",
                    "c.s DESC", "c.o.x DESC", "c._ts DESC", "c.id DESC", "c.i ASC");
    }
}

static inline void random_ordered(Random *r, RandomQuery *q, Buf *out)
{
    const char *keys = random_keys(r);
    q->order = RANDOM_ORDER_KEYS;
    buf_slice(out, SLICE("SELECT VALUE ["));
    for (Slice rest = slice_from_cstr(keys); rest.len > 0;) {
        Slice key = slice_trim(slice_cut(&rest, ','));
        buf_slice(out, slice_cut(&key, ' '));
        buf_slice(out, SLICE(" ?? '-', "));
    }
    buf_format(out, "c.id] FROM c%s", random_below(r, 6) == 0 ? " JOIN e IN c.t" : "");
    /* Conditions that fix the first parts of some index to a value. */
    const char *ties = PICK(r, "c.a = 1", "c.s = 'a'", "c.n = 1", "c.n = 1 AND c.s = 'a'",
                            "c.s = @string AND c.n = -1", "c.i = 3", "c.s = @long", "c.a = null",
                            "c.a = 1 AND c.a = 2", "c.n = 0", "c.a = [1]", "c.s = @none");
    bool has_ties = random_below(r, 3) == 0;
    bool has_where = random_below(r, 3) > 0;
    if (has_ties)
        buf_format(out, " WHERE %s%s", ties, has_where ? " AND " : "");
    else if (has_where)
        buf_slice(out, SLICE(" WHERE "));
    if (has_where)
        random_condition(r, out, 2);
    buf_format(out, " ORDER BY %s", keys);
}

/* Nothing but one path, so that the index may have all that is asked for. */
static inline void random_covered(Random *r, RandomQuery *q, Buf *out)
{
    const char *path = PICK(r, "c.a", "c.n", "c.s", "c.o.x", "c.i", "c.id");
    buf_format(out, "SELECT VALUE [%s ?? '-', 1] FROM c", path);
    if (random_below(r, 3) > 0) {
        buf_slice(out, SLICE(" WHERE "));
        random_predicate(r, out, path);
    }
    if (random_below(r, 4) > 0) {
        q->order = RANDOM_ORDER_KEYS;
        buf_format(out, " ORDER BY %s%s", path, PICK(r, "", " DESC"));
    }
}

static inline void random_plain(Random *r, RandomQuery *q, Buf *out)
{
    const char *select =
        PICK(r, "*", "VALUE c", "c.id, c.a", "VALUE c.a", "VALUE c.o.x", "c._rid, c.a",
             "VALUE {\"k\": c.n, \"ts\": c._etag}", "c", "VALUE [c.id, c.a, @number]",
             "c.id, (SELECT VALUE COUNT(1) FROM e IN c.t) AS n", "VALUE c.t[0]");
    switch (random_below(r, 8)) {
    case 0:
    case 1:
        buf_format(out, "SELECT c.id, e FROM c JOIN e IN %s", PICK(r, "c.t", "c.o", "c.a"));
        buf_slice(out, SLICE(" WHERE "));
        if (random_below(r, 2) == 0)
            random_predicate(r, out, "e");
        else
            random_condition(r, out, 1);
        return;
    case 2:
        q->is_whole = true;
        buf_slice(out, slice_from_cstr(
                           PICK(r, "SELECT VALUE x FROM (SELECT VALUE c.a FROM c) AS x",
                                "SELECT x.id, x.a FROM (SELECT VALUE c FROM c) AS x WHERE x.a = 1",
                                "SELECT VALUE COUNT(1) FROM (SELECT VALUE c.n FROM c) AS x",
                                "SELECT VALUE x FROM (SELECT DISTINCT VALUE c.a FROM c) AS x")));
        return;
    case 3:
        buf_slice(out, slice_from_cstr(PICK(r, "SELECT VALUE e FROM e IN c.t",
                                            "SELECT VALUE x FROM c.o.x AS x",
                                            "SELECT VALUE o FROM c.o AS o WHERE o.x = 1",
                                            "SELECT VALUE o FROM c.o AS o WHERE IS_DEFINED(o.y)",
                                            "SELECT VALUE e FROM e IN c.t WHERE e > 0")));
        return;
    default:
        buf_format(out, "SELECT %s FROM c", select);
        if (random_below(r, 8) > 0)
            random_where(r, out, 3);
    }
}

static inline void random_grouped(Random *r, RandomQuery *q, Buf *out)
{
    const char *by = PICK(r, "c.a", "c.n", "c.o.x", "c.pk", "c.i", "c.s");
    const char *what = NULL;
    q->is_whole = true;
    bool is_value = false;
    uint64_t kind = random_below(r, 8);
    switch (kind) {
    case 0:
        buf_format(out, "SELECT %s AS k, COUNT(1) AS n, COUNT(c.s) AS s FROM c", by);
        break;
    case 1:
        what = PICK(r, "COUNT(1)", "COUNT(c.a)", "MIN(c.n)", "MAX(c.n)", "MIN(c.id)", "MAX(c.a)",
                    "SUM(c.n)", "COUNT(c)", "SUM(c.i)", "AVG(c.i)", "MIN(c.i)", "COUNT(@number)",
                    "COUNT(@none)");
        buf_format(out, "SELECT VALUE %s FROM c", what);
        q->is_sum = strcmp(what, "SUM(c.n)") == 0;
        by = NULL;
        break;
    case 2:
    case 3:
        is_value = random_below(r, 2) == 0;
        buf_format(out, "SELECT DISTINCT %s%s FROM c", is_value ? "VALUE " : "", by);
        break;
    case 4:
        buf_format(out, "SELECT COUNT(1) AS n, MIN(c.id) AS low, MAX(c._ts) AS high, SUM(c.i) AS s,"
                        " AVG(c.sub) AS v FROM c");
        by = NULL;
        break;
    case 5:
        buf_format(out, "SELECT %s AS k, SUM(%s) AS s, MIN(%s) AS low, AVG(%s) AS v FROM c", by, by,
                   by, by);
        break;
    case 6:
        buf_format(out, "SELECT %s AS k, c.pk, COUNT(1) AS n FROM c", by);
        break;
    default:
        buf_format(out, "SELECT %s AS k, MAX(c.id) AS high FROM c", by);
    }
    if (random_below(r, 2) == 0)
        random_where(r, out, 2);
    if (by != NULL && kind == 6)
        buf_format(out, " GROUP BY %s, c.pk", by);
    else if (by != NULL && kind != 2 && kind != 3)
        buf_format(out, " GROUP BY %s", by);
    if (kind == 3) {
        q->order = is_value ? RANDOM_ORDER_SELF : RANDOM_ORDER_NONE;
        buf_format(out, " ORDER BY %s%s", by, PICK(r, "", " DESC"));
    }
}

static inline void random_query(Random *r, RandomQuery *q)
{
    AUTO(buf_done) Buf text;
    buf_init(&text, RANDOM_TEXT_BYTES - 64);
    *q = (RandomQuery){0};
    switch (random_below(r, 9)) {
    case 0:
    case 1:
        random_ordered(r, q, &text);
        break;
    case 2:
    case 3:
        random_grouped(r, q, &text);
        break;
    case 4:
        random_covered(r, q, &text);
        break;
    default:
        random_plain(r, q, &text);
    }
    memcpy(q->text, text.ptr, text.len);
    unsigned first = (unsigned)random_below(r, 10);
    unsigned count = (unsigned)random_below(r, 20);
    switch (random_below(r, 8)) {
    case 0:
        (void)snprintf(q->cut, sizeof(q->cut), " TOP %u", count);
        break;
    case 1:
        (void)snprintf(q->cut, sizeof(q->cut), " OFFSET %u LIMIT %u", first, count);
        q->cut_is_last = true;
        break;
    default:
        break;
    }
}

/* The text with what cuts it: "SELECT [DISTINCT] TOP n ...", or "... OFFSET n LIMIT m". */
static inline const char *random_cut_text(Arena *arena, const RandomQuery *q)
{
    if (q->cut_is_last || q->cut[0] == '\0')
        return arena_format(arena, "%s%s%c", q->text, q->cut, '\0').ptr;
    size_t words = strncmp(q->text, "SELECT DISTINCT", 15) == 0 ? 15 : 6;
    return arena_format(arena, "%.*s%s%s%c", (int)words, q->text, q->cut, q->text + words, '\0')
        .ptr;
}
