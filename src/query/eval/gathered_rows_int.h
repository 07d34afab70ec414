/* gathered_rows_int.h - rows that are gathered before the first of them is handed on: groups and
 * sorts.
 *
 * Where all of them fit into a page they come in the order of ORDER BY, and groups as they were
 * found. Otherwise they come in the order of their places, which the next page can go on in:
 *
 *     place = | identity u64 BE | keys, at most ROW_KEYS_BYTES of them |
 *
 * The keys are what rows are ordered by, or else what they are grouped by or made distinct, as
 * bytes in the order of values. Rows that are alike up to there come by identity: the number of
 * their document, or a hash of their group or of the row itself. So a place says nothing about
 * partitions: whatever partition a row comes from by then, it is before it or after it. Of
 * arrays and objects the keys tell that there is one, as the index does.
 *
 * Ownership  Rows and their keys live in the arena given to rows_init.
 * Threads    One.
 * Bounds     Everything is reserved from the run and charged to it, sorting in advance.
 */
#pragma once

#include "query/eval/query_run_int.h"
#include "query/sql/ast_int.h"

enum { ROW_KEYS_BYTES = 640, ROW_PLACE_BYTES_MAX = 8 + ROW_KEYS_BYTES };

typedef struct GatheredRow {
    Value row;
    Value *keys;
    uint64_t number;   /* of its document, by which rows with equal keys come; 0 if it has none */
    uint64_t identity; /* orders rows whose places have the same keys */
    uint64_t sequence; /* orders rows that are otherwise equal: by when they were made */
    Slice place;       /* once they are sorted by places: its keys */
} GatheredRow;

typedef struct Rows {
    Arena *arena;
    const Order *order_by; /* NULL if the keys are no order that was asked for */
    size_t key_count;
    GatheredRow *list;
    size_t count;
    size_t capacity;
    bool is_placed; /* sorted by places */
} Rows;

void rows_init(Rows *rows, Arena *arena, const Order *order_by, size_t key_count);

/* Makes room for exactly 'capacity' rows. */
MUST_USE Status rows_reserve(Run *run, Rows *rows, size_t capacity);

/* Keeps the row and its keys. The array of keys must be in the arena already. */
MUST_USE Status rows_add(Run *run, Rows *rows, GatheredRow row);

/* Of a row that came once more: the keys that are first in the order are its keys. */
void rows_lower(Rows *rows, size_t index, const Value *keys, uint64_t number);

/* Sort the rows by ORDER BY, or by their places. */
void rows_sort(Run *run, Rows *rows);
MUST_USE Status rows_sort_by_place(Run *run, Rows *rows);

/* For rows that are sorted by places. rows_place() gives the place of a row, and in '*equal' how
 * many rows before it have the same place. rows_find() is the reverse: the row there, or the first
 * row after it if there is none. Any bytes may be a place. */
Slice rows_place(const Rows *rows, Arena *arena, size_t index, uint64_t *equal);
size_t rows_find(const Rows *rows, Slice place, uint64_t equal);

/* For rows that are sorted either way: the first row that is not before the point. */
size_t rows_find_point(const Rows *rows, Arena *scratch, const ResumePoint *point);
