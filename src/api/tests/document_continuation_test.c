/* document_continuation_test.c - continuation tokens of lists and queries of items (I5): no token
 * leads to the wrong place. */
#include "api/items/document_position_int.h"
#include "api/tests/document_pages_testing_int.h"

static const char *token_of(FakeServer *server, const void *bytes, size_t len)
{
    char *text = arena_alloc(&server->arena, BASE64_LEN(len) + 1);
    base64_encode(BASE64_RID, bytes, len, text);
    text[BASE64_LEN(len)] = '\0';
    return text;
}

static void a_token_that_is_none_is_refused(void **state)
{
    (void)state;
    AUTO(fake_server_close) FakeServer server;
    open_filled(&server);
    Ask list = {"GET", DOCS, .headers = {{"x-ms-max-item-count", "7"}}};
    Ask by_key = {"GET", DOCS, .headers = {{"x-ms-max-item-count", "2"}, PK("['k3']")}};
    Ask stream = {"POST", DOCS, "{'query':'SELECT * FROM c'}",
                  .headers = {QUERY, {"x-ms-max-item-count", "7"}}};
    Ask whole = {"POST", DOCS, "{'query':'SELECT * FROM c ORDER BY c.id'}",
                 .headers = {QUERY, {"x-ms-max-item-count", "7"}}};
    Ask *const feeds[] = {&list, &by_key, &stream, &whole};
    const char *tokens[16] = {"x",
                              "====",
                              "Q1",
                              "Q1zzzzzzzz",
                              "Q10000000",
                              "Q1000000001",
                              "{\"token\":\"x\"}",
                              token_of(&server, "L", 1)};
    size_t count = 8;
    size_t own = count; /* then one of each feed, which is good for that one */
    for (size_t i = 0; i < ARRAY_COUNT(feeds); i++) {
        FakeAnswer answer = expect_status(&server, feeds[i], 200);
        tokens[count++] = arena_cstr(&server.arena, fake_header(&answer, "x-ms-continuation"));
        assert_true(tokens[count - 1][0] != '\0');
    }
    for (size_t i = 0; i < ARRAY_COUNT(feeds); i++) {
        for (size_t j = 0; j < count; j++) {
            Ask a = *feeds[i];
            size_t at = 0;
            while (a.headers[at].name != NULL)
                at++;
            a.headers[at] = (Header){"x-ms-continuation", tokens[j]};
            FakeAnswer answer = expect_status(&server, &a, j == own + i ? 200 : 400);
            if (answer.status == 400)
                expect_holds(answer.body, "Invalid Continuation Token");
        }
    }
}

/* A forged token of a list: up to 'to' it continues at 'position'. */
static const char *forge(FakeServer *server, ScanOrder order, bool is_of_key, Slice from, Slice to,
                         Slice position)
{
    DocumentPosition place = {.order = order, .is_of_key = is_of_key, .from = from, .at = position};
    if (order == SCAN_BY_NUMBER) {
        place.pieces[place.piece_count++] = (PositionPiece){.to = to, .at = position};
        place.at = SLICE_EMPTY;
    }
    return arena_cstr(&server->arena, document_position_print(&server->arena, &place));
}

/* A forged token leads to items that the request may see anyway, or to none. */
static void a_forged_token_shows_nothing_that_was_not_asked_for(void **state)
{
    (void)state;
    AUTO(fake_server_close) FakeServer server;
    open_filled(&server);
    char crowd[SCAN_POSITION_BYTES_MAX];
    memset(crowd, 0x11, sizeof(crowd));
    const Slice positions[] = {
        SLICE(""),
        SLICE("\x02"),
        SLICE("\xff"),
        SLICE("\0\0\0\0\0\0\0\0"),
        SLICE("\0\0\1\0\0\0\0\1"),
        SLICE("\xff\xff\xff\xff\xff\xff\xff\xff"),
        slice_make(crowd, sizeof(crowd)),
    };
    static const Slice epks[] = {SLICE_INIT(""), SLICE_INIT("\x20"), SLICE_INIT("\xff"),
                                 SLICE_INIT("\xff\xff")};
    for (size_t i = 0; i < ARRAY_COUNT(positions); i++) {
        for (size_t j = 0; j < ARRAY_COUNT(epks) * ARRAY_COUNT(epks); j++) {
            for (int kind = 0; kind < 3; kind++) {
                bool is_narrow = kind > 0;
                ScanOrder order = kind == 1 ? SCAN_BY_EPK : SCAN_BY_NUMBER;
                if (order == SCAN_BY_NUMBER && positions[i].len != SCAN_NUMBER_BYTES)
                    continue;
                const char *token =
                    forge(&server, order, is_narrow, epks[j % 4], epks[j / 4], positions[i]);
                Ask a = {"GET", DOCS, .headers = {{"x-ms-continuation", token}}};
                if (is_narrow)
                    a.headers[1] = (Header)PK("['k3']");
                FakeAnswer answer = expect_status(&server, &a, 200);
                Seen seen = {0};
                note_page(&server, &answer, &seen);
                for (size_t k = 0; k < ITEMS; k++)
                    assert_true(seen.times[k] <= (!is_narrow || k % KEYS == 3 ? 1 : 0));
            }
        }
    }
}

