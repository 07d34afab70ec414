/* ahead.c - see ahead_int.h. */
#include "query/ahead_int.h"

#include "base/encoding.h"
#include "base/mem.h"
#include "query/functions_int.h"

#include <pthread.h>

enum {
    SLICE_ITEMS = 8192, /* about so many are in a slice, */
    SLICES_MAX = 512,   /* and a page that ends has read some in vain */
    TURN_US = 2000,
    TURN_DOCUMENTS = 64, /* kept, before others get them; or: */
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

struct Part {
    Ahead *ahead;
    size_t target; /* of the page */
    QueryTarget own;
    bool owns_view;
    PageMode mode_wanted;

    /* Guarded by the lock of Ahead. */
    PartState state;
    Batch *first; /* found, and not taken */
    Batch *last;
    size_t waiting_count;
    size_t waiting_bytes;

    /* Whoever has it RUNNING. */
    bool has_begun;
    QueryPageOptions options;
    QueryPage out;
    QueryTargetWork work; /* not the page's: it takes what it needs of it */
    Page page;
    Run run;
    Reading reading;
    Arena arena;
    Error error;
    Status status;
    bool is_over;
    bool is_passed; /* it has stopped behind a document that was looked at */
    uint64_t passed;
    uint64_t passed_bytes;

    /* The page's. */
    Batch *at_hand;
    Kept *kept;    /* the document it has */
    uint64_t keys; /* of the index, that were read for it */
};

typedef struct Helper {
    WorkerJob job;
    Ahead *ahead;
    bool is_posted; /* or at work; guarded by the lock */
} Helper;

struct Ahead {
    Helper helpers[WINDOW_MAX];
    pthread_mutex_t lock; /* guards what follows, up to 'parts' */
    pthread_cond_t changed;
    uint32_t refs; /* the page's and one per job that is posted */
    bool is_closed;
    size_t window;
    size_t at; /* the part that the page takes from */

