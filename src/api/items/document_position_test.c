/* document_position_test.c - places before and after splits and merges, and the tokens that carry
 * them. */
#include "api/items/document_position_int.h"

#include "base/encoding.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

/* A place by number as text: "from|to:number to:number"; EPKs are letters here. */
static Slice print(Arena *arena, const DocumentPosition *place)
{
    Slice text = arena_format(arena, "%.*s|", SLICE_ARG(place->from));
    for (size_t i = 0; i < place->piece_count; i++)
        text = arena_format(arena, "%.*s%s%.*s:%d", SLICE_ARG(text), i > 0 ? " " : "",
                            SLICE_ARG(place->pieces[i].to), (int)be64_get(place->pieces[i].at.ptr));
    return text;
}

static Slice number(Arena *arena, uint64_t value)
{
    char *bytes = arena_alloc(arena, SCAN_NUMBER_BYTES);
    be64_put(bytes, value);
    return slice_make(bytes, SCAN_NUMBER_BYTES);
}

static DocumentPosition read(Arena *arena, const char *text)
{
    Slice rest = slice_from_cstr(text);
    DocumentPosition place = {.order = SCAN_BY_NUMBER, .from = slice_cut(&rest, '|')};
    while (rest.len > 0) {
        Slice one = slice_cut(&rest, ' ');
        PositionPiece *piece = &place.pieces[place.piece_count++];
        piece->to = slice_cut(&one, ':');
        uint64_t value = 0;
        assert_true(slice_to_u64(one, &value));
        piece->at = number(arena, value);
    }
    return place;
}

static void a_place_moves_on_with_its_page(void **state)
{
    (void)state;
    static const struct {
        const char *before;
        size_t index;
        const char *min, *max; /* of the partition in which the page ended, at number 50 */
        const char *after;
    } rows[] = {
        /* The first page, in the first of three partitions, in the last, in the only one. */
        {"|", 0, "", "h", "|h:50"},
        {"|", 0, "p", "z", "p|z:50"},
        {"|", 0, "", "z", "|z:50"},
        /* The same partitions as before. */
        {"|h:40", 0, "", "h", "|h:50"},
        {"|h:40", 1, "h", "p", "h|p:50"},
        {"|h:40", 1, "p", "z", "p|z:50"},
        /* Split since: what is left of the piece keeps its position. */
        {"|z:40", 0, "", "h", "|h:50 z:40"},
        {"|z:40", 0, "h", "p", "h|p:50 z:40"},
        {"|z:40", 0, "p", "z", "p|z:50"},
        {"h|p:40", 0, "h", "k", "h|k:50 p:40"},
        {"h|p:40", 1, "p", "r", "p|r:50"},
        /* And split again. */
        {"|h:45 z:40", 0, "", "d", "|d:50 h:45 z:40"},
        {"|h:45 z:40", 0, "", "h", "|h:50 z:40"},
        {"|h:45 z:40", 1, "h", "m", "h|m:50 z:40"},
        {"|h:45 z:40", 1, "h", "z", "h|z:50"},
        /* Merged since: what comes after the piece is still to be listed. */
        {"h|p:40", 0, "", "z", "h|p:50"},
        {"h|p:40", 1, "", "z", "p|z:50"},
        {"|h:45 z:40", 0, "", "z", "|h:50 z:40"},
        /* No room: the last two become one, which goes on from the lower number. */
        {"|b:1 c:2 d:3 e:4 f:5 g:6 h:8 i:7", 0, "", "a", "|a:50 b:1 c:2 d:3 e:4 f:5 g:6 i:7"},
        {"|b:1 c:2 d:3 e:4 f:5 g:6 h:7 i:8", 0, "", "a", "|a:50 b:1 c:2 d:3 e:4 f:5 g:6 i:7"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        Arena arena;
        arena_init(&arena, 4096);
        DocumentPosition place = read(&arena, rows[i].before);
        document_position_advance(&place, rows[i].index, slice_from_cstr(rows[i].min),
                                  slice_from_cstr(rows[i].max), number(&arena, 50));
        Slice after = print(&arena, &place);
        if (!slice_equal(after, slice_from_cstr(rows[i].after)))
            fail_msg("row %zu: expected '%s', found '%.*s'", i, rows[i].after, SLICE_ARG(after));
        arena_done(&arena);
    }
}

static Status parse(Arena *arena, ScanOrder order, Slice token, DocumentPosition *out)
{
    Error err = {0};
    Status status = document_position_parse(arena, order, token, out, &err);
    assert_int_equal(err.status, status);
    return status;
}

static void a_token_brings_its_place_back(void **state)
{
    (void)state;
    static const char *const rows[] = {"|z:1", "h|p:40", "|h:50 z:40",
                                       "|b:1 c:2 d:3 e:4 f:5 g:6 h:8 i:7"};
    Arena arena;
    arena_init(&arena, 4096);
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        DocumentPosition place = read(&arena, rows[i]);
        Slice token = document_position_print(&arena, &place);
        DocumentPosition back;
        assert_int_equal(parse(&arena, SCAN_BY_NUMBER, token, &back), STATUS_OK);
        assert_true(slice_equal(print(&arena, &back), slice_from_cstr(rows[i])));
        /* It is valid for its order only. */
        assert_int_equal(parse(&arena, SCAN_BY_EPK, token, &back), STATUS_BAD_REQUEST);
        /* That of a key is none of the container's, and the other way round. */
        Error err;
        assert_int_equal(document_position_parse_of_key(&arena, token, &back, &err),
                         STATUS_BAD_REQUEST);
        place.is_of_key = true;
        token = document_position_print(&arena, &place);
        assert_int_equal(document_position_parse_of_key(&arena, token, &back, &err), STATUS_OK);
        assert_true(back.is_of_key && back.order == SCAN_BY_NUMBER);
        assert_true(slice_equal(print(&arena, &back), slice_from_cstr(rows[i])));
        assert_int_equal(parse(&arena, SCAN_BY_NUMBER, token, &back), STATUS_BAD_REQUEST);
    }
    char position[SCAN_POSITION_BYTES_MAX] = {1, 2, 3};
    static const size_t lens[] = {0, 1, 17, SCAN_POSITION_BYTES_MAX - SCAN_NUMBER_BYTES,
                                  SCAN_POSITION_BYTES_MAX};
    for (size_t i = 0; i < ARRAY_COUNT(lens); i++) {
        DocumentPosition place = {.order = SCAN_BY_EPK, .at = slice_make(position, lens[i])};
        Slice token = document_position_print(&arena, &place);
        assert_true(token.len <= TOKEN_TEXT_MAX);
        DocumentPosition back;
        assert_int_equal(parse(&arena, SCAN_BY_EPK, token, &back), STATUS_OK);
        assert_true(slice_equal(back.at, place.at));
    }
    arena_done(&arena);
}

