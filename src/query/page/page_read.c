/* page_read.c - the documents of a page, over all of its targets: see page_reader_int.h. */
#include "query/page/call_batch_int.h"
#include "query/page/read_ahead_int.h"
#include "query/page/remote_reading_int.h"

enum {
    CLOCK_DOCUMENTS = 16, /* between two looks at the clock */
    PEEKS_MAX = 64,       /* documents that are looked at for a row after a full page */
};

/* ---- one reading ---- */

/* Of a reading that has its documents: sees whether they must be read in slices instead, with
 * helpers. That is the last target, if all of it must be scanned. */
static bool slice_up(PageReader *reader, const Reading *reading)
{
    const PageRequest *request = reader->context.request;
    bool is_all = reader->target == request->options->target_count && reader->reading_count == 1 &&
                  reading->position.len == 0 && !page_reader_is_full(reader);
    if (reader->ahead == NULL && is_all && reading->mode == PAGE_EPK &&
        read_ahead_is_possible(request))
        reader->ahead = read_ahead_open_slices(reader, reading);
    reader->is_sliced = reader->ahead != NULL;
    return reader->is_sliced;
}

static Status open_local(PageReader *reader, Reading *reading)
{
    page_work_visit(reader->work, reading->target_index);
    TRY(page_plan(&reader->context, reading));
    reading_set_state(reading, slice_up(reader, reading) ? READING_OVER : READING_EMPTY);
    return STATUS_OK;
}

static Status next_local(PageReader *reader, Reading *reading)
{
    bool found = false;
    TRY(source_next(reading->source, &reading->item, &found));
    if (LIKELY(found))
        reading_set_state(reading, READING_READY);
    else
        reading_set_state(reading,
                          source_is_paused(reading->source) ? READING_PAUSED : READING_OVER);
    if (reader->reading_count > 1 && reading->state != READING_OVER)
        reading->key = source_key(reading->source);
    return STATUS_OK;
}

static bool was_fetched_local(const Reading *reading)
{
    return source_was_fetched(reading->source);
}

static Slice position_local(const Reading *reading, Arena *arena, bool *is_passed)
{
    *is_passed = false;
    return source_position(reading->source, arena);
}

static void close_local(PageReader *reader, Reading *reading)
{
    page_work_add_keys(reader->work, reading->target_index, reading->planner.index.keys_read);
    page_notes_indexes(reader->context.notes, reading);
}

const ReadingCalls READING_LOCAL_CALLS = {
    .open = open_local,
    .next = next_local,
    .was_fetched = was_fetched_local,
    .position = position_local,
    .close = close_local,
};

static const ReadingCalls *choose_calls(const PageRequest *request, const QueryTarget *target)
{
    if (UNLIKELY(target->view == NULL))
        return &READING_REMOTE_CALLS;
    return page_request_calls(request) ? &CALL_BATCH_CALLS : &READING_LOCAL_CALLS;
}

void reading_begin(ReadContext *context, Reading *reading, const QueryTarget *target,
                   size_t target_index)
{
    const PageRequest *request = context->request;
    *reading = (Reading){
        .calls = choose_calls(request, target),
        .target = target,
        .target_index = target_index,
        .epk_from = target->epk_from,
        .epk_to = target->epk_to,
    };
    arena_init(&reading->memory, ARENA_SMALL_BYTES);
    reading->planner = (Planner){
        .arena = &reading->memory,
        .query = request->query,
        .run = context->run,
        .view = target->view,
        .schema = request->options->schema,
        .random = context->plan_random,
        .err = context->err,
    };
    if (LIKELY(target->view != NULL)) /* the other node plans */
        planner_begin(&reading->planner, &context->budget);
}

void reading_done(ReadContext *context, Reading *reading)
{
    source_close(reading->source);
    ASSERT(context->run->held >= reading->held);
    context->run->held -= reading->held;
    arena_done(&reading->memory);
}

