/* checkpoint.h - the file from which an import or an export is resumed.
 *
 * It holds how far everything is done, and is replaced whole: a new file is written, synced and
 * renamed, so a process that is killed leaves the one or the other. It is a JSON object:
 *
 *     {"orrery":"import","job":"...","file":0,"row":1200,"written":1198,"rejected":2,
 *      "rejectBytes":310,"digest":"..."}
 *     {"orrery":"export","job":"...","bytes":81920,"written":300,"digest":"...",
 *      "parts":[{"min":"","max":"7F","token":"..."},...]}
 *
 * 'job' is a hash of what was asked for; a file of another job is refused.
 *
 * Ownership  Slices of what was read live in the arena.
 * Threads    Nothing here has state.
 */
#pragma once

#include "base/arena.h"
#include "base/error.h"
#include "transfer/item_digest.h"

#define CHECKPOINT_BYTES_MAX ((size_t)4 << 20)
#define CHECKPOINT_PARTS_MAX 4096

typedef struct ImportCheckpoint {
    uint64_t file; /* position in the list of files */
    uint64_t row;  /* rows of that file that are done */
    uint64_t rejected;
    uint64_t reject_bytes; /* of the file of rejects */
    ItemDigest digest;     /* its count is that of items written */
} ImportCheckpoint;

/* A range of hashes that is not yet exported, and where to go on in it. */
typedef struct ExportPart {
    Slice min; /* hexadecimal */
    Slice max;
    Slice token; /* continuation; empty at the beginning */
} ExportPart;

typedef struct ExportCheckpoint {
    uint64_t bytes; /* of the output */
    ItemDigest digest;
    ExportPart *parts;
    size_t part_count; /* 0 if everything was exported */
} ExportCheckpoint;

/* 32 hexadecimal characters of everything that makes a job what it is. */
#define CHECKPOINT_JOB_LEN 32
void checkpoint_job(Slice what, char out[CHECKPOINT_JOB_LEN]);

/* Each parser refuses what is not a checkpoint of that kind and job with STATUS_BAD_REQUEST. */
MUST_USE Status import_checkpoint_parse(Arena *arena, Slice text, Slice job, ImportCheckpoint *out,
                                        Error *err);
MUST_USE Status export_checkpoint_parse(Arena *arena, Slice text, Slice job, ExportCheckpoint *out,
                                        Error *err);
void import_checkpoint_print(const ImportCheckpoint *checkpoint, Slice job, Buf *out);
void export_checkpoint_print(const ExportCheckpoint *checkpoint, Slice job, Buf *out);

/* '*found' is false if there is no such file. */
MUST_USE Status checkpoint_read(const char *path, Arena *arena, Slice *text, bool *found,
                                Error *err);
MUST_USE Status checkpoint_write(const char *path, Slice text, Error *err);
