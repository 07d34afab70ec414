/* index_names.c - see index_names.h.
 *
 *     index     | hash | hash | hash | ...      each one: known already?
 *                         |                       no: take an item under it
 *     item      { "address": { "city": ... } }  --> steps, with their hashes under this index' key
 *
 * The steps of all documents form a tree. A step is a name once the index was seen to have it:
 * under a policy that has just changed, an item may have steps that are not in the index yet.
 */
#include "index/index_names.h"

#include "index/terms.h"

enum {
    SLOTS = 4 * INDEX_NAMES_MAX, /* so that a look-up compares few */
    TRIES_MAX = 16,              /* items under one path that may have gone */
    NO_STEP = UINT32_MAX,
};

typedef struct Step {
    TermPath path; /* under the key of the index that is read */
    uint32_t parent;
    bool is_element;
    bool is_seen; /* an index has it */
    Slice name;
} Step;

struct IndexNames {
    Arena *arena;
    Step *steps; /* parents first; the root is the first one */
    uint32_t count;
    uint32_t *slots; /* an index of 'steps' and 1; 0 if it is free */
    size_t bytes;
    bool is_full; /* something was left out */
    HashKey key;
    Arena scratch; /* for the terms of one document; empty between calls */
};

/* ---- steps ---- */

static uint32_t *slot_of(const IndexNames *names, TermPath path)
{
    size_t at = (size_t)(path % SLOTS);
    while (names->slots[at] != 0 && names->steps[names->slots[at] - 1].path != path)
        at = (at + 1) % SLOTS;
    return &names->slots[at];
}

static uint32_t find_step(const IndexNames *names, TermPath path)
{
    uint32_t slot = *slot_of(names, path);
    return slot == 0 ? NO_STEP : slot - 1;
}

static TermPath path_below(const IndexNames *names, TermPath parent, bool is_element, Slice name)
{
    return is_element ? term_path_element(names->key, parent)
                      : term_path_name(names->key, parent, name);
}

/* NO_STEP if there is no room. */
static uint32_t step_below(IndexNames *names, uint32_t parent, bool is_element, Slice name)
{
    TermPath path = path_below(names, names->steps[parent].path, is_element, name);
    uint32_t *slot = slot_of(names, path);
    if (*slot != 0)
        return *slot - 1;
    if (names->count == INDEX_NAMES_MAX || names->bytes + name.len > INDEX_NAMES_BYTES_MAX) {
        names->is_full = true;
        return NO_STEP;
    }
    names->bytes += name.len;
    names->steps[names->count] = (Step){
        .path = path,
        .parent = parent,
        .is_element = is_element,
        .name = arena_copy(names->arena, name),
    };
    *slot = ++names->count;
    return names->count - 1;
}

IndexNames *index_names_new(Arena *arena)
{
    IndexNames *names = ARENA_NEW(arena, IndexNames);
    names->arena = arena;
    names->steps = ARENA_NEW_ARRAY(arena, Step, INDEX_NAMES_MAX);
    names->slots = ARENA_NEW_ARRAY(arena, uint32_t, SLOTS);
    names->count = 1;
    return names;
}

/* Another index has other hashes for the same steps. */
static void begin_index(IndexNames *names, HashKey key)
{
    names->key = key;
    memset(names->slots, 0, SLOTS * sizeof(*names->slots));
    for (uint32_t i = 0; i < names->count; i++) {
        Step *step = &names->steps[i];
        step->path = i == 0 ? term_path_root(key)
                            : path_below(names, names->steps[step->parent].path, step->is_element,
                                         step->name);
        *slot_of(names, step->path) = i + 1;
    }
    /* Belongs to the item and is not in its document. */
    (void)step_below(names, 0, false, SLICE("_ts"));
}

/* ---- documents ---- */

/* Adds what the policy indexes at or below 'value'. Items are nested at most JSON_DEPTH_MAX deep.
 */
static void learn(IndexNames *names, Json value, PolicyPlace place, uint32_t at)
{
    JsonIter it = json_iter(value);
    if (it.is_object) {
        while (json_next(&it)) {
            PolicyPlace inside = policy_name(place, it.name);
            uint32_t step =
                policy_indexes_below(inside) ? step_below(names, at, false, it.name) : NO_STEP;
            if (step != NO_STEP)
                learn(names, it.value, inside, step);
        }
        return;
    }
    PolicyPlace inside = policy_element(place);
    if (!json_is(value, JSON_ARRAY) || it.left == 0 || !policy_indexes_below(inside))
        return;
    uint32_t step = step_below(names, at, true, SLICE_EMPTY);
    while (step != NO_STEP && json_next(&it))
        learn(names, it.value, inside, step);
}

