/* key_candidate_test.c - keys as text, and their values in items. */
#include "advise/key_candidate.h"

#include "advise/advise_testing_int.h"

static void keys_are_read_and_printed(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *name; /* NULL if it is refused */
    } rows[] = {
        {"/a", "/a"},
        {"/a/b", "/a/b"},
        {" /a , /b,/c ", "/a, /b, /c"},
        {"/\"a,b\",/c", "/\"a,b\", /c"},
        {"/'it'", "/it"},
        {"", NULL},
        {"a", NULL},
        {"/", NULL},
        {"/a,", NULL},
        {",/a", NULL},
        {"/a,/b,/c,/d", NULL},
        {"/a[0]", NULL},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        AUTO(arena_done) Arena arena;
        arena_init(&arena, 4096);
        KeyCandidate key;
        Error err;
        Status status = key_candidate_parse(&arena, slice_from_cstr(rows[i].text), &key, &err);
        if ((status == STATUS_OK) != (rows[i].name != NULL))
            fail_msg("'%s': %s", rows[i].text, status == STATUS_OK ? "accepted" : err.message);
        if (status == STATUS_OK)
            assert_true(slice_equal(key.name, slice_from_cstr(rows[i].name)));
    }
}

/* What a server computes for the same key of an item. */
static void the_hash_is_the_servers(void **state)
{
    (void)state;
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 4096);
    Json item = row_json(&arena, "{'id':'1','a':'x','b':{'c':5},'l':[]}");
    KeyCandidate pair = key_of(&arena, "/a,/b/c");
    PartitionKey values = {.count = 2, .parts = {row_json(&arena, "'x'"), row_json(&arena, "5")}};
    Epk expected;
    Epk found;
    epk_make(PARTITION_MULTI_HASH, &values, &expected);
    assert_true(key_candidate_epk(&pair, item, &arena, &found));
    assert_true(slice_equal(epk_slice(&expected), epk_slice(&found)));

    KeyCandidate joined = pair;
    joined.kind = KEY_SYNTHETIC;
    PartitionKey text = {.count = 1, .parts = {row_json(&arena, "'x-5'")}};
    epk_make(PARTITION_HASH_V2, &text, &expected);
    assert_true(key_candidate_epk(&joined, item, &arena, &found));
    assert_true(slice_equal(epk_slice(&expected), epk_slice(&found)));
    assert_true(slice_equal(key_candidate_value(&joined, item, &arena), SLICE("\"x-5\"")));
}

static void what_cannot_be_a_key_is_missing(void **state)
{
    (void)state;
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 4096);
    Json item = row_json(&arena, "{'id':'1','a':'x','l':[],'o':{}}");
    static const char *const rows[] = {"/l", "/o", "/none", "/a/b", "/a,/none"};
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        KeyCandidate key = key_of(&arena, rows[i]);
        Epk epk;
        assert_false(key_candidate_epk(&key, item, &arena, &epk));
        key.kind = KEY_SYNTHETIC;
        assert_false(key_candidate_epk(&key, item, &arena, &epk));
    }
    AUTO(buf_done) Buf text;
    buf_init(&text, 8192);
    buf_format(&text, "{\"a\":\"%0*d\"}", PARTITION_KEY_BYTES_MAX + 1, 1);
    KeyCandidate key = key_of(&arena, "/a");
    Epk epk;
    assert_false(key_candidate_epk(&key, text_json(&arena, buf_view(&text)), &arena, &epk));
}

static void a_suffix_divides_a_value(void **state)
{
    (void)state;
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 4096);
    KeyCandidate key = key_of(&arena, "/a");
    key.kind = KEY_SUFFIXED;
    key.suffixes = 4;
    key_candidate_name(&arena, &key);
    assert_true(slice_equal(key.name, SLICE("/a-(0..3)")));
    bool is_seen[4] = {false};
    for (int i = 0; i < 100; i++) {
        Json item = text_json(&arena, arena_format(&arena, "{\"id\":\"%d\",\"a\":\"x\"}", i));
        Slice value = key_candidate_value(&key, item, &arena);
        assert_int_equal(value.len, 5); /* "x-0" */
        is_seen[value.ptr[3] - '0'] = true;
    }
    assert_true(is_seen[0] && is_seen[1] && is_seen[2] && is_seen[3]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_are_read_and_printed),
        cmocka_unit_test(the_hash_is_the_servers),
        cmocka_unit_test(what_cannot_be_a_key_is_missing),
        cmocka_unit_test(a_suffix_divides_a_value),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
