/* authorisation_matrix_test.c - every route with every kind of credential.
 *
 * The table below repeats by hand what access.def says, request by request; a route without a row
 * fails the test.
 */
#include "api/dispatch_int.h"
#include "api/tests/token_testing_int.h"

/* Who may, a letter for each: the read-only key, then tokens for the container, for the container
 * and a key, for an item and for a stored procedure, each Read and All. 'y' or 'n'; 'k' means yes,
 * also without the key or with another one. */
typedef struct Row {
    ResourceType type;
    Operation operation;
    const char *method, *path;
    const char *may;
    Header header;
    const char *body;
} Row;

#define DB      "/dbs/db"
#define C       DB "/colls/c"
#define SCRIPT  "{'id':'x','body':'function () {}'}"
#define TRIGGER "{'id':'x','body':'','triggerType':'Pre','triggerOperation':'All'}"
#define QUERY   "{'query':'SELECT * FROM c'}"
#define IS_QUERY                          \
    {                                     \
        "x-ms-documentdb-isquery", "True" \
    }

/* clang-format off */
static const Row ROWS[] = {
    {RESOURCE_ACCOUNT, OPERATION_READ, "GET", "/", "ykkkkkkkk"},
    {RESOURCE_ACCOUNT, OPERATION_READ, "HEAD", "/", "ykkkkkkkk"},
    {RESOURCE_DATABASE, OPERATION_LIST, "GET", "/dbs", "ynnnnnnnn"},
    {RESOURCE_DATABASE, OPERATION_QUERY, "POST", "/dbs", "ynnnnnnnn", IS_QUERY, QUERY},
    {RESOURCE_DATABASE, OPERATION_CREATE, "POST", "/dbs", "nnnnnnnnn", {0}, "{'id':'d2'}"},
    {RESOURCE_DATABASE, OPERATION_READ, "GET", DB, "ynnnnnnnn"},
    {RESOURCE_DATABASE, OPERATION_DELETE, "DELETE", DB, "nnnnnnnnn"},
    {RESOURCE_CONTAINER, OPERATION_LIST, "GET", DB "/colls", "ynnnnnnnn"},
    {RESOURCE_CONTAINER, OPERATION_QUERY, "POST", DB "/colls", "ynnnnnnnn", IS_QUERY, QUERY},
    {RESOURCE_CONTAINER, OPERATION_CREATE, "POST", DB "/colls", "nnnnnnnnn", {0}, CONTAINER},
    {RESOURCE_CONTAINER, OPERATION_READ, "GET", C, "ykkkkkkkk"},
    {RESOURCE_CONTAINER, OPERATION_READ, "HEAD", C "/", "ykkkkkkkk"},
    {RESOURCE_CONTAINER, OPERATION_READ, "GET", C, "ykknnnnnn",
     {"x-ms-documentdb-populatepartitionstatistics", "True"}},
    {RESOURCE_CONTAINER, OPERATION_REPLACE, "PUT", C, "nnnnnnnnn", {0}, CONTAINER},
    {RESOURCE_CONTAINER, OPERATION_DELETE, "DELETE", C, "nnnnnnnnn"},
    {RESOURCE_DOCUMENT, OPERATION_LIST, "GET", C "/docs", "ykkyynnnn"},
    {RESOURCE_DOCUMENT, OPERATION_LIST, "GET", C "/docs", "ykkyynnnn", {"a-im", "Incremental Feed"}},
    {RESOURCE_DOCUMENT, OPERATION_QUERY, "POST", C "/docs", "ykkyynnnn", IS_QUERY, QUERY},
    {RESOURCE_DOCUMENT, OPERATION_QUERY, "POST", C "/docs", "ykkkkkknn",
     {"x-ms-cosmos-is-query-plan-request", "True"}, QUERY},
    {RESOURCE_DOCUMENT, OPERATION_CREATE, "POST", C "/docs", "nnknynnnn", {0}, "{'id':'i','pk':'x'}"},
    {RESOURCE_DOCUMENT, OPERATION_CREATE, "POST", C "/docs", "nnknynnnn",
     {"x-ms-documentdb-is-upsert", "True"}, "{'id':'i','pk':'x'}"},
    {RESOURCE_DOCUMENT, OPERATION_CREATE, "POST", C "/docs", "nnknynnnn",
     {"x-ms-cosmos-is-batch-request", "True"}, "[{'operationType':'Read','id':'i'}]"},
    {RESOURCE_DOCUMENT, OPERATION_READ, "GET", C "/docs/i", "ykkyyyynn"},
    {RESOURCE_DOCUMENT, OPERATION_READ, "HEAD", C "/docs/i", "ykkyyyynn"},
    {RESOURCE_DOCUMENT, OPERATION_READ, "GET", C "/docs/j", "ykkyynnnn"},
    {RESOURCE_DOCUMENT, OPERATION_REPLACE, "PUT", C "/docs/i", "nnknynynn", {0}, "{'id':'i','pk':'x'}"},
    {RESOURCE_DOCUMENT, OPERATION_PATCH, "PATCH", C "/docs/i", "nnknynynn", {0},
     "{'operations':[{'op':'set','path':'/n','value':1}]}"},
    {RESOURCE_DOCUMENT, OPERATION_DELETE, "DELETE", C "/docs/i", "nnknynynn"},
    {RESOURCE_DOCUMENT, OPERATION_DELETE, "DELETE", C "/docs/j", "nnknynnnn"},
    {RESOURCE_PARTITION_KEY_RANGE, OPERATION_LIST, "GET", C "/pkranges", "ykkkkkkkk"},
    {RESOURCE_PARTITION_KEY_RANGE, OPERATION_READ, "GET", C "/pkranges/0", "ykkkkkkkk"},
    {RESOURCE_OFFER, OPERATION_LIST, "GET", "/offers", "ynnnnnnnn"},
    {RESOURCE_OFFER, OPERATION_QUERY, "POST", "/offers", "ynnnnnnnn", IS_QUERY, QUERY},
    {RESOURCE_OFFER, OPERATION_READ, "GET", "/offers/AAAA", "ynnnnnnnn"},
    {RESOURCE_OFFER, OPERATION_REPLACE, "PUT", "/offers/AAAA", "nnnnnnnnn", {0}, "{}"},
    {RESOURCE_STORED_PROCEDURE, OPERATION_LIST, "GET", C "/sprocs", "ykknnnnnn"},
    {RESOURCE_STORED_PROCEDURE, OPERATION_QUERY, "POST", C "/sprocs", "ykknnnnnn", IS_QUERY, QUERY},
    {RESOURCE_STORED_PROCEDURE, OPERATION_CREATE, "POST", C "/sprocs", "nnknnnnnn", {0}, SCRIPT},
    {RESOURCE_STORED_PROCEDURE, OPERATION_READ, "GET", C "/sprocs/s", "ykknnnnkk"},
    {RESOURCE_STORED_PROCEDURE, OPERATION_READ, "GET", C "/sprocs/x", "ykknnnnnn"},
    {RESOURCE_STORED_PROCEDURE, OPERATION_REPLACE, "PUT", C "/sprocs/s", "nnknnnnnk", {0},
     "{'id':'s','body':''}"},
    {RESOURCE_STORED_PROCEDURE, OPERATION_DELETE, "DELETE", C "/sprocs/none", "nnknnnnnn"},
    {RESOURCE_STORED_PROCEDURE, OPERATION_EXECUTE, "POST", C "/sprocs/s", "nnknynnnn", {0}, "[]"},
    {RESOURCE_TRIGGER, OPERATION_LIST, "GET", C "/triggers", "ykknnnnnn"},
    {RESOURCE_TRIGGER, OPERATION_QUERY, "POST", C "/triggers", "ykknnnnnn", IS_QUERY, QUERY},
    {RESOURCE_TRIGGER, OPERATION_CREATE, "POST", C "/triggers", "nnknnnnnn", {0}, TRIGGER},
    {RESOURCE_TRIGGER, OPERATION_READ, "GET", C "/triggers/s", "ykknnnnnn"},
    {RESOURCE_TRIGGER, OPERATION_REPLACE, "PUT", C "/triggers/s", "nnknnnnnn", {0}, TRIGGER},
    {RESOURCE_TRIGGER, OPERATION_DELETE, "DELETE", C "/triggers/s", "nnknnnnnn"},
    {RESOURCE_USER_DEFINED_FUNCTION, OPERATION_LIST, "GET", C "/udfs", "ykknnnnnn"},
    {RESOURCE_USER_DEFINED_FUNCTION, OPERATION_QUERY, "POST", C "/udfs", "ykknnnnnn", IS_QUERY, QUERY},
    {RESOURCE_USER_DEFINED_FUNCTION, OPERATION_CREATE, "POST", C "/udfs", "nnknnnnnn", {0}, SCRIPT},
    {RESOURCE_USER_DEFINED_FUNCTION, OPERATION_READ, "GET", C "/udfs/s", "ykknnnnnn"},
    {RESOURCE_USER_DEFINED_FUNCTION, OPERATION_REPLACE, "PUT", C "/udfs/s", "nnknnnnnn", {0}, SCRIPT},
    {RESOURCE_USER_DEFINED_FUNCTION, OPERATION_DELETE, "DELETE", C "/udfs/s", "nnknnnnnn"},
    {RESOURCE_CONFLICT, OPERATION_LIST, "GET", C "/conflicts", "ykkyynnnn"},
    {RESOURCE_CONFLICT, OPERATION_QUERY, "POST", C "/conflicts", "ykkyynnnn", IS_QUERY, QUERY},
    {RESOURCE_CONFLICT, OPERATION_READ, "GET", C "/conflicts/x", "ykkyynnnn"},
    {RESOURCE_CONFLICT, OPERATION_DELETE, "DELETE", C "/conflicts/x", "nnknynnnn"},
    {RESOURCE_USER, OPERATION_LIST, "GET", USERS, "ynnnnnnnn"},
    {RESOURCE_USER, OPERATION_QUERY, "POST", USERS, "ynnnnnnnn", IS_QUERY, QUERY},
    {RESOURCE_USER, OPERATION_CREATE, "POST", USERS, "nnnnnnnnn", {0}, "{'id':'v'}"},
    {RESOURCE_USER, OPERATION_READ, "GET", USERS "/u", "ynnnnnnnn"},
    {RESOURCE_USER, OPERATION_REPLACE, "PUT", USERS "/u", "nnnnnnnnn", {0}, "{'id':'v'}"},
    {RESOURCE_USER, OPERATION_DELETE, "DELETE", USERS "/u", "nnnnnnnnn"},
    {RESOURCE_PERMISSION, OPERATION_LIST, "GET", PERMISSIONS, "nnnnnnnnn"},
    {RESOURCE_PERMISSION, OPERATION_QUERY, "POST", PERMISSIONS, "nnnnnnnnn", IS_QUERY, QUERY},
    {RESOURCE_PERMISSION, OPERATION_CREATE, "POST", PERMISSIONS, "nnnnnnnnn", {0},
     "{'id':'more','permissionMode':'All','resource':'dbs/db/colls/other'}"},
    {RESOURCE_PERMISSION, OPERATION_READ, "GET", PERMISSIONS "/cA", "nnnnnnnnn"},
    {RESOURCE_PERMISSION, OPERATION_REPLACE, "PUT", PERMISSIONS "/cR", "nnnnnnnnn", {0},
     "{'id':'cR','permissionMode':'All','resource':'dbs/db/colls/c'}"},
    {RESOURCE_PERMISSION, OPERATION_DELETE, "DELETE", PERMISSIONS "/cA", "nnnnnnnnn"},
    {RESOURCE_CLIENT_ENCRYPTION_KEY, OPERATION_LIST, "GET", DB "/clientencryptionkeys", "ynnnnnnnn"},
    {RESOURCE_CLIENT_ENCRYPTION_KEY, OPERATION_QUERY, "POST", DB "/clientencryptionkeys", "ynnnnnnnn",
     IS_QUERY, QUERY},
    {RESOURCE_CLIENT_ENCRYPTION_KEY, OPERATION_CREATE, "POST", DB "/clientencryptionkeys", "nnnnnnnnn",
     {0}, "{}"},
    {RESOURCE_CLIENT_ENCRYPTION_KEY, OPERATION_READ, "GET", DB "/clientencryptionkeys/k", "ynnnnnnnn"},
    {RESOURCE_CLIENT_ENCRYPTION_KEY, OPERATION_REPLACE, "PUT", DB "/clientencryptionkeys/k",
     "nnnnnnnnn", {0}, "{}"},
    /* What is no route of its own; the type does not matter here. */
    {RESOURCE_COUNT, OPERATION_EXECUTE, "POST", C "/operations/partitionkeydelete", "nnknynnnn"},
    {RESOURCE_COUNT, OPERATION_EXECUTE, "POST", C "/operations/PartitionKeyDelete/", "nnknynnnn"},
    {RESOURCE_COUNT, OPERATION_EXECUTE, "POST", C "/operations/partitionmerge", "nnnnnnnnn"},
    {RESOURCE_COUNT, OPERATION_EXECUTE, "POST", C "/operations/unknown", "nnnnnnnnn"},
    {RESOURCE_COUNT, OPERATION_READ, "GET", C "/operations/partitionkeydelete", "nnnnnnnnn"},
    {RESOURCE_COUNT, OPERATION_READ, "GET", C "/schemas", "ynnnnnnnn"},
    {RESOURCE_COUNT, OPERATION_READ, "GET", C "/docs/i/attachments", "ynnnnnnnn"},
    {RESOURCE_COUNT, OPERATION_CREATE, "POST", C "/docs/i/attachments", "nnnnnnnnn", {0}, "{}"},
    {RESOURCE_COUNT, OPERATION_EXECUTE, "POST", C, "nnnnnnnnn", {0}, "{}"},
    {RESOURCE_COUNT, OPERATION_EXECUTE, "POST", C "/docs/i", "nnnnnnnnn", {0}, "{}"},
    {RESOURCE_COUNT, OPERATION_READ, "GET", "/_orrery/containers", "ynnnnnnnn"},
    {RESOURCE_COUNT, OPERATION_READ, "GET", "/_orrery/events", "ynnnnnnnn"},
    {RESOURCE_COUNT, OPERATION_READ, "GET", "/_orrery/metrics", "ynnnnnnnn"},
    {RESOURCE_COUNT, OPERATION_READ, "GET", "/_orrery" C "/layout", "ynnnnnnnn"},
    {RESOURCE_COUNT, OPERATION_READ, "GET", "/_orrery" C "/top", "ynnnnnnnn"},
    {RESOURCE_COUNT, OPERATION_READ, "GET", "/_orrery" C "/history", "ynnnnnnnn"},
    {RESOURCE_COUNT, OPERATION_READ, "GET", "/_orrery" C "/queries", "ynnnnnnnn"},
    {RESOURCE_COUNT, OPERATION_READ, "GET", "/_orrery" C "/paths", "ykknnnnnn"},
    {RESOURCE_COUNT, OPERATION_READ, "GET", "/_orrery" C "/advice", "ynnnnnnnn"},
    {RESOURCE_COUNT, OPERATION_EXECUTE, "POST", "/_orrery/swap", "nnnnnnnnn"},
    {RESOURCE_COUNT, OPERATION_READ, "GET", "/_orrery/snapshots", "ynnnnnnnn"},
    {RESOURCE_COUNT, OPERATION_READ, "GET", "/_orrery/cluster", "ynnnnnnnn"},
    {RESOURCE_COUNT, OPERATION_EXECUTE, "POST", "/_orrery/cluster/drain?node=b", "nnnnnnnnn"},
    {RESOURCE_COUNT, OPERATION_EXECUTE, "DELETE", "/_orrery/cluster/drain?node=b", "nnnnnnnnn"},
    {RESOURCE_COUNT, OPERATION_EXECUTE, "DELETE", "/_orrery/cluster/nodes?node=b", "nnnnnnnnn"},
    {RESOURCE_COUNT, OPERATION_EXECUTE, "POST", "/_orrery/cluster/upgrade", "nnnnnnnnn"},
    {RESOURCE_COUNT, OPERATION_EXECUTE, "POST", "/_orrery/cluster/recover?space=9", "nnnnnnnnn"},
    {RESOURCE_COUNT, OPERATION_EXECUTE, "POST", "/_orrery/cluster/move?space=9&node=b", "nnnnnnnnn"},
    {RESOURCE_COUNT, OPERATION_EXECUTE, "PUT", "/_orrery" DB "/snapshots/s", "nnnnnnnnn"},
    {RESOURCE_COUNT, OPERATION_EXECUTE, "POST", "/_orrery" DB "/snapshots/s/restore", "nnnnnnnnn"},
    {RESOURCE_COUNT, OPERATION_EXECUTE, "DELETE", "/_orrery" DB "/snapshots/s", "nnnnnnnnn"},
    {RESOURCE_COUNT, OPERATION_EXECUTE, "POST", "/_orrery/chaos" C "/split", "nnnnnnnnn"},
    {RESOURCE_COUNT, OPERATION_READ, "GET", "/_orrery/chaos", "nnnnnnnnn"},
};
/* clang-format on */

