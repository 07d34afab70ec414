/* limits_test.c - queries that want too much end with an error, in time and within their memory. */
#include "query/eval/query_testing_int.h"

#include <pthread.h>
#include <unistd.h>

/* A document with arrays of a hundred numbers. */
static const char *wide_document(Arena *arena)
{
    AUTO(buf_done) Buf out;
    buf_init(&out, 1 << 16);
    buf_slice(&out, SLICE("[{\"id\":\"a\",\"v\":["));
    for (int i = 0; i < 100; i++)
        buf_format(&out, "%s%d", i == 0 ? "" : ",", i);
    buf_slice(&out, SLICE("]}]"));
    return arena_cstr(arena, buf_view(&out));
}

static void check(const char *query, const char *documents, const char *parameters,
                  QueryOptions options, const char *expected)
{
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 64 << 10);
    const char *got = run_query(&arena, query, documents, parameters, options);
    bool right = expected[0] == '!' ? got[0] == '!' && strstr(got, expected + 1) != NULL
                                    : strcmp(got, expected) == 0;
    if (!right)
        fail_msg("%s\n  expected %s\n  got      %.500s", query, expected, got);
}

static void a_join_bomb_runs_out_of_steps(void **state)
{
    (void)state;
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 64 << 10);
    const char *wide = wide_document(&arena);
    const char *bomb = "SELECT VALUE COUNT(1) FROM c JOIN a IN c.v JOIN b IN c.v JOIN d IN c.v "
                       "JOIN e IN c.v JOIN f IN c.v";
    check(bomb, wide, NULL, (QueryOptions){0}, "!more than 1000000 steps");
    check(bomb, wide, NULL, (QueryOptions){.steps_max = 5000}, "!more than 5000 steps");
    check("SELECT VALUE COUNT(1) FROM c JOIN a IN c.v JOIN b IN c.v", wide, NULL, (QueryOptions){0},
          "[10000]");
    check("SELECT VALUE EXISTS(SELECT 1 FROM a IN c.v JOIN b IN c.v JOIN d IN c.v JOIN e IN c.v "
          "WHERE false) FROM c",
          wide, NULL, (QueryOptions){0}, "!steps");
    check("SELECT VALUE LAST(SELECT VALUE LAST(SELECT VALUE LAST(SELECT VALUE a FROM a IN c.v) "
          "FROM b IN c.v) FROM d IN c.v) FROM c",
          wide, NULL, (QueryOptions){0}, "!steps");
}

static void rows_that_are_only_looked_at_take_no_memory(void **state)
{
    (void)state;
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 64 << 10);
    check("SELECT VALUE COUNT([a, b, CONCAT('some', 'text'), {x: a}]) FROM c JOIN a IN c.v "
          "JOIN b IN c.v",
          wide_document(&arena), NULL, (QueryOptions){.bytes_max = 200000}, "[10000]");
}

static void *give_back_later(void *context)
{
    QueryMemory *memory = context;
    (void)usleep(20000);
    (void)pthread_mutex_lock(&memory->lock);
    memory->left = 1;
    (void)pthread_cond_signal(&memory->freed);
    (void)pthread_mutex_unlock(&memory->lock);
    return NULL;
}

/* Memory that one run holds is not free for another until the run ends; a small run needs none of
 * the shared memory. */
static void runs_share_their_memory(void **state)
{
    (void)state;
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 64 << 10);
    const char *wide = wide_document(&arena);
    const char *large = "SELECT VALUE COUNT(1) FROM (SELECT DISTINCT VALUE [a, b, d] FROM c "
                        "JOIN a IN c.v JOIN b IN c.v JOIN d IN c.v WHERE d < 10)";
    QueryMemory memory;
    query_memory_init(&memory, 1);
    QueryOptions options = {.memory = &memory, .bytes_max = 256 << 20, .steps_max = 1000000000};
    check(large, wide, NULL, options, "[100000]");
    assert_int_equal(memory.left, 1); /* it was given back */
    memory.left = 0;
    check("SELECT VALUE COUNT(1) FROM c JOIN a IN c.v", wide, NULL, options, "[100]");
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, give_back_later, &memory), 0);
    check(large, wide, NULL, options, "[100000]"); /* it waits */
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(memory.left, 1);
    query_memory_done(&memory);
}

