/* patch_fuzz.c - any JSON as the body of a patch, on a few documents.
 *
 * What is accepted gives a document that can be stored, the same one for equal documents, with
 * "id" and the partition key as they were; whatever is refused is the client's fault.
 */
#include "partition/patch.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const Slice DOCUMENTS[] = {
    SLICE_INIT("{}"),
    SLICE_INIT(
        "{\"id\":\"1\",\"pk\":\"x\",\"a\":1,\"b\":[1,2,3],\"c\":{\"d\":{\"e\":[{\"f\":0}]}}}"),
    SLICE_INIT("{\"id\":\"2\",\"k\":{\"l\":true,\"m\":1},\"a\":[[],[[]],{}],\"\":{\"~\":{\"/\":1}},"
               "\"b\":{\"a\":{\"a\":{\"a\":{\"a\":{}}}}},\"0\":[0,1,2,3,4,5,6,7,8,9]}"),
};
static const Slice PK[] = {SLICE_INIT("pk")};
static const Slice KL[] = {SLICE_INIT("k"), SLICE_INIT("l")};
static const PropertyPath KEYS[] = {{PK, 1}, {KL, 2}};

static void check_document(Arena *arena, const Patch *patch, Slice text)
{
    Error err = {.message = ""};
    Json first, second, patched, again, opened;
    ASSERT(json_parse(arena, text, &first, &err) == STATUS_OK);
    ASSERT(json_parse(arena, text, &second, &err) == STATUS_OK);
    Status status = patch_apply(patch, arena, first, &patched, &err);
    ASSERT(json_compare(first, second) == 0);
    ASSERT(patch_apply(patch, arena, second, &again, &err) == status);
    if (status != STATUS_OK) {
        ASSERT(status == STATUS_BAD_REQUEST || status == STATUS_TOO_LARGE);
        ASSERT(err.message[0] != '\0');
        return;
    }
    Slice bytes = json_bytes(arena, patched);
    ASSERT(slice_equal(bytes, json_bytes(arena, again)));
    ASSERT(json_open(bytes, &opened, &err) == STATUS_OK);
    ASSERT(json_equal(json_get(patched, SLICE("id")), json_get(first, SLICE("id"))));
    for (size_t i = 0; i < ARRAY_COUNT(KEYS); i++)
        ASSERT(json_equal(property_path_get(KEYS[i], patched), property_path_get(KEYS[i], first)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 1 << 16);
    Error err = {.message = ""};
    Json body;
    Patch *patch;
    if (json_parse(&arena, slice_make(data, size), &body, &err) != STATUS_OK)
        return 0;
    PatchRules rules = {.keys = KEYS, .key_count = ARRAY_COUNT(KEYS), .bytes_max = 4096};
    if (patch_parse(&arena, body, &rules, &patch, &err) != STATUS_OK) {
        ASSERT(err.status == STATUS_BAD_REQUEST);
        ASSERT(err.message[0] != '\0');
        return 0;
    }
    for (size_t i = 0; i < ARRAY_COUNT(DOCUMENTS); i++)
        check_document(&arena, patch, DOCUMENTS[i]);
    return 0;
}
