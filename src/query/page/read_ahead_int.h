/* read_ahead_int.h - documents of a page that several threads look for at once.
 *
 *     parts     | 0 | 1 | 2 | 3 | 4 | ...        in the order in which the page reads them
 *                     ^ the page takes documents from here, or looks for them itself
 *                         ^---^ others may look for documents here meanwhile: the window
 *
 * A part is a target, or a slice of one that is scanned. The thread that works on it plans it,
 * reads it, and keeps what passes the WHERE clause; the page then takes these documents as if it
 * had read them, part after part, and asks WHERE again. So results, their order, positions and
 * charges are those of one thread that does it all.
 *
 * A page never waits for a thread that has not begun: it does such a part itself. Helpers are
 * invited when one part was not enough (or at once, if all documents have to be seen before the
 * first result), work a turn of milliseconds, and then wait in the queue again, after other
 * requests.
 *
 * Ownership  Of the page that opened it; jobs that wait in a queue hold the shell of it.
 * Threads    The page's thread calls what is declared here. Of a part, the thread that has it in
 * state RUNNING touches what the lock does not guard. Bounds     In the window are as many parts as
 * there are threads; each keeps KEPT_BYTES_MAX.
 */
#pragma once

#include "query/page/page_reader_int.h"

/* Whether the page may be helped: there are threads that can, and time, and no functions of users,
 * which only the page's thread may call. */
bool read_ahead_is_possible(const PageRequest *request);

/* All targets from the reader's next one on, from the EPK up to which everything was read to where
 * it stops. */
ReadAhead *read_ahead_open_targets(const PageReader *reader);

/* The range of a reading that has to be scanned, in slices; NULL if it is too small for that. */
ReadAhead *read_ahead_open_slices(const PageReader *reader, const Reading *reading);

/* Nothing is read by any thread any more when it returns. Accepts NULL. */
void read_ahead_close(ReadAhead *ahead);

/* The part that comes next; NULL if there are no more. */
ReadAheadPart *read_ahead_next_part(ReadAhead *ahead, size_t *target, Slice *from, Slice *to);

uint64_t read_ahead_part_keys(const ReadAheadPart *part); /* of the index, up to its document */

/* For a reading that has a part. What was looked at on the way to a document is added to the work
 * of the page. */
extern const ReadingCalls READ_AHEAD_CALLS;
