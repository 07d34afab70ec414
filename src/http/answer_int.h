/* answer_int.h - reads the answer of another node as it arrives.
 *
 *     HEAD ──> LENGTH or CHUNKS ──> DONE
 *       ^│ interim answers (1xx)
 *       └┘
 *
 * Nodes are trusted with the data, but not with our memory: whatever arrives, the reader keeps at
 * most ANSWER_INTERIM_MAX heads of at most ANSWER_HEAD_BYTES_MAX besides the real one, and the
 * largest body that the caller wants; twice as much if they come in parts, since arenas give
 * nothing back. An answer whose end could be read in two ways is refused.
 *
 * Ownership  Everything that the reader keeps lives in the caller's arena.
 * Threads    A reader belongs to one thread.
 */
#pragma once

#include "http/chunk_int.h"
#include "http/http.h"

#define ANSWER_HEAD_BYTES_MAX ((size_t)64 << 10)
#define ANSWER_INTERIM_MAX    8

typedef enum AnswerState { ANSWER_HEAD, ANSWER_LENGTH, ANSWER_CHUNKS, ANSWER_DONE } AnswerState;

typedef struct AnswerReader {
    /* Set by the caller before the first byte; the rest is zero then. */
    Arena *arena;
    size_t bytes_max; /* of the body */
    bool is_to_head;  /* the request was HEAD, so the answer has no body */

    /* The answer, when it is DONE; without the headers that http_respond adds by itself, and those
     * of the connection. */
    int status;
    const HttpHeader *headers;
    size_t header_count;
    Slice body;
    bool ends_connection; /* the other side wants no further request on this connection */

    /* The reader's own. */
    AnswerState state;
    unsigned interim_count;
    char *head; /* what has arrived of an incomplete head */
    size_t head_len;
    size_t head_capacity;
    char *bytes; /* the body so far; its length is body.len */
    size_t capacity;
    ChunkDecoder decoder;
} AnswerReader;

/* Takes the next bytes, of which '*used' belong to this answer: fewer than 'len' only if it is
 * DONE. The bytes may be changed. */
MUST_USE Status answer_read(AnswerReader *reader, char *bytes, size_t len, size_t *used,
                            Error *err);

/* Where the next bytes are to be read to, if they are needed nowhere else: then answer_read, with
 * these very bytes, copies nothing. Empty if the caller's own memory is as good. */
size_t answer_room(const AnswerReader *reader, char **bytes);
