/* append.c - appends: the chain of an entry, what a lost answer means, and when to send again.
 *
 *     send --answered--> moved: done
 *       ^  |             not moved --> settle --> decide --> done, not owner, lost, unknown
 *       |  |                             |          |
 *       |  +--lost, refused, unsent      +----------+--> pending
 *       |            |                                     |
 *       +---pause----+-------------------------------------+     until the deadline
 *
 * Once an answer was lost, a copy of the append may come at any later time: 'is_ambiguous' stays.
 */
#include "base/cond.h"
#include "base/mem.h"
#include "journal/journal_int.h"

enum { PAUSE_MS_MIN = 2 };

/* How long one try waits: a server that was replaced may take a statement and never answer, while
 * its successor would say what has become of it. Long entries get the time to be sent, too. */
enum { TRY_US = 5000000, TRY_BYTES_PER_US = 1 };

typedef struct AppendRun {
    Journal *journal;
    JournalSelf self;
    JournalLane lane;
    uint64_t deadline_us;
    JournalAppend *appends;
    size_t count;
    bool *is_ambiguous;         /* for each append */
    const JournalAppend **open; /* those that are pending, in the order of 'appends' */
    bool *moved;                /* for each of 'open' */
    SettledSpace *settled;      /* likewise */
    bool one_by_one;            /* one space was busy, and must not keep the others waiting */
    Error *err;                 /* the newest reason for which some are pending */
} AppendRun;

/* ---- chains ---- */

static void put_u64(uint8_t *out, uint64_t value)
{
    for (unsigned i = 0; i < 8; i++)
        out[i] = (uint8_t)(value >> (56 - 8 * i));
}

JournalPlace journal_place_after(const Journal *journal, uint64_t space, const JournalPlace *before,
                                 uint64_t epoch, Slice bytes)
{
    /*     HMAC-SHA256(secret, | chain before | space u64 | seq u64 | epoch u64 | bytes |)
     *     the first JOURNAL_CHAIN_BYTES of it; numbers are big-endian */
    JournalPlace after = {.epoch = epoch, .seq = before->seq + 1};
    uint8_t head[JOURNAL_CHAIN_BYTES + 24];
    memcpy(head, before->chain.bytes, JOURNAL_CHAIN_BYTES);
    put_u64(head + JOURNAL_CHAIN_BYTES, space);
    put_u64(head + JOURNAL_CHAIN_BYTES + 8, after.seq);
    put_u64(head + JOURNAL_CHAIN_BYTES + 16, epoch);

    uint8_t mac[EVP_MAX_MD_SIZE];
    size_t len = sizeof(mac);
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    bool is_made = ctx != NULL &&
                   EVP_DigestSignInit(ctx, NULL, EVP_sha256(), NULL, journal->key) == 1 &&
                   EVP_DigestSignUpdate(ctx, head, sizeof(head)) == 1 &&
                   EVP_DigestSignUpdate(ctx, bytes.ptr, bytes.len) == 1 &&
                   EVP_DigestSignFinal(ctx, mac, &len) == 1;
    EVP_MD_CTX_free(ctx);
    ASSERT(is_made);
    memcpy(after.chain.bytes, mac, JOURNAL_CHAIN_BYTES);
    return after;
}

/* ---- the table ---- */

static bool chain_equal(const JournalChain *a, const JournalChain *b)
{
    return memcmp(a->bytes, b->bytes, JOURNAL_CHAIN_BYTES) == 0;
}

static bool is_at(const SettledSpace *settled, const JournalPlace *place)
{
    return settled->tail.seq == place->seq && chain_equal(&settled->tail.chain, &place->chain);
}

