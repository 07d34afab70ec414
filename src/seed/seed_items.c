/* seed_items.c - see seed_items.h. */
#include "seed/seed_items.h"

#include "seed/seed_body.h"
#include "transfer/import.h"
#include "transfer/row_mapping.h"

#include <stdio.h>

enum { CONCURRENCY = 32 };
/* Items that stand in the file, printed again, take at most so much more: numbers such as 1e300. */
#define INLINE_BYTES_MAX ((size_t)12 << 20)

static Status parse_format(Slice text, RowFormat *out, Error *err)
{
    static const struct {
        const char *name;
        RowFormat format;
    } rows[] = {{"jsonl", ROW_FORMAT_LINES}, {"json", ROW_FORMAT_JSON}, {"csv", ROW_FORMAT_CSV}};
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        if (slice_equal(text, slice_from_cstr(rows[i].name))) {
            *out = rows[i].format;
            return STATUS_OK;
        }
    }
    return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                     "'format' must be jsonl, json or csv, not '%.*s'", SLICE_CUT(text, 80));
}

static Status parse_sets(Arena *arena, Json set, SeedItemFile *file, Error *err)
{
    if (!json_is(set, JSON_OBJECT))
        return STATUS_OK;
    file->sets = ARENA_NEW_ARRAY(arena, const char *, json_count(set));
    for (JsonIter it = json_iter(set); json_next(&it);) {
        Slice text = json_is(it.value, JSON_STRING) ? json_string(it.value) : SLICE_EMPTY;
        bool has_zero = memchr(it.name.ptr, '\0', it.name.len) != NULL ||
                        (text.len > 0 && memchr(text.ptr, '\0', text.len) != NULL);
        if (!json_is(it.value, JSON_STRING) || slice_find(it.name, '=') < it.name.len || has_zero)
            return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                             "'set' must have paths and templates, such as {\"/pk\": "
                             "\"{userId}\"}; found '%.*s'",
                             SLICE_CUT(it.name, 80));
        file->sets[file->set_count++] =
            arena_format(arena, "%.*s=%.*s", SLICE_ARG(it.name), SLICE_ARG(text)).ptr;
    }
    return STATUS_OK;
}

static Status parse_delimiter(Json value, char *out, Error *err)
{
    if (json_is(value, JSON_UNDEFINED))
        return STATUS_OK;
    Slice text = json_string(value);
    if (text.len != 1 || memchr("\"\r\n", text.ptr[0], 3) != NULL || text.ptr[0] == '\0' ||
        ((uint8_t)text.ptr[0] & 0x80) != 0)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "'delimiter' must be one character such as ; or a tab");
    *out = text.ptr[0];
    return STATUS_OK;
}

Status seed_item_file_parse(Arena *arena, const char *folder, Json value, SeedItemFile *out,
                            Error *err)
{
    SeedItemFile file = {.format = ROW_FORMAT_AUTO};
    bool is_name = json_is(value, JSON_STRING);
    Slice name = json_string(is_name ? value : json_get(value, SLICE("file")));
    TRY(seed_file_path(arena, folder, name, &file.path, err));
    Json format = json_get(value, SLICE("format"));
    Json id_from = json_get(value, SLICE("idFrom"));
    Json strings = json_get(value, SLICE("csvStrings"));
    if (json_is(format, JSON_STRING))
        TRY(parse_format(json_string(format), &file.format, err));
    if (json_is(id_from, JSON_STRING))
        file.id_from = arena_cstr(arena, json_string(id_from));
    file.csv.all_are_text = json_is(strings, JSON_BOOL) && json_bool(strings);
    TRY(parse_delimiter(json_get(value, SLICE("delimiter")), &file.csv.delimiter, err));
    TRY(parse_sets(arena, json_get(value, SLICE("set")), &file, err));
    const RowMapping *ignored = NULL;
    TRY(row_mapping_parse(arena, file.sets, file.set_count, file.id_from, &ignored, err));
    *out = file;
    return STATUS_OK;
}

/* ---- writing ---- */

/* The rejects of one list. */
typedef struct Rejects {
    const SeedRun *run;
    const SeedPlace *place; /* of the items in the file; NULL if they are in another one */
    uint64_t count;
} Rejects;

static void take_reject(void *ctx, const char *path, uint64_t line, const char *reason)
{
    Rejects *rejects = ctx;
    const SeedOptions *options = rejects->run->options;
    if (rejects->count++ >= SEED_REJECTS_MAX || options->on_reject == NULL)
        return;
    char place[SEED_PLACE_BYTES_MAX + 300];
    if (rejects->place != NULL) {
        SeedPlace item = seed_place_element(rejects->place, line - 1); /* one item a line */
        (void)snprintf(place, sizeof(place), "%.200s: %s", options->file->path,
                       seed_place_text(&item).text);
    } else {
        (void)snprintf(place, sizeof(place), "%.400s:%llu", path, (unsigned long long)line);
    }
    options->on_reject(options->ctx, place, reason);
}

