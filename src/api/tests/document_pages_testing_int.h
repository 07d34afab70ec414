/* document_pages_testing_int.h - for tests: a container with items, and its lists page by page. Not
 * part of the library. */
#pragma once

#include "api/tests/testing_int.h"

#define A PK("['a']")
#define IS_QUERY                          \
    {                                     \
        "x-ms-documentdb-isquery", "true" \
    }
#define QUERY                                                \
    IS_QUERY,                                                \
    {                                                        \
        "x-ms-documentdb-query-enablecrosspartition", "true" \
    }

enum { ITEMS = 60, KEYS = 12 };

/* 'c' with three ranges and ITEMS items, five of each key. */
static inline void open_filled(FakeServer *server)
{
    open_with(server, (Ask){.body = CONTAINER, .headers = {{"x-ms-offer-throughput", "18000"}}});
    assert_int_equal(container_now(server)->range_count, 3);
    for (int i = 0; i < ITEMS; i++)
        make_item(server, arena_cstr(&server->arena,
                                     arena_format(&server->arena, "{'id':'i%02d','pk':'k%d'}", i,
                                                  i % KEYS)));
}

/* What the pages of a feed showed. */
typedef struct Seen {
    unsigned times[ITEMS];
    size_t pages, items, largest;
} Seen;

static inline void note_page(FakeServer *server, const FakeAnswer *answer, Seen *seen)
{
    Json body = body_of(server, answer);
    Json list = json_get(body, SLICE("Documents"));
    assert_true(json_is(list, JSON_ARRAY));
    size_t count = json_count(list);
    assert_true(json_number(json_get(body, SLICE("_count"))) == (double)count);
    assert_slice(fake_header(answer, "x-ms-item-count"),
                 arena_format(&server->arena, "%zu", count));
    JsonIter it = json_iter(list);
    while (json_next(&it)) {
        uint64_t number = ITEMS;
        assert_true(slice_to_u64(slice_from(text_of(it.value, "id"), 1), &number));
        assert_true(number < ITEMS);
        seen->times[number]++;
    }
    seen->pages++;
    seen->items += count;
    seen->largest = count > seen->largest ? count : seen->largest;
}

/* Reads a feed from a token to its end; 'a' has at most four headers of its own. */
static inline Seen read_from(FakeServer *server, Ask a, const char *size, const char *from)
{
    Seen seen = {0};
    size_t own = 0;
    while (a.headers[own].name != NULL)
        own++;
    assert_true(own <= 4);
    a.headers[own] = (Header){"x-ms-max-item-count", size};
    if (from != NULL)
        a.headers[own + 1] = (Header){"x-ms-continuation", from};
    for (;;) {
        FakeAnswer answer = expect_status(server, &a, 200);
        note_page(server, &answer, &seen);
        Slice token = fake_header(&answer, "x-ms-continuation");
        if (token.len == 0)
            return seen;
        assert_true(token.len <= 1024);
        assert_true(token.ptr[0] != '[' && token.ptr[0] != '{');
        a.headers[own + 1] = (Header){"x-ms-continuation", arena_cstr(&server->arena, token)};
    }
}

static inline Seen read_all(FakeServer *server, Ask a, const char *size)
{
    return read_from(server, a, size, NULL);
}

static inline void expect_each_once(const Seen *seen)
{
    for (size_t i = 0; i < ITEMS; i++) {
        if (seen->times[i] != 1)
            fail_msg("item %zu was shown %u times", i, seen->times[i]);
    }
}
