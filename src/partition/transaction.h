/* transaction.h - a transaction of one logical partition that takes long, such as a script.
 *
 * A transaction holds the lock of its EPK: from its beginning, writes of others to this EPK wait in
 * the partition, in the order in which they came, and continue when it ends. These are single
 * writes, batches, bulk messages that contain the EPK, purges of it, and other transactions. Reads,
 * and writes to other EPKs, go on. So no conflict is possible, and nothing is ever run twice.
 *
 *     begin --> apply, view, scan ... --> commit --> end
 *                     +--------------------------------^   rolls back
 *
 * What a transaction writes is its own until the commit, which writes all of it at once, durably,
 * with one LSN. An item has the number, _ts and ETag that it was seen with. All is dated, and
 * expires, by the second in which the transaction began (I22).
 *
 * Ownership  The caller ends the transaction, which holds its partition and schema.
 * Threads    One at a time; its calls may wait for the disk, so never a loop. The lock is the
 *            partition's, not a thread's.
 * Bounds     TRANSACTION_BYTES_MAX of own writes, TRANSACTIONS_MAX open ones in a partition,
 *            TRANSACTIONS_WAITING_MAX that wait for one EPK.
 */
#pragma once

#include "partition/partition.h"
#include "partition/view.h"

/* Of what a transaction writes, with what the partition keeps of each operation until the commit.
 * An operation beyond it fails with STATUS_TOO_LARGE. */
#define TRANSACTION_BYTES_MAX ((size_t)64 << 20)

/* Beyond these a transaction does not begin: STATUS_THROTTLED. */
#define TRANSACTIONS_MAX         256
#define TRANSACTIONS_WAITING_MAX 64

/* Waits for the lock, at most until 'deadline_us' of the host's monotonic clock: STATUS_TIMEOUT
 * then. STATUS_GONE or STATUS_NOT_FOUND if the partition was retired or dropped,
 * STATUS_UNAVAILABLE if the host is stopped. */
MUST_USE Status transaction_begin(Partition *partition, PartitionSchema *schema, const Epk *epk,
                                  uint64_t deadline_us, PartitionTransaction **out, Error *err);

/* From then on, by the host's monotonic clock, a commit is refused with STATUS_THROTTLED: who has
 * asked for it does not wait any more. 0, as it begins, for never. */
void transaction_set_deadline(PartitionTransaction *transaction, uint64_t deadline_us);

/* Runs one operation at once, as a write of one operation would: it sees own writes, and ETag,
 * unique keys, sizes and ids are checked now. The answer is in 'w', as in partition.h; its item
 * lives in 'arena'. An operation that fails changes nothing, and the transaction can go on. After
 * one that has written, 'w' and all that it points to, 'arena' included, stay as they are until
 * transaction_end. 'w->epk' is the transaction's.
 *
 * w->terms and w->item.lsn are known only after the commit, which fills them in. */
void transaction_apply(PartitionTransaction *transaction, ItemWrite *w, Arena *arena);

/* Forgets all that was written, as if the transaction had just begun; it keeps its lock and its
 * time. Views and scans are closed. */
void transaction_restart(PartitionTransaction *transaction);

/* What of TRANSACTION_BYTES_MAX is used. */
size_t transaction_bytes(const PartitionTransaction *transaction);

/* Whether there is something to commit. */
bool transaction_has_writes(const PartitionTransaction *transaction);

/* A view for reading that sees own writes; the caller closes it before the next transaction_apply
 * that writes, and before the end. Without own writes it is an ordinary one. With own writes no
 * path of the index may be used (partition_view_has_path and the like say so), scans and fetches
 * see own writes, and reads may wait for the disk whatever 'read' says. */
MUST_USE Status transaction_view(PartitionTransaction *transaction, StoreRead read,
                                 PartitionView **out, Error *err);

/* Like partition_scan_open, with own writes: also items that are not indexed. The caller closes it
 * as a view. */
MUST_USE Status transaction_scan(PartitionTransaction *transaction, const ScanOptions *options,
                                 PartitionScan **out, Error *err);

/* Writes everything, and waits until it is durable. '*lsn' is the LSN of the transaction; if it has
 * written nothing, the newest of the partition, and nothing is waited for. If it fails nothing was
 * written: STATUS_GONE or STATUS_NOT_FOUND if the partition was retired or dropped meanwhile,
 * STATUS_THROTTLED if too much waits. The lock is free afterwards, or at the end. Nothing may
 * follow but the end. */
MUST_USE Status transaction_commit(PartitionTransaction *transaction, uint64_t *lsn, Error *err);

/* Rolls back what was not committed; accepts NULL. Does not wait. */
void transaction_end(PartitionTransaction *transaction);
DEFINE_AUTO(PartitionTransaction *, transaction_end)
