/* remote_reading.c - see remote_reading_int.h. */
#include "query/page/remote_reading_int.h"

#include "query/page/group_list_int.h"
#include "query/page/remote_batch.h"
#include "query/page/remote_format_int.h"

enum {
    BATCH_BLOCK_BYTES = 8 << 10,
    BATCH_GROWTH = 4,
    BATCH_DOCUMENTS_MIN = 16, /* of the next batch, however few are wanted */
};

struct RemoteReading {
    Arena arena; /* of the batch */
    size_t held; /* what of it the run knows of */
    bool has_asked;
    RemoteBatch batch;
    uint32_t left; /* documents in it that were not taken yet */
    bool has_document;
    RemoteDocument document; /* the one at hand */
    RemotePassed passed;     /* since the document before, up to the end of earlier batches */
    uint64_t keys_before;    /* of earlier batches */
    uint64_t keys;           /* up to the document at hand */
    uint32_t size;           /* of the next batch; 0 before the first */
};

uint64_t remote_reading_keys(const RemoteReading *remote)
{
    return remote->keys;
}

/* ---- asking ---- */

static uint32_t lesser(uint64_t a, uint32_t b)
{
    return a < b ? (uint32_t)a : b;
}

/* As many documents as there is room for results, and one that tells whether there are more. If
 * these were not enough, documents seem to give few results. */
static uint32_t choose_count(const PageReader *reader, RemoteReading *remote)
{
    const PageRequest *request = reader->context.request;
    if (request->way == PAGE_GATHERS || request->way == PAGE_REPEATS)
        return QUERY_BATCH_DOCUMENTS_MAX;
    if (reader->phase == PAGE_PEEKING)
        return 1;
    uint64_t room = (uint64_t)request->options->items_max - reader->out->count;
    uint32_t count = lesser(room + 1, QUERY_BATCH_DOCUMENTS_MAX);
    count = count > remote->size ? count : remote->size;
    remote->size = lesser((uint64_t)BATCH_DOCUMENTS_MIN + (uint64_t)count * BATCH_GROWTH,
                          QUERY_BATCH_DOCUMENTS_MAX);
    return count;
}

static uint64_t time_left_us(const QueryPageOptions *o)
{
    if (o->deadline_us == 0)
        return 0;
    uint64_t now_us = clock_monotonic_us(o->clock);
    return o->deadline_us > now_us ? o->deadline_us - now_us : 1;
}

static bool is_whole(const Reading *reading)
{
    const QueryTarget *target = reading->target;
    return target->is_whole && slice_equal(reading->epk_from, target->epk_from) &&
           slice_equal(reading->epk_to, target->epk_to);
}

static RemoteAsk ask_of(PageReader *reader, const Reading *reading, RemoteKind kind)
{
    const PageRequest *request = reader->context.request;
    return (RemoteAsk){
        .kind = kind,
        .is_ordered = request->is_ordered,
        .is_whole = is_whole(reading),
        .way = request->way,
        .mode = reading->mode,
        .count_max = 1,
        .looks_max = UINT32_MAX,
        .bytes_max = QUERY_BATCH_BYTES_MAX,
        .rows_wanted = request->rows_wanted,
        .time_us = time_left_us(request->options),
        .targets = (uint32_t)request->sum_targets,
        .static_ticks = run_static_ticks(reader->context.run),
        .epk_from = reading->epk_from,
        .epk_to = reading->epk_to,
        .place = reading->position,
    };
}

static Status send(PageReader *reader, const Reading *reading, const RemoteAsk *ask, Arena *arena,
                   Slice *answer)
{
    AUTO(buf_done) Buf asked;
    buf_init(&asked, QUERY_ASK_BYTES_MAX);
    remote_ask_write(ask, &asked);
    ASSERT(!buf_full(&asked));
    arena_reset(arena); /* what was asked may have been in it */
    const QueryRemote *remote = reading->target->remote;
    return remote->ask(remote->ctx, reading->target, buf_view(&asked), arena, answer,
                       reader->context.err);
}

/* The budget of the run knows what the batch holds. */
static Status hold(PageReader *reader, RemoteReading *remote)
{
    Run *run = reader->context.run;
    size_t used = arena_used(&remote->arena);
    run->held = run->held - remote->held + used;
    remote->held = used;
    return run_reserve(run, 0);
}

