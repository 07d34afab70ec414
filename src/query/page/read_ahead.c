/* read_ahead.c - see read_ahead_int.h. */
#include "query/page/read_ahead_int.h"

#include "base/encoding.h"
#include "base/mem.h"

#include <pthread.h>

enum {
    SLICE_ITEMS = 8192, /* a slice has about so many */
    SLICES_MAX = 512,   /* bounds what is read in vain when a page ends */
    TURN_US = 2000,
    TURN_DOCUMENTS = 64, /* a helper hands on a batch of so many, or of TURN_BYTES */
    TURN_BYTES = 128 << 10,
    KEPT_BYTES_MAX = 1 << 20,
    CLOCK_DOCUMENTS = 16,
    PART_BLOCK_BYTES = 4 << 10,
    WINDOW_MAX = 64,
};

#define PART_MEMORY_MAX ((size_t)32 << 20)

/* A document that a part has found. */
typedef struct Kept {
    struct Kept *next;
    Item item;
    Slice place;
    bool was_fetched;
    uint64_t passed; /* documents that were looked at since the one before, without this one */
    uint64_t passed_bytes;
    uint64_t keys; /* of the index, read so far */
} Kept;

/* What was found in a turn. */
typedef struct Batch {
    struct Batch *next;
    Arena arena;
    Kept *first;
    Kept *last;
    size_t count;
    size_t bytes;
} Batch;

typedef enum PartState {
    PART_IDLE, /* also before it has begun */
    PART_RUNNING,
    PART_STOPPED, /* there is nothing more to look for, or no time; or it has failed */
} PartState;

struct ReadAheadPart {
    ReadAhead *ahead;
    size_t target; /* of the page */
    QueryTarget own;
    bool owns_view;
    PageMode mode_wanted;

    /* Guarded by the lock of ReadAhead. */
    PartState state;
    Batch *first; /* found, and not taken */
    Batch *last;
    size_t waiting_count;
    size_t waiting_bytes;

    /* Written by the thread that has it RUNNING. */
    bool has_begun;
    ReadContext context;
    Run run;
    Reading reading;
    Arena arena;
    Error error;
    Status status;
    bool is_over;
    bool is_passed; /* it has stopped after a document that was looked at */
    uint64_t passed;
    uint64_t passed_bytes;

    /* Written by the page. */
    Batch *at_hand;
    Kept *kept;    /* the document it has */
    uint64_t keys; /* of the index, that were read for it */
};

typedef struct Helper {
    WorkerJob job;
    ReadAhead *ahead;
    bool is_posted; /* it is in the queue or at work; guarded by the lock */
} Helper;

struct ReadAhead {
    Helper helpers[WINDOW_MAX];
    pthread_mutex_t lock; /* guards what follows, up to 'parts' */
    pthread_cond_t changed;
    uint32_t refs; /* the page's and one per job that is posted */
    bool is_closed;
    size_t window;
    size_t at; /* the part that the page takes from */

    ReadAheadPart *parts; /* immutable until it is closed, as all that follows */
    size_t part_count;
    const PageRequest *request;
    IndexBudget budget; /* of each part */
    QueryOptions run_options;
    int64_t static_ticks;
    size_t window_max;
    bool tests; /* WHERE can be asked of a document by itself */
};

/* ---- one part, on the thread that runs it ---- */

static void begin(ReadAheadPart *part)
{
    const ReadAhead *ahead = part->ahead;
    ASSERT(!part->has_begun);
    part->has_begun = true;
    arena_init(&part->arena, PART_BLOCK_BYTES);
    run_init(&part->run, ahead->run_options, &part->arena, &part->error);
    part->run.slots = ARENA_NEW_ARRAY(&part->arena, Value, ahead->request->query->slot_count + 1);
    part->run.static_ticks = ahead->static_ticks;
    part->run.has_static_ticks = true;
    part->context = (ReadContext){
        .request = ahead->request,
        .run = &part->run,
        .err = &part->error,
        .budget = ahead->budget,
    };
    reading_begin(&part->context, &part->reading, &part->own, part->target);
    part->reading.mode = part->mode_wanted;
}

