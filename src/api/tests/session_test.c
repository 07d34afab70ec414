/* session_test.c - session tokens: what is understood, ignored and refused, which answers have one,
 * and which requests respect it. */
#include "api/core/session_int.h"

#include "api/tests/testing_int.h"

static void a_token_says_what_was_seen_of_a_range(void **state)
{
    (void)state;
    static const struct {
        const char *token;
        uint32_t id;
        uint64_t lsn;
    } rows[] = {
        {"0:-1#1234", 0, 1234},
        {"0:-1#5280#1=5279#5=4000", 0, 5280},
        {"0:-1#5,1:-1#9", 1, 9},
        {"0:-1#5 , 1:-1#9", 1, 9},
        {"0:-1#5,1:-1#9", 2, 0},
        {"1:-1#9,1:-1#7", 1, 9}, /* the most of what is said */
        {"10:-1#3", 1, 0},
        {"1:-1#3", 10, 0},
        {"0:1234", 0, 1234}, /* the old form */
        {"0:-1#18446744073709551615", 0, UINT64_MAX},
        /* What SDKs make of tokens that they do not understand. */
        {"0:6#NaN", 0, 0},
        {"0:NaN#6", 0, 0},
        {"0:NaN#NaN", 0, 0},
        {"0:NaN", 0, 0},
        {"0:-1#-1", 0, 0},
        {"0:-1", 0, 0},
        {"0:-1#6#1=NaN", 0, 6},
        {"0:-1#6#1=-1", 0, 6},
        /* LSNs of different versions cannot be compared. */
        {"0:-2#6", 0, 0},
        {"0:0#6", 0, SESSION_LSN_UNREACHABLE},
        {"0:1#6#1=5", 0, SESSION_LSN_UNREACHABLE},
        {"0:7#1,0:-1#9", 0, SESSION_LSN_UNREACHABLE},
        {"1:7#1,0:-1#9", 0, 9},
        {"99999999999999999999:-1#6", 0, 0},
        {"4294967296:-1#6", 0, 0}, /* not range 0 with something above */
        {"", 0, 0},
        {",", 0, 0},
        {"0:-1#5,", 0, 5},
        {",,0:-1#5", 0, 5},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        uint64_t lsn = 77;
        Error err;
        PartitionRange range = {.id = rows[i].id};
        Status status = session_wanted(slice_from_cstr(rows[i].token), &range, &lsn, &err);
        if (status != STATUS_OK || lsn != rows[i].lsn)
            fail_msg("'%s': %s, %llu", rows[i].token, status_code(status), (unsigned long long)lsn);
    }
}

static void what_was_seen_of_a_range_was_seen_of_those_that_came_from_it(void **state)
{
    (void)state;
    static const uint32_t parents[] = {0, 2, 3, 10};
    static const PartitionRange range = {.id = 12, .parents = parents, .parent_count = 4};
    static const struct {
        const char *token;
        uint64_t lsn;
    } rows[] = {
        {"12:-1#7", 7},
        {"0:-1#5", 5},
        {"2:-1#6,3:-1#9", 9},
        {"10:-1#8,12:-1#7", 8},
        {"12:-1#8,10:-1#7", 8},
        /* others, of which some are children of ours */
        {"1:-1#5", 0},
        {"4:-1#5,11:-1#5,13:-1#5", 0},
        {"100:-1#5", 0},
        {"4294967298:-1#5", 0}, /* not range 2 with something above */
        {"2:6#NaN", 0},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        uint64_t lsn = 77;
        Error err;
        assert_int_equal(session_wanted(slice_from_cstr(rows[i].token), &range, &lsn, &err),
                         STATUS_OK);
        if (lsn != rows[i].lsn)
            fail_msg("'%s': %llu", rows[i].token, (unsigned long long)lsn);
    }
}