static Status ask_where(ReadContext *context, Reading *reading, const Item *item, Value *answer)
{
    Run *run = context->run;
    arena_reset(&run->sources);
    arena_reset(&run->rows);
    run->scratch = &run->sources;
    TRY(plan_bind(&reading->planner, item, &run->sources));
    run->scratch = &run->rows;
    TRY(run_charge(run, 1));
    return eval(run, context->request->query->select->where, answer);
}

bool reading_passes(ReadContext *context, Reading *reading, const Item *item)
{
    Value answer;
    return ask_where(context, reading, item, &answer) != STATUS_OK ||
           (answer.type == JSON_BOOL && answer.boolean);
}

/* ---- the reader ---- */

void page_reader_init(PageReader *reader, ReadContext context, Arena *arena, const QueryPage *out,
                      PageWork *work)
{
    size_t target_count = context.request->options->target_count;
    *reader = (PageReader){
        .context = context,
        .arena = arena,
        .out = out,
        .work = work,
        .span = SPAN_REST,
        .readings = ARENA_NEW_ARRAY(arena, Reading, target_count),
        .peeks_left = PEEKS_MAX,
    };
    page_cursor_init(&reader->cursor);
}

void page_reader_done(PageReader *reader)
{
    page_reader_end_readings(reader);
    read_ahead_close(TAKE(reader->ahead));
    page_cursor_done(&reader->cursor);
}

static Reading *add_reading(PageReader *reader, size_t target)
{
    const QueryPageOptions *o = reader->context.request->options;
    ASSERT(reader->reading_count < o->target_count);
    Reading *reading = &reader->readings[reader->reading_count++];
    reading_begin(&reader->context, reading, &o->targets[target], target);
    return reading;
}

void page_reader_end_readings(PageReader *reader)
{
    for (size_t i = 0; i < reader->reading_count; i++) {
        Reading *reading = &reader->readings[i];
        reading->calls->close(reader, reading);
        reading_done(&reader->context, reading);
    }
    reader->reading_count = 0;
    reader->context.budget.bytes_left = PAGE_SETS_BYTES_MAX;
}

/* An order is the same in all targets, but its numbers may run down. Those of other nodes are read
 * as the ones here; without one here, rows are sorted. */
static bool share_order(PageReader *reader)
{
    const OrderBy *order = NULL;
    for (size_t i = 0; i < reader->reading_count && order == NULL; i++)
        order = reader->readings[i].order;
    for (size_t i = 0; i < reader->reading_count; i++) {
        Reading *reading = &reader->readings[i];
        if (reading->target->view == NULL)
            reading->order = order;
    }
    return order != NULL;
}

Status page_reader_begin_order(PageReader *reader, bool may_serve, bool *is_served)
{
    const PageRequest *request = reader->context.request;
    *is_served = may_serve;
    for (size_t i = 0; i < request->options->target_count; i++) {
        Reading *reading = add_reading(reader, i);
        if (LIKELY(reading->target->view != NULL)) {
            TRY(plan_order(&reading->planner, &reading->order));
            *is_served = *is_served && reading->order != NULL;
        }
        if (!page_is_range(reading->epk_from, reading->epk_to))
            reading_set_state(reading, READING_OVER);
        reading->position = request->from.place;
        reading->is_at_place = request->has_from;
    }
    if (request->has_remote)
        *is_served = share_order(reader) && *is_served;
    if (!*is_served)
        page_reader_end_readings(reader);
    return STATUS_OK;
}

void page_reader_begin_at(PageReader *reader, Slice position)
{
    for (size_t i = 0; i < reader->reading_count; i++) {
        ASSERT(reader->readings[i].source == NULL);
        reader->readings[i].position = position;
        reader->readings[i].is_at_place = false;
    }
}

void page_reader_begin(PageReader *reader)
{
    const PageRequest *request = reader->context.request;
    bool has_place = request->has_from && !request->is_ordered &&
                     (request->way == PAGE_STREAMS || request->way == PAGE_REMEMBERS);
    ASSERT(reader->phase == PAGE_FILLING);
    ASSERT(reader->cursor.current == NULL);
    reader->span = has_place ? SPAN_BEFORE : SPAN_REST;
    page_cursor_begin(&reader->cursor, request);
}