AppendOutcome append_decide(const JournalAppend *append, const SettledSpace *settled,
                            bool is_ambiguous)
{
    /* A try that was answered is over: what it has not done will not be done. A copy of which the
     * answer was lost may have been done and trimmed, or may come when the space is unsealed. */
    AppendOutcome refused = is_ambiguous ? APPEND_UNKNOWN : APPEND_NOT_OWNER;
    if (!settled->is_found)
        return refused;

    /* What was acknowledged to this node before is not there any more. */
    if (settled->tail.epoch < append->epoch || settled->tail.seq < append->before.seq)
        return APPEND_LOST;

    if (settled->tail.epoch == append->epoch && settled->is_mine) {
        if (is_at(settled, &append->after))
            return APPEND_DONE;
        if (!is_at(settled, &append->before))
            return APPEND_LOST;
        return settled->sealed == 0 ? APPEND_PENDING : refused;
    }

    /* An epoch belongs to one incarnation. That another node has this one can only be in a history
     * that has forgotten the take-over. */
    if (settled->tail.epoch == append->epoch && !settled->is_same_node)
        return APPEND_LOST;

    uint64_t seq = append->after.seq;
    if (settled->has_entry && chain_equal(&settled->entry_chain, &append->after.chain))
        return APPEND_DONE;
    if (seq <= settled->base)
        return refused;
    /* The log has come past the number, and was not trimmed there: the entry must exist (J1). */
    return settled->tail.seq >= seq && !settled->has_entry ? APPEND_LOST : APPEND_NOT_OWNER;
}

/* ---- sending ---- */

static bool is_late(const AppendRun *run)
{
    return clock_monotonic_us(run->journal->clock) >= run->deadline_us;
}

static uint64_t try_deadline_us(const AppendRun *run, const JournalAppend *const *open,
                                size_t count)
{
    uint64_t us = TRY_US;
    for (size_t i = 0; i < count; i++)
        us += open[i]->bytes.len / TRY_BYTES_PER_US;
    uint64_t until_us = clock_monotonic_us(run->journal->clock) + us;
    return until_us < run->deadline_us ? until_us : run->deadline_us;
}

static size_t index_of(const AppendRun *run, const JournalAppend *append)
{
    return (size_t)(append - run->appends);
}

/* Settles the 'count' appends at 'open', none of which moved. */
static void settle(AppendRun *run, const JournalAppend *const *open, size_t count)
{
    EngineReply reply =
        run->journal->ops->settle(run->journal, &run->self, run->lane, open, count,
                                  try_deadline_us(run, open, 0), run->settled, run->err);
    if (reply != ENGINE_ANSWERED)
        return;
    for (size_t i = 0; i < count; i++) {
        size_t at = index_of(run, open[i]);
        run->appends[at].outcome = append_decide(open[i], &run->settled[i], run->is_ambiguous[at]);
        if (run->appends[at].outcome == APPEND_PENDING)
            *run->err = (Error){.status = STATUS_UNAVAILABLE,
                                .message = "the engine has not done an append, and may later"};
    }
}

/* Sends the 'count' appends at 'open' once, and decides about those that the engine answers. */
static void try_once(AppendRun *run, const JournalAppend **open, size_t count)
{
    EngineReply reply =
        run->journal->ops->append(run->journal, &run->self, run->lane, open, count,
                                  try_deadline_us(run, open, count), run->moved, run->err);
    switch (reply) {
    case ENGINE_UNSENT:
        return;
    case ENGINE_REFUSED:
        run->one_by_one = true;
        return;
    case ENGINE_LOST:
        for (size_t i = 0; i < count; i++)
            run->is_ambiguous[index_of(run, open[i])] = true;
        return;
    case ENGINE_ANSWERED:
        break;
    }
    size_t left = 0;
    for (size_t i = 0; i < count; i++) {
        if (run->moved[i])
            run->appends[index_of(run, open[i])].outcome = APPEND_DONE;
        else
            open[left++] = open[i];
    }
    if (left > 0)
        settle(run, open, left);
}

static size_t gather_pending(AppendRun *run)
{
    size_t count = 0;
    for (size_t i = 0; i < run->count; i++) {
        if (run->appends[i].outcome == APPEND_PENDING)
            run->open[count++] = &run->appends[i];
    }
    return count;
}

static void try_all(AppendRun *run, size_t count)
{
    if (!run->one_by_one) {
        try_once(run, run->open, count);
        return;
    }
    for (size_t i = 0; i < count && (i == 0 || !is_late(run)); i++) {
        const JournalAppend *one = run->open[i];
        try_once(run, &one, 1);
    }
}