static void what_is_no_list_of_entries_is_refused(void **state)
{
    (void)state;
    static const char *const rows[] = {
        "x",
        "0",
        "-1#5",
        "0:-1#5,x",
        "x,0:-1#5",
        "{}",
        "0=5",
        "0:1#5#0=5,broken-token",
        /* parts that are missing, or no numbers */
        "0:",
        "0:#",
        "0:-1#",
        "0:-1#5#",
        "0:-1#5#1",
        "0:-1#5#1=",
        "0:-1#5#=5",
        "0:-1#5#x=5",
        "0:-1#5#1=x",
        "0:x#5",
        "0:-1#x",
        "0:-1#--5",
        "0:x",
        ":-1#6",
        "x:-1#6",
        "-0:-1#6",
        "7:x,0:-1#5",
        /* 2^64, far beyond, in the old form, and of another range */
        "0:-1#18446744073709551616",
        "0:-1#99999999999999999999999999999999999999999",
        "0:18446744073709551616",
        "7:-1#18446744073709551616,0:-1#5",
        "0:-1#5#1=18446744073709551616",
        "0:9223372036854775808#5",
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        uint64_t lsn = 0;
        Error err;
        Slice token = slice_from_cstr(rows[i]);
        if (session_wanted(token, &(PartitionRange){0}, &lsn, &err) != STATUS_BAD_REQUEST ||
            session_check(token, &err) != STATUS_BAD_REQUEST)
            fail_msg("'%s' is not refused", rows[i]);
        expect_holds(slice_from_cstr(err.message), "InvalidSessionToken");
    }
}

static void what_is_printed_is_understood(void **state)
{
    (void)state;
    static const struct {
        uint32_t id;
        uint64_t lsn;
        const char *text;
    } rows[] = {
        {0, 1, "0:-1#1"},
        {17, 1234, "17:-1#1234"},
        {UINT32_MAX, UINT64_MAX, "4294967295:-1#18446744073709551615"},
    };
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 256);
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        Slice token = session_print(&arena, rows[i].id, rows[i].lsn);
        assert_slice(token, slice_from_cstr(rows[i].text));
        uint64_t lsn = 0;
        Error err;
        PartitionRange range = {.id = rows[i].id};
        assert_int_equal(session_wanted(token, &range, &lsn, &err), STATUS_OK);
        assert_true(lsn == rows[i].lsn);
    }
}

/* From here on: what the handlers do with them. */

#define SESSION(token)                \
    {                                 \
        "x-ms-session-token", (token) \
    }
#define QUERY                             \
    {                                     \
        "x-ms-documentdb-isquery", "true" \
    }
#define CROSS                                                \
    {                                                        \
        "x-ms-documentdb-query-enablecrosspartition", "true" \
    }
#define BATCH                                  \
    {                                          \
        "x-ms-cosmos-is-batch-request", "true" \
    }
#define ATOMIC                             \
    {                                      \
        "x-ms-cosmos-batch-atomic", "true" \
    }
#define UPSERT                              \
    {                                       \
        "x-ms-documentdb-is-upsert", "true" \
    }
#define COLL "/dbs/db/colls/c"

/* Every kind of read of the item '1' of the key 'a', with a session token. */
enum { READS = 4 };
static void fill_reads(Ask reads[READS], const char *token)
{
    const Ask asks[READS] = {
        {"GET", DOCS "/1", .headers = {PK("['a']"), SESSION(token)}},
        {"GET", DOCS, .headers = {SESSION(token)}},
        {"POST", DOCS, "{'query':'SELECT * FROM c'}", .headers = {QUERY, CROSS, SESSION(token)}},
        {"POST", DOCS, "[{'operationType':'Read','id':'1'}]",
         .headers = {PK("['a']"), BATCH, ATOMIC, SESSION(token)}},
    };
    memcpy(reads, asks, sizeof(asks));
}

/* A partition begins at LSN 1, so it is at 3 afterwards. */
static void make_two(FakeServer *server)
{
    make_item(server, "{'id':'1','pk':'a'}");
    make_item(server, "{'id':'2','pk':'a'}");
}

