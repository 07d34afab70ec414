/* top_keys_read.c - puts the sketches of several threads and minutes together; see top_keys.h.
 *
 * A key's lower bound is the sum over the sketches that have it. Its upper bound is the sum over
 * all of them: in a full sketch that does not have it, it weighed at most as much as the lightest
 * entry.
 */
#include "throughput/top_keys_int.h"

#include <stdlib.h>

/* What one sketch says about one key. */
typedef struct Part {
    size_t sketch;
    uint64_t weight;
    TopLabel label;
} Part;

typedef struct Gathering {
    Arena *arena;
    const TopQuery *query;
    Part *parts;
    size_t count;
    size_t sketches;         /* looked at so far */
    uint64_t *lightest;      /* of each, 0 if it is not full */
    uint64_t lightest_total; /* of them all */
} Gathering;

/* False if the writer changed it during each attempt: such an entry is one of the lightest. */
static bool entry_read(const TopEntry *entry, TopLabel *label, uint64_t *weight)
{
    enum { ATTEMPTS = 8 };
    uint64_t words[TOP_LABEL_WORDS];
    for (int i = 0; i < ATTEMPTS; i++) {
        uint32_t before = atomic_load_explicit(&entry->sequence, memory_order_acquire);
        for (size_t w = 0; w < TOP_LABEL_WORDS; w++)
            words[w] = atomic_load_explicit(&entry->words[w], memory_order_acquire);
        *weight = atomic_load_explicit(&entry->weight, memory_order_acquire);
        uint32_t after = atomic_load_explicit(&entry->sequence, memory_order_relaxed);
        if (before == after && before % 2 == 0) {
            memcpy(label, words, sizeof(*label));
            return true;
        }
    }
    return false;
}

static void gather(Gathering *g, const Top *top, const Sketch *sketch, uint64_t window)
{
    if (sketch == NULL || atomic_load_explicit(&sketch->window, memory_order_acquire) != window)
        return;
    uint32_t used = atomic_load_explicit(&sketch->used, memory_order_acquire);
    uint64_t lightest = UINT64_MAX;
    for (uint32_t i = 0; i < used; i++) {
        Part *part = &g->parts[g->count];
        if (!entry_read(&sketch->entries[i], &part->label, &part->weight) ||
            part->label.window != window)
            continue;
        if (part->weight < lightest)
            lightest = part->weight;
        if (part->label.container != g->query->container ||
            (g->query->has_range && part->label.range != g->query->range))
            continue;
        part->sketch = g->sketches;
        g->count++;
    }
    g->lightest[g->sketches] = used == top->entries_max && lightest != UINT64_MAX ? lightest : 0;
    g->lightest_total += g->lightest[g->sketches];
    g->sketches++;
}

static int compare_keys(const TopLabel *a, const TopLabel *b)
{
    if (a->range != b->range)
        return a->range < b->range ? -1 : 1;
    int order = slice_compare(slice_make(a->epk, a->epk_len), slice_make(b->epk, b->epk_len));
    /* Two keys whose EPKs have the same beginning differ in their texts. */
    return order != 0
               ? order
               : slice_compare(slice_make(a->text, a->text_len), slice_make(b->text, b->text_len));
}

static int compare_parts(const void *left, const void *right)
{
    const Part *a = left;
    const Part *b = right;
    int order = compare_keys(&a->label, &b->label);
    if (order != 0)
        return order;
    return (a->sketch > b->sketch) - (a->sketch < b->sketch);
}

static int compare_rows(const void *left, const void *right)
{
    const TopRow *a = left;
    const TopRow *b = right;
    if (a->at_least != b->at_least)
        return a->at_least > b->at_least ? -1 : 1;
    if (a->at_most != b->at_most)
        return a->at_most > b->at_most ? -1 : 1;
    return slice_compare(a->text, b->text);
}

/* The row of the parts with one key. */
static TopRow join(const Gathering *g, const Part *parts, size_t count)
{
    const TopLabel *label = &parts[0].label;
    TopRow row = {
        .range = label->range,
        .at_most = g->lightest_total,
        .epk = slice_make(label->epk, label->epk_len),
        .text = slice_make(label->text, label->text_len),
        .is_cut = label->is_cut != 0,
    };
    for (size_t i = 0; i < count; i++) {
        /* A key that lost its entry and got another while it was read is twice in a sketch. */
        if (i + 1 < count && parts[i + 1].sketch == parts[i].sketch)
            continue;
        const Part *part = &parts[i];
        row.at_least += part->weight - part->label.inherited;
        uint64_t lightest = g->lightest[part->sketch];
        row.at_most += part->weight > lightest ? part->weight - lightest : 0;
    }
    return row;
}

static void gathering_init(Gathering *g, const Top *const *tops, size_t count, size_t windows)
{
    size_t room = 1; /* an entry is read before it is known whether it is needed */
    for (size_t i = 0; i < count; i++)
        room += tops[i]->entries_max * windows;
    g->parts = arena_alloc(g->arena, room * sizeof(Part));
    g->lightest = arena_zalloc(g->arena, count * windows * sizeof(uint64_t));
}

size_t top_keys_read(const Top *const *tops, size_t count, const TopQuery *query, Arena *arena,
                     TopRow **rows)
{
    ASSERT(query->windows < TOP_WINDOWS);
    Gathering g = {.arena = arena, .query = query};
    gathering_init(&g, tops, count, query->windows + 1);
    uint64_t now = query->now_s / TOP_WINDOW_S;
    uint64_t first = now > query->windows ? now - query->windows : 0;
    for (size_t i = 0; i < count; i++) {
        for (uint64_t window = first; window <= now; window++) {
            const _Atomic(Sketch *) *place = &tops[i]->sketches[query->kind][window % TOP_WINDOWS];
            gather(&g, tops[i], atomic_load_explicit(place, memory_order_acquire), window);
        }
    }
    if (g.count == 0)
        return 0;
    qsort(g.parts, g.count, sizeof(Part), compare_parts);
    TopRow *found = ARENA_NEW_ARRAY(arena, TopRow, g.count);
    size_t found_count = 0;
    for (size_t i = 0; i < g.count;) {
        size_t end = i + 1;
        while (end < g.count && compare_keys(&g.parts[i].label, &g.parts[end].label) == 0)
            end++;
        found[found_count++] = join(&g, &g.parts[i], end - i);
        i = end;
    }
    qsort(found, found_count, sizeof(TopRow), compare_rows);
    *rows = found;
    return found_count < query->rows_max ? found_count : query->rows_max;
}
