/* auth_test.c - signatures against published vectors, and every way to be refused. */
#include "api/core/auth.h"
#include "base/date.h"
#include "base/encoding.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define DATE "Tue, 01 Oct 2024 12:00:00 GMT"
#define FORM "Authorization header doesn't confirm to the required format"
#define OTHER_KEY \
    "dsZQi3KtZmCv1ljt3VNWNm7sQUF1y5rJfC6kv5JiwvW0EndXdDku/dkKBp8/ufDToSxLzR4y+O/0H/t4bQtVNw=="

static int64_t now_s(void)
{
    int64_t s = 0;
    assert_true(date_parse(SLICE(DATE), &s));
    return s;
}

static void signatures_match_published_ones(void **state)
{
    (void)state;
    static const struct {
        const char *key, *verb, *type, *link, *date, *signature;
    } rows[] = {
        {OTHER_KEY, "GET", "dbs", "dbs/ToDoList", "Thu, 27 Apr 2017 00:51:12 GMT",
         "c09PEVJrgp2uQRkr934kFbTqhByc7TVr3OHyqlu+c+c="},
        {AUTH_DEVELOPMENT_KEY, "GET", "", "", DATE, "TCpv7klme4e3gg7gFSCpnubeVH8DBNZoqM4ZACzc4DM="},
        {AUTH_DEVELOPMENT_KEY, "GET", "dbs", "", DATE,
         "JnbDuadJpQ+uNmoXG13ZiUqJmDFSbNhpdt5vxWJgZzg="},
        {AUTH_DEVELOPMENT_KEY, "POST", "dbs", "", DATE,
         "CExRYYHKTOE3hfR48gRloqdIxY/2B9gaKOP89LBs9Tw="},
        {AUTH_DEVELOPMENT_KEY, "GET", "colls", "dbs/Db1/colls/C1", DATE,
         "3GZYkprlnliLNBemtPv0kQRMr2hR6QZMlHllG7WEKUw="},
        {AUTH_DEVELOPMENT_KEY, "POST", "docs", "dbs/Db1/colls/C1", DATE,
         "PS1GAbammID86nDsTyzNAw5IadxnP2M2r7Mxc1Uxsoo="},
        {AUTH_DEVELOPMENT_KEY, "GET", "docs", "dbs/Db1/colls/C1/docs/Item 1", DATE,
         "uqkx2cvZiu6wUnYkAuVXN8uTETB3UDFf/VYkep3DJxA="},
        {AUTH_DEVELOPMENT_KEY, "GET", "pkranges", "lgf8aijfxas=", DATE,
         "OVnaU5TMrMYtRweBqAuHOjYEFQA8SYNoW9/QOWFTNvg="},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        char signature[AUTH_SIGNATURE_LEN];
        Error err;
        assert_int_equal(auth_sign(slice_from_cstr(rows[i].key), slice_from_cstr(rows[i].verb),
                                   slice_from_cstr(rows[i].type), slice_from_cstr(rows[i].link),
                                   slice_from_cstr(rows[i].date), signature, &err),
                         STATUS_OK);
        assert_memory_equal(signature, rows[i].signature, AUTH_SIGNATURE_LEN);
    }
}

typedef struct Try {
    const char *method, *path, *authorization, *x_ms_date, *date;
    int64_t now_offset_s;
} Try;

static Status check(const Try *t, Principal *principal, Error *err)
{
    AUTO(auth_keys_close) AuthKeys *keys = NULL;
    AuthKeyTexts texts = {.primary = SLICE(OTHER_KEY),
                          .secondary = SLICE(AUTH_DEVELOPMENT_KEY),
                          .primary_read_only = SLICE("cmVhZA==")};
    assert_int_equal(auth_keys_open(texts, &keys, err), STATUS_OK);
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 1024);
    Address address;
    assert_int_equal(address_parse(&arena, slice_from_cstr(t->path), &address, err), STATUS_OK);
    AuthRequest request = {
        .method = slice_from_cstr(t->method),
        .address = &address,
        .authorization = slice_from_cstr(t->authorization),
        .x_ms_date = slice_from_cstr(t->x_ms_date),
        .date = slice_from_cstr(t->date),
    };
    AuthToken token;
    TRY(auth_parse(&arena, request.authorization, &token, err));
    assert_int_equal(token.scheme, AUTH_MASTER);
    return auth_check(keys, &request, &token, now_s() + t->now_offset_s, &arena, principal, err);
}