static Status keep(ReadAheadPart *part, Batch *batch, const Item *item)
{
    Kept *kept = ARENA_NEW(&batch->arena, Kept);
    Slice bytes = item_encode(&batch->arena, item);
    TRY(item_decode(bytes, &kept->item, &part->error));
    kept->item.bytes = item->bytes;
    kept->was_fetched = source_was_fetched(part->reading.source);
    kept->place = source_position(part->reading.source, &batch->arena);
    kept->passed = part->passed;
    kept->passed_bytes = part->passed_bytes;
    kept->keys = part->reading.planner.index.keys_read;
    part->passed = 0;
    part->passed_bytes = 0;
    *(batch->last != NULL ? &batch->last->next : &batch->first) = kept;
    batch->last = kept;
    batch->count++;
    batch->bytes += bytes.len;
    return STATUS_OK;
}

static bool is_late(const ReadAheadPart *part, uint64_t turn_end_us, bool *is_over)
{
    const QueryPageOptions *o = part->context.request->options;
    uint64_t now_us = clock_monotonic_us(o->clock);
    *is_over = o->deadline_us != 0 && now_us >= o->deadline_us;
    return *is_over || now_us >= turn_end_us;
}

/* Looks for documents until a turn ends. '*is_stopped' if no other turn follows. */
static Status look(ReadAheadPart *part, Batch *batch, uint64_t turn_end_us, bool *is_stopped)
{
    Reading *reading = &part->reading;
    if (reading->source == NULL)
        TRY(page_plan(&part->context, reading));
    for (uint32_t looked = 1;; looked++) {
        Item item;
        bool found = false;
        TRY(source_next(reading->source, &item, &found));
        if (!found) {
            part->is_over = !source_is_paused(reading->source);
            part->is_passed = false;
            *is_stopped = true;
            return STATUS_OK;
        }
        part->is_passed = true;
        if (!part->ahead->tests || reading_passes(&part->context, reading, &item)) {
            TRY(keep(part, batch, &item));
        } else {
            part->passed += source_was_fetched(reading->source);
            part->passed_bytes += item.bytes;
        }
        if (batch->count >= TURN_DOCUMENTS || batch->bytes >= TURN_BYTES)
            return STATUS_OK;
        if (looked % CLOCK_DOCUMENTS == 0 && is_late(part, turn_end_us, is_stopped))
            return STATUS_OK;
    }
}

static void batch_free(Batch *batch)
{
    if (batch == NULL)
        return;
    arena_done(&batch->arena);
    mem_free(batch);
}

/* A turn at a part that the caller has made RUNNING. Called with the lock, which is given back
 * meanwhile. */
static void take_turn(ReadAheadPart *part)
{
    ReadAhead *ahead = part->ahead;
    (void)pthread_mutex_unlock(&ahead->lock);
    if (!part->has_begun)
        begin(part);
    Batch *batch = MEM_NEW(Batch);
    arena_init(&batch->arena, ARENA_SMALL_BYTES);
    bool is_stopped = false;
    uint64_t turn_end_us = clock_monotonic_us(ahead->request->options->clock) + TURN_US;
    part->status = look(part, batch, turn_end_us, &is_stopped);
    (void)pthread_mutex_lock(&ahead->lock);
    part->state = is_stopped || part->status != STATUS_OK ? PART_STOPPED : PART_IDLE;
    if (batch->count == 0) {
        batch_free(batch);
    } else {
        *(part->last != NULL ? &part->last->next : &part->first) = batch;
        part->last = batch;
        part->waiting_count += batch->count;
        part->waiting_bytes += batch->bytes;
    }
    (void)pthread_cond_broadcast(&ahead->changed);
}

/* ---- helpers ---- */

/* With the lock. */
static bool is_full(const ReadAheadPart *part)
{
    const ReadAhead *ahead = part->ahead;
    return part->waiting_bytes >= KEPT_BYTES_MAX ||
           (page_request_streams(ahead->request) &&
            part->waiting_count > ahead->request->options->items_max);
}

/* A part of the window that has work and no thread. The first part is the page's own: if another
 * thread took it, the page would only wait for that thread. The caller holds the lock. */
static ReadAheadPart *find_work(ReadAhead *ahead)
{
    for (size_t i = ahead->at + 1; i < ahead->part_count && i < ahead->at + ahead->window; i++) {
        ReadAheadPart *part = &ahead->parts[i];
        if (part->state == PART_IDLE && !is_full(part))
            return part;
    }
    return NULL;
}

static void unref(ReadAhead *ahead)
{
    (void)pthread_mutex_lock(&ahead->lock);
    bool is_last = --ahead->refs == 0;
    (void)pthread_mutex_unlock(&ahead->lock);
    if (!is_last)
        return;
    (void)pthread_mutex_destroy(&ahead->lock);
    (void)pthread_cond_destroy(&ahead->changed);
    mem_free(ahead);
}

