/* source_walk.c - documents along the values of a path: see document_source_int.h.
 *
 * Documents without a value come first, or last when walking down; a composite index has a term for
 * them, too. Where a string was cut, documents with the same term are sorted by what they hold; in
 * a composite index all terms that begin like that one are taken together, since the cut has mixed
 * up what follows it. So are those that begin alike for longer than a position can tell.
 */
#include "query/page/source_parts_int.h"

enum { ARENA_BYTES = 4096 };

/* What is left for the chunks of one value when the walk pauses: those of 268 million items. */
#define KEYS_RESERVE ((uint64_t)4096)

/* ---- cut strings ---- */

typedef struct Head {
    size_t len;  /* up to and with the first string that was cut, and ORDER_TERM_BYTES at most */
    bool is_cut; /* it stands for more than one value */
} Head;

/* The end of the string at 'at', after its mark; inside it a zero byte is followed by 0xFF. */
static const uint8_t *skip_string(const uint8_t *at, const uint8_t *end, uint8_t mask, bool *is_cut)
{
    while (end - at >= 2) {
        uint8_t byte = at[0] ^ mask;
        uint8_t mark = at[1] ^ mask;
        if (byte == 0 && mark != 0xFF) {
            *is_cut = mark == 0x02;
            return at + 2;
        }
        at += byte == 0 ? 2 : 1;
    }
    return end;
}

static Head head_of(const OrderBy *order, Slice value)
{
    const uint8_t *begin = (const uint8_t *)value.ptr;
    const uint8_t *end = begin + value.len;
    size_t tied = order->prefix.len < value.len ? order->prefix.len : value.len;
    const uint8_t *at = begin + tied;
    Head head = {.len = value.len};
    for (size_t i = 0; i < order->count && at < end && !head.is_cut; i++) {
        uint8_t mask = order->inverted[i] != order->is_down ? 0xFF : 0;
        uint8_t tag = *at++ ^ mask;
        if (tag == TERM_NUMBER)
            at += end - at < 8 ? end - at : 8;
        if (tag == TERM_STRING)
            at = skip_string(at, end, mask, &head.is_cut);
    }
    if (head.is_cut)
        head.len = (size_t)(at - begin);
    if (head.len > tied + ORDER_TERM_BYTES)
        head = (Head){.len = tied + ORDER_TERM_BYTES, .is_cut = true};
    return head;
}

/* ---- begin and end ---- */

static void put_turned(const ValueWalk *walk, Slice bytes, char *out)
{
    uint8_t mask = walk->order->is_down ? 0xFF : 0;
    for (size_t i = 0; i < bytes.len; i++)
        out[i] = (char)((uint8_t)bytes.ptr[i] ^ mask);
}

/* From a value of the index to the term of a place. */
static Slice to_place(ValueWalk *walk, Slice value)
{
    Slice rest = slice_from(value, walk->order->prefix.len);
    char *term = arena_alloc(&walk->arena, rest.len);
    put_turned(walk, rest, term);
    return slice_make(term, rest.len);
}

/* And back. */
static Slice from_place(ValueWalk *walk, Slice term)
{
    Slice prefix = walk->order->prefix;
    char *value = arena_alloc(&walk->arena, prefix.len + term.len);
    if (prefix.len > 0)
        memcpy(value, prefix.ptr, prefix.len);
    put_turned(walk, term, value + prefix.len);
    return slice_make(value, prefix.len + term.len);
}

static Slice missing_term(const OrderBy *order)
{
    static const char tags[] = {TERM_UNDEFINED, (char)~TERM_UNDEFINED};
    return slice_make(&tags[order->is_down], 1);
}

static void plan_phases(ValueWalk *walk)
{
    size_t count = 0;
    bool has_missing = !walk->options->has_range && walk->order->composite == NULL;
    if (has_missing && !walk->order->is_down)
        walk->phases[count++] = PHASE_MISSING;
    walk->phases[count++] = PHASE_VALUES;
    if (has_missing && walk->order->is_down)
        walk->phases[count++] = PHASE_MISSING;
}

/* Skips the phases that are wholly before the place. */
static void skip_phases(ValueWalk *walk)
{
    bool is_missing = slice_equal(walk->place.term, missing_term(walk->order));
    if (is_missing && walk->options->has_range && !walk->order->is_down) {
        walk->is_resuming = false; /* all of the range is after it */
        return;
    }
    WalkPhase phase = is_missing ? PHASE_MISSING : PHASE_VALUES;
    while (walk->phases[walk->phase] != phase && walk->phases[walk->phase] != PHASE_OVER)
        walk->phase++;
}

