/* address_fuzz.c - any path: if it is understood, its parts joined again name the same resource. */
#include "api/core/address.h"
#include "base/encoding.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static Slice join(Arena *arena, const Address *address)
{
    Slice path = SLICE("");
    for (size_t i = 0; i < address->part_count; i++) {
        Slice segment = address_segment(address->parts[i].type);
        Slice id = percent_encode(arena, address->parts[i].id, SLICE("-_.+="));
        path = arena_format(arena, "%.*s/%.*s/%.*s", SLICE_ARG(path), SLICE_ARG(segment),
                            SLICE_ARG(id));
    }
    if (address->operation.len > 0) {
        Slice operation = percent_encode(arena, address->operation, SLICE("-_"));
        return arena_format(arena, "%.*s/operations/%.*s", SLICE_ARG(path), SLICE_ARG(operation));
    }
    if (address->is_feed) {
        Slice segment = address_segment(address->type);
        return arena_format(arena, "%.*s/%.*s", SLICE_ARG(path), SLICE_ARG(segment));
    }
    return path;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 1024);
    Address address;
    Error err;
    Status status = address_parse(&arena, slice_make(data, size), &address, &err);
    if (status != STATUS_OK) {
        ASSERT(status == STATUS_NOT_FOUND || status == STATUS_BAD_REQUEST);
        return 0;
    }
    Slice path = join(&arena, &address);
    if (path.len > ADDRESS_BYTES_MAX) /* encoding has made it longer than what came in */
        return 0;
    Address again;
    status = address_parse(&arena, path, &again, &err);
    ASSERT(status == STATUS_OK);
    ASSERT(again.type == address.type);
    ASSERT(again.is_feed == address.is_feed);
    ASSERT(again.part_count == address.part_count);
    ASSERT(slice_equal(again.operation, address.operation));
    for (size_t i = 0; i < address.part_count; i++) {
        ASSERT(again.parts[i].type == address.parts[i].type);
        ASSERT(slice_equal(again.parts[i].id, address.parts[i].id));
        ASSERT(address.parts[i].id.len > 0);
    }
    /* Types may be written in any case, and a signature covers them as they were; the rest of the
     * link is the same. */
    ASSERT(slice_equal_nocase(again.link, address.link));
    return 0;
}
