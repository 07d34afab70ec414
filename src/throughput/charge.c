/* charge.c - see charge.h. */
#include "throughput/charge.h"

#include "base/encoding.h"

typedef struct Row {
    uint32_t kb;
    uint32_t read;  /* hundredths */
    uint32_t write; /* with few indexed terms */
} Row;

/* The published figures; a page of documentation calls them illustrative. */
static const Row ROWS[] = {
    {1, 100, 495},     {2, 104, 629},      {4, 114, 667},        {8, 133, 704},
    {16, 167, 952},    {32, 219, 1123},    {64, 476, 2267},      {128, 995, 4819},
    {256, 2028, 9829}, {512, 4095, 18457}, {1024, 14590, 62500}, {2048, 29180, 125000},
};

enum { TERM = 20, PATCH_OPERATION = 40, FEED_BASE = 100 };
enum {
    QUERY_BASE = 228,
    QUERY_ITEM = 3,
    QUERY_ITEM_KB = 30,
    QUERY_RESULT_KB = 5,
    QUERY_KEYS_PER_CENT = 10,
};

/* The line through the two rows around 'bytes'; flat below the first. */
static Charge interpolate(size_t bytes, bool is_write)
{
    const Row *high = &ROWS[0];
    size_t i = 0;
    while (i + 1 < ARRAY_COUNT(ROWS) && bytes > (size_t)high->kb * 1024)
        high = &ROWS[++i];
    Charge high_cost = is_write ? high->write : high->read;
    if (i == 0)
        return high_cost;
    const Row *low = &ROWS[i - 1];
    Charge low_cost = is_write ? low->write : low->read;
    uint64_t low_bytes = (uint64_t)low->kb * 1024;
    uint64_t width = (uint64_t)high->kb * 1024 - low_bytes;
    return low_cost + (high_cost - low_cost) * (bytes - low_bytes) / width;
}

Charge charge_read(size_t bytes)
{
    return interpolate(bytes, false);
}

Charge charge_miss(void)
{
    return ROWS[0].read;
}

Charge charge_create(size_t bytes, uint32_t terms)
{
    return interpolate(bytes, true) + (Charge)terms * TERM;
}

Charge charge_delete(size_t bytes, uint32_t terms)
{
    return charge_create(bytes, terms);
}

Charge charge_replace(size_t bytes_before, size_t bytes_after, uint32_t terms)
{
    return interpolate(bytes_before, true) + interpolate(bytes_after, true) + (Charge)terms * TERM;
}

Charge charge_patch(size_t bytes_before, size_t bytes_after, uint32_t terms, size_t operations)
{
    return charge_replace(bytes_before, bytes_after, terms) + operations * PATCH_OPERATION;
}

/* About what reading the items one by one would cost, without a unit for each small one. */
Charge charge_feed(size_t bytes, size_t items)
{
    Charge by_size = bytes / 1024 * ROWS[0].read / 2;
    Charge by_count = items * 5;
    return FEED_BASE + (by_size > by_count ? by_size : by_count);
}

/* A base for each partition that was visited, a little for every index key, and for items a part of
 * what reading them one by one would cost. */
Charge charge_query(const QueryWork *work)
{
    uint64_t partitions = work->partitions == 0 ? 1 : work->partitions;
    Charge items = work->items * QUERY_ITEM + work->item_bytes / 1024 * QUERY_ITEM_KB;
    Charge results = work->result_bytes / 1024 * QUERY_RESULT_KB;
    return partitions * QUERY_BASE + work->index_keys / QUERY_KEYS_PER_CENT + items + results;
}

Charge charge_metadata_read(void)
{
    return 100;
}

Charge charge_metadata_write(void)
{
    return 495;
}

Charge charge_metadata_query(void)
{
    return 233;
}

size_t charge_print(Charge charge, char out[CHARGE_TEXT_MAX])
{
    size_t len = u64_print(charge / 100, out);
    unsigned part = (unsigned)(charge % 100);
    if (part == 0)
        return len;
    out[len++] = '.';
    out[len++] = (char)('0' + part / 10);
    out[len++] = (char)('0' + part % 10);
    return len;
}
