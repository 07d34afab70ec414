/* change_notes_int.h - what has changed in a partition since a move watches it (I19).
 *
 * Groups note the keys of what they change (the format is drawn in item_move.c), and add their
 * notes here when they are durable. The move takes them.
 *
 * Threads    The holder of the turn adds, the thread that drives the move does the rest.
 * Bounds     MOVE_NOTES_BYTES_MAX. A full buffer means that notes are missing: the move must fail.
 */
#pragma once

#include "base/buf.h"

#include <pthread.h>

typedef struct ChangeNotes {
    pthread_mutex_t lock; /* guards the buffer; held for one copy */
    Buf buf;
} ChangeNotes;

void change_notes_init(ChangeNotes *notes);
void change_notes_done(ChangeNotes *notes);
void change_notes_add(ChangeNotes *notes, const Buf *group);

/* All of them, which the caller frees; there are none left. */
Buf change_notes_take(ChangeNotes *notes);
size_t change_notes_bytes(ChangeNotes *notes);