static void a_read_is_not_served_by_less_than_what_was_seen(void **state)
{
    (void)state;
    static const struct {
        const char *token;
        int status, sub;
    } rows[] = {
        {"", 200, 0},
        {"0:-1#1", 200, 0},
        {"0:-1#3", 200, 0},
        {"0:-1#4", 404, 1002},
        {"0:-1#2003", 404, 1002},
        {"0:-1#100000000", 404, 1002},
        {"0:3", 200, 0},
        {"0:4", 404, 1002},
        {"5:-1#99", 200, 0},
        {"0:6#NaN", 200, 0},
        {"0:1#2", 404, 1002},
        {"5:1#2", 200, 0},
        {"5:-1#9,0:-1#4", 404, 1002},
        {"rubbish", 400, 0},
        {"0:-1#1,broken-token", 400, 0},
    };
    AUTO(fake_server_close) FakeServer server;
    open_with_container(&server);
    make_two(&server);
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        Ask reads[READS];
        fill_reads(reads, rows[i].token);
        for (size_t j = 0; j < READS; j++) {
            FakeAnswer answer = expect_status(&server, &reads[j], rows[i].status);
            assert_int_equal(sub_status_of(&answer), rows[i].sub);
            if (rows[i].status == 200)
                expect_header(&answer, "x-ms-session-token", "0:-1#3");
            if (rows[i].sub != 1002)
                continue;
            expect_header(&answer, "x-ms-session-token", "");
            expect_header(&answer, "x-ms-request-charge", "1");
            expect_holds(answer.body,
                         "The read session is not available for the input session token.");
        }
    }
}

static void only_reads_at_the_level_session_respect_the_token(void **state)
{
    (void)state;
    static const struct {
        Consistency account;
        const char *level, *strategy;
        bool is_checked;
    } rows[] = {
        {CONSISTENCY_SESSION, "", "", true},
        {CONSISTENCY_SESSION, "Session", "", true},
        {CONSISTENCY_SESSION, "ConsistentPrefix", "", false},
        {CONSISTENCY_SESSION, "Eventual", "", false},
        {CONSISTENCY_SESSION, "", "Eventual", false},
        {CONSISTENCY_SESSION, "", "LatestCommitted", false},
        {CONSISTENCY_SESSION, "Eventual", "Session", true},
        {CONSISTENCY_SESSION, "Session", "Eventual", false},
        {CONSISTENCY_STRONG, "", "", false},
        {CONSISTENCY_STRONG, "Session", "", true},
        {CONSISTENCY_STRONG, "BoundedStaleness", "", false},
        {CONSISTENCY_STRONG, "Session", "GlobalStrong", false},
        {CONSISTENCY_BOUNDED_STALENESS, "", "", false},
        {CONSISTENCY_CONSISTENT_PREFIX, "", "", false},
        {CONSISTENCY_EVENTUAL, "", "", false},
        {CONSISTENCY_EVENTUAL, "", "Session", true},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        AUTO(fake_server_close) FakeServer server;
        fake_server_open(&server, &(ApiOptions){.consistency = rows[i].account});
        (void)expect_status(&server, &(Ask){"POST", "/dbs", "{'id':'db'}"}, 201);
        (void)expect_status(&server, &(Ask){"POST", "/dbs/db/colls", CONTAINER}, 201);
        make_two(&server);
        static const char *const tokens[] = {"0:-1#4", "rubbish"};
        for (size_t t = 0; t < ARRAY_COUNT(tokens); t++) {
            Ask reads[READS];
            fill_reads(reads, tokens[t]);
            int refused = t == 0 ? 404 : 400;
            for (size_t j = 0; j < READS; j++) {
                reads[j].headers[4] = (Header){"x-ms-consistency-level", rows[i].level};
                reads[j].headers[5] =
                    (Header){"x-ms-cosmos-read-consistency-strategy", rows[i].strategy};
                for (size_t h = 0; h < 4; h++) { /* a list of headers ends with the first NULL */
                    if (reads[j].headers[h].name == NULL)
                        reads[j].headers[h] = (Header){"x-nothing", ""};
                }
                (void)expect_status(&server, &reads[j], rows[i].is_checked ? refused : 200);
            }
        }
    }
}

