/* write_hold.c - see write_hold.h. It is the fence of a move that moves nothing. */
#include "partition/write_hold.h"

#include "partition/partition_int.h"

Status write_hold_begin(Partition *partition, Error *err)
{
    Turn turn;
    TRY(partition_take_turn(partition, &turn, MESSAGE_WATCH, err));
    Status status = partition_take_turn(partition, &turn, MESSAGE_FENCE, err);
    if (status == STATUS_OK && purge_list_count(&partition->purges) > 0) {
        partition_unfence(partition);
        status = error_set(err, STATUS_CONFLICT, SUB_NONE,
                           "A partition key of the container is being deleted; try again later.");
    }
    if (status != STATUS_OK)
        partition_unwatch(partition);
    return status;
}

void write_hold_end(Partition *partition, uint32_t generation)
{
    if (generation > partition->generation) {
        partition->generation = generation;
        /* Transactions that are open would commit to the container that is not the one any more.
         * Their commits are refused; so is all that waits for them. */
        epk_locks_give_back_all(&partition->locks);
        epk_locks_put_waiting(&partition->locks, &partition->inbox.rest);
    }
    partition_unfence(partition);
    partition_unwatch(partition);
}
