/* options_test.c - command line, environment and file: what wins, and what is refused. */
#include "cli/options.h"

#include "api/core/auth.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#define KEY "a2V5LW9mLXRoZS10ZXN0"

/* A file of the test, gone with it. */
typedef struct TestFile {
    char path[64];
} TestFile;

static void file_done(TestFile *file)
{
    if (file->path[0] != '\0')
        (void)unlink(file->path);
}
DEFINE_AUTO_VALUE(TestFile, file_done)

static void file_write(TestFile *file, Slice text)
{
    (void)snprintf(file->path, sizeof(file->path), "/tmp/orrery_options_XXXXXX");
    int fd = mkstemp(file->path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text.ptr == NULL ? "" : text.ptr, text.len), text.len);
    assert_int_equal(close(fd), 0);
}

enum { WORDS_MAX = 8 };

typedef struct Try {
    const char *arguments[WORDS_MAX];   /* to the first NULL */
    const char *environment[WORDS_MAX]; /* likewise */
    const char *config;                 /* NULL if there is no file */
} Try;

static Status parse(Arena *arena, const Try *t, ServeOptions *out, bool *help, Error *err)
{
    const char *argv[WORDS_MAX + 3];
    int argc = 0;
    for (; t->arguments[argc] != NULL; argc++)
        argv[argc] = t->arguments[argc];
    AUTO(file_done) TestFile file = {0};
    if (t->config != NULL) {
        file_write(&file, slice_from_cstr(t->config));
        argv[argc++] = "--config";
        argv[argc++] = file.path;
    }
    const char *environment[WORDS_MAX + 1];
    size_t count = 0;
    for (; t->environment[count] != NULL; count++)
        environment[count] = t->environment[count];
    environment[count] = NULL;
    return options_parse(arena, argc, (char *const *)argv, (char *const *)environment, out, help,
                         err);
}

static ServeOptions parse_good(Arena *arena, const Try *t)
{
    ServeOptions options = {0};
    bool help = true;
    Error err = {0};
    if (parse(arena, t, &options, &help, &err) != STATUS_OK)
        fail_msg("%s", err.message);
    assert_false(help);
    return options;
}

static void without_a_word_the_defaults_hold(void **state)
{
    (void)state;
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 1024);
    ServeOptions o = parse_good(
        &arena, &(Try){.environment = {"PATH=/bin", "ORRERYPORT=1", "XORRERY_PORT=1", "ORRERY"}});
    assert_string_equal(o.data, "data");
    assert_string_equal(o.host, "localhost");
    assert_int_equal(o.port, 8081);
    assert_string_equal(o.key, AUTH_DEVELOPMENT_KEY);
    assert_false(o.key_is_given);
    assert_string_equal(o.secondary_key, "");
    assert_string_equal(o.read_only_key, "");
    assert_string_equal(o.secondary_read_only_key, "");
    assert_false(o.allow_development_key);
    assert_null(o.cert);
    assert_null(o.cert_key);
    assert_int_equal(o.durability, STORE_DURABILITY_SYNC);
    assert_true(o.throughput.is_enforced);
    assert_true(o.throughput.has_burst);
    assert_false(o.throughput.is_serverless);
    assert_int_equal(o.throughput.partition_ru, 10000);
    assert_int_equal(o.throughput.new_partition_ru, 6000);
    assert_int_equal(o.throughput.fallback.ru, 400);
    assert_true(o.memory.cache <= UINT64_C(128) << 20);
    assert_false(o.requires_tls);
    assert_false(o.limits_local_connections);
    assert_int_equal(o.address_connections_max, 4096);
    assert_int_equal(o.address_failures_max, 1000);
    assert_true(o.logical_partition_bytes_max == UINT64_C(20) << 30);
    assert_true(o.moves.splits);
    assert_false(o.moves.merges);
    assert_true(o.moves.partition_bytes_max == UINT64_C(50) << 30);
    assert_true(o.moves.bytes_per_s == UINT64_C(64) << 20);
    assert_true(o.threads >= 1);
    assert_true(o.threads <= 64);
    assert_int_equal(o.connections_max, 16384);
    assert_int_equal(o.idle_timeout_s, 300);
    assert_int_equal(o.request_timeout_s, 30);
    assert_string_equal(o.account, "orrery");
    assert_string_equal(o.region, "South Central US");
    assert_string_equal(o.public_endpoint, "");
    assert_false(o.trust_forwarded);
    assert_false(o.enable_chaos);
    assert_null(o.charges);
    assert_int_equal(o.consistency, CONSISTENCY_SESSION);
    assert_int_equal(o.merge, API_MERGE_AUTO);
    assert_false(o.extensions);
    assert_int_equal(o.log_level, LOG_LEVEL_INFO);
}

