/* reported_usage_int.h - what other nodes have said last of one partition.
 *
 * Each range has one, also if its partition is here, because that may change. It is empty for a
 * range that was just made, so that nothing said of the ranges which a move has replaced is taken
 * for what its targets hold.
 *
 * Ownership  Reference counted: it outlives the containers that show it, like a Budget.
 * Threads    Any thread notes and reads, without locks. The numbers are read one after the other.
 */
#pragma once

#include "catalog/placement.h"

typedef struct ReportedUsage ReportedUsage;

ReportedUsage *reported_usage_new(void);
ReportedUsage *reported_usage_ref(ReportedUsage *reported);
void reported_usage_unref(ReportedUsage *reported); /* accepts NULL */

/* Notes what was said at this moment (monotonic); 0 for what is not to be taken for the present,
 * only as the most that is known. */
void reported_usage_note(ReportedUsage *reported, const SpaceUsage *said, uint64_t at_us);

/* The last of it, and when that was said; '*at_us' is 0 if never, or if it does not count as the
 * present. */
SpaceUsage reported_usage_last(const ReportedUsage *reported, uint64_t *at_us);
