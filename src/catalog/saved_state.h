/* saved_state.h - a state of a database that was saved, to which it can be taken back.
 *
 * It belongs to the database's name: it stays when the database is deleted, and brings it back. The
 * records of the database as it was are in the store (record_saved.c), and so is what its items
 * were (partition/baseline.h). What a reader of the catalogue sees of it is here.
 *
 * Users call it a snapshot; in this folder that is another thing (snapshot.h).
 *
 * Ownership  Reference counted. Threads: immutable after it is made, any thread may read it.
 */
#pragma once

#include "base/arena.h"
#include "base/error.h"
#include "base/slice.h"

#include <stdatomic.h>

#define SAVED_NAME_CHARS_MAX 100 /* letters, digits, '-', '_' and '.' */

/* Each adds to the cost of the first change of an item (baseline.h). */
#define SAVED_STATES_PER_DATABASE_MAX 16
#define SAVED_STATES_MAX              1000 /* of all databases */

typedef struct SavedState {
    _Atomic uint32_t refs;
    Arena arena;
    uint32_t number; /* given out once; also that of the baselines of its partitions */
    Slice name;
    Slice database_id;
    uint32_t database; /* number of the database that was saved */
    int64_t saved_at_s;
    bool is_restoring; /* the catalogue is as it was then; of the items, some may not be yet */
    const uint32_t *containers; /* numbers, in order */
    size_t container_count;
} SavedState;

typedef struct SavedRecord {
    uint32_t number;
    Slice name;
    Slice database_id;
    uint32_t database;
    int64_t saved_at_s;
    bool is_restoring;
} SavedRecord;

/* Everything is copied. */
SavedState *saved_state_new(const SavedRecord *record, const uint32_t *containers, size_t count);
SavedState *saved_state_ref(const SavedState *state);
void saved_state_unref(SavedState *state); /* accepts NULL */
DEFINE_AUTO(SavedState *, saved_state_unref)

SavedRecord saved_state_record(const SavedState *state);
bool saved_state_has(const SavedState *state, uint32_t database, uint32_t container);

/* STATUS_BAD_REQUEST if it is empty, too long, or has other characters. */
MUST_USE Status saved_name_check(Slice name, Error *err);