static void every_way_says_the_same(void **state)
{
    (void)state;
    static const Try rows[] = {
        {.arguments = {"--port", "9000", "--data=/d", "--trust-forwarded", "--cache", "2G"}},
        {.arguments = {"--port=9000", "--data", "/d", "--trust-forwarded=true", "--cache=2048m"}},
        {.environment = {"ORRERY_PORT=9000", "ORRERY_DATA=/d", "ORRERY_TRUST_FORWARDED=True",
                         "ORRERY_CACHE=2097152K"}},
        {.config = "port = 9000\ndata=/d\ntrust-forwarded\ncache\t=\t2147483648\n"},
        {.config = "# a comment\r\n\r\n  port=9000  \r\ndata = /d\r\n"
                   "trust-forwarded = TRUE\r\ncache = 2g"},
        {.arguments = {"--port", "9000"},
         .environment = {"ORRERY_DATA=/d"},
         .config = "trust-forwarded\ncache = 2G\n"},
        /* said twice, the first way wins: command line, environment, file */
        {.arguments = {"--port", "9000", "--cache=2G"},
         .environment = {"ORRERY_PORT=1", "ORRERY_DATA=/d"},
         .config = "port = 2\ndata = /other\ntrust-forwarded = true\ncache = 1G\n"},
        /* within one, the last on the command line, the first in a file */
        {.arguments = {"--port", "1", "--port", "9000"},
         .config = "data = /d\ndata = /other\ntrust-forwarded\ncache = 2G\n"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        AUTO(arena_done) Arena arena;
        arena_init(&arena, 1024);
        print_message("row %zu\n", i);
        ServeOptions o = parse_good(&arena, &rows[i]);
        assert_int_equal(o.port, 9000);
        assert_string_equal(o.data, "/d");
        assert_true(o.trust_forwarded);
        assert_true(o.memory.cache == UINT64_C(2) << 30);
    }
}

static void every_option_has_its_place(void **state)
{
    (void)state;
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 1024);
    ServeOptions o = parse_good(
        &arena,
        &(Try){.config = "host = 0.0.0.0\nkey = " KEY "\nsecondary-key = s1\n"
                         "read-only-key = r1\nsecondary-read-only-key = r2\n"
                         "allow-development-key\ncert = c.pem\ncert-key = k.pem\n"
                         "durability = relaxed\naccept-lost-writes\nno-rate-limit\nthreads = 3\n"
                         "no-burst\npartition-ru = 1000\ndefault-ru = 900\nserverless\n"
                         "connections-max = 10\nidle-timeout = 20\nrequest-timeout = 40\n"
                         "account = contoso-1\nregion = West Europe 2\n"
                         "public-endpoint = https://db.example.com:443/\n"
                         "trust-forwarded = false\nlog-level = debug\n"
                         "consistency = boundedstaleness\nmerge = never\nextensions\n"
                         "logical-partition-max = 64k\n"});
    assert_string_equal(o.host, "0.0.0.0");
    assert_string_equal(o.key, KEY);
    assert_true(o.key_is_given);
    assert_string_equal(o.secondary_key, "s1");
    assert_string_equal(o.read_only_key, "r1");
    assert_string_equal(o.secondary_read_only_key, "r2");
    assert_true(o.allow_development_key);
    assert_string_equal(o.cert, "c.pem");
    assert_string_equal(o.cert_key, "k.pem");
    assert_int_equal(o.durability, STORE_DURABILITY_RELAXED);
    assert_true(o.accept_lost_writes);
    assert_false(o.throughput.is_enforced);
    assert_false(o.throughput.has_burst);
    assert_true(o.throughput.is_serverless);
    assert_int_equal(o.throughput.partition_ru, 1000);
    assert_int_equal(o.throughput.new_partition_ru, 0);
    assert_int_equal(o.throughput.fallback.mode, PROVISION_MANUAL);
    assert_int_equal(o.throughput.fallback.ru, 900);
    assert_int_equal(o.threads, 3);
    assert_int_equal(o.connections_max, 10);
    assert_int_equal(o.idle_timeout_s, 20);
    assert_int_equal(o.request_timeout_s, 40);
    assert_string_equal(o.account, "contoso-1");
    assert_string_equal(o.region, "West Europe 2");
    assert_string_equal(o.public_endpoint, "https://db.example.com:443/");
    assert_false(o.trust_forwarded);
    assert_int_equal(o.log_level, LOG_LEVEL_DEBUG);
    assert_int_equal(o.consistency, CONSISTENCY_BOUNDED_STALENESS);
    assert_int_equal(o.merge, API_MERGE_NEVER);
    assert_true(o.extensions);
    assert_int_equal(o.logical_partition_bytes_max, 64 << 10);
}

