/* usage_int.h - what requests used, noted for those who want to see it.
 *
 * Every charge and every request that was turned away is counted twice: by physical partition, in
 * its History, and by logical partition, in sketches of those that are asked for most. Charges are
 * noted where they are paid (throttle_int.h), refusals where they are answered.
 *
 * Ownership  The Api owns the sketches, since readers may still have them when a loop has ended.
 * Threads    Noting is done on the request's loop: each loop has sketches of its own. Any thread
 *            reads them.
 */
#pragma once

#include "api/item_int.h"
#include "throughput/top.h"

/* The request is about one logical partition, which pays what it costs; 'key' is whole and its
 * values live in the request's arena. */
void usage_name(ApiRequest *r, const Container *container, const PartitionKey *key, Slice epk);

/* A partition has done something for the request. */
void usage_paid(ApiRequest *r, const PartitionRange *range, Charge charge, uint64_t now_us);

/* The same for a part of a request that has more than one key: the range is charged for the whole,
 * this only tells the sketch. */
void usage_paid_by(ApiRequest *r, const Container *container, const PartitionRange *range,
                   const PartitionKey *key, Slice epk, Charge charge);

/* The request was turned away by the partition in 'refused_by'. */
void usage_throttled(ApiRequest *r);

/* At most 'max' bytes of UTF-8 text, and no half of a character; '*is_cut' is set if that is not
 * all, and otherwise left as it is. */
Slice usage_cut(Slice text, size_t max, bool *is_cut);

/* The sketches of all loops; how many. */
size_t usage_tops(const Api *api, const Top *tops[USAGE_LOOPS_MAX]);

/* What the api keeps for it. */
void usage_open(Api *api);
void usage_close(Api *api);
void usage_loop_open(ApiLoop *loop);
void usage_loop_close(ApiLoop *loop);
