/* journal.c - see journal.h: checks arguments and what was read, and calls the engine. */
#include "journal/journal_int.h"

#include "base/cond.h"
#include "base/mem.h"
#include "base/random.h"

enum { READ_TRIES = 3 };

/* ---- common to engines ---- */

void journal_init(Journal *journal, const JournalOps *ops, const Clock *clock,
                  const uint8_t secret[JOURNAL_SECRET_BYTES], uint32_t pause_ms_max,
                  uint32_t format)
{
    journal->ops = ops;
    journal->clock = clock;
    journal->pause_ms_max = pause_ms_max;
    journal->key = EVP_PKEY_new_raw_private_key(EVP_PKEY_HMAC, NULL, secret, JOURNAL_SECRET_BYTES);
    ASSERT(journal->key != NULL);
    random_secret(journal->process, sizeof(journal->process));
    journal->node[0] = '\0';
    atomic_init(&journal->incarnation, 0);
    journal->format_newest = format != 0 ? format : JOURNAL_FORMAT;
    atomic_init(&journal->format, journal->format_newest);
}

void journal_done(Journal *journal)
{
    EVP_PKEY_free(journal->key);
    journal->key = NULL;
}

JournalSelf journal_self(const Journal *journal)
{
    uint64_t incarnation = atomic_load_explicit(&journal->incarnation, memory_order_acquire);
    ASSERT(incarnation != 0);
    return (JournalSelf){.node = slice_from_cstr(journal->node), .incarnation = incarnation};
}

void journal_hurry(Journal *journal)
{
    uint64_t never = 0;
    (void)atomic_compare_exchange_strong(&journal->hurried_us, &never, cond_now_us());
}

void journal_close(Journal *journal)
{
    if (journal != NULL)
        journal->ops->close(journal);
}

JournalEngineId journal_engine_id(Journal *journal)
{
    return journal->ops->engine_id(journal);
}

void journal_meet(Journal *journal, JournalEngineId id)
{
    journal->ops->meet(journal, id);
}

/* ---- checks ---- */

static bool is_name_byte(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '.';
}

static Status check_name(Slice name, Error *err)
{
    bool is_right = name.len > 0 && name.len <= JOURNAL_NAME_MAX;
    for (size_t i = 0; is_right && i < name.len; i++)
        is_right = is_name_byte(name.ptr[i]);
    if (is_right)
        return STATUS_OK;
    return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                     "the name of a node has 1 to %d letters, digits, '-', '_' and '.', which "
                     "'%.*s' has not",
                     JOURNAL_NAME_MAX, SLICE_CUT(name, 80));
}

/* Text that the engine keeps: printable ASCII. */
static Status check_text(const char *what, Slice text, size_t len_max, Error *err)
{
    bool is_right = text.len <= len_max;
    for (size_t i = 0; is_right && i < text.len; i++)
        is_right = text.ptr[i] >= ' ' && text.ptr[i] <= '~';
    if (is_right)
        return STATUS_OK;
    return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                     "%s of a node must be at most %zu printable characters", what, len_max);
}

/* Names with commas between them. */
static Status check_list(Slice list, Error *err)
{
    TRY(check_text("the list of unreachable nodes", list, JOURNAL_UNREACHABLE_MAX, err));
    for (Slice rest = list; rest.len > 0;)
        TRY(check_name(slice_cut(&rest, ','), err));
    return STATUS_OK;
}

/* What the engine has is checked as well: others may have written to its tables, and callers keep
 * names in buffers of the longest. */
static Status check_seen(Status status, Error *err)
{
    if (status == STATUS_OK)
        return STATUS_OK;
    Error cause = *err;
    return error_set(err, STATUS_CORRUPT, SUB_NONE,
                     "a row of the journal's engine is wrong: %.300s", cause.message);
}

static Status check_number(uint64_t number, Error *err)
{
    if (number <= INT64_MAX)
        return STATUS_OK;
    return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                     "the number %llu is larger than the engine can keep",
                     (unsigned long long)number);
}

static Status check_place(uint64_t space, const JournalPlace *place, Error *err)
{
    TRY(check_number(space, err));
    TRY(check_number(place->epoch, err));
    return check_number(place->seq, err);
}

