/* identity_source_test.c - keys of an issuer that change, and tokens that are remembered. */
#include "api/core/identity_source.h"

#include "api/core/identity_testing_int.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define NOW_S  1700000000
#define CLAIMS "{\"iss\":\"i\",\"aud\":\"a\",\"exp\":1700003600,\"oid\":\"o\",\"roles\":\"reader\"}"

/* An issuer. */
typedef struct Issuer {
    Arena arena;
    Log log;
    EVP_PKEY *pairs[2];
    Slice sets[2]; /* with one of them each */
    AuthKeys *account;
    _Atomic int newest;   /* which set is read; -1 if it cannot be, -2 if it is no set */
    _Atomic int readings; /* how often it was */
} Issuer;

static Status load(void *ctx, Arena *arena, Slice *text, Error *err)
{
    Issuer *issuer = ctx;
    (void)atomic_fetch_add(&issuer->readings, 1);
    int newest = atomic_load(&issuer->newest);
    if (newest == -1)
        return error_set(err, STATUS_UNAVAILABLE, SUB_NONE, "not now");
    *text = arena_copy(arena, newest == -2 ? SLICE("{}") : issuer->sets[newest]);
    return STATUS_OK;
}

static int issuer_open(void **state)
{
    Issuer *issuer = MEM_NEW(Issuer);
    arena_init(&issuer->arena, 4096);
    issuer->log = (Log){.fd = open("/dev/null", O_WRONLY | O_CLOEXEC), .clock = clock_real()};
    static const char *const kids[] = {"\"kid\":\"0\"", "\"kid\":\"1\""};
    for (int i = 0; i < 2; i++) {
        issuer->pairs[i] = test_key("P-256", 0);
        Slice key = test_jwk(&issuer->arena, issuer->pairs[i], "P-256", kids[i]);
        issuer->sets[i] = arena_format(&issuer->arena, "{\"keys\":[%.*s]}", SLICE_ARG(key));
    }
    Error err;
    assert_int_equal(
        auth_keys_open((AuthKeyTexts){.primary = SLICE("b3du")}, &issuer->account, &err),
        STATUS_OK);
    *state = issuer;
    return 0;
}

static int issuer_close(void **state)
{
    Issuer *issuer = *state;
    for (int i = 0; i < 2; i++)
        EVP_PKEY_free(issuer->pairs[i]);
    auth_keys_close(issuer->account);
    (void)close(issuer->log.fd);
    arena_done(&issuer->arena);
    mem_free(issuer);
    return 0;
}

static Status source_open(Issuer *issuer, int newest, uint32_t reload_ms_min, IdentitySource **out)
{
    IdentitySourceOptions options = {
        .rules = {.issuer = SLICE("i"), .audiences = SLICE("a")},
        .load = load,
        .ctx = issuer,
        .log = &issuer->log,
        .reload_ms_min = reload_ms_min,
    };
    Error err;
    atomic_store(&issuer->newest, newest);
    atomic_store(&issuer->readings, 0);
    return identity_source_open(&options, out, &err);
}

static Slice token_of(Issuer *issuer, int pair)
{
    static const char *const headers[] = {"{\"alg\":\"ES256\",\"kid\":\"0\"}",
                                          "{\"alg\":\"ES256\",\"kid\":\"1\"}"};
    return test_token(&issuer->arena, issuer->pairs[pair], "ES256", slice_from_cstr(headers[pair]),
                      SLICE(CLAIMS));
}

static SubStatus read_at(Issuer *issuer, IdentityReader *reader, Slice token, int64_t now_s)
{
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 1024);
    Principal principal = {0};
    Error err = {0};
    if (identity_read(reader, issuer->account, 1, token, now_s, &arena, &principal, &err) !=
        STATUS_OK)
        return err.sub;
    assert_int_equal(principal.kind, PRINCIPAL_IDENTITY);
    assert_int_equal(principal.role, IDENTITY_READER);
    assert_true(slice_equal(principal.oid, SLICE("o")));
    assert_true(slice_equal(principal.name, SLICE("o")));
    return SUB_NONE;
}

static SubStatus read_one(Issuer *issuer, IdentityReader *reader, Slice token)
{
    return read_at(issuer, reader, token, NOW_S);
}

static void a_token_is_good_as_long_as_its_key_is(void **state)
{
    Issuer *issuer = *state;
    AUTO(identity_source_close) IdentitySource *source = NULL;
    IdentityReader reader;
    Error err;
    assert_int_equal(source_open(issuer, 0, 600000, &source), STATUS_OK);
    identity_reader_init(&reader, source);
    Slice token = token_of(issuer, 0);
    for (int i = 0; i < 3; i++) /* verified once, and remembered */
        assert_int_equal(read_one(issuer, &reader, token), SUB_NONE);
    assert_int_equal(read_at(issuer, &reader, token, NOW_S + 3901), SUB_IDENTITY_EXPIRED);
    assert_int_equal(read_one(issuer, &reader, token), SUB_NONE);
    atomic_store(&issuer->newest, 1);
    assert_int_equal(identity_source_reload(source, &err), STATUS_OK);
    assert_int_equal(read_one(issuer, &reader, token), SUB_IDENTITY_UNKNOWN_KEY);
    assert_int_equal(read_one(issuer, &reader, token_of(issuer, 1)), SUB_NONE);
    /* What cannot be read changes nothing. */
    atomic_store(&issuer->newest, -1);
    assert_int_equal(identity_source_reload(source, &err), STATUS_UNAVAILABLE);
    atomic_store(&issuer->newest, -2);
    assert_int_equal(identity_source_reload(source, &err), STATUS_BAD_REQUEST);
    assert_int_equal(read_one(issuer, &reader, token_of(issuer, 1)), SUB_NONE);
    identity_reader_done(&reader);
}

