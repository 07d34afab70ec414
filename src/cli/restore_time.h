/* restore_time.h - takes the items of a restored folder back to an earlier time. */
#pragma once

#include "cli/offline_folder.h"

typedef struct RestoreTime {
    int64_t at_s;
    int64_t backup_s;    /* the moment of the backup */
    bool is_best_effort; /* containers that do not keep all versions stay as they are */
} RestoreTime;

/* Prints what it has done with each container. If it is not possible, STATUS_BAD_REQUEST says why
 * and what would be, and nothing was changed. */
MUST_USE Status restore_time_go_back(OfflineFolder *folder, const RestoreTime *time, Error *err);
