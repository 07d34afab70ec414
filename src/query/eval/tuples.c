/* tuples.c - see tuples_int.h. */
#include "query/eval/tuples_int.h"

enum { CAPACITY_FIRST = 16 };

void tuples_init(TupleSet *set, Arena *arena, uint32_t width)
{
    *set = (TupleSet){.arena = arena, .width = width};
}

static Status hash_tuple(Run *run, const TupleSet *set, const Value *tuple, uint64_t *out)
{
    uint64_t hash = 0;
    for (uint32_t i = 0; i < set->width; i++) {
        TRY(run_charge_value(run, &tuple[i])); /* includes the comparison, if it is found */
        /* The hashes of small integers differ in few bits, and those of two of them would meet if
         * they were only moved and added. */
        hash = (hash ^ value_hash(&tuple[i])) * UINT64_C(0x9E3779B97F4A7C15);
        hash ^= hash >> 32;
    }
    *out = hash;
    return STATUS_OK;
}

static bool tuples_equal(const TupleSet *set, const Value *a, const Value *b)
{
    for (uint32_t i = 0; i < set->width; i++) {
        if (!value_equal(&a[i], &b[i]))
            return false;
    }
    return true;
}

/* The place in the table where the tuple is, or where it would be put. */
static Status find(Run *run, const TupleSet *set, const Value *tuple, uint64_t hash, uint32_t *out)
{
    uint32_t mask = 2 * set->capacity - 1;
    uint32_t at = (uint32_t)hash & mask;
    for (;; at = (at + 1) & mask) {
        TRY(run_charge(run, 1));
        uint32_t index = set->table[at];
        if (index == 0)
            break;
        if (set->hashes[index - 1] != hash)
            continue;
        if (tuples_equal(set, &set->tuples[(size_t)(index - 1) * set->width], tuple))
            break;
    }
    *out = at;
    return STATUS_OK;
}

static Status grow(Run *run, TupleSet *set)
{
    uint32_t capacity = ARRAY_CAPACITY_NEXT(set->hashes, set->capacity, CAPACITY_FIRST);
    size_t tuple_size = sizeof(Value) * set->width;
    TRY(run_reserve(run, capacity * (tuple_size + sizeof(uint64_t) + 2 * sizeof(uint32_t))));
    set->tuples =
        arena_realloc(set->arena, set->tuples, set->count * tuple_size, capacity * tuple_size);
    set->hashes = arena_realloc(set->arena, set->hashes, set->count * sizeof(*set->hashes),
                                capacity * sizeof(*set->hashes));
    set->capacity = capacity;
    set->table = ARENA_NEW_ARRAY(set->arena, uint32_t, 2 * (size_t)capacity);
    uint32_t mask = 2 * capacity - 1;
    for (uint32_t i = 0; i < set->count; i++) {
        uint32_t at = (uint32_t)set->hashes[i] & mask;
        while (set->table[at] != 0)
            at = (at + 1) & mask;
        set->table[at] = i + 1;
    }
    return STATUS_OK;
}

Status tuples_add(Run *run, TupleSet *set, const Value *tuple, uint32_t *index, bool *added)
{
    if (set->count == set->capacity)
        TRY(grow(run, set));
    uint64_t hash;
    uint32_t at;
    TRY(hash_tuple(run, set, tuple, &hash));
    TRY(find(run, set, tuple, hash, &at));
    *added = set->table[at] == 0;
    if (*added) {
        Value *copy = &set->tuples[(size_t)set->count * set->width];
        for (uint32_t i = 0; i < set->width; i++)
            copy[i] = value_keep(set->arena, &tuple[i]);
        set->hashes[set->count] = hash;
        set->table[at] = ++set->count;
        TRY(run_reserve(run, 0));
    }
    *index = set->table[at] - 1;
    return STATUS_OK;
}

Status tuples_has(Run *run, const TupleSet *set, const Value *tuple, bool *found)
{
    *found = false;
    if (set->count == 0)
        return STATUS_OK;
    uint64_t hash;
    uint32_t at;
    TRY(hash_tuple(run, set, tuple, &hash));
    TRY(find(run, set, tuple, hash, &at));
    *found = set->table[at] != 0;
    return STATUS_OK;
}
