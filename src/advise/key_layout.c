/* key_layout.c - see key_layout.h. */
#include "advise/key_layout.h"

#include "advise/hash_table.h"
#include "base/hash.h"
#include "base/mem.h"

#include <math.h>
#include <stdlib.h>

enum {
    WINDOW_ITEMS_MIN = 40, /* for each partition: with fewer, chance alone looks like a hot spot */
    EPK_KEPT = EPK_HASH_BYTES * PARTITION_KEY_PATHS_MAX,
};

static const HashKey FIXED_KEY = {5, 6};

/* A key takes more than two partitions' share of the writes of a moment, and more than twice what
 * it has of all items. */
static const double MOVING_SHARES_MIN = 2;
static const double MOVING_FACTOR_MIN = 2;

/* One logical partition. */
typedef struct Entry {
    uint8_t epk[EPK_KEPT]; /* zeros at the end */
    uint64_t items;
    uint64_t bytes;
    uint64_t recent_items; /* in the second half of the sample */
    size_t item;           /* the first one */
    uint32_t partition;
    uint32_t split_partition; /* after splits */
    uint32_t window;          /* plus one, to which 'window_items' belongs */
    uint64_t window_items;
} Entry;

typedef struct Maker {
    const KeyCandidate *key;
    const Sample *sample;
    const LayoutOptions *options;
    KeyLayout *out;
    uint32_t *numbers; /* of the entry, by item */
    Entry *entries;
    size_t entry_count;
    uint64_t recent_items;
    uint64_t fresh_items; /* of them: with a key that the first half has not */
} Maker;

uint32_t layout_partition(double fraction, uint32_t count)
{
    double at = fraction * (double)count;
    return at >= count ? count - 1 : (uint32_t)at;
}

/* ---- entries ---- */

static void note_item(Maker *m, size_t i, uint32_t number, bool is_new, const Epk *epk)
{
    Entry *entry = &m->entries[number];
    if (is_new) {
        PartitionKind kind =
            m->key->kind == KEY_HIERARCHICAL ? PARTITION_MULTI_HASH : PARTITION_HASH_V2;
        ASSERT(epk->len <= EPK_KEPT);
        memcpy(entry->epk, epk->bytes, epk->len);
        entry->item = i;
        entry->partition =
            layout_partition(epk_fraction(kind, epk_slice(epk)), m->options->partitions);
        m->entry_count++;
    }
    size_t size = m->sample->items[i].size;
    entry->items++;
    entry->bytes += size;
    if (i >= m->sample->count / 2) {
        entry->recent_items++;
        m->recent_items++;
        m->fresh_items += entry->item >= m->sample->count / 2;
    }
    m->numbers[i] = number;
}

static void make_entries(Maker *m)
{
    AUTO(hash_table_done) HashTable table;
    hash_table_init(&table);
    AUTO(arena_done) Arena scratch;
    arena_init(&scratch, ARENA_SMALL_BYTES);
    for (size_t i = 0; i < m->sample->count; i++) {
        Epk epk;
        arena_reset(&scratch);
        m->out->missing += !key_candidate_epk(m->key, m->sample->items[i].document, &scratch, &epk);
        bool is_new = false;
        uint32_t number = hash_table_add(&table, hash_keyed(FIXED_KEY, epk_slice(&epk)), &is_new);
        note_item(m, i, number, is_new, &epk);
    }
    m->out->distinct = m->entry_count;
}

static void find_largest(Maker *m)
{
    const Entry *most_items = &m->entries[0];
    uint64_t most_bytes = 0;
    for (size_t i = 0; i < m->entry_count; i++) {
        const Entry *entry = &m->entries[i];
        if (entry->items > most_items->items)
            most_items = entry;
        most_bytes = entry->bytes > most_bytes ? entry->bytes : most_bytes;
    }
    m->out->largest_share = (double)most_items->items / (double)m->sample->count;
    m->out->largest_item = most_items->item;
    m->out->largest_bytes = (double)most_bytes * sample_scale(m->sample);
}

/* ---- storage ---- */

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The largest share by the mean; there are 'count' shares that add up to 1. */
static double skew_of(const double *shares, uint32_t count)
{
    double most = 0;
    for (uint32_t i = 0; i < count; i++)
        most = shares[i] > most ? shares[i] : most;
    return most * count;
}

static double gini_of(const double *shares, uint32_t count)
{
    double sorted[LAYOUT_PARTITIONS_MAX];
    memcpy(sorted, shares, count * sizeof(double));
    qsort(sorted, count, sizeof(double), compare_doubles);
    double sum = 0;
    for (uint32_t i = 0; i < count; i++)
        sum += (2.0 * (i + 1) - count - 1) * sorted[i];
    return sum / count;
}

static int compare_entries(const void *a, const void *b)
{
    return memcmp((*(const Entry *const *)a)->epk, (*(const Entry *const *)b)->epk, EPK_KEPT);
}

