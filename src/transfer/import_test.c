/* import_test.c - imports into servers that accept, throttle, move, refuse and fail. */
#include "transfer/import.h"

#include "partition/epk.h"
#include "transfer/bulk_body.h"
#include "transfer/checkpoint.h"
#include "transfer/container_map.h"
#include "transfer/scripted_server_testing_int.h"
#include "json/json_testing.h"

enum { ITEMS = 500 };

/* What a server does before it accepts everything. */
typedef enum Mood {
    ACCEPTS,
    THROTTLES_HALF, /* every other operation, the first time it sees the request's range */
    THROTTLES_ALL,  /* the first three requests */
    SPLITS,         /* the first range, at the second bulk request */
    REFUSES_BULK,
    REFUSES_KEY,
    FAILS_FIRST,  /* 503 for the first three requests */
    REJECTS_SOME, /* 400 for items whose n is a multiple of 100 */
} Mood;

typedef struct World {
    Mood mood;
    uint32_t bulks;
    uint32_t singles;
    uint32_t reads;
    bool is_split;
    uint32_t written[ITEMS];
} World;

#define BEFORE SCRIPTED_RANGES(SCRIPTED_RANGE("0", "", "20") "," SCRIPTED_RANGE("1", "20", "FF"))
#define AFTER                                                         \
    SCRIPTED_RANGES(SCRIPTED_RANGE("2", "", "10") "," SCRIPTED_RANGE( \
        "3", "10", "20") "," SCRIPTED_RANGE("1", "20", "FF"))

static const char *ranges_of(const World *world)
{
    return world->is_split ? AFTER : BEFORE;
}

/* The item must belong to the range that the request names. */
static bool is_in_range(const World *world, Arena *arena, Json item, Slice range)
{
    ContainerMap map;
    Error err;
    Json feed = text_json(arena, slice_from_cstr(ranges_of(world)));
    ASSERT(container_map_parse(arena, feed, &map, &err) == STATUS_OK);
    PartitionKey key = {.count = 1, .parts = {json_get(item, SLICE("pk"))}};
    Epk epk;
    epk_make(PARTITION_HASH_V2, &key, &epk);
    AUTO(buf_done) Buf text;
    buf_init(&text, 1000);
    container_epk_print(&epk, &text);
    return slice_equal(container_map_find(&map, buf_view(&text))->id, range);
}

static int write_item(World *world, Json item)
{
    int64_t n = -1;
    ASSERT(json_to_i64(json_get(item, SLICE("n")), &n) && n >= 0 && n < ITEMS);
    if (world->mood == REJECTS_SOME && n % 100 == 0)
        return 400;
    world->written[n]++;
    return 201;
}

static ScriptedAnswer answer_bulk(World *world, const ScriptedRequest *request)
{
    static const Slice GONE = SLICE_INIT("x-ms-substatus: 1002\r\n");
    uint32_t number = ++world->bulks;
    Slice range = scripted_header(request, "x-ms-documentdb-partitionkeyrangeid");
    if (world->mood == REFUSES_BULK)
        return (ScriptedAnswer){.status = 400};
    if (world->mood == FAILS_FIRST && number <= 3)
        return (ScriptedAnswer){.status = 503};
    if (world->mood == THROTTLES_ALL && number <= 3)
        return (ScriptedAnswer){.status = 429, .headers = SLICE("x-ms-retry-after-ms: 2\r\n")};
    if (world->mood == SPLITS && number == 2)
        world->is_split = true;
    if (world->is_split && slice_equal(range, SLICE("0")))
        return (ScriptedAnswer){.status = 410, .headers = GONE};
    Buf out;
    buf_init(&out, 1 << 20);
    bool is_partial = world->mood == THROTTLES_HALF && number <= 2;
    size_t i = 0;
    JsonIter it = json_iter(text_json(request->arena, request->body));
    for (; json_next(&it); i++) {
        Json item = json_get(it.value, SLICE("resourceBody"));
        ASSERT(is_in_range(world, request->arena, item, range));
        int status = is_partial && i % 2 == 0 ? 429 : write_item(world, item);
        buf_format(&out, "%c{\"statusCode\":%d,\"retryAfterMilliseconds\":1,\"message\":\"why\"}",
                   i == 0 ? '[' : ',', status);
    }
    ASSERT(i <= 100);
    buf_byte(&out, ']');
    Slice body = arena_copy(request->arena, buf_view(&out));
    buf_done(&out);
    return (ScriptedAnswer){
        .status = 207, .headers = SLICE("x-ms-request-charge: 10\r\n"), .body = body};
}

