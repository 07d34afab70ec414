/* saved_state.c - see saved_state.h. */
#include "catalog/saved_state.h"

#include "base/mem.h"

SavedState *saved_state_new(const SavedRecord *record, const uint32_t *containers, size_t count)
{
    SavedState *state = MEM_NEW(SavedState);
    atomic_init(&state->refs, 1);
    arena_init(&state->arena, 512);
    state->number = record->number;
    state->name = arena_copy(&state->arena, record->name);
    state->database_id = arena_copy(&state->arena, record->database_id);
    state->database = record->database;
    state->saved_at_s = record->saved_at_s;
    state->is_restoring = record->is_restoring;
    uint32_t *copy = ARENA_NEW_ARRAY(&state->arena, uint32_t, count);
    for (size_t i = 0; i < count; i++)
        copy[i] = containers[i];
    state->containers = copy;
    state->container_count = count;
    return state;
}

SavedState *saved_state_ref(const SavedState *state)
{
    SavedState *shared = UNCONST(SavedState, state);
    atomic_fetch_add_explicit(&shared->refs, 1, memory_order_relaxed);
    return shared;
}

void saved_state_unref(SavedState *state)
{
    if (state == NULL || atomic_fetch_sub_explicit(&state->refs, 1, memory_order_acq_rel) > 1)
        return;
    arena_done(&state->arena);
    mem_free(state);
}

SavedRecord saved_state_record(const SavedState *state)
{
    return (SavedRecord){
        .number = state->number,
        .name = state->name,
        .database_id = state->database_id,
        .database = state->database,
        .saved_at_s = state->saved_at_s,
        .is_restoring = state->is_restoring,
    };
}

bool saved_state_has(const SavedState *state, uint32_t database, uint32_t container)
{
    if (state->database != database)
        return false;
    size_t low = 0;
    size_t high = state->container_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (state->containers[middle] == container)
            return true;
        if (state->containers[middle] < container)
            low = middle + 1;
        else
            high = middle;
    }
    return false;
}

static bool is_name_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '.';
}

Status saved_name_check(Slice name, Error *err)
{
    bool is_good = name.len > 0 && name.len <= SAVED_NAME_CHARS_MAX;
    for (size_t i = 0; i < name.len && is_good; i++)
        is_good = is_name_char(name.ptr[i]);
    if (is_good)
        return STATUS_OK;
    return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                     "The name of a snapshot has 1 to %d letters, digits, '-', '_' or '.'; found "
                     "'%.*s'.",
                     SAVED_NAME_CHARS_MAX, SLICE_CUT(name, 120));
}
