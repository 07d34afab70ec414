/* saved_states.h - saves the state of a database under a name, and takes the database back to it.
 *
 * What is saved is all that a database has: containers with their definitions and throughput,
 * scripts, users, permissions, client encryption keys, items. Nothing is copied but the records of
 * the catalogue. From then on partitions note what items were before they are changed
 * (partition/baseline.h), and containers that are dropped are kept. So saving takes a few
 * milliseconds, and a restore as long as it takes to undo what has changed.
 *
 * A restore changes the catalogue in one commit, which also says that the items are yet to follow;
 * a start after a crash finishes that. Requests see all of the database before or all of it after:
 * while a restore is under way, reads are refused as throttled and writes wait.
 *
 * Threads    Any that may wait for the disk. One of these functions runs at a time; others wait.
 */
#pragma once

#include "catalog/catalog.h"

/* Replaces a state of that name: '*has_replaced'. */
MUST_USE Status catalog_save_state(Catalog *catalog, Slice database_id, Slice name,
                                   bool *has_replaced, Error *err);

/* On a full disk this waits until there is room, or until the catalogue is told to stop. */
MUST_USE Status catalog_restore_state(Catalog *catalog, Slice database_id, Slice name, Error *err);
MUST_USE Status catalog_drop_state(Catalog *catalog, Slice database_id, Slice name, Error *err);

/* Calls 'visit' for each container that was dropped and is kept for a saved state. For tools, while
 * nothing else uses the host. The container lives for the call. */
typedef Status (*KeptVisit)(void *ctx, const Container *container, Error *err);
MUST_USE Status catalog_visit_kept(PartitionHost *host, KeptVisit visit, void *ctx, Error *err);

/* Before the threads that call these functions are waited for: a restore that cannot go on is left
 * to the next start. Accepts NULL. */
void catalog_stop_restores(Catalog *catalog);
