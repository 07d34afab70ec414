/* source.c - see source_int.h. */
#include "query/source_int.h"

#include "base/mem.h"

#include <stdlib.h>

enum { LOOKS_PER_CLOCK = 64 };

typedef enum WalkPhase { PHASE_MISSING, PHASE_VALUES, PHASE_OVER } WalkPhase;

struct DocumentSource {
    Planner *planner;
    SourceOptions options;
    uint64_t number; /* of the item that came last */

    /* SOURCE_SET, and a value of SOURCE_WALK. */
    SetWalk numbers;
    NumberSet walked; /* what 'numbers' walks over */

    PartitionScan *scan;
    ScanBudget scan_budget;

    uint64_t looks; /* at items that may be gone */
    bool is_paused;

    /* SOURCE_WALK. */
    IndexWalk *walk;
    WalkPhase phases[3];
    size_t phase;
    Arena value_arena; /* what belongs to the value at hand */
    Slice value;
    bool has_value;
    OrderKey resume;
    bool is_resuming;

    /* SOURCE_SORT, and a value of SOURCE_WALK that was cut. */
    OrderKey *sorted;
    size_t sorted_count;
    size_t sorted_at;
    bool is_sorted;
    OrderKey key; /* of the item that came last */
};

static Status bad_position(Planner *planner)
{
    return error_set(planner->err, STATUS_BAD_REQUEST, SUB_NONE,
                     "Invalid continuation token: it does not belong to this query.");
}

/* ---- by number ---- */

static Status open_set(DocumentSource *source)
{
    Slice position = source->options.position;
    if (position.len != 0 && position.len != sizeof(uint64_t))
        return bad_position(source->planner);
    uint64_t from = position.len == 0 ? 0 : be64_get(position.ptr);
    source->walked = source->options.set;
    source->numbers = set_walk_up(&source->walked, from);
    return STATUS_OK;
}

static Status fetch(DocumentSource *source, uint64_t number, Item *item, bool *found)
{
    source->number = number;
    return partition_view_fetch(source->planner->view, number, source->options.epk_from,
                                source->options.epk_to, item, found, source->planner->err);
}

static bool is_late(DocumentSource *source)
{
    const SourceOptions *o = &source->options;
    return o->deadline_us != 0 && ++source->looks % LOOKS_PER_CLOCK == 0 &&
           clock_monotonic_us(o->clock) >= o->deadline_us;
}

static Status next_in_set(DocumentSource *source, Item *item, bool *found)
{
    uint64_t number = 0;
    *found = false;
    while (!*found && !source->is_paused && set_walk_next(&source->numbers, &number)) {
        TRY(fetch(source, number, item, found));
        source->is_paused = !*found && is_late(source);
    }
    return STATUS_OK;
}

/* ---- scans ---- */

static Status open_scan(DocumentSource *source)
{
    ScanOptions options = {
        .order = source->options.scan_order,
        .epk_from = source->options.epk_from,
        .epk_to = source->options.epk_to,
        .at = source->options.position,
        .budget = &source->scan_budget,
    };
    source->scan_budget =
        (ScanBudget){.entries = UINT64_MAX, .deadline_us = source->options.deadline_us};
    return partition_view_scan(source->planner->view, &options, &source->scan,
                               source->planner->err);
}

/* ---- sorting ---- */

static int compare_up(const void *a, const void *b)
{
    return order_compare(a, b, false);
}

static int compare_down(const void *a, const void *b)
{
    return order_compare(a, b, true);
}