enum { TOKENS = 8 };

typedef struct Fixture {
    FakeServer server;
    const char *tokens[TOKENS]; /* in the order of the letters */
    const char *elsewhere;      /* for another container */
    const char *gone;           /* of a permission that was deleted */
    const char *replaced;       /* of a permission that was for another resource then */
    const char *lowered;        /* of a permission that was for changes then */
    const char *brief;          /* with the shortest life */
} Fixture;

static void fixture_close(Fixture *f)
{
    fake_server_close(&f->server);
}
DEFINE_AUTO_VALUE(Fixture, fixture_close)

static void fixture_open(Fixture *f)
{
    static const char *const rests[] = {
        "'resource':'dbs/db/colls/c'",
        "'resource':'dbs/db/colls/c','resourcePartitionKey':['x']",
        "'resource':'dbs/db/colls/c/docs/i','resourcePartitionKey':['x']",
        "'resource':'dbs/db/colls/c/sprocs/s'",
    };
    FakeServer *server = &f->server;
    open_with_user(server);
    make_item(server, "{'id':'i','pk':'x'}");
    make_item(server, "{'id':'i','pk':'y'}");
    (void)expect_status(server, &(Ask){"POST", C "/sprocs", "{'id':'s','body':''}"}, 201);
    (void)expect_status(server, &(Ask){"POST", USERS, "{'id':'all'}"}, 201);
    for (size_t i = 0; i < ARRAY_COUNT(rests); i++) {
        const char *id = arena_cstr(&server->arena, arena_format(&server->arena, "p%zu", i));
        f->tokens[2 * i] = make_token(server, "u", id, "Read", rests[i]);
        f->tokens[2 * i + 1] = make_token(server, "all", id, "All", rests[i]);
    }
    f->elsewhere = make_token(server, "u", "elsewhere", "All", "'resource':'dbs/db/colls/other'");
    (void)expect_status(server, &(Ask){"POST", USERS, "{'id':'late'}"}, 201);
    f->gone = make_token(server, "late", "gone", "All", "'resource':'dbs/db/colls/c'");
    (void)expect_status(server, &(Ask){"DELETE", USERS "/late/permissions/gone"}, 204);
    f->replaced = make_token(server, "late", "p", "All", "'resource':'dbs/db/colls/d'");
    Ask put = {"PUT", USERS "/late/permissions/p",
               "{'id':'p','permissionMode':'All','resource':'dbs/db/colls/c'}"};
    (void)expect_status(server, &put, 200);
    f->lowered = make_token(server, "late", "q", "All",
                            "'resource':'dbs/db/colls/c/'"
                            ",'resourcePartitionKey':['x']");
    put.path = USERS "/late/permissions/q";
    put.body = "{'id':'q','permissionMode':'Read','resource':'dbs/db/colls/c'"
               ",'resourcePartitionKey':['x']}";
    (void)expect_status(server, &put, 200);
    Ask brief = {"POST", USERS "/late/permissions",
                 "{'id':'b','permissionMode':'All','resource':'dbs/db/colls/c/docs/i'}"};
    brief.headers[0] = (Header){"x-ms-documentdb-expiry-seconds", "10"};
    FakeAnswer made = expect_status(server, &brief, 201);
    f->brief = arena_cstr(&server->arena, text_of(body_of(server, &made), "_token"));
}

