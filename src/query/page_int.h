/* page_int.h - what the files of a page share: its targets while they are read, its position.
 *
 *     position = | '1' | mode | rows u64 BE | skip u64 BE | take u64 BE |
 *                | length u16 BE | EPK from | length u16 BE | EPK to | place |
 *
 * 'rows' of the document at 'place' were returned already; 'skip' and 'take' are what is left of
 * OFFSET and of TOP or LIMIT. The EPKs are the range in which the place is: everything before it
 * was read, and what is behind it was not begun. When that range has been split meanwhile all of
 * its parts go on at the same place, the one that comes first first; an order of values goes on in
 * all targets at once in the same way, and needs no range.
 *
 * The range that the page was asked for is not told: its own bounds are left empty.
 *
 * In mode 'G' the place is that of a row, in the order of rows_int.h, and 'rows' are those in front
 * of it that have the same place. In mode 'S' there is no place: 'rows' results were returned, of
 * documents that came in the order of their EPKs, as they will again; 'place' is a hash of the
 * range that they are in.
 */
#pragma once

#include "query/page.h"
#include "query/source_int.h"

typedef enum PageMode {
    PAGE_ANY = 0,
    PAGE_NUMBER = 'N', /* documents by number */
    PAGE_EPK = 'K',
    PAGE_RANGE = 'V',    /* along a range of the filter */
    PAGE_ORDER = 'O',    /* along the values of ORDER BY */
    PAGE_GATHERED = 'G', /* all documents first, then results, along their places */
    PAGE_WHOLE = 'S',    /* all documents first, by EPK, then results as they come */
} PageMode;

/* How results come of documents, and so what the next page has to know. */
typedef enum PageWay {
    PAGE_STREAMS,   /* of each by itself: where it is */
    PAGE_REMEMBERS, /* likewise, but for what came before it, as in DISTINCT: that is read again */
    PAGE_GATHERS,   /* of all together: where the results are */
    PAGE_REPEATS,   /* likewise, but these have no places, and come again in the same order */
} PageWay;

typedef struct PagePosition {
    PageMode mode;
    uint64_t rows;
    uint64_t skip;
    uint64_t take;
    Slice epk_from;
    Slice epk_to; /* empty: no end */
    Slice place;
} PagePosition;

/* Where the request's resumeFilter lets the query begin. */
typedef struct PageResume {
    bool is_given;
    bool is_hashed; /* of an array or an object only the type is known */
    ResumePoint point;
} PageResume;

/* Memory for the sets of what is read at a time. */
#define PAGE_SETS_BYTES_MAX ((size_t)64 << 20)

/* All rows of a document. */
#define PAGE_ROWS_ALL UINT64_MAX

Slice page_position_print(Arena *arena, const PagePosition *position);
bool page_position_read(Slice text, PagePosition *out);

/* Others who look for documents: ahead_int.h. */
typedef struct Ahead Ahead;
typedef struct Part Part;

/* Groups that the index has told: counted.c. */
typedef struct GroupList GroupList;

/* A target, or a part of it, while it is read. */
typedef struct Reading {
    size_t target; /* its index */
    Slice epk_from;
    Slice epk_to;
    Planner planner;
    Arena memory;     /* of its plan */
    size_t held;      /* and what of it the run knows of */
    PageMode mode;    /* PAGE_ANY until it is planned */
    Slice position;   /* where it begins; empty: at the start */
    bool is_at_place; /* its first document may be the one at the position */
    Filter *filter;
    const OrderBy *order; /* by which an index serves ORDER BY */
    DocumentSource *source;
    Part *part; /* where documents come from instead, if others look for them, too */

    Item item; /* the one that comes next, if 'has_item' */
    bool has_item;
    bool is_paused;
    bool is_over;
} Reading;