typedef struct ItemCounts {
    uint64_t written;
    uint64_t unchanged;
} ItemCounts;

static Status import_items(SeedRun *run, ImportOptions *options, const SeedPlace *place,
                           bool is_inline, ItemCounts *counts, Error *err)
{
    Rejects rejects = {.run = run, .place = is_inline ? place : NULL};
    ImportSummary summary;
    options->client = run->options->client;
    options->concurrency = CONCURRENCY;
    options->needs_ids = true;
    options->is_quiet = true;
    options->stop_fd = run->options->stop_fd;
    options->rejects = (ImportRejects){.report = take_reject, .ctx = &rejects};
    Status status = import_run(options, &summary, err);
    counts->written += summary.digest.count - summary.unchanged;
    counts->unchanged += summary.unchanged;
    run->summary.items_written += summary.digest.count - summary.unchanged;
    run->summary.items_unchanged += summary.unchanged;
    if (status != STATUS_OK)
        return seed_place_context(place, err);
    run->summary.is_interrupted = summary.is_interrupted;
    if (summary.is_interrupted)
        return error_set(err, STATUS_TIMEOUT, SUB_NONE, "stopped");
    if (summary.rejected > 0)
        return seed_refuse(place, err, "%llu of its items could not be written",
                           (unsigned long long)summary.rejected);
    return STATUS_OK;
}

/* Items that stand in the seed file, as lines in memory. */
static Status apply_inline(SeedRun *run, ImportOptions options, Json items, const SeedPlace *place,
                           ItemCounts *counts, Error *err)
{
    if (json_is(items, JSON_UNDEFINED) || json_count(items) == 0)
        return STATUS_OK;
    AUTO(buf_done) Buf text;
    buf_init(&text, INLINE_BYTES_MAX);
    for (JsonIter it = json_iter(items); json_next(&it);) {
        json_print(it.value, &text);
        buf_byte(&text, '\n');
    }
    if (buf_full(&text))
        return seed_refuse(place, err, "too many items; put them into a file ('itemsFrom')");
    options.text = buf_view(&text);
    options.text_name = run->options->file->path;
    options.format = ROW_FORMAT_LINES;
    return import_items(run, &options, place, true, counts, err);
}

static Status apply_file(SeedRun *run, ImportOptions options, Json element, const SeedPlace *place,
                         ItemCounts *counts, Error *err)
{
    SeedItemFile file;
    if (seed_item_file_parse(run->arena, run->options->file->folder, element, &file, err) !=
        STATUS_OK)
        return seed_place_context(place, err);
    options.sources = &file.path;
    options.source_count = 1;
    options.format = file.format;
    options.csv = file.csv;
    options.id_from = file.id_from;
    options.sets = file.sets;
    options.set_count = file.set_count;
    return import_items(run, &options, place, false, counts, err);
}

Status seed_items_apply(SeedRun *run, Slice database, Json container, const SeedPlace *place,
                        bool is_new, Error *err)
{
    Json items = json_get(container, SLICE("items"));
    Json files = json_get(container, SLICE("itemsFrom"));
    if (json_is(items, JSON_UNDEFINED) && json_is(files, JSON_UNDEFINED))
        return STATUS_OK;
    Slice id = json_string(json_get(container, SLICE("id")));
    /* Items may occur twice in the lists, so only the first list of a new container is written
     * without a look. */
    ImportOptions options = {
        .database = arena_cstr(run->arena, database),
        .container = arena_cstr(run->arena, id),
        .only_changes = !is_new,
    };
    ItemCounts counts = {0};
    SeedPlace items_place = seed_place_member(place, SLICE("items"));
    Status status = apply_inline(run, options, items, &items_place, &counts, err);
    SeedPlace files_place = seed_place_member(place, SLICE("itemsFrom"));
    size_t i = 0;
    for (JsonIter it = json_iter(files); status == STATUS_OK && json_next(&it); i++) {
        SeedPlace element = seed_place_element(&files_place, i);
        options.only_changes = !is_new || counts.written > 0;
        status = apply_file(run, options, it.value, &element, &counts, err);
    }
    const SeedOptions *o = run->options;
    if (o->on_items != NULL) {
        Slice name = arena_format(run->arena, "%.*s/%.*s", SLICE_ARG(database), SLICE_ARG(id));
        o->on_items(o->ctx, arena_cstr(run->arena, name), counts.written, counts.unchanged);
    }
    return status;
}