static Ask ask_of(const Row *row, const char *key)
{
    Ask a = {row->method, row->path, row->body};
    size_t count = 0;
    if (row->header.name != NULL)
        a.headers[count++] = row->header;
    if (key != NULL)
        a.headers[count++] = (Header){"x-ms-documentdb-partitionkey", key};
    return a;
}

static void expect_refusal(Fixture *f, const Row *row, const char *key, const char *token,
                           int status, int sub, const char *says)
{
    FakeAnswer answer = expect_with(&f->server, ask_of(row, key), token, status);
    assert_int_equal(sub_status_of(&answer), sub);
    if (strcmp(row->method, "HEAD") != 0)
        expect_holds(answer.body, says);
}

static void expect_let_in(Fixture *f, const Row *row, const char *key, const char *token)
{
    FakeAnswer answer = ask_with(&f->server, ask_of(row, key), token);
    if (answer.status == 401 || answer.status == 403)
        fail_msg("%s %s: %d %.*s", row->method, row->path, answer.status, SLICE_ARG(answer.body));
}

#define MISSING      "Required Header authorization is missing"
#define FORM         "Authorization header doesn't confirm to the required format"
#define CANNOT_SERVE "The input authorization token can't serve the request"
#define INSUFFICIENT "Insufficient permissions provided in the authorization header"
#define NOT_NOW      "The authorization token is not valid at the current time"

