/* row_window.c - see row_window.h.
 *
 * Rows are a ring. Keys are an open hash table with linear probing, never more than half full; when
 * a key leaves, those behind it move up, so there are no marks of removed ones.
 */
#include "transfer/row_window.h"

#include "base/mem.h"

enum { KEY_SLOTS = 2 * WINDOW_ROWS_MAX };
static_assert((WINDOW_ROWS_MAX & (WINDOW_ROWS_MAX - 1)) == 0, "positions wrap by a mask");

struct RowWindow {
    WindowRow *rows;
    uint64_t first; /* number of the first row */
    uint64_t end;   /* number of the next row */
    uint64_t *keys; /* 0 if a slot is free */
};

RowWindow *row_window_new(void)
{
    RowWindow *window = MEM_NEW(RowWindow);
    window->rows = MEM_NEW_ARRAY(WindowRow, WINDOW_ROWS_MAX);
    window->keys = MEM_NEW_ARRAY(uint64_t, KEY_SLOTS);
    return window;
}

static WindowRow *row_at(const RowWindow *window, uint64_t sequence)
{
    ASSERT(sequence >= window->first);
    ASSERT(sequence < window->end);
    return &window->rows[sequence & (WINDOW_ROWS_MAX - 1)];
}

void row_window_free(RowWindow *window)
{
    if (window == NULL)
        return;
    for (uint64_t i = window->first; i < window->end; i++) {
        mem_free(row_at(window, i)->reason);
        mem_free(row_at(window, i)->text);
    }
    mem_free(window->rows);
    mem_free(window->keys);
    mem_free(window);
}

bool row_window_is_full(const RowWindow *window)
{
    return window->end - window->first == WINDOW_ROWS_MAX;
}

bool row_window_is_empty(const RowWindow *window)
{
    return window->end == window->first;
}

/* ---- keys ---- */

static size_t home_of(uint64_t key)
{
    return key & (KEY_SLOTS - 1);
}

/* The slot of the key, or the free one where it would be. */
static size_t slot_of(const RowWindow *window, uint64_t key)
{
    size_t slot = home_of(key);
    while (window->keys[slot] != 0 && window->keys[slot] != key)
        slot = (slot + 1) & (KEY_SLOTS - 1);
    return slot;
}

bool row_window_has_key(const RowWindow *window, uint64_t key)
{
    return key != 0 && window->keys[slot_of(window, key)] == key;
}

static void remove_key(RowWindow *window, uint64_t key)
{
    size_t hole = slot_of(window, key);
    if (key == 0 || window->keys[hole] != key)
        return;
    for (size_t slot = (hole + 1) & (KEY_SLOTS - 1); window->keys[slot] != 0;
         slot = (slot + 1) & (KEY_SLOTS - 1)) {
        size_t from_home = (slot - home_of(window->keys[slot])) & (KEY_SLOTS - 1);
        size_t from_hole = (slot - hole) & (KEY_SLOTS - 1);
        if (from_home >= from_hole) { /* it may stand in the hole */
            window->keys[hole] = window->keys[slot];
            hole = slot;
        }
    }
    window->keys[hole] = 0;
}

/* ---- rows ---- */

uint64_t row_window_add(RowWindow *window, const WindowRow *row)
{
    ASSERT(!row_window_is_full(window));
    uint64_t sequence = window->end++;
    WindowRow *mine = row_at(window, sequence);
    *mine = *row;
    mine->state = WINDOW_UNDER_WAY;
    mine->reason = NULL;
    mine->text = NULL;
    if (row->key != 0)
        window->keys[slot_of(window, row->key)] = row->key;
    return sequence;
}

static WindowRow *finish(RowWindow *window, uint64_t sequence, WindowState state)
{
    WindowRow *row = row_at(window, sequence);
    ASSERT(row->state == WINDOW_UNDER_WAY);
    row->state = state;
    remove_key(window, row->key);
    return row;
}

void row_window_written(RowWindow *window, uint64_t sequence)
{
    (void)finish(window, sequence, WINDOW_WRITTEN);
}

void row_window_rejected(RowWindow *window, uint64_t sequence, const char *reason, Slice text)
{
    WindowRow *row = finish(window, sequence, WINDOW_REJECTED);
    Slice kept = slice_first(text, WINDOW_REJECT_BYTES_MAX);
    row->reason = mem_copy(reason, strlen(reason) + 1);
    row->text = kept.len > 0 ? mem_copy(kept.ptr, kept.len) : NULL;
    row->text_len = kept.len;
}

const WindowRow *row_window_first(const RowWindow *window)
{
    if (row_window_is_empty(window) || row_at(window, window->first)->state == WINDOW_UNDER_WAY)
        return NULL;
    return row_at(window, window->first);
}

void row_window_pop(RowWindow *window)
{
    WindowRow *row = row_at(window, window->first);
    ASSERT(row->state != WINDOW_UNDER_WAY);
    mem_free(row->reason);
    mem_free(row->text);
    *row = (WindowRow){0};
    window->first++;
}
