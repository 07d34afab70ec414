/* page.c - see page.h: runs a query over the documents of its targets until the page is full. */
#include "query/page_int.h"

enum {
    CLOCK_DOCUMENTS = 16, /* between two looks at the clock */
    LOOKS_BEHIND = 64,    /* documents that are looked at for a row behind a full page */
};

#define INDEX_KEYS_MAX  ((uint64_t)20000000)
#define INDEX_BYTES_MAX ((size_t)64 << 20)

/* ---- positions ---- */

enum { POSITION_HEAD = 2 + 3 * 8 + 2 };

Slice page_position_print(Arena *arena, const PagePosition *position)
{
    size_t size = POSITION_HEAD + position->epk.len + position->place.len;
    char *bytes = arena_alloc(arena, size);
    bytes[0] = '1';
    bytes[1] = (char)position->mode;
    be64_put(bytes + 2, position->rows);
    be64_put(bytes + 10, position->skip);
    be64_put(bytes + 18, position->take);
    bytes[26] = (char)(position->epk.len >> 8);
    bytes[27] = (char)position->epk.len;
    if (position->epk.len > 0)
        memcpy(bytes + POSITION_HEAD, position->epk.ptr, position->epk.len);
    if (position->place.len > 0)
        memcpy(bytes + POSITION_HEAD + position->epk.len, position->place.ptr, position->place.len);
    return slice_make(bytes, size);
}

bool page_position_read(Slice text, PagePosition *out)
{
    if (text.len < POSITION_HEAD || text.ptr[0] != '1')
        return false;
    const uint8_t *bytes = (const uint8_t *)text.ptr;
    size_t epk_len = (size_t)bytes[26] << 8 | bytes[27];
    Slice behind = slice_from(text, POSITION_HEAD);
    if (epk_len > behind.len || epk_len > EPK_BYTES_MAX || strchr("NKVS", bytes[1]) == NULL)
        return false;
    *out = (PagePosition){
        .mode = (PageMode)bytes[1],
        .rows = be64_get(bytes + 2),
        .skip = be64_get(bytes + 10),
        .take = be64_get(bytes + 18),
        .epk = slice_first(behind, epk_len),
        .place = slice_from(behind, epk_len),
    };
    return bytes[1] != 0;
}

/* ---- documents ---- */

static void close_target(Page *page)
{
    if (page->is_planned) {
        page->out->metrics.index_keys_read += page->planner.index.keys_read;
        explain_indexes(page);
    }
    source_close(page->source);
    page->source = NULL;
    page->is_planned = false;
}

/* The target that a position is in: the first that does not end before it. */
static bool find_target(Page *page)
{
    const QueryPageOptions *o = page->options;
    Slice epk = page->from.epk;
    while (page->target < o->target_count) {
        Slice to = o->targets[page->target].epk_to;
        if (to.len == 0 || slice_compare(to, epk) > 0)
            return true;
        page->target++;
    }
    return false;
}

static bool must_pause(Page *page)
{
    const QueryPageOptions *o = page->options;
    uint64_t read = page->out->metrics.documents_read;
    if (page->out->count >= o->items_max && page->looks_left-- == 0)
        return true;
    return o->deadline_us != 0 && read > 0 && read % CLOCK_DOCUMENTS == 0 &&
           clock_monotonic_us(o->clock) >= o->deadline_us;
}

static Status open_target(Page *page)
{
    page->out->metrics.partitions++;
    TRY(page_plan(page));
    page->target_position = SLICE_EMPTY;
    return STATUS_OK;
}

static Status next_item(Page *page, bool *found)
{
    *found = false;
    while (page->target < page->options->target_count) {
        if (page->source == NULL)
            TRY(open_target(page));
        TRY(source_next(page->source, &page->item, found));
        if (*found)
            return STATUS_OK;
        if (source_is_paused(page->source)) {
            page->is_paused = true;
            page->is_paused_between = true;
            return STATUS_OK;
        }
        if (page->planner.is_out_of_budget)
            return error_set(page->err, STATUS_BAD_REQUEST, SUB_NONE,
                             "The query reads more of the index than one page may; narrow it.");
        close_target(page);
        page->target++;
        page->feed.rows_to_skip = 0;
    }
    return STATUS_OK;
}

static Status feed_next(Feed *feed, Run *run, bool *found)
{
    Page *page = CONTAINER_OF(feed, Page, feed);
    *found = false;
    if (page->is_paused)
        return STATUS_OK;
    if (page->has_item && must_pause(page)) {
        page->is_paused = true;
        return STATUS_OK;
    }
    if (page->has_item) {
        feed->rows_to_skip = 0;
        feed->document_rows = 0;
    }
    bool is_first = !page->has_item && page->out->metrics.documents_read == 0;
    TRY(next_item(page, found));
    page->has_item = *found;
    if (!*found)
        return STATUS_OK;
    /* If the document is gone of which rows were returned, all rows of the next one are new. */
    if (is_first && page->is_streaming && feed->rows_to_skip > 0 &&
        !slice_equal(source_position(page->source, &run->sources), page->from.place))
        feed->rows_to_skip = 0;
    page->out->metrics.documents_read++;
    page->out->metrics.document_bytes_read += page->item.bytes;
    Json document = page->item.document;
    if (page->planner.needs_system)
        document = item_document(&run->sources, page->options->schema, &page->item);
    run->slots[SLOT_DOCUMENT] = value_of(document, false);
    return STATUS_OK;
}

static Status feed_groups(Feed *feed, Execution *exec)
{
    Page *page = CONTAINER_OF(feed, Page, feed);
    while (page->target < page->options->target_count) {
        bool done = false;
        TRY(counted_groups(page, exec, &done));
        close_target(page);
        if (!done)
            return STATUS_OK; /* the rest is read: groups add up */
        page->out->metrics.partitions++;
        page->target++;
    }
    return STATUS_OK;
}

