/* restore_time.c - see restore_time.h. First every partition is asked how far back it can go; only
 * if all of them reach the time is anything undone. */
#include "cli/restore_time.h"

#include "cli/utc_time.h"
#include "partition/rewind.h"

#include <stdio.h>

/* A container keeps all changes of the time that its policy says, from when its definition was last
 * changed. */
static RewindOptions options_of(const RestoreTime *time, const Container *container)
{
    int64_t kept_s = time->backup_s - (int64_t)container->schema->retention_s;
    int64_t defined_s = (int64_t)container->info.ts_s;
    return (RewindOptions){
        .at_s = time->at_s,
        .complete_from_s = kept_s > defined_s ? kept_s : defined_s,
    };
}

/* Whether anything may have been changed in the container after the time. */
static bool has_items(const Container *container)
{
    for (size_t i = 0; i < container->range_count; i++) {
        if (handle_lsn(container_handle_at(container, i)) > 1)
            return true;
    }
    return false;
}

static Status check_container(const RestoreTime *time, const Database *database,
                              const Container *container, int64_t *earliest_s, Error *err)
{
    RewindOptions options = options_of(time, container);
    for (size_t i = 0; i < container->range_count; i++) {
        RewindFacts facts;
        Partition *partition = handle_local(container_handle_at(container, i));
        if (partition_rewind_check(partition, &options, &facts, err) != STATUS_OK)
            return error_context(err, "the container '%.*s/%.*s' cannot be taken back",
                                 SLICE_CUT(database->info.id, 60),
                                 SLICE_CUT(container->info.id, 60));
        *earliest_s = facts.earliest_s > *earliest_s ? facts.earliest_s : *earliest_s;
    }
    return STATUS_OK;
}

static Status check_all(const Snapshot *snapshot, const RestoreTime *time, Error *err)
{
    int64_t earliest_s = INT64_MIN;
    SnapshotWalk walk = {0};
    while (snapshot_next(snapshot, &walk)) {
        if (walk.container->schema->retention_s > 0)
            TRY(check_container(time, walk.database, walk.container, &earliest_s, err));
        else if (!time->is_best_effort && has_items(walk.container))
            return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                             "the container '%.*s/%.*s' does not keep all versions of its items "
                             "(changeFeedPolicy), so they cannot be taken back; with "
                             "--at-best-effort it stays as it is in the backup",
                             SLICE_CUT(walk.database->info.id, 60),
                             SLICE_CUT(walk.container->info.id, 60));
    }
    if (time->at_s >= earliest_s)
        return STATUS_OK;
    char text[UTC_TIME_LEN + 1];
    utc_time_print(earliest_s, text);
    return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                     "the versions that are kept do not reach back so far in this backup; the "
                     "earliest time is %s",
                     text);
}

static Status go_back(const Database *database, const Container *container, const RestoreTime *time,
                      Error *err)
{
    RewindOptions options = options_of(time, container);
    uint64_t changes = 0;
    for (size_t i = 0; i < container->range_count; i++) {
        Partition *partition = handle_local(container_handle_at(container, i));
        RewindFacts facts;
        TRY(partition_rewind_check(partition, &options, &facts, err));
        TRY(partition_rewind(partition, &options, err));
        changes += facts.changes;
    }
    (void)printf("%.*s/%.*s: %llu changes undone\n", SLICE_ARG(database->info.id),
                 SLICE_ARG(container->info.id), (unsigned long long)changes);
    return STATUS_OK;
}

Status restore_time_go_back(OfflineFolder *folder, const RestoreTime *time, Error *err)
{
    const Snapshot *snapshot = offline_folder_snapshot(folder);
    TRY(check_all(snapshot, time, err));
    SnapshotWalk walk = {0};
    while (snapshot_next(snapshot, &walk)) {
        if (walk.container->schema->retention_s > 0)
            TRY(go_back(walk.database, walk.container, time, err));
        else if (has_items(walk.container))
            (void)printf("%.*s/%.*s: left as it is in the backup: it does not keep all versions\n",
                         SLICE_ARG(walk.database->info.id), SLICE_ARG(walk.container->info.id));
    }
    return STATUS_OK;
}
