/* page_read.c - the documents of a page, over all of its targets: see page_int.h. */
#include "query/ahead_int.h"

/* ---- one reading ---- */

void reading_begin(Page *page, Reading *reading, size_t target)
{
    const QueryPageOptions *o = page->options;
    *reading = (Reading){
        .target = target,
        .epk_from = o->targets[target].epk_from,
        .epk_to = o->targets[target].epk_to,
    };
    arena_init(&reading->memory, ARENA_SMALL_BYTES);
    reading->planner = (Planner){
        .arena = &reading->memory,
        .query = page->query,
        .run = page->run,
        .view = o->targets[target].view,
        .schema = o->schema,
        .random = o->plan_random,
        .err = page->err,
    };
    planner_begin(&reading->planner, &page->budget);
}

void reading_end(Page *page, Reading *reading)
{
    if (reading->part != NULL)
        part_end(page, reading->part);
    page->work[reading->target].index_keys_read += reading->planner.index.keys_read;
    explain_indexes(page, reading);
    source_close(reading->source);
    page->run->held -= reading->held;
    arena_done(&reading->memory);
}

void page_add_documents(Page *page, size_t target, uint64_t documents, uint64_t bytes)
{
    page->documents += documents;
    page->document_bytes += bytes;
    page->work[target].documents_read += documents;
    page->work[target].document_bytes_read += bytes;
}

bool page_is_late(const Page *page)
{
    const QueryPageOptions *o = page->options;
    bool goes_on = page->is_streaming && o->pause_clock != NULL;
    const Clock *clock = goes_on ? o->pause_clock : o->clock;
    return o->deadline_us != 0 && clock_monotonic_us(clock) >= o->deadline_us;
}

bool page_is_full(const Page *page)
{
    return page->out->count >= page->options->items_max;
}

bool reading_was_fetched(const Reading *reading)
{
    return reading->part != NULL ? part_was_fetched(reading->part)
                                 : source_was_fetched(reading->source);
}

Slice reading_position(const Reading *reading, Arena *arena)
{
    bool is_passed = false;
    if (reading->part != NULL)
        return part_position(reading->part, arena, &is_passed);
    return source_position(reading->source, arena);
}

void page_end_readings(Page *page)
{
    for (size_t i = 0; i < page->reading_count; i++)
        reading_end(page, &page->readings[i]);
    page->reading_count = 0;
    page->budget.bytes_left = PAGE_SETS_BYTES_MAX;
}

/* ---- which come next ---- */

bool page_is_range(Slice from, Slice to)
{
    return to.len == 0 || slice_compare(from, to) < 0;
}

static Slice later(Slice a, Slice b)
{
    return slice_compare(a, b) > 0 ? a : b;
}

Slice page_earlier_end(Slice a, Slice b)
{
    if (a.len == 0 || b.len == 0)
        return a.len == 0 ? b : a;
    return slice_compare(a, b) < 0 ? a : b;
}

/* What serves the range by now in which the page before has ended. */
static bool begin_at_place(Page *page)
{
    const QueryPageOptions *o = page->options;
    const PagePosition *from = &page->from;
    for (size_t i = 0; i < o->target_count; i++) {
        Slice begin = later(o->targets[i].epk_from, from->epk_from);
        Slice end = page_earlier_end(o->targets[i].epk_to, from->epk_to);
        if (!page_is_range(begin, end))
            continue;
        Reading *reading = &page->readings[page->reading_count++];
        reading_begin(page, reading, i);
        reading->epk_from = begin;
        reading->epk_to = end;
        reading->mode = from->mode;
        if (page->is_before) /* from the start, for the sake of what it was */
            continue;
        reading->position = from->place;
        reading->is_at_place = true;
    }
    page->group_from = from->epk_from;
    page->group_to = from->epk_to;
    page->done_to = from->epk_to;
    if (from->epk_to.len == 0)
        page->target = o->target_count;
    return page->reading_count > 0;
}

PageMode page_mode_wanted(const Page *page)
{
    return page->way == PAGE_REPEATS ? PAGE_EPK : PAGE_ANY;
}

/* Of several targets one is not enough, so that others may look at the next ones. */
static bool begin_part(Page *page)
{
    const QueryPageOptions *o = page->options;
    bool is_much = o->target_count - page->target > 1 && !page_is_full(page);
    if (page->ahead == NULL && is_much && ahead_is_possible(page))
        page->ahead = ahead_open_targets(page);
    size_t target = 0;
    Slice from = SLICE_EMPTY;
    Slice to = SLICE_EMPTY;
    Part *part = page->ahead == NULL ? NULL : ahead_next_part(page->ahead, &target, &from, &to);
    if (part == NULL)
        return false;
    Reading *reading = &page->readings[page->reading_count++];
    reading_begin(page, reading, target);
    reading->part = part;
    reading->epk_from = from;
    reading->epk_to = to;
    if (!page->is_sliced) { /* of slices nobody needs to know: they come one after the other */
        page->group_from = from;
        page->group_to = to;
    }
    page->work[target].is_visited = true;
    return true;
}

static bool begin_target(Page *page)
{
    const QueryPageOptions *o = page->options;
    if (begin_part(page))
        return true;
    while (page->target < o->target_count) {
        size_t target = page->target++;
        Slice begin = later(o->targets[target].epk_from, page->done_to);
        Slice end = page_earlier_end(o->targets[target].epk_to, page->stop);
        if (!page_is_range(begin, end))
            continue;
        Reading *reading = &page->readings[page->reading_count++];
        reading_begin(page, reading, target);
        reading->epk_from = begin;
        reading->epk_to = end;
        reading->mode = page_mode_wanted(page);
        page->group_from = begin;
        page->group_to = reading->epk_to;
        return true;
    }
    return false;
}