/* A query of many repetitions of a large parameter. */
static void large_values_run_out_of_memory_or_steps(void **state)
{
    (void)state;
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 64 << 10);
    enum { LARGE = 64 << 10, TIMES = 500 };
    char *parameters = arena_alloc(&arena, LARGE + 100);
    char *at = stpcpy(parameters, "[{\"name\":\"@p\",\"value\":\"");
    memset(at, 'x', LARGE);
    strcpy(at + LARGE, "\"}]");
    static const struct {
        const char *before, *each, *after;
    } CASES[] = {
        {"SELECT VALUE CONCAT('a'", ", @p", ")"},
        {"SELECT VALUE ['a'", ", @p", "]"},
        {"SELECT VALUE 'a'", " || @p", ""},
        {"SELECT VALUE ARRAY_CONCAT([]", ", [@p]", ")"},
        {"SELECT VALUE true", " AND CONTAINS(@p, 'y', true) = false", ""},
        {"SELECT VALUE true", " AND @p NOT LIKE '%xy'", ""},
        {"SELECT VALUE LENGTH('')", " + LENGTH(REPLACE(@p, 'x', 'yyyyyyyyyyyyyyyy'))", ""},
        {"SELECT VALUE 0", " + LENGTH(TOSTRING([@p]))", ""},
        {"SELECT VALUE true", " AND [@p] = [@p]", ""},
        {"SELECT VALUE 0", " + LASTINDEXOF(@p, 'y')", ""},
        {"SELECT VALUE 0", " + LENGTH(TRIM(@p, 'abcdefghijklmnopqrstuvwx'))", ""},
        {"SELECT VALUE 0", " + ARRAY_LENGTH(STRINGSPLIT(@p, 'x'))", ""},
        {"SELECT VALUE 0", " + LENGTH(@p)", ""},
        {"SELECT VALUE 0", " + LENGTH(LOWER(@p))", ""},
        {"SELECT VALUE 0", " + LENGTH(RIGHT(@p, 1))", ""},
        {"SELECT VALUE 0", " + LENGTH(REVERSE(@p))", ""},
        {"SELECT VALUE 0", " + ARRAY_LENGTH(SETUNION([@p], [@p]))", ""},
    };
    for (size_t i = 0; i < ARRAY_COUNT(CASES); i++) {
        AUTO(buf_done) Buf text;
        buf_init(&text, QUERY_TEXT_BYTES_MAX);
        buf_slice(&text, slice_from_cstr(CASES[i].before));
        for (int n = 0; n < TIMES; n++)
            buf_slice(&text, slice_from_cstr(CASES[i].each));
        buf_slice(&text, slice_from_cstr(CASES[i].after));
        buf_byte(&text, '\0');
        check(text.ptr, "[]", parameters, (QueryOptions){.steps_max = 200000, .bytes_max = 8 << 20},
              "!which is its limit");
    }
}

static void stored_rows_count_against_memory(void **state)
{
    (void)state;
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 64 << 10);
    const char *wide = wide_document(&arena);
    static const char *const QUERIES[] = {
        "SELECT VALUE {a: a, b: b} FROM c JOIN a IN c.v JOIN b IN c.v",
        "SELECT DISTINCT VALUE {a: a, b: b} FROM c JOIN a IN c.v JOIN b IN c.v",
        "SELECT VALUE COUNT(1) FROM c JOIN a IN c.v JOIN b IN c.v GROUP BY {a: a, b: b}",
        "SELECT VALUE 1 FROM c JOIN a IN c.v JOIN b IN c.v ORDER BY c.v",
        "SELECT VALUE MAKELIST(a * b) FROM c JOIN a IN c.v JOIN b IN c.v",
        "SELECT VALUE MAKESET([a, b]) FROM c JOIN a IN c.v JOIN b IN c.v",
        "SELECT VALUE ARRAY_LENGTH(ARRAY(SELECT VALUE [a, b] FROM a IN c.v JOIN b IN c.v)) FROM c",
    };
    for (size_t i = 0; i < ARRAY_COUNT(QUERIES); i++) {
        check(QUERIES[i], wide, NULL, (QueryOptions){.bytes_max = 100000, .steps_max = 100000000},
              "!more than 100000 bytes");
    }
}

static void the_text_has_a_largest_size(void **state)
{
    (void)state;
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 64 << 10);
    char *text = arena_alloc(&arena, QUERY_TEXT_BYTES_MAX + 2);
    memset(text, ' ', QUERY_TEXT_BYTES_MAX + 1);
    memcpy(text, "SELECT 1", 8);
    Query *query;
    Error err = {0};
    Slice largest = slice_make(text, QUERY_TEXT_BYTES_MAX);
    Slice larger = slice_make(text, QUERY_TEXT_BYTES_MAX + 1);
    assert_int_equal(query_parse(&arena, largest, JSON_NONE, &query, &err), STATUS_OK);
    assert_int_equal(query_parse(&arena, larger, JSON_NONE, &query, &err), STATUS_BAD_REQUEST);
    assert_non_null(strstr(err.message, "SC3020"));
    assert_int_equal(query_parse(&arena, SLICE("SELECT '\xFF'"), JSON_NONE, &query, &err),
                     STATUS_BAD_REQUEST);
    assert_non_null(strstr(err.message, "not valid UTF-8"));
}