/* Measures over how many partitions after splits the items lie that have the same first values. */
static void measure_prefix(Maker *m, const Entry *const *sorted, size_t level)
{
    size_t len = (level + 1) * EPK_HASH_BYTES;
    double total = (double)m->sample->count;
    for (size_t from = 0; from < m->entry_count;) {
        uint64_t items = 0;
        size_t to = from;
        while (to < m->entry_count && memcmp(sorted[to]->epk, sorted[from]->epk, len) == 0)
            items += sorted[to++]->items;
        uint32_t spread = sorted[to - 1]->split_partition - sorted[from]->split_partition + 1;
        m->out->prefix_partitions[level] += (double)items * spread / total;
        m->out->prefix_one_share[level] += spread == 1 ? (double)items / total : 0;
        from = to;
    }
}

/* Logical partitions in the order of their hashes, cut into parts as equal as can be. */
static double skew_after_splits(Maker *m)
{
    const Entry **sorted = MEM_NEW_ARRAY(const Entry *, m->entry_count);
    for (size_t i = 0; i < m->entry_count; i++)
        sorted[i] = &m->entries[i];
    qsort(sorted, m->entry_count, sizeof(const Entry *), compare_entries);
    double shares[LAYOUT_PARTITIONS_MAX] = {0};
    double total = (double)m->sample->kept_bytes;
    double before = 0;
    for (size_t i = 0; i < m->entry_count; i++) {
        double share = (double)sorted[i]->bytes / total;
        uint32_t partition = layout_partition(before + share / 2, m->options->partitions);
        m->entries[sorted[i] - m->entries].split_partition = partition;
        shares[partition] += share;
        before += share;
    }
    for (size_t level = 0; level + 1 < m->key->path_count; level++)
        measure_prefix(m, sorted, level);
    mem_free(sorted);
    return skew_of(shares, m->options->partitions);
}

static void measure_storage(Maker *m)
{
    KeyLayout *out = m->out;
    uint32_t count = m->options->partitions;
    for (size_t i = 0; i < m->entry_count; i++)
        out->partition_share[m->entries[i].partition] +=
            (double)m->entries[i].bytes / (double)m->sample->kept_bytes;
    for (uint32_t i = 0; i < count; i++)
        out->idle += out->partition_share[i] <= 0;
    out->skew = skew_of(out->partition_share, count);
    out->gini = gini_of(out->partition_share, count);
    out->split_skew = skew_after_splits(m);
}

/* ---- writes ---- */

/* The items [from, to); returns the number of the busiest key. */
static uint32_t measure_window(Maker *m, uint32_t window, size_t from, size_t to)
{
    double shares[LAYOUT_PARTITIONS_MAX] = {0};
    uint64_t most = 0;
    uint32_t busiest = 0;
    for (size_t i = from; i < to; i++) {
        Entry *entry = &m->entries[m->numbers[i]];
        if (entry->window != window + 1)
            entry->window_items = 0;
        entry->window = window + 1;
        entry->window_items++;
        if (entry->window_items > most) {
            most = entry->window_items;
            busiest = m->numbers[i];
        }
        /* Splits divide what begins with the same value of a hierarchical key. */
        bool is_split = m->key->kind == KEY_HIERARCHICAL;
        shares[is_split ? entry->split_partition : entry->partition] += 1.0 / (double)(to - from);
    }
    uint32_t count = m->options->partitions;
    for (uint32_t i = 0; i < count; i++)
        m->out->window_share[window][i] = (float)shares[i];
    m->out->write_skew += skew_of(shares, count);
    m->out->window_key_share += (double)most / (double)(to - from);
    return busiest;
}

static void measure_writes(Maker *m)
{
    KeyLayout *out = m->out;
    size_t items = m->sample->count;
    size_t windows = items / ((size_t)WINDOW_ITEMS_MIN * m->options->partitions);
    if (windows > LAYOUT_WINDOWS_MAX)
        windows = LAYOUT_WINDOWS_MAX;
    out->windows = windows < 2 ? 0 : (uint32_t)windows;
    if (out->windows == 0) {
        out->write_skew = out->skew;
        out->window_key_share = out->largest_share;
        return;
    }
    uint32_t before = UINT32_MAX;
    for (uint32_t i = 0; i < windows; i++) {
        uint32_t busiest = measure_window(m, i, items * i / windows, items * (i + 1) / windows);
        out->window_moves += before != UINT32_MAX && busiest != before;
        before = busiest;
    }
    out->write_skew /= (double)windows;
    out->window_key_share /= (double)windows;
}

bool key_layout_is_moving(const KeyLayout *layout, uint32_t partitions)
{
    return layout->windows > 0 && layout->window_key_share * partitions > MOVING_SHARES_MIN &&
           layout->window_key_share > MOVING_FACTOR_MIN * layout->largest_share &&
           layout->window_moves > 0;
}

/* ---- growth ---- */

/* A key that follows the time is complete when its time is over; how full it gets is what the
 * fullest was, at the expected rate instead of the observed one. */
