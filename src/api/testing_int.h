/* testing_int.h - for tests of requests: ask, and expect.
 *
 * JSON in rows is written with ' for ", so that it stays readable.
 */
#pragma once

/* Rows leave out what they do not care about. */
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"

#include "api/fake_http_int.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

typedef struct Header {
    const char *name, *value;
} Header;

/* A request as rows write it. 'headers' ends with a NULL name. */
typedef struct Ask {
    const char *method, *path, *body;
    Header headers[4];
    const char *key; /* NULL: the master key; "": none */
} Ask;

static inline Slice quoted(Arena *arena, const char *row)
{
    char *text = arena_cstr(arena, slice_from_cstr(row == NULL ? "" : row));
    for (char *c = text; *c != '\0'; c++)
        *c = *c == '\'' ? '"' : *c;
    return slice_from_cstr(text);
}

static inline FakeAnswer ask(FakeServer *server, const Ask *a)
{
    HttpHeader headers[ARRAY_COUNT(a->headers)];
    size_t count = 0;
    for (size_t i = 0; i < ARRAY_COUNT(a->headers) && a->headers[i].name != NULL; i++)
        headers[count++] = (HttpHeader){slice_from_cstr(a->headers[i].name),
                                        quoted(&server->arena, a->headers[i].value)};
    FakeRequest request = {
        .method = slice_from_cstr(a->method),
        .path = slice_from_cstr(a->path),
        .headers = headers,
        .header_count = count,
        .body = quoted(&server->arena, a->body),
        .key = a->key == NULL ? SLICE(FAKE_KEY) : slice_from_cstr(a->key),
    };
    FakeAnswer answer;
    fake_request(server, &request, &answer);
    return answer;
}

static inline void expect_slice(Slice actual, Slice expected)
{
    if (!slice_equal(actual, expected))
        fail_msg("expected '%.*s', found '%.*s'", SLICE_ARG(expected), SLICE_ARG(actual));
}

static inline bool holds(Slice text, const char *word)
{
    return text.len > 0 && memmem(text.ptr, text.len, word, strlen(word)) != NULL;
}

static inline void expect_holds(Slice text, const char *word)
{
    if (!holds(text, word))
        fail_msg("expected '%s' in '%.*s'", word, SLICE_ARG(text));
}

static inline void expect_header(const FakeAnswer *answer, const char *name, const char *value)
{
    Slice found = fake_header(answer, name);
    if (!slice_equal(found, slice_from_cstr(value)))
        fail_msg("%s: expected '%s', found '%.*s'", name, value, SLICE_ARG(found));
}

static inline FakeAnswer expect_status(FakeServer *server, const Ask *a, int status)
{
    FakeAnswer answer = ask(server, a);
    if (answer.status != status)
        fail_msg("%s %s: expected %d, found %d: %.*s", a->method, a->path, status, answer.status,
                 SLICE_ARG(answer.body));
    return answer;
}

static inline Json body_of(FakeServer *server, const FakeAnswer *answer)
{
    Json body = JSON_NONE;
    Error err;
    assert_int_equal(json_parse(&server->arena, answer->body, &body, &err), STATUS_OK);
    return body;
}

static inline Slice text_of(Json body, const char *name)
{
    Json value = json_get(body, slice_from_cstr(name));
    assert_true(json_is(value, JSON_STRING));
    return json_string(value);
}

#define CONTAINER "{'id':'c','partitionKey':{'paths':['/pk'],'version':2}}"

/* A server with the database 'db' and its container 'c'. */
static inline void open_with_container(FakeServer *server)
{
    fake_server_open(server, NULL);
    (void)expect_status(server, &(Ask){"POST", "/dbs", "{'id':'db'}"}, 201);
    (void)expect_status(server, &(Ask){"POST", "/dbs/db/colls", CONTAINER}, 201);
}