Status value_walk_init(ValueWalk *walk, Fetcher *fetcher, const SourceOptions *options)
{
    *walk = (ValueWalk){.fetcher = fetcher, .options = options, .order = options->order};
    arena_init(&walk->arena, ARENA_BYTES);
    sorter_init(&walk->sorter, fetcher, options->order);
    plan_phases(walk);
    static_assert(ARRAY_COUNT(walk->phases) == 3, "the last phase is PHASE_OVER");
    if (options->position.len == 0)
        return STATUS_OK;
    if (!order_position_read(options->position, &walk->place))
        return source_bad_position(fetcher->planner);
    walk->is_resuming = true;
    if (walk->order->composite == NULL)
        skip_phases(walk);
    return STATUS_OK;
}

void value_walk_done(ValueWalk *walk)
{
    index_walk_close(walk->walk);
    sorter_done(&walk->sorter);
    arena_done(&walk->arena);
}

static void keep_wanted(ValueWalk *walk, NumberSet *items)
{
    if (!walk->options->has_set)
        return;
    NumberSet both;
    set_and(&walk->arena, items, &walk->options->set, &both);
    *items = both;
}

/* ---- documents that need not be fetched ---- */

/* The term of 0 is that of -0, too. */
static bool is_whole_value(const TermValue *value)
{
    return value->exact && !(value->tag == TERM_NUMBER && value->number == 0);
}

static void add_value(JsonBuilder *b, const TermValue *value)
{
    if (value->tag == TERM_NUMBER)
        json_add_number(b, value->number);
    else if (value->tag == TERM_STRING)
        json_add_string(b, value->text);
    else if (value->tag == TERM_NULL)
        json_add_null(b);
    else
        json_add_bool(b, value->tag == TERM_TRUE);
}

/* The document that has this value at the path, and none at all if there is none. */
static void cover(ValueWalk *walk, const TermValue *value)
{
    const PlanPath *path = walk->options->covers;
    JsonBuilder b;
    json_build(&b, &walk->arena);
    json_begin_object(&b);
    for (size_t i = 0; i < path->count && value != NULL; i++) {
        json_key(&b, path->steps[i].name);
        if (i + 1 < path->count)
            json_begin_object(&b);
    }
    if (value != NULL)
        add_value(&b, value);
    for (size_t i = 1; i < path->count && value != NULL; i++)
        json_end(&b);
    json_end(&b);
    walk->covered = json_built(&b);
    walk->is_covered = walk->covered.at != NULL;
}

static void cover_value(ValueWalk *walk, Slice bytes)
{
    TermValue value;
    walk->is_covered = false;
    if (walk->options->covers != NULL && term_read(&walk->arena, &bytes, &value) &&
        bytes.len == 0 && is_whole_value(&value))
        cover(walk, &value);
}

/* ---- values ---- */

/* Stands before the items of one value, which is in the walk's arena. */
static void enter_value(ValueWalk *walk, Slice value, bool is_cut, const NumberSet *items)
{
    const OrderBy *order = walk->order;
    bool is_resumed = walk->is_resuming && slice_equal(value, walk->place.term);
    walk->is_resuming = false;
    walk->value = value;
    walk->has_value = true;
    walk->items = *items;
    walk->is_sorted = is_cut && order->values[0] != NULL;
    if (walk->is_sorted) {
        sorter_begin(&walk->sorter, items,
                     is_resumed && walk->place.rest.len > 0 ? &walk->place : NULL);
        return;
    }
    uint64_t from = order->numbers_down ? UINT64_MAX : 0;
    if (is_resumed)
        from = walk->place.number;
    walk->numbers =
        order->numbers_down ? set_walk_down(&walk->items, from) : set_walk_up(&walk->items, from);
}

static Status enter_missing(ValueWalk *walk)
{
    Planner *planner = walk->fetcher->planner;
    NumberSet all;
    NumberSet present;
    NumberSet missing;
    TRY(plan_read_all(planner, planner->arena, &all));
    TRY(plan_read_present(planner, walk->order->path, planner->arena, &present));
    if (planner->is_out_of_budget)
        return source_out_of_budget(planner);
    set_minus(planner->arena, &all, &present, &missing);
    arena_reset(&walk->arena);
    keep_wanted(walk, &missing);
    if (walk->options->covers != NULL)
        cover(walk, NULL);
    enter_value(walk, missing_term(walk->order), false, &missing);
    return STATUS_OK;
}