static void entries_of_a_list_add_up_where_they_are_given(void **state)
{
    (void)state;
    static const struct {
        Try try;
        const char *cors, *allow_host;
    } rows[] = {
        {{.arguments = {NULL}}, "", ""},
        {{.arguments = {"--cors", "http://a", "--cors=http://b:1,null"}},
         "http://a,http://b:1,null",
         ""},
        {{.arguments = {"--cors", "*"}, .config = "cors = http://c\n"}, "*", ""},
        {{.environment = {"ORRERY_ALLOW_HOST=a, *.b"}, .config = "allow-host = c\n"}, "", "a, *.b"},
        {{.config = "allow-host = a\nallow-host = b\ncors = vscode-webview://c\n"},
         "vscode-webview://c",
         "a,b"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        AUTO(arena_done) Arena arena;
        arena_init(&arena, 1024);
        ServeOptions o = parse_good(&arena, &rows[i].try);
        assert_string_equal(o.cors, rows[i].cors);
        assert_string_equal(o.allow_host, rows[i].allow_host);
    }
}

static const struct {
    Try input;
    const char *says;
} REFUSED[] = {
    {{.arguments = {"--logical-partition-max=lots"}}, "--logical-partition-max must be a size"},
    {{.arguments = {"--prot", "1"}}, "did you mean 'port'?"},
    {{.arguments = {"--pport=1"}}, "command line: there is no option 'pport'; did you mean"},
    {{.arguments = {"--xyzzy-plugh"}}, "'orrery serve --help' lists them"},
    {{.arguments = {"port"}}, "'port' is not an option"},
    {{.arguments = {"-p", "1"}}, "'-p' is not an option"},
    {{.arguments = {""}}, "'' is not an option"},
    {{.arguments = {"--"}}, "there is no option ''"},
    {{.arguments = {"--=1"}}, "there is no option ''"},
    {{.arguments = {"--port"}}, "--port needs a value: --port N"},
    {{.arguments = {"--Port", "1"}}, "did you mean 'port'?"},
    {{.environment = {"ORRERY_PROT=1"}}, "environment (ORRERY_...)"},
    {{.environment = {"ORRERY_PROT=1"}}, "did you mean 'port'?"},
    {{.environment = {"ORRERY_=1"}}, "there is no option ''"},
    {{.config = "port = 1\nprot = 2\n"}, ":2: there is no option 'prot'; did you mean 'port'?"},
    {{.config = "port\n"}, ":1: expected 'port = N'"},
    {{.config = "= 1\n"}, ":1: there is no option ''"},
    {{.config = "\n\nconfig = other\n"}, ":3: a configuration file cannot name another one"},
    {{.arguments = {"--port", "x"}}, "--port must be a whole number from 0 to 65535, not 'x'"},
    {{.arguments = {"--port", "65536"}}, "not '65536'"},
    {{.arguments = {"--port", "-1"}}, "not '-1'"},
    {{.arguments = {"--port", ""}}, "not ''"},
    {{.arguments = {"--port="}}, "not ''"},
    {{.arguments = {"--port", "1 "}}, "not '1 '"},
    {{.arguments = {"--port", "99999999999999999999999"}}, "--port must be"},
    {{.arguments = {"--threads", "257"}}, "from 0 to 256"},
    {{.arguments = {"--connections-max", "1000001"}}, "from 0 to 1000000"},
    {{.arguments = {"--connections-max", "0"}}, "at least 1"},
    {{.arguments = {"--idle-timeout", "0"}}, "at least 1"},
    {{.arguments = {"--idle-timeout", "86401"}}, "from 0 to 86400"},
    {{.arguments = {"--request-timeout", "0"}}, "at least 1"},
    {{.arguments = {"--request-timeout", "3601"}}, "from 0 to 3600"},
    {{.arguments = {"--memory", "639M"}}, "--memory must be at least 640M"},
    {{.arguments = {"--memory", "1G", "--cache", "1G"}}, "has no room for --cache 1024M"},
    {{.arguments = {"--address-connections-max", "1000001"}}, "from 0 to 1000000"},
    {{.arguments = {"--address-failures-max", "many"}}, "--address-failures-max"},
    {{.arguments = {"--require-tls=perhaps"}}, "--require-tls"},
    {{.arguments = {"--no-sandbox=perhaps"}}, "--no-sandbox"},
    {{.arguments = {"--memory", "much"}}, "such as 64M"},
    {{.arguments = {"--allow-host", "a:8081"}}, "without a port, such as cosmos"},
    {{.arguments = {"--allow-host", "a,,b"}}, "not ''"},
    {{.arguments = {"--allow-host", "a*"}}, "not 'a*'"},
    {{.arguments = {"--cors", "localhost"}}, "--cors must be origins without a path"},
    {{.arguments = {"--cors", "http://a/"}}, "not 'http://a/'"},
    {{.arguments = {"--cors", "http://"}}, "not 'http://'"},
    {{.arguments = {"--cors", "http://a,b"}}, "not 'b'"},
    {{.arguments = {"--cache", "big"}}, "--cache must be a size such as 64M or 4G, not 'big'"},
    {{.arguments = {"--cache", "M"}}, "not 'M'"},
    {{.arguments = {"--cache", "-1M"}}, "not '-1M'"},
    {{.arguments = {"--cache", "1.5G"}}, "not '1.5G'"},
    {{.arguments = {"--cache", "1T"}}, "not '1T'"},
    {{.arguments = {"--cache", "1048577G"}}, "not '1048577G'"},
    {{.arguments = {"--cache", "18446744073709551615K"}}, "--cache must be"},
    {{.arguments = {"--trust-forwarded=maybe"}}, "takes no value, or true or false"},
    {{.environment = {"ORRERY_TRUST_FORWARDED="}}, "not ''"},
    {{.arguments = {"--allow-development-key=1"}}, "not '1'"},
    {{.arguments = {"--no-rate-limit=yes"}}, "not 'yes'"},
    {{.arguments = {"--no-burst=yes"}}, "not 'yes'"},
    {{.arguments = {"--serverless=yes"}}, "not 'yes'"},
    {{.arguments = {"--partition-ru", "399"}}, "--partition-ru must be at least 400"},
    {{.arguments = {"--partition-ru", "1000001"}}, "from 0 to 1000000"},
    {{.arguments = {"--default-ru", "300"}},
     "--default-ru: Requested throughput 300 is less than required minimum throughput 400"},
    {{.arguments = {"--default-ru", "450"}}, "in increments of 100"},
    {{.arguments = {"--default-ru", "10100"}}, "from 0 to 10000"},
    {{.arguments = {"--durability", "none"}}, "must be sync or relaxed, not 'none'"},
    {{.arguments = {"--durability", "Sync"}}, "not 'Sync'"},
    {{.arguments = {"--consistency", "Linear"}},
     "Session, ConsistentPrefix or Eventual, not 'Linear'"},
    {{.arguments = {"--consistency="}}, "not ''"},
    {{.arguments = {"--merge", "sometimes"}}, "auto, always or never, not 'sometimes'"},
    {{.arguments = {"--charges", "/nothing/here"}}, "cannot read '/nothing/here'"},
    {{.arguments = {"--log-level", "loud"}}, "error, warn, info or debug, not 'loud'"},
    {{.arguments = {"--data", ""}}, "--data and --host must not be empty"},
    {{.arguments = {"--host="}}, "--data and --host must not be empty"},
    {{.arguments = {"--cert", "c.pem"}}, "--cert and --cert-key go together"},
    {{.arguments = {"--cert-key", "k.pem"}}, "--cert and --cert-key go together"},
    {{.arguments = {"--key", KEY, "--key-file", "f"}}, "exclude each other"},
    {{.arguments = {"--key-file", "/nothing/here"}}, "cannot read '/nothing/here'"},
    {{.arguments = {"--config", "/nothing/here"}}, "cannot read '/nothing/here'"},
    {{.environment = {"ORRERY_CONFIG=/nothing/here"}}, "cannot read '/nothing/here'"},
    {{.arguments = {"--account", ""}}, "--account must be a name"},
    {{.arguments = {"--account", "a b"}}, "found 'a b'"},
    {{.arguments = {"--account", "a\"b"}}, "--account must be a name"},
    {{.arguments = {"--account", "localhost"}}, "not 'localhost'"},
    {{.arguments = {"--region", ""}}, "--region must be a name"},
    {{.arguments = {"--region", " West"}}, "found ' West'"},
    {{.arguments = {"--region", "West\n"}}, "--region must be a name"},
    {{.arguments = {"--public-endpoint", "db.example.com"}}, "must be a URL"},
    {{.arguments = {"--public-endpoint", "http://db.example.com"}}, "ends with '/'"},
    {{.arguments = {"--public-endpoint", "ftp://db.example.com/"}}, "must be a URL"},
    {{.arguments = {"--public-endpoint", "http://a\"b/"}}, "must be a URL"},
    {{.arguments = {"--public-endpoint", "http://a b/"}}, "must be a URL"},
    {{.arguments = {"--public-endpoint", "http://\xc3\xa9/"}}, "must be a URL"},
};

static void what_is_not_understood_is_refused_with_a_hint(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(REFUSED); i++) {
        AUTO(arena_done) Arena arena;
        arena_init(&arena, 1024);
        ServeOptions options = {.port = 77};
        bool help = false;
        Error err = {0};
        if (parse(&arena, &REFUSED[i].input, &options, &help, &err) == STATUS_OK)
            fail_msg("row %zu was accepted: %s", i, REFUSED[i].says);
        if (strstr(err.message, REFUSED[i].says) == NULL)
            fail_msg("row %zu: expected '%s' in '%s'", i, REFUSED[i].says, err.message);
        assert_int_equal(options.port, 77); /* not written */
    }
}

