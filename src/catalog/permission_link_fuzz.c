/* permission_link_fuzz.c - any link: one that names something names it whole, and the same again
 * when it is written from its parts. */
#include "catalog/permission_link.h"

#include "base/encoding.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const segments[] = {
        [TARGET_CONTAINER] = "",         [TARGET_ITEM] = "/docs/",
        [TARGET_PROCEDURE] = "/sprocs/", [TARGET_TRIGGER] = "/triggers/",
        [TARGET_FUNCTION] = "/udfs/",
    };
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 1024);
    PermissionTarget target;
    if (!permission_link_parse(&arena, slice_make(data, size), &target))
        return 0;
    ASSERT(target.database.len > 0);
    ASSERT(target.container.len > 0);
    ASSERT((target.child.len > 0) == (target.kind != TARGET_CONTAINER));
    Slice again = arena_format(&arena, "dbs/%.*s/colls/%.*s%s%.*s",
                               SLICE_ARG(percent_encode(&arena, target.database, SLICE_EMPTY)),
                               SLICE_ARG(percent_encode(&arena, target.container, SLICE_EMPTY)),
                               segments[target.kind],
                               SLICE_ARG(percent_encode(&arena, target.child, SLICE_EMPTY)));
    PermissionTarget back;
    if (again.len > PERMISSION_LINK_BYTES_MAX)
        return 0;
    bool is_link = permission_link_parse(&arena, again, &back);
    ASSERT(is_link);
    ASSERT(back.kind == target.kind);
    ASSERT(slice_equal(back.database, target.database));
    ASSERT(slice_equal(back.container, target.container));
    ASSERT(slice_equal(back.child, target.child));
    return 0;
}
