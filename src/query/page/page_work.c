/* page_work.c - what a page has done with each of its targets, for charges and metrics (I12). */
#include "query/page/page_reader_int.h"

void page_work_init(PageWork *work, Arena *arena, size_t target_count)
{
    *work = (PageWork){
        .targets = ARENA_NEW_ARRAY(arena, QueryTargetWork, target_count == 0 ? 1 : target_count),
        .count = target_count,
    };
}

void page_work_visit(PageWork *work, size_t target)
{
    ASSERT(target < work->count);
    work->targets[target].is_visited = true;
}

void page_work_add_documents(PageWork *work, size_t target, uint64_t documents, uint64_t bytes)
{
    ASSERT(target < work->count);
    work->documents += documents;
    work->document_bytes += bytes;
    work->targets[target].documents_read += documents;
    work->targets[target].document_bytes_read += bytes;
}

void page_work_add_keys(PageWork *work, size_t target, uint64_t keys)
{
    ASSERT(target < work->count);
    work->targets[target].index_keys_read += keys;
}

static QueryTargetWork *first_visited(const PageWork *work)
{
    for (size_t i = 0; i < work->count; i++) {
        if (work->targets[i].is_visited)
            return &work->targets[i];
    }
    return work->targets;
}

void page_work_add_result(PageWork *work, size_t target, size_t bytes)
{
    QueryTargetWork *of = target == PAGE_ALL_TARGETS ? first_visited(work) : &work->targets[target];
    of->results++;
    of->result_bytes += bytes;
}

void page_work_add_calls(PageWork *work, size_t target, uint64_t calls)
{
    QueryTargetWork *of = target == PAGE_ALL_TARGETS ? first_visited(work) : &work->targets[target];
    of->user_calls += calls;
}

void page_work_clear_results(PageWork *work)
{
    for (size_t i = 0; i < work->count; i++) {
        work->targets[i].results = 0;
        work->targets[i].result_bytes = 0;
    }
}

void page_work_freeze(PageWork *work, Arena *arena)
{
    ASSERT(work->before_peek == NULL);
    work->before_peek = ARENA_NEW_ARRAY(arena, QueryTargetWork, work->count);
    memcpy(work->before_peek, work->targets, work->count * sizeof(*work->targets));
}

void page_work_add_frozen_keys(PageWork *work, size_t target, uint64_t keys)
{
    ASSERT(work->before_peek != NULL);
    work->before_peek[target].index_keys_read += keys;
}

void page_work_finish(PageWork *work, QueryMetrics *out)
{
    if (work->before_peek != NULL)
        memcpy(work->targets, work->before_peek, work->count * sizeof(*work->targets));
    for (size_t i = 0; i < work->count; i++) {
        const QueryTargetWork *of = &work->targets[i];
        out->partitions += of->is_visited;
        out->documents_read += of->documents_read;
        out->document_bytes_read += of->document_bytes_read;
        out->index_keys_read += of->index_keys_read;
        out->user_calls += of->user_calls;
    }
}
