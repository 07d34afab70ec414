/* page_cursor.c - where a page stands among the documents, and what of them was returned before. */
#include "query/page/page_reader_int.h"

enum { PLACE_BLOCK_BYTES = 1024 };

void page_cursor_init(PageCursor *cursor)
{
    *cursor = (PageCursor){0};
    arena_init(&cursor->last.memory, PLACE_BLOCK_BYTES);
}

void page_cursor_begin(PageCursor *cursor, const PageRequest *request)
{
    ASSERT(cursor->current == NULL);
    cursor->is_before = request->has_from && request->way == PAGE_REMEMBERS;
}

void page_cursor_done(PageCursor *cursor)
{
    arena_done(&cursor->last.memory);
}

void page_cursor_enter(PageCursor *cursor, Slice epk_from, Slice epk_to)
{
    cursor->epk_from = epk_from;
    cursor->epk_to = epk_to;
}

void page_cursor_leave(PageCursor *cursor)
{
    cursor->has_item = false;
}

static Slice position_of(const Reading *reading, Arena *arena)
{
    bool ignored = false;
    return reading->calls->position(reading, arena, &ignored);
}

void page_cursor_mark_last(PageCursor *cursor)
{
    PageMark *last = &cursor->last;
    arena_reset(&last->memory);
    last->place = position_of(cursor->current, &last->memory);
    last->mode = cursor->current->mode;
    last->epk_from = cursor->epk_from;
    last->epk_to = cursor->epk_to;
}

/* ---- what was returned before ---- */

/* Whether the document at hand is before the place of the request (< 0), at it, or after it. */
static int compare_to_place(const PageReader *reader)
{
    switch (reader->span) {
    case SPAN_BEFORE:
        return -1;
    case SPAN_PLACE:
        return slice_compare(position_of(reader->cursor.current, &reader->context.run->sources),
                             reader->context.request->from.place);
    case SPAN_REST:
        break;
    }
    return 1;
}

/* For a page that remembers: all rows of documents before the place were returned, and some rows of
 * the document at the place. */
static uint64_t count_remembered(PageReader *reader)
{
    int compared = compare_to_place(reader);
    reader->cursor.is_before = compared < 0;
    if (compared > 0)
        return 0;
    return compared < 0 ? PAGE_ROWS_ALL : reader->context.request->from.rows;
}

/* Of the document at the place where the page begins some rows were returned. If it is gone, all
 * rows of the next one are new. */
static bool is_at_place(PageReader *reader)
{
    Reading *reading = reader->cursor.current;
    if (!reading->is_at_place)
        return false;
    reading->is_at_place = false;
    return slice_equal(position_of(reading, &reader->context.run->sources),
                       reader->context.request->from.place);
}

uint64_t page_cursor_count_near_place(PageReader *reader)
{
    ASSERT(reader->cursor.has_item);
    uint64_t rows = reader->cursor.is_before ? count_remembered(reader) : 0;
    if (is_at_place(reader))
        rows = reader->context.request->from.rows;
    if (rows != PAGE_ROWS_ALL)
        reader->cursor.is_further = true;
    return rows;
}

/* ---- the position of the next page ---- */

/* Of the document at the place where the page ends: how many rows were returned. */
static uint64_t rows_at(const PageReader *reader, Slice place)
{
    const PageRequest *request = reader->context.request;
    if (!page_reader_has_stopped(reader))
        return reader->context.run->progress.document_rows;
    if (reader->phase != PAGE_STOPPED_BETWEEN || slice_equal(place, reader->cursor.last.place))
        return PAGE_ROWS_ALL;
    return request->has_from && slice_equal(place, request->from.place) ? request->from.rows : 0;
}

/* Bounds of the whole range come with the request for the next page, and may be long. */
static void write_bounds(const PageRequest *request, Slice from, Slice to, PagePosition *out)
{
    const QueryTarget *targets = request->options->targets;
    if (slice_compare(from, targets[0].epk_from) > 0)
        out->epk_from = from;
    if (slice_compare(to, targets[request->options->target_count - 1].epk_to) < 0)
        out->epk_to = to;
}

void page_cursor_write(const PageReader *reader, Arena *arena, PagePosition *out)
{
    const PageCursor *cursor = &reader->cursor;
    const PageRequest *request = reader->context.request;
    ASSERT(cursor->current != NULL);
    ASSERT(reader->phase != PAGE_EXHAUSTED);
    Slice from = cursor->epk_from;
    Slice to = cursor->epk_to;
    if (page_reader_has_peeked(reader)) { /* how far it looked must not matter to the next page */
        out->mode = cursor->last.mode;
        out->place = cursor->last.place;
        out->rows = PAGE_ROWS_ALL;
        from = cursor->last.epk_from;
        to = cursor->last.epk_to;
    } else {
        out->mode = cursor->current->mode;
        out->place = position_of(cursor->current, arena);
        out->rows = rows_at(reader, out->place);
    }
    if (!request->is_ordered)
        write_bounds(request, from, to, out);
}