static void on_worker(WorkerJob *job);

/* With the lock. Where the queue is full the page does it all. */
static void post(Helper *helper)
{
    ReadAhead *ahead = helper->ahead;
    helper->is_posted = workers_post_spare(ahead->request->options->workers, &helper->job);
    ahead->refs += helper->is_posted;
}

/* As many as the window has beside the page itself. With the lock. */
static void invite(ReadAhead *ahead)
{
    for (size_t i = 0; i + 1 < ahead->window && find_work(ahead) != NULL; i++) {
        if (!ahead->helpers[i].is_posted)
            post(&ahead->helpers[i]);
    }
}

static void on_worker(WorkerJob *job)
{
    Helper *helper = CONTAINER_OF(job, Helper, job);
    ReadAhead *ahead = helper->ahead;
    (void)pthread_mutex_lock(&ahead->lock);
    ReadAheadPart *part = ahead->is_closed ? NULL : find_work(ahead);
    if (part != NULL) {
        part->state = PART_RUNNING;
        take_turn(part);
    }
    helper->is_posted = false;
    if (part != NULL && !ahead->is_closed && find_work(ahead) != NULL)
        post(helper);
    (void)pthread_mutex_unlock(&ahead->lock);
    unref(ahead);
}

/* ---- which parts there are ---- */

bool read_ahead_is_possible(const PageRequest *request)
{
    const QueryPageOptions *o = request->options;
    return o->workers != NULL && workers_turns(o->workers) > 1 && !o->is_brief &&
           !o->wants_explain && request->query->select->over_container &&
           !page_request_calls(request);
}

static ReadAhead *ahead_new(const PageReader *reader, size_t count)
{
    const PageRequest *request = reader->context.request;
    ReadAhead *ahead = MEM_NEW(ReadAhead);
    int failed = pthread_mutex_init(&ahead->lock, NULL);
    ASSERT(failed == 0);
    failed = pthread_cond_init(&ahead->changed, NULL);
    ASSERT(failed == 0);
    size_t threads = workers_turns(request->options->workers);
    ahead->refs = 1;
    ahead->request = request;
    ahead->window_max = threads < WINDOW_MAX ? threads : WINDOW_MAX;
    ahead->window = page_request_streams(request) ? 1 : ahead->window_max;
    ahead->tests = page_request_tests_documents(request);
    ahead->parts = MEM_NEW_ARRAY(ReadAheadPart, count);
    ahead->static_ticks = run_static_ticks(reader->context.run); /* the same for all */
    ahead->run_options = reader->context.run->options;
    ahead->run_options.random = NULL;
    ahead->run_options.memory = NULL; /* a part holds little, and the page may wait for it */
    ahead->run_options.bytes_max = PART_MEMORY_MAX;
    ahead->budget = reader->context.budget;
    ahead->budget.bytes_left = PAGE_SETS_BYTES_MAX / ahead->window_max;
    for (size_t i = 0; i < WINDOW_MAX; i++)
        ahead->helpers[i] = (Helper){.job = {.run = on_worker}, .ahead = ahead};
    return ahead;
}

static ReadAheadPart *add_part(ReadAhead *ahead, size_t target, PartitionView *view, Slice from,
                               Slice to)
{
    ReadAheadPart *part = &ahead->parts[ahead->part_count++];
    const QueryTarget *of = &ahead->request->options->targets[target];
    bool is_whole = slice_equal(from, of->epk_from) && slice_equal(to, of->epk_to);
    *part = (ReadAheadPart){
        .ahead = ahead,
        .target = target,
        .own = {.view = view, .epk_from = from, .epk_to = to, .is_whole = of->is_whole && is_whole},
    };
    return part;
}

ReadAhead *read_ahead_open_targets(const PageReader *reader)
{
    const QueryPageOptions *o = reader->context.request->options;
    ASSERT(reader->target < o->target_count);
    ReadAhead *ahead = ahead_new(reader, o->target_count - reader->target);
    for (size_t i = reader->target; i < o->target_count; i++) {
        const QueryTarget *target = &o->targets[i];
        bool is_begun = slice_compare(reader->done_to, target->epk_from) > 0;
        Slice from = is_begun ? reader->done_to : target->epk_from;
        Slice to = page_earlier_end(target->epk_to, page_reader_stop(reader));
        if (!page_is_range(from, to))
            continue;
        ReadAheadPart *part = add_part(ahead, i, target->view, from, to);
        part->mode_wanted = page_mode_wanted(reader->context.request);
    }
    return ahead;
}

