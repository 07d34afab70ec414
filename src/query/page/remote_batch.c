/* remote_batch.c - see remote_batch.h: the side of the node that serves a target. */
#include "query/page/remote_batch.h"

#include "query/page/group_list_int.h"
#include "query/page/page_int.h"
#include "query/page/remote_format_int.h"

enum { CLOCK_DOCUMENTS = 16 };

typedef struct BatchRun {
    RemoteAsk ask;
    QueryPageOptions
        options; /* with the deadline of this batch, and the target as it is asked for */
    QueryTarget target;
    PageRequest request;
    Run run;
    ReadContext context;
    PageNotes notes;
    Reading reading;
    Arena *arena;
    Buf documents;
    RemoteBatch batch;
    uint32_t looked;
    bool tests; /* WHERE can be asked of a document by itself */
    uint64_t bytes_read;
    uint64_t documents_read;
} BatchRun;

static Slice later(Slice a, Slice b)
{
    return slice_compare(a, b) > 0 ? a : b;
}

/* ---- what is asked ---- */

/* The bounds that were asked for, within what the request may see here. */
static void choose_target(BatchRun *b, const QueryTarget *of)
{
    b->target = *of;
    b->target.epk_from = later(b->ask.epk_from, of->epk_from);
    b->target.epk_to = page_earlier_end(b->ask.epk_to, of->epk_to);
    b->target.is_whole = of->is_whole && b->ask.is_whole &&
                         slice_equal(b->target.epk_from, of->epk_from) &&
                         slice_equal(b->target.epk_to, of->epk_to);
}

static void choose_deadline(BatchRun *b, uint64_t now_us)
{
    uint64_t end_us = now_us + b->ask.time_us;
    bool is_sooner = b->options.deadline_us == 0 || end_us < b->options.deadline_us;
    if (b->ask.time_us != 0 && end_us > now_us && is_sooner)
        b->options.deadline_us = end_us;
}

static void begin(BatchRun *b, const Query *query, const QueryPageOptions *options, Error *err)
{
    uint64_t now_us = clock_monotonic_us(options->clock);
    b->options = *options;
    choose_deadline(b, now_us);
    choose_target(b, &options->targets[0]);
    b->options.targets = &b->target;
    b->options.target_count = 1;
    b->request = (PageRequest){
        .options = &b->options,
        .query = query,
        .index_deadline_us = page_index_deadline_us(&b->options, now_us),
        .way = b->ask.way,
        .is_ordered = b->ask.is_ordered,
        .needs_system = page_needs_system(query, b->ask.is_ordered),
        .rows_wanted = b->ask.rows_wanted,
        .sum_targets = b->ask.targets,
    };
    b->tests = page_request_tests_documents(&b->request);
    QueryOptions run_options = {
        .steps_max = options->steps_max,
        .bytes_max = options->memory_max,
        .memory = options->memory,
        .clock = options->clock,
        .geo = options->geo,
    };
    run_init(&b->run, run_options, b->arena, err);
    b->run.slots = ARENA_NEW_ARRAY(b->arena, Value, query->slot_count + 1);
    b->run.static_ticks = b->ask.static_ticks;
    b->run.has_static_ticks = true;
    b->notes = (PageNotes){.arena = b->arena, .options = &b->options};
    b->context = (ReadContext){
        .request = &b->request,
        .run = &b->run,
        .err = err,
        .notes = &b->notes,
        .plan_random = options->plan_random,
        .budget = {.keys_left = options->index_keys_max == 0 ? QUERY_INDEX_KEYS_MAX
                                                             : options->index_keys_max,
                   .bytes_left = PAGE_SETS_BYTES_MAX,
                   .clock = options->clock},
    };
    reading_begin(&b->context, &b->reading, &b->target, 0);
    b->reading.mode = b->ask.mode;
    b->reading.position = b->ask.place;
}

/* ---- documents ---- */

static bool is_at_place(const BatchRun *b, Slice place)
{
    return b->ask.is_after && b->looked == 0 && slice_equal(place, b->ask.place);
}

static Status keep(BatchRun *b, const Item *item, Slice place, Error *err)
{
    RemoteDocument document = {
        .item = *item,
        .place = place,
        .was_fetched = source_was_fetched(b->reading.source),
        .passed = b->batch.passed,
        .keys = b->reading.planner.index.keys_read,
    };
    Slice bytes = item_encode(&b->run.rows, item);
    remote_document_write(&document, bytes, &b->documents);
    b->batch.passed = (RemotePassed){0};
    b->batch.count++;
    if (buf_full(&b->documents))
        return error_set(err, STATUS_TOO_LARGE, SUB_NONE,
                         "A document is too large to be sent to another node.");
    return STATUS_OK;
}

