/* thread_background.h - threads that compute for long stretches let those that clients wait for go
 * first.
 */
#pragma once

#ifdef __cplusplus
extern "C" {
#endif

/* Tells the system that the calling thread computes for long stretches and that nobody waits for
 * its next step. A thread that wakes up then runs at once instead of waiting for the end of this
 * one's slice, and this one still gets its share of the processors. Needs no privilege. A thread
 * that is started by this one does not inherit it. Does nothing where the system does not know it.
 */
void thread_set_background(void);

#ifdef __cplusplus
}
#endif
