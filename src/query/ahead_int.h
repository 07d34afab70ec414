/* ahead_int.h - documents of a page that several threads look for at once.
 *
 *     parts     | 0 | 1 | 2 | 3 | 4 | ...        in the order in which the page reads them
 *                     ^ the page takes documents from here, or looks for them itself
 *                         ^---^ others may look for documents here meanwhile: the window
 *
 * A part is a target, or a slice of one that is scanned. Whoever works on it plans it, reads it,
 * and keeps what passes the WHERE clause; the page then takes these documents as if it had read
 * them, part after part, and asks WHERE again. So results, their order, positions and charges are
 * those of one thread that does it all.
 *
 * A page never waits for a thread that has not begun: what nobody works on it does itself. Others
 * are invited when one part was not enough (or at once, if all documents have to be seen before the
 * first result), work a turn of milliseconds, and then stand in line again behind other requests.
 *
 * Ownership  Of the page that opened it; jobs that wait in a queue hold the shell of it.
 * Threads    The page's thread calls what is declared here. Of a part, whoever has it in state
 *            RUNNING touches what the lock does not guard.
 * Bounds     In the window are as many parts as there are threads; each keeps KEPT_BYTES_MAX.
 */
#pragma once

#include "query/page_int.h"

/* Whether the page may be helped: there is someone, and time. */
bool ahead_is_possible(const Page *page);

/* All targets from page->target on, from the EPK up to which everything was read to where it
 * stops. */
Ahead *ahead_open_targets(Page *page);

/* The range of a reading that has to be scanned, in slices; NULL if it is too small for that. */
Ahead *ahead_open_slices(Page *page, const Reading *reading);

/* Nobody works on anything any more when it returns. Accepts NULL. */
void ahead_close(Ahead *ahead);

/* The part that comes next; NULL: there are no more. */
Part *ahead_next_part(Ahead *ahead, size_t *target, Slice *from, Slice *to);

/* The next document of a reading's part, as source_next; it lives until the next call. What was
 * looked at on the way there is added to the page's metrics. */
MUST_USE Status part_next(Page *page, Reading *reading, bool *found, bool *is_paused);

/* As source_position. '*is_passed': the document there has no result, and was looked at. */
Slice part_position(const Part *part, Arena *arena, bool *is_passed);

bool part_was_fetched(const Part *part); /* the document */
uint64_t part_keys(const Part *part);    /* of the index that were read up to it */
PageMode part_mode(const Part *part);    /* once a document has come, or that there is none */
void part_end(Page *page, Part *part);