static double days_of_moving(const Maker *m)
{
    double span = sample_span_days(m->sample);
    double observed = span > 0 ? sample_total_items(m->sample) / span : 0;
    double factor = observed > 0 ? m->options->items_per_day / observed : 1;
    return m->out->largest_bytes * factor < LAYOUT_LOGICAL_BYTES_MAX ? INFINITY : 0;
}

/* The share of new items that a key gets: as in the second half of the sample, less what may be
 * chance. What goes to keys that are new there will go to newer ones. */
static double growth_share(const Maker *m, const Entry *entry)
{
    double items = (double)entry->recent_items;
    double sure = fmax(items - 2 * sqrt(items), 0) / (double)m->recent_items;
    double fresh = (double)m->fresh_items / (double)m->recent_items;
    return fmax(sure, 1 / (double)m->entry_count) * (1 - fresh);
}

static double measure_growth(const Maker *m)
{
    if (!(m->options->items_per_day > 0))
        return NAN;
    if (key_layout_is_moving(m->out, m->options->partitions))
        return days_of_moving(m);
    double bytes_per_day = m->options->items_per_day * sample_item_bytes(m->sample);
    double scale = sample_scale(m->sample);
    double soonest = INFINITY;
    for (size_t i = 0; i < m->entry_count; i++) {
        const Entry *entry = &m->entries[i];
        double left = LAYOUT_LOGICAL_BYTES_MAX - (double)entry->bytes * scale;
        double rate = bytes_per_day * growth_share(m, entry);
        double days = left <= 0 ? 0 : rate > 0 ? left / rate : INFINITY;
        soonest = days < soonest ? days : soonest;
    }
    return soonest;
}

/* ---- items that belong together ---- */

typedef struct Member {
    uint32_t group;
    uint32_t number; /* of the entry */
} Member;

static int compare_members(const void *a, const void *b)
{
    const Member *x = a;
    const Member *y = b;
    int order = (x->group > y->group) - (x->group < y->group);
    return order != 0 ? order : (x->number > y->number) - (x->number < y->number);
}

/* How many of the items of one group are in the logical partition that has most of them. */
static size_t largest_run(const Member *members, size_t count)
{
    size_t most = 0;
    size_t run = 0;
    for (size_t i = 0; i < count; i++) {
        run = i > 0 && members[i].number == members[i - 1].number ? run + 1 : 1;
        most = run > most ? run : most;
    }
    return most;
}

/* Over the groups of two and more: all their items, and those that are with most of their group. */
static void count_groups(Member *members, size_t count, size_t *all, size_t *kept)
{
    qsort(members, count, sizeof(Member), compare_members);
    for (size_t from = 0; from < count;) {
        size_t to = from + 1;
        while (to < count && members[to].group == members[from].group)
            to++;
        if (to - from > 1) {
            *all += to - from;
            *kept += largest_run(members + from, to - from);
        }
        from = to;
    }
}

/* The share of items with the same value at 'path' that are in one logical partition. */
static double share_kept(const Maker *m, PropertyPath path)
{
    Member *members = MEM_NEW_ARRAY(Member, m->sample->count);
    size_t count = 0;
    AUTO(hash_table_done) HashTable groups;
    hash_table_init(&groups);
    AUTO(arena_done) Arena scratch;
    arena_init(&scratch, ARENA_SMALL_BYTES);
    for (size_t i = 0; i < m->sample->count; i++) {
        Json value = property_path_get(path, m->sample->items[i].document);
        if (json_is(value, JSON_UNDEFINED))
            continue;
        arena_reset(&scratch);
        bool is_new = false;
        uint64_t hash = hash_keyed(FIXED_KEY, json_print_arena(&scratch, value));
        members[count++] = (Member){hash_table_add(&groups, hash, &is_new), m->numbers[i]};
    }
    size_t all = 0;
    size_t kept = 0;
    count_groups(members, count, &all, &kept);
    mem_free(members);
    return all == 0 ? NAN : (double)kept / (double)all;
}

void key_layout_make(const KeyCandidate *key, const Sample *sample, const LayoutOptions *options,
                     KeyLayout *out)
{
    ASSERT(sample->count > 0);
    ASSERT(options->partitions > 0);
    ASSERT(options->partitions <= LAYOUT_PARTITIONS_MAX);
    *out = (KeyLayout){0};
    Maker m = {
        .key = key,
        .sample = sample,
        .options = options,
        .out = out,
        .numbers = MEM_NEW_ARRAY(uint32_t, sample->count),
        .entries = MEM_NEW_ARRAY(Entry, sample->count),
    };
    make_entries(&m);
    find_largest(&m);
    measure_storage(&m);
    measure_writes(&m);
    out->days_to_full = measure_growth(&m);
    out->together_share = options->together.count > 0 ? share_kept(&m, options->together) : NAN;
    /* Versions of one item have the same _rid. */
    static const Slice rid = SLICE_INIT("_rid");
    double same = share_kept(&m, (PropertyPath){&rid, 1});
    out->changed_share = isnan(same) ? 0 : 1 - same;
    mem_free(m.numbers);
    mem_free(m.entries);
}