#define C1_SIG_ENCODED "3GZYkprlnliLNBemtPv0kQRMr2hR6QZMlHllG7WEKUw%3D"

static void every_form_that_sdks_send_is_accepted(void **state)
{
    (void)state;
    static const Try rows[] = {
        {"GET", "/dbs/Db1/colls/C1", "type%3Dmaster%26ver%3D1.0%26sig%3D" C1_SIG_ENCODED, DATE, "",
         0},
        {"GET", "/dbs/Db1/colls/C1/", "type%3dmaster%26ver%3d1.0%26sig%3d" C1_SIG_ENCODED, DATE, "",
         0},
        {"get", "//dbs/Db1/colls/C1",
         "type=Master&ver=1.0&sig=3GZYkprlnliLNBemtPv0kQRMr2hR6QZMlHllG7WEKUw=", DATE, "", 0},
        {"GET", "/dbs/Db1/colls/C1",
         "type=master&ver=1.0&sig=3GZYkprlnliLNBemtPv0kQRMr2hR6QZMlHllG7WEKUw=,more", DATE, "", 0},
        /* a '+' in an unencoded signature stays a '+' */
        {"GET", "/dbs", "type=master&ver=1.0&sig=JnbDuadJpQ+uNmoXG13ZiUqJmDFSbNhpdt5vxWJgZzg=",
         "TUE, 01 oct 2024 12:00:00 gmt", "", 0},
        /* resource ids are signed alone, in lower case */
        {"GET", "/dbs/lGF8AA==/colls/lGf8AiJfXaS=/pkranges",
         "type=master&ver=1.0&sig=OVnaU5TMrMYtRweBqAuHOjYEFQA8SYNoW9/QOWFTNvg=", DATE, "", 0},
        {"GET", "/dbs/Db1/colls/C1/docs/Item%201",
         "type=master&ver=1.0&sig=uqkx2cvZiu6wUnYkAuVXN8uTETB3UDFf/VYkep3DJxA=", DATE, "", 0},
        /* the edges of the window */
        {"GET", "/dbs/Db1/colls/C1", "type%3Dmaster%26ver%3D1.0%26sig%3D" C1_SIG_ENCODED, DATE, "",
         -900},
        {"GET", "/dbs/Db1/colls/C1", "type%3Dmaster%26ver%3D1.0%26sig%3D" C1_SIG_ENCODED, DATE, "",
         1800},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        Principal principal = {.kind = PRINCIPAL_READ_ONLY_KEY};
        Error err = {0};
        print_message("%zu: %s\n", i, rows[i].path);
        Status status = check(&rows[i], &principal, &err);
        if (status != STATUS_OK)
            print_message("%s\n", err.message);
        assert_int_equal(status, STATUS_OK);
        assert_int_equal(principal.kind, PRINCIPAL_KEY);
    }
}

typedef struct Refusal {
    Try request;
    Status status;
    int sub;
    const char *says;
} Refusal;

static void expect_refusals(const Refusal *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        Principal principal = {.kind = PRINCIPAL_READ_ONLY_KEY};
        Error err = {0};
        print_message("%zu: %s\n", i, rows[i].says);
        assert_int_equal(check(&rows[i].request, &principal, &err), rows[i].status);
        assert_int_equal(sub_number(err.sub), rows[i].sub);
        assert_non_null(strstr(err.message, rows[i].says));
    }
}