static void every_route_has_a_row(void **state)
{
    (void)state;
    for (int type = 0; type < RESOURCE_COUNT; type++) {
        for (int operation = 0; operation < OPERATION_COUNT; operation++) {
            if (!route_exists((ResourceType)type, (Operation)operation))
                continue;
            size_t i = 0;
            while (i < ARRAY_COUNT(ROWS) &&
                   ((int)ROWS[i].type != type || (int)ROWS[i].operation != operation))
                i++;
            if (i == ARRAY_COUNT(ROWS))
                fail_msg("operation %d on '%.*s' has no row", operation,
                         SLICE_ARG(address_segment((ResourceType)type)));
        }
    }
    for (size_t i = 0; route_operation_name(i).len > 0; i++) {
        Slice name = route_operation_name(i);
        size_t j = 0;
        while (j < ARRAY_COUNT(ROWS) && !slice_ends_with(slice_from_cstr(ROWS[j].path), name))
            j++;
        if (j == ARRAY_COUNT(ROWS))
            fail_msg("the operation '%.*s' has no row", SLICE_ARG(name));
    }
}

static void what_is_no_credential_opens_nothing(void **state)
{
    (void)state;
    AUTO(fixture_close) Fixture f;
    fixture_open(&f);
    Slice forged = arena_copy(&f.server.arena, slice_from_cstr(f.tokens[1]));
    char *at = arena_cstr(&f.server.arena, forged);
    at[strlen("type=resource&ver=1&sig=")] ^= 1;
    for (size_t i = 0; i < ARRAY_COUNT(ROWS); i++) {
        const Row *row = &ROWS[i];
        print_message("%s %s\n", row->method, row->path);
        expect_refusal(&f, row, "['x']", NULL, 401, 5000, MISSING);
        expect_refusal(&f, row, "['x']", "", 401, 5000, MISSING);
        expect_refusal(&f, row, "['x']", "null", 401, 5001, FORM);
        expect_refusal(&f, row, "['x']", "invalid", 401, 5001, FORM);
        expect_refusal(&f, row, "['x']", "type=resource&ver=1&sig=x;y;", 401, 0, CANNOT_SERVE);
        expect_refusal(&f, row, "['x']", at, 401, 0, CANNOT_SERVE);
        expect_refusal(&f, row, "['x']", "type=aad&ver=1.0&sig=a.b.c", 401, 5003, "");
        Ask other = ask_of(row, "['x']");
        other.key = "b3RoZXIta2V5";
        FakeAnswer answer = expect_status(&f.server, &other, 401);
        assert_int_equal(sub_status_of(&answer), 0);
        (void)answer;
    }
}

