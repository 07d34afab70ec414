/* page_int.h - what the files of a page share: its targets, the plan of the one at hand, its
 * position.
 *
 *     position = | '1' | mode | rows u64 BE | skip u64 BE | take u64 BE | length u16 BE | EPK |
 * place |
 *
 * 'rows' of the document at 'place' were returned already; 'skip' and 'take' are what is left of
 * OFFSET and of TOP or LIMIT; EPK is where the target began. In mode 'S' there is no place: 'rows'
 * results were returned.
 */
#pragma once

#include "query/page.h"
#include "query/source_int.h"

typedef enum PageMode {
    PAGE_ANY = 0,
    PAGE_NUMBER = 'N', /* documents by number */
    PAGE_EPK = 'K',
    PAGE_VALUE = 'V',
    PAGE_WHOLE = 'S', /* all documents first, then results */
} PageMode;

typedef struct PagePosition {
    PageMode mode;
    uint64_t rows;
    uint64_t skip;
    uint64_t take;
    Slice epk;
    Slice place;
} PagePosition;

/* All rows of a document. */
#define PAGE_ROWS_ALL UINT64_MAX

Slice page_position_print(Arena *arena, const PagePosition *position);
bool page_position_read(Slice text, PagePosition *out);

typedef struct Page {
    Feed feed;
    const QueryPageOptions *options;
    const Query *query;
    Run *run;
    Arena *arena;
    Error *err;
    QueryPage *out;
    PagePosition from;
    IndexBudget budget;
    bool is_streaming;
    const OrderBy *order; /* that the index can serve; NULL: none */

    /* The target at hand. */
    size_t target;
    Planner planner;
    bool is_planned;
    Filter *filter;
    PageMode mode;
    DocumentSource *source;
    Slice target_position; /* where it begins; empty: at the start */

    Item item; /* the document at hand */
    bool has_item;
    Slice last;             /* the position of a document in front of the pause */
    bool is_paused;         /* by time, or because enough was looked at for another row */
    bool is_paused_between; /* no document stands at the position */
    uint32_t looks_left;
    Buf *text;
    size_t text_before;
    Json *explained; /* of each target */
    size_t explained_count;
} Page;

/* plan_order.c: the order by which an index serves ORDER BY; '*out' is NULL if rows must be sorted
 * after all. STATUS_BAD_REQUEST as the service has it: an index would be needed and is not there.
 */
MUST_USE Status plan_order(Planner *planner, const OrderBy **out);

/* counted.c: groups that the index alone can count, for the target at hand. */
MUST_USE Status counted_groups(Page *page, Execution *exec, bool *done);

/* page_plan.c: plans the target at hand and opens its source; the first makes only the filter, of
 * WHERE and partition key, and in '*key' that of the key alone (NULL: there is none). */
MUST_USE Status page_filter(Page *page, Filter **key);
MUST_USE Status page_plan(Page *page);

/* explain.c: how the target at hand is read, and, when it was, which indexes served. */
void explain_target(Page *page, const char *how);
void explain_indexes(Page *page);
Json explain_all(Page *page);