static void tokens_that_cannot_be_read_are_refused_with_a_reason(void **state)
{
    (void)state;
    static const Refusal ROWS[] = {
        {{"GET", "/dbs", "", DATE, "", 0}, STATUS_UNAUTHORIZED, 5000, "missing"},
        {{"GET", "/dbs", "nonsense", DATE, "", 0}, STATUS_UNAUTHORIZED, 5001, FORM},
        {{"GET", "/dbs", "null", DATE, "", 0}, STATUS_UNAUTHORIZED, 5001, FORM},
        {{"GET", "/dbs", "invalid", DATE, "", 0}, STATUS_UNAUTHORIZED, 5001, FORM},
        {{"GET", "/dbs", "type=master&ver=1.0", DATE, "", 0}, STATUS_UNAUTHORIZED, 5001, FORM},
        {{"GET", "/dbs", "type=&ver=1.0&sig=x", DATE, "", 0}, STATUS_UNAUTHORIZED, 5001, FORM},
        {{"GET", "/dbs", "type=master&ver=&sig=x", DATE, "", 0}, STATUS_UNAUTHORIZED, 5001, FORM},
        {{"GET", "/dbs", "type=master&ver=1.0&sig=", DATE, "", 0}, STATUS_UNAUTHORIZED, 5001, FORM},
        {{"GET", "/dbs", "Type=master&ver=1.0&sig=x", DATE, "", 0},
         STATUS_UNAUTHORIZED,
         5001,
         FORM},
        {{"GET", "/dbs", "type=master&ver=1.0&sig=%zz", DATE, "", 0},
         STATUS_UNAUTHORIZED,
         5001,
         FORM},
        {{"GET", "/dbs", "type=master&ver=1.0&sig=AAAA", DATE, "", 0},
         STATUS_UNAUTHORIZED,
         5001,
         "malformed"},
        {{"GET", "/dbs",
          "type=master&ver=2.0&sig=JnbDuadJpQ+uNmoXG13ZiUqJmDFSbNhpdt5vxWJgZzg=", DATE, "", 0},
         STATUS_UNAUTHORIZED,
         5001,
         "malformed"},
        {{"GET", "/dbs", "type=odd&ver=1.0&sig=x", DATE, "", 0},
         STATUS_UNAUTHORIZED,
         5001,
         "'odd'"},
    };
    expect_refusals(ROWS, ARRAY_COUNT(ROWS));
}

/* A header may be as long as its kind allows, and no longer. */
static void tokens_have_a_length_by_their_kind(void **state)
{
    (void)state;
    static const struct {
        const char *type;
        AuthScheme scheme;
        size_t bytes_max;
    } rows[] = {
        {"master", AUTH_MASTER, 1024},
        {"resource", AUTH_RESOURCE, 8192},
        {"AAD", AUTH_IDENTITY, 16384},
    };
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 1024);
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        char text[16386];
        memset(text, 'x', sizeof(text));
        Slice head = arena_format(&arena, "type=%s&ver=1&sig=", rows[i].type);
        memcpy(text, head.ptr, head.len);
        AuthToken token;
        Error err;
        assert_int_equal(auth_parse(&arena, slice_make(text, rows[i].bytes_max), &token, &err),
                         STATUS_OK);
        assert_int_equal(token.scheme, rows[i].scheme);
        assert_int_equal(token.signature.len, rows[i].bytes_max - head.len);
        assert_int_equal(auth_parse(&arena, slice_make(text, rows[i].bytes_max + 1), &token, &err),
                         STATUS_UNAUTHORIZED);
        assert_non_null(strstr(err.message, FORM));
    }
}

static void other_signatures_and_dates_are_refused_with_a_reason(void **state)
{
    (void)state;
    static const Refusal ROWS[] = {
        /* right signature for another verb, another link, another date */
        {{"POST", "/dbs",
          "type=master&ver=1.0&sig=JnbDuadJpQ+uNmoXG13ZiUqJmDFSbNhpdt5vxWJgZzg=", DATE, "", 0},
         STATUS_UNAUTHORIZED,
         0,
         "'post\\ndbs\\n\\ntue, 01 oct 2024 12:00:00 gmt\\n\\n'"},
        {{"GET", "/dbs/Db1/colls/c1", "type%3Dmaster%26ver%3D1.0%26sig%3D" C1_SIG_ENCODED, DATE, "",
          0},
         STATUS_UNAUTHORIZED,
         0,
         "dbs/Db1/colls/c1"},
        {{"GET", "/dbs", "type=master&ver=1.0&sig=JnbDuadJpQ+uNmoXG13ZiUqJmDFSbNhpdt5vxWJgZzg=",
          "Tue, 01 Oct 2024 12:00:01 GMT", "", 0},
         STATUS_UNAUTHORIZED,
         0,
         "12:00:01"},
        /* no date, a date that is none, outside the window */
        {{"GET", "/dbs", "type=master&ver=1.0&sig=JnbDuadJpQ+uNmoXG13ZiUqJmDFSbNhpdt5vxWJgZzg=", "",
          "", 0},
         STATUS_UNAUTHORIZED,
         0,
         "date"},
        {{"GET", "/dbs", "type=master&ver=1.0&sig=JnbDuadJpQ+uNmoXG13ZiUqJmDFSbNhpdt5vxWJgZzg=",
          "2024-10-01", "", 0},
         STATUS_UNAUTHORIZED,
         0,
         "2024-10-01"},
        {{"GET", "/dbs/Db1/colls/C1", "type%3Dmaster%26ver%3D1.0%26sig%3D" C1_SIG_ENCODED, DATE, "",
          -901},
         STATUS_FORBIDDEN,
         0,
         "token start time: Tue, 01 Oct 2024 12:00:00 GMT"},
        {{"GET", "/dbs/Db1/colls/C1", "type%3Dmaster%26ver%3D1.0%26sig%3D" C1_SIG_ENCODED, DATE, "",
          1801},
         STATUS_FORBIDDEN,
         0,
         "current server time"},
        /* the last date that there is: what is added to it has no form of its own */
        {{"GET", "/dbs", "type=master&ver=1.0&sig=JnbDuadJpQ+uNmoXG13ZiUqJmDFSbNhpdt5vxWJgZzg=",
          "Fri, 31 Dec 9999 23:59:59 GMT", "", 0},
         STATUS_FORBIDDEN,
         0,
         "token expiry time: Fri, 31 Dec 9999 23:59:59 GMT"},
        {{"GET", "/dbs", "type=master&ver=1.0&sig=JnbDuadJpQ+uNmoXG13ZiUqJmDFSbNhpdt5vxWJgZzg=",
          DATE, "", INT64_C(1) << 44},
         STATUS_FORBIDDEN,
         0,
         "current server time: Fri, 31 Dec 9999 23:59:59 GMT"},
    };
    expect_refusals(ROWS, ARRAY_COUNT(ROWS));
}