Reading *page_reader_begin_alone(PageReader *reader)
{
    ASSERT(reader->reading_count == 0);
    return add_reading(reader, reader->target);
}

void page_reader_end_alone(PageReader *reader, bool is_done)
{
    page_reader_end_readings(reader);
    if (is_done)
        page_work_visit(reader->work, reader->target++);
}

void page_reader_rewind(PageReader *reader)
{
    ASSERT(reader->cursor.current == NULL);
    reader->target = 0;
}

/* ---- which targets come next ---- */

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

PageMode page_mode_wanted(const PageRequest *request)
{
    return request->way == PAGE_REPEATS ? PAGE_EPK : PAGE_ANY;
}

Slice page_reader_stop(const PageReader *reader)
{
    return reader->span == SPAN_BEFORE ? reader->context.request->from.epk_from : SLICE_EMPTY;
}

static void enter_span(PageReader *reader, PageSpan span)
{
    ASSERT(span > reader->span);
    reader->span = span;
}

/* Begins with the targets that now serve the range in which the last page ended. */
static bool begin_at_place(PageReader *reader)
{
    const QueryPageOptions *o = reader->context.request->options;
    const PagePosition *from = &reader->context.request->from;
    for (size_t i = 0; i < o->target_count; i++) {
        Slice begin = later(o->targets[i].epk_from, from->epk_from);
        Slice end = page_earlier_end(o->targets[i].epk_to, from->epk_to);
        if (!page_is_range(begin, end))
            continue;
        Reading *reading = add_reading(reader, i);
        reading->epk_from = begin;
        reading->epk_to = end;
        reading->mode = from->mode;
        if (reader->cursor.is_before) /* from the start, since all before it must be remembered */
            continue;
        reading->position = from->place;
        reading->is_at_place = true;
    }
    page_cursor_enter(&reader->cursor, from->epk_from, from->epk_to);
    reader->done_to = from->epk_to;
    if (from->epk_to.len == 0)
        reader->target = o->target_count;
    return reader->reading_count > 0;
}

/* Of several targets one is not enough, so that helpers may look at the next ones. */
static bool begin_part(PageReader *reader)
{
    const PageRequest *request = reader->context.request;
    const QueryPageOptions *o = request->options;
    bool is_much = o->target_count - reader->target > 1 && !page_reader_is_full(reader);
    if (reader->ahead == NULL && is_much && !request->has_remote &&
        read_ahead_is_possible(request)) {
        reader->ahead = read_ahead_open_targets(reader);
        reader->target = o->target_count;
    }
    size_t target = 0;
    Slice from = SLICE_EMPTY;
    Slice to = SLICE_EMPTY;
    ReadAheadPart *part =
        reader->ahead == NULL ? NULL : read_ahead_next_part(reader->ahead, &target, &from, &to);
    if (part == NULL)
        return false;
    Reading *reading = add_reading(reader, target);
    reading->calls = &READ_AHEAD_CALLS;
    reading->part = part;
    reading->epk_from = from;
    reading->epk_to = to;
    if (!reader->is_sliced) /* slices come one after the other, in the range of their target */
        page_cursor_enter(&reader->cursor, from, to);
    page_work_visit(reader->work, target);
    return true;
}

static bool begin_target(PageReader *reader)
{
    const QueryPageOptions *o = reader->context.request->options;
    if (begin_part(reader))
        return true;
    while (reader->target < o->target_count) {
        size_t target = reader->target++;
        Slice begin = later(o->targets[target].epk_from, reader->done_to);
        Slice end = page_earlier_end(o->targets[target].epk_to, page_reader_stop(reader));
        if (!page_is_range(begin, end))
            continue;
        Reading *reading = add_reading(reader, target);
        reading->epk_from = begin;
        reading->epk_to = end;
        reading->mode = page_mode_wanted(reader->context.request);
        page_cursor_enter(&reader->cursor, begin, end);
        return true;
    }
    return false;
}

