/* entry_format_int.h - the bytes of an entry of the journal: what transactions have written to one
 * space, in order.
 *
 * Every node reads what every other writes, and nodes of two versions may run side by side. An
 * entry, or a merge, of a newer kind is told from damage: a follower then stops, unharmed.
 *
 * Threads    An EntryWriter belongs to one thread at a time; nothing else here has state.
 * Format     At the top of entry_format.c.
 */
#pragma once

#include "base/buf.h"
#include "journal/journal.h"
#include "store/engine_int.h"

typedef struct EntryWriter {
    Buf body;
    char last[STORE_KEY_BYTES_MAX]; /* the key of the newest write */
    size_t last_len;
} EntryWriter;

void entry_writer_init(EntryWriter *writer);
void entry_writer_done(EntryWriter *writer);
DEFINE_AUTO_VALUE(EntryWriter, entry_writer_done)

/* Adds what a transaction writes. Keys are full keys of one space. */
void entry_add(EntryWriter *writer, const EngineWrites *writes);

/* Appends the entry to 'out', in the format that the cluster writes, and begins the next one.
 * STATUS_TOO_LARGE if it is longer than JOURNAL_ENTRY_BYTES_MAX. */
MUST_USE Status entry_finish(EntryWriter *writer, uint32_t format, Buf *out, Error *err);

/* What a program reads: the newest format, and the kinds of merges. */
typedef struct EntryKnown {
    uint32_t format;
    const StoreMerge *kinds;
} EntryKnown;

/* Adds the writes of an entry to 'tree' and 'merges', which hold what EngineWrites holds.
 * STATUS_NOT_IMPLEMENTED if the entry, or a merge in it, needs a newer program; STATUS_CORRUPT if
 * these bytes are no entry. Both may have been added to then. */
MUST_USE Status entry_read(Slice bytes, const EntryKnown *known, StoreSpace space, Tree *tree,
                           Buf *merges, Error *err);

/* Numbers of 7 bits in each byte, as entries and pieces of a copy have them. The second takes one
 * off '*in'; false if there is none. */
void varint_put(Buf *out, size_t value);
bool varint_take(Slice *in, size_t *value);
