/* seed_file_fuzz.c - any text as a seed file.
 *
 * What is refused has a message. What is accepted makes bodies that are objects, and its containers
 * can be replaced by themselves. No other file is looked at.
 */
#include "catalog/definition.h"
#include "seed/seed_body.h"
#include "seed/seed_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool is_absent(Json resource)
{
    return !json_is(json_get(resource, SLICE("absent")), JSON_UNDEFINED) &&
           json_bool(json_get(resource, SLICE("absent")));
}

static void check_container(Arena *arena, Json container)
{
    Error err;
    Json normal, again;
    ContainerRules rules = {.allow_no_partition_key = false};
    Json body = seed_container_body(arena, container);
    ASSERT(container_definition_create(arena, body, rules, &normal, &err) == STATUS_OK);
    ASSERT(container_definition_replace(arena, normal, body, &again, &err) == STATUS_OK);
    ASSERT(json_equal(normal, again));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 1 << 16);
    Error err = {.message = ""};
    Json root;
    if (seed_file_parse(&arena, slice_make(data, size), NULL, &root, &err) != STATUS_OK) {
        ASSERT(err.message[0] != '\0');
        return 0;
    }
    for (JsonIter dbs = json_iter(json_get(root, SLICE("databases"))); json_next(&dbs);) {
        for (JsonIter it = json_iter(json_get(dbs.value, SLICE("containers"))); json_next(&it);) {
            if (!is_absent(it.value))
                check_container(&arena, it.value);
        }
    }
    return 0;
}
