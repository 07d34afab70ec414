/* conn_memory.c - see conn_memory_int.h. */
#include "http/conn_memory_int.h"

#define PIECE_BYTES_MAX ((uint64_t)256 << 10)

void conn_memory_init(ConnMemory *memory, uint64_t bytes_max, uint32_t share_count)
{
    ASSERT(share_count > 0);
    /* A share has at most two pieces that it does not use, so all shares have at most an eighth. */
    uint64_t piece = bytes_max / 16 / share_count;
    memory->bytes_max = bytes_max;
    memory->piece = piece < PIECE_BYTES_MAX ? piece : PIECE_BYTES_MAX;
    atomic_init(&memory->reserved, 0);
}

static uint64_t limit(const ConnMemory *memory, ConnMemoryUse use)
{
    return use == CONN_MEMORY_BULK ? memory->bytes_max / 4 * 3 : memory->bytes_max;
}

static uint64_t reserved(const ConnMemoryShare *share)
{
    return atomic_load_explicit(&share->all->reserved, memory_order_relaxed);
}

/* How much must be reserved so that 'bytes' more can be held. */
static uint64_t missing(const ConnMemoryShare *share, uint64_t bytes)
{
    if (share->held + bytes <= share->reserved)
        return 0;
    uint64_t needed = share->held + bytes - share->reserved;
    return needed > share->all->piece ? needed : share->all->piece;
}

static void reserve(ConnMemoryShare *share, uint64_t bytes)
{
    if (bytes == 0)
        return;
    atomic_fetch_add_explicit(&share->all->reserved, bytes, memory_order_relaxed);
    share->reserved += bytes;
}

/* Two loops may pass the limit at the same time, each by what it asks for. The limit need not be
 * exact, and so no loop ever waits for another. */
bool conn_memory_take(ConnMemoryShare *share, uint64_t bytes, ConnMemoryUse use)
{
    uint64_t more = missing(share, bytes);
    if ((more > 0 || use == CONN_MEMORY_BULK) && reserved(share) + more > limit(share->all, use))
        return false;
    reserve(share, more);
    share->held += bytes;
    return true;
}

void conn_memory_force(ConnMemoryShare *share, uint64_t bytes)
{
    reserve(share, missing(share, bytes));
    share->held += bytes;
}

void conn_memory_give(ConnMemoryShare *share, uint64_t bytes)
{
    ASSERT(bytes <= share->held);
    ASSERT(share->held <= share->reserved);
    uint64_t piece = share->all->piece;
    share->held -= bytes;
    /* Keeps one piece, so that short requests need no atomic operation. */
    if (share->reserved - share->held <= 2 * piece)
        return;
    uint64_t back = share->reserved - share->held - piece;
    atomic_fetch_sub_explicit(&share->all->reserved, back, memory_order_relaxed);
    share->reserved -= back;
}

bool conn_memory_is_over(const ConnMemoryShare *share, ConnMemoryUse use)
{
    return reserved(share) > limit(share->all, use);
}
