/* change_notes.c - see change_notes_int.h. */
#include "partition/change_notes_int.h"

#include "partition/item_move.h"

void change_notes_init(ChangeNotes *notes)
{
    int failed = pthread_mutex_init(&notes->lock, NULL);
    ASSERT(failed == 0);
    buf_init(&notes->buf, MOVE_NOTES_BYTES_MAX);
}

void change_notes_done(ChangeNotes *notes)
{
    buf_done(&notes->buf);
    (void)pthread_mutex_destroy(&notes->lock);
}

void change_notes_add(ChangeNotes *notes, const Buf *group)
{
    if (LIKELY(group->len == 0))
        return;
    (void)pthread_mutex_lock(&notes->lock);
    buf_slice(&notes->buf, buf_view(group));
    notes->buf.full = notes->buf.full || group->full;
    (void)pthread_mutex_unlock(&notes->lock);
}

Buf change_notes_take(ChangeNotes *notes)
{
    (void)pthread_mutex_lock(&notes->lock);
    Buf taken = notes->buf;
    buf_init(&notes->buf, MOVE_NOTES_BYTES_MAX);
    (void)pthread_mutex_unlock(&notes->lock);
    return taken;
}

size_t change_notes_bytes(ChangeNotes *notes)
{
    (void)pthread_mutex_lock(&notes->lock);
    size_t bytes = notes->buf.len;
    (void)pthread_mutex_unlock(&notes->lock);
    return bytes;
}
