/* page.c - see page.h: runs a query over the documents of its targets until the page is full. */
#include "query/page/call_batch_int.h"
#include "query/page/page_int.h"
#include "query/page/remote_reading_int.h"

enum {
    BRIEF_DOCUMENTS = 200, /* a page of the usual 100, and some that it does not take */
    BRIEF_DOCUMENT_BYTES = 512 << 10,
};

/* For what had begun when time was over: a document is not left half-way. */
#define GRACE_US ((uint64_t)1000000)

/* The caller that wanted it brief asks again, for as long as it takes. */
static Status give_up(const Page *page)
{
    return error_set(page->err, STATUS_TIMEOUT, SUB_NONE, "the query is not soon over");
}

/* ---- documents ---- */

static bool is_much(const PageWork *work)
{
    return work->documents > BRIEF_DOCUMENTS || work->document_bytes > BRIEF_DOCUMENT_BYTES;
}

/* The document at hand is done: its calls are no longer known, and those of the next one count for
 * another target. */
static void end_calls(Page *page)
{
    const PageCursor *cursor = &page->reader.cursor;
    UserCalls *calls = &page->run->calls;
    user_calls_enter(page->run, NULL);
    page_work_add_calls(&page->work,
                        cursor->has_item ? cursor->current->target_index : PAGE_ALL_TARGETS,
                        calls->used - page->calls_counted);
    page->calls_counted = calls->used;
}

static Status feed_next(void *context, Run *run, FeedDocument *out, bool *found)
{
    Page *page = context;
    PageReader *reader = &page->reader;
    const PageRequest *request = &page->request;
    end_calls(page);
    if (page_request_streams(request) && reader->phase == PAGE_FILLING && reader->cursor.has_item &&
        page_reader_is_full(reader))
        page_reader_peek(reader);
    uint64_t other_us = reader->context.index_us + run->calls.us;
    meter_begin(&page->loading);
    TRY(page_reader_next(reader, found));
    meter_end(&page->loading, reader->context.index_us + run->calls.us - other_us);
    if (!*found)
        return STATUS_OK;
    const Reading *reading = reader->cursor.current;
    const Item *item = &reading->item;
    *out =
        (FeedDocument){.number = item->number, .rows_to_skip = page_cursor_count_returned(reader)};
    page_work_add_documents(&page->work, reading->target_index,
                            reading->calls->was_fetched(reading), item->bytes);
    if (request->options->is_brief && is_much(&page->work))
        return give_up(page);
    Json document = item->document;
    if (reading->batch != NULL) {
        CallDocument *prepared = call_batch_document(reading->batch);
        document = prepared->document;
        user_calls_enter(run, &prepared->known);
    } else if (request->needs_system) {
        document = item_document(&run->sources, request->options->schema, item);
    }
    run->slots[SLOT_DOCUMENT] = value_of(document, false);
    return STATUS_OK;
}

/* ---- groups that the index alone can tell ---- */

static bool has_targets(const Page *page)
{
    return page->reader.target < page->request.options->target_count;
}

static Status count_target(Page *page, GroupList **out)
{
    const Clock *clock = page->request.options->clock;
    uint64_t begun_us = clock_monotonic_us(clock);
    Reading *reading = page_reader_begin_alone(&page->reader);
    if (reading->target->view != NULL)
        TRY(page_count_groups(&page->reader.context, reading, page->arena, out));
    else
        TRY(remote_count_groups(&page->reader, reading, out));
    page_reader_end_alone(&page->reader, *out != NULL);
    page->reader.context.index_us += clock_monotonic_us(clock) - begun_us;
    return STATUS_OK;
}

/* Groups of the first targets, as long as the index alone can tell them: what is read later adds
 * up with them. */
static Status count_groups(Page *page, Execution *exec)
{
    bool is_told = true;
    while (is_told && has_targets(page)) {
        GroupList *list = NULL;
        TRY(count_target(page, &list));
        is_told = list != NULL;
        if (is_told)
            TRY(page_add_groups(page->request.query, list, exec));
    }
    return STATUS_OK;
}

