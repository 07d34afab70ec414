/* permission_link.c - see permission_link.h. */
#include "catalog/permission_link.h"

#include "base/encoding.h"
#include "json/json.h"

Slice permission_link_trim(Slice link)
{
    while (slice_ends_with(link, SLICE("/")))
        link.len--;
    while (slice_starts_with(link, SLICE("/")))
        link = slice_from(link, 1);
    return link;
}

/* Cuts the next segment off; false if it is empty or not UTF-8 once it is decoded. A '%' that
 * encodes nothing stands for itself. */
static bool next_id(Arena *arena, Slice *rest, Slice *out)
{
    Slice raw = slice_cut(rest, '/');
    if (!percent_decode(arena, raw, out))
        *out = raw;
    return out->len > 0 && json_utf8_valid(*out);
}

static bool next_is(Slice *rest, Slice segment)
{
    return slice_equal_nocase(slice_cut(rest, '/'), segment);
}

bool permission_link_parse(Arena *arena, Slice link, PermissionTarget *out)
{
    static const struct {
        Slice segment;
        PermissionTargetKind kind;
    } children[] = {
        {SLICE_INIT("docs"), TARGET_ITEM},
        {SLICE_INIT("sprocs"), TARGET_PROCEDURE},
        {SLICE_INIT("triggers"), TARGET_TRIGGER},
        {SLICE_INIT("udfs"), TARGET_FUNCTION},
    };
    PermissionTarget target = {.kind = TARGET_CONTAINER};
    Slice rest = permission_link_trim(link);
    if (link.len > PERMISSION_LINK_BYTES_MAX || !next_is(&rest, SLICE("dbs")) ||
        !next_id(arena, &rest, &target.database) || !next_is(&rest, SLICE("colls")) ||
        !next_id(arena, &rest, &target.container))
        return false;
    if (rest.len > 0) {
        Slice segment = slice_cut(&rest, '/');
        size_t i = 0;
        while (i < ARRAY_COUNT(children) && !slice_equal_nocase(segment, children[i].segment))
            i++;
        if (i == ARRAY_COUNT(children) || !next_id(arena, &rest, &target.child) || rest.len > 0)
            return false;
        target.kind = children[i].kind;
    }
    *out = target;
    return true;
}
