/* page.c - see page.h: runs a query over the documents of its targets until the page is full. */
#include "query/ahead_int.h"

enum {
    CLOCK_DOCUMENTS = 16, /* between two looks at the clock */
    CLOCK_RESULTS = 64,
    LOOKS_BEHIND = 64, /* documents that are looked at for a row behind a full page */
    PLACE_BLOCK_BYTES = 1024,
    BRIEF_DOCUMENTS = 200, /* a page of the usual 100, and some that it does not take */
    BRIEF_DOCUMENT_BYTES = 512 << 10,
};

/* Of its time a page gives half to the index, since the other way, whatever it is, needs the rest;
 * and some is left for what had begun when time was over: a document is not left half-way. */
#define INDEX_US_MIN ((uint64_t)50000)
#define GRACE_US     ((uint64_t)1000000)

/* The position is none that could be gone on at, or not any more. */
static Status expired(const Page *page)
{
    return error_set(page->err, STATUS_BAD_REQUEST, SUB_NONE,
                     "Invalid Continuation Token. The continuation token has expired: it was given "
                     "for another query, or the "
                     "container's indexing policy or partitions were changed. Begin the query "
                     "again.");
}

/* Whoever wanted it brief asks again, for as long as it takes. */
static Status give_up(const Page *page)
{
    return error_set(page->err, STATUS_TIMEOUT, SUB_NONE, "the query is not soon over");
}

/* ---- documents ---- */

static bool must_pause(Page *page)
{
    if (page->is_looking && page->looks_left-- == 0) {
        page->is_looked_out = true;
        return true;
    }
    /* Sixteen documents may take long, and the run has looked at the clock on its way. But a page
     * that has only passed over the document at which it begins would come no further. */
    uint64_t deadline_us = page->options->deadline_us;
    if (deadline_us != 0 && page->is_further && page->run->looked_us >= deadline_us)
        return true;
    if (page->looked < CLOCK_DOCUMENTS)
        return false;
    page->looked = 0;
    return page_is_late(page);
}

/* All rows of documents in front of the place where the page begins were returned, and some of the
 * one that stands there. */
static void skip_before(Page *page)
{
    const PagePosition *from = &page->from;
    int compared = -1;
    if (page->is_place_read && slice_equal(page->group_from, from->epk_from))
        compared = slice_compare(reading_position(page->current, &page->run->sources), from->place);
    else if (page->is_place_read) /* it is behind the range that the place is in */
        compared = 1;
    page->is_before = compared < 0;
    if (compared <= 0)
        page->feed.rows_to_skip = compared < 0 ? PAGE_ROWS_ALL : from->rows;
}

/* Of the document at the place where the page begins some rows were returned. If it is gone, all
 * rows of the next one are new. */
static void skip_returned(Page *page)
{
    Reading *reading = page->current;
    page->feed.rows_to_skip = 0;
    page->feed.document_rows = 0;
    if (page->is_before)
        skip_before(page);
    if (!reading->is_at_place)
        return;
    reading->is_at_place = false;
    Slice position = reading_position(reading, &page->run->sources);
    if (slice_equal(position, page->from.place))
        page->feed.rows_to_skip = page->from.rows;
}

static bool is_much(const Page *page)
{
    return page->documents > BRIEF_DOCUMENTS || page->document_bytes > BRIEF_DOCUMENT_BYTES;
}

static Status feed_next(Feed *feed, Run *run, bool *found)
{
    Page *page = CONTAINER_OF(feed, Page, feed);
    *found = false;
    if (page->is_streaming && page->has_item && page_is_full(page) && !page->is_looking)
        page_begin_looking(page);
    if (page->has_item && must_pause(page))
        page->is_paused = true;
    if (!page->is_paused) {
        TRY(page_next_item(page, found));
        page->has_item = *found;
    }
    /* How far it looked must not matter to whoever goes on. */
    page->is_at_last = page->is_looking && page->is_paused;
    if (page->is_paused || !*found)
        return STATUS_OK;
    skip_returned(page);
    page->is_further = page->is_further || feed->rows_to_skip != PAGE_ROWS_ALL;
    const Item *item = &page->current->item;
    feed->number = item->number;
    page->looked++;
    bool was_fetched = reading_was_fetched(page->current);
    page_add_documents(page, page->current->target, was_fetched, item->bytes);
    if (page->options->is_brief && is_much(page))
        return give_up(page);
    Json document = item->document;
    if (page->needs_system)
        document = item_document(&run->sources, page->options->schema, item);
    run->slots[SLOT_DOCUMENT] = value_of(document, false);
    return STATUS_OK;
}