/* Distinct values, if the index alone can tell all of them: then they have places. Otherwise they
 * come as documents do, and the page can end before it has seen all. */
static Status count_values(Page *page)
{
    GroupList **lists =
        ARENA_NEW_ARRAY(page->arena, GroupList *, page->request.options->target_count);
    bool is_told = true;
    while (is_told && has_targets(page)) {
        GroupList **list = &lists[page->reader.target];
        TRY(count_target(page, list));
        is_told = *list != NULL;
    }
    if (!is_told) {
        page_reader_rewind(&page->reader);
        return STATUS_OK;
    }
    page->counted = lists;
    page->feed.has_places = true;
    return STATUS_OK;
}

static Status feed_groups(void *context, Execution *exec)
{
    Page *page = context;
    const PageRequest *request = &page->request;
    if (request->way == PAGE_GATHERS)
        return count_groups(page, exec);
    if (request->way == PAGE_REMEMBERS && !request->has_from && page->counted == NULL)
        TRY(count_values(page));
    for (size_t i = 0; page->counted != NULL && i < request->options->target_count; i++)
        TRY(page_add_groups(request->query, page->counted[i], exec));
    return STATUS_OK;
}

/* ---- the end ---- */

static void write_position(Page *page)
{
    const PageRequest *request = &page->request;
    const FeedProgress *progress = &page->run->progress;
    PagePosition position = {.skip = progress->skip_left, .take = progress->take_left};
    switch (page->counted != NULL ? PAGE_GATHERS : request->way) {
    case PAGE_STREAMS:
    case PAGE_REMEMBERS:
        page_cursor_write(&page->reader, page->arena, &position);
        break;
    case PAGE_GATHERS:
        position.mode = PAGE_GATHERED;
        position.place = progress->place;
        position.rows = progress->place_rows;
        break;
    case PAGE_REPEATS:
        position.mode = PAGE_WHOLE;
        position.place = page_position_whole(page->arena, request->options);
        position.rows = request->from.rows + progress->rows_before + page->results.out->count;
        break;
    }
    page->results.out->position = page_position_print(page->arena, &position);
}

/* Whether every result that has come is right although not all documents were read; and whether the
 * next page, which remembers them, has a chance to come further. */
static bool is_right_so_far(const Page *page)
{
    return page->request.way == PAGE_STREAMS ||
           (page->request.way == PAGE_REMEMBERS && page->results.out->count > 0);
}

/* Whether there was too little time, or too small a budget, so that with more of them the page
 * would be another one, or cost something else. */
static bool is_hurried(const Page *page)
{
    bool has_stopped = page_reader_has_stopped(&page->reader);
    bool is_cut = has_stopped || page->run->progress.is_full;
    return (is_cut && page->results.out->count < page->request.options->items_max) ||
           (has_stopped && page->reader.phase != PAGE_PEEKED_FAR) ||
           page->reader.context.budget.was_short;
}

static Status finish(Page *page)
{
    const FeedProgress *progress = &page->run->progress;
    bool has_stopped = page_reader_has_stopped(&page->reader);
    if (page->request.options->is_brief && is_hurried(page))
        return give_up(page);
    if (has_stopped && !is_right_so_far(page))
        return error_set(page->err, STATUS_BAD_REQUEST, SUB_NONE,
                         "The query takes longer than a page may, and cannot be continued: it "
                         "groups, sorts or compares all documents. Narrow it.");
    page->results.out->is_done = progress->take_left == 0 || (!progress->is_full && !has_stopped);
    if (!page->results.out->is_done)
        write_position(page);
    return STATUS_OK;
}

static Status run_page(Page *page)
{
    const Select *select = page->request.query->select;
    TRY(page_begin(page));
    page->feed.context = page;
    page->feed.next = feed_next;
    page->feed.groups = select->is_grouped || select->distinct ? feed_groups : NULL;
    page->feed.again = page_results_again;
    page->run->feed = &page->feed;
    TRY(select_run(page->run, select, SELECT_OUTERMOST, page->arena, page_results_take, page));
    return finish(page);
}

