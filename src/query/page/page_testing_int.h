/* page_testing_int.h - for tests: pages of a container, asked for one by one. Not part of the
 * library. */
#pragma once

#include "query/eval/functions_testing_int.h"
#include "query/eval/query_run_int.h"
#include "query/eval/query_testing_int.h"
#include "query/page/container_testing_int.h"
#include "query/page/page_int.h"

enum { BATCH = 200, TEXT_BYTES_MAX = 8 << 20 };

typedef struct Asked {
    uint32_t items_max;
    Slice position;
    uint64_t page_us; /* 0 for no limit */
    uint64_t steps_max;
    size_t memory_max;
    size_t text_max;
    const PartitionKey *key;
    bool is_real_time;
    Random *plan_random;
    Workers *workers;
    size_t slice_items;
    bool is_brief;
    uint64_t keys_max;  /* keys of the index; 0 for the usual limit */
    bool tells_nothing; /* asks for neither an explanation nor the indexes used */
    const Clock *meter_clock;
    FakeFunctions *functions; /* NULL if there are none */
} Asked;

typedef struct Answered {
    Arena arena;
    Buf text;
    QueryPage page;
    Status status;
    Error err;
} Answered;

static inline void answered_done(Answered *answered)
{
    buf_done(&answered->text);
    arena_done(&answered->arena);
}
DEFINE_AUTO_VALUE(Answered, answered_done)

/* One page; its text is an array. */
static inline void ask_over(TestContainer *t, const TestTargets *targets, const char *text,
                            Asked asked, Answered *out)
{
    *out = (Answered){.status = STATUS_OK};
    arena_init(&out->arena, 64 << 10);
    buf_init(&out->text, asked.text_max == 0 ? TEXT_BYTES_MAX : asked.text_max);
    const Clock *clock = asked.is_real_time ? clock_real() : &t->clock.clock;
    QueryPageOptions options = {
        .targets = targets->list,
        .target_count = targets->count,
        .schema = t->schema,
        .key = asked.key,
        .position = asked.position,
        .items_max = asked.items_max == 0 ? UINT32_MAX : asked.items_max,
        .bytes_max = TEXT_BYTES_MAX,
        .deadline_us = asked.page_us == 0 ? 0 : clock_monotonic_us(clock) + asked.page_us,
        .steps_max = asked.steps_max == 0 ? UINT64_MAX : asked.steps_max,
        .memory_max = asked.memory_max == 0 ? (size_t)256 << 20 : asked.memory_max,
        .clock = clock,
        .plan_random = asked.plan_random,
        .index_keys_max = asked.keys_max,
        .is_brief = asked.is_brief,
        .wants_explain = asked.workers == NULL && !asked.tells_nothing,
        .wants_indexes = !asked.tells_nothing,
        .workers = asked.workers,
        .slice_items = asked.slice_items,
        .meter_clock = asked.meter_clock,
        .functions = asked.functions == NULL ? NULL : &FAKE_FUNCTIONS,
        .functions_context = asked.functions,
    };
    Query *query = NULL;
    if (query_parse(&out->arena, slice_from_cstr(text), JSON_NONE, &query, &out->err) != STATUS_OK)
        fail_msg("%.200s: %s", text, out->err.message);
    buf_byte(&out->text, '[');
    out->status = query_page(query, &options, &out->arena, &out->text, &out->page, &out->err);
    buf_byte(&out->text, ']');
}

static inline void ask(TestContainer *t, const char *text, Asked asked, Answered *out)
{
    TestTargets targets;
    test_targets_all(t, &targets);
    ask_over(t, &targets, text, asked, out);
    test_targets_close(&targets);
}

/* One page of a logical partition. */
static inline void ask_key(TestContainer *t, const char *text, const PartitionKey *key, Asked asked,
                           Answered *out)
{
    Epk epk;
    epk_make(t->schema->key.kind, key, &epk);
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 1024);
    Slice to = arena_format(&arena, "%.*s\xFF", SLICE_ARG(epk_slice(&epk)));
    TestTargets targets;
    test_targets_open(t, epk_slice(&epk), to, NULL, 0, &targets);
    asked.key = key;
    ask_over(t, &targets, text, asked, out);
    test_targets_close(&targets);
}

static inline void expect(TestContainer *t, const char *text, const char *expected)
{
    AUTO(answered_done) Answered answered;
    ask(t, text, (Asked){0}, &answered);
    if (answered.status != STATUS_OK)
        fail_msg("%.200s: %s", text, answered.err.message);
    if (!slice_equal(buf_view(&answered.text), slice_from_cstr(expected)))
        fail_msg("%.200s\n  expected %.500s\n  got      %.*s", text, expected,
                 SLICE_CUT(buf_view(&answered.text), 500));
}

