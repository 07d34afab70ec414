/* report_json.c - see report.h: the report for programs. */
#include "advise/report_int.h"

#include <math.h>

enum { FORM_VERSION = 1 };

typedef struct JsonWriter {
    const Advice *advice;
    JsonBuilder b;
} JsonWriter;

static void put_text(JsonBuilder *b, const char *name, Slice text)
{
    json_key(b, slice_from_cstr(name));
    if (json_utf8_valid(text))
        json_add_string(b, text);
    else
        json_add_null(b);
}

static void put_cstr(JsonBuilder *b, const char *name, const char *text)
{
    put_text(b, name, slice_from_cstr(text));
}

/* Rounded, since more digits than these mean nothing; null if it is not known. */
static void add_number(JsonBuilder *b, double value)
{
    if (isfinite(value))
        json_add_number(b, fabs(value) < 1e11 ? round(value * 1e4) / 1e4 : value);
    else
        json_add_null(b);
}

static void put_number(JsonBuilder *b, const char *name, double value)
{
    json_key(b, slice_from_cstr(name));
    add_number(b, value);
}

static void put_bool(JsonBuilder *b, const char *name, bool value)
{
    json_key(b, slice_from_cstr(name));
    json_add_bool(b, value);
}

static void put_null(JsonBuilder *b, const char *name)
{
    json_key(b, slice_from_cstr(name));
    json_add_null(b);
}

static void begin_array(JsonBuilder *b, const char *name)
{
    json_key(b, slice_from_cstr(name));
    json_begin_array(b);
}

static void begin_object(JsonBuilder *b, const char *name)
{
    json_key(b, slice_from_cstr(name));
    json_begin_object(b);
}

/* ---- parts ---- */

static void put_sample(JsonWriter *w)
{
    JsonBuilder *b = &w->b;
    const Sample *sample = w->advice->sample;
    begin_object(b, "sample");
    put_number(b, "items", (double)sample->count);
    put_number(b, "read", (double)sample->seen);
    put_number(b, "population", sample_total_items(sample));
    put_number(b, "itemBytes", sample_item_bytes(sample));
    put_number(b, "paths", (double)w->advice->paths.count);
    put_bool(b, "allPaths", w->advice->paths.is_complete);
    put_number(b, "from", sample->has_time ? sample->first_time_s : NAN);
    put_number(b, "to", sample->has_time ? sample->last_time_s : NAN);
    json_end(b);
    put_number(b, "itemsPerDay", w->advice->items_per_day > 0 ? w->advice->items_per_day : NAN);
    put_bool(b, "growthGiven", w->advice->is_growth_given);
    put_number(b, "partitions", w->advice->options.partitions);
    put_bool(b, "smallContainer", w->advice->is_small);
}

static void put_paths(JsonBuilder *b, const KeyCandidate *key)
{
    begin_array(b, "paths");
    for (size_t i = 0; i < key->path_count; i++) {
        AUTO(buf_done) Buf text;
        buf_init(&text, PROPERTY_PATH_CANONICAL_BYTES_MAX);
        property_path_print(key->paths[i], &text);
        json_add_string(b, buf_view(&text));
    }
    json_end(b);
    put_number(b, "suffixes", key->suffixes);
}

