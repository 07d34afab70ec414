/* access_model_test.c - random permissions and random requests beside a small model of the rights.
 *
 * The model knows what a permission and a request mean, not how they are written: links and paths
 * are of names or of resource ids, escaped or not, with slashes more or less.
 */
#include "api/tests/token_testing_int.h"

#include "base/test_seed.h"

enum { PERMISSIONS_MADE = 150, REQUESTS_EACH = 60, NOTHING = -1 };

static const char *const NAMES[] = {"c", "other", "my c"}; /* the last one does not exist */
static const char *const KEYS[] = {"['x']", "['y']", "['x','y']"};
static const char *const ITEMS[] = {"i", "j"};
static const char *const PROCEDURES[] = {"s", "t"};

typedef enum Child { CHILD_NONE, CHILD_ITEM, CHILD_PROCEDURE } Child;

typedef struct Grant {
    size_t container;
    Child child;
    size_t id; /* of the child */
    int key;   /* or NOTHING */
    bool is_all;
} Grant;

typedef enum Verb {
    READ_ACCOUNT,
    READ_DATABASE,
    READ_CONTAINER,
    READ_RANGES,
    DELETE_CONTAINER,
    LIST_USERS,
    PLAN,
    QUERY,
    LIST,
    CHANGES,
    READ_ITEM,
    CREATE_ITEM,
    UPSERT_ITEM,
    REPLACE_ITEM,
    PATCH_ITEM,
    DELETE_ITEM,
    BATCH,
    PURGE,
    LIST_PROCEDURES,
    READ_PROCEDURE,
    REPLACE_PROCEDURE,
    EXECUTE_PROCEDURE,
    VERB_COUNT
} Verb;

typedef struct Wish {
    Verb verb;
    size_t container;
    size_t id;
    int key;
} Wish;

/* ---- the model ---- */

static bool reads_items(Verb verb)
{
    return verb == QUERY || verb == LIST || verb == CHANGES || verb == READ_ITEM;
}

static bool writes_items(Verb verb)
{
    return verb >= CREATE_ITEM && verb <= PURGE;
}

static bool is_one_item(Verb verb)
{
    return verb == READ_ITEM || verb == REPLACE_ITEM || verb == PATCH_ITEM || verb == DELETE_ITEM;
}

static bool container_token_may(const Grant *grant, const Wish *wish)
{
    bool has_key = grant->key != NOTHING;
    bool is_of_items =
        reads_items(wish->verb) || writes_items(wish->verb) || wish->verb == EXECUTE_PROCEDURE;
    if (is_of_items && has_key && wish->key != grant->key)
        return false;
    if (wish->verb == PLAN || reads_items(wish->verb))
        return true;
    if (writes_items(wish->verb) || wish->verb == EXECUTE_PROCEDURE)
        return grant->is_all;
    if (wish->verb == LIST_PROCEDURES || wish->verb == READ_PROCEDURE)
        return !has_key;
    return wish->verb == REPLACE_PROCEDURE && grant->is_all && !has_key;
}

static bool model_may(const Grant *grant, const Wish *wish)
{
    if (wish->verb == READ_ACCOUNT)
        return true;
    if (wish->verb == READ_DATABASE || wish->verb == DELETE_CONTAINER || wish->verb == LIST_USERS)
        return false;
    if (wish->container != grant->container)
        return false;
    if (wish->verb == READ_CONTAINER || wish->verb == READ_RANGES)
        return true;
    switch (grant->child) {
    case CHILD_NONE:
        return container_token_may(grant, wish);
    case CHILD_ITEM:
        if (wish->verb == PLAN)
            return true;
        return is_one_item(wish->verb) && wish->id == grant->id &&
               (grant->key == NOTHING || wish->key == grant->key) &&
               (wish->verb == READ_ITEM || grant->is_all);
    case CHILD_PROCEDURE:
        return wish->id == grant->id &&
               (wish->verb == READ_PROCEDURE || (wish->verb == REPLACE_PROCEDURE && grant->is_all));
    }
    return false;
}

/* ---- writing it down ---- */

typedef struct Texts {
    FakeServer *server;
    Random *random;
    Slice rids[2][2]; /* of the database and of the container, of those that exist */
} Texts;

static const char *pick(Texts *texts, const char *a, const char *b)
{
    return random_below(texts->random, 2) == 0 ? a : b;
}

