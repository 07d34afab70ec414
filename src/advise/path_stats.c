/* path_stats.c - see path_stats.h. */
#include "advise/path_stats.h"

#include "advise/hash_table.h"
#include "advise/time_value.h"
#include "base/hash.h"

#include <math.h>

typedef struct Walker {
    Arena *arena;
    PathTable *table;
    HashTable paths;  /* number of the row, by the hash of the path's text */
    HashTable values; /* of one item, at paths that lead through arrays */
    HashKey key;
    Buf text; /* the path so far */
    Slice names[PATH_STATS_DEPTH_MAX];
    size_t depth;
    size_t elements; /* steps through arrays, of the path so far */
    uint64_t item;   /* plus one */
} Walker;

static void walk(Walker *w, Json value);

static PathStats *row_of(Walker *w, uint64_t hash)
{
    PathTable *table = w->table;
    bool is_new = false;
    if (w->paths.count == PATH_STATS_MAX) {
        /* The table is full: only what it has can be found. */
        for (size_t i = 0; i < table->count; i++) {
            if (slice_equal(table->rows[i].text, buf_view(&w->text)))
                return &table->rows[i];
        }
        table->is_complete = false;
        return NULL;
    }
    uint32_t number = hash_table_add(&w->paths, hash, &is_new);
    PathStats *row = &table->rows[number];
    if (is_new) {
        Slice *names = ARENA_NEW_ARRAY(w->arena, Slice, w->depth);
        for (size_t i = 0; i < w->depth; i++)
            names[i] = arena_copy(w->arena, w->names[i]);
        row->text = arena_copy(w->arena, buf_view(&w->text));
        row->path = (PropertyPath){names, w->depth};
        row->has_element = w->elements > 0;
        table->count++;
    }
    return row;
}

static void note_scalar(Walker *w, PathStats *row, Json value)
{
    double seconds = 0;
    row->times += time_value(value, &seconds);
    if (json_is(value, JSON_STRING)) {
        size_t len = json_string(value).len;
        row->strings++;
        row->bytes += len;
        row->bytes_max = len > row->bytes_max ? len : row->bytes_max;
    } else if (json_is(value, JSON_NUMBER)) {
        double number = json_number(value);
        row->numbers++;
        row->fractions += number != floor(number);
    } else {
        row->others++;
    }
    if (row->last_item != w->item) {
        row->last_item = w->item;
        row->items++;
    }
}

/* Whether the item has had this value at this path before. */
static bool is_repeated(Walker *w, uint64_t path, Json value)
{
    if (w->elements == 0)
        return false;
    AUTO(buf_done) Buf text;
    buf_init(&text, JSON_TEXT_BYTES_MAX);
    json_print(value, &text);
    bool is_new = false;
    (void)hash_table_add(&w->values, hash_keyed(w->key, buf_view(&text)) ^ path, &is_new);
    return !is_new;
}

static void walk_scalar(Walker *w, Json value)
{
    if (buf_full(&w->text)) {
        w->table->is_complete = false;
        return;
    }
    uint64_t hash = hash_keyed(w->key, buf_view(&w->text));
    PathStats *row = row_of(w, hash);
    if (row == NULL)
        return;
    row->values += !is_repeated(w, hash, value);
    note_scalar(w, row, value);
}

/* One step down: a member, or an element if 'name' is NULL. */
static void walk_step(Walker *w, const Slice *name, Json value)
{
    if (w->depth == PATH_STATS_DEPTH_MAX) {
        w->table->is_complete = false;
        return;
    }
    size_t len = w->text.len;
    buf_byte(&w->text, '/');
    if (name == NULL)
        buf_slice(&w->text, SLICE("[]"));
    else
        property_path_print_segment(*name, &w->text);
    w->names[w->depth++] = name == NULL ? SLICE_EMPTY : *name;
    w->elements += name == NULL;
    walk(w, value);
    w->elements -= name == NULL;
    w->depth--;
    w->text.len = len;
    w->text.full = false;
}

static void walk(Walker *w, Json value)
{
    JsonType type = json_type(value);
    if (type != JSON_ARRAY && type != JSON_OBJECT) {
        walk_scalar(w, value);
        return;
    }
    JsonIter it = json_iter(value);
    while (json_next(&it))
        walk_step(w, type == JSON_ARRAY ? NULL : &it.name, it.value);
}

void path_stats_collect(const Sample *sample, Arena *arena, PathTable *out)
{
    *out = (PathTable){
        .rows = ARENA_NEW_ARRAY(arena, PathStats, PATH_STATS_MAX),
        .is_complete = true,
    };
    Walker w = {.arena = arena, .table = out, .key = {1, 2}};
    hash_table_init(&w.paths);
    hash_table_init(&w.values);
    buf_init(&w.text, PROPERTY_PATH_BYTES_MAX);
    for (size_t i = 0; i < sample->count; i++) {
        w.item = i + 1;
        hash_table_reset(&w.values);
        walk(&w, sample->items[i].document);
    }
    hash_table_done(&w.paths);
    hash_table_done(&w.values);
    buf_done(&w.text);
}

const PathStats *path_stats_find(const PathTable *table, Slice text)
{
    for (size_t i = 0; i < table->count; i++) {
        if (slice_equal(table->rows[i].text, text))
            return &table->rows[i];
    }
    return NULL;
}
