/* remote_format_int.h - what two nodes say to each other about a target.
 *
 *     asked     = | '1' | 'D' or 'G' | flags | way | mode | count u32 | looks u32 | bytes u32 |
 *                 | rows f64 | time u64 | targets u32 | ticks i64 | EPK from | EPK to | place |
 *     refused   = | '1' | 'R' |                         an index does not serve the order
 *     documents = | '1' | 'D' | flags | mode | passed | keys u64 | place | count u32 | document* |
 *     document  = | flags | passed | keys u64 | bytes u64 | place | length u32 | item, as stored |
 *     passed    = | documents u64 | bytes u64 |         looked at, without result, since the last
 *     groups    = | '1' | 'G' | flags | keys u64 | group list, if told |
 *     EPK, place = | length u16 | bytes |
 *
 * Numbers are big endian. Flags, modes and ways are those of the structs below.
 *
 * Ownership  What is read points into the bytes that were given.
 */
#pragma once

#include "query/page/page_request_int.h"

enum { REMOTE_PLACE_BYTES_MAX = 1024 };
static_assert(REMOTE_PLACE_BYTES_MAX >= SCAN_POSITION_BYTES_MAX, "a place in a scan");
static_assert(REMOTE_PLACE_BYTES_MAX >= ORDER_HEAD_BYTES + ORDER_TERM_BYTES + ORDER_REST_BYTES,
              "a place in an order");

typedef enum RemoteKind {
    REMOTE_DOCUMENTS = 'D',
    REMOTE_GROUPS = 'G',
    REMOTE_REFUSED = 'R',
} RemoteKind;

typedef struct RemoteAsk {
    RemoteKind kind;
    bool is_ordered; /* in the order of ORDER BY, along an index */
    bool is_after;   /* the document at the place itself is not wanted */
    bool is_whole;   /* the query may see all of the range */
    PageWay way;
    PageMode mode; /* PAGE_ANY before the first batch */
    uint32_t count_max;
    uint32_t looks_max; /* documents that are looked at */
    uint32_t bytes_max;
    double rows_wanted;   /* see PageRequest */
    uint64_t time_us;     /* that is left; 0 if there is no bound */
    uint32_t targets;     /* of the page */
    int64_t static_ticks; /* of the run */
    Slice epk_from;
    Slice epk_to;
    Slice place; /* empty at the start */
} RemoteAsk;

void remote_ask_write(const RemoteAsk *ask, Buf *out);
bool remote_ask_read(Slice bytes, RemoteAsk *out);

/* Documents that were looked at and passed over. */
typedef struct RemotePassed {
    uint64_t documents;
    uint64_t bytes;
} RemotePassed;

typedef struct RemoteDocument {
    Item item;
    Slice place;
    bool was_fetched;
    RemotePassed passed; /* since the document before it */
    uint64_t keys;       /* of the index that were read for the batch so far */
} RemoteDocument;

typedef struct RemoteBatch {
    PageMode mode;
    bool is_over;        /* there is nothing after it */
    bool numbers_down;   /* among equal keys */
    bool is_passed;      /* the document at 'place' was looked at */
    RemotePassed passed; /* since the last document */
    uint64_t keys;       /* of all */
    Slice place;         /* where to go on, unless it is over */
    uint32_t count;
    Slice documents;
} RemoteBatch;

void remote_refused_write(Buf *out);
void remote_batch_write(const RemoteBatch *batch, Buf *out);
void remote_document_write(const RemoteDocument *document, Slice item, Buf *out);

/* What an answer is of; 0 if it is none. */
int remote_kind(Slice answer);
bool remote_batch_read(Slice answer, RemoteBatch *out);

/* Takes one document off the front of 'documents'. */
MUST_USE Status remote_document_read(Slice *documents, RemoteDocument *out, Error *err);

/* Groups: what follows their head is group_list_int.h's. */
typedef struct RemoteGroups {
    bool is_told; /* by the index alone */
    uint64_t keys;
    Slice list;
} RemoteGroups;
void remote_groups_write(const RemoteGroups *groups, Buf *out);
bool remote_groups_read(Slice answer, RemoteGroups *out);

MUST_USE Status remote_malformed(Error *err);