static Status check_count(size_t count, Error *err)
{
    if (count <= JOURNAL_SPACES_MAX)
        return STATUS_OK;
    return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                     "a call of the journal has at most %d spaces, not %zu", JOURNAL_SPACES_MAX,
                     count);
}

static Status check_spaces(const uint64_t *spaces, size_t count, Error *err)
{
    TRY(check_count(count, err));
    for (size_t i = 0; spaces != NULL && i < count; i++)
        TRY(check_number(spaces[i], err));
    return STATUS_OK;
}

/* ---- reading ---- */

/* Whether the entries that are there follow each other from the one after 'seq'. */
static bool has_gap(const JournalEntries *entries, uint64_t seq)
{
    for (size_t i = 0; i < entries->count; i++) {
        if (entries->items[i].seq != seq + 1 + i)
            return true;
    }
    return entries->count == 0 && entries->base <= seq && entries->tail > seq;
}

/* J1, and that the entries were made with the cluster's secret. */
static Status check_entries(const Journal *journal, uint64_t space, const JournalEntries *entries,
                            Error *err)
{
    for (size_t i = 0; i < entries->count; i++) {
        const JournalEntry *one = &entries->items[i];
        const JournalEntry *last = i == 0 ? NULL : &entries->items[i - 1];
        JournalPlace before = {.seq = one->seq - 1, .chain = one->before};
        JournalPlace after = journal_place_after(journal, space, &before, one->epoch, one->bytes);
        if (memcmp(&after.chain, &one->chain, sizeof(after.chain)) != 0)
            return error_set(err, STATUS_CORRUPT, SUB_NONE,
                             "entry %llu of space %llu is not what was written, or was written "
                             "with another secret of the cluster",
                             (unsigned long long)one->seq, (unsigned long long)space);
        if (last != NULL && (last->epoch > one->epoch ||
                             memcmp(&last->chain, &one->before, sizeof(one->before)) != 0))
            return error_set(err, STATUS_CORRUPT, SUB_NONE,
                             "entry %llu of space %llu does not follow the one before it",
                             (unsigned long long)one->seq, (unsigned long long)space);
    }
    return STATUS_OK;
}

Status journal_read(Journal *journal, JournalLane lane, uint64_t space, uint64_t seq,
                    size_t bytes_max, Arena *arena, JournalEntries *out, Error *err)
{
    TRY(check_number(space, err));
    TRY(check_number(seq, err));
    /* A table of entries that is emptied meanwhile looks like a gap. The next try then sees that
     * the log was trimmed. */
    JournalEntries entries = {0};
    for (unsigned i = 0; i < READ_TRIES; i++) {
        TRY(journal->ops->read(journal, lane, space, seq, bytes_max, arena, &entries, err));
        if (entries.base > seq)
            entries.count = 0;
        if (!has_gap(&entries, seq)) {
            TRY(check_entries(journal, space, &entries, err));
            *out = entries;
            return STATUS_OK;
        }
    }
    return error_set(err, STATUS_NOT_FOUND, SUB_NONE,
                     "the log of space %llu has a gap after entry %llu, and ends at %llu",
                     (unsigned long long)space, (unsigned long long)seq,
                     (unsigned long long)entries.tail);
}

/* ---- nodes ---- */

Status journal_join(Journal *journal, const JournalJoin *join, JournalMember *out, Error *err)
{
    TRY(check_name(join->name, err));
    TRY(check_text("the address", join->address, JOURNAL_TEXT_MAX, err));
    TRY(check_text("the URL", join->advertise, JOURNAL_TEXT_MAX, err));
    TRY(check_text("the region", join->region, JOURNAL_TEXT_MAX, err));
    TRY(check_number(join->incarnation_of_folder, err));
    bool is_again = atomic_load_explicit(&journal->incarnation, memory_order_relaxed) != 0;
    if (is_again && !slice_equal(slice_from_cstr(journal->node), join->name))
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "this node has joined as '%s' and cannot join as '%.*s'", journal->node,
                         SLICE_CUT(join->name, 80));

    JournalJoin full = *join;
    static const uint8_t none[JOURNAL_ATTEMPT_BYTES] = {0};
    if (memcmp(full.attempt, none, sizeof(none)) == 0)
        memcpy(full.attempt, journal->process, sizeof(full.attempt));
    TRY(journal->ops->join(journal, &full, out, err));

    if (!is_again) {
        memcpy(journal->node, join->name.ptr, join->name.len);
        journal->node[join->name.len] = '\0';
    }
    atomic_store_explicit(&journal->format, out->format, memory_order_relaxed);
    atomic_store_explicit(&journal->incarnation, out->incarnation, memory_order_release);
    return STATUS_OK;
}