static void a_write_does_not_ask_what_was_seen(void **state)
{
    (void)state;
    static const char *const tokens[] = {"0:-1#4711", "rubbish"};
    AUTO(fake_server_close) FakeServer server;
    open_with_container(&server);
    uint64_t lsn = 1;
    for (size_t i = 0; i < ARRAY_COUNT(tokens); i++) {
        const Header seen = SESSION(tokens[i]);
        const struct {
            Ask ask;
            int status;
        } rows[] = {
            {{"POST", DOCS, "{'id':'1','pk':'a'}", .headers = {seen}}, 201},
            {{"POST", DOCS, "{'id':'1','pk':'a'}", .headers = {seen, UPSERT}}, 200},
            {{"PUT", DOCS "/1", "{'id':'1','pk':'a'}", .headers = {seen}}, 200},
            {{"PATCH", DOCS "/1", "[{'op':'set','path':'/x','value':2}]",
              .headers = {seen, PK("['a']")}},
             200},
            {{"POST", DOCS,
              "[{'operationType':'Upsert','resourceBody':{'id':'1','pk':'a'}},"
              "{'operationType':'Create','resourceBody':{'id':'2','pk':'a'}}]",
              .headers = {seen, PK("['a']"), BATCH, ATOMIC}},
             200},
            {{"DELETE", DOCS "/1", .headers = {seen, PK("['a']")}}, 204},
            {{"DELETE", DOCS "/2", .headers = {seen, PK("['a']")}}, 204},
        };
        for (size_t j = 0; j < ARRAY_COUNT(rows); j++) {
            FakeAnswer answer = expect_status(&server, &rows[j].ask, rows[j].status);
            Slice token = session_print(&server.arena, 0, ++lsn);
            assert_slice(fake_header(&answer, "x-ms-session-token"), token);
        }
    }
    /* Its end is another transaction, at any time afterwards. */
    const Ask purge = {"POST", COLL "/operations/partitionkeydelete",
                       .headers = {SESSION("0:-1#4711"), PK("['a']")}};
    (void)expect_status(&server, &purge, 200);
}

static void a_batch_that_reads_too_does_nothing_without_what_was_seen(void **state)
{
    (void)state;
    static const char operations[] =
        "[{'operationType':'Create','resourceBody':{'id':'1','pk':'a'}},"
        "{'operationType':'Read','id':'1'}]";
    AUTO(fake_server_close) FakeServer server;
    open_with_container(&server);
    Ask batch = {"POST", DOCS, operations,
                 .headers = {PK("['a']"), BATCH, ATOMIC, SESSION("0:-1#2")}};
    FakeAnswer answer = expect_status(&server, &batch, 404);
    expect_header(&answer, "x-ms-substatus", "1002");
    batch.headers[3] = (Header)SESSION("0:-1#1");
    answer = expect_status(&server, &batch, 200);
    expect_header(&answer, "x-ms-session-token", "0:-1#2"); /* there was no item before */
}