    Part *parts; /* immutable until it is closed, as all that follows */
    size_t part_count;
    const QueryPageOptions *options;
    Page like; /* what parts have of the page, as it was in the beginning */
    QueryOptions run_options;
    int64_t static_ticks;
    size_t window_max;
    bool tests; /* WHERE can be asked of a document by itself */
};

/* ---- one part, by whoever runs it ---- */

static void begin(Part *part)
{
    const Ahead *ahead = part->ahead;
    part->has_begun = true;
    part->options = *ahead->options;
    part->options.targets = &part->own;
    part->options.target_count = 1;
    part->options.plan_random = NULL;
    part->options.workers = NULL;
    arena_init(&part->arena, PART_BLOCK_BYTES);
    run_init(&part->run, ahead->run_options, &part->arena, &part->error);
    part->run.slots = ARENA_NEW_ARRAY(&part->arena, Value, ahead->like.query->slot_count + 1);
    part->run.static_ticks = ahead->static_ticks;
    part->run.has_static_ticks = true;
    part->page = ahead->like;
    part->page.options = &part->options;
    part->page.run = &part->run;
    part->page.arena = &part->arena;
    part->page.err = &part->error;
    part->page.out = &part->out;
    part->page.work = &part->work;
    reading_begin(&part->page, &part->reading, 0);
    part->reading.mode = part->mode_wanted;
}

static Status ask_where(Part *part, const Item *item, Value *answer)
{
    Run *run = &part->run;
    arena_reset(&run->sources);
    arena_reset(&run->rows);
    run->scratch = &run->sources;
    TRY(plan_bind(&part->reading.planner, item, &run->sources));
    run->scratch = &run->rows;
    TRY(run_charge(run, 1));
    return eval(run, part->page.query->select->where, answer);
}

/* What is too much for a part, which has less memory than the page, is left to the page: it asks
 * again, and fails if it has to. */
static bool passes(Part *part, const Item *item)
{
    Value answer;
    return !part->ahead->tests || ask_where(part, item, &answer) != STATUS_OK ||
           (answer.type == JSON_BOOL && answer.boolean);
}

static Status keep(Part *part, Batch *batch, const Item *item)
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

static bool is_late(const Part *part, uint64_t turn_end_us, bool *is_over)
{
    const QueryPageOptions *o = &part->options;
    uint64_t now_us = clock_monotonic_us(o->clock);
    *is_over = o->deadline_us != 0 && now_us >= o->deadline_us;
    return *is_over || now_us >= turn_end_us;
}

/* Looks for documents until a turn is over. '*is_stopped': for good. */
static Status look(Part *part, Batch *batch, uint64_t turn_end_us, bool *is_stopped)
{
    Reading *reading = &part->reading;
    if (reading->source == NULL)
        TRY(page_plan(&part->page, reading));
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
        if (passes(part, &item)) {
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
static void take_turn(Part *part)
{
    Ahead *ahead = part->ahead;
    (void)pthread_mutex_unlock(&ahead->lock);
    if (!part->has_begun)
        begin(part);
    Batch *batch = MEM_NEW(Batch);
    arena_init(&batch->arena, ARENA_SMALL_BYTES);
    bool is_stopped = false;
    uint64_t turn_end_us = clock_monotonic_us(part->options.clock) + TURN_US;
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
static bool is_full(const Part *part)
{
    const Ahead *ahead = part->ahead;
    return part->waiting_bytes >= KEPT_BYTES_MAX ||
           (ahead->like.is_streaming && part->waiting_count > ahead->options->items_max);
}

/* A part of the window that nobody works on, though there is work. The first is the page's own: it
 * would only wait for whoever takes it away. With the lock. */
static Part *find_work(Ahead *ahead)
{
    for (size_t i = ahead->at + 1; i < ahead->part_count && i < ahead->at + ahead->window; i++) {
        Part *part = &ahead->parts[i];
        if (part->state == PART_IDLE && !is_full(part))
            return part;
    }
    return NULL;
}

static void unref(Ahead *ahead)
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
    Ahead *ahead = helper->ahead;
    helper->is_posted = workers_post_spare(ahead->options->workers, &helper->job);
    ahead->refs += helper->is_posted;
}

/* As many as the window has beside the page itself. With the lock. */
static void invite(Ahead *ahead)
{
    for (size_t i = 0; i + 1 < ahead->window && find_work(ahead) != NULL; i++) {
        if (!ahead->helpers[i].is_posted)
            post(&ahead->helpers[i]);
    }
}

static void on_worker(WorkerJob *job)
{
    Helper *helper = CONTAINER_OF(job, Helper, job);
    Ahead *ahead = helper->ahead;
    (void)pthread_mutex_lock(&ahead->lock);
    Part *part = ahead->is_closed ? NULL : find_work(ahead);
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

bool ahead_is_possible(const Page *page)
{
    const QueryPageOptions *o = page->options;
    return o->workers != NULL && workers_turns(o->workers) > 1 && !o->is_brief &&
           !o->wants_explain && page->query->select->over_container;
}

static Status find_unsteady(void *context, Node *node)
{
    bool *found = context;
    *found = *found ||
             (node->kind == NODE_CALL && (node->call.function->flags & FUNCTION_UNSTEADY) != 0);
    return *found ? STATUS_OK : node_each_child(node, find_unsteady, context);
}

/* Whether a document by itself tells what WHERE says, each time the same. */
static bool tests_documents(const Select *select)
{
    const Source *source = select->sources;
    bool is_alone = select->where != NULL && source->next == NULL && source->subquery == NULL &&
                    !source->iterate;
    bool is_unsteady = false;
    Node *where = (Node *)(uintptr_t)select->where;
    return is_alone && find_unsteady(&is_unsteady, where) == STATUS_OK && !is_unsteady;
}

static Ahead *ahead_new(Page *page, size_t count)
{
    Ahead *ahead = MEM_NEW(Ahead);
    int failed = pthread_mutex_init(&ahead->lock, NULL);
    ASSERT(failed == 0);
    failed = pthread_cond_init(&ahead->changed, NULL);
    ASSERT(failed == 0);
    size_t threads = workers_turns(page->options->workers);
    ahead->refs = 1;
    ahead->options = page->options;
    ahead->window_max = threads < WINDOW_MAX ? threads : WINDOW_MAX;
    ahead->window = page->is_streaming ? 1 : ahead->window_max;
    ahead->tests = tests_documents(page->query->select);
    ahead->parts = MEM_NEW_ARRAY(Part, count);
    ahead->static_ticks = run_static_ticks(page->run); /* the same for all */
    ahead->run_options = page->run->options;
    ahead->run_options.random = NULL;
    ahead->run_options.memory = NULL; /* a part holds little, and the page may wait for it */
    ahead->run_options.bytes_max = PART_MEMORY_MAX;
    ahead->like = (Page){
        .rows_wanted = page->rows_wanted,
        .query = page->query,
        .budget = page->budget,
        .index_deadline_us = page->index_deadline_us,
        .way = page->way,
        .is_streaming = page->is_streaming,
        .needs_system = page->needs_system,
    };
    ahead->like.budget.bytes_left = PAGE_SETS_BYTES_MAX / ahead->window_max;
    for (size_t i = 0; i < WINDOW_MAX; i++)
        ahead->helpers[i] = (Helper){.job = {.run = on_worker}, .ahead = ahead};
    return ahead;
}

static Part *add_part(Ahead *ahead, size_t target, PartitionView *view, Slice from, Slice to)
{
    Part *part = &ahead->parts[ahead->part_count++];
    const QueryTarget *of = &ahead->options->targets[target];
    bool is_whole = slice_equal(from, of->epk_from) && slice_equal(to, of->epk_to);
    *part = (Part){
        .ahead = ahead,
        .target = target,
        .own = {.view = view, .epk_from = from, .epk_to = to, .is_whole = of->is_whole && is_whole},
    };
    return part;
}

Ahead *ahead_open_targets(Page *page)
{
    const QueryPageOptions *o = page->options;
    Ahead *ahead = ahead_new(page, o->target_count - page->target);
    for (; page->target < o->target_count; page->target++) {
        const QueryTarget *target = &o->targets[page->target];
        bool is_begun = slice_compare(page->done_to, target->epk_from) > 0;
        Slice from = is_begun ? page->done_to : target->epk_from;
        Slice to = page_earlier_end(target->epk_to, page->stop);
        if (!page_is_range(from, to))
            continue;
        Part *part = add_part(ahead, page->target, target->view, from, to);
        part->mode_wanted = page_mode_wanted(page);
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

Ahead *ahead_open_slices(Page *page, const Reading *reading)
{
    const QueryPageOptions *o = page->options;
    PartitionView *view = o->targets[reading->target].view;
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
    Ahead *ahead = ahead_new(page, count);
    uint64_t step = (end - first) / count;
    Slice from = reading->epk_from;
    for (size_t i = 0; i < count; i++) {
        char *bytes = arena_alloc(page->arena, sizeof(uint64_t));
        be64_put(bytes, first + step * (i + 1));
        Slice to = i + 1 < count ? slice_make(bytes, sizeof(uint64_t)) : reading->epk_to;
        PartitionView *own = partition_view_share(view);
        Part *part = add_part(ahead, reading->target, own, from, to);
        part->owns_view = true;
        part->mode_wanted = PAGE_EPK;
        from = to;
    }
    return ahead;
}

/* ---- the page's side ---- */

Part *ahead_next_part(Ahead *ahead, size_t *target, Slice *from, Slice *to)
{
    if (ahead->at == ahead->part_count) /* only the page changes it */
        return NULL;
    Part *part = &ahead->parts[ahead->at];
    *target = part->target;
    *from = part->own.epk_from;
    *to = part->own.epk_to;
    return part;
}

static void drop_kept(Part *part)
{
    if (part->kept != NULL)
        part->kept = part->kept->next;
    if (part->kept == NULL)
        batch_free(TAKE(part->at_hand));
}

static void take_batch(Part *part)
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

/* A full page looks only so far for another row, however far others have looked. */
static bool is_far(const Page *page, uint64_t passed)
{
    return page->is_looking && passed > page->looks_left;
}

/* Waits until somebody who helps has done something. That may need this page's turn at a processor
 * (base/workers.h), and the lock while this one waits to get a turn again. With the lock. */
static void wait_for_change(Ahead *ahead)
{
    worker_begin_wait();
    (void)pthread_cond_wait(&ahead->changed, &ahead->lock);
    (void)pthread_mutex_unlock(&ahead->lock);
    worker_end_wait();
    (void)pthread_mutex_lock(&ahead->lock);
}

/* Whether the page is late. Whoever looks may have to wait, so it is done without the lock. */
static bool look_at_clock(const Page *page, Ahead *ahead)
{
    (void)pthread_mutex_unlock(&ahead->lock);
    bool is_late = page_is_late(page);
    (void)pthread_mutex_lock(&ahead->lock);
    return is_late;
}

/* Gets a batch, or sees that there is none, or none near enough. */
static void get_batch(const Page *page, Part *part)
{
    Ahead *ahead = part->ahead;
    (void)pthread_mutex_lock(&ahead->lock);
    if (!page_is_full(page))
        invite(ahead);
    bool is_late = false;
    while (part->first == NULL && part->state != PART_STOPPED) {
        if (part->state == PART_RUNNING) {
            wait_for_change(ahead);
        } else if (is_far(page, part->passed) || is_late) {
            part->state = PART_STOPPED; /* as far as it is */
        } else {
            part->state = PART_RUNNING;
            take_turn(part);
            is_late = look_at_clock(page, ahead);
        }
    }
    if (part->first != NULL)
        take_batch(part);
    (void)pthread_mutex_unlock(&ahead->lock);
}

static void add_passed(Page *page, const Part *part, uint64_t documents, uint64_t bytes)
{
    page->looked += documents;
    page->looks_left -= page->is_looking ? (uint32_t)documents : 0;
    page_add_documents(page, part->target, documents, bytes);
}

/* The part has stopped without a document, and nobody else touches it any more. */
static Status end_of_part(Page *page, Part *part, bool *is_paused)
{
    if (part->status != STATUS_OK) {
        *page->err = part->error;
        return part->status;
    }
    add_passed(page, part, part->passed, part->passed_bytes);
    part->passed = 0;
    part->passed_bytes = 0;
    part->keys = part->reading.planner.index.keys_read;
    *is_paused = !part->is_over;
    return STATUS_OK;
}

Status part_next(Page *page, Reading *reading, bool *found, bool *is_paused)
{
    Part *part = reading->part;
    *found = false;
    *is_paused = false;
    drop_kept(part);
    if (part->kept == NULL)
        get_batch(page, part);
    uint64_t passed = part->kept != NULL ? part->kept->passed : part->passed;
    if (is_far(page, passed)) {
        page->is_looked_out = true;
        *is_paused = true;
        return STATUS_OK;
    }
    if (part->kept == NULL)
        return end_of_part(page, part, is_paused);
    *found = true;
    reading->item = part->kept->item;
    part->keys = part->kept->keys;
    add_passed(page, part, passed, part->kept->passed_bytes);
    return STATUS_OK;
}

bool part_was_fetched(const Part *part)
{
    return part->kept->was_fetched;
}

uint64_t part_keys(const Part *part)
{
    return part->keys;
}

PageMode part_mode(const Part *part)
{
    return part->reading.mode;
}

Slice part_position(const Part *part, Arena *arena, bool *is_passed)
{
    *is_passed = part->kept == NULL && part->is_passed;
    if (part->kept != NULL)
        return arena_copy(arena, part->kept->place);
    return source_position(part->reading.source, arena);
}

static void part_free(Part *part)
{
    batch_free(part->at_hand);
    for (Batch *batch = part->first; batch != NULL;) {
        Batch *next = batch->next;
        batch_free(batch);
        batch = next;
    }
    if (part->has_begun) {
        reading_end(&part->page, &part->reading);
        run_done(&part->run);
        arena_done(&part->arena);
    }
    if (part->owns_view)
        partition_view_close(part->own.view);
}

void part_end(Page *page, Part *part)
{
    Ahead *ahead = part->ahead;
    (void)pthread_mutex_lock(&ahead->lock);
    while (part->state == PART_RUNNING)
        wait_for_change(ahead);
    part->state = PART_STOPPED;
    ahead->at++;
    ahead->window *= ahead->window < ahead->window_max ? 2 : 1;
    (void)pthread_mutex_unlock(&ahead->lock);
    if (!page->is_sliced) /* the plan was made before, for all slices together */
        page->work[part->target].index_keys_read += part->keys;
    if (part->has_begun)
        explain_indexes(page, &part->reading);
    part_free(part);
}

void ahead_close(Ahead *ahead)
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
