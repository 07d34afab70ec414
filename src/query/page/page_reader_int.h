/* page_reader_int.h - the documents of a page, pulled one by one from all of its targets.
 *
 *     ReadContext   what it takes to plan and read: the page's own, or a helper's
 *     Reading       one target, or a part of it, while it is read
 *     PageReader    the next document of all of them         page_read.c writes it
 *     PageCursor    where that document stands               page_cursor.c writes it
 *     PageWork      what each target has cost                page_work.c writes it
 *     PageNotes     plans and indexes, if they were wanted   explain.c writes it
 *
 * Ownership  Readings have memory of their own, everything else is in the page's arena.
 * Threads    A reader belongs to the page's thread; a ReadContext to one thread at a time.
 */
#pragma once

#include "query/page/page_request_int.h"

/* Memory for the sets of what is read at a time. */
#define PAGE_SETS_BYTES_MAX ((size_t)64 << 20)

typedef struct PageReader PageReader;

/* Documents that other threads look for: read_ahead_int.h. */
typedef struct ReadAhead ReadAhead;
typedef struct ReadAheadPart ReadAheadPart;

/* Documents that another node sends: remote_reading_int.h. */
typedef struct RemoteReading RemoteReading;

/* Documents whose calls of users' functions are made together: call_batch_int.h. */
typedef struct CallBatch CallBatch;

/* ---- what is told of a page: explain.c ---- */

typedef struct CompositeList {
    QueryComposite *list;
    size_t count;
} CompositeList;

typedef struct SpecList {
    Slice *list;
    size_t count;
} SpecList;

typedef struct PageNotes {
    Arena *arena;
    const QueryPageOptions *options; /* 'wants_explain' and 'wants_indexes' are read */
    Json *plans;                     /* of each target, if wanted */
    const QueryTarget **remotes;     /* likewise; NULL if this node reads it */
    size_t plan_count;
    size_t filter_count; /* in all of them */
    SpecList used_paths;
    SpecList potential_paths;
    CompositeList used_composites;
    CompositeList potential_composites;
} PageNotes;

/* ---- what each target has cost: page_work.c ---- */

typedef struct PageWork {
    QueryTargetWork *targets; /* never NULL */
    size_t count;
    QueryTargetWork *before_peek; /* what counts, if the page has peeked; otherwise NULL */
    uint64_t documents;           /* that were read of all of them so far */
    uint64_t document_bytes;
} PageWork;

void page_work_init(PageWork *work, Arena *arena, size_t target_count);
void page_work_visit(PageWork *work, size_t target);
void page_work_add_documents(PageWork *work, size_t target, uint64_t documents, uint64_t bytes);
void page_work_add_keys(PageWork *work, size_t target, uint64_t keys);

/* Results of a target, or, if they come out of several together (PAGE_ALL_TARGETS), of the first
 * that was visited; and all of them taken back. */
#define PAGE_ALL_TARGETS SIZE_MAX
void page_work_add_result(PageWork *work, size_t target, size_t bytes);
void page_work_add_calls(PageWork *work, size_t target, uint64_t calls);
void page_work_clear_results(PageWork *work);

/* What is done from here on is not charged. Keys of readings that have not ended are added here. */
void page_work_freeze(PageWork *work, Arena *arena);
void page_work_add_frozen_keys(PageWork *work, size_t target, uint64_t keys);

/* Takes back what is not charged, and adds up the rest. */
void page_work_finish(PageWork *work, QueryMetrics *out);

/* ---- one target ---- */

typedef struct ReadContext {
    const PageRequest *request;
    Run *run;
    Error *err;
    Random *plan_random; /* for tests: see plan_prefers */
    PageNotes *notes;    /* NULL if they are not wanted */
    IndexBudget budget;
    uint64_t index_us;     /* time spent on plans that read the index */
    uint64_t collected_us; /* time that plans spent on documents instead of the index */
} ReadContext;

/*     NEW ---open---> EMPTY <---> READY
 *      |                |
 *      +-> OVER <-------+---> PAUSED, FAR
 */
typedef enum ReadingState {
    READING_NEW,    /* not opened yet */
    READING_EMPTY,  /* the next document is to be read */
    READING_READY,  /* it is in 'item' */
    READING_PAUSED, /* time is up; there may be more */
    READING_FAR,    /* there may be more, too far away for a page that is full */
    READING_OVER,   /* there is no more */
} ReadingState;

typedef struct Reading Reading;

/* How documents of a reading come: from a partition here, a helper, or another node. They come in
 * one order, and each has a position at which another reading can begin. */
typedef struct ReadingCalls {
    /* NEW to EMPTY or OVER: from 'position' on, in the order of 'mode'. */
    Status (*open)(PageReader *reader, Reading *reading);

    /* EMPTY to READY, PAUSED, FAR or OVER. The item lives until the next call. */
    Status (*next)(PageReader *reader, Reading *reading);

    /* Whether the item was read, and not made of what the index has. */
    bool (*was_fetched)(const Reading *reading);

    /* Where the item stands, or where to go on. '*is_passed' says whether the document there was
     * looked at, and has no result. */
    Slice (*position)(const Reading *reading, Arena *arena, bool *is_passed);

    void (*close)(PageReader *reader, Reading *reading);
} ReadingCalls;

