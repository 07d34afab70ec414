/* token_testing_int.h - for tests with users, permissions and resource tokens. */
#pragma once

#include "api/tests/testing_int.h"

#define USERS       "/dbs/db/users"
#define PERMISSIONS USERS "/u/permissions"

/* A permission of a user of the database 'db'; 'rest' is what follows its mode, like
 * "'resource':'dbs/db/colls/c'". Returns its token. */
static inline const char *make_token(FakeServer *server, const char *user, const char *id,
                                     const char *mode, const char *rest)
{
    Arena *arena = &server->arena;
    Slice path = arena_format(arena, USERS "/%s/permissions", user);
    Slice row = arena_format(arena, "{'id':'%s','permissionMode':'%s',%s}", id, mode, rest);
    FakeAnswer made =
        expect_status(server, &(Ask){"POST", arena_cstr(arena, path), arena_cstr(arena, row)}, 201);
    return arena_cstr(arena, text_of(body_of(server, &made), "_token"));
}

/* Asks with a token, or any other authorization, instead of a key. */
static inline FakeAnswer ask_with(FakeServer *server, Ask a, const char *token)
{
    a.key = "";
    size_t count = 0;
    while (a.headers[count].name != NULL)
        count++;
    assert_true(count < ARRAY_COUNT(a.headers));
    if (token != NULL)
        a.headers[count] = (Header){"authorization", token};
    return ask(server, &a);
}

static inline FakeAnswer expect_with(FakeServer *server, Ask a, const char *token, int status)
{
    FakeAnswer answer = ask_with(server, a, token);
    if (answer.status != status)
        fail_msg("%s %s: expected %d, found %d: %.*s", a.method, a.path, status, answer.status,
                 SLICE_ARG(answer.body));
    return answer;
}

/* A server with the containers 'c' and 'other' of the database 'db', and its user 'u'. */
static inline void open_with_user(FakeServer *server)
{
    open_with_container(server);
    (void)expect_status(server,
                        &(Ask){"POST", "/dbs/db/colls",
                               "{'id':'other','partitionKey':{'paths':['/pk'],'version':2}}"},
                        201);
    (void)expect_status(server, &(Ask){"POST", USERS, "{'id':'u'}"}, 201);
}
