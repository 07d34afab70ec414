/* history.h - counts the requests and charges of one physical partition: in all, by the second and
 * by five minutes.
 *
 * Seconds are kept for an hour and steps of five minutes for a week, both in rings. What many
 * threads add at the same time is counted exactly (I9): no thread waits, and nothing is lost when a
 * slot of a ring is reused. Only a count that does not fit its slot stops at its largest value.
 *
 * Totals are always kept. The rings take about 88 KB and are made when something is first added. A
 * pool limits how many there are in a process: without a place in it, a partition has totals and no
 * history.
 *
 * The same is counted for each kind of request, by the second for ten minutes and by five minutes
 * for a day: that is as far as people look back for the reason of what they see. The rings of a
 * kind take 14 KB and are made when there is a request of it, as most partitions see few kinds. The
 * pool limits these as well: a kind without a place is counted in the sums only.
 *
 * Time is the wall clock's, since readers ask by it. When the clock is set back, the seconds that
 * come again add to slots that were not reused since, and replace the others.
 *
 * Ownership  Reference counted, since the catalogue's snapshots share it.
 * Threads    Any thread adds and reads, without locks. The numbers of a slot are read one after the
 *            other: what is added meanwhile may be in one of them and not yet in the next.
 */
#pragma once

#include "base/defs.h"
#include "base/slice.h"
#include "throughput/charge.h"

#include <stdatomic.h>

#define HISTORY_SECONDS             3600 /* slots of a second: an hour */
#define HISTORY_STEP_S              300
#define HISTORY_STEPS               2016 /* slots of five minutes: a week */
#define HISTORIES_MAX               512  /* rings in a process: 45 MB */
#define HISTORY_GRAINS              2
#define HISTORY_RU_MAX              (((uint64_t)1 << 48) - 1) /* of a slot, in hundredths */
#define HISTORY_SECOND_REQUESTS_MAX (((uint64_t)1 << 24) - 1) /* of a slot; also throttled ones */
#define HISTORY_STEP_REQUESTS_MAX   (((uint64_t)1 << 28) - 1)

/* Of one kind of request. */
#define HISTORY_OPERATION_SECONDS 600 /* slots of a second: ten minutes */
#define HISTORY_OPERATION_STEPS   288 /* slots of five minutes: a day */
#define HISTORY_OPERATIONS_EACH \
    4 /* kinds that there is room for, for each of HISTORIES_MAX: 29 MB */

typedef enum HistoryGrain { HISTORY_SECOND, HISTORY_STEP } HistoryGrain;

typedef enum HistoryOperation {
#define HISTORY_OPERATION(name, text) HISTORY_##name,
#include "throughput/history_operations.def"
#undef HISTORY_OPERATION
    HISTORY_OPERATIONS
} HistoryOperation;

typedef struct History History;

typedef struct HistoryPool {
    _Atomic uint32_t used;
    _Atomic uint32_t operations_used; /* rings of one kind of request */
    uint32_t max;
    uint32_t operations_max;
} HistoryPool;

/* Room for 'max' histories, and for HISTORY_OPERATIONS_EACH kinds of requests in each. */
void history_pool_init(HistoryPool *pool, uint32_t max);

typedef struct HistoryCount {
    Charge charge;
    uint64_t requests;  /* all of them */
    uint64_t throttled; /* those that were answered 429 */
} HistoryCount;

History *history_new(void);
History *history_ref(History *history);
void history_unref(History *history); /* accepts NULL */
DEFINE_AUTO(History *, history_unref)

/* 'now_s' since 1970. The rings are taken from 'pool', which outlives them. */
void history_add(History *history, HistoryPool *pool, uint64_t now_s, HistoryOperation operation,
                 HistoryCount more);

HistoryCount history_total(const History *history); /* since the process began */

/* Whether there are rings. Without them, everything below is 0. */
bool history_is_kept(const History *history);

/* Seconds, or five minutes, that a slot of this grain stands for, and how many slots there are. */
uint64_t history_slot_s(HistoryGrain grain);
uint64_t history_slots(HistoryGrain grain);

/* The slot that 'time_s' lies in; reading a step costs as much as reading its seconds. The caller
 * must not ask for more than the ring holds: the history does not know what time it is. */
HistoryCount history_at(const History *history, HistoryGrain grain, uint64_t time_s);

/* The same for one kind of request: 0 for a time before those that are kept, and if there was no
 * room for the kind. */
HistoryCount history_operation_at(const History *history, HistoryOperation operation,
                                  HistoryGrain grain, uint64_t time_s);
Slice history_operation_text(HistoryOperation operation);

/* The seconds ['from_s', 'to_s'): their sum, and the largest charge of a single second. */
typedef struct HistorySpan {
    HistoryCount sum;
    Charge charge_max;
} HistorySpan;
HistorySpan history_span(const History *history, uint64_t from_s, uint64_t to_s);
