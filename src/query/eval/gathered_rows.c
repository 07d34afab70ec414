/* gathered_rows.c - see gathered_rows_int.h. */
#include "query/eval/gathered_rows_int.h"

#include "base/buf.h"
#include "base/encoding.h"
#include "index/term.h"
#include "query/eval/value_terms_int.h"

#include <stdlib.h>

enum {
    COMPARISONS = 20, /* in which a row takes part; sorting itself cannot stop to pay */
    IDENTITY_BYTES = 8,
    CAPACITY_FIRST = 16,
    COMPARISONS_PER_LOOK = 8192, /* at the clock */
};
static_assert(ROW_PLACE_BYTES_MAX == IDENTITY_BYTES + ROW_KEYS_BYTES, "a place is these two");

void rows_init(Rows *rows, Arena *arena, const Order *order_by, size_t key_count)
{
    *rows = (Rows){.arena = arena, .order_by = order_by, .key_count = key_count};
}

Status rows_reserve(Run *run, Rows *rows, size_t capacity)
{
    TRY(run_reserve(run, capacity * sizeof(GatheredRow)));
    rows->list = arena_realloc(rows->arena, rows->list, rows->count * sizeof(GatheredRow),
                               capacity * sizeof(GatheredRow));
    rows->capacity = capacity;
    return STATUS_OK;
}

Status rows_add(Run *run, Rows *rows, GatheredRow row)
{
    TRY(RUN_GROW(run, rows->arena, rows->list, rows->count, rows->capacity, CAPACITY_FIRST));
    row.row = value_keep(rows->arena, &row.row);
    row.sequence = rows->count;
    for (size_t i = 0; i < rows->key_count; i++) {
        for (int j = 0; j < COMPARISONS; j++)
            TRY(run_charge_value(run, &row.keys[i]));
        row.keys[i] = value_keep(rows->arena, &row.keys[i]);
    }
    rows->list[rows->count++] = row;
    return run_reserve(run, 0);
}

/* ---- in the order of values ---- */

/* There is no order among arrays, nor among objects, as in the index. */
static int compare_key(const Value *a, const Value *b)
{
    return a->type == b->type && a->type >= JSON_ARRAY ? 0 : value_compare(a, b);
}

static int compare_keys(const Rows *rows, const Value *a, const Value *b)
{
    const Order *order = rows->order_by;
    for (size_t i = 0; i < rows->key_count; i++) {
        int compared = compare_key(&a[i], &b[i]);
        if (compared != 0)
            return order != NULL && order->descending ? -compared : compared;
        order = order == NULL ? NULL : order->next;
    }
    return 0;
}

void rows_lower(Rows *rows, size_t index, const Value *keys, uint64_t number)
{
    GatheredRow *row = &rows->list[index];
    if (compare_keys(rows, keys, row->keys) >= 0)
        return;
    for (size_t i = 0; i < rows->key_count; i++)
        row->keys[i] = value_keep(rows->arena, &keys[i]);
    row->number = number;
}

/* Rows that are being sorted. */
typedef struct Sorting {
    Run *run;
    const Rows *rows;
    uint32_t compared;
} Sorting;

/* A sort cannot be stopped half-way, but it can let other jobs run in between. */
static void look_while_sorting(Sorting *sorting)
{
    if (++sorting->compared % COMPARISONS_PER_LOOK == 0)
        (void)run_look(sorting->run);
}

static int compare_rows(const void *left, const void *right, void *context)
{
    const GatheredRow *a = left;
    const GatheredRow *b = right;
    Sorting *sorting = context;
    look_while_sorting(sorting);
    int compared = compare_keys(sorting->rows, a->keys, b->keys);
    if (compared != 0)
        return compared;
    if (a->number != b->number)
        return a->number < b->number ? -1 : 1;
    return (a->sequence > b->sequence) - (a->sequence < b->sequence);
}

static void sort(Run *run, const Rows *rows, int (*compare)(const void *, const void *, void *))
{
    Sorting sorting = {.run = run, .rows = rows};
    if (rows->count > 0)
        qsort_r(rows->list, rows->count, sizeof(GatheredRow), compare, &sorting);
}

void rows_sort(Run *run, Rows *rows)
{
    sort(run, rows, compare_rows);
}

