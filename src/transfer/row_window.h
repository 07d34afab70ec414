/* row_window.h - rows on their way, in the order in which they were read.
 *
 * Rows are finished in any order, since many requests run at the same time. The window hands them
 * out in the order of the file: so there is always a place of which everything before it is done,
 * and rejects are written in order. A file from which an import is resumed needs no more than that
 * place.
 *
 * The window also knows the keys of the items on their way. Two versions of an item must not be on
 * their way at the same time: the older could be written last.
 *
 * Ownership  The window owns its rows; the text of a rejected one is copied.
 * Threads    Belongs to one thread.
 */
#pragma once

#include "base/error.h"
#include "base/slice.h"
#include "transfer/item_digest.h"

#define WINDOW_ROWS_MAX         65536
#define WINDOW_REJECT_BYTES_MAX ((size_t)64 << 10) /* of the text of a rejected row */

typedef enum WindowState { WINDOW_UNDER_WAY, WINDOW_WRITTEN, WINDOW_REJECTED } WindowState;

typedef struct WindowRow {
    WindowState state;
    uint32_t file;   /* position in the list of files */
    uint64_t number; /* in the file, from 1 */
    uint64_t line;
    uint64_t position; /* in the bytes of all files, for the progress */
    ItemHash hash;
    uint64_t key; /* of the item; 0 if there is none */
    char *reason; /* of a reject, terminated; on the heap */
    char *text;   /* of a reject; on the heap */
    size_t text_len;
} WindowRow;

typedef struct RowWindow RowWindow;

RowWindow *row_window_new(void);
void row_window_free(RowWindow *window); /* accepts NULL */
DEFINE_AUTO(RowWindow *, row_window_free)

bool row_window_is_full(const RowWindow *window);
bool row_window_is_empty(const RowWindow *window);

/* Whether an item with that key is on its way. */
bool row_window_has_key(const RowWindow *window, uint64_t key);

/* Adds a row behind the others; returns its number in the window, for the two functions below.
 * 'state', 'reason' and 'text' of 'row' are ignored: the row is under way. */
uint64_t row_window_add(RowWindow *window, const WindowRow *row);

void row_window_written(RowWindow *window, uint64_t sequence);

/* Copies both texts, the row's up to WINDOW_REJECT_BYTES_MAX. */
void row_window_rejected(RowWindow *window, uint64_t sequence, const char *reason, Slice text);

/* The first row, if it is finished; NULL otherwise. row_window_pop then removes it. */
const WindowRow *row_window_first(const RowWindow *window);
void row_window_pop(RowWindow *window);
