/* usage_int.h - what requests used, noted for /_orrery.
 *
 * Every charge and every request that was turned away is counted twice: by physical partition and
 * kind of request, in a History, and by logical partition, in sketches of those that are asked for
 * most. The kind of a request is what its method says, unless a handler knows better; a script is
 * one request, whatever it does. Charges are
 * noted where they are paid (throttle_int.h), refusals where they are answered. Queries are
 * recorded by their texts as well (items/query_record_int.h).
 *
 * Ownership  The Api owns the sketches, since readers may still have them when a loop has ended.
 * Threads    Noting is done on the request's loop: each loop has sketches of its own. Any thread
 *            reads them.
 */
#pragma once

#include "api/core/request_int.h"
#include "throughput/charge.h"
#include "throughput/top_keys.h"

/* The request is about one logical partition, to which its charge is attributed; 'key' is whole and
 * its values live in the request's arena. */
void usage_name(ApiRequest *r, const Container *container, const PartitionKey *key, Slice epk);

/* What the request counts as, as far as its method tells. */
void usage_begin(ApiRequest *r);

/* A partition has done something for the request. */
void usage_paid(ApiRequest *r, PartitionHandle *partition, Charge charge, uint64_t now_us);

/* The same for a part of a request that has more than one key. The range was charged for the whole
 * request; this only notes the key. */
void usage_paid_by(ApiRequest *r, const Container *container, const PartitionRange *range,
                   const PartitionKey *key, Slice epk, Charge charge);

/* The request was turned away by the partition in 'refused_by'. */
void usage_throttled(ApiRequest *r);

/* The first bytes of UTF-8 text, at most 'max', that end with a whole character; sets '*is_cut' if
 * something is left out. */
Slice usage_cut(Slice text, size_t max, bool *is_cut);

/* The sketches of all loops; returns how many. */
size_t usage_tops(const Api *api, const Top *tops[USAGE_LOOPS_MAX]);

/* The recorded queries of all loops; returns how many logs. */
size_t usage_query_logs(const Api *api, const QueryLog *logs[USAGE_LOOPS_MAX]);

/* Open and close what the Api and each loop keep for usage. */
void usage_open(Api *api);
void usage_close(Api *api);
void usage_loop_open(ApiLoop *loop);
void usage_loop_close(ApiLoop *loop);
