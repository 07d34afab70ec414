/* bench_options_test.c - the command line of `orrery bench`: what is taken, what is refused. */
#include "cli/bench_options.h"

#include "base/testing.h"

static char *const NO_ENVIRONMENT[] = {NULL};

/* Reads words that are separated by spaces; quotes do not count. */
static Status parse(Arena *arena, const char *line, BenchOptions *out, Error *err)
{
    char *argv[64];
    int argc = 0;
    bool help = false;
    char *rest = NULL;
    char *words = arena_alloc(arena, strlen(line) + 1);
    strcpy(words, line);
    for (char *word = strtok_r(words, " ", &rest); word != NULL; word = strtok_r(NULL, " ", &rest))
        argv[argc++] = word;
    argv[argc] = NULL;
    return bench_options_parse(argc, argv, NO_ENVIRONMENT, arena, out, &help, err);
}

static void what_is_wrong_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *line, *message;
    } rows[] = {
        {"", "which workload?"},
        {"read write", "which workload?"},
        {"reed", "no workload 'reed'"},
        {"--seconds 0 read", "--seconds must"},
        {"--seconds -1 read", "--seconds must"},
        {"--rate 0 read", "--rate must"},
        {"--items 0 read", "--items must"},
        {"--items 1000000001 read", "--items must"},
        {"--item-size 255 read", "--item-size must"},
        {"--item-size 1900001 read", "--item-size must"},
        {"--connections 10001 read", "--connections must"},
        {"--distribution normal read", "--distribution must"},
        {"--writes 101 mixed", "--writes must"},
        {"--query nothing query", "--query must"},
        {"--endpoint localhost:8081 read", "http://"},
        {"--endpoint http://localhost:8081/dbs read", "must have no path"},
        {"--database a/b read", "--database must"},
        {"--container a\"b --create read", "--container must"},
        {"--url http://h/dbs/a read", "--url must"},
        {"--url http://h/dbs/a/colls/b/docs --create read", "--url replaces"},
        {"request", "needs --url"},
        {"execute", "needs --url"},
        {"--keep read", "--keep is for"},
        {"--create --unsigned read", "does not go"},
        {"--create --once read", "does not go"},
        {"--once --ready --url http://h/", "exclude each other"},
        {"--insecure read", "https://"},
        {"--insecure --cert a --endpoint https://h read", "exclude each other"},
        {"--orders ycsb-a", "--orders is not"},
        {"--sign-cached read", "--sign-cached is for"},
        {"--header a read", "--header must"},
        {"--key x read", "base64"},
        {"--print-queries", "needs --count"},
        {"--print-queries --count 1 read", "needs --count"},
        {"--max-ru 0 read", "--max-ru must"},
        {"--timeout-ms 0 read", "--timeout-ms must"},
        {"--throughput 100 --create read", "--throughput must"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        AUTO(arena_done) Arena arena;
        arena_init(&arena, 1024);
        BenchOptions options;
        Error err = {0};
        if (parse(&arena, rows[i].line, &options, &err) != STATUS_BAD_REQUEST ||
            strstr(err.message, rows[i].message) == NULL)
            fail_msg("'%s' gives '%s'", rows[i].line, err.message);
    }
}

static void a_workload_alone_is_enough(void **state)
{
    (void)state;
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 1024);
    BenchOptions o;
    assert_ok(parse(&arena, "ycsb-d", &o, err));
    const ItemOptions *items = &o.load.request.items;
    assert_int_equal(o.mode, BENCH_RUN);
    assert_int_equal(o.load.connections, 32);
    assert_int_equal(items->count, 10000);
    assert_int_equal(items->distribution, KEY_LATEST);
    assert_int_equal(items->shape, LOAD_ITEM_SHAPE_FIELDS);
    assert_true(items->first > LOAD_ITEM_COUNT_MAX);
    assert_false(o.is_allowed);
    assert_true(slice_equal(o.load.request.url.path, SLICE("/dbs/bench/colls/bench/docs")));
    assert_true(slice_equal(o.load.request.url.host, SLICE("localhost")));
    assert_ptr_equal(o.load.request.signer, &o.signer);
}

static void options_reach_the_run(void **state)
{
    (void)state;
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 1024);
    BenchOptions o;
    assert_ok(parse(&arena,
                    "--endpoint=https://[::1]:444 --insecure --database a%b --rate 9 --max-ru 7 "
                    "--distribution uniform --writes 30 --seed 4 --first 8 --no-retry mixed",
                    &o, err));
    assert_true(o.target.is_insecure);
    assert_true(o.target.url.is_tls);
    assert_true(slice_equal(o.load.request.url.path, SLICE("/dbs/a%25b/colls/bench/docs")));
    assert_int_equal(o.load.rate, 9);
    assert_int_equal(o.load.milli_ru_max, 7000);
    assert_true(o.is_allowed);
    assert_true(o.load.no_retry);
    assert_int_equal(o.load.request.items.percent[LOAD_ITEM_READ], 70);
    assert_int_equal(o.load.request.items.percent[LOAD_ITEM_UPSERT], 30);
    assert_int_equal(o.load.request.items.first, 8);
    assert_int_equal(o.load.request.query.seed, 4);
}

static void an_estimate_says_what_a_run_may_cost(void **state)
{
    (void)state;
    static const struct {
        const char *line, *text;
    } rows[] = {
        {"--rate 100 --seconds 10 read", "about 1000 request units"},
        {"--count 100 upsert", "about 1100 request units"},
        {"--count 100 --item-size 2048 read", "about 200 request units"},
        {"read", "about 1 request units for each request, as many as the server allows"},
        {"--create --items 1000 --count 1 read",
         "about 1 request units, about 7000 to make the items, and a container with 6000 RU/s "
         "while it lasts"},
        {"query", "an amount of request units that depends on the query"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        AUTO(arena_done) Arena arena;
        AUTO(buf_done) Buf text;
        arena_init(&arena, 1024);
        buf_init(&text, 400);
        BenchOptions o;
        assert_ok(parse(&arena, rows[i].line, &o, err));
        bench_options_estimate(&o, &text);
        buf_byte(&text, '\0');
        assert_string_equal(text.ptr, rows[i].text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_wrong_is_refused),
        cmocka_unit_test(a_workload_alone_is_enough),
        cmocka_unit_test(options_reach_the_run),
        cmocka_unit_test(an_estimate_says_what_a_run_may_cost),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