/* The groups of the next target, if the index alone can tell them. */
static Status count_target(Page *page, GroupList **out)
{
    Reading *reading = &page->readings[page->reading_count++];
    reading_begin(page, reading, page->target);
    TRY(page_count_groups(page, reading, out));
    page_end_readings(page);
    if (*out != NULL)
        page->work[page->target++].is_visited = true;
    return STATUS_OK;
}

/* Groups of the first targets, as long as the index alone can tell them: what is read later adds
 * up with them. */
static Status count_groups(Page *page, Execution *exec)
{
    bool is_told = true;
    while (is_told && page->target < page->options->target_count) {
        GroupList *list = NULL;
        TRY(count_target(page, &list));
        is_told = list != NULL;
        if (is_told)
            TRY(page_add_groups(page, list, exec));
    }
    return STATUS_OK;
}

/* Distinct values, if the index alone can tell all of them: then they have places. Otherwise they
 * come as documents do, and the page can end before it has seen all. */
static Status count_values(Page *page)
{
    size_t count = page->options->target_count;
    GroupList **lists = ARENA_NEW_ARRAY(page->arena, GroupList *, count);
    bool is_told = true;
    while (is_told && page->target < count) {
        GroupList **list = &lists[page->target];
        TRY(count_target(page, list));
        is_told = *list != NULL;
    }
    if (!is_told) {
        page->target = 0;
        return STATUS_OK;
    }
    page->counted = lists;
    page->way = PAGE_GATHERS;
    page->feed.has_places = true;
    return STATUS_OK;
}

static Status feed_groups(Feed *feed, Execution *exec)
{
    Page *page = CONTAINER_OF(feed, Page, feed);
    size_t count = page->options->target_count;
    if (page->way == PAGE_GATHERS && page->counted == NULL)
        return count_groups(page, exec);
    if (page->way == PAGE_REMEMBERS && !page->has_from)
        TRY(count_values(page));
    for (size_t i = 0; page->counted != NULL && i < count; i++)
        TRY(page_add_groups(page, page->counted[i], exec));
    return STATUS_OK;
}

/* ---- results ---- */

static Status too_large(const Page *page)
{
    return error_set(page->err, STATUS_TOO_LARGE, SUB_NONE,
                     "A result of the query is larger than a page may be.");
}

static Status print_row(Page *page, Run *run, const Value *row)
{
    const Item *item = page->has_item ? &page->current->item : NULL;
    bool is_item = item != NULL && row->type == JSON_OBJECT && row->json.at != NULL &&
                   row->json.at == item->document.at;
    if (is_item) {
        item_print(page->options->schema, item, page->text);
        return STATUS_OK;
    }
    Json json = value_json(run->scratch, run->scratch, row);
    if (json.at == NULL && row->type == JSON_STRING) /* more than JSON_BUILD_BYTES_MAX */
        return too_large(page);
    json_print(json, page->text);
    return STATUS_OK;
}

static bool is_full(const Page *page)
{
    size_t count = page->out->count;
    return count >= page->options->items_max ||
           (count > 0 && count % CLOCK_RESULTS == 0 && page_is_late(page));
}

/* Of what comes out of all of them. */
static QueryTargetWork *first_work(const Page *page)
{
    size_t i = 0;
    while (i + 1 < page->options->target_count && !page->work[i].is_visited)
        i++;
    return page->work[i].is_visited ? &page->work[i] : page->work;
}

static Status take_result(void *context, Run *run, const Value *row, bool *more UNUSED)
{
    Page *page = context;
    if (is_full(page)) {
        page->feed.is_full = true;
        return STATUS_OK;
    }
    size_t before = page->text->len;
    if (page->out->count > 0)
        buf_byte(page->text, ',');
    TRY(print_row(page, run, row));
    bool fits = page->text->len - page->text_before <= page->options->bytes_max;
    if ((!fits && page->out->count > 0) || buf_full(page->text)) {
        if (page->out->count == 0)
            return too_large(page);
        page->text->len = before;
        page->text->full = false;
        page->feed.is_full = true;
        return STATUS_OK;
    }
    page->out->count++;
    QueryTargetWork *work = page->has_item ? &page->work[page->current->target] : first_work(page);
    work->results++;
    work->result_bytes += page->text->len - before;
    return run_charge_value(run, row);
}

