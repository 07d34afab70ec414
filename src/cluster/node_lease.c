/* node_lease.c - renewing this node's lease, and joining anew after it was declared dead. Clocks
 * are compared after each renewal. */
#include "cluster/cluster_int.h"

void cluster_renew_soon(Cluster *cluster)
{
    waker_wake(&cluster->lease_waker);
}

static void set_member(Cluster *cluster, MemberState from, MemberState to)
{
    (void)pthread_mutex_lock(&cluster->lock);
    if (cluster->member == from)
        cluster->member = to;
    (void)pthread_mutex_unlock(&cluster->lock);
}

static MemberState member_of(Cluster *cluster)
{
    (void)pthread_mutex_lock(&cluster->lock);
    MemberState member = cluster->member;
    (void)pthread_mutex_unlock(&cluster->lock);
    return member;
}

/* A failure is logged once, until a renewal succeeds. */
static void note_failure(Cluster *cluster, const Error *err)
{
    if (!cluster->renew_failed)
        LOG_WARN(cluster->log, "cluster.renewal_failed", "message=\"%s\"", err->message);
    cluster->renew_failed = true;
}

static void note_renewal(Cluster *cluster, LeaseMoment sent)
{
    if (cluster->renewed_us != 0 &&
        sent.boot_us - cluster->renewed_us > LEASE_US - LEASE_MARGIN_US) {
        atomic_fetch_add(&cluster->lapses, 1);
        LOG_WARN(cluster->log, "cluster.lease_lapsed", "ms=%llu",
                 (unsigned long long)((sent.boot_us - cluster->renewed_us) / 1000));
    }
    cluster->renewed_us = sent.boot_us;
    cluster->renew_failed = false;
    lease_renewed(&cluster->lease, sent);
    atomic_fetch_add(&cluster->own_renewals, 1);
}

/* This node is a member no more, as far as it can tell. */
static void end_membership(Cluster *cluster)
{
    lease_end(&cluster->lease);
    set_member(cluster, MEMBER_JOINED, MEMBER_DROPPED);
    cluster_wake_manager(cluster);
}

void lease_step(Cluster *cluster)
{
    if (member_of(cluster) != MEMBER_JOINED)
        return;
    if (atomic_load(&cluster->is_late)) {
        end_membership(cluster); /* the others find that it does not renew */
        return;
    }
    char unreachable[JOURNAL_UNREACHABLE_MAX];
    (void)pthread_mutex_lock(&cluster->lock);
    memcpy(unreachable, cluster->unreachable, sizeof(unreachable));
    (void)pthread_mutex_unlock(&cluster->lock);
    bool is_member = false;
    bool is_draining = false;
    Error err;
    (void)pthread_mutex_lock(&cluster->node_lane);
    LeaseMoment sent = lease_moment(&cluster->lease);
    uint64_t incarnation = atomic_load(&cluster->incarnation);
    uint64_t catalog_done = atomic_load(&cluster->catalog_done);
    Status status = journal_renew(cluster->journal, catalog_done, slice_from_cstr(unreachable),
                                  &is_member, &is_draining, &err);
    (void)pthread_mutex_unlock(&cluster->node_lane);
    if (status != STATUS_OK) {
        note_failure(cluster, &err);
        return;
    }
    if (!is_member) {
        cluster_event(cluster, "declaredDead", 0, 0, slice_from_cstr(cluster->node),
                      "the other nodes saw no renewal of this one");
        end_membership(cluster);
        return;
    }
    if (atomic_exchange(&cluster->is_draining, is_draining) != is_draining)
        cluster_wake_manager(cluster);
    note_renewal(cluster, sent);
    if (catalog_done > 0 && atomic_exchange(&cluster->counted_in, incarnation) != incarnation)
        cluster_refresh_owners(cluster); /* for what was changed before */
    clock_step(cluster);
}

Status cluster_rejoin(Cluster *cluster, Error *err)
{
    JournalMember member;
    (void)pthread_mutex_lock(&cluster->node_lane);
    Status status =
        cluster_folder_join(cluster->folder, cluster->journal, &cluster->join, &member, err);
    (void)pthread_mutex_unlock(&cluster->node_lane);
    TRY(status);
    atomic_store(&cluster->incarnation, member.incarnation);
    atomic_store(&cluster->is_late, false);
    cluster->has_told_damage =
        false; /* the engine has made the node live, and takes it for sound */
    set_member(cluster, MEMBER_OUT, MEMBER_JOINED);
    cluster_event(cluster, "joined", 0, 0, slice_from_cstr(cluster->node), "incarnation %llu",
                  (unsigned long long)member.incarnation);
    cluster_renew_soon(cluster);
    return STATUS_OK;
}
