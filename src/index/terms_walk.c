/* terms_walk.c - walks a document and makes its entries: see terms_int.h.
 *
 * The policy is walked in step with the document, so that a part that is not indexed costs one
 * look-up. When a document replaces another, members with the same bytes are passed over: each
 * value has one encoding.
 */
#include "index/terms_int.h"

#include "base/array.h"

enum {
    VALUES_BYTES = 16 << 10, /* of one piece of memory for values */
    ENTRIES_FIRST = 256,
    LOOSE_SETTLE_MIN = 1 << 16, /* a list of at least this length is settled before it grows */
};

/* All values of one byte. */
static const char TAGS[TERM_END + 1] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14};

static void walk_value(Collector *c, Json value, PolicyPlace place, TermPath path);
static void walk_members(Collector *c, Json object, PolicyPlace place, TermPath path);
static void walk_elements(Collector *c, Json array, PolicyPlace place, TermPath path);
static void walk_both(Collector *c, Json old, Json new, PolicyPlace place, TermPath path);
static void collect_system(Collector *c, const TermSystem *system);
/* What became of an entry. Only of a new one the value must stay. */
typedef enum AddResult { ADD_DROPPED, ADD_KNOWN, ADD_NEW } AddResult;
static AddResult add(Collector *c, const Entry *entry);

/* ---- documents ---- */

void collect_init(Collector *c, Arena *arena, HashKey key)
{
    *c = (Collector){.arena = arena, .key = key, .root = term_path_root(key)};
    c->ts_path = term_path_name(key, c->root, SLICE("_ts"));
}

void collect_document(Collector *c, Json document, const TermSystem *system)
{
    collect_tag(c, c->root, TERM_PRESENT);
    collect_tag(c, c->root, TERM_OBJECT);
    if (json_is(document, JSON_OBJECT))
        walk_members(c, document, policy_root(c->policy), c->root);
    collect_system(c, system);
    collect_composites(c, document, system);
    collect_spatials(c, document);
}

void collect_difference(Collector *c, Json old_document, const TermSystem *old_system,
                        Json new_document, const TermSystem *new_system)
{
    c->all_loose = true;
    walk_both(c, old_document, new_document, policy_root(c->policy), c->root);
    c->sign = -1;
    collect_system(c, old_system);
    collect_composites(c, old_document, old_system);
    collect_spatials(c, old_document);
    c->sign = 1;
    collect_system(c, new_system);
    collect_composites(c, new_document, new_system);
    collect_spatials(c, new_document);
}

static void collect_system(Collector *c, const TermSystem *system)
{
    collect_tag(c, c->ts_path, TERM_PRESENT);
    size_t start = collect_begin(c);
    bool exact = true; /* stays so: it is an integer of 32 bits */
    term_put_number(&c->values, system->ts_s, &exact);
    c->is_always = true;
    collect_end(c, c->ts_path, start);
    c->is_always = false;
}

/* Called if something at or below 'place' is indexed. */
static void walk_value(Collector *c, Json value, PolicyPlace place, TermPath path)
{
    JsonType type = json_type(value);
    bool is_indexed = policy_indexes(place);
    if (is_indexed)
        collect_tag(c, path, TERM_PRESENT);
    if (type == JSON_OBJECT) {
        collect_tag(c, path, TERM_OBJECT);
        walk_members(c, value, place, path);
    } else if (type == JSON_ARRAY) {
        collect_tag(c, path, TERM_ARRAY);
        walk_elements(c, value, place, path);
    } else if (is_indexed) {
        size_t start = collect_begin(c);
        bool exact = true; /* only readers need it */
        term_put_json(&c->values, value, &exact);
        c->is_always = policy_indexes_always(place);
        collect_end(c, path, start);
        c->is_always = false;
    }
}

static TermPath path_of_name(Collector *c, TermPath parent, Slice name)
{
    if (UNLIKELY(name.len > KNOWN_NAME_BYTES || name.len == 0))
        return term_path_name(c->key, parent, name);
    uint64_t ends =
        (uint64_t)(uint8_t)name.ptr[0] << 16 | (uint8_t)name.ptr[name.len - 1] << 8 | name.len;
    uint64_t mixed = (parent ^ ends) * UINT64_C(0x9e3779b97f4a7c15);
    KnownName *known = &c->names[mixed >> (64 - COLLECT_NAMES_BITS)];
    if (known->parent == parent && known->len == name.len + 1 &&
        memcmp(known->name, name.ptr, name.len) == 0)
        return known->path;
    known->parent = parent;
    known->path = term_path_name(c->key, parent, name);
    known->len = (uint8_t)(name.len + 1);
    memcpy(known->name, name.ptr, name.len);
    return known->path;
}

