/* page_place_fuzz.c - any token, of every order: what is taken can be printed, is short,
 * and comes back the same; a page that ends anywhere makes a token again. */
#include "api/page_place_int.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_again(Arena *arena, const PagePlace *place)
{
    Slice token = place_print(arena, place);
    ASSERT(token.len <= TOKEN_TEXT_MAX);
    PagePlace back;
    Error err;
    Status status = place_parse(arena, place->order, token, &back, &err);
    ASSERT(status == STATUS_OK);
    ASSERT(slice_equal(place_print(arena, &back), token));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 4096);
    Slice token = slice_make(data, size);
    for (size_t i = 0; i < 2; i++) {
        ScanOrder order = i == 0 ? SCAN_BY_NUMBER : SCAN_BY_EPK;
        PagePlace place;
        Error err;
        Status status = place_parse(&arena, order, token, &place, &err);
        ASSERT(status == STATUS_OK || status == STATUS_BAD_REQUEST);
        if (status != STATUS_OK)
            continue;
        check_again(&arena, &place);
        for (size_t index = 0; index <= place.piece_count; index++) {
            PagePlace next = place;
            place_advance(&next, index, SLICE("\x20"), SLICE("\x30"), SLICE("\0\0\0\0\0\0\0\1"));
            check_again(&arena, &next);
        }
    }
    return 0;
}