static void tokens_open_what_the_table_says(void **state)
{
    (void)state;
    AUTO(fixture_close) Fixture f;
    fixture_open(&f);
    for (size_t i = 0; i < ARRAY_COUNT(ROWS); i++) {
        const Row *row = &ROWS[i];
        print_message("%s %s %s\n", row->method, row->path,
                      row->header.name == NULL ? "" : row->header.name);
        assert_int_equal(strlen(row->may), 1 + TOKENS);
        Ask read_only = ask_of(row, "['x']");
        read_only.key = FAKE_READ_KEY;
        FakeAnswer answer = ask(&f.server, &read_only);
        assert_int_equal(answer.status == 401, row->may[0] == 'n');
        for (size_t j = 0; j < TOKENS; j++) {
            const char *token = f.tokens[j];
            static const char *const other_keys[] = {NULL, "['y']", "[]", "['x','x']", "['X']"};
            print_message("  token %zu\n", j);
            if (row->may[1 + j] == 'n')
                expect_refusal(&f, row, "['x']", token, 403, 0, INSUFFICIENT);
            else
                expect_let_in(&f, row, "['x']", token);
            for (size_t k = 0; k < ARRAY_COUNT(other_keys); k++) {
                if (row->may[1 + j] == 'k')
                    expect_let_in(&f, row, other_keys[k], token);
                else
                    expect_refusal(&f, row, other_keys[k], token, 403, 0, INSUFFICIENT);
            }
        }
    }
}