static Status open_values(ValueWalk *walk)
{
    static const char first[] = {TERM_NULL};
    static const char end[] = {TERM_END};
    Planner *planner = walk->fetcher->planner;
    IndexRange range = {
        .path = walk->order->path, .from = walk->options->from, .to = walk->options->to};
    if (!walk->options->has_range && walk->order->composite == NULL) {
        range.from = slice_make(first, 1);
        range.to = slice_make(end, 1);
    }
    TRY(index_walk_open(&planner->index, range, walk->order->is_down, &walk->walk, planner->err));
    if (walk->is_resuming)
        index_walk_seek(walk->walk, from_place(walk, walk->place.term));
    return STATUS_OK;
}

/* All values that begin like this one, which a cut string has mixed up, as one. */
static Status gather(ValueWalk *walk, Slice head, NumberSet *items)
{
    Planner *planner = walk->fetcher->planner;
    SetBuilder *builder = set_builder_new(&walk->arena);
    set_builder_add_set(builder, items);
    for (;;) {
        Slice value;
        NumberSet more;
        bool found = false;
        bool complete = true;
        TRY(index_walk_next(walk->walk, &value, &more, &found, &complete, planner->err));
        if (!complete || set_builder_bytes(builder) > planner->index.budget->bytes_left)
            return source_out_of_budget(planner);
        if (found && slice_starts_with(value, head)) {
            set_builder_add_set(builder, &more);
            continue;
        }
        if (found)
            index_walk_seek(walk->walk, arena_copy(&walk->arena, value));
        set_builder_finish(builder, items);
        return STATUS_OK;
    }
}

/* The caller never pauses at the first value, because every page must make progress. */
static bool must_pause(ValueWalk *walk)
{
    return fetcher_is_late(walk->fetcher) ||
           walk->fetcher->planner->index.budget->keys_left < KEYS_RESERVE;
}

static void pause_before(ValueWalk *walk, Slice value)
{
    arena_reset(&walk->arena);
    walk->has_value = false;
    walk->key = (OrderKey){.term = to_place(walk, value),
                           .number = walk->order->numbers_down ? UINT64_MAX : 0};
    walk->fetcher->is_paused = true;
}

/* Enters the next value that has an item; false at the end, and at a pause. */
static Status next_value(ValueWalk *walk, bool *entered)
{
    Planner *planner = walk->fetcher->planner;
    *entered = false;
    if (walk->walk == NULL)
        TRY(open_values(walk));
    for (;;) {
        Slice value;
        NumberSet items;
        bool found = false;
        bool complete = true;
        TRY(index_walk_next(walk->walk, &value, &items, &found, &complete, planner->err));
        if (!complete)
            return source_out_of_budget(planner);
        if (!found)
            return STATUS_OK;
        Head head = head_of(walk->order, value);
        Slice begin = slice_first(value, head.len);
        if (walk->passed++ > 0 && must_pause(walk)) {
            pause_before(walk, begin);
            return STATUS_OK;
        }
        arena_reset(&walk->arena);
        begin = arena_copy(&walk->arena, begin);
        if (head.len < value.len)
            TRY(gather(walk, begin, &items));
        keep_wanted(walk, &items);
        *entered = items.count > 0;
        if (*entered) {
            cover_value(walk, begin);
            enter_value(walk, to_place(walk, begin), head.is_cut, &items);
            return STATUS_OK;
        }
    }
}

static Status next_in_value(ValueWalk *walk, Item *item, bool *found)
{
    *found = false;
    if (!walk->has_value)
        return STATUS_OK;
    if (walk->is_sorted) {
        TRY(sorter_next(&walk->sorter, item, found));
        if (*found)
            walk->key = walk->sorter.key;
        return STATUS_OK;
    }
    if (walk->is_covered) {
        *found = set_walk_next(&walk->numbers, &walk->fetcher->number);
        *item = (Item){.number = walk->fetcher->number, .document = walk->covered};
    } else {
        TRY(fetcher_next(walk->fetcher, &walk->numbers, item, found));
    }
    walk->key = (OrderKey){.term = walk->value, .number = walk->fetcher->number};
    return STATUS_OK;
}

Status value_walk_next(ValueWalk *walk, Item *item, bool *found)
{
    for (;;) {
        TRY(next_in_value(walk, item, found));
        if (*found || walk->fetcher->is_paused)
            return STATUS_OK;
        bool entered = false;
        walk->has_value = false;
        switch (walk->phases[walk->phase]) {
        case PHASE_MISSING:
            walk->phase++;
            TRY(enter_missing(walk));
            break;
        case PHASE_VALUES:
            TRY(next_value(walk, &entered));
            walk->phase += !entered && !walk->fetcher->is_paused;
            break;
        case PHASE_OVER:
            return STATUS_OK;
        }
    }
}
