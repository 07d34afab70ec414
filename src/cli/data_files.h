/* data_files.h - the rows of data_files.def. */
#pragma once

#include "base/slice.h"

/* Names, which end with NULL: of all files, and of those that a running server sends. */
extern const char *const DATA_FILES[];
extern const char *const DATA_FILES_SENT[];

/* Whether a backup may have a file of this name: one of these, or a plain name in "store/". */
bool data_file_is_known(Slice name);