static void walk_members(Collector *c, Json object, PolicyPlace place, TermPath path)
{
    JsonIter it = json_iter(object);
    while (json_next(&it)) {
        PolicyPlace inside = policy_name(place, it.name);
        if (policy_indexes_below(inside))
            walk_value(c, it.value, inside, path_of_name(c, path, it.name));
    }
}

static void walk_elements(Collector *c, Json array, PolicyPlace place, TermPath path)
{
    PolicyPlace inside = policy_element(place);
    if (!policy_indexes_below(inside))
        return;
    TermPath element = term_path_element(c->key, path);
    ++c->arrays_open;
    JsonIter it = json_iter(array);
    while (json_next(&it))
        walk_value(c, it.value, inside, element);
    --c->arrays_open;
}

static bool has_same_bytes(Json a, Json b)
{
    size_t size = json_size(a);
    return size == json_size(b) && (size == 0 || memcmp(a.at, b.at, size) == 0);
}

/* A member of two objects; it may be missing in one of them. */
static void walk_member(Collector *c, Json old, Json new, PolicyPlace place, TermPath path)
{
    if (json_is(old, JSON_OBJECT) && json_is(new, JSON_OBJECT)) {
        walk_both(c, old, new, place, path);
        return;
    }
    c->sign = -1;
    if (!json_is(old, JSON_UNDEFINED))
        walk_value(c, old, place, path);
    c->sign = 1;
    if (!json_is(new, JSON_UNDEFINED))
        walk_value(c, new, place, path);
}

/* Both are objects at the same path, whose own terms do not change. */
static void walk_both(Collector *c, Json old, Json new, PolicyPlace place, TermPath path)
{
    JsonIter it = json_iter(new);
    while (json_next(&it)) {
        Json before = json_get(old, it.name);
        if (has_same_bytes(before, it.value))
            continue;
        PolicyPlace inside = policy_name(place, it.name);
        if (policy_indexes_below(inside))
            walk_member(c, before, it.value, inside, term_path_name(c->key, path, it.name));
    }
    it = json_iter(old);
    while (json_next(&it)) {
        if (!json_is(json_get(new, it.name), JSON_UNDEFINED))
            continue;
        PolicyPlace inside = policy_name(place, it.name);
        if (policy_indexes_below(inside))
            walk_member(c, it.value, JSON_NONE, inside, term_path_name(c->key, path, it.name));
    }
}

/* ---- entries ---- */

size_t collect_begin(Collector *c)
{
    if (UNLIKELY(c->values.capacity - c->values.len < TERM_VALUE_BYTES_MAX)) {
        c->values = (Buf){.ptr = arena_alloc(c->arena, VALUES_BYTES),
                          .capacity = VALUES_BYTES,
                          .bytes_max = VALUES_BYTES};
    }
    return c->values.len;
}

static uint64_t prefix_of(const char *value, size_t len)
{
    if (LIKELY(len >= sizeof(uint64_t)))
        return be64_get(value);
    uint64_t prefix = 0;
    for (size_t i = 0; i < len; ++i)
        prefix |= (uint64_t)(uint8_t)value[i] << (56 - 8 * i);
    return prefix;
}

void collect_end(Collector *c, TermPath path, size_t start)
{
    const char *value = c->values.ptr + start;
    size_t len = c->values.len - start;
    ASSERT(!buf_full(&c->values));
    ASSERT(len <= TERM_VALUE_BYTES_MAX);
    Entry entry = {.path = path,
                   .prefix = prefix_of(value, len),
                   .value = value,
                   .item = c->item,
                   .len = (uint16_t)len,
                   .sign = c->sign,
                   .kind = c->is_always ? ENTRY_FREE : ENTRY_PAID};
    AddResult result = add(c, &entry);
    bool stays = result == ADD_NEW;
    if (result != ADD_DROPPED) {
        entry.kind = ENTRY_SAMPLE;
        for (unsigned i = 0, samples = term_samples(slice_make(value, len)); i < samples; ++i) {
            entry.path = term_path_sample(path, i);
            stays = add(c, &entry) == ADD_NEW || stays; /* shares the value of the first one */
        }
    }
    if (!stays)
        c->values.len = start;
}