typedef struct Page {
    Feed feed;
    const QueryPageOptions *options;
    const Query *query;
    Run *run;
    Arena *arena;
    Error *err;
    QueryPage *out;
    QueryTargetWork *work; /* of each target */
    uint64_t documents;    /* that were read of all of them so far, */
    uint64_t document_bytes;
    IndexBudget budget;
    uint64_t index_deadline_us; /* of what is read of the index before the first document */

    PagePosition from;  /* where the page begins, */
    bool has_from;      /* unless it is the first */
    PageResume resume;  /* and before which place it does not */
    double rows_wanted; /* results that the page is to have, and what is skipped before them */
    PageWay way;
    bool is_streaming; /* which is that one */
    bool is_ordered;   /* documents come in the order of ORDER BY */
    bool needs_system;

    /* What is read at a time: one target after the other, except for those that a position finds
     * split and those of an order, which are merged. */
    Reading *readings; /* room for all targets */
    size_t reading_count;
    bool is_place_read; /* what stands at the place where the page begins was begun */
    bool is_before;     /* documents are in front of that place, and only remembered */
    Slice stop;         /* the EPK in front of which all of them are read first; empty: none */
    Slice group_from;
    Slice group_to;
    size_t target;       /* the next one */
    Slice done_to;       /* and the EPK up to which everything was read */
    GroupList **counted; /* of each target, if the results are these; otherwise NULL */
    Ahead *ahead;   /* what is left of the targets, with others; NULL: the page reads them alone */
    bool is_sliced; /* and that is slices of one */

    Reading *current;       /* whose item is at hand */
    bool has_item;          /* there is one */
    bool is_further;        /* one has come of which not all rows were returned before */
    bool is_paused;         /* by time, or because enough was looked at for another row */
    bool is_paused_between; /* in front of a document, or where there is none */
    bool is_looking; /* the page is full: is there another row? Nothing of that is charged, */
    QueryTargetWork *work_before; /* which was the work without it */
    bool is_looked_out;           /* it has looked far enough */
    Arena last_arena;
    Slice last; /* where the last document stands, if several readings are merged, or parts read */
    PageMode last_mode;
    Slice last_from; /* the range of its part */
    Slice last_to;
    bool is_at_last; /* paused right behind it, however far somebody has looked since */
    uint32_t looks_left;
    uint64_t looked; /* at documents, since the last look at the clock */
    Buf *text;
    size_t text_before;
    Json *explained; /* of each target */
    size_t explained_count;
    size_t explained_filters;
} Page;

/* page_read.c: documents. */
void page_note_last(Page *page); /* where the document at hand stands */
void page_begin_looking(Page *page);
void page_add_documents(Page *page, size_t target, uint64_t documents, uint64_t bytes);
void reading_begin(Page *page, Reading *reading, size_t target);
void reading_end(Page *page, Reading *reading);

/* Whether there can be anything in ['from', 'to'); and which of two ends comes first. */
bool page_is_range(Slice from, Slice to);
Slice page_earlier_end(Slice a, Slice b);

/* In which order a target must be read; PAGE_ANY: in any. */
PageMode page_mode_wanted(const Page *page);

/* The next document of all targets, in page->current. Without one they are over, or the page has
 * paused. */
MUST_USE Status page_next_item(Page *page, bool *found);
void page_end_readings(Page *page);

/* Whether the page's time is over; and whether it has as many results as it may have. */
bool page_is_late(const Page *page);
bool page_is_full(const Page *page);

/* Of the document that a reading has: whether it was read, and not made of the index. */
bool reading_was_fetched(const Reading *reading);

/* Where the document stands that a reading has, or where it has paused. */
Slice reading_position(const Reading *reading, Arena *arena);

/* plan_order.c: the order by which an index serves ORDER BY; '*out' is NULL if rows must be sorted
 * after all. STATUS_BAD_REQUEST as the service has it: an index would be needed and is not there.
 */
MUST_USE Status plan_order(Planner *planner, const OrderBy **out);

/* page_resume.c: reads the filter of the request; and makes a position of it, in the order of an
 * index. */
MUST_USE Status page_resume_read(const Page *page, PageResume *out);
MUST_USE Status page_resume_check(const Page *page);
OrderKey page_resume_key(const Page *page, const OrderBy *order);

/* counted.c: groups, or distinct values, of a target that the index alone can tell; NULL if it
 * cannot. */
MUST_USE Status page_count_groups(Page *page, Reading *reading, GroupList **out);
MUST_USE Status page_add_groups(const Page *page, const GroupList *list, Execution *exec);

/* page_plan.c: plans a reading and opens its source; the first makes only the filter, of WHERE and
 * partition key, and in '*key' that of the key alone (NULL: there is none). */
MUST_USE Status page_filter(Page *page, Reading *reading, Filter **key);
MUST_USE Status page_plan(Page *page, Reading *reading);

/* explain.c: how a target is read, and, when it was, which indexes served. */
void explain_reading(Page *page, const Reading *reading, const char *how);
void explain_indexes(Page *page, const Reading *reading);
void explain_add_composite(Arena *arena, const QueryComposite **list, size_t *count,
                           QueryComposite composite); /* unless it is there */

/* advise.c: composite indexes that would serve the reading's filter and order. */
void advise(Page *page, Reading *reading);
Json explain_all(Page *page);
