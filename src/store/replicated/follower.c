/* follower.c - brings spaces to where the journal is.
 *
 * One thread looks every now and then which of the followed spaces have news: one question for all
 * of them. It reads some entries of each that has, reports how far this node is, and then applies
 * them: what was read is true only after a later write of the same session was acknowledged, and
 * the report is that write (J10).
 *
 * An entry is applied only if it names the chain that this node has reached. If the log says
 * something else, the space is refused until it is seeded anew, and said so.
 *
 * 'is_following' is set for a round, and by a thread that makes a space owned: the journal's lane
 * is for one thread at a time.
 *
 * A read that fails ends its round: the connection may be gone, and with it what was read before,
 * and other reads would wait for the same engine. Its space is then read in rounds of its own,
 * which alternate with those of all others: an entry that cannot be read for long must not keep the
 * other spaces from being followed.
 */
#include "base/array.h"
#include "base/cond.h"
#include "base/mem.h"
#include "store/replicated/entry_format_int.h"
#include "store/replicated/replicated_int.h"

enum {
    PERIOD_MS_MIN = 20, /* after a round with news; then it doubles */
    PERIOD_MS_MAX = 400,
    RETRY_MS = 50,
    ENTRIES_MAX = 64, /* in one write */
};

#define SPACE_BYTES_READ ((size_t)1 << 20)
#define ROUND_BYTES_READ ((size_t)8 << 20)

/* ---- trouble ---- */

/* The space is not followed any more. 'loudly': an operator should know. */
static void stop_following(Replication *replication, ReplicaSpace *space, SpaceTrouble trouble,
                           const char *reason)
{
    pthread_mutex_lock(&replication->lock);
    space->trouble = trouble;
    if (trouble == SPACE_REFUSED)
        space->role = SPACE_ABSENT;
    pthread_cond_broadcast(&replication->changed);
    pthread_mutex_unlock(&replication->lock);
    if (replication->log != NULL && trouble == SPACE_BEHIND)
        LOG_WARN(replication->log, "journal.space_behind", "space=%llu reason=\"%s\"",
                 (unsigned long long)space->space, reason);
    else if (replication->log != NULL)
        LOG_ERROR(replication->log, "journal.space_refused", "space=%llu reason=\"%s\"",
                  (unsigned long long)space->space, reason);
    if (trouble != SPACE_NEWER)
        replication->hooks.behind(replication->hooks.ctx, space->space);
}

static Status other_history(const ReplicaSpace *space, uint64_t seq, Error *err)
{
    return error_set(err, STATUS_CORRUPT, SUB_NONE,
                     "the log of space %llu has another history than this node at write %llu",
                     (unsigned long long)space->space, (unsigned long long)seq);
}

/* ---- applying ---- */

/* Entries as they are written at once. */
typedef struct Portion {
    EngineWrites writes[ENTRIES_MAX + 1]; /* and the place */
    Buf merges[ENTRIES_MAX];
    size_t count;
    Tree place;
    JournalPlace before;
    JournalPlace after;
} Portion;

static void portion_free(Portion *portion)
{
    if (portion == NULL)
        return;
    for (size_t i = 0; i < portion->count; i++) {
        tree_done(&portion->writes[i].tree);
        buf_done(&portion->merges[i]);
    }
    tree_done(&portion->place);
    mem_free(portion);
}
DEFINE_AUTO(Portion *, portion_free)

static Status check_entry(const Replication *replication, const ReplicaSpace *space,
                          const JournalPlace *before, const JournalEntry *entry, Error *err)
{
    uint32_t newest = journal_format_newest(replication->journal);
    if (entry->format > newest)
        return error_set(err, STATUS_NOT_IMPLEMENTED, SUB_NONE,
                         "write %llu has format %u, and this program reads %u",
                         (unsigned long long)entry->seq, entry->format, newest);
    if (entry->seq != before->seq + 1 || !chain_equal(&entry->before, &before->chain))
        return other_history(space, entry->seq, err);
    return STATUS_OK;
}