/* Rows that were printed come in another order, from the first on. */
static void feed_again(Feed *feed)
{
    Page *page = CONTAINER_OF(feed, Page, feed);
    feed->is_full = false;
    page->text->len = page->text_before;
    page->text->full = false;
    page->out->count = 0;
    for (size_t i = 0; i < page->options->target_count; i++) {
        page->work[i].results = 0;
        page->work[i].result_bytes = 0;
    }
}

/* ---- the beginning ---- */

static Status read_position(Page *page)
{
    Slice position = page->options->position;
    page->has_from = position.len > 0;
    if (page->has_from && !page_position_read(position, &page->from))
        return error_set(page->err, STATUS_BAD_REQUEST, SUB_NONE,
                         "Invalid Continuation Token: it does not belong to this query.");
    return STATUS_OK;
}

/* Whether indexes serve ORDER BY in all targets; their readings are then begun. What a page before
 * has sorted is sorted again, although an index may be complete by now. */
static Status find_order(Page *page)
{
    const QueryPageOptions *o = page->options;
    const Select *select = page->query->select;
    if (select->order_by == NULL || select->by_rank || !select->over_container ||
        o->target_count == 0)
        return STATUS_OK;
    bool was_sorted =
        page->has_from && (page->from.mode == PAGE_GATHERED || page->from.mode == PAGE_WHOLE);
    bool is_served = !select->is_grouped && !select->distinct && !was_sorted;
    for (size_t i = 0; i < o->target_count; i++) {
        Reading *reading = &page->readings[page->reading_count++];
        reading_begin(page, reading, i);
        TRY(plan_order(&reading->planner, &reading->order));
        is_served = is_served && reading->order != NULL;
        reading->is_over = !page_is_range(reading->epk_from, reading->epk_to);
        reading->position = page->from.place;
        reading->is_at_place = page->has_from;
    }
    page->is_ordered = is_served;
    page->out->is_reversed = is_served && page->readings[0].order->numbers_down;
    if (!is_served)
        page_end_readings(page);
    return STATUS_OK;
}

static PageWay choose_way(const Page *page)
{
    const Select *select = page->query->select;
    if (!select->over_container)
        return PAGE_REPEATS;
    const Select *inner = select->sources->subquery;
    bool is_plain = inner == NULL || select_is_streaming(inner);
    if (select->is_grouped || (select->order_by != NULL && !page->is_ordered))
        return is_plain ? PAGE_GATHERS : PAGE_REPEATS;
    for (; inner != NULL; inner = inner->sources->subquery) {
        if (inner->is_grouped || inner->order_by != NULL)
            return PAGE_REPEATS;
    }
    /* Distinct values that the page before has had from the index alone are in their own order. */
    bool was_counted = page->has_from && page->from.mode == PAGE_GATHERED;
    if (select->distinct && was_counted)
        return PAGE_GATHERS;
    return select->distinct || select->sources->subquery != NULL ? PAGE_REMEMBERS : PAGE_STREAMS;
}

/* What results come of that are counted; they are others in another range. */
static Slice whole_place(const Page *page)
{
    const QueryPageOptions *o = page->options;
    Slice from = o->target_count == 0 ? SLICE_EMPTY : o->targets[0].epk_from;
    Slice to = o->target_count == 0 ? SLICE_EMPTY : o->targets[o->target_count - 1].epk_to;
    char *place = arena_alloc(page->arena, sizeof(uint64_t));
    uint64_t seed = hash_keyed((HashKey){0, 0}, from);
    be64_put(place, hash_keyed((HashKey){seed, to.len}, to));
    return slice_make(place, sizeof(uint64_t));
}

/* Whether the position is one of a page that was read like this one. */
static Status check_position(const Page *page)
{
    PageMode mode = page->from.mode;
    bool is_good = true;
    if (!page->has_from)
        return STATUS_OK;
    switch (page->way) {
    case PAGE_STREAMS:
        is_good = page->is_ordered
                      ? mode == PAGE_ORDER
                      : mode != PAGE_ORDER && mode != PAGE_GATHERED && mode != PAGE_WHOLE;
        break;
    case PAGE_REMEMBERS:
        is_good = mode == PAGE_NUMBER || mode == PAGE_EPK;
        break;
    case PAGE_GATHERS:
        is_good = mode == PAGE_GATHERED;
        break;
    case PAGE_REPEATS:
        is_good = mode == PAGE_WHOLE && slice_equal(page->from.place, whole_place(page));
        break;
    }
    return is_good ? STATUS_OK : expired(page);
}