static Status look_at(BatchRun *b, const Item *item, Error *err)
{
    bool was_fetched = source_was_fetched(b->reading.source);
    bool passes = !b->tests || reading_passes(&b->context, &b->reading, item);
    arena_reset(&b->run.rows);
    Slice place = source_position(b->reading.source, &b->run.rows);
    if (is_at_place(b, place))
        return STATUS_OK;
    b->looked++;
    b->documents_read += was_fetched;
    b->bytes_read += item->bytes;
    b->batch.is_passed = true;
    if (passes)
        return keep(b, item, place, err);
    b->batch.passed.documents += was_fetched;
    b->batch.passed.bytes += item->bytes;
    return STATUS_OK;
}

static bool is_full(const BatchRun *b)
{
    if (b->looked == 0)
        return false; /* it has to come further */
    bool is_late = b->looked % CLOCK_DOCUMENTS == 0 && b->options.deadline_us != 0 &&
                   clock_monotonic_us(b->options.clock) >= b->options.deadline_us;
    return b->batch.count >= b->ask.count_max || b->looked >= b->ask.looks_max ||
           b->documents.len >= b->ask.bytes_max || is_late;
}

static Status read_documents(BatchRun *b, Error *err)
{
    if (!page_is_range(b->target.epk_from, b->target.epk_to)) {
        b->batch.is_over = true;
        b->batch.mode = b->ask.mode == PAGE_ANY ? PAGE_EPK : b->ask.mode;
        return STATUS_OK;
    }
    TRY(page_plan(&b->context, &b->reading));
    b->batch.mode = b->reading.mode;
    bool found = true;
    while (found && !is_full(b)) {
        Item item;
        TRY(source_next(b->reading.source, &item, &found));
        if (found) {
            TRY(look_at(b, &item, err));
        } else {
            b->batch.is_over = !source_is_paused(b->reading.source);
            b->batch.is_passed = false;
        }
    }
    if (!b->batch.is_over)
        b->batch.place = source_position(b->reading.source, b->arena);
    return STATUS_OK;
}

static Status answer_documents(BatchRun *b, Buf *answer, Error *err)
{
    if (b->ask.is_ordered) {
        TRY(plan_order(&b->reading.planner, &b->reading.order));
        if (b->reading.order == NULL) {
            remote_refused_write(answer);
            return STATUS_OK;
        }
        b->batch.numbers_down = b->reading.order->numbers_down;
    }
    TRY(read_documents(b, err));
    b->batch.keys = b->reading.planner.index.keys_read;
    b->batch.documents = buf_view(&b->documents);
    remote_batch_write(&b->batch, answer);
    return STATUS_OK;
}

/* ---- groups ---- */

static Status answer_groups(BatchRun *b, Buf *answer)
{
    size_t aggregates = b->request.query->select->aggregate_count;
    GroupList *list = NULL;
    TRY(page_count_groups(&b->context, &b->reading, b->arena, &list));
    if (list != NULL)
        group_list_write(list, aggregates, &b->documents);
    RemoteGroups groups = {
        .is_told = list != NULL && !buf_full(&b->documents), /* otherwise as documents */
        .keys = b->reading.planner.index.keys_read,
    };
    if (groups.is_told)
        groups.list = buf_view(&b->documents);
    remote_groups_write(&groups, answer);
    return STATUS_OK;
}

Status query_batch(const Query *query, const QueryPageOptions *options, Slice asked, Arena *arena,
                   Buf *answer, QueryTargetWork *work, Json *plan, Error *err)
{
    ASSERT(options->target_count == 1);
    TRY(query_check_available(query, err));
    BatchRun *b = ARENA_NEW(arena, BatchRun);
    b->arena = arena;
    if (!remote_ask_read(asked, &b->ask) || !query->select->over_container ||
        (b->ask.is_ordered && query->select->order_by == NULL))
        return remote_malformed(err);
    begin(b, query, options, err);
    buf_init(&b->documents, QUERY_BATCH_ANSWER_BYTES_MAX);
    Status status =
        b->ask.kind == REMOTE_GROUPS ? answer_groups(b, answer) : answer_documents(b, answer, err);
    *work = (QueryTargetWork){
        .is_visited = true,
        .documents_read = b->documents_read,
        .document_bytes_read = b->bytes_read,
        .index_keys_read = b->reading.planner.index.keys_read,
    };
    *plan = b->notes.plan_count > 0 ? b->notes.plans[0] : (Json){0};
    buf_done(&b->documents);
    reading_done(&b->context, &b->reading);
    run_done(&b->run);
    return status;
}
