/* budget.c - see budget_int.h. */
#include "http/budget_int.h"

#define PIECE_BYTES_MAX ((uint64_t)256 << 10)

void budget_init(Budget *budget, uint64_t bytes_max, uint32_t share_count)
{
    ASSERT(share_count > 0);
    /* Reserved and not used are at most two pieces a share: an eighth of all at most. */
    uint64_t piece = bytes_max / 16 / share_count;
    budget->bytes_max = bytes_max;
    budget->piece = piece < PIECE_BYTES_MAX ? piece : PIECE_BYTES_MAX;
    atomic_init(&budget->reserved, 0);
}

static uint64_t limit(const Budget *budget, BudgetUse use)
{
    return use == BUDGET_BULK ? budget->bytes_max / 4 * 3 : budget->bytes_max;
}

static uint64_t reserved(const BudgetShare *share)
{
    return atomic_load_explicit(&share->budget->reserved, memory_order_relaxed);
}

/* What has to be reserved so that 'bytes' more can be held. */
static uint64_t missing(const BudgetShare *share, uint64_t bytes)
{
    if (share->held + bytes <= share->reserved)
        return 0;
    uint64_t needed = share->held + bytes - share->reserved;
    return needed > share->budget->piece ? needed : share->budget->piece;
}

static void reserve(BudgetShare *share, uint64_t bytes)
{
    if (bytes == 0)
        return;
    atomic_fetch_add_explicit(&share->budget->reserved, bytes, memory_order_relaxed);
    share->reserved += bytes;
}

/* Two loops may pass the limit at the same time, each by what it asks for: nobody counts on it to
 * the byte, and so no loop ever waits for another. */
bool budget_take(BudgetShare *share, uint64_t bytes, BudgetUse use)
{
    uint64_t more = missing(share, bytes);
    if ((more > 0 || use == BUDGET_BULK) && reserved(share) + more > limit(share->budget, use))
        return false;
    reserve(share, more);
    share->held += bytes;
    return true;
}

void budget_force(BudgetShare *share, uint64_t bytes)
{
    reserve(share, missing(share, bytes));
    share->held += bytes;
}

void budget_give(BudgetShare *share, uint64_t bytes)
{
    ASSERT(bytes <= share->held);
    uint64_t piece = share->budget->piece;
    share->held -= bytes;
    /* One piece is kept, so that requests that come and go need no atomic operation. */
    if (share->reserved - share->held <= 2 * piece)
        return;
    uint64_t back = share->reserved - share->held - piece;
    atomic_fetch_sub_explicit(&share->budget->reserved, back, memory_order_relaxed);
    share->reserved -= back;
}

bool budget_is_over(const BudgetShare *share, BudgetUse use)
{
    return reserved(share) > limit(share->budget, use);
}