static void values_deeper_than_json_can_be_are_refused(void **state)
{
    (void)state;
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 64 << 10);
    char *parameters = arena_alloc(&arena, 1024);
    char *at = stpcpy(parameters, "[{\"name\":\"@p\",\"value\":");
    for (int i = 0; i < 120; i++)
        at = stpcpy(at, "[");
    for (int i = 0; i < 120; i++)
        at = stpcpy(at, "]");
    strcpy(at, "}]");
    char query[1024] = "SELECT VALUE ";
    for (int i = 0; i < 150; i++)
        strcat(query, "[");
    strcat(query, "@p");
    for (int i = 0; i < 150; i++)
        strcat(query, "]");
    check(query, "[]", parameters, (QueryOptions){0}, "!more than 255 levels");
}

typedef struct DeepRun {
    const char *open, *middle, *close;
    int times;
    bool refused;
} DeepRun;

static void *run_deep(void *context)
{
    DeepRun *deep = context;
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 64 << 10);
    AUTO(buf_done) Buf text;
    buf_init(&text, 1 << 20);
    buf_slice(&text, SLICE("SELECT VALUE "));
    for (int i = 0; i < deep->times; i++)
        buf_slice(&text, slice_from_cstr(deep->open));
    buf_slice(&text, slice_from_cstr(deep->middle));
    for (int i = 0; i < deep->times; i++)
        buf_slice(&text, slice_from_cstr(deep->close));
    buf_slice(&text, SLICE(" FROM c"));
    Query *query;
    Error err;
    Json doc, *results;
    size_t count;
    deep->refused = true;
    if (json_parse(&arena, SLICE("{\"v\":[1]}"), &doc, &err) != STATUS_OK ||
        query_parse(&arena, buf_view(&text), JSON_NONE, &query, &err) != STATUS_OK ||
        query_run(query, &doc, 1, &arena, &results, &count, &err) != STATUS_OK)
        return NULL;
    deep->refused = false;
    return NULL;
}

/* The frames of sanitizers are several times as large. */
#ifndef __has_feature
#define __has_feature(feature) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || \
    __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
enum { STACK_BYTES = 1 << 20 };
#else
enum { STACK_BYTES = 192 << 10 };
#endif

/* The deepest queries that are accepted need no large stack. */
static void deep_queries_fit_into_a_small_stack(void **state)
{
    (void)state;
    static const DeepRun CASES[] = {
        {"[", "1", "]", 198, false},
        {"{a:", "1", "}", 198, false},
        {"IIF(true, 1, ", "1", ")", 198, false},
        {"- ", "c.v", "", 198, false},
        {"1 + (", "1", ")", 198, false},
        {"true AND (false OR ", "true", ")", 99, false},
        {"1 IN (", "1", ")", 198, false},
        {"'a' LIKE (", "'a'", ")", 198, false},
        {"true ? (", "1", ") : 2", 198, false},
        {"1 ?? (", "1", ")", 198, false},
        {"[1][", "0", "]", 198, false},
        {"(SELECT VALUE ", "1", ")", 39, false},
        {"FIRST(SELECT VALUE ", "x", " FROM x IN c.v)", 39, false},
        {"ARRAY(SELECT VALUE ", "c", " FROM x IN c.v JOIN (SELECT 1))", 10, false},
    };
    for (size_t i = 0; i < ARRAY_COUNT(CASES); i++) {
        DeepRun deep = CASES[i];
        pthread_attr_t attributes;
        pthread_t thread;
        assert_int_equal(pthread_attr_init(&attributes), 0);
        assert_int_equal(pthread_attr_setstacksize(&attributes, STACK_BYTES), 0);
        assert_int_equal(pthread_create(&thread, &attributes, run_deep, &deep), 0);
        assert_int_equal(pthread_join(thread, NULL), 0);
        pthread_attr_destroy(&attributes);
        if (deep.refused != CASES[i].refused)
            fail_msg("%d times '%s'", CASES[i].times, CASES[i].open);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_join_bomb_runs_out_of_steps),
        cmocka_unit_test(rows_that_are_only_looked_at_take_no_memory),
        cmocka_unit_test(runs_share_their_memory),
        cmocka_unit_test(large_values_run_out_of_memory_or_steps),
        cmocka_unit_test(stored_rows_count_against_memory),
        cmocka_unit_test(the_text_has_a_largest_size),
        cmocka_unit_test(values_deeper_than_json_can_be_are_refused),
        cmocka_unit_test(deep_queries_fit_into_a_small_stack),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
