/* row_mapping_fuzz.c - any templates and any row: an item with an id that is text, or a reason.
 *
 * An input is lines: a row, the path of the id (may be empty), and then PATH=TEMPLATE.
 */
#include "transfer/row_mapping.h"

#include "transfer/item_digest.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { SETS_MAX = 8 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 64 << 10);
    Slice rest = slice_make(data, size);
    Slice row_text = slice_cut(&rest, '\n');
    Slice id_from = slice_cut(&rest, '\n');
    const char *sets[SETS_MAX];
    size_t count = 0;
    while (rest.len > 0 && count < SETS_MAX)
        sets[count++] = arena_cstr(&arena, slice_cut(&rest, '\n'));
    const RowMapping *mapping = NULL;
    Error err = {0};
    const char *path = id_from.len == 0 ? NULL : arena_cstr(&arena, id_from);
    Status status = row_mapping_parse(&arena, sets, count, path, &mapping, &err);
    ASSERT(status == STATUS_OK || err.message[0] != '\0');
    Json row;
    if (status != STATUS_OK || json_parse(&arena, row_text, &row, &err) != STATUS_OK ||
        !json_is(row, JSON_OBJECT))
        return 0;
    Json item;
    bool is_changed = false;
    if (row_mapping_apply(mapping, row, SLICE("fallback"), &arena, &item, &is_changed, &err) !=
        STATUS_OK) {
        ASSERT(err.message[0] != '\0');
        return 0;
    }
    ASSERT(json_is(json_get(item, SLICE("id")), JSON_STRING));
    ASSERT(json_depth(item) <= JSON_DEPTH_MAX);
    JsonIter it = json_iter(item);
    while (json_next(&it))
        ASSERT(!item_is_system_name(it.name));
    if (!is_changed)
        ASSERT(json_equal(item, row));
    return 0;
}