/* The server has the items with an even number; of every tenth it has another version. */
static ScriptedAnswer answer_read(World *world, const ScriptedRequest *request)
{
    Slice rest = slice_from(request->line, strlen("GET /dbs/d/colls/c/docs/"));
    uint64_t n = 0;
    ASSERT(slice_to_u64(slice_cut(&rest, ' '), &n) && n < ITEMS);
    Slice key = arena_format(request->arena, "[\"p%llu\"]", (unsigned long long)n);
    ASSERT(slice_equal(scripted_header(request, "x-ms-documentdb-partitionkey"), key));
    if (++world->reads % 5 == 0)
        return (ScriptedAnswer){.status = 429, .headers = SLICE("x-ms-retry-after-ms: 1\r\n")};
    if (n % 2 == 1)
        return (ScriptedAnswer){.status = 404};
    return scripted_ok(arena_format(request->arena,
                                    "{\"n\":%llu,\"pk\":\"p%llu\",\"id\":\"%llu\",\"_ts\":1%s}",
                                    (unsigned long long)n, (unsigned long long)n,
                                    (unsigned long long)n, n % 10 == 0 ? ",\"more\":1" : ""));
}

static ScriptedAnswer answer(void *ctx, const ScriptedRequest *request)
{
    World *world = ctx;
    if (slice_starts_with(request->line, SLICE("GET /dbs/d/colls/c/docs/")))
        return answer_read(world, request);
    if (world->mood == REFUSES_KEY)
        return (ScriptedAnswer){.status = 401, .body = SLICE("{\"message\":\"wrong key\"}")};
    if (slice_starts_with(request->line, SLICE("GET /dbs/d/colls/c/pkranges ")))
        return scripted_ok(slice_from_cstr(ranges_of(world)));
    if (slice_starts_with(request->line, SLICE("GET /dbs/d/colls/c ")))
        return scripted_ok(SLICE(SCRIPTED_CONTAINER));
    ASSERT(slice_starts_with(request->line, SLICE("POST /dbs/d/colls/c/docs ")));
    if (scripted_header(request, "x-ms-cosmos-is-batch-request").len > 0)
        return answer_bulk(world, request);
    world->singles++;
    ASSERT(slice_equal(scripted_header(request, "x-ms-documentdb-is-upsert"), SLICE("True")));
    int status = write_item(world, text_json(request->arena, request->body));
    return (ScriptedAnswer){.status = status};
}

/* A file of ITEMS rows, and a line that is none in the middle. */
static const char *make_file(const TestFolder *folder)
{
    const char *path = arena_cstr(&test_arena, arena_format(&test_arena, "%s/rows", folder->path));
    if (access(path, R_OK) == 0)
        return path;
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    for (int i = 0; i < ITEMS; i++) {
        if (i == ITEMS / 2)
            (void)fprintf(file, "nonsense\n");
        (void)fprintf(file, "{\"id\":\"%d\",\"pk\":\"p%d\",\"n\":%d}\n", i, i, i);
    }
    assert_int_equal(fclose(file), 0);
    return path;
}

static Status run_import(World *world, const TestFolder *folder, ImportSummary *out, Error *err)
{
    ScriptedServer server;
    scripted_open(&server, answer, world);
    Client *client = scripted_client(&server);
    const char *path = make_file(folder);
    ImportOptions options = {
        .client = client,
        .database = "d",
        .container = "c",
        .sources = &path,
        .source_count = 1,
        .format = ROW_FORMAT_LINES,
        .concurrency = 8,
        .resume_path = arena_cstr(&test_arena, arena_format(&test_arena, "%s/r", folder->path)),
        .rejects_path = arena_cstr(&test_arena, arena_format(&test_arena, "%s/x", folder->path)),
        .has_digest = true,
        .is_quiet = true,
        .stop_fd = -1,
    };
    Status status = import_run(&options, out, err);
    client_close(client);
    scripted_close(&server);
    return status;
}

