/* document_source.c - see document_source_int.h. */
#include "query/page/source_parts_int.h"

#include "base/mem.h"

enum { LOOKS_PER_CLOCK = 16 }; /* each is a look-up in the store */

struct DocumentSource {
    SourceOptions options;
    Fetcher fetcher;

    SetWalk numbers;  /* of SOURCE_SET */
    size_t collected; /* of SOURCE_COLLECTED: those that were handed out */

    PartitionScan *scan;
    ScanBudget scan_budget;

    ValueWalk walk; /* of SOURCE_WALK */
    bool has_walk;

    Sorter sorter; /* of SOURCE_SORT */
    bool has_sorter;
};

Status source_bad_position(const Planner *planner)
{
    return error_set(planner->err, STATUS_BAD_REQUEST, SUB_NONE,
                     "Invalid Continuation Token: it does not belong to this query.");
}

Status source_out_of_budget(const Planner *planner)
{
    return error_set(planner->err, STATUS_BAD_REQUEST, SUB_NONE,
                     "The query reads more of the index than one page may. Narrow it.");
}

/* ---- items by number ---- */

Status fetcher_get(Fetcher *fetcher, uint64_t number, Item *item, bool *found)
{
    fetcher->number = number;
    return partition_view_fetch(fetcher->planner->view, number, fetcher->epk_from, fetcher->epk_to,
                                item, found, fetcher->planner->err);
}

bool fetcher_is_late(Fetcher *fetcher)
{
    return fetcher->deadline_us != 0 && ++fetcher->looks % LOOKS_PER_CLOCK == 0 &&
           clock_monotonic_us(fetcher->clock) >= fetcher->deadline_us;
}

Status fetcher_next(Fetcher *fetcher, SetWalk *numbers, Item *item, bool *found)
{
    uint64_t number = 0;
    *found = false;
    while (!*found && !fetcher->is_paused && set_walk_next(numbers, &number)) {
        TRY(fetcher_get(fetcher, number, item, found));
        fetcher->is_paused = !*found && fetcher_is_late(fetcher);
    }
    return STATUS_OK;
}

/* ---- the kinds ---- */

static Status open_set(DocumentSource *source)
{
    Slice position = source->options.position;
    if (position.len != 0 && position.len != sizeof(uint64_t))
        return source_bad_position(source->fetcher.planner);
    uint64_t from = position.len == 0 ? 0 : be64_get(position.ptr);
    source->numbers = set_walk_up(&source->options.set, from);
    return STATUS_OK;
}

static Status open_scan(DocumentSource *source)
{
    const SourceOptions *o = &source->options;
    Planner *planner = source->fetcher.planner;
    if (!partition_scan_is_position(o->scan_order, o->position))
        return source_bad_position(planner);
    source->scan_budget =
        (ScanBudget){.entries = UINT64_MAX, .deadline_us = o->deadline_us, .clock = o->clock};
    ScanOptions options = {
        .order = o->scan_order,
        .epk_from = o->epk_from,
        .epk_to = o->epk_to,
        .at = o->position,
        .budget = &source->scan_budget,
    };
    return partition_view_scan(planner->view, &options, &source->scan, planner->err);
}

static Status open_walk(DocumentSource *source)
{
    source->has_walk = true;
    return value_walk_init(&source->walk, &source->fetcher, &source->options);
}

static Status open_sort(DocumentSource *source)
{
    const SourceOptions *o = &source->options;
    OrderKey place;
    bool has_place = o->position.len > 0;
    if (has_place && !order_position_read(o->position, &place))
        return source_bad_position(source->fetcher.planner);
    sorter_init(&source->sorter, &source->fetcher, o->order);
    source->has_sorter = true;
    sorter_begin(&source->sorter, &o->set, has_place ? &place : NULL);
    return STATUS_OK;
}

Status source_open(Planner *planner, const SourceOptions *options, DocumentSource **out)
{
    DocumentSource *source = MEM_NEW(DocumentSource);
    source->options = *options;
    source->fetcher = (Fetcher){
        .planner = planner,
        .epk_from = options->epk_from,
        .epk_to = options->epk_to,
        .clock = options->clock,
        .deadline_us = options->deadline_us,
    };
    *out = source;
    switch (options->kind) {
    case SOURCE_SET:
        return open_set(source);
    case SOURCE_SCAN:
        return open_scan(source);
    case SOURCE_WALK:
        return open_walk(source);
    case SOURCE_SORT:
        return open_sort(source);
    case SOURCE_COLLECTED:
        break;
    }
    return STATUS_OK;
}

static Status next_collected(DocumentSource *source, Item *item, bool *found)
{
    *found = source->collected < source->options.item_count;
    if (*found) {
        *item = source->options.items[source->collected++];
        source->fetcher.number = item->number;
    }
    return STATUS_OK;
}

Status source_next(DocumentSource *source, Item *item, bool *found)
{
    switch (source->options.kind) {
    case SOURCE_SET:
        return fetcher_next(&source->fetcher, &source->numbers, item, found);
    case SOURCE_SCAN:
        return partition_scan_next(source->scan, item, found, source->fetcher.planner->err);
    case SOURCE_WALK:
        return value_walk_next(&source->walk, item, found);
    case SOURCE_SORT:
        return sorter_next(&source->sorter, item, found);
    case SOURCE_COLLECTED:
        return next_collected(source, item, found);
    }
    return STATUS_OK;
}

bool source_was_fetched(const DocumentSource *source)
{
    return !source->has_walk || !source->walk.is_covered;
}

bool source_is_paused(const DocumentSource *source)
{
    return source->fetcher.is_paused ||
           (source->scan != NULL && partition_scan_is_paused(source->scan));
}

static const OrderKey *key_of(const DocumentSource *source)
{
    return source->has_sorter ? &source->sorter.key : &source->walk.key;
}

Slice source_position(DocumentSource *source, Arena *arena)
{
    char number[sizeof(uint64_t)];
    switch (source->options.kind) {
    case SOURCE_SET:
    case SOURCE_COLLECTED:
        be64_put(number, source->fetcher.number);
        return arena_copy(arena, slice_make(number, sizeof(number)));
    case SOURCE_SCAN:
        return arena_copy(arena, partition_scan_position(source->scan));
    case SOURCE_WALK:
    case SOURCE_SORT:
        break;
    }
    return order_position(arena, key_of(source));
}

static uint64_t number_of(const DocumentSource *source)
{
    if (source->scan == NULL)
        return source->fetcher.number;
    Slice position = partition_scan_position(source->scan);
    return position.len == SCAN_NUMBER_BYTES ? be64_get(position.ptr) : 0;
}

OrderKey source_key(const DocumentSource *source)
{
    if (source->options.order != NULL)
        return *key_of(source);
    return (OrderKey){.number = number_of(source)};
}

void source_close(DocumentSource *source)
{
    if (source == NULL)
        return;
    partition_scan_close(source->scan);
    if (source->has_walk)
        value_walk_done(&source->walk);
    if (source->has_sorter)
        sorter_done(&source->sorter);
    mem_free(source);
}