/* Bounds as long as they can be, and as many: the token is short, and nothing gets lost. */
static void a_token_is_never_too_long(void **state)
{
    (void)state;
    Arena arena;
    arena_init(&arena, 4096);
    char bound[256];
    memset(bound, 'a', sizeof(bound));
    for (size_t count = 1; count <= POSITION_PIECES_MAX; count++) {
        DocumentPosition place = {.order = SCAN_BY_NUMBER,
                                  .from = slice_make(bound, sizeof(bound)),
                                  .piece_count = count};
        for (size_t i = 0; i < count; i++) {
            Slice to = arena_copy(&arena, slice_make(bound, sizeof(bound)));
            (UNCONST(char, to.ptr))[255] = (char)('b' + i);
            place.pieces[i] = (PositionPiece){.to = to, .at = number(&arena, 100 - i)};
        }
        Slice token = document_position_print(&arena, &place);
        assert_true(token.len <= TOKEN_TEXT_MAX);
        DocumentPosition back;
        assert_int_equal(parse(&arena, SCAN_BY_NUMBER, token, &back), STATUS_OK);
        assert_int_equal(back.piece_count, 1);
        assert_true(slice_equal(back.pieces[0].to, place.pieces[count - 1].to));
        assert_int_equal(be64_get(back.pieces[0].at.ptr), 101 - count);
    }
    arena_done(&arena);
}

/* Every prefix of a good token, and one with more bytes at its end. */
static void what_is_no_token_is_refused(void **state)
{
    (void)state;
    Arena arena;
    arena_init(&arena, 4096);
    DocumentPosition place = read(&arena, "h|p:40 z:30");
    Slice token = document_position_print(&arena, &place);
    char bytes[1024] = {0};
    size_t len = 0;
    assert_true(base64_decode(BASE64_RID, token, bytes, sizeof(bytes), &len));
    for (size_t i = 0; i <= sizeof(bytes); i++) {
        char text[BASE64_LEN(sizeof(bytes))];
        base64_encode(BASE64_RID, bytes, i, text);
        DocumentPosition back;
        Status status = parse(&arena, SCAN_BY_NUMBER, slice_make(text, BASE64_LEN(i)), &back);
        /* The whole, and what ends after its first piece; an empty bound would lead back. */
        bool is_one = i == len || i == len - 11;
        if ((status == STATUS_OK) != is_one)
            fail_msg("%zu of %zu bytes", i, len);
    }
    static const char *const texts[] = {"", "x", "====", "Q100000001", "[]", "{}"};
    for (size_t i = 0; i < ARRAY_COUNT(texts); i++) {
        for (ScanOrder order = SCAN_BY_NUMBER; order <= SCAN_BY_EPK; order++) {
            DocumentPosition back;
            assert_int_equal(parse(&arena, order, slice_from_cstr(texts[i]), &back),
                             STATUS_BAD_REQUEST);
        }
    }
    arena_done(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_place_moves_on_with_its_page),
        cmocka_unit_test(a_token_brings_its_place_back),
        cmocka_unit_test(a_token_is_never_too_long),
        cmocka_unit_test(what_is_no_token_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