/* Fetches every item of the set and sorts them; the keys are in 'arena'. */
static Status sort_set(DocumentSource *source, const NumberSet *set, Arena *arena)
{
    Planner *planner = source->planner;
    Run *run = planner->run;
    const OrderBy *order = source->options.order;
    source->sorted = arena_alloc(arena, (set->count + 1) * sizeof(OrderKey));
    source->sorted_count = 0;
    source->sorted_at = 0;
    source->is_sorted = true;
    Arena *before = run->scratch;
    run->scratch = &run->rows;
    SetWalk walk = set_walk_up(set, 0);
    uint64_t number = 0;
    while (set_walk_next(&walk, &number)) {
        Item item;
        bool found = false;
        TRY(fetch(source, number, &item, &found));
        if (!found)
            continue;
        TRY(plan_bind(planner, &item, &run->rows));
        TRY(order_key(planner, order, arena, number, &source->sorted[source->sorted_count++]));
        TRY(run_reserve(run, arena_used(arena)));
        arena_reset(&run->rows);
    }
    run->scratch = before;
    if (source->sorted_count > 0)
        qsort(source->sorted, source->sorted_count, sizeof(OrderKey),
              order->is_down ? compare_down : compare_up);
    while (source->is_resuming && source->sorted_at < source->sorted_count &&
           order_compare(&source->sorted[source->sorted_at], &source->resume, order->is_down) < 0)
        source->sorted_at++;
    return STATUS_OK;
}

static Status next_sorted(DocumentSource *source, Item *item, bool *found)
{
    *found = false;
    while (!*found && source->sorted_at < source->sorted_count) {
        source->key = source->sorted[source->sorted_at++];
        TRY(fetch(source, source->key.number, item, found));
    }
    return STATUS_OK;
}

/* ---- along values ---- */

/* How much of a value there is up to and with the first string that was cut; all, if none was. */
static size_t head_len(const OrderBy *order, Slice value)
{
    const uint8_t *begin = (const uint8_t *)value.ptr;
    const uint8_t *at = begin;
    const uint8_t *end = begin + value.len;
    for (size_t i = 0; i < order->count && at < end; i++) {
        uint8_t mask = order->inverted[i] ? 0xFF : 0;
        uint8_t tag = *at++ ^ mask;
        if (tag == TERM_NUMBER)
            at += end - at < 8 ? end - at : 8;
        if (tag != TERM_STRING)
            continue;
        /* Inside a string a zero byte is followed by 0xFF. */
        while (end - at >= 2 && !((at[0] ^ mask) == 0 && (at[1] ^ mask) != 0xFF))
            at += (at[0] ^ mask) == 0 ? 2 : 1;
        bool is_cut = end - at >= 2 && (at[1] ^ mask) == 0x02;
        at += end - at < 2 ? end - at : 2;
        if (is_cut)
            return (size_t)(at - begin);
    }
    return value.len;
}

static bool is_cut(const OrderBy *order, Slice head)
{
    const uint8_t *end = (const uint8_t *)head.ptr + head.len;
    for (size_t i = 0; i < order->count && head.len >= 3; i++) {
        uint8_t mask = order->inverted[i] ? 0xFF : 0;
        if ((end[-2] ^ mask) == 0 && (end[-1] ^ mask) == 0x02)
            return true;
    }
    return false;
}

static void plan_phases(DocumentSource *source)
{
    const OrderBy *order = source->options.order;
    size_t count = 0;
    bool has_missing = !source->options.has_range && !order->is_composite;
    if (has_missing && !order->is_down)
        source->phases[count++] = PHASE_MISSING;
    source->phases[count++] = PHASE_VALUES;
    if (has_missing && order->is_down)
        source->phases[count++] = PHASE_MISSING;
    if (count < ARRAY_COUNT(source->phases))
        source->phases[count] = PHASE_OVER;
}

static Slice missing_term(void)
{
    static const char tag[] = {TERM_UNDEFINED};
    return slice_make(tag, sizeof(tag));
}

/* What lies wholly before the position is not looked at again. */
static void skip_phases(DocumentSource *source)
{
    bool is_missing = slice_equal(source->resume.term, missing_term());
    WalkPhase phase = is_missing ? PHASE_MISSING : PHASE_VALUES;
    while (source->phase < ARRAY_COUNT(source->phases) && source->phases[source->phase] != phase &&
           source->phases[source->phase] != PHASE_OVER)
        source->phase++;
}

static Status open_walk(DocumentSource *source)
{
    plan_phases(source);
    if (source->options.position.len == 0)
        return STATUS_OK;
    if (!order_position_read(source->options.position, &source->resume))
        return bad_position(source->planner);
    source->is_resuming = true;
    if (!source->options.order->is_composite)
        skip_phases(source);
    return STATUS_OK;
}

