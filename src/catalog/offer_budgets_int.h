/* offer_budgets_int.h - divides throughput over the budgets of partitions.
 *
 * offer_budgets_set divides what an offer provides over the partitions of its owner, in equal
 * parts. offer_budgets_set_serverless gives a container's partitions what they have without an
 * offer. offer_budgets_set_all does the one or the other for all that is in the snapshot.
 *
 * Threads    The catalogue's thread, or the opening thread before it starts.
 */
#pragma once

#include "catalog/snapshot.h"

void offer_budgets_set(const Snapshot *snapshot, const Offer *offer, const ProvisionRules *rules,
                       uint64_t now_us);
void offer_budgets_set_serverless(const Container *container, const ProvisionRules *rules,
                                  uint64_t now_us);
void offer_budgets_set_all(const Snapshot *snapshot, const ProvisionRules *rules, uint64_t now_us);
