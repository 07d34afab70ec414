/* memory_faults.c - the memory engine's life: its beginning and end, and its faults. */
#include "base/array.h"
#include "base/mem.h"
#include "journal/memory/memory_journal_int.h"

MemoryJournalEngine *memory_journal_engine_new(uint64_t seed)
{
    MemoryJournalEngine *engine = MEM_NEW(MemoryJournalEngine);
    (void)pthread_mutex_init(&engine->lock, NULL);
    engine->visible = MEM_NEW(MemoryState);
    engine->timeline = 1;
    engine->session = 1;
    engine->clock = clock_real();
    random_init(&engine->random, seed);
    engine->system = random_u64(&engine->random);
    return engine;
}

static void free_delayed(DelayedStatement *delayed)
{
    arena_done(&delayed->arena);
    mem_free(delayed);
}

void memory_journal_engine_free(MemoryJournalEngine *engine)
{
    if (engine == NULL)
        return;
    for (size_t i = 0; i < engine->delayed_count; i++)
        free_delayed(engine->delayed[i]);
    mem_free(engine->delayed);
    memory_state_free(engine->visible);
    memory_state_free(engine->hidden);
    memory_state_free(engine->standby);
    memory_state_free(engine->backup);
    (void)pthread_mutex_destroy(&engine->lock);
    mem_free(engine);
}

void memory_journal_open(MemoryJournalEngine *engine, const uint8_t secret[JOURNAL_SECRET_BYTES],
                         const MemoryJournalOptions *options, Journal **out)
{
    MemoryJournal *memory = MEM_NEW(MemoryJournal);
    const Clock *clock = options == NULL || options->clock == NULL ? clock_real() : options->clock;
    bool has_no_pause = options != NULL && options->has_no_pause;
    journal_init(&memory->journal, &MEMORY_JOURNAL_OPS, clock, secret, has_no_pause ? 0 : 2,
                 options == NULL ? 0 : options->format);
    memory->engine = engine;
    *out = &memory->journal;
}

/* ---- connections ---- */

void memory_journal_fail(Journal *journal, JournalLane lane, MemoryJournalFault fault,
                         unsigned skip, unsigned count)
{
    MemoryJournal *memory = CONTAINER_OF(journal, MemoryJournal, journal);
    ASSERT(journal->ops == &MEMORY_JOURNAL_OPS);
    pthread_mutex_lock(&memory->engine->lock);
    for (unsigned i = 0; i < JOURNAL_LANE_COUNT; i++) {
        if (lane == JOURNAL_LANE_COUNT || lane == (JournalLane)i)
            memory->faults[i] = (LaneFault){.fault = fault, .skip = skip, .count = count};
    }
    pthread_mutex_unlock(&memory->engine->lock);
}

void memory_journal_cut(Journal *journal, bool is_cut)
{
    MemoryJournal *memory = CONTAINER_OF(journal, MemoryJournal, journal);
    ASSERT(journal->ops == &MEMORY_JOURNAL_OPS);
    pthread_mutex_lock(&memory->engine->lock);
    memory->is_cut = is_cut;
    pthread_mutex_unlock(&memory->engine->lock);
}

void memory_journal_set_unreadable(Journal *journal, uint64_t space)
{
    MemoryJournal *memory = CONTAINER_OF(journal, MemoryJournal, journal);
    ASSERT(journal->ops == &MEMORY_JOURNAL_OPS);
    pthread_mutex_lock(&memory->engine->lock);
    memory->unreadable = space;
    pthread_mutex_unlock(&memory->engine->lock);
}

size_t memory_journal_delayed(MemoryJournalEngine *engine)
{
    pthread_mutex_lock(&engine->lock);
    size_t count = engine->delayed_count;
    pthread_mutex_unlock(&engine->lock);
    return count;
}

bool memory_journal_deliver(MemoryJournalEngine *engine, size_t index)
{
    pthread_mutex_lock(&engine->lock);
    bool has_changed = memory_engine_deliver(engine, index);
    pthread_mutex_unlock(&engine->lock);
    return has_changed;
}

bool memory_engine_deliver(MemoryJournalEngine *engine, size_t index)
{
    ASSERT(index < engine->delayed_count);
    DelayedStatement *delayed = engine->delayed[index];
    engine->delayed_count--;
    memmove(&engine->delayed[index], &engine->delayed[index + 1],
            ARRAY_ELEMENT_SIZE(engine->delayed) * (engine->delayed_count - index));
    MemoryResult result = {0};
    Error err;
    /* The one who has sent it does not wait any more, so a refusal goes to nobody. */
    Status ignored = memory_engine_apply(engine, delayed->statement, &result, &err);
    (void)ignored;
    free_delayed(delayed);
    return result.has_changed;
}

void memory_engine_delay(MemoryJournalEngine *engine, const MemoryStatement *statement)
{
    DelayedStatement *delayed = MEM_NEW(DelayedStatement);
    arena_init(&delayed->arena, 1024);
    delayed->statement = memory_statement_copy(&delayed->arena, statement);
    ARRAY_GROW(engine->delayed, engine->delayed_count, engine->delayed_capacity, 16);
    engine->delayed[engine->delayed_count++] = delayed;
}

