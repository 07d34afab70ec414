/* top_keys.c - see top_keys.h; putting sketches together is in top_keys_read.c.
 *
 * A sketch has its entries in three forms: the entries themselves, which stay where they are; a
 * heap, whose root is the lightest; and a table, which finds an entry by its key. Weights only
 * grow, so the heap may have an older, lower one: it is corrected at the root, when a place is
 * needed. A key that has an entry touches only the table and the entry.
 *
 * Keys that have no entry share cells, by their hash. A cell weighs at least as much as each of its
 * keys: what is added for a key is added to its cell, and a key that loses its entry raises its
 * cell to the weight of the entry. A key gets an entry when its cell reaches the lightest entry,
 * and inherits the cell's weight. So no cell is heavier than the lightest entry, an entry that gets
 * a new key grows by no more than was just added, and all entries together weigh at most what was
 * added in all: the lightest at most N / k (I10). If very many keys weigh about the same, most
 * requests cost one addition.
 *
 *     table word = | first 48 bits of the key's hash | entry + 1, 16 |       0 if it is free
 *
 * A key is identified by its hash alone, 64 bits made with a secret: with a thousand entries and
 * 10^12 keys, two are mistaken for one with a probability of one in ten thousand.
 *
 * Readers on other threads see only entries and their weights. The label of an entry changes under
 * its sequence number, which is odd meanwhile: a reader that sees the same even number before and
 * after has seen one state. The words between are atomic, stored with release and loaded with
 * acquire, so that no fence is needed; on x86-64 both are ordinary moves.
 */
#include "throughput/top_keys_int.h"

#include "base/mem.h"

uint32_t top_keys_entries(uint32_t threads)
{
    size_t each =
        sizeof(TopEntry) + sizeof(HeapNode) + (2 + TOP_CELLS_PER_WORD * 2) * sizeof(uint64_t);
    size_t sketches = (size_t)(threads == 0 ? 1 : threads) * TOP_KINDS * TOP_WINDOWS;
    size_t fit = TOP_BYTES_MAX / (each * sketches);
    uint32_t entries = TOP_ENTRIES_MAX;
    while (entries > TOP_ENTRIES_MIN && entries > fit)
        entries /= 2;
    return entries;
}

Top *top_keys_new(uint32_t entries, HashKey key)
{
    ASSERT(entries > 0 && entries <= TOP_ENTRIES_MAX);
    Top *top = MEM_NEW(Top);
    top->key = key;
    top->entries_max = entries;
    top->table_bits = 1;
    while ((uint32_t)1 << top->table_bits < 2 * entries)
        top->table_bits++;
    return top;
}

static void sketch_free(Sketch *sketch)
{
    if (sketch == NULL)
        return;
    mem_free(sketch->entries);
    mem_free(sketch->heap);
    mem_free(sketch->table);
    mem_free(sketch->cells);
    mem_free(sketch);
}

void top_keys_free(Top *top)
{
    if (top == NULL)
        return;
    for (size_t kind = 0; kind < TOP_KINDS; kind++)
        for (size_t i = 0; i < TOP_WINDOWS; i++)
            sketch_free(atomic_load_explicit(&top->sketches[kind][i], memory_order_relaxed));
    mem_free(top);
}

static size_t cells_of(const Top *top)
{
    return (size_t)TOP_CELLS_PER_WORD << top->table_bits;
}

/* The sketch of the window, empty if it was another's before. */
static Sketch *sketch_of(Top *top, TopKind kind, uint64_t window)
{
    _Atomic(Sketch *) *place = &top->sketches[kind][window % TOP_WINDOWS];
    Sketch *sketch = atomic_load_explicit(place, memory_order_relaxed);
    if (UNLIKELY(sketch == NULL)) {
        sketch = MEM_NEW(Sketch);
        sketch->entries = MEM_NEW_ARRAY(TopEntry, top->entries_max);
        sketch->heap = MEM_NEW_ARRAY(HeapNode, top->entries_max);
        sketch->table = MEM_NEW_ARRAY(uint64_t, (size_t)1 << top->table_bits);
        sketch->cells = MEM_NEW_ARRAY(uint64_t, cells_of(top));
        atomic_init(&sketch->window, window);
        atomic_store_explicit(place, sketch, memory_order_release);
    } else if (UNLIKELY(atomic_load_explicit(&sketch->window, memory_order_relaxed) != window)) {
        atomic_store_explicit(&sketch->used, 0, memory_order_relaxed);
        atomic_store_explicit(&sketch->window, window, memory_order_release);
        memset(sketch->table, 0, sizeof(uint64_t) << top->table_bits);
        memset(sketch->cells, 0, sizeof(uint64_t) * cells_of(top));
    }
    return sketch;
}