/* Whether the index has the path already, as a step or as a sample of one; notes that it does. */
static bool note(IndexNames *names, TermPath path)
{
    uint32_t step = find_step(names, path);
    for (unsigned i = 0; i < TERM_SAMPLES && step == NO_STEP; i++)
        step = find_step(names, term_path_sample(path, i));
    if (step == NO_STEP)
        return false;
    names->steps[step].is_seen = true;
    return true;
}

/* Whether the document has the path without a name: that of a composite or spatial index, or of a
 * sample of it. */
static bool has_nameless(IndexNames *names, const IndexPolicy *policy, Json document, uint32_t ts_s,
                         TermPath path)
{
    TermSystem system = {.ts_s = ts_s};
    TermList list;
    bool has = false;
    terms_of(&names->scratch, policy, names->key, document, &system, &list);
    for (size_t i = 0; i < list.count && !has; i++)
        has = list.terms[i].path == path;
    arena_reset(&names->scratch);
    return has;
}

/* Learns from one item. '*is_known' becomes true if it told what the path is. */
static void learn_item(IndexNames *names, const IndexDocuments *documents, Json document,
                       uint32_t ts_s, TermPath path, bool *is_known)
{
    for (size_t i = 0; i < ARRAY_COUNT(documents->policies); i++) {
        const IndexPolicy *policy = documents->policies[i];
        if (policy == NULL || (i > 0 && policy == documents->policies[0]))
            continue;
        learn(names, document, policy_root(policy), 0);
        *is_known = note(names, path) || has_nameless(names, policy, document, ts_s, path);
        if (*is_known)
            return;
    }
}

/* Asks items under the path. '*is_known' is false if none could tell. A path without items does not
 * count: the store has not yet removed its last set. */
static Status ask_items(IndexNames *names, IndexReader *reader, const IndexDocuments *documents,
                        TermPath path, bool *is_known, Error *err)
{
    uint64_t numbers[TRIES_MAX];
    size_t count = 0;
    size_t gone = 0;
    TRY(index_path_items(reader, path, TRIES_MAX, numbers, &count, err));
    *is_known = false;
    for (size_t i = 0; i < count && !*is_known; i++) {
        Json document;
        uint32_t ts_s = 0;
        bool found = false;
        TRY(documents->fetch(documents->ctx, numbers[i], &document, &ts_s, &found, err));
        if (found)
            learn_item(names, documents, document, ts_s, path, is_known);
        gone += !found;
    }
    *is_known = *is_known || (gone == count && count < TRIES_MAX && !reader->budget->was_short);
    return STATUS_OK;
}

static bool is_late(const IndexBudget *budget)
{
    return budget->deadline_us != 0 && clock_monotonic_us(budget->clock) >= budget->deadline_us;
}

static Status collect(IndexNames *names, IndexReader *reader, const IndexDocuments *documents,
                      bool *is_complete, Error *err)
{
    AUTO(index_path_walk_close) IndexPathWalk *walk = index_path_walk_open(reader);
    bool is_named = true; /* every path so far */
    bool complete = true;
    TermPath path;
    bool found = true;
    while (found) {
        TRY(index_path_walk_next(walk, &path, &found, &complete, err));
        if (!found || note(names, path))
            continue;
        /* Without room nothing more is learnt, but of what is known more may be seen. */
        if (names->is_full)
            continue;
        /* An item may be large, so the clock is read for each. */
        if (is_late(reader->budget)) {
            complete = false;
            break;
        }
        bool is_known = false;
        TRY(ask_items(names, reader, documents, path, &is_known, err));
        is_named = is_named && is_known;
    }
    *is_complete = complete && is_named && !names->is_full;
    return STATUS_OK;
}

Status index_names_collect(IndexNames *names, IndexReader *reader, const IndexDocuments *documents,
                           bool *is_complete, Error *err)
{
    arena_init(&names->scratch, ARENA_LARGE_BYTES);
    begin_index(names, reader->key);
    Status status = collect(names, reader, documents, is_complete, err);
    arena_done(&names->scratch);
    return status;
}

/* ---- texts ---- */

static void print(const IndexNames *names, const Step *at, Buf *out)
{
    const Step *way[JSON_DEPTH_MAX + 1];
    size_t depth = 0;
    for (; at != &names->steps[0]; at = &names->steps[at->parent]) {
        ASSERT(depth < ARRAY_COUNT(way));
        way[depth++] = at;
    }
    while (depth > 0) {
        const Step *step = way[--depth];
        buf_byte(out, '/');
        if (step->is_element)
            buf_slice(out, SLICE("[]"));
        else
            property_path_print_segment(step->name, out);
    }
}

bool index_names_next(const IndexNames *names, size_t *position, Buf *out)
{
    while (++*position < names->count) { /* the root, which is the first, has no name */
        if (names->steps[*position].is_seen) {
            print(names, &names->steps[*position], out);
            return true;
        }
    }
    return false;
}