/* ---- in the order of places ---- */

static void put_key(const Value *key, Buf *out)
{
    bool ignored =
        true; /* what shares a double is equal in ORDER BY, and there is no order of arrays */
    if (key->type != JSON_STRING) {
        value_put_term(out, key, &ignored);
        return;
    }
    term_put_tag(out, TERM_STRING);
    value_put_text(out, key->string, ROW_KEYS_BYTES);
}

/* The keys as bytes, cut. */
static Slice make_place(const Rows *rows, const Value *keys, Arena *arena)
{
    AUTO(buf_done) Buf bytes;
    buf_init(&bytes, ROW_KEYS_BYTES);
    const Order *order = rows->order_by;
    for (size_t i = 0; i < rows->key_count && !buf_full(&bytes); i++) {
        size_t before = bytes.len;
        put_key(&keys[i], &bytes);
        for (size_t at = before; order != NULL && order->descending && at < bytes.len; at++)
            bytes.ptr[at] = (char)~bytes.ptr[at];
        order = order == NULL ? NULL : order->next;
    }
    return arena_copy(arena, buf_view(&bytes));
}

static int compare_place(const GatheredRow *row, Slice place, uint64_t identity)
{
    int compared = slice_compare(row->place, place);
    if (compared != 0)
        return compared;
    return (row->identity > identity) - (row->identity < identity);
}

static int compare_placed(const void *left, const void *right, void *context)
{
    const GatheredRow *a = left;
    const GatheredRow *b = right;
    look_while_sorting(context);
    int compared = compare_place(a, b->place, b->identity);
    return compared != 0 ? compared : (a->sequence > b->sequence) - (a->sequence < b->sequence);
}

Status rows_sort_by_place(Run *run, Rows *rows)
{
    for (size_t i = 0; i < rows->count; i++) {
        GatheredRow *row = &rows->list[i];
        row->place = make_place(rows, row->keys, rows->arena);
        TRY(run_charge_bytes(run, COMPARISONS * row->place.len));
        TRY(run_reserve(run, 0));
    }
    rows->is_placed = true;
    sort(run, rows, compare_placed);
    return STATUS_OK;
}

Slice rows_place(const Rows *rows, Arena *arena, size_t index, uint64_t *equal)
{
    const GatheredRow *row = &rows->list[index];
    size_t first = index;
    while (first > 0 && compare_place(&rows->list[first - 1], row->place, row->identity) == 0)
        first--;
    *equal = index - first;
    char *bytes = arena_alloc(arena, IDENTITY_BYTES + row->place.len);
    be64_put(bytes, row->identity);
    if (row->place.len > 0)
        memcpy(bytes + IDENTITY_BYTES, row->place.ptr, row->place.len);
    return slice_make(bytes, IDENTITY_BYTES + row->place.len);
}

size_t rows_find(const Rows *rows, Slice place, uint64_t equal)
{
    uint64_t identity = place.len < IDENTITY_BYTES ? 0 : be64_get(place.ptr);
    Slice keys = slice_from(place, place.len < IDENTITY_BYTES ? place.len : IDENTITY_BYTES);
    size_t low = 0;
    size_t high = rows->count;
    while (low < high) {
        size_t middle = low + ((high - low) / 2);
        if (compare_place(&rows->list[middle], keys, identity) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    for (; equal > 0 && low < rows->count; equal--, low++) {
        if (compare_place(&rows->list[low], keys, identity) != 0)
            break;
    }
    return low;
}

/* ---- points ---- */

size_t rows_find_point(const Rows *rows, Arena *scratch, const ResumePoint *point)
{
    Slice place = rows->is_placed ? make_place(rows, point->values, scratch) : SLICE_EMPTY;
    size_t low = 0;
    size_t high = rows->count;
    while (low < high) {
        size_t middle = low + ((high - low) / 2);
        const GatheredRow *row = &rows->list[middle];
        int compared = rows->is_placed ? slice_compare(row->place, place)
                                       : compare_keys(rows, row->keys, point->values);
        /* A row of several documents has no number that could tell. */
        bool has_number = row->number != 0 && row->number == row->identity;
        bool is_before =
            compared < 0 ||
            (compared == 0 && (point->is_after || (has_number && row->number < point->number)));
        if (is_before)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}
