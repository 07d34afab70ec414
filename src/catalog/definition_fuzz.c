/* definition_fuzz.c - any JSON as the body of a container or of a script.
 *
 * Whatever is accepted has a normal form that is its own normal form, that replaces itself without
 * a change, and that the readers can read.
 */
#include "catalog/definition.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_fixed_point(Arena *arena, Json normal)
{
    Error err;
    Json again;
    ContainerRules rules = {.allow_no_partition_key = true};
    Slice text = json_print_arena(arena, normal);
    ASSERT(container_definition_create(arena, normal, rules, &again, &err) == STATUS_OK);
    ASSERT(slice_equal(text, json_print_arena(arena, again)));
    ASSERT(container_definition_replace(arena, normal, normal, &again, &err) == STATUS_OK);
    ASSERT(slice_equal(text, json_print_arena(arena, again)));
}

static void check_readers(Arena *arena, Json normal)
{
    Error err;
    PartitionKeyDefinition key;
    UniqueKey keys[UNIQUE_KEYS_MAX];
    ComputedProperty computed[COMPUTED_PROPERTIES_MAX];
    size_t count;
    ASSERT(container_partition_key(arena, normal, &key, &err) == STATUS_OK);
    ASSERT(container_unique_keys(arena, normal, keys, &count, &err) == STATUS_OK);
    ASSERT(container_computed_properties(normal, computed) <= COMPUTED_PROPERTIES_MAX);
    ASSERT(container_default_ttl_s(normal) >= -1);
}

static void check_scripts(Arena *arena, Json body)
{
    for (int kind = 0; kind < STORED_SCRIPT_KINDS; kind++) {
        Error err = {.message = ""};
        Json normal, again;
        StoredScriptKind script = (StoredScriptKind)kind;
        if (stored_script_definition_create(arena, script, body, &normal, &err) != STATUS_OK) {
            ASSERT(err.status == STATUS_BAD_REQUEST);
            ASSERT(err.message[0] != '\0');
            continue;
        }
        TriggerType type;
        TriggerOperation operation;
        ASSERT(script != STORED_TRIGGER ||
               stored_script_trigger(normal, &type, &operation, &err) == STATUS_OK);
        ASSERT(stored_script_definition_create(arena, script, normal, &again, &err) == STATUS_OK);
        ASSERT(json_equal(normal, again));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 1 << 16);
    Error err = {.message = ""};
    Json body, normal;
    Slice id;
    if (json_parse(&arena, slice_make(data, size), &body, &err) != STATUS_OK)
        return 0;
    (void)!database_definition_create(&arena, body, &id, &err);
    check_scripts(&arena, body);
    ContainerRules rules = {.allow_no_partition_key = true};
    if (container_definition_create(&arena, body, rules, &normal, &err) != STATUS_OK) {
        ASSERT(err.status == STATUS_BAD_REQUEST);
        ASSERT(err.message[0] != '\0');
        return 0;
    }
    check_fixed_point(&arena, normal);
    check_readers(&arena, normal);
    return 0;
}
