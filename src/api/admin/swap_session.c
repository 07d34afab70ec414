/* swap_session.c - see swap_session_int.h.
 *
 * A state is left by the one who enters ENDING from it, under the lock; the rest of the work is
 * done without the lock, because it waits for the disk.
 */
#include "api/admin/swap_session_int.h"

#include "base/cond.h"
#include "base/encoding.h"
#include "base/mem.h"
#include "base/random.h"
#include "base/thread.h"

#include <pthread.h>

typedef enum SwapState {
    SWAP_NONE,
    SWAP_BEGINNING,
    SWAP_HELD,
    SWAP_ENDING,
} SwapState;

struct Swaps {
    Catalog *catalog; /* immutable after open */
    const Log *log;

    pthread_mutex_t lock;
    pthread_cond_t changed;

    /* Guarded by 'lock'. */
    SwapState state;
    bool is_closing;
    bool has_thread; /* that is to be joined */
    pthread_t thread;
    uint64_t until_us;

    /* Of the one who has entered BEGINNING or ENDING. */
    char token[SWAP_TOKEN_LEN];
    SwapNames names;
    Container *container; /* a reference */
    size_t held_count;    /* of its ranges */
};

Swaps *swaps_open(Catalog *catalog, const Log *log)
{
    Swaps *swaps = MEM_NEW(Swaps);
    swaps->catalog = catalog;
    swaps->log = log;
    int failed = pthread_mutex_init(&swaps->lock, NULL);
    ASSERT(failed == 0);
    failed = pthread_cond_init(&swaps->changed, NULL);
    ASSERT(failed == 0);
    return swaps;
}

void swaps_close(Swaps *swaps)
{
    if (swaps == NULL)
        return;
    pthread_mutex_lock(&swaps->lock);
    swaps->is_closing = true;
    (void)pthread_cond_broadcast(&swaps->changed);
    bool has_thread = swaps->has_thread;
    pthread_mutex_unlock(&swaps->lock);
    if (has_thread)
        (void)pthread_join(swaps->thread, NULL);
    ASSERT(swaps->state == SWAP_NONE);
    (void)pthread_cond_destroy(&swaps->changed);
    (void)pthread_mutex_destroy(&swaps->lock);
    mem_free(swaps);
}

/* ---- what is held ---- */

static Status hold_ranges(Swaps *swaps, Error *err)
{
    const Container *container = swaps->container;
    for (size_t i = 0; i < container->range_count; i++) {
        TRY(handle_hold(container_handle_at(container, i), err));
        swaps->held_count = i + 1;
    }
    return STATUS_OK;
}

/* With a generation, requests that came by the name are refused and look at it again. */
static void let_go(Swaps *swaps, uint32_t generation)
{
    for (size_t i = 0; i < swaps->held_count; i++)
        handle_let_go(container_handle_at(swaps->container, i), generation);
    swaps->held_count = 0;
}

static void undo(Swaps *swaps)
{
    let_go(swaps, 0);
    CatalogChange change = {
        .op = CATALOG_UNDO_SWAP,
        .database = swaps->names.database,
        .container = swaps->names.container,
    };
    Error err;
    if (catalog_change(swaps->catalog, &change, &err) != STATUS_OK &&
        err.status != STATUS_NOT_FOUND)
        LOG_WARN(swaps->log, "swap.undo_failed", "container=%u reason=%s", swaps->names.container,
                 err.message);
    catalog_change_release(&change);
}

static void enter_none(Swaps *swaps)
{
    container_unref(TAKE(swaps->container));
    pthread_mutex_lock(&swaps->lock);
    swaps->state = SWAP_NONE;
    (void)pthread_cond_broadcast(&swaps->changed);
    pthread_mutex_unlock(&swaps->lock);
}

/* ---- the thread ---- */

static void *watch(void *ctx)
{
    Swaps *swaps = ctx;
    pthread_mutex_lock(&swaps->lock);
    while (swaps->state == SWAP_HELD && !swaps->is_closing &&
           cond_wait_until(&swaps->changed, &swaps->lock, swaps->until_us))
        continue;
    bool is_ours = swaps->state == SWAP_HELD;
    if (is_ours)
        swaps->state = SWAP_ENDING;
    pthread_mutex_unlock(&swaps->lock);
    if (!is_ours)
        return NULL; /* a request ends it; the next hold may be waiting for this thread */
    LOG_WARN(swaps->log, "swap.timed_out", "container=%u", swaps->names.container);
    undo(swaps);
    enter_none(swaps);
    return NULL;
}

