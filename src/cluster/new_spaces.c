/* new_spaces.c - who gets new spaces, and what becomes of dropped ones: hooks of the catalogue. */
#include "cluster/cluster_int.h"

#include "base/array.h"

enum { NEW_SPACES_MAX = 65536, TAKING_MS_MAX = 2000, TAKING_PAUSE_MS = 2 };

/* Chooses an owner for each, and makes the rows. All with 'beside' go to its owner, if that lives;
 * the others are dealt out, to those first that own least. */
static Status choose_owners(const ClusterView *view, StoreSpace first, size_t count,
                            StoreSpace beside, JournalNewSpace *out, Error *err)
{
    const JournalOwner *other = beside != 0 ? view_owner(view, beside) : NULL;
    size_t together = NO_NODE;
    if (other != NULL && view_owner_lives(view, other))
        together = view_node(view, other->node);
    for (size_t i = 0; i < count; i++) {
        size_t node =
            together != NO_NODE ? together : spread_choose(view, (SpaceGroup){0}, NO_NODE);
        if (node == NO_NODE)
            return error_set(err, STATUS_UNAVAILABLE, SUB_NONE,
                             "no node of the cluster can take new partitions");
        view->loads[node]++;
        out[i] = (JournalNewSpace){.space = first + i,
                                   .node = view->nodes[node].name,
                                   .incarnation = view->nodes[node].incarnation};
    }
    return STATUS_OK;
}

/* Makes the rows, and reads them: those of a change that was not committed are there already. */
static Status make_rows(Cluster *cluster, const JournalNewSpace *spaces, size_t count, Arena *arena,
                        const JournalOwner **rows, size_t *found, Error *err)
{
    uint64_t *numbers = ARENA_NEW_ARRAY(arena, uint64_t, count + 1);
    for (size_t i = 0; i < count; i++)
        numbers[i] = spaces[i].space;
    (void)pthread_mutex_lock(&cluster->admin_lane);
    Status status = journal_create_spaces(cluster->journal, JOURNAL_LANE_ADMIN, spaces, count, err);
    if (status == STATUS_OK)
        status = journal_owners(cluster->journal, JOURNAL_LANE_ADMIN, numbers, count, arena, rows,
                                found, err);
    (void)pthread_mutex_unlock(&cluster->admin_lane);
    if (status == STATUS_OK && *found != count)
        return error_set(err, STATUS_UNAVAILABLE, SUB_NONE,
                         "the engine has %zu of %zu new partitions", *found, count);
    return status;
}

/* The manager may have seen the row first, and be taking the space. Its log is empty, so that is a
 * moment; it tells the catalogue only after that. */
static void wait_for_taking(Cluster *cluster, StoreSpace space)
{
    for (int ms = 0; ms < TAKING_MS_MAX; ms += TAKING_PAUSE_MS) {
        (void)pthread_mutex_lock(&cluster->lock);
        const SpaceSlot *slot = space_table_find(&cluster->spaces, space);
        bool is_taking = slot != NULL && slot->state == SPACE_STATE_TAKING;
        (void)pthread_mutex_unlock(&cluster->lock);
        if (!is_taking || atomic_load(&cluster->is_stopping))
            return;
        cluster_pause_ms(TAKING_PAUSE_MS);
    }
}

/* On the catalogue's thread, of the node that leads: what falls to this node is served before the
 * change is committed, so the catalogue finds it when it makes the handles. */
Status cluster_create_spaces(void *ctx, StoreSpace first, size_t count, StoreSpace beside,
                             Error *err)
{
    Cluster *cluster = ctx;
    if (count == 0 || count > NEW_SPACES_MAX)
        return error_set(err, STATUS_TOO_LARGE, SUB_NONE, "expected 1 to %d new partitions",
                         NEW_SPACES_MAX);
    AUTO(arena_done) Arena arena;
    arena_init(&arena, ARENA_LARGE_BYTES);
    ClusterView view;
    uint64_t begun_us;
    TRY(cluster_read_view(cluster, false, &arena, &view, &begun_us, err));
    JournalNewSpace *spaces = ARENA_NEW_ARRAY(&arena, JournalNewSpace, count);
    TRY(choose_owners(&view, first, count, beside, spaces, err));
    const JournalOwner *rows;
    size_t found;
    atomic_store(&cluster->rows_due_us, begun_us + ROWS_CHECK_US);
    TRY(make_rows(cluster, spaces, count, &arena, &rows, &found, err));
    for (size_t i = 0; i < count; i++) {
        bool is_own = slice_equal(rows[i].node, slice_from_cstr(cluster->node)) &&
                      rows[i].incarnation == atomic_load(&cluster->incarnation);
        if (is_own) {
            own_new_space(cluster, rows[i].space, &rows[i].tail);
            wait_for_taking(cluster, rows[i].space);
        } else {
            cluster_publish_space(cluster, rows[i].space, rows[i].node, rows[i].incarnation,
                                  rows[i].tail.epoch, true);
        }
        if (is_own && !cluster_serves(cluster, rows[i].space))
            return error_set(err, STATUS_UNAVAILABLE, SUB_NONE,
                             "the new partition %llu cannot be served now",
                             (unsigned long long)rows[i].space);
    }
    return STATUS_OK;
}

void cluster_dropped(void *ctx, StoreSpace first, StoreSpace last)
{
    Cluster *cluster = ctx;
    (void)pthread_mutex_lock(&cluster->lock);
    for (StoreSpace space = first; space <= last; space++) {
        ARRAY_GROW(cluster->dropped, cluster->dropped_count, cluster->dropped_capacity, 16);
        cluster->dropped[cluster->dropped_count++] = space;
    }
    (void)pthread_mutex_unlock(&cluster->lock);
    cluster_refresh_owners(cluster);
}
