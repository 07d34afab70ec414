/* spaces.c - see spaces_int.h. */
#include "cluster/spaces_int.h"

#include "base/array.h"

#define TO(state) (1U << SPACE_STATE_##state)

/* The states that may follow each. */
static const unsigned NEXT_STATES[] = {
    [SPACE_STATE_ABSENT] = TO(FOLLOWING),
    [SPACE_STATE_FOLLOWING] = TO(ABSENT) | TO(SEEDING) | TO(TAKING),
    [SPACE_STATE_SEEDING] = TO(FOLLOWING) | TO(REFUSED),
    [SPACE_STATE_REFUSED] = TO(SEEDING),
    [SPACE_STATE_TAKING] = TO(SERVING) | TO(FOLLOWING),
    [SPACE_STATE_SERVING] = TO(YIELDING) | TO(FOLLOWING),
    [SPACE_STATE_YIELDING] = TO(FOLLOWING),
};

void space_table_done(SpaceTable *table)
{
    mem_free(table->items);
    *table = (SpaceTable){0};
}

/* The first slot whose space is not smaller. */
static size_t place_of(const SpaceTable *table, StoreSpace space)
{
    size_t from = 0;
    size_t to = table->count;
    while (from < to) {
        size_t middle = from + (to - from) / 2;
        if (table->items[middle].space < space)
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}

SpaceSlot *space_table_find(const SpaceTable *table, StoreSpace space)
{
    size_t i = place_of(table, space);
    return i < table->count && table->items[i].space == space ? &table->items[i] : NULL;
}

SpaceSlot *space_table_get(SpaceTable *table, StoreSpace space)
{
    size_t i = place_of(table, space);
    if (i < table->count && table->items[i].space == space)
        return &table->items[i];
    ARRAY_GROW(table->items, table->count, table->capacity, 16);
    memmove(&table->items[i + 1], &table->items[i], (table->count - i) * sizeof(SpaceSlot));
    table->count++;
    table->items[i] = (SpaceSlot){.space = space};
    return &table->items[i];
}

void space_table_remove(SpaceTable *table, StoreSpace space)
{
    size_t i = place_of(table, space);
    ASSERT(i < table->count && table->items[i].space == space);
    ASSERT(table->items[i].state == SPACE_STATE_ABSENT);
    table->count--;
    memmove(&table->items[i], &table->items[i + 1], (table->count - i) * sizeof(SpaceSlot));
}

void space_enter(SpaceSlot *slot, SpaceState state)
{
    ASSERT((NEXT_STATES[slot->state] & 1U << state) != 0);
    slot->state = state;
    slot->is_lost = false;
    slot->is_refused = false;
    slot->needs_seed = false;
    slot->is_handing = false;
    slot->apart_us = 0;
}

const char *hand_over_reason_text(HandOverReason reason)
{
    static const char *const texts[] = {
#define HAND_OVER_ROW(name, text) [REASON_##name] = text,
#include "cluster/hand_over_reasons.def"
        [REASON_UNKNOWN] = "for a reason that this program does not know",
    };
    return texts[reason];
}

const char *space_state_text(SpaceState state)
{
    switch (state) {
    case SPACE_STATE_ABSENT:
        return "absent";
    case SPACE_STATE_FOLLOWING:
        return "following";
    case SPACE_STATE_SEEDING:
        return "seeding";
    case SPACE_STATE_REFUSED:
        return "refused";
    case SPACE_STATE_TAKING:
        return "taking";
    case SPACE_STATE_SERVING:
        return "serving";
    case SPACE_STATE_YIELDING:
        return "yielding";
    }
    return "unknown";
}
