/* page_begin.c - what is asked of a page, and how its results come of documents: PageRequest. */
#include "query/page/page_int.h"
#include "query/plan/query_traits_int.h"
#include "query/sql/functions_int.h"

bool page_request_is_late(const PageRequest *request)
{
    const QueryPageOptions *o = request->options;
    bool may_pause = page_request_streams(request) && o->pause_clock != NULL;
    const Clock *clock = may_pause ? o->pause_clock : o->clock;
    return o->deadline_us != 0 && clock_monotonic_us(clock) >= o->deadline_us;
}

/* Of its time a page gives half to the index, since the other way, whatever it is, needs the rest.
 */
#define INDEX_US_MIN ((uint64_t)50000)

uint64_t page_index_deadline_us(const QueryPageOptions *options, uint64_t begun_us)
{
    if (options->deadline_us == 0 || options->is_brief)
        return options->deadline_us;
    uint64_t left_us = options->deadline_us > begun_us ? options->deadline_us - begun_us : 0;
    return begun_us + (left_us / 2 > INDEX_US_MIN ? left_us / 2 : INDEX_US_MIN);
}

bool page_needs_system(const Query *query, bool is_ordered)
{
    return plan_needs_system(query) || (query->select->order_by != NULL && !is_ordered);
}

static Status find_unsteady(void *context, Node *node)
{
    bool *found = context;
    *found = *found ||
             (node->kind == NODE_CALL && (node->call.function->flags & FUNCTION_UNSTEADY) != 0);
    return *found ? STATUS_OK : node_each_child(node, find_unsteady, context);
}

bool page_request_tests_documents(const PageRequest *request)
{
    const Select *select = request->query->select;
    const Source *source = select->sources;
    bool is_alone = select->where != NULL && source->next == NULL && source->subquery == NULL &&
                    !source->iterate;
    bool is_unsteady = false;
    Node *where = UNCONST(Node, select->where); /* looks only */
    return is_alone && !page_request_calls(request) &&
           find_unsteady(&is_unsteady, where) == STATUS_OK && !is_unsteady;
}

static Status read_position(Page *page)
{
    PageRequest *request = &page->request;
    Slice position = request->options->position;
    request->has_from = position.len > 0;
    if (request->has_from && !page_position_read(position, &request->from))
        return error_set(page->err, STATUS_BAD_REQUEST, SUB_NONE,
                         "Invalid Continuation Token: it does not belong to this query.");
    return STATUS_OK;
}

/* Whether indexes serve ORDER BY in all targets; their readings are then begun. What a page before
 * has sorted is sorted again, although an index may be complete by now. */
static Status find_order(Page *page)
{
    PageRequest *request = &page->request;
    const Select *select = request->query->select;
    if (select->order_by == NULL || select->by_rank || !select->over_container ||
        request->options->target_count == 0)
        return STATUS_OK;
    bool was_sorted = request->has_from &&
                      (request->from.mode == PAGE_GATHERED || request->from.mode == PAGE_WHOLE);
    bool may_serve =
        !select->is_grouped && !select->distinct && !was_sorted && !request->sorts_rows;
    TRY(page_reader_begin_order(&page->reader, may_serve, &request->is_ordered));
    page->results.out->is_reversed =
        request->is_ordered && page->reader.readings[0].order->numbers_down;
    return STATUS_OK;
}

static PageWay choose_way(const PageRequest *request)
{
    const Select *select = request->query->select;
    if (!select->over_container)
        return PAGE_REPEATS;
    const Select *inner = select->sources->subquery;
    bool is_plain = inner == NULL || select_is_streaming(inner);
    if (select->is_grouped || (select->order_by != NULL && !request->is_ordered))
        return is_plain ? PAGE_GATHERS : PAGE_REPEATS;
    for (; inner != NULL; inner = inner->sources->subquery) {
        if (inner->is_grouped || inner->order_by != NULL)
            return PAGE_REPEATS;
    }
    /* Distinct values that the page before has had from the index alone are in their own order. */
    bool was_counted = request->has_from && request->from.mode == PAGE_GATHERED;
    if (select->distinct && was_counted)
        return PAGE_GATHERS;
    return select->distinct || select->sources->subquery != NULL ? PAGE_REMEMBERS : PAGE_STREAMS;
}