/* Fails with what is wrong with the entry; the portion has what was before it. */
static Status add_entry(const Replication *replication, const ReplicaSpace *space, Portion *portion,
                        const JournalEntry *entry, Error *err)
{
    TRY(check_entry(replication, space, &portion->after, entry, err));
    EngineWrites *writes = &portion->writes[portion->count];
    Buf *merges = &portion->merges[portion->count];
    *writes = (EngineWrites){.tree = {0}};
    buf_init(merges, SIZE_MAX); /* bounded by the entry's length */
    portion->count++;
    EntryKnown known = {journal_format_newest(replication->journal), replication->engine.merge};
    Status status = entry_read(entry->bytes, &known, space->space, &writes->tree, merges, err);
    writes->merges = buf_view(merges);
    if (status != STATUS_OK) {
        portion->count--;
        tree_done(&writes->tree);
        buf_done(merges);
        return status;
    }
    portion->after = (JournalPlace){entry->epoch, entry->seq, entry->chain};
    return STATUS_OK;
}

/* A disk that gets full stops a space before RocksDB fails, which would take no more writes until a
 * restart (R2, R3). Entries may be what makes room, so they may use what is kept for that. */
static Status check_room(const Replication *replication, const Portion *portion, Error *err)
{
    Engine *local = replication->local;
    size_t bytes = 0;
    for (size_t i = 0; i < portion->count; i++)
        bytes += portion->writes[i].tree.bytes + portion->writes[i].merges.len;
    return local->ops->room(local, ENGINE_MAKES_ROOM, bytes, err);
}

/* The applier may have written the same entries since they were read: they were this node's. */
static Status write_portion(Replication *replication, ReplicaSpace *space, Portion *portion,
                            Error *err)
{
    place_put(&portion->place, space->space, STORED_WHOLE, &portion->after);
    portion->writes[portion->count] = (EngineWrites){.tree = portion->place};
    pthread_mutex_lock(&replication->lock);
    bool is_next = space->applied.seq == portion->before.seq &&
                   chain_equal(&space->applied.chain, &portion->before.chain);
    pthread_mutex_unlock(&replication->lock);
    if (!is_next)
        return STATUS_OK;
    TRY(check_room(replication, portion, err));
    TRY(replication_write(replication, portion->writes, portion->count + 1, err));
    pthread_mutex_lock(&replication->lock);
    space->applied = portion->after;
    space->is_stored = true;
    pthread_cond_broadcast(&replication->changed);
    pthread_mutex_unlock(&replication->lock);
    return STATUS_OK;
}

/* Applies entries from '*at' on, as many as are written at once. The space is in a change. */
static Status apply_some(Replication *replication, ReplicaSpace *space,
                         const JournalEntries *entries, size_t *at, Error *err)
{
    AUTO(portion_free) Portion *portion = MEM_NEW(Portion);
    pthread_mutex_lock(&replication->lock);
    portion->before = portion->after = space->applied;
    pthread_mutex_unlock(&replication->lock);
    Status refusal = STATUS_OK;
    while (*at < entries->count && portion->count < ENTRIES_MAX && refusal == STATUS_OK) {
        const JournalEntry *entry = &entries->items[*at];
        if (entry->seq > portion->before.seq)
            refusal = add_entry(replication, space, portion, entry, err);
        *at += refusal == STATUS_OK;
    }
    if (portion->count == 0)
        return refusal;
    Error failure;
    pthread_mutex_lock(&replication->writing);
    Status status = write_portion(replication, space, portion, &failure);
    pthread_mutex_unlock(&replication->writing);
    if (status != STATUS_OK) {
        *err = failure;
        return status;
    }
    return refusal;
}

/* Applies entries that are believed. The space is in a change. */
static Status apply_entries(Replication *replication, ReplicaSpace *space,
                            const JournalEntries *entries, Error *err)
{
    Status status = STATUS_OK;
    for (size_t at = 0; at < entries->count && status == STATUS_OK;)
        status = apply_some(replication, space, entries, &at, err);
    return status;
}

/* What a failure of apply_entries, or of reading them, means for the space. */
static void note_failure(Replication *replication, ReplicaSpace *space, const Error *err)
{
    if (err->status == STATUS_CORRUPT)
        stop_following(replication, space, SPACE_REFUSED, err->message);
    else if (err->status == STATUS_NOT_FOUND)
        stop_following(replication, space, SPACE_BEHIND, err->message);
    else if (err->status == STATUS_NOT_IMPLEMENTED)
        stop_following(replication, space, SPACE_NEWER, err->message);
    /* Otherwise it is tried again: the engine does not answer, or RocksDB does not write now, or
     * the disk is full. */
}