struct Reading {
    const ReadingCalls *calls;
    ReadingState state;
    const QueryTarget *target;
    size_t target_index; /* to which its work counts */
    Slice epk_from;
    Slice epk_to;
    PageMode mode;    /* PAGE_ANY until it is planned */
    Slice position;   /* where it begins; empty if at the start */
    bool is_at_place; /* its first document may be the one at the position */

    Planner planner;
    Arena memory; /* of its plan */
    size_t held;  /* bytes of 'memory' that are charged to the run */
    Filter *filter;
    const OrderBy *order; /* by which an index serves ORDER BY */
    IndexAdvice advice;   /* if indexes are wanted */

    DocumentSource *source;   /* of a partition here, or */
    ReadAheadPart *part;      /* of helpers, or */
    RemoteReading *remote;    /* of another node */
    CallBatch *batch;         /* of the source, with calls; otherwise NULL */
    const OrderBy *sorted_by; /* the order of its documents; NULL if by number or EPK */

    Item item;
    OrderKey key; /* of the item, or where it has paused; only if several readings are merged */
};

static inline bool reading_may_become(ReadingState before, ReadingState after)
{
    switch (before) {
    case READING_NEW:
        return after == READING_EMPTY || after == READING_OVER;
    case READING_EMPTY:
        return after != READING_NEW && after != READING_EMPTY;
    case READING_READY:
        return after == READING_EMPTY;
    case READING_PAUSED:
    case READING_FAR:
    case READING_OVER:
        break;
    }
    return false;
}

static inline void reading_set_state(Reading *reading, ReadingState state)
{
    ASSERT(reading_may_become(reading->state, state));
    reading->state = state;
}

/* Of a partition here, document by document. */
extern const ReadingCalls READING_LOCAL_CALLS;

/* A reading of a whole target, which has to be opened. */
void reading_begin(ReadContext *context, Reading *reading, const QueryTarget *target,
                   size_t target_index);
void reading_done(ReadContext *context, Reading *reading);

/* Asks WHERE about a document of the reading; for page_request_tests_documents. What fails here is
 * left to the page, which asks again with more memory, and fails if it has to. */
bool reading_passes(ReadContext *context, Reading *reading, const Item *item);

/* page_plan.c: plans a reading and opens its source; the first makes only the filter, of WHERE and
 * partition key, and in '*key' that of the key alone (NULL if there is none). */
MUST_USE Status page_plan_filter(ReadContext *context, Reading *reading, Filter **key);
MUST_USE Status page_plan(ReadContext *context, Reading *reading);

/* explain.c: how a target is read, here or by another node, and, when it was, which indexes served
 * and which would have. All of them accept NULL for 'notes'. */
void page_notes_plan(PageNotes *notes, const Reading *reading, const char *how);
void page_notes_remote(PageNotes *notes, const Reading *reading);
void page_notes_indexes(PageNotes *notes, const Reading *reading);
void page_notes_finish(const PageNotes *notes, QueryPage *out);

/* ---- where the page is: page_cursor.c ---- */

/* Where a document stands, in memory of its own. */
typedef struct PageMark {
    Arena memory;
    Slice place;
    PageMode mode;
    Slice epk_from; /* the range of its reading */
    Slice epk_to;
} PageMark;

typedef struct PageCursor {
    Reading *current; /* the reading that has the document or has paused; NULL before the first */
    bool has_item;    /* 'current' has a document */
    bool is_before;   /* documents are before the place of the request, and only remembered */
    bool is_further;  /* one has come of which not all rows were returned before */
    Slice epk_from;   /* the range that is read: all before it was read, nothing after it */
    Slice epk_to;
    PageMark last; /* the last document, if its reading cannot tell any more */
} PageCursor;

void page_cursor_init(PageCursor *cursor);
void page_cursor_begin(PageCursor *cursor, const PageRequest *request);
void page_cursor_done(PageCursor *cursor);
void page_cursor_enter(PageCursor *cursor, Slice epk_from, Slice epk_to);
static inline void page_cursor_move(PageCursor *cursor, Reading *reading)
{
    ASSERT(reading->state != READING_NEW);
    ASSERT(reading->state != READING_OVER);
    cursor->current = reading;
    cursor->has_item = reading->state == READING_READY;
}

void page_cursor_leave(PageCursor *cursor);     /* there is no document any more */
void page_cursor_mark_last(PageCursor *cursor); /* the one at hand */

/* Where a page that can end between documents has ended. */
void page_cursor_write(const PageReader *reader, Arena *arena, PagePosition *out);

/* ---- all targets: page_read.c ---- */

/* Which targets are read.
 *
 *     BEFORE ---> PLACE ---> REST
 *
 * A page with a place among documents begins with BEFORE, any other one with REST. */