/* Requests in order, and the LSN that the partition has after each. */
static void every_answer_about_items_says_what_was_seen(void **state)
{
    (void)state;
    static const struct {
        Ask ask;
        int status;
        const char *lsn;
    } rows[] = {
        {{"GET", DOCS}, 200, "1"},
        {{"GET", DOCS "/1", .headers = {PK("['a']")}}, 404, "1"},
        {{"POST", DOCS, "{'id':'1','pk':'a'}"}, 201, "2"},
        {{"GET", DOCS "/1", .headers = {PK("['a']")}}, 200, "2"},
        {{"HEAD", DOCS "/1", .headers = {PK("['a']")}}, 200, "2"},
        {{"GET", DOCS "/1", .headers = {PK("['a']"), {"if-none-match", "*"}}}, 304, "2"},
        {{"POST", DOCS, "{'id':'1','pk':'a'}"}, 409, "2"},
        {{"PUT", DOCS "/1", "{'id':'1','pk':'a'}", .headers = {{"if-match", "other"}}}, 412, "2"},
        {{"PUT", DOCS "/9", "{'id':'9','pk':'a'}"}, 404, "2"},
        {{"DELETE", DOCS "/9", .headers = {PK("['a']")}}, 404, "2"},
        {{"DELETE", DOCS "/1", .headers = {PK("['a']"), {"if-match", "other"}}}, 412, "2"},
        {{"PATCH", DOCS "/9", "[{'op':'set','path':'/x','value':2}]", .headers = {PK("['a']")}},
         404,
         "2"},
        {{"POST", DOCS, "{'id':'1','pk':'a'}", .headers = {UPSERT, {"prefer", "return=minimal"}}},
         200,
         "3"},
        {{"POST", DOCS,
          "[{'operationType':'Create','resourceBody':{'id':'2','pk':'a'}},"
          "{'operationType':'Create','resourceBody':{'id':'3','pk':'a'}},"
          "{'operationType':'Delete','id':'1'}]",
          .headers = {PK("['a']"), BATCH, ATOMIC}},
         200,
         "4"},
        {{"POST", DOCS,
          "[{'operationType':'Create','resourceBody':{'id':'4','pk':'a'}},"
          "{'operationType':'Create','resourceBody':{'id':'3','pk':'a'}}]",
          .headers = {PK("['a']"), BATCH, ATOMIC}},
         207,
         "4"},
        {{"POST", DOCS, "[{'operationType':'Read','id':'2'}]",
          .headers = {PK("['a']"), BATCH, ATOMIC}},
         200,
         "4"},
        {{"POST", DOCS, "{'query':'SELECT * FROM c'}", .headers = {QUERY, PK("['a']")}}, 200, "4"},
        {{"POST", DOCS, "{'query':'SELECT * FROM c'}", .headers = {QUERY, PK("['none']")}},
         200,
         "4"},
        {{"POST", DOCS, "{'query':'SELECT * FROM c'}",
          .headers = {QUERY, PK("['a']"), {"x-ms-max-item-count", "0"}}},
         200,
         "4"},
        {{"GET", DOCS, .headers = {PK("['a']"), {"x-ms-max-item-count", "1"}}}, 200, "4"},
        {{"GET", DOCS, .headers = {{"x-ms-start-epk", "02"}, {"x-ms-end-epk", "01"}}}, 200, "4"},
        {{"DELETE", DOCS "/2", .headers = {PK("['a']")}}, 204, "5"},
        {{"POST", COLL "/operations/partitionkeydelete", .headers = {PK("['a']")}}, 200, "6"},
    };
    AUTO(fake_server_close) FakeServer server;
    open_with_container(&server);
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        FakeAnswer answer = expect_status(&server, &rows[i].ask, rows[i].status);
        Slice token = arena_format(&server.arena, "0:-1#%s", rows[i].lsn);
        if (!slice_equal(fake_header(&answer, "x-ms-session-token"), token))
            fail_msg("row %zu, %s %s: '%.*s'", i, rows[i].ask.method, rows[i].ask.path,
                     SLICE_ARG(fake_header(&answer, "x-ms-session-token")));
        expect_header(&answer, "lsn", rows[i].lsn);
        expect_header(&answer, "x-ms-documentdb-partitionkeyrangeid", "0");
    }
}

static void answers_of_the_control_plane_have_no_token_and_ask_for_none(void **state)
{
    (void)state;
    static const struct {
        Ask ask;
        int status;
    } rows[] = {
        {{"GET", "/", .headers = {SESSION("rubbish")}}, 200},
        {{"GET", "/dbs", .headers = {SESSION("rubbish")}}, 200},
        {{"GET", "/dbs/db", .headers = {SESSION("rubbish")}}, 200},
        {{"POST", "/dbs", "{'id':'db'}", .headers = {SESSION("rubbish")}}, 409},
        {{"GET", "/dbs/db/colls", .headers = {SESSION("rubbish")}}, 200},
        {{"GET", COLL, .headers = {SESSION("0:-1#4711")}}, 200},
        {{"GET", "/dbs/db/colls/none/docs/1", .headers = {PK("['a']")}}, 404},
        {{"GET", COLL "/pkranges", .headers = {SESSION("0:-1#4711")}}, 200},
        {{"GET", COLL "/sprocs", .headers = {SESSION("0:-1#4711")}}, 200},
        {{"GET", COLL "/conflicts", .headers = {SESSION("0:-1#4711")}}, 200},
        {{"GET", "/offers", .headers = {SESSION("rubbish")}}, 200},
        {{"POST", "/offers", "{'query':'SELECT * FROM c'}", .headers = {QUERY}}, 200},
    };
    AUTO(fake_server_close) FakeServer server;
    open_with_container(&server);
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        FakeAnswer answer = expect_status(&server, &rows[i].ask, rows[i].status);
        expect_header(&answer, "x-ms-session-token", "");
    }
}