/* The table. */

enum { ENTRY_BITS = 16 };
static_assert(TOP_ENTRIES_MAX < 1 << ENTRY_BITS, "an entry's number stands in a word of the table");

static uint64_t word_of(uint64_t hash, uint32_t entry)
{
    return hash >> ENTRY_BITS << ENTRY_BITS | (entry + 1);
}

static uint32_t entry_of(uint64_t word)
{
    return (uint32_t)(word & (((uint64_t)1 << ENTRY_BITS) - 1)) - 1;
}

static size_t home_of(const Top *top, uint64_t word)
{
    return word >> (64 - top->table_bits);
}

/* Where the key's word is, or would be. There is always a free word: the table is at most half
 * full. */
static size_t table_find(const Top *top, const Sketch *sketch, uint64_t hash)
{
    size_t mask = ((size_t)1 << top->table_bits) - 1;
    size_t at = home_of(top, hash);
    for (; sketch->table[at] != 0; at = (at + 1) & mask) {
        uint64_t word = sketch->table[at];
        if ((word ^ hash) >> ENTRY_BITS == 0 && sketch->entries[entry_of(word)].hash == hash)
            break;
    }
    return at;
}

/* Closes the gap with later words that may stand there. */
static void table_remove(const Top *top, Sketch *sketch, uint64_t hash)
{
    size_t mask = ((size_t)1 << top->table_bits) - 1;
    size_t gap = table_find(top, sketch, hash);
    for (size_t at = (gap + 1) & mask; sketch->table[at] != 0; at = (at + 1) & mask) {
        size_t home = home_of(top, sketch->table[at]);
        if (((at - home) & mask) >= ((at - gap) & mask)) {
            sketch->table[gap] = sketch->table[at];
            gap = at;
        }
    }
    sketch->table[gap] = 0;
}

/* The heap. */

static void heap_down(Sketch *sketch, uint32_t at, uint32_t count)
{
    HeapNode node = sketch->heap[at];
    for (;;) {
        uint32_t child = 2 * at + 1;
        if (child + 1 < count && sketch->heap[child + 1].weight < sketch->heap[child].weight)
            child++;
        if (child >= count || sketch->heap[child].weight >= node.weight)
            break;
        sketch->heap[at] = sketch->heap[child];
        at = child;
    }
    sketch->heap[at] = node;
}

/* The lightest entry: the root, once it has its real weight. */
static uint32_t heap_lightest(Sketch *sketch, uint32_t count)
{
    for (;;) {
        HeapNode *root = &sketch->heap[0];
        uint64_t weight =
            atomic_load_explicit(&sketch->entries[root->entry].weight, memory_order_relaxed);
        if (root->weight == weight)
            return root->entry;
        root->weight = weight;
        heap_down(sketch, 0, count);
    }
}

static void heap_up(Sketch *sketch, uint32_t at)
{
    HeapNode node = sketch->heap[at];
    for (; at > 0 && sketch->heap[(at - 1) / 2].weight > node.weight; at = (at - 1) / 2)
        sketch->heap[at] = sketch->heap[(at - 1) / 2];
    sketch->heap[at] = node;
}

static uint64_t add_up(uint64_t a, uint64_t b)
{
    return b > UINT64_MAX - a ? UINT64_MAX : a + b;
}

/* The entries. */

static void entry_write(TopEntry *entry, const TopLabel *label, uint64_t weight)
{
    uint64_t words[TOP_LABEL_WORDS];
    memcpy(words, label, sizeof(words));
    uint32_t sequence = atomic_load_explicit(&entry->sequence, memory_order_relaxed);
    atomic_store_explicit(&entry->sequence, sequence + 1, memory_order_relaxed);
    for (size_t i = 0; i < TOP_LABEL_WORDS; i++)
        atomic_store_explicit(&entry->words[i], words[i], memory_order_release);
    atomic_store_explicit(&entry->weight, weight, memory_order_release);
    atomic_store_explicit(&entry->sequence, sequence + 2, memory_order_release);
}