static Status refuse_order(PageReader *reader)
{
    reader->is_refused = true;
    return error_set(reader->context.err, STATUS_BAD_REQUEST, SUB_NONE,
                     "Invalid Continuation Token. The continuation token has expired: the "
                     "container's indexing policy was changed. Begin the query again.");
}

static const OrderBy UP = {0};

/* The documents come in the order that was asked for, each batch after the one before. */
static Status check_batch(PageReader *reader, Reading *reading, const RemoteAsk *ask)
{
    const RemoteBatch *batch = &reading->remote->batch;
    bool is_ordered = reader->context.request->is_ordered;
    bool is_further = batch->is_over || batch->count > 0 || ask->is_after != batch->is_passed ||
                      !slice_equal(batch->place, ask->place);
    bool is_mode = reading->mode == PAGE_ANY ? is_ordered == (batch->mode == PAGE_ORDER)
                                             : batch->mode == reading->mode;
    if (!is_further || !is_mode || batch->count > ask->count_max)
        return remote_malformed(reader->context.err);
    if (is_ordered && batch->numbers_down != reading->order->numbers_down)
        return refuse_order(reader);
    reading->mode = batch->mode;
    if (batch->mode == PAGE_ORDER)
        reading->sorted_by = reading->order;
    else if (batch->mode == PAGE_RANGE)
        reading->sorted_by = &UP;
    return STATUS_OK;
}

static void begin_batch(RemoteReading *remote)
{
    remote->left = remote->batch.count;
    remote->has_asked = true;
}

/* What is left of the batch before is looked at now. */
static void end_batch(RemoteReading *remote)
{
    ASSERT(remote->left == 0);
    remote->passed.documents += remote->batch.passed.documents;
    remote->passed.bytes += remote->batch.passed.bytes;
    remote->keys_before += remote->batch.keys;
    remote->keys = remote->keys_before;
    remote->batch.passed = (RemotePassed){0};
    remote->batch.keys = 0;
}

static Status ask_for_batch(PageReader *reader, Reading *reading)
{
    RemoteReading *remote = reading->remote;
    RemoteAsk ask = ask_of(reader, reading, REMOTE_DOCUMENTS);
    Slice answer;
    AUTO(arena_done) Arena before; /* of the place, until the answer was compared with it */
    arena_init(&before, REMOTE_PLACE_BYTES_MAX);
    if (remote->has_asked) {
        ask.place = arena_copy(&before, remote->batch.place);
        ask.is_after = remote->batch.is_passed;
    }
    ask.count_max = choose_count(reader, remote);
    if (reader->phase == PAGE_PEEKING)
        ask.looks_max = reader->peeks_left + 1;
    TRY(send(reader, reading, &ask, &remote->arena, &answer));
    if (remote_kind(answer) == REMOTE_REFUSED && ask.is_ordered)
        return refuse_order(reader);
    if (!remote_batch_read(answer, &remote->batch))
        return remote_malformed(reader->context.err);
    TRY(check_batch(reader, reading, &ask));
    begin_batch(remote);
    return hold(reader, remote);
}

/* ---- documents ---- */

static Status open_remote(PageReader *reader, Reading *reading)
{
    page_work_visit(reader->work, reading->target_index);
    page_notes_remote(reader->context.notes, reading);
    reading->remote = ARENA_NEW(reader->arena, RemoteReading);
    arena_init(&reading->remote->arena, BATCH_BLOCK_BYTES);
    reading_set_state(reading, READING_EMPTY);
    return STATUS_OK;
}

static void pass(PageReader *reader, Reading *reading, RemotePassed more)
{
    RemoteReading *remote = reading->remote;
    page_reader_pass(reader, reading->target_index, remote->passed.documents + more.documents,
                     remote->passed.bytes + more.bytes);
    remote->passed = (RemotePassed){0};
}

static bool read_key(const Reading *reading, Slice place, OrderKey *out)
{
    *out = (OrderKey){0};
    if (reading->sorted_by != NULL)
        return order_position_read(place, out);
    if (reading->mode == PAGE_NUMBER && place.len == sizeof(uint64_t))
        out->number = be64_get(place.ptr);
    return reading->mode == PAGE_EPK || place.len == sizeof(uint64_t);
}