/* The first eight bytes, as a number. */
static uint64_t head_of(Slice epk)
{
    char bytes[8] = {0};
    memcpy(bytes, epk.ptr, epk.len < sizeof(bytes) ? epk.len : sizeof(bytes));
    return be64_get(bytes);
}

/* Hashes are evenly spread: below this, their two highest bits are clear. */
#define HASHES_END ((uint64_t)1 << 62)

ReadAhead *read_ahead_open_slices(const PageReader *reader, const Reading *reading)
{
    const QueryPageOptions *o = reader->context.request->options;
    PartitionView *view = reading->target->view;
    PartitionKind kind = o->schema->key.kind;
    uint64_t first = reading->epk_from.len == 0 ? 0 : head_of(reading->epk_from);
    uint64_t end = reading->epk_to.len == 0 ? HASHES_END : head_of(reading->epk_to);
    end = end < HASHES_END ? end : HASHES_END;
    size_t items_min = o->slice_items == 0 ? SLICE_ITEMS : o->slice_items;
    size_t count = partition_view_items(view) / items_min;
    count = count < SLICES_MAX ? count : SLICES_MAX;
    bool is_even = kind == PARTITION_HASH_V2 || kind == PARTITION_MULTI_HASH;
    if (count < 2 || !is_even || end <= first || (end - first) / count == 0)
        return NULL;
    ReadAhead *ahead = ahead_new(reader, count);
    uint64_t step = (end - first) / count;
    Slice from = reading->epk_from;
    for (size_t i = 0; i < count; i++) {
        char *bytes = arena_alloc(reader->arena, sizeof(uint64_t));
        be64_put(bytes, first + step * (i + 1));
        Slice to = i + 1 < count ? slice_make(bytes, sizeof(uint64_t)) : reading->epk_to;
        PartitionView *own = partition_view_share(view);
        ReadAheadPart *part = add_part(ahead, reading->target_index, own, from, to);
        part->owns_view = true;
        part->mode_wanted = PAGE_EPK;
        from = to;
    }
    return ahead;
}

/* ---- the page's side ---- */

ReadAheadPart *read_ahead_next_part(ReadAhead *ahead, size_t *target, Slice *from, Slice *to)
{
    if (ahead->at == ahead->part_count) /* only the page changes it */
        return NULL;
    ReadAheadPart *part = &ahead->parts[ahead->at];
    *target = part->target;
    *from = part->own.epk_from;
    *to = part->own.epk_to;
    return part;
}

static void drop_kept(ReadAheadPart *part)
{
    if (part->kept != NULL)
        part->kept = part->kept->next;
    if (part->kept == NULL)
        batch_free(TAKE(part->at_hand));
}

static void take_batch(ReadAheadPart *part)
{
    Batch *batch = part->first;
    part->first = batch->next;
    if (part->first == NULL)
        part->last = NULL;
    part->waiting_count -= batch->count;
    part->waiting_bytes -= batch->bytes;
    part->at_hand = batch;
    part->kept = batch->first;
}

/* Waits until a helper has done something. That may need this page's turn at a processor
 * (base/workers.h), and the lock while this one waits to get a turn again. With the lock. */
static void wait_for_change(ReadAhead *ahead)
{
    worker_begin_wait();
    (void)pthread_cond_wait(&ahead->changed, &ahead->lock);
    (void)pthread_mutex_unlock(&ahead->lock);
    worker_end_wait();
    (void)pthread_mutex_lock(&ahead->lock);
}

/* Whether the page is late. A look at the clock may have to wait for a turn, so it is done without
 * the lock. */
static bool look_at_clock(ReadAhead *ahead)
{
    (void)pthread_mutex_unlock(&ahead->lock);
    bool is_late = page_request_is_late(ahead->request);
    (void)pthread_mutex_lock(&ahead->lock);
    return is_late;
}

/* Gets a batch, or sees that there is none, or none near enough. */
static void get_batch(const PageReader *reader, ReadAheadPart *part)
{
    ReadAhead *ahead = part->ahead;
    (void)pthread_mutex_lock(&ahead->lock);
    if (!page_reader_is_full(reader))
        invite(ahead);
    bool is_late = false;
    while (part->first == NULL && part->state != PART_STOPPED) {
        if (part->state == PART_RUNNING) {
            wait_for_change(ahead);
        } else if (page_reader_is_far(reader, part->passed) || is_late) {
            part->state = PART_STOPPED; /* as far as it is */
        } else {
            part->state = PART_RUNNING;
            take_turn(part);
            is_late = look_at_clock(ahead);
        }
    }
    if (part->first != NULL)
        take_batch(part);
    (void)pthread_mutex_unlock(&ahead->lock);
}

