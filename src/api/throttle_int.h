/* throttle_int.h - what requests take from the budgets of partitions: asked for before they begin,
 * paid for when they are answered.
 *
 * Everything that reads or writes items comes through here, and nothing else does: what only looks
 * at the catalogue is not limited.
 */
#pragma once

#include "api/request_int.h"
#include "throughput/charge.h"

/* Reads what the request's headers say about its class. STATUS_BAD_REQUEST if they say nothing that
 * can be understood. */
MUST_USE Status throttle_classify(ApiRequest *r, Error *err);

/* Whether the request may begin on a partition. STATUS_THROTTLED with the time to wait if not; that
 * costs nothing. */
MUST_USE Status throttle_admit(ApiRequest *r, const PartitionRange *range, uint64_t now_us,
                               Error *err);

/* The same for an operation of a request, those before which will take 'ahead'. */
MUST_USE Status throttle_admit_behind(ApiRequest *r, const PartitionRange *range, Charge ahead,
                                      uint64_t now_us, Error *err);

/* The same for a request that has begun elsewhere and can do without this partition: nobody is
 * turned away. */
bool throttle_has_credit(const ApiRequest *r, const PartitionRange *range, uint64_t now_us);

/* Takes what a request that was admitted has cost a partition, and notes it (usage_int.h). On the
 * request's loop. */
void throttle_pay(ApiRequest *r, const PartitionRange *range, Charge charge, uint64_t now_us);