static TopLabel label_of(const TopKey *key, uint64_t window, uint64_t inherited, TopName name)
{
    TopLabel label = {
        .window = window,
        .inherited = inherited,
        .container = key->container,
        .range = key->range,
        .epk_len = (uint8_t)(key->epk.len < TOP_EPK_MAX ? key->epk.len : TOP_EPK_MAX),
    };
    if (label.epk_len > 0)
        memcpy(label.epk, key->epk.ptr, label.epk_len);
    bool is_cut = false;
    size_t len = name.print(name.ctx, label.text, &is_cut);
    ASSERT(len <= TOP_TEXT_MAX);
    label.text_len = (uint8_t)len;
    label.is_cut = is_cut;
    return label;
}

/* The cell is chosen by the low bits of the hash, because the table uses the high ones. */
static uint64_t *cell_of(const Top *top, const Sketch *sketch, uint64_t hash)
{
    return &sketch->cells[hash & (cells_of(top) - 1)];
}

/* Frees the lightest entry for a key without one, unless the key is lighter; then adds to its cell.
 * The heap's root may be out of date, but only too light: most keys are lighter even so. */
static bool make_place(Top *top, Sketch *sketch, uint64_t hash, uint64_t weight, uint32_t *at,
                       uint64_t *inherited)
{
    uint64_t *cell = cell_of(top, sketch, hash);
    uint64_t heavier = add_up(*cell, weight);
    bool is_lighter = heavier < sketch->heap[0].weight;
    if (!is_lighter) {
        *at = heap_lightest(sketch, top->entries_max);
        is_lighter = heavier < sketch->heap[0].weight;
    }
    if (is_lighter) {
        *cell = heavier;
        return false;
    }
    *inherited = *cell;
    uint64_t leaver = sketch->entries[*at].hash;
    table_remove(top, sketch, leaver);
    uint64_t *left = cell_of(top, sketch, leaver);
    *left = *left > sketch->heap[0].weight ? *left : sketch->heap[0].weight;
    return true;
}

static void add_new(Top *top, Sketch *sketch, uint64_t hash, const TopKey *key, uint64_t weight,
                    TopName name)
{
    uint64_t window = atomic_load_explicit(&sketch->window, memory_order_relaxed);
    uint32_t used = atomic_load_explicit(&sketch->used, memory_order_relaxed);
    bool is_full = used == top->entries_max;
    uint32_t at = used;
    uint64_t inherited = 0;
    if (is_full && !make_place(top, sketch, hash, weight, &at, &inherited))
        return;
    TopEntry *entry = &sketch->entries[at];
    entry->hash = hash;
    sketch->table[table_find(top, sketch, hash)] = word_of(hash, at);
    TopLabel label = label_of(key, window, inherited, name);
    weight = add_up(inherited, weight);
    entry_write(entry, &label, weight);
    HeapNode node = {.weight = weight, .entry = at};
    if (is_full) {
        sketch->heap[0] = node;
        heap_down(sketch, 0, used);
    } else {
        sketch->heap[used] = node;
        heap_up(sketch, used);
        atomic_store_explicit(&sketch->used, used + 1, memory_order_release);
    }
}

static uint64_t multiply_fold(uint64_t a, uint64_t b)
{
    __uint128_t product = (__uint128_t)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/* Most EPKs are a hash of 16 bytes already, but not a secret one: two multiplications with the key
 * are enough to make its place unpredictable. */
static uint64_t hash_of(const Top *top, const TopKey *key)
{
    uint64_t where = (uint64_t)key->container << 32 | key->range;
    if (key->epk.len != 16) {
        HashKey salted = {top->key.k0 ^ where, top->key.k1};
        return hash_keyed(salted, key->epk);
    }
    uint64_t halves[2];
    memcpy(halves, key->epk.ptr, sizeof(halves));
    uint64_t mixed = multiply_fold(halves[0] ^ top->key.k0, halves[1] ^ top->key.k1);
    return multiply_fold(mixed ^ top->key.k1, where ^ top->key.k0);
}

void top_keys_add(Top *top, TopKind kind, uint64_t now_s, const TopKey *key, uint64_t weight,
                  TopName name)
{
    Sketch *sketch = sketch_of(top, kind, now_s / TOP_WINDOW_S);
    uint64_t hash = hash_of(top, key);
    uint64_t word = sketch->table[table_find(top, sketch, hash)];
    if (word == 0) {
        add_new(top, sketch, hash, key, weight, name);
        return;
    }
    TopEntry *entry = &sketch->entries[entry_of(word)];
    uint64_t before = atomic_load_explicit(&entry->weight, memory_order_relaxed);
    atomic_store_explicit(&entry->weight, add_up(before, weight), memory_order_relaxed);
}