/* ---- the journal's lane ---- */

bool follow_begin(Replication *replication, uint64_t until_us)
{
    pthread_mutex_lock(&replication->lock);
    replication->following_wanted++;
    bool is_late = false;
    while (replication->is_following && !is_late)
        is_late = !cond_wait_until(&replication->changed, &replication->lock, until_us);
    bool begins = !replication->is_following;
    replication->is_following |= begins;
    replication->following_wanted--;
    pthread_cond_broadcast(&replication->changed);
    pthread_mutex_unlock(&replication->lock);
    return begins;
}

/* Under 'lock'. */
static void leave_lane(Replication *replication)
{
    ASSERT(replication->is_following);
    replication->is_following = false;
    pthread_cond_broadcast(&replication->changed);
}

void follow_end(Replication *replication)
{
    pthread_mutex_lock(&replication->lock);
    leave_lane(replication);
    pthread_mutex_unlock(&replication->lock);
}

/* Under 'lock'. The follower's thread takes the lane when nobody else wants it. */
static void wait_for_lane(Replication *replication)
{
    while (replication->is_following || replication->following_wanted > 0)
        pthread_cond_wait(&replication->changed, &replication->lock);
    replication->is_following = true;
}

/* ---- becoming the owner ---- */

static void pause_until(uint64_t deadline_us)
{
    uint64_t left_us = deadline_us - cond_now_us();
    uint64_t us = left_us < RETRY_MS * 1000 ? left_us : RETRY_MS * 1000;
    struct timespec time = {.tv_nsec = (long)us * 1000};
    (void)nanosleep(&time, NULL); /* a signal only shortens it */
}

/* One step, with the journal's lane. */
static Status step_up(Replication *replication, ReplicaSpace *space, Error *err)
{
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 64 << 10);
    JournalEntries entries = {0};
    TRY(journal_read(replication->journal, JOURNAL_LANE_FOLLOW, space->space, space->applied.seq,
                     SPACE_BYTES_READ, &arena, &entries, err));
    TRY(journal_report(replication->journal, JOURNAL_LANE_FOLLOW, NULL, 0, err));
    if (entries.count > 0)
        return apply_entries(replication, space, &entries, err);
    if (entries.base > space->applied.seq)
        return error_set(err, STATUS_NOT_FOUND, SUB_NONE,
                         "the log of space %llu was trimmed up to write %llu, and this node has "
                         "applied %llu",
                         (unsigned long long)space->space, (unsigned long long)entries.base,
                         (unsigned long long)space->applied.seq);
    return error_set(err, STATUS_UNAVAILABLE, SUB_NONE,
                     "the log of space %llu ends at write %llu for now",
                     (unsigned long long)space->space, (unsigned long long)entries.tail);
}

static Status check_tail(const ReplicaSpace *space, const JournalPlace *tail, Error *err)
{
    if (space->applied.seq == tail->seq && chain_equal(&space->applied.chain, &tail->chain))
        return STATUS_OK;
    return other_history(space, tail->seq, err);
}

static Status step_up_to(Replication *replication, ReplicaSpace *space, uint64_t seq,
                         uint64_t deadline_us, Error *err)
{
    Status status = STATUS_OK;
    while (space->applied.seq < seq) {
        status = step_up(replication, space, err);
        bool is_final = status == STATUS_CORRUPT || status == STATUS_NOT_IMPLEMENTED ||
                        status == STATUS_NOT_FOUND;
        if (is_final || (status != STATUS_OK && cond_now_us() >= deadline_us))
            break;
        if (status != STATUS_OK)
            pause_until(deadline_us);
        status = STATUS_OK;
    }
    return status;
}