/* Two partitions: 'b' is in range 0, 'a' in range 1. */
static void open_with_two_ranges(FakeServer *server)
{
    static const ProvisionRules rules = {.partition_ru = 400, .fallback = {PROVISION_MANUAL, 800}};
    fake_server_open_with(server, NULL, &rules);
    (void)expect_status(server, &(Ask){"POST", "/dbs", "{'id':'db'}"}, 201);
    (void)expect_status(server, &(Ask){"POST", "/dbs/db/colls", CONTAINER}, 201);
    make_item(server, "{'id':'1','pk':'a'}");
    make_item(server, "{'id':'1','pk':'b'}");
    make_item(server, "{'id':'2','pk':'b'}");
}

/* A query of one key that is so long that a worker reads it. */
static const char *long_query(FakeServer *server, const char *key)
{
    AUTO(buf_done) Buf text;
    buf_init(&text, 2 * LOOP_QUERY_BYTES_MAX);
    buf_format(&text, "{'query':'SELECT * FROM c WHERE c.pk = \\u0022%s\\u0022", key);
    while (text.len <= LOOP_QUERY_BYTES_MAX)
        buf_byte(&text, ' ');
    buf_slice(&text, SLICE("'}"));
    return arena_cstr(&server->arena, buf_view(&text));
}