/* The part has stopped without a document, and no other thread touches it any more. */
static Status end_of_part(PageReader *reader, Reading *reading)
{
    ReadAheadPart *part = reading->part;
    ASSERT(part->state == PART_STOPPED);
    if (part->status != STATUS_OK) {
        *reader->context.err = part->error;
        return part->status;
    }
    page_reader_pass(reader, part->target, part->passed, part->passed_bytes);
    part->passed = 0;
    part->passed_bytes = 0;
    part->keys = part->reading.planner.index.keys_read;
    reading_set_state(reading, part->is_over ? READING_OVER : READING_PAUSED);
    return STATUS_OK;
}

static Status open_part(PageReader *reader UNUSED, Reading *reading)
{
    reading_set_state(reading, READING_EMPTY);
    return STATUS_OK;
}

static Status next_in_part(PageReader *reader, Reading *reading)
{
    ReadAheadPart *part = reading->part;
    drop_kept(part);
    if (part->kept == NULL)
        get_batch(reader, part);
    reading->mode = part->reading.mode;
    uint64_t passed = part->kept != NULL ? part->kept->passed : part->passed;
    if (page_reader_is_far(reader, passed)) {
        reading_set_state(reading, READING_FAR);
        return STATUS_OK;
    }
    if (part->kept == NULL)
        return end_of_part(reader, reading);
    reading->item = part->kept->item;
    part->keys = part->kept->keys;
    page_reader_pass(reader, part->target, passed, part->kept->passed_bytes);
    reading_set_state(reading, READING_READY);
    return STATUS_OK;
}

static bool was_fetched(const Reading *reading)
{
    ASSERT(reading->part->kept != NULL);
    return reading->part->kept->was_fetched;
}

static Slice position_in_part(const Reading *reading, Arena *arena, bool *is_passed)
{
    const ReadAheadPart *part = reading->part;
    *is_passed = part->kept == NULL && part->is_passed;
    if (part->kept != NULL)
        return arena_copy(arena, part->kept->place);
    return source_position(part->reading.source, arena);
}

uint64_t read_ahead_part_keys(const ReadAheadPart *part)
{
    return part->keys;
}

static void part_free(ReadAheadPart *part)
{
    batch_free(part->at_hand);
    for (Batch *batch = part->first; batch != NULL;) {
        Batch *next = batch->next;
        batch_free(batch);
        batch = next;
    }
    if (part->has_begun) {
        reading_done(&part->context, &part->reading);
        run_done(&part->run);
        arena_done(&part->arena);
    }
    if (part->owns_view)
        partition_view_close(part->own.view);
}

static void close_part(PageReader *reader, Reading *reading)
{
    ReadAheadPart *part = reading->part;
    ReadAhead *ahead = part->ahead;
    (void)pthread_mutex_lock(&ahead->lock);
    while (part->state == PART_RUNNING)
        wait_for_change(ahead);
    part->state = PART_STOPPED;
    ahead->at++;
    ahead->window *= ahead->window < ahead->window_max ? 2 : 1;
    (void)pthread_mutex_unlock(&ahead->lock);
    if (!reader->is_sliced) /* the plan was made before, for all slices together */
        page_work_add_keys(reader->work, part->target, part->keys);
    if (part->has_begun)
        page_notes_indexes(reader->context.notes, &part->reading);
    part_free(part);
}

const ReadingCalls READ_AHEAD_CALLS = {
    .open = open_part,
    .next = next_in_part,
    .was_fetched = was_fetched,
    .position = position_in_part,
    .close = close_part,
};

void read_ahead_close(ReadAhead *ahead)
{
    if (ahead == NULL)
        return;
    (void)pthread_mutex_lock(&ahead->lock);
    ahead->is_closed = true;
    for (size_t i = ahead->at; i < ahead->part_count; i++) {
        while (ahead->parts[i].state == PART_RUNNING)
            wait_for_change(ahead);
    }
    (void)pthread_mutex_unlock(&ahead->lock);
    for (size_t i = ahead->at; i < ahead->part_count; i++)
        part_free(&ahead->parts[i]);
    mem_free(TAKE(ahead->parts));
    unref(ahead);
}