/* Begins at the request's resumeFilter, if that is behind where the page before has ended. */
static Status resume(Page *page)
{
    if (!page->resume.is_given)
        return STATUS_OK;
    TRY(page_resume_check(page));
    if (!page->is_ordered) {
        page->feed.resume = &page->resume.point;
        return STATUS_OK;
    }
    const OrderBy *order = page->readings[0].order;
    OrderKey key = page_resume_key(page, order);
    OrderKey before;
    if (page->has_from && order_position_read(page->from.place, &before) &&
        order_compare(order, &key, &before) <= 0)
        return STATUS_OK;
    Slice position = order_position(page->arena, &key);
    for (size_t i = 0; i < page->reading_count; i++) {
        page->readings[i].position = position;
        page->readings[i].is_at_place = false;
    }
    return STATUS_OK;
}

/* Where results go on that have places. */
static void begin_gathered(Page *page)
{
    page->feed.has_places = true;
    page->feed.is_resumed = page->has_from;
    page->feed.place = page->from.place;
    page->feed.place_rows = page->from.rows;
}

/* Results that were returned before are skipped as those of OFFSET are. */
static void begin_whole(Page *page)
{
    uint64_t rows = page->from.rows;
    uint64_t skip = page->feed.skip_left + rows;
    page->feed.skip_left = skip < rows ? UINT64_MAX : skip;
    page->feed.take_left -= page->feed.take_left < rows ? page->feed.take_left : rows;
}

static Status begin(Page *page)
{
    const Select *select = page->query->select;
    size_t count = page->options->target_count;
    page->readings = ARENA_NEW_ARRAY(page->arena, Reading, count);
    page->work = ARENA_NEW_ARRAY(page->arena, QueryTargetWork, count == 0 ? 1 : count);
    page->out->work = page->work;
    page->feed.skip_left = select->offset.value;
    page->feed.take_left = select_take_max(select);
    TRY(read_position(page));
    TRY(page_resume_read(page, &page->resume));
    TRY(find_order(page));
    page->way = choose_way(page);
    page->is_streaming = page->way == PAGE_STREAMS;
    page->is_before = page->has_from && page->way == PAGE_REMEMBERS;
    page->needs_system =
        plan_needs_system(page->query) || (select->order_by != NULL && !page->is_ordered);
    TRY(check_position(page));
    TRY(resume(page));
    if (page->way == PAGE_GATHERS)
        begin_gathered(page);
    if (page->way == PAGE_REPEATS) {
        begin_whole(page);
    } else if (page->has_from) {
        page->feed.skip_left = page->from.skip;
        page->feed.take_left = page->from.take;
    }
    uint64_t rows = page->options->items_max;
    rows = page->feed.take_left < rows ? page->feed.take_left : rows;
    page->rows_wanted = (double)rows + (double)page->feed.skip_left;
    return STATUS_OK;
}

/* ---- and the end ---- */

/* Of the document at the place where the page ends: how many rows were returned. */
static uint64_t rows_at(const Page *page, Slice place)
{
    if (!page->is_paused)
        return page->feed.document_rows;
    if (!page->is_paused_between || slice_equal(place, page->last))
        return PAGE_ROWS_ALL;
    return page->has_from && slice_equal(place, page->from.place) ? page->from.rows : 0;
}

/* Bounds of the whole range come with the request for the next page, and may be long. */
static void write_bounds(const Page *page, PagePosition *position)
{
    const QueryTarget *targets = page->options->targets;
    Slice begin = targets[0].epk_from;
    Slice end = targets[page->options->target_count - 1].epk_to;
    if (slice_compare(page->group_from, begin) > 0)
        position->epk_from = page->group_from;
    if (slice_compare(page->group_to, end) < 0)
        position->epk_to = page->group_to;
}

/* Of a page that can end between documents. */
static void write_place(Page *page, PagePosition *position)
{
    if (page->is_at_last) {
        position->mode = page->last_mode;
        position->place = page->last;
        position->rows = PAGE_ROWS_ALL;
        page->group_from = page->last_from;
        page->group_to = page->last_to;
        return;
    }
    position->mode = page->current->mode;
    position->place = reading_position(page->current, page->arena);
    position->rows = rows_at(page, position->place);
}

static void write_position(Page *page)
{
    PagePosition position = {.skip = page->feed.skip_left, .take = page->feed.take_left};
    switch (page->way) {
    case PAGE_STREAMS:
    case PAGE_REMEMBERS:
        write_place(page, &position);
        if (!page->is_ordered)
            write_bounds(page, &position);
        break;
    case PAGE_GATHERS:
        position.mode = PAGE_GATHERED;
        position.place = page->feed.place;
        position.rows = page->feed.place_rows;
        break;
    case PAGE_REPEATS:
        position.mode = PAGE_WHOLE;
        position.place = whole_place(page);
        position.rows = page->from.rows + page->feed.rows_before + page->out->count;
        break;
    }
    page->out->position = page_position_print(page->arena, &position);
}