static void a_key_may_be_in_a_file(void **state)
{
    (void)state;
    static const struct {
        Slice text;
        const char *key; /* NULL if the text is refused */
    } rows[] = {
        {SLICE_INIT(KEY), KEY},
        {SLICE_INIT(KEY "\n"), KEY},
        {SLICE_INIT("  " KEY " \r\nmore\n"), KEY},
        {SLICE_INIT(""), NULL},
        {SLICE_INIT(KEY "\0more"), NULL},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        AUTO(arena_done) Arena arena;
        arena_init(&arena, 1024);
        AUTO(file_done) TestFile file = {0};
        file_write(&file, rows[i].text);
        Try t = {.arguments = {"--key-file", file.path}};
        if (rows[i].key != NULL) {
            ServeOptions o = parse_good(&arena, &t);
            assert_string_equal(o.key, rows[i].key);
            assert_true(o.key_is_given);
            continue;
        }
        ServeOptions options;
        bool help = false;
        Error err = {0};
        assert_int_equal(parse(&arena, &t, &options, &help, &err), STATUS_BAD_REQUEST);
        assert_non_null(strstr(err.message, rows[i].text.len == 0 ? "no key" : "not a text file"));
    }
}

static void keys_are_hidden_where_others_could_see_them(void **state)
{
    (void)state;
    char a[] = "--key";
    char b[] = "secret1";
    char c[] = "--secondary-key=secret2";
    char d[] = "--account";
    char e[] = "--key"; /* the account's name, as far as the parser is concerned */
    char f[] = "--read-only-key";
    char *argv[] = {a, b, c, d, e, f};
    char g[] = "ORRERY_KEY=secret3";
    char h[] = "ORRERY_KEY_FILE=/etc/key";
    char i[] = "ORRERY_SECONDARY_READ_ONLY_KEY=secret4";
    char j[] = "KEY=other";
    char k[] = "ORRERY_KEY";
    char *environment[] = {g, h, i, j, k, NULL};
    options_hide(ARRAY_COUNT(argv), argv, environment);
    assert_string_equal(a, "--key");
    assert_string_equal(b, "*******");
    assert_string_equal(c, "--secondary-key=*******");
    assert_string_equal(e, "--key");
    assert_string_equal(f, "--read-only-key");
    assert_string_equal(g, "ORRERY_KEY=*******");
    assert_string_equal(h, "ORRERY_KEY_FILE=/etc/key");
    assert_string_equal(i, "ORRERY_SECONDARY_READ_ONLY_KEY=*******");
    assert_string_equal(j, "KEY=other");
    assert_string_equal(k, "ORRERY_KEY");
}