Status follow_up_to(Replication *replication, ReplicaSpace *space, const JournalPlace *tail,
                    uint64_t deadline_us, Error *err)
{
    if (space->applied.seq < tail->seq) {
        if (!follow_begin(replication, deadline_us))
            return error_set(err, STATUS_TIMEOUT, SUB_NONE,
                             "the log of space %llu was not read: other logs are being read",
                             (unsigned long long)space->space);
        Status status = step_up_to(replication, space, tail->seq, deadline_us, err);
        follow_end(replication);
        TRY(status);
    }
    /* What is wrong with the space, if anything is, the follower finds by itself. */
    return check_tail(space, tail, err);
}

/* ---- a round of the follower ---- */

/* A followed space, as it was when the round began. */
typedef struct FollowItem {
    ReplicaSpace *space;
    uint64_t life;
    bool is_alone; /* see ReplicaSpace.is_read_alone */
    JournalPlace applied;
    JournalEntries entries;
    Error *failure; /* of reading them; NULL if there is none */
} FollowItem;

typedef struct FollowRound {
    Arena arena;
    FollowItem *items; /* in order of space */
    size_t count;
    JournalReplica *reports;
    uint64_t *lives; /* of the spaces of 'reports' */
    size_t report_count;
    size_t bytes;
    bool has_news;
    bool has_progress; /* some of the news was applied */
} FollowRound;

/* Under 'lock'. */
static void gather(Replication *replication, FollowRound *round)
{
    size_t count = replication->space_count;
    round->items = ARENA_NEW_ARRAY(&round->arena, FollowItem, count + 1);
    round->reports = ARENA_NEW_ARRAY(&round->arena, JournalReplica, count + 1);
    round->lives = ARENA_NEW_ARRAY(&round->arena, uint64_t, count + 1);
    for (size_t i = 0; i < count; i++) {
        ReplicaSpace *space = replication->spaces[i];
        if (space->role == SPACE_ABSENT)
            continue;
        if (space->role == SPACE_FOLLOWED && space->trouble == SPACE_SOUND && !space->is_changing)
            round->items[round->count++] = (FollowItem){.space = space,
                                                        .life = space->life,
                                                        .is_alone = space->is_read_alone,
                                                        .applied = space->applied};
        /* An owner's own progress is of use only as what is durable. */
        if (space->durable_seq != space->reported_durable ||
            (space->role == SPACE_FOLLOWED && space->applied.seq != space->reported_applied)) {
            round->lives[round->report_count] = space->life;
            round->reports[round->report_count++] = (JournalReplica){.space = space->space,
                                                                     .state = REPLICA_FOLLOWING,
                                                                     .applied = space->applied.seq,
                                                                     .durable = space->durable_seq};
        }
    }
}

/* Whether the log goes on after what this node has. */
static bool has_news(FollowRound *round, FollowItem *item, const JournalPlace *tail)
{
    if (tail->seq > item->applied.seq)
        return true;
    if (tail->seq < item->applied.seq || !chain_equal(&tail->chain, &item->applied.chain)) {
        item->failure = ARENA_NEW(&round->arena, Error);
        item->failure->status = other_history(item->space, item->applied.seq, item->failure);
    }
    return false;
}

static void note_read(Replication *replication, const FollowItem *item, bool has_failed)
{
    pthread_mutex_lock(&replication->lock);
    if (item->space->life == item->life)
        item->space->is_read_alone = has_failed;
    pthread_mutex_unlock(&replication->lock);
}

/* Fails if the round must end: the engine has not answered. */
static Status read_item(Replication *replication, FollowRound *round, FollowItem *item, Error *err)
{
    round->has_news = true;
    Error failure;
    Status status =
        journal_read(replication->journal, JOURNAL_LANE_FOLLOW, item->space->space,
                     item->applied.seq, SPACE_BYTES_READ, &round->arena, &item->entries, &failure);
    if (item->is_alone || status == STATUS_UNAVAILABLE)
        note_read(replication, item, status == STATUS_UNAVAILABLE);
    if (status == STATUS_UNAVAILABLE) {
        *err = failure;
        return status;
    }
    if (status != STATUS_OK) {
        item->failure = ARENA_NEW(&round->arena, Error);
        *item->failure = failure;
        item->entries.count = 0;
    }
    for (size_t i = 0; i < item->entries.count; i++)
        round->bytes += item->entries.items[i].bytes.len;
    return STATUS_OK;
}