void memory_journal_set_chaos(MemoryJournalEngine *engine, const MemoryJournalChaos *chaos)
{
    pthread_mutex_lock(&engine->lock);
    engine->has_chaos = chaos != NULL;
    if (chaos != NULL)
        engine->chaos = *chaos;
    pthread_mutex_unlock(&engine->lock);
}

static MemoryJournalFault draw_fault(MemoryJournalEngine *engine)
{
    const MemoryJournalChaos *chaos = &engine->chaos;
    if (engine->delayed_count > 0 && random_below(&engine->random, 1000) < chaos->deliver)
        (void)memory_engine_deliver(engine, random_below(&engine->random, engine->delayed_count));
    const struct {
        unsigned share;
        MemoryJournalFault fault;
    } rows[] = {{chaos->lose_request, MEMORY_JOURNAL_LOSE_REQUEST},
                {chaos->lose_answer, MEMORY_JOURNAL_LOSE_ANSWER},
                {chaos->delay, MEMORY_JOURNAL_DELAY},
                {chaos->refuse, MEMORY_JOURNAL_REFUSE}};
    uint64_t number = random_below(&engine->random, 1000);
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        if (number < rows[i].share)
            return rows[i].fault;
        number -= rows[i].share;
    }
    return MEMORY_JOURNAL_NO_FAULT;
}

MemoryJournalFault memory_engine_fault(MemoryJournal *memory, JournalLane lane)
{
    LaneFault *told = &memory->faults[lane];
    if (told->count > 0 && told->skip > 0) {
        told->skip--;
    } else if (told->count > 0) {
        told->count--;
        return told->fault;
    }
    return memory->engine->has_chaos ? draw_fault(memory->engine) : MEMORY_JOURNAL_NO_FAULT;
}

void memory_journal_set_clock(MemoryJournalEngine *engine, const Clock *clock)
{
    pthread_mutex_lock(&engine->lock);
    engine->clock = clock;
    pthread_mutex_unlock(&engine->lock);
}

void memory_journal_set_latency(MemoryJournalEngine *engine, uint64_t us)
{
    pthread_mutex_lock(&engine->lock);
    engine->latency_us = us;
    pthread_mutex_unlock(&engine->lock);
}

/* ---- the engine ---- */

void memory_journal_set_down(MemoryJournalEngine *engine, bool is_down)
{
    pthread_mutex_lock(&engine->lock);
    engine->is_down = is_down;
    pthread_mutex_unlock(&engine->lock);
}

static void replace(MemoryState **at, MemoryState *state)
{
    memory_state_free(*at);
    *at = state;
}

/* What waited is visible now. */
static void reveal(MemoryJournalEngine *engine)
{
    if (engine->hidden == NULL)
        return;
    replace(&engine->visible, TAKE(engine->hidden));
    memory_state_unlock_all(engine->visible);
}

void memory_journal_set_standby(MemoryJournalEngine *engine, bool is_there)
{
    pthread_mutex_lock(&engine->lock);
    if (is_there) {
        reveal(engine);
        replace(&engine->standby, NULL);
    } else if (engine->standby == NULL) {
        engine->standby = memory_state_copy(engine->visible);
    }
    pthread_mutex_unlock(&engine->lock);
}

void memory_journal_crash_restart(MemoryJournalEngine *engine)
{
    pthread_mutex_lock(&engine->lock);
    reveal(engine);
    engine->session++;
    pthread_mutex_unlock(&engine->lock);
}

void memory_journal_promote(MemoryJournalEngine *engine)
{
    pthread_mutex_lock(&engine->lock);
    if (engine->standby != NULL)
        replace(&engine->visible, TAKE(engine->standby));
    replace(&engine->hidden, NULL);
    engine->timeline++;
    engine->session++;
    pthread_mutex_unlock(&engine->lock);
}

void memory_journal_backup(MemoryJournalEngine *engine)
{
    pthread_mutex_lock(&engine->lock);
    replace(&engine->backup, memory_state_copy(engine->visible));
    pthread_mutex_unlock(&engine->lock);
}

void memory_journal_restore(MemoryJournalEngine *engine)
{
    pthread_mutex_lock(&engine->lock);
    ASSERT(engine->backup != NULL);
    replace(&engine->visible, memory_state_copy(engine->backup));
    replace(&engine->hidden, NULL);
    replace(&engine->standby, NULL);
    engine->timeline++;
    engine->session++;
    pthread_mutex_unlock(&engine->lock);
}

void memory_journal_drop_entries(MemoryJournalEngine *engine, uint64_t space, size_t count)
{
    pthread_mutex_lock(&engine->lock);
    memory_state_drop_entries(memory_state_space(engine->visible, space), count);
    pthread_mutex_unlock(&engine->lock);
}

uint64_t memory_journal_writes(MemoryJournalEngine *engine)
{
    pthread_mutex_lock(&engine->lock);
    uint64_t writes = engine->writes;
    pthread_mutex_unlock(&engine->lock);
    return writes;
}