static void hiding_keys_does_not_change_what_was_parsed(void **state)
{
    (void)state;
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 1024);
    char name[] = "--key";
    char value[] = KEY;
    char joined[] = "--read-only-key=r1";
    char *argv[] = {name, value, joined};
    char variable[] = "ORRERY_SECONDARY_KEY=s1";
    char *environment[] = {variable, NULL};
    ServeOptions o = {0};
    bool help = false;
    Error err = {0};
    assert_int_equal(options_parse(&arena, 3, argv, environment, &o, &help, &err), STATUS_OK);
    options_hide(3, argv, environment);
    assert_string_equal(o.key, KEY);
    assert_string_equal(o.key_option, "--key");
    assert_string_equal(o.read_only_key, "r1");
    assert_string_equal(o.secondary_key, "s1");
}

static void charges_may_be_in_a_file(void **state)
{
    (void)state;
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 1024);
    AUTO(file_done) TestFile file = {0};
    file_write(&file, SLICE("failed = 3\n"));
    Try t = {.arguments = {"--charges", file.path}};
    ServeOptions o = parse_good(&arena, &t);
    assert_int_equal(charge_failed(o.charges), 300);
    AUTO(file_done) TestFile bad = {0};
    file_write(&bad, SLICE("\nfailed = -3\n"));
    Try u = {.arguments = {"--charges", bad.path}};
    bool help = false;
    Error err = {0};
    assert_int_equal(parse(&arena, &u, &o, &help, &err), STATUS_BAD_REQUEST);
    assert_non_null(strstr(err.message, bad.path));
    assert_non_null(strstr(err.message, "line 2: '-3' is not a number"));
}