/* What is before the range in which the page before has ended, if it must be known. */
static bool begin_before(PageReader *reader)
{
    if (reader->cursor.is_before && page_reader_stop(reader).len > 0 && begin_target(reader))
        return true;
    reader->target = 0;
    read_ahead_close(TAKE(reader->ahead));
    reader->is_sliced = false;
    return false;
}

/* Begins what is read next; false if all was read. */
static bool begin_group(PageReader *reader)
{
    if (reader->context.request->is_ordered)
        return false; /* there is one, of all targets, and it was begun with the page */
    switch (reader->span) {
    case SPAN_BEFORE:
        if (begin_before(reader))
            return true;
        enter_span(reader, SPAN_PLACE);
        if (begin_at_place(reader))
            return true;
        enter_span(reader, SPAN_REST);
        break;
    case SPAN_PLACE:
        if (!reader->is_sliced)
            enter_span(reader, SPAN_REST);
        break;
    case SPAN_REST:
        break;
    }
    return begin_target(reader);
}

/* ---- documents ---- */

/* Reads the next document of each reading that has none. */
static Status fill_readings(PageReader *reader)
{
    for (size_t i = 0; i < reader->reading_count; i++) {
        Reading *reading = &reader->readings[i];
        if (reading->state == READING_NEW)
            TRY(reading->calls->open(reader, reading));
        if (reading->state == READING_EMPTY)
            TRY(reading->calls->next(reader, reading));
    }
    return STATUS_OK;
}

/* Which of two comes first. Readings by EPK are not compared: they come one after the other. */
static int compare_readings(const Reading *a, const Reading *b)
{
    if (a->sorted_by != NULL && b->sorted_by != NULL)
        return order_compare(a->sorted_by, &a->key, &b->key);
    return (a->key.number > b->key.number) - (a->key.number < b->key.number);
}

static Reading *find_first(PageReader *reader)
{
    Reading *first = NULL;
    for (size_t i = 0; i < reader->reading_count; i++) {
        Reading *reading = &reader->readings[i];
        if (reading->state == READING_OVER)
            continue;
        if (first == NULL || compare_readings(reading, first) < 0)
            first = reading;
    }
    return first;
}

static bool may_enter(PagePhase before, PagePhase after)
{
    switch (before) {
    case PAGE_FILLING:
        return after == PAGE_PEEKING || after == PAGE_STOPPED_AFTER ||
               after == PAGE_STOPPED_BETWEEN || after == PAGE_EXHAUSTED;
    case PAGE_PEEKING:
        return after == PAGE_PEEKED_FAR || after == PAGE_PEEKED_LATE || after == PAGE_EXHAUSTED;
    case PAGE_PEEKED_FAR:
    case PAGE_PEEKED_LATE:
    case PAGE_STOPPED_AFTER:
    case PAGE_STOPPED_BETWEEN:
    case PAGE_EXHAUSTED:
        break;
    }
    return false;
}

static void enter_phase(PageReader *reader, PagePhase phase)
{
    ASSERT(may_enter(reader->phase, phase));
    reader->phase = phase;
}

/* Keys of readings that have not ended are not in the work yet. */
void page_reader_peek(PageReader *reader)
{
    ASSERT(reader->cursor.has_item);
    enter_phase(reader, PAGE_PEEKING);
    page_work_freeze(reader->work, reader->arena);
    for (size_t i = 0; i < reader->reading_count; i++) {
        const Reading *reading = &reader->readings[i];
        uint64_t keys = call_batch_keys(reading);
        if (reading->part != NULL && !reader->is_sliced)
            keys = read_ahead_part_keys(reading->part);
        if (reading->remote != NULL)
            keys = remote_reading_keys(reading->remote);
        page_work_add_frozen_keys(reader->work, reading->target_index, keys);
    }
    page_cursor_mark_last(&reader->cursor);
}

void page_reader_pass(PageReader *reader, size_t target, uint64_t documents, uint64_t bytes)
{
    reader->looked += documents;
    if (reader->phase == PAGE_PEEKING) {
        ASSERT(documents <= reader->peeks_left);
        reader->peeks_left -= (uint32_t)documents;
    }
    page_work_add_documents(reader->work, target, documents, bytes);
}

