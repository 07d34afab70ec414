/* document_position_fuzz.c - any token, of every order: one that is accepted can be printed, is
 * short and is read back as the same; a page that ends anywhere makes a valid token again. */
#include "api/items/document_position_int.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_again(Arena *arena, const DocumentPosition *place)
{
    Slice token = document_position_print(arena, place);
    ASSERT(token.len <= TOKEN_TEXT_MAX);
    DocumentPosition back;
    Error err;
    Status status = document_position_parse(arena, place->order, token, &back, &err);
    ASSERT(status == STATUS_OK);
    ASSERT(slice_equal(document_position_print(arena, &back), token));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 4096);
    Slice token = slice_make(data, size);
    for (size_t i = 0; i < 2; i++) {
        ScanOrder order = i == 0 ? SCAN_BY_NUMBER : SCAN_BY_EPK;
        DocumentPosition place;
        Error err;
        Status status = document_position_parse(&arena, order, token, &place, &err);
        ASSERT(status == STATUS_OK || status == STATUS_BAD_REQUEST);
        if (status != STATUS_OK)
            continue;
        check_again(&arena, &place);
        for (size_t index = 0; index <= place.piece_count; index++) {
            DocumentPosition next = place;
            document_position_advance(&next, index, SLICE("\x20"), SLICE("\x30"),
                                      SLICE("\0\0\0\0\0\0\0\1"));
            check_again(&arena, &next);
        }
    }
    return 0;
}
