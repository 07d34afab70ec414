/* index_state_fuzz.c - any bytes are the state of an index or refused, and a state is stored as it
 * was read. */
#include "partition/index_state_int.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const Slice segments[] = {SLICE_INIT("pk")};
    PartitionKeyDefinition definition = {
        .kind = PARTITION_HASH_V2,
        .path_count = 1,
        .paths = {{.segments = segments, .count = 1}},
    };
    AUTO(index_state_unref) IndexState *state = NULL;
    HashKey key;
    uint64_t position = 0;
    Error err;
    Slice record = slice_make(data, size);
    if (index_state_decode(record, &definition, &state, &key, &position, &err) != STATUS_OK)
        return 0;
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 1024);
    Slice again = index_state_encode(&arena, state, key, position);
    AUTO(index_state_unref) IndexState *same = NULL;
    HashKey same_key;
    uint64_t same_position = 0;
    ASSERT(index_state_decode(again, &definition, &same, &same_key, &same_position, &err) ==
           STATUS_OK);
    ASSERT(same_position == position && same_key.k0 == key.k0 && same_key.k1 == key.k1);
    ASSERT(same->samples == state->samples);
    ASSERT(slice_equal(same->new_text, state->new_text));
    ASSERT(slice_equal(same->old_text, state->old_text));
    ASSERT((same->new_policy == NULL) == (state->new_policy == NULL));
    ASSERT(state->new_policy == NULL || index_policy_equal(state->new_policy, same->new_policy));
    return 0;
}