/* Whether the position is one of a page that was read like this one. */
static bool is_position_good(const PageRequest *request, Arena *arena)
{
    PageMode mode = request->from.mode;
    switch (request->way) {
    case PAGE_STREAMS:
        return request->is_ordered
                   ? mode == PAGE_ORDER
                   : mode != PAGE_ORDER && mode != PAGE_GATHERED && mode != PAGE_WHOLE;
    case PAGE_REMEMBERS:
        return mode == PAGE_NUMBER || mode == PAGE_EPK;
    case PAGE_GATHERS:
        return mode == PAGE_GATHERED;
    case PAGE_REPEATS:
        break;
    }
    return mode == PAGE_WHOLE &&
           slice_equal(request->from.place, page_position_whole(arena, request->options));
}

static Status check_position(const Page *page)
{
    const PageRequest *request = &page->request;
    if (!request->has_from || is_position_good(request, page->arena))
        return STATUS_OK;
    return error_set(page->err, STATUS_BAD_REQUEST, SUB_NONE,
                     "Invalid Continuation Token. The continuation token has expired: it was given "
                     "for another query, or the "
                     "container's indexing policy or partitions were changed. Begin the query "
                     "again.");
}

/* Begins at the request's resumeFilter, if that is after the place where the page before has
 * ended. */
static Status resume(Page *page)
{
    const PageRequest *request = &page->request;
    if (!request->resume.is_given)
        return STATUS_OK;
    TRY(page_resume_check(request, page->err));
    if (!request->is_ordered) {
        page->feed.resume = &request->resume.point;
        return STATUS_OK;
    }
    const OrderBy *order = page->reader.readings[0].order;
    OrderKey key = page_resume_key(request, order, page->arena);
    OrderKey before;
    if (!request->has_from || !order_position_read(request->from.place, &before) ||
        order_compare(order, &key, &before) > 0)
        page_reader_begin_at(&page->reader, order_position(page->arena, &key));
    return STATUS_OK;
}

/* Where the rows of the run begin. */
static void begin_feed(Page *page)
{
    const PageRequest *request = &page->request;
    const Select *select = request->query->select;
    const PagePosition *from = &request->from;
    Feed *feed = &page->feed;
    feed->skip = request->has_from ? from->skip : select->offset.value;
    feed->take = request->has_from ? from->take : select_take_max(select);
    feed->is_ordered = request->is_ordered;
    feed->rows_max = request->options->items_max;
    if (request->way == PAGE_GATHERS) {
        feed->has_places = true;
        feed->is_resumed = request->has_from;
        feed->place = from->place;
        feed->place_rows = from->rows;
    } else if (request->way == PAGE_REPEATS) {
        /* Results that were returned before are skipped as those of OFFSET are. */
        uint64_t skip = select->offset.value + from->rows;
        uint64_t take = select_take_max(select);
        feed->skip = skip < from->rows ? UINT64_MAX : skip;
        feed->take = take - (take < from->rows ? take : from->rows);
    }
}

Status page_begin(Page *page)
{
    PageRequest *request = &page->request;
    TRY(read_position(page));
    TRY(page_resume_read(request, page->arena, &request->resume, page->err));
    TRY(find_order(page));
    request->way = choose_way(request);
    request->needs_system = page_needs_system(request->query, request->is_ordered);
    TRY(check_position(page));
    TRY(resume(page));
    begin_feed(page);
    uint64_t rows = request->options->items_max;
    rows = page->feed.take < rows ? page->feed.take : rows;
    request->rows_wanted = (double)rows + (double)page->feed.skip;
    page_reader_begin(&page->reader);
    return STATUS_OK;
}
