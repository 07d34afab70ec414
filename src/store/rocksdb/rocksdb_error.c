/* rocksdb_error.c - turns RocksDB's messages into words that a user can act on.
 *
 * RocksDB's C interface reports by text alone: "IO error: No space left on device: While appending
 * to file: /data/store/000012.log: No space left on device". Clients see the result, so the path of
 * the data folder is left out; the name of the file stays, for the administrator.
 */
#include "store/rocksdb/rocksdb_int.h"

#include <stdio.h>
#include <stdlib.h>

typedef struct ErrorRow {
    const char *starts_with; /* how RocksDB's message begins */
    const char *contains;    /* and what else is in it; NULL for anything */
    Status status;
    const char *says; /* in place of the beginning */
    bool is_all;      /* in place of the whole message */
} ErrorRow;

static const ErrorRow ROWS[] = {
    {"IO error: No space left on device", NULL, STATUS_IO, "the disk is full", true},
    {"IO error", "Read-only file system", STATUS_IO, "the disk is read-only", true},
    {"IO error", NULL, STATUS_IO, "IO error", false},
    {"Corruption", NULL, STATUS_CORRUPT, "the stored data is damaged", false},
    {"Shutdown in progress", NULL, STATUS_UNAVAILABLE, "the store is being closed", true},
    {"Resource busy", NULL, STATUS_UNAVAILABLE, "Resource busy", false},
    {"Operation timed out", NULL, STATUS_UNAVAILABLE, "Operation timed out", false},
};

static const ErrorRow *find_row(const char *text)
{
    for (size_t i = 0; i < ARRAY_COUNT(ROWS); i++) {
        const ErrorRow *row = &ROWS[i];
        if (strncmp(text, row->starts_with, strlen(row->starts_with)) == 0 &&
            (row->contains == NULL || strstr(text, row->contains) != NULL))
            return row;
    }
    return NULL;
}

/* Takes every "folder/" out of 'text', in place. */
static void cut_folder(char *text, const char *folder)
{
    size_t len = strlen(folder);
    for (char *at = text; len > 0 && (at = strstr(at, folder)) != NULL;) {
        if (at[len] == '/')
            memmove(at, at + len + 1, strlen(at + len + 1) + 1);
        else
            at += len;
    }
}

Status rocksdb_error(Error *err, const char *folder, const char *what, char *text)
{
    cut_folder(text, folder);
    const ErrorRow *row = find_row(text);
    Status status;
    if (row == NULL)
        status = error_set(err, STATUS_INTERNAL, SUB_NONE, "%s: %.220s", what, text);
    else if (row->is_all)
        status = error_set(err, row->status, SUB_NONE, "%s: %s", what, row->says);
    else
        status = error_set(err, row->status, SUB_NONE, "%s: %s%.220s", what, row->says,
                           text + strlen(row->starts_with));
    rocksdb_free(text);
    return status;
}

/* The number of the table that RocksDB's message says is missing; 0 if it says something else.
 * RocksDB also looks for a table under an older name, and may name that one. */
static unsigned long long missing_table(const char *text)
{
    const char *end = strstr(text, ".sst");
    if (end == NULL)
        end = strstr(text, ".ldb");
    if (end == NULL || strstr(text, "No such file or directory") == NULL)
        return 0;
    const char *digits = end;
    while (digits > text && digits[-1] >= '0' && digits[-1] <= '9')
        digits--;
    return strtoull(digits, NULL, 10);
}

Status rocksdb_open_error(Error *err, const char *path, char *text)
{
    unsigned long long table = missing_table(text);
    if (table != 0) {
        rocksdb_free(text);
        return error_set(err, STATUS_CORRUPT, SUB_NONE,
                         "cannot open the data folder '%.200s': its table %06llu.sst is missing; "
                         "restore the folder from a copy",
                         path, table);
    }
    char what[256];
    (void)snprintf(what, sizeof(what), "cannot open the data folder '%.200s'", path);
    return rocksdb_error(err, path, what, text);
}