static Status check_not_stopping(Replication *replication, Error *err)
{
    pthread_mutex_lock(&replication->lock);
    bool is_stopping = replication->is_stopping;
    pthread_mutex_unlock(&replication->lock);
    if (!is_stopping)
        return STATUS_OK;
    return error_set(err, STATUS_UNAVAILABLE, SUB_NONE, "the store is being closed");
}

/* Of the items that are read alone the one whose turn it is; NULL if there is none. */
static FollowItem *next_alone(const Replication *replication, FollowItem *const *items,
                              size_t count)
{
    FollowItem *found = NULL;
    uint64_t nearest = 0;
    for (size_t i = 0; i < count; i++) {
        uint64_t distance = items[i]->space->space - replication->alone_from; /* may wrap */
        if (!items[i]->is_alone || (found != NULL && distance >= nearest))
            continue;
        nearest = distance;
        found = items[i];
    }
    return found;
}

/* Reads some of the items, which have news: one that is read alone, or of all others in turn. */
static Status read_items(Replication *replication, FollowRound *round, FollowItem **items,
                         size_t count, Error *err)
{
    FollowItem *alone = next_alone(replication, items, count);
    size_t others = 0;
    for (size_t i = 0; i < count; i++)
        others += !items[i]->is_alone;
    replication->was_alone = alone != NULL && (others == 0 || !replication->was_alone);
    if (replication->was_alone) {
        replication->alone_from = alone->space->space + 1;
        return read_item(replication, round, alone, err);
    }
    for (size_t i = 0; i < count && round->bytes < ROUND_BYTES_READ; i++) {
        if (items[i]->is_alone)
            continue;
        TRY(check_not_stopping(replication, err));
        replication->follow_from = items[i]->space->space + 1;
        TRY(read_item(replication, round, items[i], err));
    }
    return STATUS_OK;
}

/* Reads from the spaces that have news, in turn. */
static Status read_news(Replication *replication, FollowRound *round, Error *err)
{
    uint64_t *spaces = ARENA_NEW_ARRAY(&round->arena, uint64_t, round->count + 1);
    for (size_t i = 0; i < round->count; i++)
        spaces[i] = round->items[i].space->space;
    const JournalOwner *owners = NULL;
    size_t found = 0;
    bool asks_for_all = round->count > JOURNAL_SPACES_MAX;
    TRY(journal_owners(replication->journal, JOURNAL_LANE_FOLLOW, asks_for_all ? NULL : spaces,
                       asks_for_all ? 0 : round->count, &round->arena, &owners, &found, err));
    const JournalOwner **of =
        ARENA_NEW_ARRAY(&round->arena, const JournalOwner *, round->count + 1);
    size_t first = 0;
    for (size_t i = 0, j = 0; i < round->count; i++) {
        while (j < found && owners[j].space < spaces[i])
            j++;
        of[i] = j < found && owners[j].space == spaces[i] ? &owners[j] : NULL;
        first += spaces[i] < replication->follow_from;
    }
    FollowItem **items = ARENA_NEW_ARRAY(&round->arena, FollowItem *, round->count + 1);
    size_t count = 0;
    for (size_t i = 0; i < round->count; i++) {
        size_t at = (first + i) % round->count;
        if (of[at] != NULL && has_news(round, &round->items[at], &of[at]->tail))
            items[count++] = &round->items[at];
    }
    return read_items(replication, round, items, count, err);
}

/* A copy that was dropped since the round has begun is none that the journal should know of. One
 * that is dropped during the report is removed by the one who drops it (C15). */
static void forget_dropped(Replication *replication, FollowRound *round)
{
    size_t kept = 0;
    pthread_mutex_lock(&replication->lock);
    for (size_t i = 0; i < round->report_count; i++) {
        if (spaces_find(replication, round->reports[i].space)->life != round->lives[i])
            continue;
        round->lives[kept] = round->lives[i];
        round->reports[kept++] = round->reports[i];
    }
    pthread_mutex_unlock(&replication->lock);
    round->report_count = kept;
}

