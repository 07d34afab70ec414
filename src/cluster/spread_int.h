/* spread_int.h - which node should hold, own or take over a space: the same answer on every node
 * that has read the same.
 *
 * Followers are chosen by rendezvous hashing: each pair of node and space has a weight, and the
 * nodes with the largest weights follow. So a node that comes or goes changes only its own share.
 * All nodes follow the catalogue. The spaces of a group have the same followers, or nobody could
 * take the whole group over.
 *
 * Threads    Any; everything is passed in.
 */
#pragma once

#include "base/arena.h"
#include "cluster/space_groups_int.h"
#include "cluster/watch_int.h"
#include "store/store.h"

#define SPACE_OF_CATALOG ((StoreSpace)1)

/* What was read from the engine at one moment, in an arena. */
typedef struct ClusterView {
    const JournalNode *nodes;
    size_t node_count;
    const JournalOwner *owners; /* in order of space */
    size_t owner_count;
    const JournalReplica *replicas; /* in order of space */
    size_t replica_count;
    size_t *loads;   /* spaces that each node owns */
    bool *is_silent; /* nodes that have not answered a request since this was read */
    SpaceGroups groups;
    bool has_groups; /* false as long as there is no catalogue that knows them */
} ClusterView;

#define NO_NODE SIZE_MAX

size_t view_node(const ClusterView *view, Slice name); /* NO_NODE if there is none */
bool view_is_living(const ClusterView *view, size_t node);
/* More than half of the other living nodes, and at least two, say that they cannot reach it. */
bool view_is_cut_off(const ClusterView *view, size_t node);
const JournalOwner *view_owner(const ClusterView *view, StoreSpace space);
const JournalReplica *view_replica(const ClusterView *view, StoreSpace space, Slice node);
/* The index of the first replica of the space; the others of the space stand behind it. */
size_t view_first_replica(const ClusterView *view, StoreSpace space);
void view_sort_replicas(ClusterView *view, Arena *arena); /* the journal has them in no order */
void view_count_loads(ClusterView *view, Arena *arena);   /* nobody is silent */
void view_set_groups(ClusterView *view, Arena *arena, SharedSpace *shared, size_t count);
SpaceGroup view_group(const ClusterView *view, const StoreSpace *space);

/* Whether it is known what must move with the space. Before that, only the catalogue's is moved. */
bool view_knows_group(const ClusterView *view, StoreSpace space);

/* Whether the owner of the row is alive, in the incarnation that the row names. */
bool view_owner_lives(const ClusterView *view, const JournalOwner *owner);

/* Whether 'node' should follow the space, of which 'replicas' copies are wanted. 'counts' says of
 * each node whether it is chosen from: those that live and are not draining, and those that are
 * dead only for a moment. */
bool spread_follows(const ClusterView *view, const bool *counts, const JournalOwner *owner,
                    size_t node, uint32_t replicas);

/* Whether the node may take the space over: its copy reaches back to where the log begins. If no
 * such copy is left and the log is whole, all may. */
bool spread_may_take(const ClusterView *view, const JournalOwner *owner, size_t node);

/* The rank of 'node' among those that may take orphans of the group over: by how many it may take,
 * how many of the others it owns already, how far its copies are, and how much it owns. NO_NODE if
 * it may take none. */
size_t spread_rank(const ClusterView *view, SpaceGroup group, size_t node);

/* The node that should get the group, of those that live, are reached by the others and are not
 * draining, other than 'but' (NO_NODE for none): one with the most copies, then with the most that
 * it owns already, then with the least load. An empty group stands for a new space. NO_NODE if
 * there is none. */
size_t spread_choose(const ClusterView *view, SpaceGroup group, size_t but);

/* Where a group that is apart comes together: at the owner of the most of it, of those that may get
 * more. NO_NODE if there is none. */
size_t spread_home(const ClusterView *view, SpaceGroup group);

/* Whether 'node' should give one of its spaces away so that all own equally many. Only one node at
 * a time should, and none for a difference of one. '*to' is who should get it. */
bool spread_is_uneven(const ClusterView *view, size_t node, size_t *to);
