/* call_batch.c - see call_batch_int.h. */
#include "query/page/call_batch_int.h"

enum {
    BATCH_DOCUMENTS_MAX = 64,
    BATCH_GROWTH = 4, /* from one batch to the next */
    BATCH_BYTES_MAX = 1 << 20,
    BATCH_US = 50000, /* what the calls of a batch may take, as far as the one before tells */
    BATCH_BLOCK_BYTES = 8 << 10,
};

typedef struct BatchDocument {
    Item item;
    Slice place;
    OrderKey key; /* if several readings are merged */
    bool was_fetched;
    uint64_t keys; /* of the index, read so far */
} BatchDocument;

struct CallBatch {
    Arena arena; /* of the documents and their calls */
    size_t held; /* what of it the run knows of */
    BatchDocument documents[BATCH_DOCUMENTS_MAX];
    CallDocument calls[BATCH_DOCUMENTS_MAX];
    size_t count;
    size_t at;        /* the one at hand, if there are any */
    size_t size;      /* of the next batch */
    uint64_t call_us; /* what the calls of a document have taken in the last one */

    /* What follows these documents; READING_EMPTY if the source has not said yet. */
    ReadingState end;
    OrderKey end_key;
    bool is_cut; /* the batch itself has paused, after its last document */
};

CallDocument *call_batch_document(const CallBatch *batch)
{
    ASSERT(batch->at < batch->count);
    return &UNCONST(CallBatch, batch)->calls[batch->at];
}

static bool has_next(const CallBatch *batch)
{
    return batch->count > 0 && batch->at + 1 < batch->count;
}

uint64_t call_batch_keys(const Reading *reading)
{
    const CallBatch *batch = reading->batch;
    if (batch != NULL && has_next(batch))
        return batch->documents[batch->at].keys;
    return reading->planner.index.keys_read;
}

/* ---- one batch ---- */

static size_t choose_size(const PageReader *reader, const CallBatch *batch)
{
    const PageRequest *request = reader->context.request;
    const Select *select = request->query->select;
    size_t size = batch->size;
    if (batch->call_us > 0 && size > BATCH_US / batch->call_us)
        size = BATCH_US / batch->call_us;
    /* Where each document is a row, no more are read than the page has room for. */
    bool is_row = page_request_streams(request) && select->where == NULL &&
                  select->source_count == 1 && !select->sources->iterate;
    double left = request->rows_wanted - (double)reader->work->documents;
    if (is_row && left >= 1 && (double)size > left)
        size = (size_t)left;
    return size == 0 ? 1 : size;
}

static Status keep_item(PageReader *reader, Reading *reading, const Item *item)
{
    CallBatch *batch = reading->batch;
    const PageRequest *request = reader->context.request;
    BatchDocument *kept = &batch->documents[batch->count];
    Slice bytes = item_encode(&batch->arena, item);
    *kept = (BatchDocument){
        .was_fetched = source_was_fetched(reading->source),
        .place = source_position(reading->source, &batch->arena),
        .keys = reading->planner.index.keys_read,
    };
    TRY(item_decode(bytes, &kept->item, reader->context.err));
    kept->item.bytes = item->bytes;
    if (reader->reading_count > 1) {
        OrderKey key = source_key(reading->source);
        kept->key = order_keep(&batch->arena, &key);
    }
    Json document = kept->item.document;
    if (request->needs_system)
        document = item_document(&batch->arena, request->options->schema, &kept->item);
    batch->calls[batch->count++] = (CallDocument){.document = document};
    return STATUS_OK;
}

/* The budget of the run knows what the batch holds. */
static Status hold(PageReader *reader, CallBatch *batch)
{
    Run *run = reader->context.run;
    size_t used = arena_used(&batch->arena);
    run->held = run->held - batch->held + used;
    batch->held = used;
    return run_reserve(run, 0);
}

static Status read_documents(PageReader *reader, Reading *reading, size_t size)
{
    CallBatch *batch = reading->batch;
    batch->count = 0;
    batch->at = 0;
    arena_reset(&batch->arena);
    while (batch->count < size && arena_used(&batch->arena) < BATCH_BYTES_MAX) {
        Item item;
        bool found = false;
        TRY(source_next(reading->source, &item, &found));
        if (!found) {
            batch->end = source_is_paused(reading->source) ? READING_PAUSED : READING_OVER;
            if (reader->reading_count > 1 && batch->end == READING_PAUSED)
                batch->end_key = source_key(reading->source);
            break;
        }
        TRY(keep_item(reader, reading, &item));
    }
    return hold(reader, batch);
}

