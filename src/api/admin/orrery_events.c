/* orrery_events.c - what has happened to partitions lately: splits, merges, and seconds in which
 * requests were turned away; on a node of a cluster, changes of owners and nodes as well.
 *
 * In a cluster the splits and merges are those that the owner of the catalogue tells: another node
 * asks it for a part, the array of them. Everything else is what this node itself has seen. */
#include "api/admin/range_gather_int.h"

enum { EVENTS_COUNT, EVENTS_DEFAULT = 100, THROTTLE_ROWS_MAX = 1000, THROTTLE_SECONDS = 60 };

static void put_ids(Buf *out, const char *name, const uint32_t *ids, size_t count)
{
    put_open(out, name, '[');
    for (size_t i = 0; i < count; i++)
        put_id(out, NULL, ids[i]);
    put_close(out, ']');
}

/* Sizes are those at the beginning, so the end may come a little earlier or later. */
static uint64_t percent_of(const MoveEvent *event)
{
    if (event->stage == MOVE_DONE || event->stage == MOVE_SWITCHING)
        return 100;
    if (event->bytes_total == 0)
        return 0;
    return event->bytes < event->bytes_total ? event->bytes * 100 / event->bytes_total : 100;
}

void put_move(Buf *out, const MoveEvent *event)
{
    put_number(out, "event", event->number);
    put_text(out, "what", event->source_count == 1 ? SLICE("split") : SLICE("merge"));
    put_text(out, "reason", move_reason_text(event->reason));
    put_text(out, "stage", move_stage_text(event->stage));
    put_ids(out, "sources", event->sources, event->source_count);
    put_ids(out, "targets", event->targets, event->target_count);
    put_number(out, "begun", event->begun_us / 1000000);
    put_number(out, "ended", event->ended_us / 1000000);
    put_number(out, "bytes", event->bytes);
    put_number(out, "bytesTotal", event->bytes_total);
    put_number(out, "percent", percent_of(event));
    put_number(out, "items", event->items);
    put_number(out, "caughtUp", event->caught_up);
    put_number(out, "fenceMicroseconds", event->fence_us);
    put_text(out, "message", slice_from_cstr(event->message));
}

/* A container that is gone has no name any more. */
static void put_names_of(Buf *out, const Snapshot *snapshot, const MoveEvent *event)
{
    const Database *database = snapshot_database(snapshot, event->database);
    const Container *container = snapshot_container(snapshot, event->database, event->container);
    put_text(out, "database", database == NULL ? SLICE_EMPTY : database->info.id);
    put_text(out, "container", container == NULL ? SLICE_EMPTY : container->info.id);
}

static void put_moves(Buf *out, const OrreryPage *page)
{
    MoveEvent *events = ARENA_NEW_ARRAY(page->request->arena, MoveEvent, page->events.count);
    size_t count = catalog_moves(page->request->api->options.catalog, events, page->events.count);
    buf_byte(out, '[');
    for (size_t i = 0; i < count; i++) {
        put_open(out, NULL, '{');
        put_names_of(out, page->snapshot, &events[i]);
        put_move(out, &events[i]);
        put_close(out, '}');
    }
    put_close(out, ']');
}

/* Adds a row if the container turned a request away in this second. */
static void put_throttles_of(Buf *out, const Database *database, const Container *container,
                             uint64_t second, size_t *rows)
{
    uint64_t throttled = 0;
    for (size_t i = 0; i < container->range_count; i++)
        throttled +=
            history_at(handle_history(container_handle_at(container, i)), HISTORY_SECOND, second)
                .throttled;
    if (throttled == 0)
        return;
    put_open(out, NULL, '{');
    put_text(out, "database", database->info.id);
    put_text(out, "container", container->info.id);
    put_number(out, "time", second);
    put_number(out, "throttled", throttled);
    put_close(out, '}');
    (*rows)++;
}

static void put_throttles(Buf *out, const OrreryPage *page)
{
    size_t rows = 0;
    put_open(out, "throttles", '[');
    for (uint64_t s = 0; s < THROTTLE_SECONDS; s++) {
        SnapshotWalk walk = {0};
        while (rows < THROTTLE_ROWS_MAX && snapshot_next(page->snapshot, &walk))
            put_throttles_of(out, walk.database, walk.container, page->now_s - s, &rows);
    }
    put_close(out, ']');
}

static const Slice MOVES = SLICE_INIT("moves");

static Status run_part(OrreryPage *page)
{
    if (!slice_equal(page->part, MOVES))
        return error_set(&page->error, STATUS_BAD_REQUEST, SUB_NONE, "There is no part '%.*s'.",
                         SLICE_CUT(page->part, 60));
    put_moves(&page->text, page);
    return STATUS_OK;
}

static Status run_events(OrreryPage *page)
{
    Buf *out = &page->text;
    put_open(out, NULL, '{');
    put_node(out, page);
    put_number(out, "time", page->now_s);
    put_name(out, "moves");
    Slice told = catalog_owner_ask(page, MOVES, JSON_ARRAY);
    if (told.len > 0)
        buf_slice(out, told);
    else
        put_moves(out, page);
    put_throttles(out, page);
    const ApiCluster *cluster = page->request->api->options.cluster;
    if (cluster != NULL)
        put_json(out, "cluster", cluster->events(cluster->ctx, page->request->arena));
    put_close(out, '}');
    return STATUS_OK;
}

static Status parse_events(OrreryPage *page, Error *err)
{
    uint64_t count = 0;
    TRY(orrery_number(page, EVENTS_COUNT, 1, MOVE_EVENTS_MAX, EVENTS_DEFAULT, &count, err));
    page->events.count = (uint32_t)count;
    page->is_long = page->request->api->options.cluster != NULL;
    return STATUS_OK;
}

const OrreryKind ORRERY_EVENTS = {
    .name = SLICE_INIT("events"),
    .parameters = {[EVENTS_COUNT] = "count"},
    .parse = parse_events,
    .run = run_events,
    .run_part = run_part,
};
