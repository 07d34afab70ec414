/* refresh.c - loops let go of an older catalogue, and of older keys, when there are newer ones.
 *
 * A loop takes the newest snapshot when it has a request. Without requests a loop would keep an old
 * one for ever, and with it partitions that are gone, whose space on disk could not be freed; and
 * keys that were replaced would stay in memory.
 */
#include "api/core/request_int.h"

static void on_task(HttpTask *task)
{
    ApiLoop *loop = CONTAINER_OF(task, ApiLoop, refresh);
    atomic_store(&loop->is_refreshing,
                 false); /* before the read: a later change posts a new task */
    (void)catalog_read(&loop->reader);
    (void)key_read(&loop->keys);
}

void refresh_loops(Api *api)
{
    (void)pthread_mutex_lock(&api->loops_lock);
    for (ApiLoop *loop = api->loops; loop != NULL; loop = loop->next) {
        if (!atomic_exchange(&loop->is_refreshing, true))
            http_loop_post(loop->http, &loop->refresh);
    }
    (void)pthread_mutex_unlock(&api->loops_lock);
}

/* On the catalogue's thread. */
static void on_published(void *ctx)
{
    refresh_loops(ctx);
}

void refresh_open(Api *api)
{
    int failed = pthread_mutex_init(&api->loops_lock, NULL);
    ASSERT(failed == 0);
    if (api->options.catalog != NULL)
        catalog_set_listener(api->options.catalog, on_published, api);
}

void refresh_close(Api *api)
{
    if (api->options.catalog != NULL)
        catalog_set_listener(api->options.catalog, NULL, NULL);
    (void)pthread_mutex_destroy(&api->loops_lock);
}

void refresh_loop_open(ApiLoop *loop, HttpLoop *http)
{
    Api *api = loop->api;
    loop->http = http;
    loop->refresh.run = on_task;
    (void)pthread_mutex_lock(&api->loops_lock);
    loop->next = api->loops;
    api->loops = loop;
    (void)pthread_mutex_unlock(&api->loops_lock);
}

void refresh_loop_close(ApiLoop *loop)
{
    Api *api = loop->api;
    (void)pthread_mutex_lock(&api->loops_lock);
    ApiLoop **at = &api->loops;
    while (*at != loop)
        at = &(*at)->next;
    *at = loop->next;
    (void)pthread_mutex_unlock(&api->loops_lock);
}
