/* remote_batch.h - what a page of a query asks of a target that another node serves.
 *
 *     node of the page                          node of the target
 *     query_page --> QueryRemote.ask --> ... --> query_batch
 *         ^                                          |
 *         +------------ documents, a batch ----------+
 *
 * The page merges targets wherever they are. Of one that it cannot read itself it asks for
 * documents, batch after batch: each begins after the place of the document before it, as a page
 * does, so that the other node keeps nothing in between. A batch is read from the state of the
 * target at its time, again as a page is. What the index alone can tell, as COUNT, comes as such.
 *
 * What travels between is opaque to the caller, and drawn in remote_format_int.h. Bytes of another
 * node are not trusted: whatever they hold is an error at worst.
 */
#pragma once

#include "query/page/page.h"

/* Documents and bytes that a batch has at most, besides its last document. */
#define QUERY_BATCH_DOCUMENTS_MAX 10000
#define QUERY_BATCH_BYTES_MAX     ((size_t)2 << 20)

/* Of an answer: the last document may be as large as any, and numbers are longer than their text.
 */
#define QUERY_BATCH_ANSWER_BYTES_MAX (QUERY_BATCH_BYTES_MAX + ((size_t)32 << 20))

/* Of what is asked. */
#define QUERY_ASK_BYTES_MAX ((size_t)4 << 10)

/* How a page reaches such a target. */
struct QueryRemote {
    void *ctx;

    /* Has query_batch() run for 'target' on the node that serves it, with the same query, and waits
     * for its answer, which lives in 'arena'. On the thread of the page. */
    Status (*ask)(void *ctx, const QueryTarget *target, Slice asked, Arena *arena, Slice *answer,
                  Error *err);

    /* What that node has told of its plan, as JSON, with the first answer; empty if it has not. */
    Slice (*plan)(void *ctx, const QueryTarget *target);
};

/* Answers what was asked about the only target of 'options', which is served here. 'items_max',
 * 'bytes_max', 'position' and 'resume_filter' do not count. 'work' is what was done for it. 'plan',
 * in 'arena', says how, if 'wants_explain' and something was read; otherwise its 'at' is NULL.
 * STATUS_BAD_REQUEST if it was not asked by a page of this query. */
MUST_USE Status query_batch(const Query *query, const QueryPageOptions *options, Slice asked,
                            Arena *arena, Buf *answer, QueryTargetWork *work, Json *plan,
                            Error *err);
