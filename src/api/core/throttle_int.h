/* throttle_int.h - what requests take from the budgets of partitions: asked for before they begin,
 * paid for when they are answered.
 *
 * Every request that reads or writes items comes through here (I6), and no other: requests that
 * only look at the catalogue are not limited.
 */
#pragma once

#include "api/core/request_int.h"
#include "throughput/charge.h"

/* Reads what the request's headers say about its class. STATUS_BAD_REQUEST if they cannot be
 * understood. */
MUST_USE Status throttle_classify(ApiRequest *r, Error *err);

/* Whether the request may begin on a partition. If not, STATUS_THROTTLED with the time to wait; a
 * refusal costs nothing. */
MUST_USE Status throttle_admit(ApiRequest *r, PartitionHandle *partition, uint64_t now_us,
                               Error *err);

/* The same for an operation of a request; those before it will take 'ahead'. */
MUST_USE Status throttle_admit_after(ApiRequest *r, PartitionHandle *partition, Charge ahead,
                                     uint64_t now_us, Error *err);

/* The same for a request that has begun on another partition and can do without this one: it is not
 * counted as turned away. */
bool throttle_has_credit(const ApiRequest *r, PartitionHandle *partition, uint64_t now_us);

/* Takes what a request that was admitted has cost a partition, and notes it (usage_int.h). On the
 * request's loop. */
void throttle_pay(ApiRequest *r, PartitionHandle *partition, Charge charge, uint64_t now_us);