static void note_reported(Replication *replication, const FollowRound *round)
{
    pthread_mutex_lock(&replication->lock);
    for (size_t i = 0; i < round->report_count; i++) {
        ReplicaSpace *space = spaces_find(replication, round->reports[i].space);
        if (space->life != round->lives[i])
            continue;
        space->reported_applied = round->reports[i].applied;
        space->reported_durable = round->reports[i].durable;
    }
    pthread_mutex_unlock(&replication->lock);
}

static void apply_item(Replication *replication, FollowRound *round, FollowItem *item)
{
    ReplicaSpace *space = item->space;
    bool is_trimmed = item->entries.base > item->applied.seq;
    if (item->failure == NULL && item->entries.count == 0 && !is_trimmed)
        return;
    pthread_mutex_lock(&replication->lock);
    /* It may have been dropped since, and begun again: then the log is read from another place. */
    bool is_ours =
        space->role == SPACE_FOLLOWED && !space->is_changing && space->life == item->life;
    space->is_changing = space->is_changing || is_ours;
    pthread_mutex_unlock(&replication->lock);
    if (!is_ours)
        return;
    Error err;
    if (item->failure != NULL)
        note_failure(replication, space, item->failure);
    else if (item->entries.count == 0)
        stop_following(replication, space, SPACE_BEHIND, "its log was trimmed");
    else if (apply_entries(replication, space, &item->entries, &err) != STATUS_OK)
        note_failure(replication, space, &err);
    pthread_mutex_lock(&replication->lock);
    uint64_t seq = space->applied.seq;
    space_end_change(replication, space);
    pthread_mutex_unlock(&replication->lock);
    if (seq <= item->applied.seq)
        return;
    round->has_progress = true;
    replication->hooks.applied(replication->hooks.ctx, space->space, seq);
}

static Status run_round(Replication *replication, FollowRound *round, Error *err)
{
    pthread_mutex_lock(&replication->lock);
    gather(replication, round);
    pthread_mutex_unlock(&replication->lock);
    if (round->count > 0)
        TRY(read_news(replication, round, err));
    TRY(check_not_stopping(replication, err));
    forget_dropped(replication, round);
    for (size_t i = 0; i < round->report_count; i += JOURNAL_SPACES_MAX) {
        size_t left = round->report_count - i;
        TRY(journal_report(replication->journal, JOURNAL_LANE_FOLLOW, round->reports + i,
                           left < JOURNAL_SPACES_MAX ? left : JOURNAL_SPACES_MAX, err));
    }
    if (round->has_news && round->report_count == 0)
        TRY(journal_report(replication->journal, JOURNAL_LANE_FOLLOW, NULL, 0, err));
    note_reported(replication, round);
    for (size_t i = 0; i < round->count; i++)
        apply_item(replication, round, &round->items[i]);
    return STATUS_OK;
}

/* Under 'lock'. */
static void wait_for_poke(Replication *replication, uint32_t ms)
{
    uint64_t until_us = cond_after_ms(ms);
    while (!replication->is_poking && !replication->is_stopping &&
           cond_wait_until(&replication->is_poked, &replication->lock, until_us))
        ; /* woken for nothing */
    replication->is_poking = false;
}

void *follow_thread(void *ctx)
{
    Replication *replication = ctx;
    uint32_t period_ms = PERIOD_MS_MIN;
    FollowRound round = {.has_news = false};
    arena_init(&round.arena, 64 << 10);
    pthread_mutex_lock(&replication->lock);
    for (;;) {
        wait_for_lane(replication);
        if (replication->is_stopping)
            break;
        pthread_mutex_unlock(&replication->lock);
        Error err;
        Status status = run_round(replication, &round, &err);
        /* News that cannot be applied now, since the disk is full, is not read all the time. */
        bool has_progress = status == STATUS_OK && round.has_progress;
        period_ms = has_progress ? PERIOD_MS_MIN : period_ms * 2;
        period_ms = period_ms < PERIOD_MS_MAX ? period_ms : PERIOD_MS_MAX;
        Arena arena = round.arena;
        arena_reset(&arena);
        round = (FollowRound){.arena = arena};
        pthread_mutex_lock(&replication->lock);
        leave_lane(replication);
        wait_for_poke(replication, has_progress ? 0 : period_ms);
    }
    leave_lane(replication);
    pthread_mutex_unlock(&replication->lock);
    arena_done(&round.arena);
    return NULL;
}
