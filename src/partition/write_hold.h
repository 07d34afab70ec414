/* write_hold.h - keeps the writes of a partition waiting, while its container gives its name away.
 *
 *     hold        all that was posted before is durable; what is posted from now on waits
 *     let go      it goes on: applied, as if nothing had happened, or refused as gone
 *
 * When a copy of the container takes its name over, a request that was on its way must not be
 * written to the old one: it would be lost. So the holder raises the partition's generation, and
 * every message of a client that came through an older version of the container is refused with
 * STATUS_GONE and SUB_PARTITION_KEY_RANGE_GONE, whenever it arrives: its sender asks the catalogue
 * again. Generations are in memory only: no request outlives the process.
 *
 * Threads    One thread at a time holds a partition, and no move may be under way: the catalogue
 *            sees to both (CATALOG_BEGIN_SWAP). Reads and feeds go on.
 */
#pragma once

#include "partition/partition.h"

/* Waits for the partition's turn. STATUS_CONFLICT while items of a deleted partition key are being
 * removed: they are hidden already, and a feed has not shown that yet. */
MUST_USE Status write_hold_begin(Partition *partition, Error *err);

/* Messages wait no longer. With 'generation' > 0, those of older generations are refused from now
 * on. */
void write_hold_end(Partition *partition, uint32_t generation);