static Status make_calls(PageReader *reader, CallBatch *batch)
{
    Run *run = reader->context.run;
    uint64_t us = run->calls.us;
    run->held -= batch->held; /* it is counted by those who fill it */
    batch->held = 0;
    TRY(user_calls_prepare(run, reader->context.request->query->select, batch->calls, batch->count,
                           &batch->arena));
    batch->call_us = (run->calls.us - us) / batch->count;
    if (batch->count >= batch->size && batch->size < BATCH_DOCUMENTS_MAX)
        batch->size *= BATCH_GROWTH;
    return hold(reader, batch);
}

static Status fill(PageReader *reader, Reading *reading)
{
    CallBatch *batch = reading->batch;
    bool is_peeking = reader->phase == PAGE_PEEKING; /* which asks for a document only */
    TRY(read_documents(reader, reading, is_peeking ? 1 : choose_size(reader, batch)));
    return batch->count == 0 || is_peeking ? STATUS_OK : make_calls(reader, batch);
}

/* Whether the time that is left is not enough for the calls of another document, so that the page
 * ends with those that it has. */
static bool is_late(const PageReader *reader, const CallBatch *batch)
{
    const PageRequest *request = reader->context.request;
    const QueryPageOptions *o = request->options;
    bool may_end =
        request->way == PAGE_STREAMS || (request->way == PAGE_REMEMBERS && reader->out->count > 0);
    if (o->deadline_us == 0 || !may_end || batch->count == 0 || !reader->cursor.is_further ||
        reader->phase == PAGE_PEEKING)
        return false;
    return clock_monotonic_us(o->clock) + batch->call_us > o->deadline_us;
}

/* ---- a reading ---- */

static Status open_batch(PageReader *reader, Reading *reading)
{
    TRY(READING_LOCAL_CALLS.open(reader, reading));
    CallBatch *batch = ARENA_NEW(reader->arena, CallBatch);
    arena_init(&batch->arena, BATCH_BLOCK_BYTES);
    batch->size = 1;
    batch->end = READING_EMPTY;
    reading->batch = batch;
    return STATUS_OK;
}

static void take(Reading *reading)
{
    const BatchDocument *document = &reading->batch->documents[reading->batch->at];
    reading->item = document->item;
    reading->key = document->key;
    reading_set_state(reading, READING_READY);
}

static Status next_batch(PageReader *reader, Reading *reading)
{
    CallBatch *batch = reading->batch;
    if (has_next(batch)) {
        batch->at++;
        take(reading);
        return STATUS_OK;
    }
    if (batch->end == READING_EMPTY && is_late(reader, batch)) {
        batch->is_cut = true; /* its last document is where to go on */
        reading->key = batch->documents[batch->at].key;
        reading_set_state(reading, READING_PAUSED);
        return STATUS_OK;
    }
    if (batch->end == READING_EMPTY)
        TRY(fill(reader, reading));
    else
        batch->count = 0;
    if (batch->count > 0) {
        take(reading);
        return STATUS_OK;
    }
    reading->key = batch->end_key;
    reading_set_state(reading, batch->end);
    return STATUS_OK;
}

static bool was_fetched(const Reading *reading)
{
    const CallBatch *batch = reading->batch;
    return batch->documents[batch->at].was_fetched;
}

static Slice position(const Reading *reading, Arena *arena, bool *is_passed)
{
    const CallBatch *batch = reading->batch;
    *is_passed = batch->is_cut;
    if (batch->count > 0)
        return arena_copy(arena, batch->documents[batch->at].place);
    return source_position(reading->source, arena);
}

static void close_batch(PageReader *reader, Reading *reading)
{
    CallBatch *batch = reading->batch;
    page_work_add_keys(reader->work, reading->target_index, call_batch_keys(reading));
    page_notes_indexes(reader->context.notes, reading);
    if (batch == NULL)
        return;
    reader->context.run->held -= batch->held;
    arena_done(&batch->arena);
    reading->batch = NULL;
}

const ReadingCalls CALL_BATCH_CALLS = {
    .open = open_batch,
    .next = next_batch,
    .was_fetched = was_fetched,
    .position = position,
    .close = close_batch,
};