void collect_tag(Collector *c, TermPath path, TermTag tag)
{
    ASSERT(tag < sizeof(TAGS));
    Entry entry = {.path = path,
                   .prefix = (uint64_t)tag << 56,
                   .value = &TAGS[tag],
                   .item = c->item,
                   .len = 1,
                   .sign = c->sign,
                   .kind = ENTRY_FREE};
    (void)add(c, &entry); /* if it is not kept, there is no memory to give back */
}

static void grow(Arena *arena, EntryList *list)
{
    size_t capacity = ARRAY_CAPACITY_NEXT(list->entries, list->capacity, ENTRIES_FIRST);
    list->entries =
        arena_realloc(arena, list->entries, list->count * sizeof(Entry), capacity * sizeof(Entry));
    list->capacity = capacity;
}

void entries_push(Arena *arena, EntryList *list, const Entry *entry)
{
    if (UNLIKELY(list->count == list->capacity))
        grow(arena, list);
    list->entries[list->count++] = *entry;
}

/* Makes room for more loose entries, and for settling them. */
static void make_room(Collector *c)
{
    EntryList *loose = &c->loose;
    if (loose->count >= LOOSE_SETTLE_MIN) {
        collect_settle(c, false);
        if (loose->count <= loose->capacity / 2)
            return;
    }
    grow(c->arena, loose);
    c->scratch = arena_alloc(c->arena, loose->capacity * sizeof(Entry));
}

static bool add_loose(Collector *c, const Entry *entry)
{
    EntryList *loose = &c->loose;
    /* The high bits depend on all others. */
    uint64_t mixed = (entry->path ^ entry->prefix) * UINT64_C(0x9e3779b97f4a7c15);
    uint32_t *slot = &c->recent[mixed >> (64 - COLLECT_RECENT_BITS)];
    /* The slot may be out of date, so the entry itself is compared. */
    if (*slot < loose->count && loose->entries[*slot].sign == entry->sign &&
        entries_same_term(&loose->entries[*slot], entry))
        return false;
    if (UNLIKELY(loose->count == loose->capacity))
        make_room(c);
    if (UNLIKELY(loose->count >= TERMS_MAX))
        return false;
    *slot = (uint32_t)loose->count;
    loose->entries[loose->count++] = *entry;
    return true;
}

bool collect_sure(Collector *c, const Entry *entry)
{
    c->added++;
    c->added_paid += entry->kind == ENTRY_PAID;
    return term_table_add(c->arena, &c->sure, entry);
}

/* An entry is dropped if the same was added before, or if there are too many. */
static AddResult add(Collector *c, const Entry *entry)
{
    if (c->all_loose || c->arrays_open > 0)
        return add_loose(c, entry) ? ADD_NEW : ADD_DROPPED;
    return collect_sure(c, entry) ? ADD_NEW : ADD_KNOWN;
}

void collect_settle(Collector *c, bool is_final)
{
    EntryList *loose = &c->loose;
    if (loose->count == 0)
        return;
    Entry *sorted = entries_sort(loose->entries, c->scratch, loose->count);
    c->scratch = sorted == c->scratch ? loose->entries : c->scratch;
    size_t kept = 0;
    for (size_t i = 0, end; i < loose->count; i = end) {
        const Entry *old = NULL;
        const Entry *new = NULL;
        for (end = i; end < loose->count && entries_same_term(&sorted[i], &sorted[end]); ++end)
            *(sorted[end].sign < 0 ? &old : &new) = &sorted[end];
        if (is_final && old != NULL && new != NULL)
            continue;
        Entry both[2];
        size_t count = 0;
        if (old != NULL)
            both[count++] = *old;
        if (new != NULL)
            both[count++] = *new;
        memcpy(&sorted[kept], both, count * sizeof(Entry));
        kept += count;
    }
    loose->entries = sorted;
    loose->count = kept;
}
