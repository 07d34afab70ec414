/* input.h - the files of an import, and their bytes without compression.
 *
 * Names are files, folders (all files below them, in the order of their names, without those that
 * begin with a dot) and "-" for standard input. An Input reads one of them piece by piece. It waits
 * for a disk, but never for a pipe: the caller is told to wait instead.
 *
 * Ownership  The list lives in its arena. The caller closes an Input. A text in memory is copied.
 * Threads    An Input belongs to one thread.
 */
#pragma once

#include "base/arena.h"
#include "base/error.h"
#include "base/slice.h"

#define INPUT_FILES_MAX 1000000
#define INPUT_DEPTH_MAX 32 /* folders in folders */

typedef struct InputFile {
    const char *path;   /* "-" for standard input */
    uint64_t bytes;     /* on the disk; 0 if that is not known */
    int64_t changed_s;  /* when it was last changed */
    Slice begun;        /* its first bytes, if they were read before: of a pipe they are gone */
    bool is_only_begun; /* nothing follows these */
} InputFile;

typedef struct InputList {
    InputFile *files;
    size_t count;
    size_t capacity;
    uint64_t bytes; /* of all files; 0 if that of one is not known */
} InputList;

MUST_USE Status input_list(Arena *arena, const char *const *names, size_t count, InputList *out,
                           Error *err);

typedef enum InputState {
    INPUT_READY, /* more may follow at once */
    INPUT_WAIT,  /* input_fd() is not readable yet */
    INPUT_END,
} InputState;

typedef struct Input Input;

MUST_USE Status input_open(const InputFile *file, Input **out, Error *err);
void input_close(Input *input); /* accepts NULL */
DEFINE_AUTO(Input *, input_close)

/* Reads more bytes behind those that there are. */
MUST_USE Status input_fill(Input *input, InputState *out, Error *err);

Slice input_bytes(const Input *input);       /* valid until the next fill */
void input_skip(Input *input, size_t count); /* the first bytes are done with */
int input_fd(const Input *input);            /* to wait for */
uint64_t input_position(const Input *input); /* bytes of the file that are done with, or nearly */
