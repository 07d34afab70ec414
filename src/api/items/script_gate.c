/* script_gate.c - see script_gate_int.h. */
#include "api/items/script_gate_int.h"

#include "base/hash.h"
#include "base/mem.h"
#include "base/random.h"

#include <pthread.h>

enum {
    BUCKETS = 256
}; /* a power of two; there are as many waiters inside as runners, and few more */

struct ScriptGate {
    HashKey key;

    /* Guarded by 'lock'. */
    pthread_mutex_t lock;
    ScriptWaiter *inside[BUCKETS];
};

ScriptGate *script_gate_open(void)
{
    ScriptGate *gate = MEM_NEW(ScriptGate);
    random_secret(&gate->key, sizeof(gate->key));
    pthread_mutex_init(&gate->lock, NULL);
    return gate;
}

void script_gate_close(ScriptGate *gate)
{
    if (gate == NULL)
        return;
    for (size_t i = 0; i < BUCKETS; i++)
        ASSERT(gate->inside[i] == NULL);
    pthread_mutex_destroy(&gate->lock);
    mem_free(gate);
}

static ScriptWaiter **place_of(ScriptGate *gate, uint64_t container, Slice epk, uint64_t hash)
{
    ScriptWaiter **at = &gate->inside[hash % BUCKETS];
    while (*at != NULL &&
           !((*at)->hash == hash && (*at)->container == container && slice_equal((*at)->epk, epk)))
        at = &(*at)->next_inside;
    return at;
}

Status script_gate_enter(ScriptGate *gate, uint64_t container, Slice epk, ScriptWaiter *waiter,
                         Error *err)
{
    waiter->container = container;
    waiter->epk = epk;
    waiter->hash = hash_keyed(gate->key, epk) ^ container;
    waiter->next = NULL;
    waiter->last = NULL;
    waiter->next_inside = NULL;
    waiter->waiting = 0;
    pthread_mutex_lock(&gate->lock);
    ScriptWaiter **at = place_of(gate, container, epk, waiter->hash);
    ScriptWaiter *first = *at;
    bool is_full = first != NULL && first->waiting >= GATE_WAITERS_MAX;
    if (first == NULL) {
        *at = waiter;
    } else if (!is_full) {
        if (first->next == NULL)
            first->next = waiter;
        else
            first->last->next = waiter;
        first->last = waiter;
        first->waiting++;
    }
    pthread_mutex_unlock(&gate->lock);
    if (first == NULL)
        waiter->enter(waiter);
    if (!is_full)
        return STATUS_OK;
    Status status = error_set(err, STATUS_THROTTLED, SUB_SCRIPT_CONCURRENCY,
                              "%d scripts wait for this partition key already; try again later.",
                              GATE_WAITERS_MAX);
    err->retry_after_ms = 100;
    return status;
}

void script_gate_leave(ScriptGate *gate, ScriptWaiter *waiter)
{
    pthread_mutex_lock(&gate->lock);
    ScriptWaiter **at = place_of(gate, waiter->container, waiter->epk, waiter->hash);
    ASSERT(*at == waiter);
    ScriptWaiter *next = waiter->next;
    if (next == NULL) {
        *at = waiter->next_inside;
    } else {
        next->last = waiter->last;
        next->waiting = waiter->waiting - 1;
        next->next_inside = waiter->next_inside;
        *at = next;
    }
    pthread_mutex_unlock(&gate->lock);
    if (next != NULL)
        next->enter(next);
}