static void put_layout(JsonWriter *w, const AdvisedKey *key)
{
    JsonBuilder *b = &w->b;
    const KeyLayout *layout = &key->layout;
    const Sample *sample = w->advice->sample;
    char full[REPORT_NUMBER_MAX];
    const char *day = report_full_day(w->advice, layout, full);
    put_number(b, "values", (double)layout->distinct);
    put_number(b, "missingShare", (double)layout->missing / (double)sample->count);
    put_number(b, "largestShare", layout->largest_share);
    put_text(
        b, "largestValue",
        key_candidate_value(&key->key, sample->items[layout->largest_item].document, w->b.arena));
    put_number(b, "largestBytes", layout->largest_bytes);
    put_number(b, "storageSkew", layout->skew);
    put_number(b, "storageSkewAfterSplits", layout->split_skew);
    put_number(b, "storageGini", layout->gini);
    put_number(b, "idlePartitions", layout->idle);
    put_number(b, "writeWindows", layout->windows);
    put_number(b, "writeSkew", layout->write_skew);
    put_number(b, "busiestValueShare", layout->window_key_share);
    put_bool(b, "movingHotSpot", key_layout_is_moving(layout, w->advice->options.partitions));
    if (day[0] == '?')
        put_null(b, "fullOn");
    else
        put_cstr(b, "fullOn", day);
    put_number(b, "togetherShare", layout->together_share);
    begin_array(b, "storage");
    for (uint32_t i = 0; i < w->advice->options.partitions; i++)
        add_number(b, layout->partition_share[i]);
    json_end(b);
    begin_array(b, "writes");
    for (uint32_t i = 0; i < layout->windows; i++) {
        json_begin_array(b);
        for (uint32_t j = 0; j < w->advice->options.partitions; j++)
            add_number(b, (double)layout->window_share[i][j]);
        json_end(b);
    }
    json_end(b);
}

static void put_findings(JsonBuilder *b, const Verdict *verdict)
{
    begin_array(b, "findings");
    for (size_t i = 0; i < verdict->count; i++) {
        json_begin_object(b);
        put_cstr(b, "code", finding_code(verdict->findings[i].code));
        put_cstr(b, "level", finding_level(verdict->findings[i].level));
        put_text(b, "text", verdict->findings[i].text);
        json_end(b);
    }
    json_end(b);
}

static void put_key(JsonWriter *w, const AdvisedKey *key)
{
    JsonBuilder *b = &w->b;
    json_begin_object(b);
    put_text(b, "key", key->key.name);
    put_cstr(b, "kind", key_kind_name(key->key.kind));
    put_paths(b, &key->key);
    put_bool(b, "current", key->key.is_current);
    put_bool(b, "acceptable", report_is_acceptable(key));
    put_number(b, "score", key->verdict.score);
    put_layout(w, key);
    if (w->advice->work == NULL) {
        put_null(b, "queries");
    } else {
        begin_object(b, "queries");
        put_number(b, "onePartitionShare", key->queries.one_share);
        put_number(b, "visitsMean", key->queries.visits_mean);
        put_number(b, "visitRuPerSecond", key->queries.look_ru_s);
        put_number(b, "leastRuPerSecond", key->queries.least_ru_s);
        begin_array(b, "visits");
        for (size_t i = 0; i < w->advice->work->count; i++)
            add_number(b, (double)key->queries.visits[i]);
        json_end(b);
        json_end(b);
    }
    put_findings(b, &key->verdict);
    json_end(b);
}

static void put_workload(JsonWriter *w)
{
    JsonBuilder *b = &w->b;
    if (w->advice->work == NULL) {
        put_null(b, "queries");
        return;
    }
    begin_array(b, "queries");
    for (size_t i = 0; i < w->advice->work->count; i++) {
        json_begin_object(b);
        put_text(b, "query", w->advice->work->list[i].text);
        put_number(b, "perSecond", w->advice->work->list[i].per_second);
        if (w->advice->work->list[i].measured.is_known)
            put_number(b, "measuredRu", w->advice->work->list[i].measured.ru);
        else
            put_null(b, "measuredRu");
        json_end(b);
    }
    json_end(b);
}

static void put_recorded(JsonWriter *w)
{
    JsonBuilder *b = &w->b;
    const Workload *work = w->advice->work;
    if (work == NULL || !work->is_recorded) {
        put_null(b, "recorded");
        return;
    }
    begin_object(b, "recorded");
    put_number(b, "executions", work->executions);
    put_number(b, "seconds", work->seconds);
    put_number(b, "leftOut", (double)work->left_out);
    json_end(b);
}

