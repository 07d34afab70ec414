/* reply.h - reads the answers of an HTTP/1.1 server, byte by byte as they come.
 *
 * Only what a load generator meets: answers whose length is given by Content-Length. Anything else
 * is an error that says so, since guessing would make the numbers wrong.
 *
 * Ownership  A Reply owns its buffers until reply_done.
 * Threads    Belongs to one thread.
 */
#pragma once

#include "base/buf.h"
#include "base/error.h"
#include "base/slice.h"

#define REPLY_HEAD_BYTES_MAX ((size_t)64 << 10)
#define REPLY_BODY_BYTES_MAX ((size_t)64 << 20)

typedef struct Reply {
    Buf head; /* up to and with the empty line */
    Buf body; /* filled only if 'keep_body' */
    bool keep_body;
    bool is_head_complete;
    int status;
    uint64_t body_len;  /* as announced */
    uint64_t body_seen; /* so far */
    bool is_close;      /* the server will close the connection */
    Slice continuation; /* in 'head'; empty if this is the last page */
    Slice etag;         /* likewise; of a page of a feed, where the next one begins */
} Reply;

void reply_init(Reply *reply, bool keep_body);
void reply_reset(Reply *reply);
void reply_done(Reply *reply);
DEFINE_AUTO_VALUE(Reply, reply_done)

/* Takes bytes of one answer: '*used' of them belonged to it, and '*complete' says whether it ended
 * there. After that, reply_reset for the next. */
MUST_USE Status reply_feed(Reply *reply, Slice bytes, size_t *used, bool *complete, Error *err);