static Status enter(PageReader *reader, Reading *reading, Slice place, ReadingState state)
{
    if (!read_key(reading, place, &reading->key))
        return remote_malformed(reader->context.err);
    reading_set_state(reading, state);
    return STATUS_OK;
}

static Status take_document(PageReader *reader, Reading *reading)
{
    RemoteReading *remote = reading->remote;
    Slice rest = remote->batch.documents;
    RemoteDocument document;
    TRY(remote_document_read(&rest, &document, reader->context.err));
    if (page_reader_is_far(reader, remote->passed.documents + document.passed.documents)) {
        reading_set_state(reading, READING_FAR);
        return STATUS_OK;
    }
    remote->document = document;
    remote->has_document = true;
    remote->batch.documents = rest;
    remote->left--;
    remote->keys = remote->keys_before + document.keys;
    reading->item = document.item;
    pass(reader, reading, document.passed);
    return enter(reader, reading, document.place, READING_READY);
}

static Status end_reading(PageReader *reader, Reading *reading)
{
    pass(reader, reading, (RemotePassed){0});
    if (!reading->remote->batch.is_over)
        return enter(reader, reading, reading->remote->batch.place, READING_PAUSED);
    reading_set_state(reading, READING_OVER);
    return STATUS_OK;
}

static Status next_remote(PageReader *reader, Reading *reading)
{
    RemoteReading *remote = reading->remote;
    bool has_waited = false;
    remote->has_document = false;
    while (remote->left == 0) {
        if (remote->has_asked)
            end_batch(remote);
        if (page_reader_is_far(reader, remote->passed.documents)) {
            reading_set_state(reading, READING_FAR);
            return STATUS_OK;
        }
        bool is_late = has_waited && page_request_is_late(reader->context.request);
        if (remote->has_asked && (remote->batch.is_over || is_late))
            return end_reading(reader, reading);
        TRY(ask_for_batch(reader, reading));
        has_waited = true;
    }
    return take_document(reader, reading);
}

static bool was_fetched(const Reading *reading)
{
    ASSERT(reading->remote->has_document);
    return reading->remote->document.was_fetched;
}

static Slice position(const Reading *reading, Arena *arena, bool *is_passed)
{
    const RemoteReading *remote = reading->remote;
    *is_passed = !remote->has_document && remote->batch.is_passed;
    return arena_copy(arena, remote->has_document ? remote->document.place : remote->batch.place);
}

static void close_remote(PageReader *reader, Reading *reading)
{
    RemoteReading *remote = reading->remote;
    if (remote == NULL)
        return;
    page_work_add_keys(reader->work, reading->target_index, remote->keys);
    reader->context.run->held -= remote->held;
    arena_done(&remote->arena);
    reading->remote = NULL;
}

const ReadingCalls READING_REMOTE_CALLS = {
    .open = open_remote,
    .next = next_remote,
    .was_fetched = was_fetched,
    .position = position,
    .close = close_remote,
};

/* ---- groups ---- */

Status remote_count_groups(PageReader *reader, Reading *reading, GroupList **out)
{
    const Select *select = reader->context.request->query->select;
    RemoteAsk ask = ask_of(reader, reading, REMOTE_GROUPS);
    RemoteGroups groups;
    Slice answer;
    AUTO(arena_done) Arena arena;
    arena_init(&arena, BATCH_BLOCK_BYTES);
    *out = NULL;
    TRY(send(reader, reading, &ask, &arena, &answer));
    if (!remote_groups_read(answer, &groups))
        return remote_malformed(reader->context.err);
    page_work_add_keys(reader->work, reading->target_index, groups.keys);
    if (!groups.is_told)
        return STATUS_OK;
    GroupList *list = ARENA_NEW(reader->arena, GroupList);
    bool is_list = false;
    TRY(group_list_read(groups.list, reader->context.run, reader->arena, select->aggregate_count,
                        list, &is_list));
    if (!is_list)
        return remote_malformed(reader->context.err);
    page_notes_remote(reader->context.notes, reading);
    *out = list;
    return STATUS_OK;
}
