/* script_gate_int.h - sessions that run scripts on one logical partition go one after the other.
 *
 * The partition orders them too: only one transaction of a logical partition is open at a time. But
 * a session that waits there keeps a runner's thread and a process from others. So the sessions
 * of a key wait here, in the order in which they came, and cost nothing but memory.
 *
 * Threads    Any thread; one mutex, held for a few instructions.
 * Bounds     GATE_WAITERS_MAX sessions of one key wait; beyond that the client is told to try
 * again.
 */
#pragma once

#include "base/error.h"
#include "base/queue.h"
#include "base/slice.h"

enum { GATE_WAITERS_MAX = 256 };

typedef struct ScriptGate ScriptGate;

typedef struct ScriptWaiter ScriptWaiter;
struct ScriptWaiter {
    void (*enter)(ScriptWaiter *waiter); /* it is its turn; on the thread that leaves or enters */

    /* The gate's own. */
    uint64_t container;
    Slice epk;
    uint64_t hash;
    ScriptWaiter *next;        /* that waits for the same key */
    ScriptWaiter *last;        /* of those that wait, if this one has entered */
    ScriptWaiter *next_inside; /* of the same bucket */
    uint32_t waiting;          /* how many wait, if this one has entered */
};

ScriptGate *script_gate_open(void);
void script_gate_close(ScriptGate *gate); /* nobody is inside any more; accepts NULL */

/* Calls waiter->enter, now or when those before it have left. 'epk' must live as long as the
 * waiter. STATUS_THROTTLED, without taking the waiter, if too many wait already. */
MUST_USE Status script_gate_enter(ScriptGate *gate, uint64_t container, Slice epk,
                                  ScriptWaiter *waiter, Error *err);

/* Lets the next one in. The waiter may be gone when this returns. */
void script_gate_leave(ScriptGate *gate, ScriptWaiter *waiter);
