/* export_test.c - exports from servers that page, move, throttle and fail. */
#include "transfer/export.h"

#include "transfer/scripted_server_testing_int.h"
#include "json/json_testing.h"

/* Two ranges with three pages each. In a world that splits, the first range becomes two after its
 * first page; both go on with its token, and each has one of the two items of the pages that are
 * left. */
typedef struct World {
    bool splits;
    bool throttles; /* every other page request */
    bool is_cut;    /* the second page of range 1 */
    bool is_split;
    uint32_t pages;
} World;

#define BEFORE SCRIPTED_RANGES(SCRIPTED_RANGE("0", "", "20") "," SCRIPTED_RANGE("1", "20", "FF"))
#define AFTER                                                         \
    SCRIPTED_RANGES(SCRIPTED_RANGE("2", "", "10") "," SCRIPTED_RANGE( \
        "3", "10", "20") "," SCRIPTED_RANGE("1", "20", "FF"))

static ScriptedAnswer answer_page(World *world, const ScriptedRequest *request)
{
    Arena *arena = request->arena;
    Slice range = scripted_header(request, "x-ms-documentdb-partitionkeyrangeid");
    Slice token = scripted_header(request, "x-ms-continuation");
    if (world->throttles && ++world->pages % 2 == 1)
        return (ScriptedAnswer){.status = 429, .headers = SLICE("x-ms-retry-after-ms: 1\r\n")};
    bool is_old = slice_equal(range, SLICE("0"));
    if (world->splits && is_old && token.len > 0)
        world->is_split = true;
    if (world->is_split && is_old)
        return (ScriptedAnswer){.status = 410, .headers = SLICE("x-ms-substatus: 1002\r\n")};
    ASSERT(token.len == 0 || slice_starts_with(token, SLICE("after-")));
    int page = token.len == 0 ? 0 : token.ptr[6] - '0';
    const char *prefix = slice_equal(range, SLICE("1")) ? "b" : "a";
    bool has_first = !slice_equal(range, SLICE("3"));
    bool has_second = !slice_equal(range, SLICE("2"));
    Slice first = arena_format(arena, "{\"id\":\"%s%d-0\",\"_ts\":1}", prefix, page);
    Slice second = arena_format(arena, "{\"id\":\"%s%d-1\",\"_ts\":2}", prefix, page);
    Slice body =
        arena_format(arena, "{\"_rid\":\"x\",\"Documents\":[%.*s%s%.*s],\"_count\":2}",
                     SLICE_ARG(has_first ? first : SLICE("")), has_first && has_second ? "," : "",
                     SLICE_ARG(has_second ? second : SLICE("")));
    if (world->is_cut && page == 1 && slice_equal(range, SLICE("1")))
        body.len -= 20;
    Slice next =
        page == 2 ? SLICE("") : arena_format(arena, "x-ms-continuation: after-%d\r\n", page + 1);
    return (ScriptedAnswer){.status = 200, .headers = next, .body = body};
}

static ScriptedAnswer answer(void *ctx, const ScriptedRequest *request)
{
    World *world = ctx;
    if (slice_starts_with(request->line, SLICE("GET /dbs/d/colls/c/pkranges ")))
        return scripted_ok(slice_from_cstr(world->is_split ? AFTER : BEFORE));
    if (slice_starts_with(request->line, SLICE("GET /dbs/d/colls/c ")))
        return scripted_ok(SLICE(SCRIPTED_CONTAINER));
    ASSERT(slice_starts_with(request->line, SLICE("GET /dbs/d/colls/c/docs ")));
    return answer_page(world, request);
}

static Status run_export(World *world, const TestFolder *folder, ExportSummary *out, Error *err)
{
    ScriptedServer server;
    scripted_open(&server, answer, world);
    Client *client = scripted_client(&server);
    ExportOptions options = {
        .client = client,
        .database = "d",
        .container = "c",
        .path = arena_cstr(&test_arena, arena_format(&test_arena, "%s/out", folder->path)),
        .resume_path = arena_cstr(&test_arena, arena_format(&test_arena, "%s/r", folder->path)),
        .format = ROW_FORMAT_LINES,
        .strips_system = true,
        .has_digest = true,
        .concurrency = 4,
        .is_quiet = true,
        .stop_fd = -1,
    };
    Status status = export_run(&options, out, err);
    client_close(client);
    scripted_close(&server);
    return status;
}

/* Each of the twelve items is in the file once, as text. */
static void check_file(const TestFolder *folder)
{
    FILE *file =
        fopen(arena_cstr(&test_arena, arena_format(&test_arena, "%s/out", folder->path)), "re");
    assert_non_null(file);
    char text[2000] = {0};
    size_t len = fread(text, 1, sizeof(text) - 1, file);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(len, 12 * strlen("{\"id\":\"a0-0\"}\n"));
    for (int i = 0; i < 12; i++) {
        Slice line = arena_format(&test_arena, "{\"id\":\"%c%d-%d\"}\n", i < 6 ? 'a' : 'b',
                                  i % 6 / 2, i % 2);
        if (strstr(text, arena_cstr(&test_arena, line)) == NULL)
            fail_msg("there is no %.*s in %s", SLICE_ARG(line), text);
    }
}

static void every_item_is_written_once(void **state)
{
    (void)state;
    static const World worlds[] = {
        {0}, {.throttles = true}, {.splits = true}, {.splits = true, .throttles = true}};
    for (size_t i = 0; i < ARRAY_COUNT(worlds); i++) {
        AUTO(test_folder_done) TestFolder folder;
        test_folder_init(&folder);
        World world = worlds[i];
        ExportSummary summary;
        Error err = {0};
        if (run_export(&world, &folder, &summary, &err) != STATUS_OK)
            fail_msg("world %zu: %s", i, err.message);
        assert_int_equal(summary.digest.count, 12);
        assert_int_equal(world.is_split, worlds[i].splits);
        assert_int_equal(summary.throttled > 0, worlds[i].throttles);
        check_file(&folder);
        assert_status(run_export(&world, &folder, &summary, &err), STATUS_BAD_REQUEST);
        assert_non_null(strstr(err.message, "is finished"));
    }
}

static void a_page_that_is_cut_ends_it_and_it_goes_on_before_that(void **state)
{
    (void)state;
    AUTO(test_folder_done) TestFolder folder;
    test_folder_init(&folder);
    World world = {.is_cut = true};
    ExportSummary summary;
    Error err = {0};
    assert_status(run_export(&world, &folder, &summary, &err), STATUS_UNAVAILABLE);
    assert_non_null(strstr(err.message, "not complete"));
    world.is_cut = false;
    if (run_export(&world, &folder, &summary, &err) != STATUS_OK)
        fail_msg("%s", err.message);
    assert_true(summary.is_resumed);
    assert_int_equal(summary.digest.count, 12);
    check_file(&folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, test_arena_setup, test_arena_teardown)
        TEST(every_item_is_written_once),
        TEST(a_page_that_is_cut_ends_it_and_it_goes_on_before_that),
#undef TEST
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
