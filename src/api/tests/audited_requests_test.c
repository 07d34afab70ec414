/* audited_requests_test.c - which requests leave a line in the audit log, on a fake of http that
 * frees what a deferred answer may no longer use. */
#include "api/tests/testing_int.h"

enum { TEXT_BYTES_MAX = 1 << 16 };

typedef struct Site {
    TestFolder folder;
    char path[80];
    FakeClock clock;
    Log log;
    Metrics metrics;
    Audit *audit;
    FakeServer server;
} Site;

static int site_open(void **state)
{
    Site *site = MEM_NEW(Site);
    test_folder_init(&site->folder);
    (void)snprintf(site->path, sizeof(site->path), "%s/audit.log", site->folder.path);
    fake_clock_init(&site->clock, UINT64_C(1000000) * FAKE_BEGIN_S);
    site->log = (Log){.fd = open("/dev/null", O_WRONLY | O_CLOEXEC), .clock = &site->clock.clock};
    metrics_init(&site->metrics, 1);
    AuditOptions audit = {.path = site->path,
                          .clock = &site->clock.clock,
                          .log = &site->log,
                          .metrics = &site->metrics.shards[0],
                          .queue_bytes_max = AUDIT_QUEUE_BYTES_MAX};
    assert_ok(audit_open(&audit, &site->audit, err));
    ApiOptions options = {.audit = site->audit, .has_chaos = true};
    fake_server_open(&site->server, &options);
    *state = site;
    return 0;
}

static int site_close(void **state)
{
    Site *site = *state;
    fake_server_close(&site->server);
    audit_close(site->audit);
    metrics_done(&site->metrics);
    (void)close(site->log.fd);
    test_folder_done(&site->folder);
    mem_free(site);
    return 0;
}

/* A request, and pieces that its line must have; none without a line. */
typedef struct Row {
    Ask ask;
    int status;
    const char *pieces[5];
} Row;

/* All that was written, when no more will be. */
static Slice end_and_read(Site *site)
{
    static char bytes[TEXT_BYTES_MAX];
    audit_close(site->audit);
    site->audit = NULL;
    int fd = open(site->path, O_RDONLY | O_CLOEXEC);
    ssize_t len = read(fd, bytes, sizeof(bytes));
    (void)close(fd);
    assert_true(len >= 0);
    return slice_make(bytes, (size_t)len);
}

static void expect_rows(Site *site, const Row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++)
        (void)expect_status(&site->server, &rows[i].ask, rows[i].status);
    Slice text = end_and_read(site);
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 1024);
    for (size_t i = 0; i < count; i++) {
        if (rows[i].pieces[0] == NULL)
            continue;
        Slice line = slice_cut(&text, '\n');
        expect_holds(line, arena_format(&arena, "\"status\":%d,", rows[i].status).ptr);
        for (size_t j = 0; j < ARRAY_COUNT(rows[i].pieces) && rows[i].pieces[j] != NULL; j++)
            expect_holds(line, row_text(&arena, rows[i].pieces[j]).ptr);
    }
    assert_slice_text(text, "");
}

static void changes_leave_a_line_with_what_was_changed(void **state)
{
    static const Row ROWS[] = {
        {{"POST", "/dbs", "{'id':'d'}"},
         201,
         {"'event':'change'", "'path':'/dbs'", "'operation':'create'", "'id':'d'", "'rid':'"}},
        {{"POST", "/dbs", "{'id':'d'}"}, 409, {"'id':'d'}"}},
        {{"POST", "/dbs", "{'id':7}"}, 400, {"'resourceType':'dbs'"}},
        {{"POST", "/dbs/d/colls", "{'id':'c','partitionKey':{'paths':['/p']}}"},
         201,
         {"'path':'/dbs/d/colls'", "'resourceType':'colls'", "'id':'c'"}},
        {{"PUT", "/dbs/d/colls/c", "{'id':'c','partitionKey':{'paths':['/p']},'defaultTtl':5}"},
         200,
         {"'operation':'replace'", "'id':'c'", "'rid':'"}},
        {{"POST", "/dbs/d/colls/c/udfs", "{'id':'f','body':'x'}"}, 201, {"'id':'f'"}},
        {{"POST", "/dbs/d/colls/c/udfs", "{'id':'f','body':'y'}",
          .headers = {{"x-ms-documentdb-is-upsert", "true"}}},
         200,
         {"'operation':'upsert'", "'id':'f'"}},
        {{"PUT", "/dbs/d/colls/c/udfs/f", "{'id':'g','body':'x'}"}, 200, {"'id':'g'"}},
        {{"DELETE", "/dbs/d/colls/c/udfs/g"}, 204, {"'id':'g'", "'operation':'delete'"}},
        {{"POST", "/dbs/d/colls/c/operations/partitionmerge", "{}"},
         202,
         {"'operation':'partitionmerge'", "'id':'c'"}},
        {{"POST", "/dbs/d/colls/c/operations/partitionmerge", "{'isDryRun':true}"}, 202},
        {{"DELETE", "/_orrery/chaos"}, 200, {"'resourceType':'_orrery'"}},
        {{"GET", "/_orrery/chaos"}, 200},
        {{"GET", "/dbs/d"}, 200},
        {{"HEAD", "/dbs/d"}, 200},
        {{"POST", "/dbs", "{'query':'SELECT * FROM c'}",
          .headers = {{"content-type", "application/query+json"}}},
         200},
        {{"POST", "/dbs/d/colls/c/docs", "{'id':'i','p':1}",
          .headers = {{"x-ms-documentdb-partitionkey", "[1]"}}},
         201},
        {{"DELETE", "/dbs/d/colls/c"}, 204, {"'id':'c'", "'rid':'"}},
        {{"DELETE", "/dbs/d"}, 204, {"'id':'d'", "'rid':'"}},
        {{"DELETE", "/dbs/d"}, 404, {"'id':'d'}"}},
    };
    expect_rows(*state, ROWS, ARRAY_COUNT(ROWS));
}

static void refusals_leave_a_line_with_who_was_refused(void **state)
{
    static const Row ROWS[] = {
        {{"GET", "/dbs", .key = ""},
         401,
         {"'event':'refusal'", "'principal':{'kind':'none'}", "'operation':'list'",
          "'subStatus':5000"}},
        {{"GET", "/dbs/d/colls/c/docs/i", .headers = {{"authorization", "rubbish"}}, .key = ""},
         401,
         {"'principal':{'kind':'unknown'}", "'resourceType':'docs'", "'subStatus':5001}"}},
        {{"POST", "/dbs", "{'id':'d'}", .key = "d3Jvbmc="}, 401, {"'operation':'create'"}},
        {{"GET", "/dbs", .key = FAKE_READ_KEY}, 200},
    };
    expect_rows(*state, ROWS, ARRAY_COUNT(ROWS));
}

/* With which status is the business of another test. */
static void a_read_only_key_is_named(void **state)
{
    Site *site = *state;
    FakeAnswer answer =
        ask(&site->server, &(Ask){"POST", "/dbs", "{'id':'d'}", .key = FAKE_READ_KEY});
    assert_true(answer.status == 401 || answer.status == 403);
    Slice text = end_and_read(site);
    expect_holds(text, "\"event\":\"refusal\"");
    expect_holds(text, "\"principal\":{\"kind\":\"key\",\"name\":\"read-only\"}");
}

#define WITH_SITE(test) cmocka_unit_test_setup_teardown(test, site_open, site_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_SITE(changes_leave_a_line_with_what_was_changed),
        WITH_SITE(refusals_leave_a_line_with_who_was_refused),
        WITH_SITE(a_read_only_key_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
