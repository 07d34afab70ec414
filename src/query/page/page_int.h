/* page_int.h - a page of a query while it is made.
 *
 *     PageRequest   what is asked, and what follows from it   page_begin.c
 *     PageReader    the next document of all targets          page_read.c, see page_reader_int.h
 *     PageResults   rows as text                              page_results.c
 *
 * Each part is written by the file beside it, and read by the others.
 */
#pragma once

#include "query/page/meter_int.h"
#include "query/page/page_reader_int.h"

typedef struct PageResults {
    const PageRequest *request;
    QueryPage *out;
    Buf *text;
    size_t text_before; /* its length when the page began */
    Meter printing;     /* of rows */
} PageResults;

/* Groups that the index alone has given: group_list_int.h. */
typedef struct GroupList GroupList;

typedef struct Page {
    PageRequest request;
    PageReader reader;
    Meter loading; /* of documents */
    PageWork work;
    PageNotes notes;
    PageResults results;
    Feed feed; /* what the run is to know */
    Run *run;
    uint64_t calls_counted; /* of users' functions, in the work */
    Arena *arena;
    Error *err;
    GroupList **counted; /* of each target, if the results are these; otherwise NULL */
} Page;

/* page_begin.c: reads the position, and decides how results come of documents. */
MUST_USE Status page_begin(Page *page);

/* page_results.c: the sink of the run; and rows come again, in another order, from the first on. */
MUST_USE Status page_results_take(void *context, Run *run, const Value *row, RowAnswer *answer);
void page_results_again(void *context);

/* index_only.c: groups, or distinct values, of a target that the index alone can tell; NULL if it
 * cannot. */
MUST_USE Status page_count_groups(ReadContext *context, Reading *reading, Arena *arena,
                                  GroupList **out);
MUST_USE Status page_add_groups(const Query *query, const GroupList *list, Execution *exec);
