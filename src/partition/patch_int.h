/* patch_int.h - a checked patch, between the file that checks and the file that applies. */
#pragma once

#include "partition/patch.h"

typedef enum PatchKind {
    PATCH_ADD,
    PATCH_SET,
    PATCH_REPLACE,
    PATCH_REMOVE,
    PATCH_INCR,
    PATCH_MOVE,
} PatchKind;

/* A JSON pointer: at least one segment and at most JSON_DEPTH_MAX, unescaped. */
typedef struct PatchPointer {
    Slice text; /* as it was sent, for messages */
    PropertyPath path;
} PatchPointer;

typedef struct PatchOperation {
    PatchKind kind;
    PatchPointer path;
    PatchPointer from; /* of a move */
    Json value;        /* of all but remove and move; a number for an increment */
} PatchOperation;

struct Patch {
    Slice condition;
    size_t bytes_max;
    size_t count;
    PatchOperation operations[PATCH_OPERATIONS_MAX];
};

/* What a message shows of a path and of one segment. */
enum { PATCH_PATH_SHOWN = 160, PATCH_SEGMENT_SHOWN = 80 };
