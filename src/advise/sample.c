/* sample.c - see sample.h. */
#include "advise/sample.h"

#include "advise/time_value.h"
#include "base/array.h"
#include "base/rid.h"
#include "partition/item.h"

#include <math.h>
#include <stdlib.h>

enum {
    SEED = 1, /* always the same, so that advice can be repeated */
    SECONDS_PER_DAY = 86400,
};

static const double TIMED_SHARE_MIN = 0.9;

void sample_init(Sample *sample, SampleLimits limits)
{
    ASSERT(limits.items_max >= SAMPLE_ITEMS_MIN);
    ASSERT(limits.items_max <= SAMPLE_ITEMS_MAX);
    *sample = (Sample){.limits = limits, .stride = 1};
    random_init(&sample->random, SEED);
}

void sample_done(Sample *sample)
{
    for (size_t i = 0; i < sample->count; i++)
        mem_free(sample->items[i].bytes);
    mem_free(sample->items);
    *sample = (Sample){0};
}

static void begin_group(Sample *sample)
{
    sample->at = 0;
    sample->chosen = random_below(&sample->random, sample->stride);
}

/* Keeps one of each two neighbours. */
static void thin(Sample *sample)
{
    size_t kept = 0;
    for (size_t i = 0; i < sample->count; i += 2) {
        size_t pair = sample->count - i < 2 ? 1 : 2;
        size_t chosen = i + (size_t)random_below(&sample->random, pair);
        for (size_t j = i; j < i + pair; j++) {
            if (j == chosen)
                continue;
            sample->kept_bytes -= sample->items[j].size;
            mem_free(sample->items[j].bytes);
        }
        sample->items[kept++] = sample->items[chosen];
    }
    sample->count = kept;
    sample->stride *= 2;
    begin_group(sample);
}

static void keep(Sample *sample, Slice bytes)
{
    while (sample->count > 1 && (sample->count >= sample->limits.items_max ||
                                 sample->kept_bytes + bytes.len > sample->limits.bytes_max))
        thin(sample);
    uint8_t *copy = mem_copy(bytes.ptr, bytes.len);
    ARRAY_GROW(sample->items, sample->count, sample->capacity, 256);
    sample->items[sample->count++] = (SampleItem){
        .document = json_trust(slice_make(copy, bytes.len)),
        .bytes = copy,
        .size = bytes.len,
        .time_s = NAN,
        .number = sample->seen,
    };
    sample->kept_bytes += bytes.len;
}

bool sample_is_system(Slice name)
{
    return item_is_system(name) || slice_equal(name, SLICE("_lsn"));
}

static Json without_system(Arena *arena, Json document)
{
    JsonBuilder b;
    json_build(&b, arena);
    json_begin_object(&b);
    JsonIter it = json_iter(document);
    while (json_next(&it)) {
        bool is_kept = !sample_is_system(it.name) || slice_equal(it.name, SLICE("_ts")) ||
                       slice_equal(it.name, SLICE("_rid"));
        if (!is_kept)
            continue;
        json_key(&b, it.name);
        json_add(&b, it.value);
    }
    json_end(&b);
    return json_built(&b);
}

Status sample_add(Sample *sample, Json document, Error *err)
{
    if (!json_is(document, JSON_OBJECT))
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "an item must be a JSON object, such as {\"id\":\"1\"}");
    AUTO(arena_done) Arena scratch;
    arena_init(&scratch, ARENA_SMALL_BYTES);
    Slice bytes = json_bytes(&scratch, without_system(&scratch, document));
    sample->seen++;
    sample->seen_bytes += bytes.len;
    bool is_chosen = sample->at == sample->chosen;
    if (++sample->at == sample->stride)
        begin_group(sample);
    if (is_chosen)
        keep(sample, bytes);
    return STATUS_OK;
}

/* ---- times ---- */

static int compare_times(const void *a, const void *b)
{
    const SampleItem *x = a;
    const SampleItem *y = b;
    int order = (isnan(x->time_s) != 0) - (isnan(y->time_s) != 0);
    if (order == 0)
        order = (x->time_s > y->time_s) - (x->time_s < y->time_s);
    if (order == 0)
        order = (x->made > y->made) - (x->made < y->made);
    return order != 0 ? order : (x->number > y->number) - (x->number < y->number);
}

static uint64_t read_made(Json document)
{
    Json text = json_get(document, SLICE("_rid"));
    Rid rid;
    bool is_item = json_is(text, JSON_STRING) && rid_parse(json_string(text), &rid) &&
                   rid.kind == RID_DOCUMENT;
    return is_item ? rid.child : 0;
}

static size_t read_times(Sample *sample, PropertyPath path)
{
    static const Slice ts = SLICE_INIT("_ts");
    PropertyPath used = path.count > 0 ? path : (PropertyPath){&ts, 1};
    size_t timed = 0;
    for (size_t i = 0; i < sample->count; i++) {
        SampleItem *item = &sample->items[i];
        item->made = read_made(item->document);
        if (time_value(property_path_get(used, item->document), &item->time_s))
            timed++;
    }
    return timed;
}

Status sample_finish(Sample *sample, PropertyPath time_path, Error *err)
{
    if (sample->count == 0)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "there are no items to learn from; give a file of JSON objects, one on "
                         "each line or in an array");
    size_t timed = read_times(sample, time_path);
    sample->has_time = (double)timed >= TIMED_SHARE_MIN * (double)sample->count;
    if (!sample->has_time && time_path.count > 0)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "only %zu of %zu items have a time at the path of --time-path; expected "
                         "seconds or milliseconds since 1970, or text such as "
                         "'2026-01-31T12:00:00Z'",
                         timed, sample->count);
    if (!sample->has_time)
        return STATUS_OK;
    qsort(sample->items, sample->count, sizeof(SampleItem), compare_times);
    sample->first_time_s = sample->items[0].time_s;
    sample->last_time_s = sample->items[timed - 1].time_s;
    return STATUS_OK;
}

/* ---- totals ---- */

double sample_total_items(const Sample *sample)
{
    return (double)(sample->population > sample->seen ? sample->population : sample->seen);
}

double sample_scale(const Sample *sample)
{
    return sample_total_items(sample) / (double)sample->count;
}

double sample_item_bytes(const Sample *sample)
{
    return (double)sample->seen_bytes / (double)sample->seen;
}

double sample_span_days(const Sample *sample)
{
    return sample->has_time ? (sample->last_time_s - sample->first_time_s) / SECONDS_PER_DAY : 0;
}
