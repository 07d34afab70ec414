/* purges_int.h - the open purges of a partition: EPK prefixes whose items are gone, though stored.
 *
 * A purge hides items up to its LSN at once, and maintenance removes them piece by piece. There is
 * one purge per EPK (I6). A reader asks for purges before it reads an item or opens a snapshot:
 * afterwards the purge may be over, and what it was to hide already in the reader's hands.
 *
 * Threads    A PurgeList is changed by the holder of the turn and read by any thread, which takes
 *            its lock only if there are purges.
 */
#pragma once

#include "base/arena.h"
#include "partition/epk.h"

#include <pthread.h>
#include <stdatomic.h>

#define PURGES_MAX 256

typedef struct Purge {
    Epk epk;      /* a prefix */
    uint64_t lsn; /* items up to it are gone */
} Purge;

typedef struct PurgeList {
    pthread_mutex_t lock; /* guards the purges; held for a few instructions, or one copy of them */
    Purge *purges;        /* PURGES_MAX of them; NULL until there is one */
    _Atomic uint32_t count;
} PurgeList;

/* What a group changes of the list once it is durable. */
typedef struct PurgeChanges {
    Purge *added; /* in the group's arena; NULL if there are none */
    size_t added_count;
    bool is_first_done; /* the first purge of the list is over */
} PurgeChanges;

void purge_list_init(PurgeList *list);
void purge_list_done(PurgeList *list);

static inline uint32_t purge_list_count(const PurgeList *list)
{
    return atomic_load_explicit(&list->count, memory_order_acquire);
}

/* Before the list is shared: adds one that was stored; false if there are too many. */
bool purge_list_load(PurgeList *list, Slice epk, uint64_t lsn);

/* For the holder of the turn. The purge that is being removed; there must be one. */
Purge purge_list_first(PurgeList *list);

/* For the holder of the turn. '*is_restarted' is true if another purge takes the place of the
 * first, which then is to be removed from its beginning. */
void purge_list_change(PurgeList *list, const PurgeChanges *changes, bool *is_restarted);

/* The LSN up to which items with this EPK are purged; 0 if none is. */
uint64_t purges_find(const Purge *purges, size_t count, Slice epk);
uint64_t purge_list_find_slow(PurgeList *list, Slice epk);
static inline uint64_t purge_list_find(PurgeList *list, Slice epk)
{
    return LIKELY(purge_list_count(list) == 0) ? 0 : purge_list_find_slow(list, epk);
}

/* A copy in 'arena', for readers that take their time; '*count' may be 0. */
const Purge *purge_list_copy(PurgeList *list, Arena *arena, size_t *count);