/* The name, perhaps escaped; a path must be. */
static Slice name_text(Texts *texts, Slice name, bool is_path)
{
    Arena *arena = &texts->server->arena;
    if (!is_path && random_below(texts->random, 2) == 0)
        return name;
    return random_below(texts->random, 2) == 0
               ? percent_encode(arena, name, SLICE_EMPTY)
               : percent_encode(arena, name, SLICE("abcdefghijklmnopqrstuvwxyz"));
}

static Slice container_text(Texts *texts, size_t container, bool is_path)
{
    Arena *arena = &texts->server->arena;
    bool exists = container < ARRAY_COUNT(texts->rids);
    if (exists && random_below(texts->random, 2) == 0)
        return arena_format(arena, "dbs/%.*s/colls/%.*s", SLICE_ARG(texts->rids[container][0]),
                            SLICE_ARG(texts->rids[container][1]));
    Slice database = name_text(texts, SLICE("db"), is_path);
    Slice name = name_text(texts, slice_from_cstr(NAMES[container]), is_path);
    return arena_format(arena, "dbs/%.*s/colls/%.*s", SLICE_ARG(database), SLICE_ARG(name));
}

/* A new permission: its token. Each has a user of its own, so that all may be the same. */
static const char *make_grant(Texts *texts, const Grant *grant, size_t number)
{
    Arena *arena = &texts->server->arena;
    const char *user = arena_cstr(arena, arena_format(arena, "u%zu", number));
    Slice row = arena_format(arena, "{'id':'%s'}", user);
    (void)expect_status(texts->server, &(Ask){"POST", USERS, arena_cstr(arena, row)}, 201);
    Slice child = grant->child == CHILD_ITEM ? arena_format(arena, "/docs/%s", ITEMS[grant->id])
                  : grant->child == CHILD_PROCEDURE
                      ? arena_format(arena, "/sprocs/%s", PROCEDURES[grant->id])
                      : SLICE_EMPTY;
    Slice key = grant->key == NOTHING
                    ? SLICE_EMPTY
                    : arena_format(arena, ",'resourcePartitionKey':%s", KEYS[grant->key]);
    Slice link = container_text(texts, grant->container, false);
    Slice rest =
        arena_format(arena, "'resource':'%s%.*s%.*s%s'%.*s", pick(texts, "", "/"), SLICE_ARG(link),
                     SLICE_ARG(child), pick(texts, "", "/"), SLICE_ARG(key));
    print_message("%s %.*s\n", grant->is_all ? "All" : "Read", SLICE_ARG(rest));
    return make_token(texts->server, user, "p",
                      pick(texts, grant->is_all ? "All" : "Read", grant->is_all ? "all" : "READ"),
                      arena_cstr(arena, rest));
}

static Ask write_wish(Texts *texts, const Wish *wish)
{
    static const struct {
        const char *method, *rest; /* of the container's path */
        Header header;
        const char *body;
    } rows[] = {
        [READ_CONTAINER] = {"GET", ""},
        [READ_RANGES] = {"GET", "/pkranges"},
        [DELETE_CONTAINER] = {"DELETE", ""},
        [PLAN] = {"POST",
                  "/docs",
                  {"x-ms-cosmos-is-query-plan-request", "True"},
                  "{'query':'SELECT * FROM c'}"},
        [QUERY] = {"POST",
                   "/docs",
                   {"x-ms-documentdb-isquery", "True"},
                   "{'query':'SELECT * FROM c'}"},
        [LIST] = {"GET", "/docs"},
        [CHANGES] = {"GET", "/docs", {"a-im", "Incremental Feed"}},
        [READ_ITEM] = {"GET", "/docs/%s"},
        [CREATE_ITEM] = {"POST", "/docs", {0}, "{'id':'%s','pk':'x'}"},
        [UPSERT_ITEM] = {"POST",
                         "/docs",
                         {"x-ms-documentdb-is-upsert", "true"},
                         "{'id':'%s','pk':'x'}"},
        [REPLACE_ITEM] = {"PUT", "/docs/%s", {0}, "{'id':'%s','pk':'x'}"},
        [PATCH_ITEM] = {"PATCH",
                        "/docs/%s",
                        {0},
                        "{'operations':[{'op':'set','path':'/n','value':1}]}"},
        [DELETE_ITEM] = {"DELETE", "/docs/%s"},
        [BATCH] = {"POST",
                   "/docs",
                   {"x-ms-cosmos-is-batch-request", "True"},
                   "[{'operationType':'Read','id':'i'}]"},
        [PURGE] = {"POST", "/operations/partitionkeydelete"},
        [LIST_PROCEDURES] = {"GET", "/sprocs"},
        [READ_PROCEDURE] = {"GET", "/sprocs/%s"},
        [REPLACE_PROCEDURE] = {"PUT", "/sprocs/%s", {0}, "{'id':'%s','body':''}"},
        [EXECUTE_PROCEDURE] = {"POST", "/sprocs/%s", {0}, "[]"},
    };
    if (wish->verb == READ_ACCOUNT)
        return (Ask){"GET", "/"};
    if (wish->verb == READ_DATABASE)
        return (Ask){"GET", "/dbs/db"};
    if (wish->verb == LIST_USERS)
        return (Ask){"GET", USERS};
    Arena *arena = &texts->server->arena;
    const char *id = wish->verb >= LIST_PROCEDURES ? PROCEDURES[wish->id] : ITEMS[wish->id];
    Slice path = container_text(texts, wish->container, true);
    const char *form = rows[wish->verb].rest;
    size_t name_at = strcspn(form, "%");
    Slice whole =
        arena_format(arena, "%s%.*s%.*s%s%s", pick(texts, "/", "//"), SLICE_ARG(path), (int)name_at,
                     form, form[name_at] == '\0' ? "" : id, pick(texts, "", "/"));
    Ask a = {rows[wish->verb].method, arena_cstr(arena, whole)};
    const char *body = rows[wish->verb].body;
    if (body != NULL) {
        size_t at = strcspn(body, "%");
        bool has_id = body[at] == '%';
        a.body = arena_cstr(arena, arena_format(arena, "%.*s%s%s", (int)at, body, has_id ? id : "",
                                                has_id ? body + at + 2 : ""));
    }
    size_t count = 0;
    if (rows[wish->verb].header.name != NULL)
        a.headers[count++] = rows[wish->verb].header;
    if (wish->key != NOTHING)
        a.headers[count++] = (Header){"x-ms-documentdb-partitionkey", KEYS[wish->key]};
    return a;
}