static bool has_remote(const QueryPageOptions *options)
{
    for (size_t i = 0; i < options->target_count; i++) {
        if (UNLIKELY(options->targets[i].view == NULL))
            return true;
    }
    return false;
}

static void init_reader(Page *page, const QueryPageOptions *options)
{
    ReadContext context = {
        .request = &page->request,
        .run = page->run,
        .err = page->err,
        .plan_random = options->plan_random,
        .notes = &page->notes,
        .budget = {.keys_left = options->index_keys_max == 0 ? QUERY_INDEX_KEYS_MAX
                                                             : options->index_keys_max,
                   .bytes_left = PAGE_SETS_BYTES_MAX,
                   .clock = options->clock},
    };
    page_work_init(&page->work, page->arena, options->target_count);
    page_reader_init(&page->reader, context, page->arena, page->results.out, &page->work);
}

/* '*sorts_rows' becomes true, and the call fails, if the page has to be made with it. */
static Status make_page(const Query *query, const QueryPageOptions *options, bool *sorts_rows,
                        Arena *arena, Buf *text, QueryPage *out, Error *err)
{
    uint64_t begun_us = clock_monotonic_us(options->clock);
    uint64_t left_us = options->deadline_us > begun_us ? options->deadline_us - begun_us : 0;
    bool has_deadline = options->deadline_us != 0;
    *out = (QueryPage){0};
    QueryOptions run_options = {
        .steps_max = options->steps_max,
        .bytes_max = options->memory_max,
        .memory = options->memory,
        .random = options->random,
        .clock = options->clock,
        .geo = options->geo,
        .deadline_us = has_deadline ? begun_us + left_us + (options->is_brief ? 0 : GRACE_US) : 0,
        .functions = options->functions,
        .functions_context = options->functions_context,
    };
    AUTO(run_done) Run run;
    run_init(&run, run_options, arena, err);
    TRY(user_calls_begin(&run, query));
    /* One more than the query has, for the tests of filters. */
    run.slots = ARENA_NEW_ARRAY(arena, Value, query->slot_count + 1);
    Page page = {
        .request = {.options = options,
                    .query = query,
                    .index_deadline_us = page_index_deadline_us(options, begun_us),
                    .sum_targets = options->target_count,
                    .has_remote = has_remote(options),
                    .sorts_rows = *sorts_rows},
        .notes = {.arena = arena, .options = options},
        .results = {.request = &page.request,
                    .out = out,
                    .text = text,
                    .text_before = text->len,
                    .printing.clock = options->meter_clock},
        .loading.clock = options->meter_clock,
        .run = &run,
        .arena = arena,
        .err = err,
    };
    if (options->is_brief && (query->user_call_count > 0 || page.request.has_remote))
        return give_up(&page);
    init_reader(&page, options);
    Status status = run_page(&page);
    end_calls(&page);
    page_reader_done(&page.reader);
    *sorts_rows = page.reader.is_refused;
    TRY(status);
    out->is_ordered = query->select->order_by != NULL;
    out->work = page.work.targets;
    page_work_finish(&page.work, &out->metrics);
    out->metrics.results = out->count;
    out->metrics.result_bytes = text->len - page.results.text_before;
    out->metrics.index_us = page.reader.context.index_us;
    out->metrics.user_us = run.calls.us;
    out->metrics.load_us = meter_us(&page.loading);
    out->metrics.write_us = meter_us(&page.results.printing);
    out->metrics.total_us = clock_monotonic_us(options->clock) - begun_us;
    page_notes_finish(&page.notes, out);
    return STATUS_OK;
}

Status query_page(const Query *query, const QueryPageOptions *options, Arena *arena, Buf *text,
                  QueryPage *out, Error *err)
{
    TRY(query_check_available(query, err));
    ASSERT(options->items_max > 0);
    bool sorts_rows = false;
    size_t text_before = text->len;
    Status status = make_page(query, options, &sorts_rows, arena, text, out, err);
    if (LIKELY(!sorts_rows) || options->position.len > 0)
        return status;
    text->len = text_before;
    text->full = false;
    return make_page(query, options, &sorts_rows, arena, text, out, err);
}