static void every_row_is_written_whatever_the_server_does(void **state)
{
    (void)state;
    static const struct {
        Mood mood;
        uint64_t throttled_min;
        uint64_t rejected;
        uint32_t singles_min;
    } rows[] = {
        {ACCEPTS, 0, 1, 0},      {THROTTLES_HALF, 20, 1, 0},  {THROTTLES_ALL, 100, 1, 0},
        {SPLITS, 0, 1, 0},       {REFUSES_BULK, 0, 1, ITEMS}, {FAILS_FIRST, 0, 1, 0},
        {REJECTS_SOME, 0, 6, 0},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        AUTO(test_folder_done) TestFolder folder;
        test_folder_init(&folder);
        World *world = MEM_NEW(World);
        world->mood = rows[i].mood;
        ImportSummary summary;
        Error err = {0};
        if (run_import(world, &folder, &summary, &err) != STATUS_OK)
            fail_msg("row %zu: %s", i, err.message);
        assert_int_equal(summary.rejected, rows[i].rejected);
        assert_int_equal(summary.digest.count, ITEMS + 1 - rows[i].rejected);
        assert_true(summary.throttled >= rows[i].throttled_min);
        assert_true(world->singles >= rows[i].singles_min);
        for (size_t n = 0; n < ITEMS; n++) {
            bool is_rejected = rows[i].mood == REJECTS_SOME && n % 100 == 0;
            if (world->written[n] != (is_rejected ? 0 : 1))
                fail_msg("row %zu: item %zu was written %u times", i, n, world->written[n]);
        }
        /* A second run finds that nothing is left to do. */
        memset(world->written, 0, sizeof(world->written));
        ImportSummary again;
        if (run_import(world, &folder, &again, &err) != STATUS_OK)
            fail_msg("row %zu, again: %s", i, err.message);
        assert_true(again.is_resumed);
        assert_int_equal(again.digest.count, summary.digest.count);
        assert_int_equal(again.rejected, summary.rejected);
        assert_int_equal(again.requests, 0);
        for (size_t n = 0; n < ITEMS; n++)
            assert_int_equal(world->written[n], 0);
        mem_free(world);
    }
}

static void a_key_that_is_refused_ends_the_import(void **state)
{
    (void)state;
    AUTO(test_folder_done) TestFolder folder;
    test_folder_init(&folder);
    World *world = MEM_NEW(World);
    world->mood = REFUSES_KEY;
    ImportSummary summary;
    Error err = {0};
    assert_status(run_import(world, &folder, &summary, &err), STATUS_UNAUTHORIZED);
    assert_non_null(strstr(err.message, "wrong key"));
    assert_int_equal(summary.requests, 0);
    mem_free(world);
}

typedef struct Told {
    uint32_t count;
    char first[100];
} Told;

static void take_reject(void *ctx, const char *path, uint64_t line, const char *reason)
{
    Told *told = ctx;
    if (told->count++ == 0)
        (void)snprintf(told->first, sizeof(told->first), "%s:%llu: %s", path,
                       (unsigned long long)line, reason);
}

static void only_what_differs_is_written(void **state)
{
    (void)state;
    World *world = MEM_NEW(World);
    ScriptedServer server;
    scripted_open(&server, answer, world);
    Client *client = scripted_client(&server);
    AUTO(buf_done) Buf text;
    buf_init(&text, 1 << 20);
    buf_slice(&text, SLICE("{\"pk\":\"p\"}\n"));
    for (int i = 0; i < ITEMS; i++)
        buf_format(&text, "{\"id\":\"%d\",\"pk\":\"p%d\",\"n\":%d}\n", i, i, i);
    Told told = {0};
    ImportOptions options = {
        .client = client,
        .database = "d",
        .container = "c",
        .text = buf_view(&text),
        .text_name = "memory",
        .format = ROW_FORMAT_LINES,
        .concurrency = 8,
        .only_changes = true,
        .needs_ids = true,
        .rejects = {.report = take_reject, .ctx = &told},
        .is_quiet = true,
        .stop_fd = -1,
    };
    ImportSummary summary;
    assert_ok(import_run(&options, &summary, err));
    client_close(client);
    scripted_close(&server);
    assert_int_equal(summary.digest.count, ITEMS);
    assert_int_equal(summary.unchanged, ITEMS * 4 / 10);
    assert_int_equal(summary.rejected, 1);
    assert_string_equal(told.first, "memory:1: it has no id");
    assert_int_equal(told.count, 1);
    for (size_t n = 0; n < ITEMS; n++)
        assert_int_equal(world->written[n], n % 2 == 1 || n % 10 == 0 ? 1 : 0);
    assert_true(world->bulks < ITEMS / 10); /* they went together */
    mem_free(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, test_arena_setup, test_arena_teardown)
        TEST(every_row_is_written_whatever_the_server_does),
        TEST(a_key_that_is_refused_ends_the_import),
        TEST(only_what_differs_is_written),
#undef TEST
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