static void a_file_beyond_its_bound_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *option;
        size_t bytes_max;
    } rows[] = {{"--key-file", 4 << 10}, {"--config", 64 << 10}, {"--charges", 64 << 10}};
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        for (size_t extra = 0; extra < 2; extra++) {
            AUTO(arena_done) Arena arena;
            arena_init(&arena, 1024);
            char *text = arena_alloc(&arena, rows[i].bytes_max + 1);
            memset(text, '\n', rows[i].bytes_max + 1);
            if (strcmp(rows[i].option, "--key-file") == 0)
                text[0] = 'k';
            AUTO(file_done) TestFile file = {0};
            file_write(&file, slice_make(text, rows[i].bytes_max + extra));
            ServeOptions options;
            bool help = false;
            Error err = {0};
            Try t = {.arguments = {rows[i].option, file.path}};
            Status status = parse(&arena, &t, &options, &help, &err);
            assert_int_equal(status, extra == 0 ? STATUS_OK : STATUS_BAD_REQUEST);
        }
    }
    /* A folder is no file. */
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 1024);
    ServeOptions options;
    bool help = false;
    Error err = {0};
    Try t = {.arguments = {"--config", "/tmp"}};
    assert_int_not_equal(parse(&arena, &t, &options, &help, &err), STATUS_OK);
}

