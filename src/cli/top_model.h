/* top_model.h - what `orrery top` knows of a container, read from the server's answers.
 *
 * The answers are those of /_orrery/dbs/{db}/colls/{coll}/layout, /history and /top, and of
 * /_orrery/events and /_orrery/cluster. The server is not trusted: a value that is missing, of
 * another type or out of range is an error. Texts are kept as they are; top_draw makes them
 * harmless.
 *
 * Ownership  Everything lives in the arena that the answers were parsed into.
 */
#pragma once

#include "base/arena.h"
#include "base/error.h"
#include "base/slice.h"
#include "json/json.h"

#define TOP_MODEL_RANGES_MAX  4096
#define TOP_MODEL_COLUMNS_MAX 3600
#define TOP_MODEL_KEYS_MAX    100
#define TOP_MODEL_MOVES_MAX   256
#define TOP_MODEL_NODES_MAX   1000

/* One second of a physical partition. */
typedef struct TopCell {
    double ru;
    double throttled;
} TopCell;

typedef struct TopRange {
    Slice id;
    Slice min; /* of its hashes, in hexadecimal; empty for the lowest */
    double items;
    double bytes;
    double ru_allotted; /* a second; 0 if there is no limit */
    double ru_second;   /* used in the last whole second */
    double ru_minute;
    double peak_percent; /* of the busiest second of the last minute */
    double requests_minute;
    double throttled_minute;
    const TopCell *cells; /* as many as the model has columns, the oldest first */
    double space;         /* how the cluster calls it; 0 if not known */
    Slice owner;          /* the node that serves it; empty if not known */
    bool is_missing;      /* its node could not be asked: the numbers are zeros */
} TopRange;

/* A node of the cluster. */
typedef struct TopNode {
    Slice name;
    Slice state;
    double owned;      /* partitions that it serves */
    double followed;   /* and those that it has copies of */
    double lag;        /* writes that the copies are behind */
    double renewed_ms; /* since its lease was renewed */
    size_t moves;      /* partitions that it is giving away */
} TopNode;

typedef struct TopModelKey {
    Slice text;
    Slice range;
    double amount;
    double share; /* of the container's, 0 to 1 */
} TopModelKey;

typedef struct TopKeys {
    TopModelKey *keys;
    size_t count;
} TopKeys;

/* A split or a merge of the container's partitions. */
typedef struct TopMove {
    Slice what; /* "split" or "merge" */
    Slice reason;
    Slice stage;
    Slice sources; /* ids, with commas between them */
    Slice targets; /* empty until they are known */
    Slice message; /* why it failed */
    double begun_s;
    double ended_s; /* 0 if it is under way or waits */
    double bytes_total;
    double percent;
    double fence_us; /* that writes had to wait */
} TopMove;

typedef struct TopModel {
    Slice database;
    Slice container;
    int64_t time_s; /* of the server */
    Slice mode;     /* "manual", "autoscale", ... */
    double ru;      /* provisioned, or the maximum of autoscale */
    bool is_shared; /* with other containers of its database */
    double logical; /* logical partitions; negative if not known */
    bool is_logical_estimate;
    TopRange *ranges; /* in the order of their hashes */
    size_t range_count;
    size_t column_count;
    TopKeys by_ru;
    TopKeys by_throttled;
    TopMove *moves; /* the newest first */
    size_t move_count;
    size_t missing_count; /* of ranges */

    /* Of a cluster; 'node' is empty without one. */
    Slice node; /* that was asked */
    bool has_lease;
    TopNode *nodes;
    size_t node_count;
} TopModel;

/* The bodies of the answers. */
typedef struct TopAnswers {
    Slice layout;
    Slice history;
    Slice by_ru;
    Slice by_throttled;
    Slice events;  /* of all containers */
    Slice cluster; /* empty if the server is not a node of one */
} TopAnswers;

/* The message of STATUS_UNAVAILABLE names the answer and what is wrong with it. */
MUST_USE Status top_model_parse(Arena *arena, const TopAnswers *answers, TopModel *out, Error *err);

/* A container of the list that /_orrery/containers gives. */
typedef struct TopContainer {
    Slice database;
    Slice container;
    double ru_minute;
} TopContainer;

MUST_USE Status top_containers_parse(Arena *arena, Slice answer, TopContainer **out, size_t *count,
                                     Error *err);
