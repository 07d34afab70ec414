/* terms_sort.c - sorting entries: see terms_int.h.
 *
 * Paths are hashes, so their first bytes are spread evenly: distributing many entries by that byte
 * leaves short lists, mostly of one path or two, which are merge sorted. Items of a group often
 * come in order and have few different values, so a merge first checks whether there is anything to
 * do.
 */
#include "index/terms_int.h"

enum {
    INSERT_MAX = 8, /* up to this many are sorted by insertion */
    DEAL_MIN = 512, /* fewer are not distributed */
    BUCKETS = 256,
    BUCKET_SHIFT = 56,
};

static void sort(Entry *entries, Entry *scratch, size_t count);

static int compare_values(const Entry *a, const Entry *b)
{
    return slice_compare(slice_make(a->value, a->len), slice_make(b->value, b->len));
}

static inline bool is_less(const Entry *a, const Entry *b)
{
    if (a->path != b->path)
        return a->path < b->path;
    if (a->prefix != b->prefix)
        return a->prefix < b->prefix;
    bool is_decided = a->len <= sizeof(a->prefix) && a->len == b->len;
    return !is_decided && compare_values(a, b) < 0;
}

Entry *entries_sort(Entry *entries, Entry *scratch, size_t count)
{
    if (count < DEAL_MIN) {
        sort(entries, scratch, count);
        return entries;
    }
    size_t ends[BUCKETS] = {0};
    for (size_t i = 0; i < count; ++i)
        ++ends[entries[i].path >> BUCKET_SHIFT];
    size_t start = 0;
    for (size_t i = 0; i < BUCKETS; ++i) {
        size_t in_bucket = ends[i];
        ends[i] = start;
        start += in_bucket;
    }
    for (size_t i = 0; i < count; ++i)
        scratch[ends[entries[i].path >> BUCKET_SHIFT]++] = entries[i];
    start = 0;
    for (size_t i = 0; i < BUCKETS; ++i) {
        sort(scratch + start, entries, ends[i] - start);
        start = ends[i];
    }
    return scratch;
}

static void insert(Entry *entries, size_t count)
{
    for (size_t i = 1; i < count; ++i) {
        if (!is_less(&entries[i], &entries[i - 1]))
            continue;
        Entry moved = entries[i];
        size_t at = i;
        do {
            entries[at] = entries[at - 1];
            --at;
        } while (at > 0 && is_less(&moved, &entries[at - 1]));
        entries[at] = moved;
    }
}

/* Merge sort in place; 'scratch' has room for half of them. */
static void sort(Entry *entries, Entry *scratch, size_t count)
{
    if (count <= INSERT_MAX) {
        insert(entries, count);
        return;
    }
    size_t middle = count / 2;
    sort(entries, scratch, middle);
    sort(entries + middle, scratch, count - middle);
    if (!is_less(&entries[middle], &entries[middle - 1]))
        return;
    memcpy(scratch, entries, middle * sizeof(Entry));
    const Entry *left = scratch;
    const Entry *left_end = scratch + middle;
    const Entry *right = entries + middle;
    const Entry *right_end = entries + count;
    Entry *out = entries;
    while (left < left_end && right < right_end)
        *out++ = is_less(right, left) ? *right++ : *left++;
    memmove(out, left, (size_t)(left_end - left) * sizeof(Entry));
}