static void what_was_seen_of_other_ranges_does_not_count(void **state)
{
    (void)state;
    AUTO(fake_server_close) FakeServer server;
    open_with_two_ranges(&server);
    const Header ahead = SESSION("0:-1#4711,1:-1#2"); /* of the range of 'b' */
    const struct {
        Ask ask;
        const char *token; /* NULL if it is refused */
    } rows[] = {
        {{"GET", DOCS "/1", .headers = {ahead, PK("['a']")}}, "1:-1#2"},
        {{"GET", DOCS "/1", .headers = {ahead, PK("['b']")}}, NULL},
        {{"GET", DOCS, .headers = {ahead, PK("['a']")}}, "1:-1#2"},
        {{"GET", DOCS, .headers = {ahead, PK("['b']")}}, NULL},
        {{"GET", DOCS, .headers = {ahead, {"x-ms-documentdb-partitionkeyrangeid", "1"}}}, "1:-1#2"},
        {{"GET", DOCS, .headers = {ahead, {"x-ms-documentdb-partitionkeyrangeid", "0"}}}, NULL},
        {{"GET", DOCS, .headers = {ahead}}, NULL},
        /* A page that ends in its first partition has seen no other. */
        {{"GET", DOCS, .headers = {SESSION("1:-1#4711"), {"x-ms-max-item-count", "1"}}}, "0:-1#3"},
        {{"GET", DOCS, .headers = {SESSION("1:-1#4711")}}, NULL},
        {{"POST", DOCS, "{'query':'SELECT * FROM c'}", .headers = {ahead, QUERY, PK("['a']")}},
         "1:-1#2"},
        {{"POST", DOCS, "{'query':'SELECT * FROM c'}", .headers = {ahead, QUERY, PK("['b']")}},
         NULL},
        {{"POST", DOCS, "{'query':'SELECT * FROM c WHERE c.pk = \\u0022a\\u0022'}",
          .headers = {ahead, QUERY}},
         "1:-1#2"},
        {{"POST", DOCS, "{'query':'SELECT * FROM c WHERE c.pk = \\u0022b\\u0022'}",
          .headers = {ahead, QUERY}},
         NULL},
        {{"POST", DOCS, long_query(&server, "a"), .headers = {ahead, QUERY}}, "1:-1#2"},
        {{"POST", DOCS, long_query(&server, "b"), .headers = {ahead, QUERY}}, NULL},
        {{"POST", DOCS, "{'query':'SELECT * FROM c'}", .headers = {ahead, QUERY, CROSS}}, NULL},
        {{"POST", DOCS, "{'query':'SELECT * FROM c'}",
          .headers = {SESSION("0:-1#3,1:-1#2"), QUERY, CROSS}},
         "0:-1#3,1:-1#2"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        FakeAnswer answer = expect_status(&server, &rows[i].ask, rows[i].token != NULL ? 200 : 404);
        expect_header(&answer, "x-ms-session-token", rows[i].token != NULL ? rows[i].token : "");
        expect_header(&answer, "x-ms-substatus", rows[i].token != NULL ? "" : "1002");
        if (rows[i].token == NULL)
            expect_header(&answer, "x-ms-request-charge", "1");
    }
}

/* Keeps the one thread busy that applies writes. */
typedef struct WriterJam {
    WorkerJob job;
    Latch begun;
    Latch over;
} WriterJam;

static void hold_writer(WorkerJob *job)
{
    WriterJam *jam = CONTAINER_OF(job, WriterJam, job);
    latch_post(&jam->begun);
    latch_wait(&jam->over);
}

static void writes_that_are_made_durable_together_have_tokens_of_their_own(void **state)
{
    (void)state;
    enum { WRITES = 6 };
    AUTO(fake_server_close) FakeServer server;
    open_with_container(&server);
    WriterJam jam = {.job.run = hold_writer};
    latch_init(&jam.begun);
    latch_init(&jam.over);
    assert_true(workers_post(server.host.writers, &jam.job));
    latch_wait(&jam.begun);
    const Ask asks[WRITES] = {
        {"POST", DOCS, "{'id':'1','pk':'a'}"},
        {"POST", DOCS,
         "[{'operationType':'Create','resourceBody':{'id':'2','pk':'a'}},"
         "{'operationType':'Create','resourceBody':{'id':'3','pk':'a'}}]",
         .headers = {PK("['a']"), BATCH, ATOMIC}},
        {"POST", DOCS, "{'id':'1','pk':'a'}", .headers = {UPSERT}},
        {"PATCH", DOCS "/2", "[{'op':'set','path':'/x','value':2}]", .headers = {PK("['a']")}},
        {"DELETE", DOCS "/3", .headers = {PK("['a']")}},
        {"POST", DOCS, "{'id':'4','pk':'a'}"},
    };
    FakeAnswer answers[WRITES];
    FakeExchange *exchanges[WRITES];
    for (size_t i = 0; i < WRITES; i++)
        exchanges[i] = ask_only(&server, &asks[i], &answers[i]);
    latch_post(&jam.over);
    for (size_t i = 0; i < WRITES; i++) {
        fake_wait(&server, &answers[i]);
        mem_free(exchanges[i]);
        assert_slice(fake_header(&answers[i], "x-ms-session-token"),
                     session_print(&server.arena, 0, 2 + i));
    }
    latch_done(&jam.begun);
    latch_done(&jam.over);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_token_says_what_was_seen_of_a_range),
        cmocka_unit_test(what_was_seen_of_a_range_was_seen_of_those_that_came_from_it),
        cmocka_unit_test(what_is_no_list_of_entries_is_refused),
        cmocka_unit_test(what_is_printed_is_understood),
        cmocka_unit_test(a_read_is_not_served_by_less_than_what_was_seen),
        cmocka_unit_test(only_reads_at_the_level_session_respect_the_token),
        cmocka_unit_test(a_write_does_not_ask_what_was_seen),
        cmocka_unit_test(a_batch_that_reads_too_does_nothing_without_what_was_seen),
        cmocka_unit_test(every_answer_about_items_says_what_was_seen),
        cmocka_unit_test(answers_of_the_control_plane_have_no_token_and_ask_for_none),
        cmocka_unit_test(what_was_seen_of_other_ranges_does_not_count),
        cmocka_unit_test(writes_that_are_made_durable_together_have_tokens_of_their_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