/* ---- results ---- */

static void print_row(Page *page, Run *run, const Value *row)
{
    bool is_item = page->has_item && row->json.at != NULL &&
                   row->json.at == page->item.document.at && row->type == JSON_OBJECT;
    if (is_item)
        item_print(page->options->schema, &page->item, page->text);
    else
        json_print(value_json(run->scratch, run->scratch, row), page->text);
}

static Status take_result(void *context, Run *run, const Value *row, bool *more UNUSED)
{
    Page *page = context;
    const QueryPageOptions *o = page->options;
    if (page->out->count >= o->items_max) {
        page->feed.is_full = true;
        return STATUS_OK;
    }
    size_t before = page->text->len;
    if (page->out->count > 0)
        buf_byte(page->text, ',');
    print_row(page, run, row);
    bool fits = page->text->len - page->text_before <= o->bytes_max && !buf_full(page->text);
    if (!fits && page->out->count > 0) {
        page->text->len = before;
        page->text->full = false;
        page->feed.is_full = true;
        return STATUS_OK;
    }
    page->out->count++;
    return run_charge_value(run, row);
}

/* ---- the page ---- */

static bool is_streaming(const Page *page)
{
    const Select *select = page->query->select;
    return select->over_container && select->sources->subquery == NULL && !select->is_grouped &&
           !select->distinct && (select->order_by == NULL || page->order != NULL);
}

static Status read_position(Page *page)
{
    const QueryPageOptions *o = page->options;
    page->feed.skip_left = page->query->select->offset.value;
    page->feed.take_left = select_take_max(page->query->select);
    if (o->position.len == 0)
        return STATUS_OK;
    bool is_good = page_position_read(o->position, &page->from) &&
                   (page->from.mode == PAGE_WHOLE) == !page->is_streaming;
    if (!is_good)
        return error_set(page->err, STATUS_BAD_REQUEST, SUB_NONE,
                         "Invalid continuation token: it does not belong to this query.");
    if (!page->is_streaming) { /* results that were returned are skipped as those of OFFSET are */
        uint64_t rows = page->from.rows;
        page->feed.skip_left += rows;
        page->feed.take_left -= page->feed.take_left < rows ? page->feed.take_left : rows;
        return STATUS_OK;
    }
    page->feed.rows_to_skip = page->from.rows;
    page->feed.skip_left = page->from.skip;
    page->feed.take_left = page->from.take;
    page->target_position = page->from.place;
    page->mode = page->from.mode;
    (void)find_target(page); /* none is left: then there is nothing more */
    return STATUS_OK;
}

/* ORDER BY by an index is for one partition; the rows of several are sorted. */
static Status find_order(Page *page)
{
    const QueryPageOptions *o = page->options;
    const Select *select = page->query->select;
    if (select->order_by == NULL || select->by_rank || !select->over_container ||
        o->target_count == 0)
        return STATUS_OK;
    planner_init(&page->planner, page->arena, page->query, page->run, o->targets[0].view, o->schema,
                 &page->budget, page->err);
    TRY(plan_order(&page->planner, &page->order));
    if (o->target_count > 1 || select->is_grouped || select->distinct)
        page->order = NULL;
    return STATUS_OK;
}

static void write_position(Page *page)
{
    const QueryPageOptions *o = page->options;
    PagePosition position = {
        .mode = page->is_streaming ? page->mode : PAGE_WHOLE,
        .rows = page->is_streaming ? page->feed.document_rows : page->from.rows + page->out->count,
        .skip = page->feed.skip_left,
        .take = page->feed.take_left,
    };
    if (page->is_streaming) {
        if (page->is_paused)
            position.rows = page->is_paused_between ? 0 : PAGE_ROWS_ALL;
        position.epk = o->targets[page->target].epk_from;
        position.place = source_position(page->source, page->arena);
    }
    page->out->position = page_position_print(page->arena, &position);
}

static Status finish(Page *page)
{
    if (page->is_paused && !page->is_streaming && page->out->count < page->options->items_max)
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
    TRY(find_order(page));
    page->is_streaming = is_streaming(page);
    page->feed.is_ordered = page->order != NULL;
    TRY(read_position(page));
    page->looks_left = page->is_streaming ? LOOKS_BEHIND : UINT32_MAX;
    page->feed.next = feed_next;
    page->feed.groups = page->query->select->is_grouped ? feed_groups : NULL;
    page->run->feed = &page->feed;
    TRY(select_run(page->run, page->query->select, SELECT_OUTERMOST, page->arena, take_result,
                   page));
    return finish(page);
}

Status query_page(const Query *query, const QueryPageOptions *options, Arena *arena, Buf *text,
                  QueryPage *out, Error *err)
{
    TRY(query_check_available(query, err));
    uint64_t begun_us = clock_monotonic_us(options->clock);
    *out = (QueryPage){0};
    QueryOptions run_options = {
        .steps_max = options->steps_max,
        .bytes_max = options->memory_max,
        .random = options->random,
        .clock = options->clock,
        .geo = options->geo,
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
        .budget = {.keys_left = INDEX_KEYS_MAX, .bytes_left = INDEX_BYTES_MAX},
        .text = text,
        .text_before = text->len,
    };
    Status status = run_page(&page);
    close_target(&page);
    TRY(status);
    out->metrics.results = out->count;
    out->metrics.result_bytes = text->len - page.text_before;
    out->metrics.total_us = clock_monotonic_us(options->clock) - begun_us;
    if (options->wants_explain)
        out->explain = explain_all(&page);
    return STATUS_OK;
}
