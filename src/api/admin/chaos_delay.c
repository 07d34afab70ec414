/* chaos_delay.c - see chaos_delay_int.h. */
#include "api/admin/chaos_delay_int.h"

#include "base/cond.h"
#include "base/thread.h"

static void *run(void *arg)
{
    Delays *delays = arg;
    (void)pthread_mutex_lock(&delays->lock);
    while (delays->first != NULL || !delays->stop) {
        Delay *first = delays->first;
        if (first == NULL) {
            (void)pthread_cond_wait(&delays->changed, &delays->lock);
        } else if (!delays->stop && cond_now_us() < first->due_us) {
            (void)cond_wait_until(&delays->changed, &delays->lock, first->due_us);
        } else {
            delays->first = first->next;
            (void)pthread_mutex_unlock(&delays->lock);
            http_loop_post(first->loop, &first->task);
            (void)pthread_mutex_lock(&delays->lock);
        }
    }
    (void)pthread_mutex_unlock(&delays->lock);
    return NULL;
}

void delays_open(Delays *delays)
{
    *delays = (Delays){0};
    int failed = pthread_mutex_init(&delays->lock, NULL);
    ASSERT(failed == 0);
    failed = pthread_cond_init(&delays->changed, NULL);
    ASSERT(failed == 0);
    Error err; /* without a thread nothing is delayed */
    delays->is_running =
        thread_start(&delays->thread, "orrery-chaos", run, delays, &err) == STATUS_OK;
}

void delays_close(Delays *delays)
{
    (void)pthread_mutex_lock(&delays->lock);
    delays->stop = true;
    (void)pthread_cond_signal(&delays->changed);
    (void)pthread_mutex_unlock(&delays->lock);
    if (delays->is_running)
        (void)pthread_join(delays->thread, NULL);
    (void)pthread_cond_destroy(&delays->changed);
    (void)pthread_mutex_destroy(&delays->lock);
}

void delays_add(Delays *delays, Delay *delay, uint32_t delay_ms)
{
    ASSERT(delay->task.run != NULL);
    if (!delays->is_running) {
        http_loop_post(delay->loop, &delay->task);
        return;
    }
    delay->due_us = cond_after_ms(delay_ms);
    (void)pthread_mutex_lock(&delays->lock);
    Delay **at = &delays->first;
    while (*at != NULL && (*at)->due_us <= delay->due_us)
        at = &(*at)->next;
    delay->next = *at;
    *at = delay;
    (void)pthread_cond_signal(&delays->changed);
    (void)pthread_mutex_unlock(&delays->lock);
}
