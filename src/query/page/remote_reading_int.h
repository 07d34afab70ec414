/* remote_reading_int.h - a target that another node serves, read in batches: see remote_batch.h.
 *
 * The page takes documents from a batch, and asks for the next one when it is empty: after the
 * place of the last document that was looked at. The other node keeps those for which WHERE is
 * true, and the page asks WHERE again, as with helpers (read_ahead_int.h).
 *
 * Ownership  A RemoteReading is in the page's arena; a batch has memory of its own, which the run's
 *            budget knows of.
 * Threads    The page's, which waits for each batch.
 */
#pragma once

#include "query/page/page_int.h"

/* For a reading of a target without a view. */
extern const ReadingCalls READING_REMOTE_CALLS;

/* Keys of the index that were read there for the documents so far. */
uint64_t remote_reading_keys(const RemoteReading *remote);

/* Groups that the index there alone can tell; NULL if it cannot. */
MUST_USE Status remote_count_groups(PageReader *reader, Reading *reading, GroupList **out);