/* Signs as a client would that has only 'key'. */
static Slice sign(Arena *arena, Slice key, Slice verb, Slice type, Slice link)
{
    char signature[AUTH_SIGNATURE_LEN];
    Error err;
    assert_int_equal(auth_sign(key, verb, type, link, SLICE(DATE), signature, &err), STATUS_OK);
    return arena_format(arena, "type=master&ver=1.0&sig=%.*s", AUTH_SIGNATURE_LEN, signature);
}

static void a_read_only_key_gives_read_access(void **state)
{
    (void)state;
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 1024);
    Slice token = sign(&arena, SLICE("cmVhZA=="), SLICE("GET"), SLICE("dbs"), SLICE("dbs/d"));
    Try t = {"GET", "/dbs/d", arena_cstr(&arena, token), DATE, "", 0};
    Principal principal = {.kind = PRINCIPAL_KEY};
    Error err = {0};
    assert_int_equal(check(&t, &principal, &err), STATUS_OK);
    assert_int_equal(principal.kind, PRINCIPAL_READ_ONLY_KEY);
}

static void the_date_header_counts_when_there_is_no_other(void **state)
{
    (void)state;
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 1024);
    /* The fourth line is then empty and the fifth holds the date. */
    Slice token = sign(&arena, SLICE(OTHER_KEY), SLICE("GET"), SLICE("dbs"), SLICE("dbs/d"));
    Try t = {"GET", "/dbs/d", arena_cstr(&arena, token), "", DATE, 0};
    Principal principal = {.kind = PRINCIPAL_READ_ONLY_KEY};
    Error err = {0};
    assert_int_equal(check(&t, &principal, &err), STATUS_UNAUTHORIZED);
    assert_non_null(
        strstr(err.message, "'get\\ndbs\\ndbs/d\\n\\ntue, 01 oct 2024 12:00:00 gmt\\n'"));
    t.x_ms_date = DATE;
    t.date = "Wed, 02 Oct 2024 12:00:00 GMT";
    assert_int_equal(check(&t, &principal, &err), STATUS_OK);
}

static void keys_that_are_not_base64_are_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {"", "A", "====", "A*==", "AAAA=AAA"};
    for (size_t i = 0; i < ARRAY_COUNT(bad); i++) {
        AUTO(auth_keys_close) AuthKeys *keys = NULL;
        Error err = {0};
        AuthKeyTexts texts = {.primary = slice_from_cstr(bad[i])};
        assert_int_equal(auth_keys_open(texts, &keys, &err), STATUS_BAD_REQUEST);
        assert_non_null(strstr(err.message, "primary key"));
        assert_null(keys);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(signatures_match_published_ones),
        cmocka_unit_test(every_form_that_sdks_send_is_accepted),
        cmocka_unit_test(tokens_that_cannot_be_read_are_refused_with_a_reason),
        cmocka_unit_test(tokens_have_a_length_by_their_kind),
        cmocka_unit_test(other_signatures_and_dates_are_refused_with_a_reason),
        cmocka_unit_test(a_read_only_key_gives_read_access),
        cmocka_unit_test(the_date_header_counts_when_there_is_no_other),
        cmocka_unit_test(keys_that_are_not_base64_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