static void an_endpoint_has_its_bound(void **state)
{
    (void)state;
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 1024);
    char url[1026];
    memset(url, 'a', sizeof(url));
    memcpy(url, "http://", 7);
    url[1023] = '/';
    url[1024] = '\0';
    ServeOptions o = parse_good(&arena, &(Try){.arguments = {"--public-endpoint", url}});
    assert_int_equal(strlen(o.public_endpoint), 1024);
    url[1023] = 'a';
    url[1024] = '/';
    url[1025] = '\0';
    bool help = false;
    Error err = {0};
    Try t = {.arguments = {"--public-endpoint", url}};
    assert_int_equal(parse(&arena, &t, &o, &help, &err), STATUS_BAD_REQUEST);
}

static void help_is_given_before_anything_is_read(void **state)
{
    (void)state;
    static const Try rows[] = {
        {.arguments = {"--help"}},
        {.arguments = {"-h"}},
        {.arguments = {"--port", "1", "--help", "--nonsense"}},
        {.arguments = {"--config", "/nothing/here", "-h"}, .environment = {"ORRERY_PROT=1"}},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        AUTO(arena_done) Arena arena;
        arena_init(&arena, 1024);
        ServeOptions options;
        bool help = false;
        Error err = {0};
        assert_int_equal(parse(&arena, &rows[i], &options, &help, &err), STATUS_OK);
        assert_true(help);
    }
}

static void help_names_every_option(void **state)
{
    (void)state;
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);
    assert_non_null(out);
    arguments_print_help(&SERVE_OPTIONS, out);
    assert_int_equal(fclose(out), 0);
    static const char *const names[] = {
#define OPTION_ROW(field, name, kind, placeholder, fallback, help) "--" name " ",
#include "cli/options.def"
#undef OPTION_ROW
    };
    for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
        if (strstr(text, names[i]) == NULL)
            fail_msg("help does not name %s", names[i]);
    }
    assert_non_null(strstr(text, "(8081)"));
    free(text);
}

static void the_nearest_word_is_a_slip_away(void **state)
{
    (void)state;
    static const char *const words[] = {"serve", "version", "help", NULL};
    static const struct {
        const char *word, *nearest;
    } rows[] = {
        {"serve", "serve"},
        {"server", "serve"},
        {"sreve", "serve"},
        {"Serve", "serve"},
        {"versoin", "version"},
        {"hlep", "help"},
        {"something", NULL},
        {"", NULL},
        {"x", NULL},
        {"a word that is much longer than any other word and longer than the table is wide", NULL},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        const char *nearest = options_nearest(rows[i].word, words);
        if (rows[i].nearest == NULL)
            assert_null(nearest);
        else
            assert_string_equal(nearest, rows[i].nearest);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_a_word_the_defaults_hold),
        cmocka_unit_test(every_way_says_the_same),
        cmocka_unit_test(every_option_has_its_place),
        cmocka_unit_test(entries_of_a_list_add_up_where_they_are_given),
        cmocka_unit_test(what_is_not_understood_is_refused_with_a_hint),
        cmocka_unit_test(a_key_may_be_in_a_file),
        cmocka_unit_test(keys_are_hidden_where_others_could_see_them),
        cmocka_unit_test(hiding_keys_does_not_change_what_was_parsed),
        cmocka_unit_test(charges_may_be_in_a_file),
        cmocka_unit_test(a_file_beyond_its_bound_is_refused),
        cmocka_unit_test(an_endpoint_has_its_bound),
        cmocka_unit_test(help_is_given_before_anything_is_read),
        cmocka_unit_test(help_names_every_option),
        cmocka_unit_test(the_nearest_word_is_a_slip_away),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
