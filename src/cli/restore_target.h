/* restore_target.h - the data folder that a restore fills.
 *
 * The folder must be missing or empty, or hold what an interrupted restore has left. From before
 * the first file until after the last one it has a marker (STORE_INCOMPLETE_FILE), with which no
 * server opens it. The marker is on the disk before anything else is, and goes when all else is.
 *
 * Ownership  The caller closes the target. Closing without finishing leaves the marker.
 * Threads    One.
 */
#pragma once

#include "base/error.h"
#include "base/slice.h"

typedef struct RestoreTarget RestoreTarget;

/* STATUS_CONFLICT if there is something else in the folder, STATUS_UNAVAILABLE if another restore
 * is at work in it. */
MUST_USE Status restore_target_open(const char *path, RestoreTarget **out, Error *err);
void restore_target_close(RestoreTarget *target); /* accepts NULL */
DEFINE_AUTO(RestoreTarget *, restore_target_close)

/* A new file; 'name' is known to data_file_is_known. The caller syncs and closes it. */
MUST_USE Status restore_target_create(RestoreTarget *target, Slice name, int *fd, Error *err);

/* Makes all files durable by name. */
MUST_USE Status restore_target_sync(RestoreTarget *target, Error *err);

/* The folder is complete: removes the marker. */
MUST_USE Status restore_target_finish(RestoreTarget *target, Error *err);
