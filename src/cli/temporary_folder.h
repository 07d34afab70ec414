/* temporary_folder.h - a folder that is removed when this process ends, however it ends.
 *
 * A process of its own waits for the end and removes the folder: the server itself may not remove
 * it, because its sandbox lets it write below the data folder only, and cannot if it is killed. It
 * is started before the sandbox, and does nothing until then.
 *
 * Threads    Main thread only, before others are started.
 */
#pragma once

#include "base/arena.h"
#include "base/error.h"

typedef struct TemporaryFolder {
    const char *path; /* absolute; NULL if there is no folder */
    int fd;           /* the waiting process sees when it is closed */
    int pid;          /* of that process */
} TemporaryFolder;

/* Makes a folder below TMPDIR, or /tmp. */
MUST_USE Status temporary_folder_open(Arena *arena, TemporaryFolder *out, Error *err);

/* Removes the folder, and returns when it is gone. Accepts one without a path. */
void temporary_folder_close(TemporaryFolder *folder);