/* What is in front of the range in which the page before has ended, if it must be known. */
static bool begin_before(Page *page)
{
    page->stop = page->from.epk_from;
    if (page->is_before && page->stop.len > 0 && begin_target(page))
        return true;
    page->stop = SLICE_EMPTY;
    page->target = 0;
    ahead_close(TAKE(page->ahead));
    page->is_sliced = false;
    return false;
}

static bool begin_group(Page *page)
{
    if (page->is_ordered)
        return false; /* there is one, of all targets, and it was begun with the page */
    bool has_place = page->way == PAGE_STREAMS || page->way == PAGE_REMEMBERS;
    if (!has_place || !page->has_from || page->is_place_read)
        return begin_target(page);
    if (begin_before(page))
        return true;
    page->is_place_read = true;
    return begin_at_place(page) || begin_target(page);
}

/* ---- items ---- */

/* The last target, if all of it must be scanned, is read in slices. */
static bool slice_up(Page *page, const Reading *reading)
{
    bool is_all = page->target == page->options->target_count && page->reading_count == 1 &&
                  reading->position.len == 0 && !page_is_full(page);
    if (page->ahead == NULL && is_all && reading->mode == PAGE_EPK && ahead_is_possible(page))
        page->ahead = ahead_open_slices(page, reading);
    page->is_sliced = page->ahead != NULL;
    return page->is_sliced;
}

static Status open_reading(Page *page, Reading *reading)
{
    page->work[reading->target].is_visited = true;
    TRY(page_plan(page, reading));
    reading->is_over = slice_up(page, reading);
    return STATUS_OK;
}

static Status read_part(Page *page, Reading *reading)
{
    TRY(part_next(page, reading, &reading->has_item, &reading->is_paused));
    reading->mode = part_mode(reading->part);
    reading->is_over = !reading->has_item && !reading->is_paused;
    return STATUS_OK;
}

/* Of each the item that comes next. */
static Status read_ahead(Page *page)
{
    for (size_t i = 0; i < page->reading_count; i++) {
        Reading *reading = &page->readings[i];
        if (reading->has_item || reading->is_over || reading->is_paused)
            continue;
        if (reading->part != NULL) {
            TRY(read_part(page, reading));
            continue;
        }
        if (reading->source == NULL)
            TRY(open_reading(page, reading));
        if (reading->is_over)
            continue;
        TRY(source_next(reading->source, &reading->item, &reading->has_item));
        reading->is_paused = !reading->has_item && source_is_paused(reading->source);
        reading->is_over = !reading->has_item && !reading->is_paused;
    }
    return STATUS_OK;
}

/* The one that is first; those by EPK come one after the other. */
static Reading *find_first(Page *page)
{
    Reading *first = NULL;
    for (size_t i = 0; i < page->reading_count; i++) {
        Reading *reading = &page->readings[i];
        if (reading->is_over)
            continue;
        if (first == NULL || source_compare(reading->source, first->source) < 0)
            first = reading;
    }
    return first;
}

/* One reading may pause at the very place of a document that another one has; and a part where
 * nobody else could tell. */
void page_note_last(Page *page)
{
    const Reading *reading = page->current;
    arena_reset(&page->last_arena);
    page->last = reading_position(reading, &page->last_arena);
    page->last_mode = reading->mode;
    page->last_from = page->group_from;
    page->last_to = page->group_to;
}

/* What was done so far; readings tell about the index when they end. */
void page_begin_looking(Page *page)
{
    size_t count = page->options->target_count;
    page->is_looking = true;
    page->work_before = ARENA_NEW_ARRAY(page->arena, QueryTargetWork, count);
    memcpy(page->work_before, page->work, count * sizeof(*page->work));
    for (size_t i = 0; i < page->reading_count; i++) {
        const Reading *reading = &page->readings[i];
        uint64_t keys = reading->planner.index.keys_read;
        if (reading->part != NULL && !page->is_sliced)
            keys = part_keys(reading->part);
        page->work_before[reading->target].index_keys_read += keys;
    }
    page_note_last(page);
}

/* A part may have paused behind a document that has no result. */
static bool is_behind(const Page *page)
{
    const Reading *reading = page->current;
    bool is_passed = false;
    if (reading->part != NULL && reading->is_paused)
        (void)part_position(reading->part, &page->run->sources, &is_passed);
    return is_passed;
}

Status page_next_item(Page *page, bool *found)
{
    *found = false;
    for (;;) {
        if (page->reading_count == 0 && !begin_group(page))
            return STATUS_OK;
        TRY(read_ahead(page));
        Reading *first = find_first(page);
        if (first == NULL) {
            page->done_to = later(page->done_to, page->group_to);
            page_end_readings(page);
            continue;
        }
        page->current = first;
        page->is_paused = first->is_paused;
        page->is_paused_between = first->is_paused;
        *found = first->has_item;
        first->has_item = false;
        bool is_needed = page->reading_count > 1 || first->part != NULL;
        if (!page->is_looking && ((*found && is_needed) || is_behind(page)))
            page_note_last(page);
        return STATUS_OK;
    }
}