/* False if this program does not read the format. */
static bool set_format(Journal *journal, uint64_t format)
{
    bool is_known = format >= 1 && format <= journal->format_newest;
    if (is_known)
        atomic_store_explicit(&journal->format, (uint32_t)format, memory_order_relaxed);
    return is_known;
}

Status journal_renew(Journal *journal, uint64_t catalog, Slice unreachable, bool *is_member,
                     bool *is_draining, Error *err)
{
    TRY(check_number(catalog, err));
    TRY(check_list(unreachable, err));
    JournalSelf self = journal_self(journal);
    bool is_there = false;
    uint64_t format = 0;
    TRY(journal->ops->renew(journal, &self, catalog, unreachable, &is_there, is_draining, &format,
                            err));
    /* An upgrade waits for all living nodes, so this one was not among them, or somebody has
     * changed the row by hand. Its next join says what is wrong. Until then nothing is written
     * in a format that this program does not know. */
    *is_member = is_there && set_format(journal, format);
    return STATUS_OK;
}

uint32_t journal_format(const Journal *journal)
{
    return atomic_load_explicit(&journal->format, memory_order_relaxed);
}

uint32_t journal_format_newest(const Journal *journal)
{
    return journal->format_newest;
}

Status journal_upgrade(Journal *journal, JournalLane lane, uint32_t *format, Error *err)
{
    uint32_t after = 0;
    TRY(journal->ops->upgrade(journal, lane, &after, err));
    (void)set_format(journal, after); /* or this node was declared dead, and does not know yet */
    *format = after;
    return STATUS_OK;
}

static Status check_node(const JournalNode *node, Error *err)
{
    TRY(check_name(node->name, err));
    TRY(check_list(node->unreachable, err));
    TRY(check_text("the address", node->address, JOURNAL_TEXT_MAX, err));
    TRY(check_text("the URL", node->advertise, JOURNAL_TEXT_MAX, err));
    return check_text("the region", node->region, JOURNAL_TEXT_MAX, err);
}

Status journal_nodes(Journal *journal, JournalLane lane, Arena *arena, const JournalNode **out,
                     size_t *count, Error *err)
{
    const JournalNode *nodes = NULL;
    size_t total = 0;
    TRY(journal->ops->nodes(journal, lane, arena, &nodes, &total, err));
    for (size_t i = 0; i < total; i++)
        TRY(check_seen(check_node(&nodes[i], err), err));
    *out = nodes;
    *count = total;
    return STATUS_OK;
}

Status journal_set_draining(Journal *journal, JournalLane lane, Slice node, bool is_draining,
                            bool *done, Error *err)
{
    TRY(check_name(node, err));
    return journal->ops->set_draining(journal, lane, node, is_draining, done, err);
}

Status journal_declare_dead(Journal *journal, Slice node, uint64_t incarnation, uint64_t renewal,
                            bool *done, Error *err)
{
    TRY(check_name(node, err));
    TRY(check_number(incarnation, err));
    TRY(check_number(renewal, err));
    JournalSelf self = journal_self(journal);
    return journal->ops->declare_dead(journal, &self, node, incarnation, renewal, done, err);
}

Status journal_remove_node(Journal *journal, JournalLane lane, Slice node, bool *done, Error *err)
{
    TRY(check_name(node, err));
    return journal->ops->remove_node(journal, lane, node, done, err);
}

/* ---- owners ---- */

Status journal_owners(Journal *journal, JournalLane lane, const uint64_t *spaces, size_t count,
                      Arena *arena, const JournalOwner **out, size_t *found, Error *err)
{
    TRY(check_spaces(spaces, spaces == NULL ? 0 : count, err));
    const JournalOwner *owners = NULL;
    size_t total = 0;
    TRY(journal->ops->owners(journal, lane, spaces, count, arena, &owners, &total, err));
    for (size_t i = 0; i < total; i++)
        TRY(check_seen(check_name(owners[i].node, err), err));
    *out = owners;
    *found = total;
    return STATUS_OK;
}