static Status keep_wanted(DocumentSource *source, NumberSet *items)
{
    if (!source->options.has_set)
        return STATUS_OK;
    NumberSet both;
    set_and(&source->value_arena, items, &source->options.set, &both);
    *items = both;
    return STATUS_OK;
}

/* Stands before the items of one value. */
static Status enter_value(DocumentSource *source, Slice value, const NumberSet *items)
{
    const OrderBy *order = source->options.order;
    source->value = arena_copy(&source->value_arena, value);
    source->has_value = true;
    source->is_sorted = false;
    bool is_resumed = source->is_resuming && slice_equal(value, source->resume.term);
    source->is_resuming = is_resumed;
    if (items->count > 1 && is_cut(order, value)) {
        TRY(sort_set(source, items, &source->value_arena));
        source->is_resuming = false;
        return STATUS_OK;
    }
    source->walked = *items;
    uint64_t from = order->is_down ? UINT64_MAX : 0;
    if (is_resumed)
        from = source->resume.number;
    source->is_resuming = false;
    source->numbers =
        order->is_down ? set_walk_down(&source->walked, from) : set_walk_up(&source->walked, from);
    return STATUS_OK;
}

static Status enter_missing(DocumentSource *source)
{
    Planner *planner = source->planner;
    const OrderBy *order = source->options.order;
    NumberSet all;
    NumberSet present = {0};
    NumberSet missing;
    bool complete = true;
    static const char tag[] = {TERM_PRESENT};
    TRY(plan_read_all(planner, &all));
    TRY(index_read_value(&planner->index, order->path, slice_make(tag, 1), planner->arena, &present,
                         &complete, planner->err));
    planner->is_out_of_budget = planner->is_out_of_budget || !complete;
    set_minus(planner->arena, &all, &present, &missing);
    TRY(keep_wanted(source, &missing));
    return enter_value(source, missing_term(), &missing);
}

/* Goes to the first value that begins with 'head', or comes next; down, to the last one. */
static void seek(DocumentSource *source, Slice head)
{
    AUTO(buf_done) Buf bytes;
    buf_init(&bytes, TERM_VALUE_BYTES_MAX + 4);
    buf_slice(&bytes, head);
    if (source->options.order->is_down && source->options.order->is_composite)
        buf_slice(&bytes, SLICE("\xFF\xFF")); /* no part begins like this */
    index_walk_seek(source->walk, buf_view(&bytes));
}

static Status open_values(DocumentSource *source)
{
    static const char first[] = {TERM_NULL};
    static const char end[] = {TERM_END};
    const OrderBy *order = source->options.order;
    IndexRange range = {
        .path = order->path, .from = source->options.from, .to = source->options.to};
    if (!source->options.has_range && !order->is_composite) {
        range.from = slice_make(first, 1);
        range.to = slice_make(end, 1);
    }
    TRY(index_walk_open(&source->planner->index, range, order->is_down, &source->walk,
                        source->planner->err));
    if (source->is_resuming)
        seek(source, source->resume.term);
    return STATUS_OK;
}

/* All values that begin like this one, which a cut string has mixed up, as one. */
static Status gather(DocumentSource *source, Slice head, NumberSet *items)
{
    for (;;) {
        Slice value;
        NumberSet more;
        NumberSet both;
        bool found = false;
        bool complete = true;
        TRY(index_walk_next(source->walk, &value, &more, &found, &complete, source->planner->err));
        if (!found) {
            source->planner->is_out_of_budget = source->planner->is_out_of_budget || !complete;
            return STATUS_OK;
        }
        if (!slice_starts_with(value, head)) {
            index_walk_seek(source->walk, arena_copy(&source->value_arena, value));
            return STATUS_OK;
        }
        set_or(&source->value_arena, items, &more, &both);
        *items = both;
    }
}

