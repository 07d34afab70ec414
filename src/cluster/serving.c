/* serving.c - answers of this node to others: at once on the loop, or by a thread that may wait. */
#include "cluster/cluster_int.h"

#include "base/mailbox.h"
#include "base/mem.h"
#include "base/thread.h"

enum { JOBS_MAX = 64, ANSWER_BYTES_MAX = 16 << 20 };

typedef struct Job {
    QueueNode node;
    HttpTask task;
    HttpRequest *request; /* NULL ends the thread */
    Slice path;           /* in the request's arena */
    int status;
    Buf body;
    Serving *serving;
} Job;

struct Serving {
    Cluster *cluster;
    Mailbox mailbox;
    pthread_t thread;
    bool is_running;
    _Atomic uint32_t waiting;
    Job end;
};

static void respond(HttpRequest *request, int status, Slice body)
{
    const HttpHeader headers[] = {{SLICE("content-type"), SLICE("application/octet-stream")}};
    http_respond(request, &(HttpResponse){.status = status,
                                          .headers = headers,
                                          .header_count = ARRAY_COUNT(headers),
                                          .body = body});
}

/* On the request's loop. */
static void finish(HttpTask *task)
{
    Job *job = CONTAINER_OF(task, Job, task);
    respond(job->request, job->status, buf_view(&job->body));
    atomic_fetch_sub(&job->serving->waiting, 1);
    buf_done(&job->body);
    mem_free(job);
}

static void *run(void *arg)
{
    Serving *serving = arg;
    for (bool goes_on = true; goes_on;) {
        QueueNode *next;
        for (QueueNode *node = mailbox_wait(&serving->mailbox); node != NULL; node = next) {
            next = node->next;
            Job *job = CONTAINER_OF(node, Job, node);
            if (job->request == NULL) {
                goes_on = false; /* the loops have ended: nothing comes after it */
                continue;
            }
            job->status = node_answer(serving->cluster, job->path, &job->body);
            http_loop_post(job->request->loop, &job->task);
        }
    }
    return NULL;
}

Serving *serving_new(Cluster *cluster)
{
    Serving *serving = MEM_NEW(Serving);
    serving->cluster = cluster;
    mailbox_init(&serving->mailbox);
    return serving;
}

Status serving_start(Serving *serving, Error *err)
{
    TRY(thread_start(&serving->thread, "cluster-serve", run, serving, err));
    serving->is_running = true;
    return STATUS_OK;
}

void serving_free(Serving *serving)
{
    if (serving == NULL)
        return;
    if (serving->is_running) {
        mailbox_post(&serving->mailbox, &serving->end.node);
        (void)pthread_join(serving->thread, NULL);
    }
    mailbox_done(&serving->mailbox);
    mem_free(serving);
}

bool cluster_handle(Cluster *cluster, HttpRequest *request)
{
    if (!slice_starts_with(request->path, SLICE(CLUSTER_PATH)))
        return false;
    Serving *serving = cluster->serving;
    if (!node_request_waits(request->path)) {
        AUTO(buf_done) Buf body;
        buf_init(&body, 4096);
        int status = node_answer(cluster, request->path, &body);
        respond(request, status, buf_view(&body));
        return true;
    }
    if (!serving->is_running || atomic_fetch_add(&serving->waiting, 1) >= JOBS_MAX) {
        if (serving->is_running)
            atomic_fetch_sub(&serving->waiting, 1);
        respond(request, 503, SLICE("too many requests wait"));
        return true;
    }
    Job *job = MEM_NEW(Job);
    job->request = request;
    job->path = arena_copy(request->arena, request->path);
    job->task.run = finish;
    job->serving = serving;
    buf_init(&job->body, ANSWER_BYTES_MAX);
    mailbox_post(&serving->mailbox, &job->node);
    return true;
}
