/* memory_state.c - see memory_state_int.h. */
#include "journal/memory/memory_state_int.h"

#include "base/array.h"
#include "base/mem.h"

/* ---- rows ---- */

static void entry_unref(MemoryEntry *entry)
{
    if (atomic_fetch_sub(&entry->refs, 1) == 1)
        mem_free(entry);
}

static void copy_text(char *out, size_t size, Slice text)
{
    ASSERT(text.len < size);
    if (text.len > 0)
        memcpy(out, text.ptr, text.len);
    out[text.len] = '\0';
}

static bool is_name(const char *name, Slice text)
{
    return slice_equal(slice_from_cstr(name), text);
}

/* The place of the first space that is not less than 'space'. */
static size_t find_space(const MemoryState *state, uint64_t space)
{
    size_t low = 0;
    size_t high = state->space_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (state->spaces[middle].space < space)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

MemorySpace *memory_state_space(const MemoryState *state, uint64_t space)
{
    size_t at = find_space(state, space);
    return at < state->space_count && state->spaces[at].space == space ? &state->spaces[at] : NULL;
}

MemoryNode *memory_state_node(const MemoryState *state, Slice node)
{
    for (size_t i = 0; i < state->node_count; i++) {
        if (is_name(state->nodes[i].node, node))
            return &state->nodes[i];
    }
    return NULL;
}

const MemoryEntry *memory_space_entry(const MemorySpace *space, uint64_t seq)
{
    if (space->count == 0 || seq < space->entries[0]->seq)
        return NULL;
    uint64_t at = seq - space->entries[0]->seq;
    return at < space->count ? space->entries[at] : NULL;
}

static bool is_living(const MemoryState *state, Slice node, uint64_t incarnation)
{
    const MemoryNode *row = memory_state_node(state, node);
    return row != NULL && row->incarnation == incarnation && row->state != NODE_DEAD;
}

void memory_state_drop_entries(MemorySpace *space, size_t count)
{
    if (count == 0)
        return;
    for (size_t i = 0; i < count; i++)
        entry_unref(space->entries[i]);
    space->count -= count;
    memmove(space->entries, space->entries + count,
            ARRAY_ELEMENT_SIZE(space->entries) * space->count);
}

static void *copy_rows(const void *rows, size_t row_size, size_t count)
{
    return count == 0 ? NULL : mem_copy(rows, row_size * count);
}

MemoryState *memory_state_copy(const MemoryState *state)
{
    MemoryState *copy = mem_copy(state, sizeof(*state));
    copy->nodes = copy_rows(state->nodes, sizeof(*state->nodes), state->node_count);
    copy->node_capacity = state->node_count;
    copy->replicas = copy_rows(state->replicas, sizeof(*state->replicas), state->replica_count);
    copy->replica_capacity = state->replica_count;
    copy->spaces = copy_rows(state->spaces, sizeof(*state->spaces), state->space_count);
    copy->space_capacity = state->space_count;
    for (size_t i = 0; i < copy->space_count; i++) {
        MemorySpace *space = &copy->spaces[i];
        space->entries =
            copy_rows(space->entries, ARRAY_ELEMENT_SIZE(space->entries), space->count);
        space->capacity = space->count;
        for (size_t j = 0; j < space->count; j++)
            (void)atomic_fetch_add(&space->entries[j]->refs, 1);
    }
    return copy;
}

void memory_state_free(MemoryState *state)
{
    if (state == NULL)
        return;
    for (size_t i = 0; i < state->space_count; i++) {
        memory_state_drop_entries(&state->spaces[i], state->spaces[i].count);
        mem_free(state->spaces[i].entries);
    }
    mem_free(state->spaces);
    mem_free(state->nodes);
    mem_free(state->replicas);
    mem_free(state);
}

/* ---- appends ---- */

static MemoryEntry *make_entry(const JournalAppend *append, uint32_t format)
{
    MemoryEntry *entry = mem_alloc(sizeof(*entry) + append->bytes.len);
    atomic_init(&entry->refs, 1);
    entry->seq = append->after.seq;
    entry->epoch = append->epoch;
    entry->format = format;
    entry->before = append->before.chain;
    entry->chain = append->after.chain;
    entry->len = append->bytes.len;
    if (entry->len > 0)
        memcpy(entry->bytes, append->bytes.ptr, entry->len);
    return entry;
}

static bool is_at(const MemorySpace *space, const JournalPlace *place)
{
    return space->tail.seq == place->seq &&
           memcmp(&space->tail.chain, &place->chain, sizeof(place->chain)) == 0;
}

static bool append_one(MemoryState *state, const MemoryStatement *statement,
                       const JournalAppend *append)
{
    MemorySpace *space = memory_state_space(state, append->space);
    if (space == NULL || space->tail.epoch != append->epoch || !is_at(space, &append->before) ||
        space->sealed != 0 || space->incarnation != statement->self.incarnation ||
        !is_name(space->node, statement->self.node))
        return false;
    ARRAY_GROW(space->entries, space->count, space->capacity, 16);
    space->entries[space->count++] = make_entry(append, statement->format);
    space->tail = append->after;
    return true;
}

static void append(MemoryState *state, const MemoryStatement *statement, MemoryResult *result)
{
    for (size_t i = 0; i < statement->count; i++) {
        bool is_moved = append_one(state, statement, statement->appends[i]);
        result->has_changed |= is_moved;
        if (result->moved != NULL)
            result->moved[i] = is_moved;
    }
}

/* ---- nodes ---- */

static void forget_copies(MemoryState *state, Slice node)
{
    size_t kept = 0;
    for (size_t i = 0; i < state->replica_count; i++) {
        if (!is_name(state->replicas[i].node, node))
            state->replicas[kept++] = state->replicas[i];
    }
    state->replica_count = kept;
}

static Status join(MemoryState *state, const MemoryStatement *statement, MemoryResult *result,
                   Error *err)
{
    static const uint8_t none[16] = {0};
    const JournalJoin *join = statement->join;
    bool is_first = !state->has_cluster;
    if (memcmp(join->cluster_of_folder, none, sizeof(none)) != 0 &&
        (is_first || memcmp(join->cluster_of_folder, state->cluster, sizeof(none)) != 0))
        return error_set(err, STATUS_CONFLICT, SUB_NONE,
                         "the data folder belongs to another cluster than the journal; give it the "
                         "--cluster of its own, or start with an empty folder (--data)");
    if (!is_first && state->format > statement->format)
        return error_set(err, STATUS_CONFLICT, SUB_NONE,
                         "the cluster writes format %u; this program reads up to %u", state->format,
                         statement->format);
    MemoryNode *node = memory_state_node(state, join->name);
    if (node != NULL && node->incarnation != join->incarnation_of_folder &&
        node->state != NODE_DEAD &&
        memcmp(node->attempt, join->attempt, sizeof(node->attempt)) != 0)
        return error_set(err, STATUS_CONFLICT, SUB_NONE,
                         "a node with the name '%.*s' lives elsewhere: its incarnation is %llu, "
                         "and that of the data folder %llu",
                         SLICE_ARG(join->name), (unsigned long long)node->incarnation,
                         (unsigned long long)join->incarnation_of_folder);
    if (is_first) {
        state->has_cluster = true;
        state->format = statement->format;
        memcpy(state->cluster, statement->new_cluster, sizeof(state->cluster));
        memcpy(state->maker, join->attempt, sizeof(state->maker));
    }
    /* A join whose answer was lost is the first one again when it is repeated. */
    is_first =
        state->space_count == 0 && memcmp(state->maker, join->attempt, sizeof(state->maker)) == 0;
    if (node == NULL) {
        ARRAY_GROW(state->nodes, state->node_count, state->node_capacity, 4);
        node = &state->nodes[state->node_count++];
    }
    *node = (MemoryNode){.incarnation = ++state->last_incarnation,
                         .renewal = 1,
                         .state = NODE_LIVE,
                         .format = statement->format};
    copy_text(node->node, sizeof(node->node), join->name);
    copy_text(node->address, sizeof(node->address), join->address);
    copy_text(node->advertise, sizeof(node->advertise), join->advertise);
    copy_text(node->region, sizeof(node->region), join->region);
    memcpy(node->attempt, join->attempt, sizeof(node->attempt));
    if (join->incarnation_of_folder == 0)
        forget_copies(state, join->name); /* a new folder has none */
    result->has_changed = true;
    result->member = (JournalMember){
        .format = state->format, .incarnation = node->incarnation, .is_first = is_first};
    memcpy(result->member.cluster, state->cluster, sizeof(state->cluster));
    return STATUS_OK;
}

static void renew(MemoryState *state, const MemoryStatement *statement, MemoryResult *result)
{
    if (!is_living(state, statement->self.node, statement->self.incarnation))
        return;
    MemoryNode *node = memory_state_node(state, statement->self.node);
    node->renewal++;
    node->catalog = statement->number;
    copy_text(node->unreachable, sizeof(node->unreachable), statement->unreachable);
    result->has_changed = true;
    result->is_draining = node->state == NODE_DRAINING;
    result->format = state->format;
}

/* 'statement->format' is the newest that the journal reads which asks. */
static void upgrade(MemoryState *state, const MemoryStatement *statement, MemoryResult *result)
{
    uint32_t format = statement->format;
    for (size_t i = 0; i < state->node_count; i++) {
        const MemoryNode *node = &state->nodes[i];
        if (node->state != NODE_DEAD && node->format < format)
            format = node->format;
    }
    if (format > state->format)
        state->format = format;
    result->has_changed = true; /* also the same format is written, as any engine does */
    result->format = state->format;
}

static void set_draining(MemoryState *state, const MemoryStatement *statement, MemoryResult *result)
{
    MemoryNode *node = memory_state_node(state, statement->node);
    if (node == NULL || node->state == NODE_DEAD)
        return;
    node->state = statement->is_draining ? NODE_DRAINING : NODE_LIVE;
    result->has_changed = true;
}

static void declare_dead(MemoryState *state, const MemoryStatement *statement, MemoryResult *result)
{
    if (!is_living(state, statement->node, statement->incarnation) ||
        !is_living(state, statement->self.node, statement->self.incarnation))
        return;
    MemoryNode *node = memory_state_node(state, statement->node);
    if (node->renewal != statement->number)
        return;
    node->state = NODE_DEAD;
    result->has_changed = true;
}

static void remove_node(MemoryState *state, const MemoryStatement *statement, MemoryResult *result)
{
    MemoryNode *node = memory_state_node(state, statement->node);
    if (node == NULL || node->state != NODE_DEAD)
        return;
    *node = state->nodes[--state->node_count];
    forget_copies(state, statement->node);
    result->has_changed = true;
}

/* ---- owners ---- */

static Status create_spaces(MemoryState *state, const MemoryStatement *statement,
                            MemoryResult *result, Error *err)
{
    for (size_t i = 0; i < statement->count; i++) {
        const JournalNewSpace *one = &statement->new_spaces[i];
        if (!is_living(state, one->node, one->incarnation))
            return error_set(err, STATUS_CONFLICT, SUB_NONE,
                             "node '%.*s' is not a living member of incarnation %llu",
                             SLICE_ARG(one->node), (unsigned long long)one->incarnation);
    }
    for (size_t i = 0; i < statement->count; i++) {
        const JournalNewSpace *one = &statement->new_spaces[i];
        size_t at = find_space(state, one->space);
        if (at < state->space_count && state->spaces[at].space == one->space)
            continue;
        ARRAY_GROW(state->spaces, state->space_count, state->space_capacity, 16);
        memmove(&state->spaces[at + 1], &state->spaces[at],
                sizeof(MemorySpace) * (state->space_count - at));
        state->space_count++;
        state->spaces[at] = (MemorySpace){.space = one->space,
                                          .incarnation = one->incarnation,
                                          .tail = {.epoch = JOURNAL_EPOCH_FIRST}};
        copy_text(state->spaces[at].node, sizeof(state->spaces[at].node), one->node);
        result->has_changed = true;
    }
    return STATUS_OK;
}

static void give(MemorySpace *space, Slice node, uint64_t incarnation)
{
    copy_text(space->node, sizeof(space->node), node);
    space->incarnation = incarnation;
    space->tail.epoch++;
}

static void take_over(MemoryState *state, const MemoryStatement *statement, MemoryResult *result)
{
    const JournalSelf *self = &statement->self;
    MemorySpace *space = memory_state_space(state, statement->space);
    if (space == NULL || space->tail.epoch != statement->epoch ||
        is_living(state, slice_from_cstr(space->node), space->incarnation) ||
        !is_living(state, self->node, self->incarnation))
        return;
    give(space, self->node, self->incarnation);
    result->has_changed = true;
    result->space = space;
}

/* The space, if it is at the place that the statement names. */
static MemorySpace *space_at_place(MemoryState *state, const MemoryStatement *statement)
{
    MemorySpace *space = memory_state_space(state, statement->space);
    bool is_there = space != NULL && space->tail.epoch == statement->place.epoch &&
                    is_at(space, &statement->place);
    return is_there ? space : NULL;
}

static void change_space(MemoryState *state, const MemoryStatement *statement, MemoryResult *result)
{
    if (statement->kind == MEMORY_UNSEAL) {
        MemorySpace *space = memory_state_space(state, statement->space);
        if (space == NULL || space->tail.epoch != statement->epoch ||
            space->sealed != statement->move)
            return;
        space->sealed = 0;
    } else {
        MemorySpace *space = space_at_place(state, statement);
        bool is_seal = statement->kind == MEMORY_SEAL;
        if (space == NULL ||
            (!is_seal && !is_living(state, statement->node, statement->incarnation)))
            return;
        if (is_seal)
            space->sealed = statement->move;
        else
            give(space, statement->node, statement->incarnation);
    }
    result->has_changed = true;
}

static void forget_spaces(MemoryState *state, const MemoryStatement *statement,
                          MemoryResult *result)
{
    for (size_t i = 0; i < statement->count; i++) {
        MemorySpace *space = memory_state_space(state, statement->spaces[i]);
        if (space == NULL)
            continue;
        memory_state_drop_entries(space, space->count);
        mem_free(space->entries);
        size_t at = (size_t)(space - state->spaces);
        memmove(space, space + 1, sizeof(*space) * (state->space_count - at - 1));
        state->space_count--;
        size_t kept = 0;
        for (size_t j = 0; j < state->replica_count; j++) {
            if (state->replicas[j].space != statement->spaces[i])
                state->replicas[kept++] = state->replicas[j];
        }
        state->replica_count = kept;
        result->has_changed = true;
    }
}

/* ---- replicas ---- */

static MemoryReplica *find_replica(MemoryState *state, uint64_t space, Slice node)
{
    for (size_t i = 0; i < state->replica_count; i++) {
        if (state->replicas[i].space == space && is_name(state->replicas[i].node, node))
            return &state->replicas[i];
    }
    return NULL;
}

/* A replica that was expelled follows again only once it has got past what was trimmed meanwhile,
 * which it cannot have read from the log. */
static bool stays_expelled(const MemoryState *state, const MemoryReplica *row,
                           const JournalReplica *report)
{
    if (row->state != REPLICA_EXPELLED || report->state != REPLICA_FOLLOWING)
        return false;
    const MemorySpace *space = memory_state_space(state, row->space);
    uint64_t base = space == NULL ? 0 : space->base;
    return base <= row->durable || report->durable < base;
}

static Status report(MemoryState *state, const MemoryStatement *statement, MemoryResult *result,
                     Error *err)
{
    const JournalSelf *self = &statement->self;
    const MemoryNode *node = memory_state_node(state, self->node);
    if (statement->count > 0 && (node == NULL || node->incarnation != self->incarnation))
        return error_set(err, STATUS_CONFLICT, SUB_NONE,
                         "node '%.*s' has another incarnation than %llu", SLICE_ARG(self->node),
                         (unsigned long long)self->incarnation);
    result->has_changed = true; /* a report always makes a write */
    for (size_t i = 0; i < statement->count; i++) {
        const JournalReplica *one = &statement->replicas[i];
        if (memory_state_space(state, one->space) == NULL)
            continue;
        MemoryReplica *row = find_replica(state, one->space, statement->self.node);
        if (row == NULL) {
            ARRAY_GROW(state->replicas, state->replica_count, state->replica_capacity, 16);
            row = &state->replicas[state->replica_count++];
            *row = (MemoryReplica){.space = one->space};
            copy_text(row->node, sizeof(row->node), statement->self.node);
        } else if (stays_expelled(state, row, one)) {
            continue;
        }
        row->state = one->state;
        row->applied = one->applied;
        row->durable = one->durable;
    }
    return STATUS_OK;
}

static void trim(MemoryState *state, const MemoryStatement *statement, MemoryResult *result)
{
    MemorySpace *space = memory_state_space(state, statement->space);
    if (space == NULL || space->tail.epoch != statement->epoch)
        return;
    uint64_t upto = statement->number < space->tail.seq ? statement->number : space->tail.seq;
    for (size_t i = 0; i < state->replica_count; i++) {
        const MemoryReplica *row = &state->replicas[i];
        if (row->space == space->space && row->state != REPLICA_EXPELLED &&
            strcmp(row->node, space->node) != 0 && row->durable < upto)
            upto = row->durable;
    }
    if (upto > space->base)
        space->base = upto;
    result->has_changed = true;
}

static void rotate(MemoryState *state)
{
    for (size_t i = 0; i < state->space_count; i++) {
        MemorySpace *space = &state->spaces[i];
        size_t trimmed = 0;
        while (trimmed < space->count && space->entries[trimmed]->seq <= space->base)
            trimmed++;
        memory_state_drop_entries(space, trimmed);
    }
}

Status memory_state_apply(MemoryState *state, const MemoryStatement *statement,
                          MemoryResult *result, Error *err)
{
    switch (statement->kind) {
    case MEMORY_APPEND:
        append(state, statement, result);
        break;
    case MEMORY_JOIN:
        return join(state, statement, result, err);
    case MEMORY_RENEW:
        renew(state, statement, result);
        break;
    case MEMORY_SET_DRAINING:
        set_draining(state, statement, result);
        break;
    case MEMORY_DECLARE_DEAD:
        declare_dead(state, statement, result);
        break;
    case MEMORY_REMOVE_NODE:
        remove_node(state, statement, result);
        break;
    case MEMORY_CREATE_SPACES:
        return create_spaces(state, statement, result, err);
    case MEMORY_TAKE_OVER:
        take_over(state, statement, result);
        break;
    case MEMORY_HAND_OVER:
    case MEMORY_SEAL:
    case MEMORY_UNSEAL:
        change_space(state, statement, result);
        break;
    case MEMORY_FORGET_SPACES:
        forget_spaces(state, statement, result);
        break;
    case MEMORY_REPORT:
        return report(state, statement, result, err);
    case MEMORY_EXPEL: {
        MemoryReplica *row = find_replica(state, statement->space, statement->node);
        if (row != NULL)
            row->state = REPLICA_EXPELLED;
        result->has_changed = row != NULL;
        break;
    }
    case MEMORY_TRIM:
        trim(state, statement, result);
        break;
    case MEMORY_ROTATE:
        rotate(state);
        result->has_changed = true;
        break;
    case MEMORY_UPGRADE:
        upgrade(state, statement, result);
        break;
    }
    return STATUS_OK;
}

/* ---- locks ---- */

typedef enum LockMode { LOCK_LOOK, LOCK_TAKE } LockMode;

static bool lock_space(const MemoryState *state, uint64_t number, LockMode mode)
{
    MemorySpace *space = memory_state_space(state, number);
    if (space == NULL)
        return false;
    bool was_locked = space->is_locked;
    space->is_locked |= mode == LOCK_TAKE;
    return was_locked;
}

static bool lock_node(const MemoryState *state, Slice name, LockMode mode)
{
    MemoryNode *node = memory_state_node(state, name);
    if (node == NULL)
        return false;
    bool was_locked = node->is_locked;
    node->is_locked |= mode == LOCK_TAKE;
    return was_locked;
}

/* Whether one of the rows that the statement changes was locked before. Replicas' rows and
 * new ones are not looked at: nothing else waits for them. */
static bool lock_rows(const MemoryState *state, const MemoryStatement *statement, LockMode mode)
{
    bool was_locked = false;
    switch (statement->kind) {
    case MEMORY_APPEND:
        for (size_t i = 0; i < statement->count; i++)
            was_locked |= lock_space(state, statement->appends[i]->space, mode);
        break;
    case MEMORY_CREATE_SPACES:
        for (size_t i = 0; i < statement->count; i++)
            was_locked |= lock_space(state, statement->new_spaces[i].space, mode);
        break;
    case MEMORY_FORGET_SPACES:
        for (size_t i = 0; i < statement->count; i++)
            was_locked |= lock_space(state, statement->spaces[i], mode);
        break;
    case MEMORY_TAKE_OVER:
    case MEMORY_HAND_OVER:
    case MEMORY_SEAL:
    case MEMORY_UNSEAL:
    case MEMORY_TRIM:
        was_locked = lock_space(state, statement->space, mode);
        break;
    case MEMORY_JOIN:
        was_locked = lock_node(state, statement->join->name, mode);
        break;
    case MEMORY_RENEW:
        was_locked = lock_node(state, statement->self.node, mode);
        break;
    case MEMORY_SET_DRAINING:
    case MEMORY_DECLARE_DEAD:
    case MEMORY_REMOVE_NODE:
        was_locked = lock_node(state, statement->node, mode);
        break;
    case MEMORY_REPORT:
    case MEMORY_EXPEL:
    case MEMORY_ROTATE:
    case MEMORY_UPGRADE:
        break;
    }
    return was_locked;
}

bool memory_state_is_locked(const MemoryState *state, const MemoryStatement *statement)
{
    return lock_rows(state, statement, LOCK_LOOK);
}

void memory_state_lock(MemoryState *state, const MemoryStatement *statement)
{
    (void)lock_rows(state, statement, LOCK_TAKE); /* the caller has looked */
}

void memory_state_unlock_all(MemoryState *state)
{
    for (size_t i = 0; i < state->space_count; i++)
        state->spaces[i].is_locked = false;
    for (size_t i = 0; i < state->node_count; i++)
        state->nodes[i].is_locked = false;
}

/* ---- statements ---- */

static void *copy_array(Arena *arena, const void *items, size_t size)
{
    void *copy = arena_alloc(arena, size);
    if (size > 0)
        memcpy(copy, items, size);
    return copy;
}

MemoryStatement *memory_statement_copy(Arena *arena, const MemoryStatement *statement)
{
    MemoryStatement *copy = copy_array(arena, statement, sizeof(*statement));
    copy->self.node = arena_copy(arena, statement->self.node);
    copy->node = arena_copy(arena, statement->node);
    copy->unreachable = arena_copy(arena, statement->unreachable);
    if (statement->join != NULL) {
        JournalJoin *join = copy_array(arena, statement->join, sizeof(*join));
        join->name = arena_copy(arena, join->name);
        join->address = arena_copy(arena, join->address);
        join->advertise = arena_copy(arena, join->advertise);
        join->region = arena_copy(arena, join->region);
        copy->join = join;
    }
    if (statement->appends != NULL) {
        const JournalAppend **appends = ARENA_NEW_ARRAY(arena, const JournalAppend *, copy->count);
        for (size_t i = 0; i < copy->count; i++) {
            JournalAppend *one = copy_array(arena, statement->appends[i], sizeof(*one));
            one->bytes = arena_copy(arena, one->bytes);
            appends[i] = one;
        }
        copy->appends = appends;
    }
    if (statement->new_spaces != NULL) {
        JournalNewSpace *spaces =
            copy_array(arena, statement->new_spaces, sizeof(*spaces) * copy->count);
        for (size_t i = 0; i < copy->count; i++)
            spaces[i].node = arena_copy(arena, spaces[i].node);
        copy->new_spaces = spaces;
    }
    if (statement->replicas != NULL)
        copy->replicas =
            copy_array(arena, statement->replicas, sizeof(*copy->replicas) * copy->count);
    if (statement->spaces != NULL)
        copy->spaces = copy_array(arena, statement->spaces, sizeof(*copy->spaces) * copy->count);
    return copy;
}
