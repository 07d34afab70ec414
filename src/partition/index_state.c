/* index_state.c - see index_state_int.h.
 *
 *     record = | version u8 | samples u8 | 0 u8 x 6 | key u64 x 2 | position u64 |
 *              | old bytes u32 | new bytes u32 | old policy | new policy |
 *
 * Integers are little-endian. A policy is the stored form of its JSON, or nothing at all, which
 * says that nothing is indexed. With the position of a complete index the old one is left out. The
 * key is the partition's for the hashes of paths. It is drawn when the partition is first opened
 * and stored with the first group that is written, as the first terms are. Version 1
 * says nothing about samples.
 */
#include "base/mem.h"
#include "base/random.h"
#include "partition/partition_int.h"

enum { STATE_VERSION_UNSAMPLED = 1, STATE_VERSION = 2 };

typedef struct StateHeader {
    uint8_t version;
    uint8_t samples; /* IndexSamples */
    uint8_t zero[6];
    HashKey key;
    uint64_t position;
    uint32_t old_len;
    uint32_t new_len;
} StateHeader;
static_assert(sizeof(StateHeader) == 40, "the header is written as it lies in memory");

/* What a path points to is the definition's, which the state may outlive. */
static PropertyPath copy_path(Arena *arena, PropertyPath path)
{
    Slice *segments = ARENA_NEW_ARRAY(arena, Slice, path.count);
    for (size_t i = 0; i < path.count; i++)
        segments[i] = arena_copy(arena, path.segments[i]);
    return (PropertyPath){.segments = segments, .count = path.count};
}

static Status compile(Arena *arena, const PartitionKeyDefinition *key, Slice text,
                      const IndexPolicy **out, Error *err)
{
    *out = NULL;
    if (text.len == 0)
        return STATUS_OK;
    Json json;
    TRY(json_open(text, &json, err));
    IndexPolicy *policy = NULL;
    TRY(index_policy_new(arena, json, key->paths, key->path_count, &policy, err));
    *out = policy;
    return STATUS_OK;
}

Status index_state_new(const PartitionKeyDefinition *key, Slice old_text, Slice new_text,
                       IndexSamples samples, IndexState **out, Error *err)
{
    AUTO(index_state_unref) IndexState *state = MEM_NEW(IndexState);
    atomic_init(&state->refs, 1);
    state->samples = samples;
    arena_init(&state->arena, 1024);
    /* A policy may point into its text and into the paths of the key. */
    PartitionKeyDefinition *own = ARENA_NEW(&state->arena, PartitionKeyDefinition);
    *own = *key;
    for (size_t i = 0; i < key->path_count; i++)
        own->paths[i] = copy_path(&state->arena, key->paths[i]);
    state->new_text = arena_copy(&state->arena, new_text);
    TRY(compile(&state->arena, own, state->new_text, &state->new_policy, err));
    state->old_text = state->new_text;
    state->old_policy = state->new_policy;
    if (!slice_equal(old_text, new_text)) {
        state->old_text = arena_copy(&state->arena, old_text);
        TRY(compile(&state->arena, own, state->old_text, &state->old_policy, err));
    }
    *out = TAKE(state);
    return STATUS_OK;
}

IndexState *index_state_ref(IndexState *state)
{
    if (state != NULL) /* a damaged partition has none */
        atomic_fetch_add_explicit(&state->refs, 1, memory_order_relaxed);
    return state;
}

void index_state_unref(IndexState *state)
{
    if (state == NULL || atomic_fetch_sub_explicit(&state->refs, 1, memory_order_acq_rel) > 1)
        return;
    arena_done(&state->arena);
    mem_free(state);
}