typedef enum PageSpan {
    SPAN_BEFORE, /* before the range in which the page before has ended: if it must be known */
    SPAN_PLACE,  /* that range, in whatever targets it is by now */
    SPAN_REST,
} PageSpan;

/* What becomes of the page's documents.
 *
 *     FILLING ---> PEEKING ---> PEEKED_FAR, PEEKED_LATE
 *       |  |          |
 *       |  +----------+---> EXHAUSTED
 *       +---> STOPPED_AFTER, STOPPED_BETWEEN
 */
typedef enum PagePhase {
    PAGE_FILLING,
    PAGE_PEEKING,         /* it is full, and looks for another row; that is not charged */
    PAGE_PEEKED_FAR,      /* no other row was found in as many documents as may be read for that */
    PAGE_PEEKED_LATE,     /* no other row was found in time */
    PAGE_STOPPED_AFTER,   /* time was up after all rows of a document */
    PAGE_STOPPED_BETWEEN, /* time was up where a reading has paused */
    PAGE_EXHAUSTED,       /* there are no more documents */
} PagePhase;

struct PageReader {
    ReadContext context;
    Arena *arena;
    const QueryPage *out; /* its 'count' says whether the page is full */
    PageWork *work;
    PageCursor cursor;
    PagePhase phase;

    /* What is read at a time: one target after the other, except for those that a position finds
     * split and those of an order, which are merged. */
    PageSpan span;
    Reading *readings; /* room for all targets */
    size_t reading_count;
    size_t target;    /* the next one */
    Slice done_to;    /* the EPK up to which everything was read */
    ReadAhead *ahead; /* what is left of the targets, with helpers; NULL if the page reads alone */
    bool is_sliced;   /* 'ahead' has slices of one target */
    bool is_refused;  /* another node cannot serve the order: the page must sort */

    uint32_t peeks_left; /* documents that it looks at while PEEKING */
    uint64_t looked;     /* at documents, since the last look at the clock */
};

void page_reader_init(PageReader *reader, ReadContext context, Arena *arena, const QueryPage *out,
                      PageWork *work);
void page_reader_done(PageReader *reader);

/* Begins readings of all targets at the request's place; '*is_served' says whether indexes serve
 * ORDER BY in all of them. If not, the readings are ended again. */
MUST_USE Status page_reader_begin_order(PageReader *reader, bool may_serve, bool *is_served);

/* Readings of an order begin at this position instead. */
void page_reader_begin_at(PageReader *reader, Slice position);

/* Documents are read now: what the request says is final. */
void page_reader_begin(PageReader *reader);

void page_reader_end_readings(PageReader *reader);

/* A reading of the next target, of which no documents are read; 'is_done' says whether nothing of
 * it is left. And back to the first target. */
Reading *page_reader_begin_alone(PageReader *reader);
void page_reader_end_alone(PageReader *reader, bool is_done);
void page_reader_rewind(PageReader *reader);

/* The next document of all targets, in cursor.current. Without one the phase says why. */
MUST_USE Status page_reader_next(PageReader *reader, bool *found);

/* The page is full: only a few more documents are looked at. */
void page_reader_peek(PageReader *reader);

static inline bool page_reader_has_peeked(const PageReader *reader)
{
    return reader->phase == PAGE_PEEKED_FAR || reader->phase == PAGE_PEEKED_LATE;
}

/* Whether it has stopped where there may be more. */
static inline bool page_reader_has_stopped(const PageReader *reader)
{
    return page_reader_has_peeked(reader) || reader->phase == PAGE_STOPPED_AFTER ||
           reader->phase == PAGE_STOPPED_BETWEEN;
}

/* How many rows of the document at hand earlier pages have returned; once for each document. */
uint64_t page_cursor_count_near_place(PageReader *reader); /* of those that can have any */

static inline uint64_t page_cursor_count_returned(PageReader *reader)
{
    if (UNLIKELY(reader->cursor.is_before || reader->cursor.current->is_at_place))
        return page_cursor_count_near_place(reader);
    reader->cursor.is_further = true;
    return 0;
}

static inline bool page_reader_is_full(const PageReader *reader)
{
    return reader->out->count >= reader->context.request->options->items_max;
}

/* ---- for read_ahead.c ---- */

/* Helpers have looked at documents that have no result. */
void page_reader_pass(PageReader *reader, size_t target, uint64_t documents, uint64_t bytes);

/* Whether a full page need not look another 'documents' documents further. */
static inline bool page_reader_is_far(const PageReader *reader, uint64_t documents)
{
    return reader->phase == PAGE_PEEKING && documents > reader->peeks_left;
}

/* Whether there can be anything in ['from', 'to'); which of two ends comes first; and where the
 * targets end that are read now. */
bool page_is_range(Slice from, Slice to);
Slice page_earlier_end(Slice a, Slice b);
Slice page_reader_stop(const PageReader *reader);

/* In which order a target must be read; PAGE_ANY if in any. */
PageMode page_mode_wanted(const PageRequest *request);