static Status next_value(DocumentSource *source, bool *found)
{
    const OrderBy *order = source->options.order;
    if (source->walk == NULL)
        TRY(open_values(source));
    for (;;) {
        Slice value;
        NumberSet items;
        bool complete = true;
        TRY(index_walk_next(source->walk, &value, &items, found, &complete, source->planner->err));
        if (!*found) {
            source->planner->is_out_of_budget = source->planner->is_out_of_budget || !complete;
            return STATUS_OK;
        }
        arena_reset(&source->value_arena);
        Slice head = slice_first(value, head_len(order, value));
        if (head.len < value.len) {
            NumberSet kept;
            NumberSet none = {0};
            head = arena_copy(&source->value_arena, head);
            set_or(&source->value_arena, &items, &none, &kept); /* lives beyond the next step */
            items = kept;
            TRY(gather(source, head, &items));
        }
        TRY(keep_wanted(source, &items));
        if (items.count > 0)
            return enter_value(source, head, &items);
    }
}

static Status next_in_value(DocumentSource *source, Item *item, bool *found)
{
    *found = false;
    if (!source->has_value)
        return STATUS_OK;
    if (source->is_sorted)
        return next_sorted(source, item, found);
    TRY(next_in_set(source, item, found));
    source->key = (OrderKey){.term = source->value, .number = source->number};
    return STATUS_OK;
}

static Status next_on_walk(DocumentSource *source, Item *item, bool *found)
{
    for (;;) {
        TRY(next_in_value(source, item, found));
        if (*found || source->is_paused)
            return STATUS_OK;
        bool entered = false;
        WalkPhase phase = source->phase < ARRAY_COUNT(source->phases)
                              ? source->phases[source->phase]
                              : PHASE_OVER;
        switch (phase) {
        case PHASE_MISSING:
            source->phase++;
            TRY(enter_missing(source));
            entered = true;
            break;
        case PHASE_VALUES:
            TRY(next_value(source, &entered));
            if (!entered) {
                source->phase++;
                source->has_value = false;
                entered = true;
            }
            break;
        case PHASE_OVER:
            break;
        }
        if (!entered)
            return STATUS_OK;
    }
}

static Status open_sort(DocumentSource *source)
{
    if (source->options.position.len > 0) {
        if (!order_position_read(source->options.position, &source->resume))
            return bad_position(source->planner);
        source->is_resuming = true;
    }
    return sort_set(source, &source->options.set, source->planner->arena);
}

/* ---- all of them ---- */

Status source_open(Planner *planner, const SourceOptions *options, DocumentSource **out)
{
    DocumentSource *source = MEM_NEW(DocumentSource);
    source->planner = planner;
    source->options = *options;
    arena_init(&source->value_arena, 4096);
    *out = source; /* closed by the caller also if it fails */
    switch (options->kind) {
    case SOURCE_SET:
        return open_set(source);
    case SOURCE_SCAN:
        return open_scan(source);
    case SOURCE_WALK:
        return open_walk(source);
    case SOURCE_SORT:
        return open_sort(source);
    }
    return STATUS_OK;
}

Status source_next(DocumentSource *source, Item *item, bool *found)
{
    switch (source->options.kind) {
    case SOURCE_SET:
        return next_in_set(source, item, found);
    case SOURCE_SCAN:
        return partition_scan_next(source->scan, item, found, source->planner->err);
    case SOURCE_WALK:
        return next_on_walk(source, item, found);
    case SOURCE_SORT:
        return next_sorted(source, item, found);
    }
    return STATUS_OK;
}

bool source_is_paused(const DocumentSource *source)
{
    return source->is_paused || (source->scan != NULL && partition_scan_paused(source->scan));
}

Slice source_position(DocumentSource *source, Arena *arena)
{
    char number[sizeof(uint64_t)];
    switch (source->options.kind) {
    case SOURCE_SET:
        be64_put(number, source->number);
        return arena_copy(arena, slice_make(number, sizeof(number)));
    case SOURCE_SCAN:
        return arena_copy(arena, partition_scan_position(source->scan));
    case SOURCE_WALK:
    case SOURCE_SORT:
        break;
    }
    return order_position(arena, &source->key);
}

void source_close(DocumentSource *source)
{
    if (source == NULL)
        return;
    partition_scan_close(source->scan);
    index_walk_close(source->walk);
    arena_done(&source->value_arena);
    mem_free(source);
}