static void a_remembered_token_needs_all_of_its_characters(void **state)
{
    Issuer *issuer = *state;
    AUTO(identity_source_close) IdentitySource *source = NULL;
    IdentityReader reader;
    assert_int_equal(source_open(issuer, 0, 600000, &source), STATUS_OK);
    identity_reader_init(&reader, source);
    Slice token = token_of(issuer, 0);
    char *copy = arena_cstr(&issuer->arena, token);
    for (size_t i = 0; i + 1 < token.len; i += 3) {
        char was = copy[i];
        assert_int_equal(read_one(issuer, &reader, token), SUB_NONE);
        copy[i] = (char)(was == 'A' ? 'B' : 'A');
        assert_int_not_equal(read_one(issuer, &reader, slice_make(copy, token.len)), SUB_NONE);
        copy[i] = was;
    }
    identity_reader_done(&reader);
}

static void an_unknown_key_makes_the_source_read_again(void **state)
{
    Issuer *issuer = *state;
    AUTO(identity_source_close) IdentitySource *source = NULL;
    IdentityReader reader;
    assert_int_equal(source_open(issuer, -1, 1, &source), STATUS_OK); /* not to be had yet */
    identity_reader_init(&reader, source);
    Slice token = token_of(issuer, 1);
    assert_int_equal(read_one(issuer, &reader, token), SUB_IDENTITY_UNKNOWN_KEY);
    atomic_store(&issuer->newest, 0);
    while (read_one(issuer, &reader, token_of(issuer, 0)) != SUB_NONE)
        (void)usleep(1000);
    assert_int_equal(read_one(issuer, &reader, token), SUB_IDENTITY_UNKNOWN_KEY);
    atomic_store(&issuer->newest, 1);
    while (read_one(issuer, &reader, token) != SUB_NONE)
        (void)usleep(1000);
    identity_reader_done(&reader);
}

static void unknown_keys_do_not_make_it_read_all_the_time(void **state)
{
    Issuer *issuer = *state;
    AUTO(identity_source_close) IdentitySource *source = NULL;
    IdentityReader reader;
    assert_int_equal(source_open(issuer, 0, 600000, &source), STATUS_OK);
    identity_reader_init(&reader, source);
    Slice token = token_of(issuer, 1);
    for (int i = 0; i < 100; i++)
        assert_int_equal(read_one(issuer, &reader, token), SUB_IDENTITY_UNKNOWN_KEY);
    assert_int_equal(atomic_load(&issuer->readings), 1);
    identity_reader_done(&reader);
}

static void a_set_that_is_none_is_refused_at_the_start(void **state)
{
    Issuer *issuer = *state;
    IdentitySource *source = NULL;
    assert_int_equal(source_open(issuer, -2, 1, &source), STATUS_BAD_REQUEST);
    assert_null(source);
}

static void without_an_issuer_nothing_is_read(void **state)
{
    Issuer *issuer = *state;
    AUTO(identity_source_close) IdentitySource *source = NULL;
    IdentityReader reader;
    Error err;
    IdentitySourceOptions options = {.log = &issuer->log};
    assert_int_equal(identity_source_open(&options, &source, &err), STATUS_OK);
    assert_int_equal(identity_source_reload(source, &err), STATUS_OK);
    identity_reader_init(&reader, source);
    assert_int_equal(read_one(issuer, &reader, token_of(issuer, 0)), SUB_IDENTITY_OFF);
    identity_reader_done(&reader);
}

/* ---- threads ---- */

typedef struct Loop {
    Issuer *issuer;
    IdentitySource *source;
    Slice tokens[2];
} Loop;

static void *run_loop(void *arg)
{
    Loop *loop = arg;
    IdentityReader reader;
    identity_reader_init(&reader, loop->source);
    for (int i = 0; i < 300; i++) {
        SubStatus sub = read_one(loop->issuer, &reader, loop->tokens[i % 2]);
        ASSERT(sub == SUB_NONE || sub == SUB_IDENTITY_UNKNOWN_KEY);
    }
    identity_reader_done(&reader);
    return NULL;
}

static void loops_go_on_while_keys_change(void **state)
{
    Issuer *issuer = *state;
    AUTO(identity_source_close) IdentitySource *source = NULL;
    assert_int_equal(source_open(issuer, 0, 1, &source), STATUS_OK);
    Loop loop = {issuer, source, {token_of(issuer, 0), token_of(issuer, 1)}};
    pthread_t threads[3];
    for (size_t i = 0; i < ARRAY_COUNT(threads); i++)
        assert_int_equal(pthread_create(&threads[i], NULL, run_loop, &loop), 0);
    for (int i = 0; i < 50; i++) {
        Error err;
        atomic_store(&issuer->newest, i % 2);
        assert_int_equal(identity_source_reload(source, &err), STATUS_OK);
    }
    for (size_t i = 0; i < ARRAY_COUNT(threads); i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_token_is_good_as_long_as_its_key_is),
        cmocka_unit_test(a_remembered_token_needs_all_of_its_characters),
        cmocka_unit_test(an_unknown_key_makes_the_source_read_again),
        cmocka_unit_test(unknown_keys_do_not_make_it_read_all_the_time),
        cmocka_unit_test(a_set_that_is_none_is_refused_at_the_start),
        cmocka_unit_test(without_an_issuer_nothing_is_read),
        cmocka_unit_test(loops_go_on_while_keys_change),
    };
    return cmocka_run_group_tests(tests, issuer_open, issuer_close);
}