/* ---- requests ---- */

static Status begin(Swaps *swaps, Error *err)
{
    CatalogChange change = {
        .op = CATALOG_BEGIN_SWAP,
        .database = swaps->names.database,
        .container = swaps->names.container,
    };
    TRY(catalog_change(swaps->catalog, &change, err));
    swaps->container = container_ref(change.result_container);
    catalog_change_release(&change);
    Status status = hold_ranges(swaps, err);
    if (status != STATUS_OK)
        undo(swaps);
    return status;
}

static Status start_watching(Swaps *swaps, uint32_t ms, Error *err)
{
    pthread_mutex_lock(&swaps->lock);
    swaps->until_us = cond_after_ms(ms);
    swaps->state = SWAP_HELD;
    Status status = thread_start(&swaps->thread, "orrery-swap", watch, swaps, err);
    swaps->has_thread = status == STATUS_OK;
    if (status != STATUS_OK)
        swaps->state = SWAP_ENDING;
    pthread_mutex_unlock(&swaps->lock);
    if (status != STATUS_OK)
        undo(swaps);
    return status;
}

Status swaps_hold(Swaps *swaps, SwapNames names, uint32_t ms, char token[SWAP_TOKEN_LEN],
                  Error *err)
{
    ASSERT(ms <= SWAP_HOLD_MS_MAX);
    pthread_mutex_lock(&swaps->lock);
    bool is_free = swaps->state == SWAP_NONE && !swaps->is_closing;
    bool has_thread = swaps->has_thread;
    pthread_t ended = swaps->thread;
    if (is_free) {
        swaps->state = SWAP_BEGINNING;
        swaps->has_thread = false;
    }
    pthread_mutex_unlock(&swaps->lock);
    if (!is_free)
        return error_set(err, STATUS_CONFLICT, SUB_NONE,
                         "Another swap is under way. One whose client is gone ends by itself "
                         "within %d seconds.",
                         SWAP_HOLD_MS_MAX / 1000);
    if (has_thread)
        (void)pthread_join(ended, NULL);
    uint8_t secret[SWAP_TOKEN_LEN / 2];
    random_secret(secret, sizeof(secret));
    hex_encode(secret, sizeof(secret), swaps->token);
    memcpy(token, swaps->token, SWAP_TOKEN_LEN);
    swaps->names = names;
    swaps->held_count = 0;
    Status status = begin(swaps, err);
    if (status == STATUS_OK)
        status = start_watching(swaps, ms, err);
    if (status != STATUS_OK)
        enter_none(swaps);
    return status;
}

/* Enters ENDING, if what 'token' stands for is held. */
static Status take_over(Swaps *swaps, Slice token, Error *err)
{
    pthread_mutex_lock(&swaps->lock);
    bool is_held =
        swaps->state == SWAP_HELD && slice_equal(token, slice_make(swaps->token, SWAP_TOKEN_LEN));
    if (is_held) {
        swaps->state = SWAP_ENDING;
        (void)pthread_cond_broadcast(&swaps->changed);
    }
    pthread_mutex_unlock(&swaps->lock);
    return is_held ? STATUS_OK
                   : error_set(err, STATUS_GONE, SUB_NONE,
                               "The writes of the container are not held (any more): the time was "
                               "over. Nothing was changed.");
}

Status swaps_commit(Swaps *swaps, Slice token, Slice name, Error *err)
{
    TRY(take_over(swaps, token, err));
    CatalogChange change = {
        .op = CATALOG_END_SWAP,
        .database = swaps->names.database,
        .container = swaps->names.container,
        .copy = swaps->names.copy,
        .id = name,
    };
    Status status = catalog_change(swaps->catalog, &change, err);
    if (status == STATUS_OK) {
        let_go(swaps, change.before->generation);
        LOG_INFO(swaps->log, "swap.done", "container=%u copy=%u", swaps->names.container,
                 swaps->names.copy);
    } else {
        undo(swaps);
    }
    catalog_change_release(&change);
    enter_none(swaps);
    return status;
}

Status swaps_release(Swaps *swaps, Slice token, Error *err)
{
    TRY(take_over(swaps, token, err));
    undo(swaps);
    enter_none(swaps);
    return STATUS_OK;
}
