/* call_batch_int.h - documents that are read some ahead, so that their calls of users' functions
 * are made together.
 *
 *     source   ->   | document, place, calls | document, place, calls | ...   ->   the page
 *                     ^ at                     ahead
 *
 * A reading of a query that calls such functions takes documents from its source in batches, and
 * has the calls made that the query needs for them (eval/user_calls_int.h). The page then gets one
 * document after the other, each with its position, as if it had just been read. Results, positions
 * and what is charged do not depend on how many documents a batch has.
 *
 * How many that is depends on time only: the first batch is one document, so that a page that wants
 * no more calls nothing in vain, and the next ones are larger as long as calls are fast.
 *
 * Threads    The page's. Queries that call functions of users are read by no other
 * (read_ahead_int.h), since what they call belongs to one thread.
 */
#pragma once

#include "query/page/page_reader_int.h"

/* The document at hand, as the query sees it, with what is known of its calls. */
CallDocument *call_batch_document(const CallBatch *batch);

/* Keys of the index that were read up to the document at hand. */
uint64_t call_batch_keys(const Reading *reading);

extern const ReadingCalls CALL_BATCH_CALLS;
