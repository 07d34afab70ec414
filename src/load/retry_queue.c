/* retry_queue.c - see retry_queue.h. */
#include "load/retry_queue.h"

#include "base/mem.h"

void retry_queue_init(RetryQueue *queue, uint32_t capacity)
{
    *queue = (RetryQueue){.entries = MEM_NEW_ARRAY(RetryEntry, capacity), .capacity = capacity};
}

void retry_queue_done(RetryQueue *queue)
{
    mem_free(queue->entries);
    *queue = (RetryQueue){0};
}

void retry_queue_add(RetryQueue *queue, uint64_t at_us, uint32_t index)
{
    ASSERT(queue->count < queue->capacity);
    uint32_t place = queue->count++;
    while (place > 0 && queue->entries[(place - 1) / 2].at_us > at_us) {
        queue->entries[place] = queue->entries[(place - 1) / 2];
        place = (place - 1) / 2;
    }
    queue->entries[place] = (RetryEntry){at_us, index};
}

uint64_t retry_queue_next_us(const RetryQueue *queue)
{
    return queue->count == 0 ? UINT64_MAX : queue->entries[0].at_us;
}

uint32_t retry_queue_take(RetryQueue *queue)
{
    ASSERT(queue->count > 0);
    uint32_t index = queue->entries[0].index;
    RetryEntry last = queue->entries[--queue->count];
    uint32_t place = 0;
    for (;;) {
        uint32_t child = 2 * place + 1;
        if (child + 1 < queue->count &&
            queue->entries[child + 1].at_us < queue->entries[child].at_us)
            child++;
        if (child >= queue->count || queue->entries[child].at_us >= last.at_us)
            break;
        queue->entries[place] = queue->entries[child];
        place = child;
    }
    queue->entries[place] = last;
    return index;
}
