/* page_request_int.h - what a page is asked for, and where the page before it has ended.
 *
 *     position = | '1' | mode | rows u64 BE | skip u64 BE | take u64 BE |
 *                | length u16 BE | EPK from | length u16 BE | EPK to | place |
 *
 * 'rows' of the document at 'place' were returned already; 'skip' and 'take' are what is left of
 * OFFSET and of TOP or LIMIT. The EPKs are the range in which the place is: everything before it
 * was read, and what is after it was not begun. If that range has been split meanwhile, all of its
 * parts go on at the same place, in their order; an order of values goes on in all targets at once
 * in the same way, and needs no range.
 *
 * The bounds of the range that the page was asked for are left empty.
 *
 * In mode 'G' the place is that of a row, in the order of gathered_rows_int.h, and 'rows' are those
 * before it that have the same place. In mode 'S' there is no place: 'rows' results were returned,
 * of documents that came in the order of their EPKs, as they will again; 'place' is a hash of the
 * range that they are in.
 */
#pragma once

#include "query/page/document_source_int.h"
#include "query/page/page.h"
#include "query/sql/query_int.h"

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
    PAGE_STREAMS,   /* of each document by itself: where it is */
    PAGE_REMEMBERS, /* of each, and of those before it, as in DISTINCT: these are read again */
    PAGE_GATHERS,   /* of all together: where the results are */
    PAGE_REPEATS,   /* of all together, without places: they come again in the same order */
} PageWay;

typedef struct PagePosition {
    PageMode mode;
    uint64_t rows;
    uint64_t skip;
    uint64_t take;
    Slice epk_from;
    Slice epk_to; /* empty if there is no end */
    Slice place;
} PagePosition;

/* All rows of a document. */
#define PAGE_ROWS_ALL UINT64_MAX

/* Where the request's resumeFilter lets the query begin. */
typedef struct PageResume {
    bool is_given;
    bool is_hashed; /* of an array or an object only the type is known */
    ResumePoint point;
} PageResume;

/* Written by page_begin.c before the first document is read, and constant from then on: helpers on
 * other threads read it, too (read_ahead_int.h). */
typedef struct PageRequest {
    const QueryPageOptions *options;
    const Query *query;
    uint64_t index_deadline_us; /* of what is read of the index before the first document */
    PagePosition from;          /* where the page begins, if 'has_from'; otherwise at the start */
    bool has_from;
    PageResume resume; /* the place before which it does not begin */
    PageWay way;
    bool is_ordered;    /* documents come in the order of ORDER BY */
    bool needs_system;  /* of documents, their system properties */
    double rows_wanted; /* results that the page is to have, and what is skipped before them */
    size_t sum_targets; /* whose sums are added up */
    bool has_remote;    /* another node serves one of the targets */
    bool sorts_rows;    /* although indexes here may serve ORDER BY: on another node they do not */
} PageRequest;

/* Whether a page that ends anywhere can be continued there. */
static inline bool page_request_streams(const PageRequest *request)
{
    return request->way == PAGE_STREAMS;
}

/* Whether functions of users are called. */
static inline bool page_request_calls(const PageRequest *request)
{
    return request->query->user_call_count > 0;
}

/* Whether the page's time is over. */
bool page_request_is_late(const PageRequest *request);

/* Until when the index may be read before the first document. */
uint64_t page_index_deadline_us(const QueryPageOptions *options, uint64_t begun_us);

/* Whether documents need their system properties. */
bool page_needs_system(const Query *query, bool is_ordered);

/* Whether a document by itself tells what WHERE says, each time the same, without a call of a
 * user's function. */
bool page_request_tests_documents(const PageRequest *request);

/* page_position.c */
Slice page_position_print(Arena *arena, const PagePosition *position);
bool page_position_read(Slice text, PagePosition *out);

/* The place of PAGE_WHOLE: results that are counted are others in another range. */
Slice page_position_whole(Arena *arena, const QueryPageOptions *options);

/* page_resume.c: reads the filter of the request; and makes a position of it, in the order of an
 * index. */
MUST_USE Status page_resume_read(const PageRequest *request, Arena *arena, PageResume *out,
                                 Error *err);
MUST_USE Status page_resume_check(const PageRequest *request, Error *err);
OrderKey page_resume_key(const PageRequest *request, const OrderBy *order, Arena *arena);
