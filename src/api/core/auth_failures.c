/* auth_failures.c - see auth_failures.h.
 *
 *     cell = | first failure, u32, in seconds plus 1 | failures since, u32 |
 *
 * A cell that is zero was never used. One whose first failure is AUTH_FAILURES_WINDOW_S ago counts
 * as empty.
 */
#include "api/core/auth_failures.h"

#include "base/hash.h"
#include "base/mem.h"
#include "base/random.h"

#include <stdatomic.h>

/* To fill all cells with other addresses' failures would take more requests a minute than a server
 * can answer. 512 KB. */
enum { ROWS = 2, CELLS = 32768 };

struct AuthFailures {
    /* Immutable after open. */
    HashKey key;
    uint32_t max;
    /* Atomic. */
    _Atomic uint64_t refused_until_s; /* no address is refused from then on */
    _Atomic uint64_t cells[ROWS][CELLS];
};

AuthFailures *auth_failures_open(uint32_t max)
{
    ASSERT(max > 0);
    AuthFailures *failures = MEM_NEW(AuthFailures);
    failures->max = max;
    random_secret(&failures->key, sizeof(failures->key));
    return failures;
}

void auth_failures_close(AuthFailures *failures)
{
    mem_free(failures);
}

static uint64_t seconds(uint64_t now_us)
{
    return now_us / 1000000 + 1;
}

static uint64_t over_at(uint64_t cell)
{
    return (cell >> 32) + AUTH_FAILURES_WINDOW_S;
}

static void find_cells(AuthFailures *failures, HttpClient client, _Atomic uint64_t *cells[ROWS])
{
    uint64_t hash =
        hash_keyed(failures->key, slice_make((const char *)&client.number, sizeof(client.number)));
    for (size_t row = 0; row < ROWS; row++, hash >>= 32)
        cells[row] = &failures->cells[row][(uint32_t)hash % CELLS];
}

/* One failure more; returns the cell as it is then. */
static uint64_t count_in(_Atomic uint64_t *cell, uint64_t now_s)
{
    uint64_t before = atomic_load_explicit(cell, memory_order_relaxed);
    for (;;) {
        uint64_t after = before == 0 || now_s >= over_at(before) ? now_s << 32 | 1
                         : (uint32_t)before == UINT32_MAX        ? before
                                                                 : before + 1;
        if (atomic_compare_exchange_weak_explicit(cell, &before, after, memory_order_relaxed,
                                                  memory_order_relaxed))
            return after;
    }
}

static void refuse_until(AuthFailures *failures, uint64_t until_s)
{
    uint64_t before = atomic_load_explicit(&failures->refused_until_s, memory_order_relaxed);
    while (before < until_s &&
           !atomic_compare_exchange_weak_explicit(&failures->refused_until_s, &before, until_s,
                                                  memory_order_relaxed, memory_order_relaxed))
        continue;
}

bool auth_failures_note(AuthFailures *failures, HttpClient client, uint64_t now_us)
{
    _Atomic uint64_t *cells[ROWS];
    find_cells(failures, client, cells);
    uint32_t least = UINT32_MAX;
    uint64_t until_s = 0;
    for (size_t row = 0; row < ROWS; row++) {
        uint64_t cell = count_in(cells[row], seconds(now_us));
        least = (uint32_t)cell < least ? (uint32_t)cell : least;
        until_s = over_at(cell) > until_s ? over_at(cell) : until_s;
    }
    if (least >= failures->max)
        refuse_until(failures, until_s);
    return least == failures->max;
}

bool auth_failures_refuses(AuthFailures *failures, HttpClient client, uint64_t now_us,
                           uint32_t *wait_ms)
{
    uint64_t now_s = seconds(now_us);
    if (LIKELY(now_s >= atomic_load_explicit(&failures->refused_until_s, memory_order_relaxed)))
        return false;
    _Atomic uint64_t *cells[ROWS];
    find_cells(failures, client, cells);
    uint64_t until_s = UINT64_MAX;
    for (size_t row = 0; row < ROWS; row++) {
        uint64_t cell = atomic_load_explicit(cells[row], memory_order_relaxed);
        if ((uint32_t)cell < failures->max || now_s >= over_at(cell))
            return false;
        until_s = over_at(cell) < until_s ? over_at(cell) : until_s;
    }
    *wait_ms = (uint32_t)(until_s - now_s) * 1000;
    return true;
}
