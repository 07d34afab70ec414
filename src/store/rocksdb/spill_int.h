/* spill_int.h - sorted runs of writes in a temporary file, and one walk over all of them in order.
 *
 * A load whose keys come in no order writes them as runs that are sorted each, and merges the runs
 * at its end. So each key is put into a table once, however large the load is, in bounded memory.
 *
 * Two threads can merge at a time: the first run chooses a key in its middle, and a walk goes over
 * the keys before it or from it on.
 *
 * Ownership  The caller closes the Spill and its walks. What a walk hands out lives until its next
 *            step.
 * Threads    One thread adds. Afterwards each walk belongs to one thread.
 */
#pragma once

#include "store/engine_int.h"

enum { SPILL_PARTS = ENGINE_LOAD_PARTS }; /* what a load is merged in */

typedef struct Spill Spill;
typedef struct SpillWalk SpillWalk;

typedef struct SpillRecord {
    Slice key; /* a full key */
    Slice value;
    bool is_deleted;
} SpillRecord;

/* Makes a file at 'path' and takes its name away: it is gone with the process. */
MUST_USE Status spill_open(const char *path, Spill **out, Error *err);
void spill_close(Spill *spill); /* accepts NULL */

/* Begins a run; its records follow in the order of their keys. Equal keys are allowed. 'middle' is
 * a key in the middle of the run, for the first run of all. */
void spill_begin_run(Spill *spill, Slice middle);
void spill_add(Spill *spill, const SpillRecord *record);

/* Ends the run. A failure of spill_add is told here. */
MUST_USE Status spill_end_run(Spill *spill, Error *err);

size_t spill_run_count(const Spill *spill);

/* Over all records of a part, ordered by key; those of one key in the order in which they were
 * added. */
MUST_USE Status spill_walk_open(const Spill *spill, unsigned part, SpillWalk **out, Error *err);
MUST_USE Status spill_walk_next(SpillWalk *walk, SpillRecord *record, bool *found, Error *err);
void spill_walk_close(SpillWalk *walk); /* accepts NULL */
DEFINE_AUTO(SpillWalk *, spill_walk_close)