/* Whether time is over at the document at hand. */
static bool is_late(PageReader *reader)
{
    /* Several documents may take long, and the run has looked at the clock on its way. But a page
     * that has only passed over the document at which it begins would come no further (I9). */
    const PageRequest *request = reader->context.request;
    uint64_t deadline_us = request->options->deadline_us;
    if (deadline_us != 0 && reader->cursor.is_further &&
        reader->context.run->looked_us >= deadline_us)
        return true;
    if (reader->looked < CLOCK_DOCUMENTS)
        return false;
    reader->looked = 0;
    return page_request_is_late(request);
}

/* Whether the page ends after the document at hand. */
static bool stops(PageReader *reader)
{
    bool is_peeking = reader->phase == PAGE_PEEKING;
    if (is_peeking && reader->peeks_left == 0) {
        enter_phase(reader, PAGE_PEEKED_FAR);
        return true;
    }
    reader->peeks_left -= is_peeking;
    if (!is_late(reader))
        return false;
    enter_phase(reader, is_peeking ? PAGE_PEEKED_LATE : PAGE_STOPPED_AFTER);
    return true;
}

/* The page has stopped where a reading has. */
static void stop_between(PageReader *reader, ReadingState state)
{
    if (reader->phase == PAGE_PEEKING)
        enter_phase(reader, state == READING_FAR ? PAGE_PEEKED_FAR : PAGE_PEEKED_LATE);
    else
        enter_phase(reader, PAGE_STOPPED_BETWEEN);
}

/* Helpers and other nodes may pause after a document that has no result, and a batch after its last
 * one. */
static bool is_passed(const PageReader *reader, const Reading *reading)
{
    bool passed = false;
    if (reading->part != NULL || reading->batch != NULL || reading->remote != NULL)
        (void)reading->calls->position(reading, &reader->context.run->sources, &passed);
    return passed;
}

/* One reading may pause at the very place of a document that another one has; and where helpers or
 * another node have paused, only the cursor can tell. */
static bool must_mark(const PageReader *reader, const Reading *reading)
{
    bool has_own_end = reading->part != NULL || reading->remote != NULL;
    return reading->state == READING_READY ? reader->reading_count > 1 || has_own_end
                                           : is_passed(reader, reading);
}

static void take(PageReader *reader, Reading *reading, bool *found)
{
    *found = reading->state == READING_READY;
    page_cursor_move(&reader->cursor, reading);
    if (reader->phase == PAGE_FILLING && must_mark(reader, reading))
        page_cursor_mark_last(&reader->cursor);
    if (*found)
        reading_set_state(reading, READING_EMPTY);
    else
        stop_between(reader, reading->state);
}

/* Whether the document after a full page is not looked at: a function that it calls may fail, and
 * that is the next page's affair. */
static bool must_not_peek(const PageReader *reader)
{
    return reader->phase == PAGE_PEEKING && page_request_calls(reader->context.request);
}

Status page_reader_next(PageReader *reader, bool *found)
{
    *found = false;
    if (reader->phase != PAGE_FILLING && reader->phase != PAGE_PEEKING)
        return STATUS_OK;
    if (reader->cursor.has_item && stops(reader))
        return STATUS_OK;
    while (reader->reading_count > 0 || begin_group(reader)) {
        TRY(fill_readings(reader));
        Reading *first = find_first(reader);
        if (first != NULL) {
            take(reader, first, found);
            reader->looked += *found;
            if (*found && must_not_peek(reader)) {
                enter_phase(reader, PAGE_PEEKED_FAR);
                *found = false;
            }
            return STATUS_OK;
        }
        reader->done_to = later(reader->done_to, reader->cursor.epk_to);
        page_reader_end_readings(reader);
    }
    page_cursor_leave(&reader->cursor);
    enter_phase(reader, PAGE_EXHAUSTED);
    return STATUS_OK;
}