static void tokens_of_something_else_open_nothing(void **state)
{
    (void)state;
    AUTO(fixture_close) Fixture f;
    fixture_open(&f);
    for (size_t i = 0; i < ARRAY_COUNT(ROWS); i++) {
        const Row *row = &ROWS[i];
        print_message("%s %s\n", row->method, row->path);
        if (row->type != RESOURCE_ACCOUNT)
            expect_refusal(&f, row, "['x']", f.elsewhere, 403, 0, INSUFFICIENT);
        expect_refusal(&f, row, "['x']", f.gone, 403, 0, INSUFFICIENT);
        expect_refusal(&f, row, "['x']", f.replaced, 403, 0, INSUFFICIENT);
        expect_refusal(&f, row, "['x']", f.lowered, 403, 0, INSUFFICIENT);
    }
}

static void times_are_checked_before_rights(void **state)
{
    (void)state;
    AUTO(fixture_close) Fixture f;
    fixture_open(&f);
    uint64_t now_us = clock_wall_us(&f.server.clock.clock);
    static const struct {
        int64_t seconds; /* from when the token was issued */
        bool is_good;
    } times[] = {{0, true}, {9, true}, {10, false}, {100000, false}, {-900, true}, {-901, false}};
    for (size_t i = 0; i < ARRAY_COUNT(ROWS); i++) {
        const Row *row = &ROWS[i];
        for (size_t j = 0; j < ARRAY_COUNT(times); j++) {
            fake_clock_set_wall(&f.server.clock,
                                (uint64_t)((int64_t)now_us + times[j].seconds * 1000000));
            print_message("%s %s at %lld\n", row->method, row->path, (long long)times[j].seconds);
            if (!times[j].is_good)
                expect_refusal(&f, row, "['x']", f.brief, 403, 0, NOT_NOW);
            else if (row->type == RESOURCE_ACCOUNT)
                expect_let_in(&f, row, "['x']", f.brief);
        }
        fake_clock_set_wall(&f.server.clock, now_us);
        static const char *const dates[] = {"Tue, 01 Oct 2024 12:00:00 GMT",
                                            "Tue, 01 Oct 2019 12:00:00 GMT"};
        for (size_t j = 0; j < ARRAY_COUNT(dates); j++) {
            FakeRequest skewed = {.method = slice_from_cstr(row->method),
                                  .path = slice_from_cstr(row->path),
                                  .key = SLICE(FAKE_KEY),
                                  .date = slice_from_cstr(dates[j])};
            FakeAnswer answer;
            fake_request(&f.server, &skewed, &answer);
            assert_int_equal(answer.status, 403);
            if (strcmp(row->method, "HEAD") != 0)
                expect_holds(answer.body, NOT_NOW);
        }
    }
}