/* Whether every result that has come is right although not all documents were read; and whether the
 * next page, which remembers them, has a chance to come further. */
static bool is_right_so_far(const Page *page)
{
    return page->is_streaming || (page->way == PAGE_REMEMBERS && page->out->count > 0);
}

/* Whether there was too little time, or too small a budget, so that with more of them the page
 * would be another one, or cost something else. */
static bool is_hurried(const Page *page)
{
    bool is_cut = page->is_paused || page->feed.is_full;
    return (is_cut && page->out->count < page->options->items_max) ||
           (page->is_paused && !page->is_looked_out) || page->budget.was_short;
}

static Status finish(Page *page)
{
    if (page->options->is_brief && is_hurried(page))
        return give_up(page);
    if (page->is_paused && !is_right_so_far(page))
        return error_set(page->err, STATUS_BAD_REQUEST, SUB_NONE,
                         "The query takes longer than a page may, and cannot be continued: it "
                         "groups, sorts or compares all documents. Narrow it.");
    page->out->is_done = page->feed.take_left == 0 || (!page->feed.is_full && !page->is_paused);
    if (!page->out->is_done)
        write_position(page);
    return STATUS_OK;
}

static Status run_page(Page *page)
{
    const Select *select = page->query->select;
    TRY(begin(page));
    page->looks_left = LOOKS_BEHIND;
    page->feed.is_ordered = page->is_ordered;
    page->feed.next = feed_next;
    page->feed.groups = select->is_grouped || select->distinct ? feed_groups : NULL;
    page->feed.again = feed_again;
    page->feed.rows_max = page->options->items_max;
    page->run->feed = &page->feed;
    TRY(select_run(page->run, select, SELECT_OUTERMOST, page->arena, take_result, page));
    return finish(page);
}

static uint64_t index_deadline_us(const QueryPageOptions *options, uint64_t begun_us,
                                  uint64_t left_us)
{
    if (options->deadline_us == 0 || options->is_brief)
        return options->deadline_us;
    return begun_us + (left_us / 2 > INDEX_US_MIN ? left_us / 2 : INDEX_US_MIN);
}

static void add_up(const Page *page)
{
    QueryMetrics *m = &page->out->metrics;
    if (page->is_looking)
        memcpy(page->work, page->work_before, page->options->target_count * sizeof(*page->work));
    for (size_t i = 0; i < page->options->target_count; i++) {
        const QueryTargetWork *work = &page->work[i];
        m->partitions += work->is_visited;
        m->documents_read += work->documents_read;
        m->document_bytes_read += work->document_bytes_read;
        m->index_keys_read += work->index_keys_read;
    }
}

Status query_page(const Query *query, const QueryPageOptions *options, Arena *arena, Buf *text,
                  QueryPage *out, Error *err)
{
    TRY(query_check_available(query, err));
    ASSERT(options->items_max > 0);
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
    };
    AUTO(run_done) Run run;
    run_init(&run, run_options, arena, err);
    /* One more than the query has, for the tests of filters. */
    run.slots = ARENA_NEW_ARRAY(arena, Value, query->slot_count + 1);
    Page page = {
        .options = options,
        .query = query,
        .run = &run,
        .arena = arena,
        .err = err,
        .out = out,
        .budget = {.keys_left = options->index_keys_max == 0 ? QUERY_INDEX_KEYS_MAX
                                                             : options->index_keys_max,
                   .bytes_left = PAGE_SETS_BYTES_MAX,
                   .clock = options->clock},
        .index_deadline_us = index_deadline_us(options, begun_us, left_us),
        .text = text,
        .text_before = text->len,
    };
    arena_init(&page.last_arena, PLACE_BLOCK_BYTES);
    Status status = run_page(&page);
    page_end_readings(&page);
    ahead_close(page.ahead);
    arena_done(&page.last_arena);
    TRY(status);
    out->is_ordered = query->select->order_by != NULL;
    add_up(&page);
    out->metrics.results = out->count;
    out->metrics.result_bytes = text->len - page.text_before;
    out->metrics.total_us = clock_monotonic_us(options->clock) - begun_us;
    if (options->wants_explain)
        out->explain = explain_all(&page);
    return STATUS_OK;
}
