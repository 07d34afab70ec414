/* load_middle.c - see load_middle_int.h.
 *
 *     load
 *      |            .---- rest      each key that is known is a step where its hash is,
 *      |      .-----'               all others are a slope
 *      |    _-'
 *      |__-'________________ hash
 */
#include "api/admin/load_middle_int.h"

#include "api/core/usage_int.h"
#include "catalog/epk_range.h"

#include <stdlib.h>

/* A key with more of the load than this has nearly all of it. */
enum { ONE_KEY_PERCENT = 90 };

typedef struct Load {
    TopRow *keys; /* of the range, in the order of their hashes */
    size_t count;
    double known; /* the sum of what they use */
    double rest;
    EpkNumber low;
    EpkNumber high;
} Load;

static int compare_rows(const void *a, const void *b)
{
    return slice_compare(((const TopRow *)a)->epk, ((const TopRow *)b)->epk);
}

static Load measure(const ApiRequest *r, const PartitionRange *range)
{
    const Api *api = r->api;
    const Top *tops[USAGE_LOOPS_MAX];
    size_t top_count = usage_tops(api, tops);
    uint64_t now_s = (uint64_t)clock_wall_s(api->options.clock);
    TopQuery query = {
        .kind = TOP_CHARGE,
        .container = r->container->info.number,
        .now_s = now_s,
        .windows = TOP_WINDOWS - 1,
        .rows_max = TOP_ENTRIES_MAX,
    };
    Load load = {.low = epk_number(range->min_bytes), .high = epk_number(range->max_bytes)};
    if (load.high > EPK_NUMBERS_END && load.low < EPK_NUMBERS_END)
        load.high = EPK_NUMBERS_END;
    size_t all = top_keys_read(tops, top_count, &query, r->arena, &load.keys);
    for (size_t i = 0; i < all; i++) {
        if (load.keys[i].range != range->id)
            continue;
        load.known += (double)load.keys[i].at_least;
        load.keys[load.count++] = load.keys[i];
    }
    if (load.count > 0) /* without keys there is no array, which qsort may not be given */
        qsort(load.keys, load.count, sizeof(*load.keys), compare_rows);
    uint64_t from_s = (now_s / TOP_WINDOW_S - (TOP_WINDOWS - 1)) * TOP_WINDOW_S;
    double total = (double)history_span(handle_history(container_handle(r->container, range)),
                                        from_s, now_s + 1)
                       .sum.charge;
    load.rest = total > load.known ? total - load.known : 0;
    return load;
}

/* The load before this hash of all keys that are not listed, taken as even. */
static double rest_before(const Load *load, EpkNumber at)
{
    return load->rest * (double)(at - load->low) / (double)(load->high - load->low);
}

static Slice text_after(Arena *arena, Slice epk)
{
    Slice text = epk_text(arena, epk);
    return arena_format(arena, "%.*s00", SLICE_ARG(text));
}

/* Where the slope after the keys that were passed reaches the half. */
static Slice cut_slope(Arena *arena, const Load *load, double passed, double half)
{
    double part = (half - passed) / load->rest;
    return epk_number_text(arena, load->low + (EpkNumber)((double)(load->high - load->low) * part));
}

static Slice find_half(Arena *arena, const Load *load, Slice min)
{
    double half = (load->known + load->rest) / 2;
    double passed = 0;
    for (size_t i = 0; i < load->count; i++) {
        const TopRow *key = &load->keys[i];
        double before = passed + rest_before(load, epk_number(key->epk));
        double after = before + (double)key->at_least;
        if (before >= half)
            break;
        if (after >= half) {
            Slice at = epk_text(arena, key->epk);
            bool is_before = half - before < after - half && slice_compare(at, min) > 0;
            return is_before ? at : text_after(arena, key->epk);
        }
        passed += (double)key->at_least;
    }
    return cut_slope(arena, load, passed, half);
}

static Status check_spread(const Load *load, const PartitionRange *range, Error *err)
{
    double total = load->known + load->rest;
    if (total == 0)
        return error_set(
            err, STATUS_CONFLICT, SUB_NONE,
            "Range %u had no requests in the last minutes, so it cannot be split by load.",
            range->id);
    for (size_t i = 0; i < load->count; i++) {
        double percent = 100 * (double)load->keys[i].at_least / total;
        if (percent > ONE_KEY_PERCENT)
            return error_set(err, STATUS_CONFLICT, SUB_NONE,
                             "The partition key %.*s has %.0f%% of the load of range %u, which no "
                             "split could spread.",
                             SLICE_ARG(load->keys[i].text), percent, range->id);
    }
    return STATUS_OK;
}

Status load_middle(const ApiRequest *r, const PartitionRange *range, uint32_t parts, Slice *cut,
                   Error *err)
{
    if (parts != 2)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE, "A split by load makes 2 parts.");
    if (r->api->options.histories == NULL)
        return error_set(
            err, STATUS_CONFLICT, SUB_NONE,
            "The server was started with --no-statistics, so it does not know the load of "
            "partitions.");
    Load load = measure(r, range);
    TRY(check_spread(&load, range, err));
    *cut = find_half(r->arena, &load, range->min);
    if (slice_compare(*cut, range->min) > 0 && slice_compare(*cut, range->max) < 0)
        return STATUS_OK;
    return error_set(err, STATUS_CONFLICT, SUB_NONE,
                     "All the load of range %u is at its end, so there is nothing to split off.",
                     range->id);
}