static void put_composite(JsonBuilder *b, const CompositeAdvice *advice)
{
    json_begin_object(b);
    begin_array(b, "index");
    for (size_t i = 0; i < advice->part_count; i++) {
        Slice part = advice->parts[i];
        bool is_down = slice_ends_with(part, SLICE(" DESC"));
        json_begin_object(b);
        put_text(b, "path", slice_first(part, part.len - (is_down ? 5 : 4)));
        put_cstr(b, "order", is_down ? "descending" : "ascending");
        json_end(b);
    }
    json_end(b);
    put_bool(b, "required", advice->is_required);
    put_number(b, "query", (double)advice->query);
    put_number(b, "savedRu", advice->saved_ru);
    put_number(b, "sparedItems", advice->spared_items);
    put_number(b, "savedRuPerSecond", advice->saved_ru_s);
    put_number(b, "writeRu", advice->write_ru);
    json_end(b);
}

static void put_unused_composite(JsonBuilder *b, const UnusedComposite *unused)
{
    json_begin_object(b);
    begin_array(b, "index");
    for (size_t i = 0; i < unused->index->part_count; i++) {
        json_begin_object(b);
        put_text(b, "path", unused->index->parts[i].text);
        put_cstr(b, "order", unused->index->parts[i].is_descending ? "descending" : "ascending");
        json_end(b);
    }
    json_end(b);
    put_number(b, "ru", unused->ru);
    json_end(b);
}

static void put_policy(JsonWriter *w)
{
    JsonBuilder *b = &w->b;
    const PolicyAdvice *policy = &w->advice->policy;
    if (w->advice->work == NULL) {
        put_null(b, "indexing");
        return;
    }
    begin_object(b, "indexing");
    put_bool(b, "estimate", true);
    put_number(b, "createRu", policy->create_ru);
    put_bool(b, "unusedKnown", policy->is_known);
    put_number(b, "unusedRu", policy->unused_ru);
    begin_array(b, "unused");
    for (size_t i = 0; i < policy->unused_count; i++) {
        json_begin_object(b);
        put_text(b, "path", policy->unused[i].path);
        put_number(b, "terms", policy->unused[i].terms);
        put_number(b, "ru", policy->unused[i].ru);
        json_end(b);
    }
    json_end(b);
    begin_array(b, "composite");
    for (size_t i = 0; i < policy->composite_count; i++)
        put_composite(b, &policy->composites[i]);
    json_end(b);
    begin_array(b, "unusedComposite");
    for (size_t i = 0; i < policy->unused_composite_count; i++)
        put_unused_composite(b, &policy->unused_composites[i]);
    json_end(b);
    json_end(b);
}

void report_json(const Advice *advice, Buf *out)
{
    AUTO(arena_done) Arena arena;
    arena_init(&arena, ARENA_LARGE_BYTES);
    JsonWriter w = {.advice = advice};
    JsonBuilder *b = &w.b;
    json_build(b, &arena);
    json_begin_object(b);
    put_number(b, "version", FORM_VERSION);
    put_text(b, "conclusion", advice->conclusion);
    if (advice->best == NULL)
        put_null(b, "best");
    else
        put_text(b, "best", advice->best->key.name);
    if (advice->checked == NULL) {
        put_null(b, "checked");
    } else {
        begin_object(b, "checked");
        put_text(b, "key", advice->checked->key.name);
        put_bool(b, "acceptable", report_is_acceptable(advice->checked));
        json_end(b);
    }
    put_sample(&w);
    put_bool(b, "allKeys", !advice->is_cut_short);
    begin_array(b, "keys");
    for (size_t i = 0; i < advice->key_count; i++)
        put_key(&w, advice->keys[i]);
    json_end(b);
    put_workload(&w);
    put_recorded(&w);
    put_policy(&w);
    json_end(b);
    json_print(json_built(b), out);
    buf_byte(out, '\n');
}