/* Its pieces would have the page visit partitions that it has left. */
static void a_forged_token_that_goes_back_is_refused(void **state)
{
    (void)state;
    AUTO(fake_server_close) FakeServer server;
    open_filled(&server);
    static const Slice rows[][3] = {
        {SLICE_INIT("\xff"), SLICE_INIT(""), SLICE_INIT("\xff")},
        {SLICE_INIT("\x20"), SLICE_INIT("\x20"), SLICE_INIT("\xff")},
        {SLICE_INIT("\x20"), SLICE_INIT("\x30"), SLICE_INIT("\x10")},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        DocumentPosition place = {.order = SCAN_BY_NUMBER, .piece_count = 3};
        for (size_t j = 0; j < 3; j++)
            place.pieces[j] = (PositionPiece){.to = rows[i][j], .at = SLICE("\0\0\0\0\0\0\0\0")};
        const char *token =
            arena_cstr(&server.arena, document_position_print(&server.arena, &place));
        Ask a = {"GET", DOCS, .headers = {{"x-ms-continuation", token}}};
        FakeAnswer answer = expect_status(&server, &a, 400);
        expect_holds(answer.body, "Invalid Continuation Token");
    }
}

static void a_token_survives_the_item_it_stands_at(void **state)
{
    (void)state;
    AUTO(fake_server_close) FakeServer server;
    open_filled(&server);
    Ask a = {"GET", DOCS, .headers = {PK("['k3']"), {"x-ms-max-item-count", "2"}}};
    FakeAnswer first = expect_status(&server, &a, 200);
    Seen seen = {0};
    note_page(&server, &first, &seen);
    for (int i = 0; i < ITEMS; i++) {
        Slice path = arena_format(&server.arena, DOCS "/i%02d", i);
        if (seen.times[i] > 0)
            (void)expect_status(
                &server,
                &(Ask){"DELETE", arena_cstr(&server.arena, path), .headers = {PK("['k3']")}}, 204);
    }
    a.headers[2] = (Header){"x-ms-continuation",
                            arena_cstr(&server.arena, fake_header(&first, "x-ms-continuation"))};
    a.headers[1].value = "-1";
    FakeAnswer rest = expect_status(&server, &a, 200);
    note_page(&server, &rest, &seen);
    assert_int_equal(seen.items, ITEMS / KEYS);
    for (int i = 3; i < ITEMS; i += KEYS)
        assert_int_equal(seen.times[i], 1);
}

/* ---- tokens and partitions that are no more ---- */

/* A token of the time when one partition had everything: its items have gone to three, with their
 * numbers, and each of them continues after the same number. */
static void a_token_survives_a_split(void **state)
{
    (void)state;
    AUTO(fake_server_close) FakeServer server;
    open_filled(&server);
    for (uint64_t skipped = 0; skipped < 3; skipped++) {
        char number[SCAN_NUMBER_BYTES];
        be64_put(number, item_number(1, 1 + skipped));
        const char *token = forge(&server, SCAN_BY_NUMBER, false, SLICE(""), SLICE("\xff"),
                                  slice_make(number, sizeof(number)));
        Seen expected = {0};
        for (int i = 1; i < 3; i++) {
            Ask range = {"GET", DOCS,
                         .headers = {{"x-ms-documentdb-partitionkeyrangeid", i == 1 ? "1" : "2"}}};
            FakeAnswer answer = expect_status(&server, &range, 200);
            note_page(&server, &answer, &expected);
            JsonIter it = json_iter(json_get(body_of(&server, &answer), SLICE("Documents")));
            for (uint64_t j = 0; i == 1 && j < skipped && json_next(&it); j++) {
                uint64_t item = 0;
                assert_true(slice_to_u64(slice_from(text_of(it.value, "id"), 1), &item));
                expected.times[item]--;
            }
        }
        static const char *const sizes[] = {"1", "4", "-1"};
        for (size_t i = 0; i < ARRAY_COUNT(sizes); i++) {
            Seen seen = read_from(&server, (Ask){"GET", DOCS}, sizes[i], token);
            assert_memory_equal(seen.times, expected.times, sizeof(seen.times));
        }
        /* For one of the new ones alone, too. */
        Ask child = {"GET", DOCS, .headers = {{"x-ms-documentdb-partitionkeyrangeid", "1"}}};
        Seen whole = read_all(&server, child, "3");
        Seen part = read_from(&server, child, "3", token);
        assert_int_equal(part.items, whole.items - skipped);
        child.headers[0].value = "0";
        assert_int_equal(read_from(&server, child, "3", token).items, 0);
    }
}

/* A token of the time when a part of a partition was one of its own: of the merged one that part is
 * done, or goes on somewhere, and the rest is still to come. */
static void a_token_survives_a_merge(void **state)
{
    (void)state;
    AUTO(fake_server_close) FakeServer server;
    open_filled(&server);
    char last[SCAN_NUMBER_BYTES];
    memset(last, 0xFF, sizeof(last));
    static const struct {
        const char *hex;
        Slice bytes;
    } rows[] = {{"10", SLICE_INIT("\x10")}, {"20", SLICE_INIT("\x20")}, {"3A", SLICE_INIT("\x3a")}};
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        const char *token = forge(&server, SCAN_BY_NUMBER, false, SLICE(""), rows[i].bytes,
                                  slice_make(last, sizeof(last)));
        Ask after = {"GET", DOCS, .headers = {{"x-ms-start-epk", rows[i].hex}}};
        Seen expected = read_all(&server, after, "-1");
        assert_true(expected.items > 0 && expected.items < ITEMS);
        static const char *const sizes[] = {"1", "4", "-1"};
        for (size_t j = 0; j < ARRAY_COUNT(sizes); j++) {
            Seen seen = read_from(&server, (Ask){"GET", DOCS}, sizes[j], token);
            assert_memory_equal(seen.times, expected.times, sizeof(seen.times));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_token_that_is_none_is_refused),
        cmocka_unit_test(a_forged_token_shows_nothing_that_was_not_asked_for),
        cmocka_unit_test(a_forged_token_that_goes_back_is_refused),
        cmocka_unit_test(a_token_survives_the_item_it_stands_at),
        cmocka_unit_test(a_token_survives_a_split),
        cmocka_unit_test(a_token_survives_a_merge),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