static void note_rids(Texts *texts)
{
    for (size_t i = 0; i < ARRAY_COUNT(texts->rids); i++) {
        Slice path = arena_format(&texts->server->arena, "/dbs/db/colls/%s", NAMES[i]);
        FakeAnswer read = expect_status(
            texts->server, &(Ask){"GET", arena_cstr(&texts->server->arena, path)}, 200);
        Slice self = text_of(body_of(texts->server, &read), "_self"); /* dbs/{rid}/colls/{rid}/ */
        (void)slice_cut(&self, '/');
        texts->rids[i][0] = slice_cut(&self, '/');
        (void)slice_cut(&self, '/');
        texts->rids[i][1] = slice_cut(&self, '/');
    }
}

static int random_key(Random *random)
{
    return (int)random_below(random, ARRAY_COUNT(KEYS) + 1) - 1;
}

static void tokens_open_what_the_model_says(void **state)
{
    (void)state;
    AUTO(fake_server_close) FakeServer server;
    open_with_user(&server);
    Random random;
    random_init(&random, test_seed());
    Texts texts = {.server = &server, .random = &random};
    note_rids(&texts);
    size_t counts[2] = {0};
    for (size_t i = 0; i < PERMISSIONS_MADE; i++) {
        Grant grant = {
            .container = random_below(&random, ARRAY_COUNT(NAMES)),
            .child = (Child)random_below(&random, 3),
            .id = random_below(&random, 2),
            .key = random_key(&random),
            .is_all = random_below(&random, 2) == 1,
        };
        const char *token = make_grant(&texts, &grant, i);
        for (size_t j = 0; j < REQUESTS_EACH; j++) {
            Wish wish = {
                .verb = (Verb)random_below(&random, VERB_COUNT),
                .container = random_below(&random, 3) == 0
                                 ? random_below(&random, ARRAY_COUNT(NAMES))
                                 : grant.container,
                .id = random_below(&random, 2),
                .key = random_below(&random, 2) == 0 ? grant.key : random_key(&random),
            };
            Ask a = write_wish(&texts, &wish);
            FakeAnswer answer = ask_with(&server, a, token);
            bool may = model_may(&grant, &wish);
            counts[may]++;
            if (answer.status == 401 || (answer.status != 403) != may)
                fail_msg("%s %s with key %d: expected %s, found %d: %.*s", a.method, a.path,
                         wish.key, may ? "yes" : "no", answer.status, SLICE_ARG(answer.body));
        }
    }
    print_message("%zu allowed, %zu refused\n", counts[1], counts[0]);
    assert_true(counts[0] > PERMISSIONS_MADE * REQUESTS_EACH / 10);
    assert_true(counts[1] > PERMISSIONS_MADE * REQUESTS_EACH / 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tokens_open_what_the_model_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