Status journal_create_spaces(Journal *journal, JournalLane lane, const JournalNewSpace *spaces,
                             size_t count, Error *err)
{
    TRY(check_count(count, err));
    for (size_t i = 0; i < count; i++) {
        TRY(check_number(spaces[i].space, err));
        TRY(check_number(spaces[i].incarnation, err));
        TRY(check_name(spaces[i].node, err));
    }
    return count == 0 ? STATUS_OK : journal->ops->create_spaces(journal, lane, spaces, count, err);
}

Status journal_take_over(Journal *journal, uint64_t space, uint64_t epoch, Arena *arena,
                         JournalOwner *out, bool *done, Error *err)
{
    TRY(check_number(space, err));
    TRY(check_number(epoch, err));
    JournalSelf self = journal_self(journal);
    return journal->ops->take_over(journal, &self, space, epoch, arena, out, done, err);
}

Status journal_hand_over(Journal *journal, uint64_t space, const JournalPlace *place, Slice node,
                         uint64_t incarnation, bool *done, Error *err)
{
    TRY(check_place(space, place, err));
    TRY(check_name(node, err));
    TRY(check_number(incarnation, err));
    return journal->ops->hand_over(journal, space, place, node, incarnation, done, err);
}

Status journal_seal(Journal *journal, JournalLane lane, uint64_t space, const JournalPlace *place,
                    int64_t move, bool *done, Error *err)
{
    TRY(check_place(space, place, err));
    ASSERT(move != 0);
    return journal->ops->seal(journal, lane, space, place, move, done, err);
}

Status journal_unseal(Journal *journal, JournalLane lane, uint64_t space, uint64_t epoch,
                      int64_t move, bool *done, Error *err)
{
    TRY(check_number(space, err));
    TRY(check_number(epoch, err));
    ASSERT(move != 0);
    return journal->ops->unseal(journal, lane, space, epoch, move, done, err);
}

Status journal_forget_spaces(Journal *journal, JournalLane lane, const uint64_t *spaces,
                             size_t count, Error *err)
{
    TRY(check_spaces(spaces, count, err));
    return count == 0 ? STATUS_OK : journal->ops->forget_spaces(journal, lane, spaces, count, err);
}

/* ---- replicas and trimming ---- */

Status journal_report(Journal *journal, JournalLane lane, const JournalReplica *replicas,
                      size_t count, Error *err)
{
    TRY(check_count(count, err));
    for (size_t i = 0; i < count; i++) {
        TRY(check_number(replicas[i].space, err));
        TRY(check_number(replicas[i].applied, err));
        TRY(check_number(replicas[i].durable, err));
        ASSERT(replicas[i].state <= REPLICA_EXPELLED);
    }
    JournalSelf self = journal_self(journal);
    return journal->ops->report(journal, &self, lane, replicas, count, err);
}

Status journal_replicas(Journal *journal, JournalLane lane, Arena *arena,
                        const JournalReplica **out, size_t *count, Error *err)
{
    const JournalReplica *replicas = NULL;
    size_t total = 0;
    TRY(journal->ops->replicas(journal, lane, arena, &replicas, &total, err));
    for (size_t i = 0; i < total; i++)
        TRY(check_seen(check_name(replicas[i].node, err), err));
    *out = replicas;
    *count = total;
    return STATUS_OK;
}

Status journal_expel(Journal *journal, JournalLane lane, uint64_t space, Slice node, Error *err)
{
    TRY(check_number(space, err));
    TRY(check_name(node, err));
    return journal->ops->expel(journal, lane, space, node, err);
}

Status journal_trim(Journal *journal, JournalLane lane, uint64_t space, uint64_t epoch,
                    uint64_t seq, Error *err)
{
    TRY(check_number(space, err));
    TRY(check_number(epoch, err));
    TRY(check_number(seq, err));
    return journal->ops->trim(journal, lane, space, epoch, seq, err);
}

Status journal_rotate(Journal *journal, JournalLane lane, Error *err)
{
    return journal->ops->rotate(journal, lane, err);
}

Status journal_usage(Journal *journal, JournalLane lane, Arena *arena, JournalUsage *out,
                     Error *err)
{
    return journal->ops->usage(journal, lane, arena, out, err);
}

Status journal_engine_time(Journal *journal, JournalLane lane, uint64_t *wall_us, Error *err)
{
    return journal->ops->engine_time(journal, lane, wall_us, err);
}
