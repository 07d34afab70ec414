/* import_int.h - what the files of an import share; for import*.c only.
 *
 *     import_rows.c   files -> rows -> items, which it hands to import_queue
 *     import_send.c   items -> requests -> answers, which finish rows of the window
 *     import.c        the loop around both, what is shown, and what is kept to be resumed
 *
 * Fields are grouped by the file that changes them. All run on one thread.
 */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "transfer/checkpoint.h"
#include "transfer/container_map.h"
#include "transfer/import.h"
#include "transfer/input.h"
#include "transfer/pacing.h"
#include "transfer/progress.h"
#include "transfer/reject_file.h"
#include "transfer/remote.h"
#include "transfer/row_mapping.h"
#include "transfer/row_window.h"

/* What the next request is for. With 'only_changes' an item goes from the first to the second if
 * the server has none or another one. */
typedef enum ImportStage { IMPORT_COMPARE, IMPORT_WRITE } ImportStage;

/* An item on its way. One block of memory; the slices point into it. */
typedef struct ImportItem ImportItem;
struct ImportItem {
    ImportItem *next;  /* in the queue of its lane */
    uint64_t sequence; /* in the window */
    uint32_t attempts; /* that failed, not counting those that were throttled */
    ImportStage stage;
    bool is_single; /* too large for bulk, or bulk was refused */
    size_t bytes;   /* of this block */
    Slice epk;      /* hexadecimal */
    Slice key_text; /* the partition key, for a body */
    Slice id;       /* only of items that are compared */
    Slice text;
};

/* A partition key range, and what waits for it. A lane that is gone after a split stays until its
 * last request has ended. */
typedef struct ImportLane {
    Slice id;
    bool is_gone;
    Pace pace;
    ImportItem *first;
    ImportItem *last;
    size_t count;
} ImportLane;

enum { IMPORT_HEADERS_MAX = 6 };

/* A request under way, or memory for the next one. */
typedef struct ImportCall {
    ClientCall call;
    bool is_active;
    bool is_bulk;
    bool is_read; /* of the only item, to compare it */
    ImportLane *lane;
    ImportItem *items[PACE_OPERATIONS_MAX];
    uint32_t count;
    double reserved;
    uint64_t started_us;
    ClientHeader headers[IMPORT_HEADERS_MAX];
    Buf body;
    Arena arena;
} ImportCall;

/* Why no more rows are read right now. */
typedef enum ImportSupply {
    SUPPLY_MORE, /* there are more */
    SUPPLY_WAIT, /* the input is a pipe that is empty */
    SUPPLY_FULL, /* the window or the memory is full, or a row waits for its older version */
    SUPPLY_ENDED,
} ImportSupply;

typedef struct Import {
    const ImportOptions *options;
    Arena arena; /* for the whole run */
    Remote remote;
    PartitionKeyDefinition key;
    char job[CHECKPOINT_JOB_LEN];
    bool is_stopping; /* nothing more is started */

    /* import_rows.c */
    InputList files;
    const RowMapping *mapping;
    size_t file;         /* that is being read */
    uint64_t files_done; /* bytes of the files before it */
    uint64_t row;        /* of that file */
    Input *input;
    bool input_ended;
    RowReader *reader;
    Arena row_arena;
    Buf row_text;
    ImportItem *held; /* waits until an older version of it is written */
    WindowRow held_row;
    ImportSupply supply;

    /* import_send.c */
    Arena map_arenas[2]; /* of the ranges, and of the ones before */
    size_t map_current;
    ContainerMap map;
    ImportLane **lanes; /* in the order of the ranges */
    size_t lane_count;
    ImportLane **gone; /* lanes that are gone */
    size_t gone_count;
    size_t gone_capacity;
    size_t next_lane; /* that may start a request first */
    ImportCall **calls;
    size_t call_count;
    size_t active_count;
    bool needs_map; /* a range is gone */
    uint32_t map_attempts;
    uint32_t bulk_refusals;
    RuLimit ru_limit;
    size_t bytes_under_way;
    uint64_t answered_us;      /* when the last answer came, or the first request went out */
    uint64_t failing_since_us; /* since when the server cannot be reached; 0 if it can */

    /* import.c */
    RowWindow *window;
    RejectFile *rejects;
    ImportCheckpoint checkpoint; /* of rows that have left the window */
    uint64_t checkpoint_us;      /* when it was last written */
    uint64_t position;           /* of the last row that has left the window */
    Progress progress;
    ImportSummary summary;
} Import;

/* ---- import_rows.c ---- */

/* Opens the list of files and goes to the place of the checkpoint. */
MUST_USE Status import_rows_open(Import *import, Error *err);
void import_rows_close(Import *import);

/* Reads some rows, as long as there is room; sets 'supply'. What is wrong with a file is a reject.
 */
void import_rows_read(Import *import);

/* The reader of a file by its name and first bytes; NULL if more of them are needed to tell. */
RowReader *import_open_reader(const ImportOptions *options, const char *path, Slice first,
                              bool is_last);

/* ---- import_send.c ---- */

MUST_USE Status import_send_open(Import *import, Error *err);
void import_send_close(Import *import);

/* Takes over an item, whose row is in the window. */
void import_queue(Import *import, ImportItem *item);

/* Starts as many requests as may start; '*wait_ms' is lowered to when more may. */
MUST_USE Status import_send(Import *import, uint64_t now_us, uint32_t *wait_ms, Error *err);

/* Deals with an answer. A failure is one after which nothing can go on. */
MUST_USE Status import_answer(Import *import, ClientCall *ended, uint64_t now_us, Error *err);