/* Waits a little longer each time, and not beyond the deadline. */
static void rest(const AppendRun *run, uint32_t *ms)
{
    uint64_t now_us = clock_monotonic_us(run->journal->clock);
    uint64_t left_us = run->deadline_us > now_us ? run->deadline_us - now_us : 0;
    uint64_t us = (uint64_t)*ms * 1000;
    if (us > left_us)
        us = left_us;
    if (us == 0)
        return;
    struct timespec time = {.tv_sec = (time_t)(us / 1000000),
                            .tv_nsec = (long)(us % 1000000) * 1000};
    (void)nanosleep(&time, NULL); /* a signal only shortens the pause */
    *ms = *ms * 2 < run->journal->pause_ms_max ? *ms * 2 : run->journal->pause_ms_max;
}

/* Returns how many are pending at the end. */
static size_t run_appends(AppendRun *run)
{
    uint32_t pause_ms_max = run->journal->pause_ms_max;
    uint32_t pause_ms = pause_ms_max < PAUSE_MS_MIN ? pause_ms_max : PAUSE_MS_MIN;
    for (;;) {
        size_t open = gather_pending(run);
        if (open == 0)
            return 0;
        try_all(run, open);
        open = gather_pending(run);
        if (open == 0 || is_late(run))
            return open;
        rest(run, &pause_ms);
    }
}

static Status check_appends(JournalLane lane, const JournalAppend *appends, size_t count,
                            Error *err)
{
    ASSERT(lane < JOURNAL_LANE_COUNT);
    if (count == 0 || count > JOURNAL_SPACES_MAX)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE, "an append has 1 to %d spaces, not %zu",
                         JOURNAL_SPACES_MAX, count);
    size_t bytes = 0;
    for (size_t i = 0; i < count; i++) {
        const JournalAppend *one = &appends[i];
        if (one->bytes.len > JOURNAL_ENTRY_BYTES_MAX)
            return error_set(err, STATUS_TOO_LARGE, SUB_NONE,
                             "an entry has %zu bytes; the limit is %zu", one->bytes.len,
                             JOURNAL_ENTRY_BYTES_MAX);
        /* Numbers are signed in the engine. */
        if (one->space > INT64_MAX || one->epoch > INT64_MAX || one->before.seq >= INT64_MAX)
            return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                             "a number of an append is larger than the engine can keep");
        if (one->epoch == 0 || one->before.epoch > one->epoch)
            return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                             "an append in epoch %llu cannot follow an entry of epoch %llu",
                             (unsigned long long)one->epoch, (unsigned long long)one->before.epoch);
        bytes += one->bytes.len;
    }
    if (bytes > JOURNAL_APPEND_BYTES_MAX)
        return error_set(err, STATUS_TOO_LARGE, SUB_NONE,
                         "the entries of an append have %zu bytes; the limit is %zu", bytes,
                         JOURNAL_APPEND_BYTES_MAX);
    return STATUS_OK;
}

Status journal_append(Journal *journal, JournalLane lane, JournalAppend *appends, size_t count,
                      uint64_t deadline_us, Error *err)
{
    for (size_t i = 0; i < count; i++)
        appends[i].outcome = APPEND_PENDING;
    TRY(check_appends(lane, appends, count, err));
    for (size_t i = 0; i < count; i++) {
        JournalAppend *one = &appends[i];
        one->after = journal_place_after(journal, one->space, &one->before, one->epoch, one->bytes);
    }

    AUTO(mem_free) void *ambiguous = MEM_NEW_ARRAY(bool, count);
    AUTO(mem_free) void *open = MEM_NEW_ARRAY(const JournalAppend *, count);
    AUTO(mem_free) void *moved = MEM_NEW_ARRAY(bool, count);
    AUTO(mem_free) void *settled = MEM_NEW_ARRAY(SettledSpace, count);
    AppendRun run = {.journal = journal,
                     .self = journal_self(journal),
                     .lane = lane,
                     .deadline_us = deadline_us,
                     .appends = appends,
                     .count = count,
                     .is_ambiguous = ambiguous,
                     .open = open,
                     .moved = moved,
                     .settled = settled,
                     .err = err};
    if (run_appends(&run) == 0)
        return STATUS_OK;

    size_t pending = 0;
    for (size_t i = 0; i < count; i++) {
        if (appends[i].outcome != APPEND_PENDING)
            continue;
        if (run.is_ambiguous[i])
            appends[i].outcome = APPEND_UNKNOWN;
        else
            pending++;
    }
    return pending == 0 ? STATUS_OK : err->status;
}