Slice index_state_encode(Arena *arena, const IndexState *state, HashKey key, uint64_t position)
{
    Slice old_text = position == INDEX_COMPLETE ? SLICE_EMPTY : state->old_text;
    StateHeader header = {
        .version = STATE_VERSION,
        .samples = (uint8_t)state->samples,
        .key = key,
        .position = position,
        .old_len = (uint32_t)old_text.len,
        .new_len = (uint32_t)state->new_text.len,
    };
    size_t len = sizeof(header) + old_text.len + state->new_text.len;
    char *bytes = arena_alloc(arena, len);
    memcpy(bytes, &header, sizeof(header));
    if (old_text.len > 0)
        memcpy(bytes + sizeof(header), old_text.ptr, old_text.len);
    if (state->new_text.len > 0)
        memcpy(bytes + sizeof(header) + old_text.len, state->new_text.ptr, state->new_text.len);
    return slice_make(bytes, len);
}

static bool read_header(Slice record, StateHeader *out)
{
    if (record.len < sizeof(*out))
        return false;
    memcpy(out, record.ptr, sizeof(*out));
    if (record.len - sizeof(*out) != (uint64_t)out->old_len + out->new_len)
        return false;
    if (out->version == STATE_VERSION_UNSAMPLED) {
        out->samples = SAMPLES_UNSURE;
        return true;
    }
    return out->version == STATE_VERSION && out->samples <= SAMPLES_ALL &&
           (out->samples != SAMPLES_TO_POSITION || out->position != INDEX_COMPLETE);
}

Status index_state_decode(Slice record, const PartitionKeyDefinition *definition, IndexState **out,
                          HashKey *key, uint64_t *position, Error *err)
{
    StateHeader header;
    if (!read_header(record, &header))
        return error_set(err, STATUS_CORRUPT, SUB_NONE, "the state of an index is damaged");
    Slice old_text = slice_make(record.ptr + sizeof(header), header.old_len);
    Slice new_text = slice_from(record, sizeof(header) + header.old_len);
    if (header.position == INDEX_COMPLETE)
        old_text = new_text;
    else if (header.samples == SAMPLES_TO_POSITION && !slice_equal(old_text, new_text))
        return error_set(err, STATUS_CORRUPT, SUB_NONE,
                         "the state of an index adds samples under two policies");
    if (index_state_new(definition, old_text, new_text, (IndexSamples)header.samples, out, err) !=
        STATUS_OK)
        return error_set(err, STATUS_CORRUPT, SUB_NONE,
                         "the state of an index names a policy that is none");
    *key = header.key;
    *position = header.position;
    return STATUS_OK;
}

Status partition_load_index(Partition *partition, bool is_new, Error *err)
{
    static const uint8_t key[] = {KEY_INDEX_STATE};
    AUTO(store_value_release) StoreValue value = {0};
    StoreFound found = STORE_ABSENT;
    TRY(store_get(partition->host->store, NULL, partition->space, slice_make(key, sizeof(key)),
                  STORE_READ_ANY, &value, &found, err));
    const PartitionSchema *schema = partition->current.schema;
    if (found == STORE_FOUND) {
        partition->writer.index_is_stored = true;
        TRY(index_state_decode(value.data, &schema->key, &partition->writer.index,
                               &partition->index_key, &partition->writer.index_position, err));
    } else {
        /* Items that were written before there was an index have no terms. */
        random_secret(&partition->index_key, sizeof(partition->index_key));
        partition->writer.index_position = is_new ? INDEX_COMPLETE : 0;
        TRY(index_state_new(&schema->key, is_new ? schema->index_text : SLICE_EMPTY,
                            schema->index_text, SAMPLES_ALL, &partition->writer.index, err));
    }
    current_schema_publish_index(&partition->current, partition->writer.index,
                                 partition_index_percent(partition));
    return STATUS_OK;
}

/* An estimate, from the numbers that were given out. */
unsigned partition_index_percent(const Partition *partition)
{
    uint64_t position = partition->writer.index_position;
    if (position == INDEX_COMPLETE)
        return 100;
    uint64_t first = item_number(partition->id, 0);
    if (position < first)
        return 0;
    uint64_t done = position - first;
    uint64_t all = partition->writer.counters.item_next;
    return done >= all ? 99 : (unsigned)(done * 99 / all);
}