static inline void expect_error(TestContainer *t, const char *text, Asked asked,
                                const char *expected)
{
    AUTO(answered_done) Answered answered;
    ask(t, text, asked, &answered);
    if (answered.status == STATUS_OK || strstr(answered.err.message, expected) == NULL)
        fail_msg("%.200s\n  expected an error with %s\n  got %s", text, expected,
                 answered.status == STATUS_OK ? "results" : answered.err.message);
}

/* All pages, one after the other, of a logical partition if there is a key; returns how many. */
static inline size_t expect_pages_of(TestContainer *t, const char *text, const PartitionKey *key,
                                     Asked asked, const char *expected)
{
    AUTO(buf_done) Buf all;
    buf_init(&all, TEXT_BYTES_MAX);
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 4096);
    size_t pages = 0;
    for (bool is_done = false; !is_done; pages++) {
        AUTO(answered_done) Answered answered;
        if (key != NULL)
            ask_key(t, text, key, asked, &answered);
        else
            ask(t, text, asked, &answered);
        if (answered.status != STATUS_OK)
            fail_msg("%.200s: %s", text, answered.err.message);
        Slice results = buf_view(&answered.text);
        if (answered.page.count > 0 && all.len > 0)
            buf_byte(&all, ',');
        buf_slice(&all, slice_make(results.ptr + 1, results.len - 2));
        is_done = answered.page.is_done;
        asked.position = arena_copy(&arena, answered.page.position);
    }
    if (!slice_equal(buf_view(&all), slice_from_cstr(expected)))
        fail_msg("%.200s\n  expected %.500s\n  got      %.*s", text, expected,
                 SLICE_CUT(buf_view(&all), 500));
    return pages;
}

static inline size_t expect_pages(TestContainer *t, const char *text, Asked asked,
                                  const char *expected)
{
    return expect_pages_of(t, text, NULL, asked, expected);
}

/* Documents of one partition key, 'print' of each number. */
static inline void insert_many(TestContainer *t, size_t from, size_t to,
                               void (*print)(size_t number, Buf *out))
{
    for (size_t at = from; at < to;) {
        AUTO(arena_done) Arena arena;
        arena_init(&arena, 64 << 10);
        ItemWrite writes[BATCH];
        size_t count = 0;
        for (; count < BATCH && at < to; count++, at++) {
            AUTO(buf_done) Buf text;
            buf_init(&text, 64 << 10);
            print(at, &text);
            test_fill_write(t, &arena, ITEM_UPSERT,
                            parse_json(&arena, arena_cstr(&arena, buf_view(&text))),
                            &writes[count]);
        }
        assert_true(test_submit(t, &arena, writes, count));
    }
}

/* A policy with a composite index of /a and descending /b, and shapes at /g. */
static const char COMPOSITE[] =
    "{\"includedPaths\":[{\"path\":\"/*\"}],\"excludedPaths\":[],\"compositeIndexes\":[[{\"path\":"
    "\"/a\",\"order\":\"ascending\"},{\"path\":\"/b\",\"order\":\"descending\"}]],"
    "\"spatialIndexes\":[{\"path\":\"/g/?\",\"types\":[\"Point\",\"LineString\",\"Polygon\","
    "\"MultiPolygon\"]}]}";

/* Documents of one key with different numbers. */
static inline void print_number(size_t number, Buf *out)
{
    buf_format(out, "{\"id\":\"%zu\",\"pk\":\"p\",\"n\":%zu,\"m\":%zu}", number, number,
               number % 10);
}

/* Documents each of a key of its own. */
static inline void print_spread(size_t number, Buf *out)
{
    buf_format(out, "{\"id\":\"%zu\",\"pk\":\"p%zu\",\"n\":%zu,\"a\":%zu,\"b\":%zu}", number,
               number, (number * 31) % 1000, number % 7, number % 11);
}

static inline void insert_spread(TestContainer *t, size_t count)
{
    for (size_t i = 0; i < count; i++)
        insert_many(t, i, i + 1, print_spread);
}

static inline int set_up(void **state)
{
    *state = MEM_NEW(TestContainer);
    return 0;
}

static inline int tear_down(void **state)
{
    test_container_close(*state);
    mem_free(*state);
    return 0;
}

#define PAGE_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
