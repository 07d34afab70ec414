/* orrery_history.c - what the partitions of a container were asked for, slot by slot. */
#include "api/admin/orrery_int.h"

enum { HISTORY_GRAIN, HISTORY_FROM, HISTORY_TO };

/* What is shown without parameters. */
enum { SECONDS_DEFAULT = 300, STEPS_DEFAULT = 288 };

static Status parse_grain(OrreryPage *page, Error *err)
{
    Slice grain = page->values[HISTORY_GRAIN];
    if (grain.len == 0 || slice_equal(grain, SLICE("second")))
        page->history.grain = HISTORY_SECOND;
    else if (slice_equal(grain, SLICE("5min")))
        page->history.grain = HISTORY_STEP;
    else
        return orrery_refuse(page, HISTORY_GRAIN, "second or 5min", err);
    return STATUS_OK;
}

/* Shows whole slots, from the one that the beginning lies in to the one that the end lies in.
 * Without an end the last complete slot is the last. */
static Status parse_history(OrreryPage *page, Error *err)
{
    const uint64_t time_max = (uint64_t)1 << 40;
    TRY(orrery_need_statistics(page, err));
    TRY(parse_grain(page, err));
    uint64_t slot_s = history_slot_s(page->history.grain);
    uint64_t slots = history_slots(page->history.grain);
    uint64_t now_s = (uint64_t)page->request->now_s;
    uint64_t span =
        slot_s * (page->history.grain == HISTORY_SECOND ? SECONDS_DEFAULT : STEPS_DEFAULT);
    uint64_t to = 0;
    TRY(orrery_number(page, HISTORY_TO, 0, time_max, now_s / slot_s * slot_s, &to, err));
    to = (to + slot_s - 1) / slot_s * slot_s;
    uint64_t from = 0;
    TRY(orrery_number(page, HISTORY_FROM, 0, time_max, to > span ? to - span : 0, &from, err));
    from = from / slot_s * slot_s;
    uint64_t span_max = slots * slot_s;
    if (from > to || to - from > span_max)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "'from' and 'to' are seconds since 1970, 'from' not after 'to' and at "
                         "most %llu seconds before it; they were %llu and %llu.",
                         (unsigned long long)span_max, (unsigned long long)from,
                         (unsigned long long)to);
    page->history.from_s = from;
    page->history.to_s = to;
    return STATUS_OK;
}

typedef enum Column { COLUMN_RU, COLUMN_REQUESTS, COLUMN_THROTTLED } Column;

static void put_column(Buf *out, const HistoryCount *counts, size_t count, Column column)
{
    static const char *const names[] = {"ru", "requests", "throttled"};
    put_open(out, names[column], '[');
    for (size_t i = 0; i < count && !buf_full(out); i++) {
        if (column == COLUMN_RU)
            put_hundredths(out, NULL, counts[i].charge);
        else
            put_number(out, NULL,
                       column == COLUMN_REQUESTS ? counts[i].requests : counts[i].throttled);
    }
    put_close(out, ']');
}

static void put_range(Buf *out, const OrreryPage *page, const PartitionRange *range,
                      HistoryCount *counts)
{
    HistoryGrain grain = page->history.grain;
    const History *history = handle_history(container_handle(page->container, range));
    size_t count = 0;
    for (uint64_t s = page->history.from_s; s < page->history.to_s; s += history_slot_s(grain))
        counts[count++] = history_at(history, grain, s);
    put_open(out, NULL, '{');
    put_id(out, "id", range->id);
    put_bool(out, "isKept", history_is_kept(history));
    put_column(out, counts, count, COLUMN_RU);
    put_column(out, counts, count, COLUMN_REQUESTS);
    put_column(out, counts, count, COLUMN_THROTTLED);
    put_close(out, '}');
}

static Status run_history(OrreryPage *page)
{
    Buf *out = &page->text;
    size_t slots = history_slots(page->history.grain);
    HistoryCount *counts = ARENA_NEW_ARRAY(page->request->arena, HistoryCount, slots);
    put_open(out, NULL, '{');
    put_text(out, "database", page->database->info.id);
    put_text(out, "container", page->container->info.id);
    put_text(out, "grain", page->history.grain == HISTORY_SECOND ? SLICE("second") : SLICE("5min"));
    put_number(out, "step", history_slot_s(page->history.grain));
    put_number(out, "from", page->history.from_s);
    put_number(out, "to", page->history.to_s);
    put_open(out, "ranges", '[');
    for (size_t i = 0; i < page->container->range_count && !buf_full(out); i++)
        put_range(out, page, &page->container->ranges[i], counts);
    put_close(out, ']');
    put_close(out, '}');
    return STATUS_OK;
}

const OrreryKind ORRERY_HISTORY = {
    .name = SLICE_INIT("history"),
    .is_of_container = true,
    .parameters = {[HISTORY_GRAIN] = "grain", [HISTORY_FROM] = "from", [HISTORY_TO] = "to"},
    .parse = parse_history,
    .run = run_history,
};
