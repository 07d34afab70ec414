/* reply.h - reads the answers of an HTTP/1.1 server, byte by byte as they come.
 *
 * Only what a load generator meets: answers whose length is given by Content-Length or by chunks.
 * Anything else is an error that says so, since guessing would make the numbers wrong.
 *
 * Ownership  A Reply owns its buffers until reply_done.
 * Threads    Belongs to one thread.
 */
#pragma once

#include "base/buf.h"
#include "base/error.h"
#include "base/slice.h"

#define REPLY_HEAD_BYTES_MAX    ((size_t)64 << 10)
#define REPLY_BODY_BYTES_MAX    ((size_t)64 << 20)
#define REPLY_EXCERPT_BYTES_MAX ((size_t)400)
#define REPLY_BATCH_BYTES_MAX   ((size_t)64 << 10) /* the statuses of 100 operations */
#define REPLY_CHUNK_EXTRA_MAX   ((size_t)4096)     /* bytes of extensions and trailers */
#define REPLY_MILLI_RU_MAX      UINT64_C(1000000000000)

/* In the order of an answer. One with a length goes from HEAD to BODY to DONE; one with chunks from
 * HEAD to CHUNK_SIZE, through the states of each chunk and back, and after the last chunk to LINE,
 * which is an empty one or begins a trailer. */
typedef enum ReplyState {
    REPLY_HEAD,
    REPLY_BODY,
    REPLY_CHUNK_SIZE,
    REPLY_CHUNK_EXTENSION,
    REPLY_CHUNK_SIZE_LF,
    REPLY_CHUNK_DATA,
    REPLY_CHUNK_DATA_CR,
    REPLY_CHUNK_DATA_LF,
    REPLY_LINE,
    REPLY_LINE_LF,
    REPLY_TRAILER,
    REPLY_DONE,
} ReplyState;

typedef struct Reply {
    ReplyState state;
    Buf head; /* up to and with the empty line */
    Buf body; /* whole if 'keep_body'; else REPLY_EXCERPT_BYTES_MAX of an answer with an error, and
                 REPLY_BATCH_BYTES_MAX of 207, where an operation of a batch has failed */
    bool keep_body;
    int status;
    uint64_t body_len; /* as announced, or of the chunks so far */
    uint64_t left;     /* bytes of the body or the chunk that are missing */
    size_t chunk_digits;
    size_t chunk_extra;
    bool is_close;           /* the server will close the connection */
    uint64_t milli_ru;       /* thousandths of request units; 0 if it does not say */
    uint32_t retry_after_ms; /* likewise */
    Slice continuation;      /* in 'head'; empty if this is the last page */
    Slice etag;              /* likewise; of a page of a feed, where the next one begins */
} Reply;

void reply_init(Reply *reply, bool keep_body);
void reply_reset(Reply *reply);
void reply_done(Reply *reply);
DEFINE_AUTO_VALUE(Reply, reply_done)

/* Takes bytes of one answer: '*used' of them belonged to it, and '*complete' says whether it ended
 * there. After that, reply_reset for the next. */
MUST_USE Status reply_feed(Reply *reply, Slice bytes, size_t *used, bool *complete, Error *err);