/* On a database that there is not, so that nothing is lost. A missing resource is told to a key
 * alone: to a token it is as if it were there. */
static void a_master_key_opens_everything(void **state)
{
    (void)state;
    AUTO(fixture_close) Fixture f;
    fixture_open(&f);
    for (size_t i = 0; i < ARRAY_COUNT(ROWS); i++) {
        Row row = ROWS[i];
        char *path = arena_cstr(&f.server.arena, slice_from_cstr(row.path));
        char *name = strstr(path, "dbs/db");
        if (name != NULL)
            name[4] = 'x';
        row.path = path;
        Ask a = ask_of(&row, "['x']");
        print_message("%s %s\n", row.method, row.path);
        FakeAnswer answer = ask(&f.server, &a);
        bool is_chaos = strstr(path, "chaos") != NULL; /* which was not enabled */
        if (answer.status == 401 || (answer.status == 403 && !is_chaos))
            fail_msg("%d %.*s", answer.status, SLICE_ARG(answer.body));
        if (name != NULL)
            expect_refusal(&f, &row, "['x']", f.tokens[1], 403, 0, INSUFFICIENT);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_route_has_a_row),
        cmocka_unit_test(what_is_no_credential_opens_nothing),
        cmocka_unit_test(tokens_open_what_the_table_says),
        cmocka_unit_test(tokens_of_something_else_open_nothing),
        cmocka_unit_test(times_are_checked_before_rights),
        cmocka_unit_test(a_master_key_opens_everything),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
