/* node_resolver.c - the addresses of a node that has a name.
 *
 * The system's resolver may wait for other machines, which a loop must not do. So a thread asks it,
 * for one name at a time, and tells the loop. That is rare: an address is kept until no connection
 * can be made to it.
 */
#include "base/mem.h"
#include "base/thread.h"
#include "http/node_link_int.h"

struct NodeResolver {
    HttpTask task;
    NodePeer *peer; /* keeps its place while it has a resolver */
    pthread_t thread;
    HttpLoop *loop;
    char text[NODE_ADDRESS_TEXT_MAX];
    /* Written by the thread before it posts the task. */
    Status status;
    Error error;
    NodeAddresses found;
};

static void *run(void *arg)
{
    NodeResolver *resolver = arg;
    bool is_name = false;
    resolver->status = node_address_resolve(slice_from_cstr(resolver->text), NODE_ADDRESS_ANY,
                                            &resolver->found, &is_name, &resolver->error);
    http_loop_post(resolver->loop, &resolver->task);
    return NULL;
}

static void take_result(HttpTask *task)
{
    NodeResolver *resolver = CONTAINER_OF(task, NodeResolver, task);
    NodePeer *peer = resolver->peer;
    Status status = resolver->status;
    Error err = resolver->error;
    peer->resolved = resolver->found;
    node_resolver_end(peer);
    if (status == STATUS_OK)
        node_peer_dispatch(peer);
    else
        node_peer_failed(peer, &err);
}

Status node_resolver_begin(NodePeer *peer, Error *err)
{
    NodeResolver *resolver = MEM_NEW(NodeResolver);
    resolver->task.run = take_result;
    resolver->peer = peer;
    resolver->loop = peer->links->loop;
    memcpy(resolver->text, peer->text, sizeof(resolver->text));
    Status status = thread_start(&resolver->thread, "orrery-resolver", run, resolver, err);
    if (status == STATUS_OK)
        peer->resolver = resolver;
    else
        mem_free(resolver);
    return status;
}

void node_resolver_end(NodePeer *peer)
{
    if (peer->resolver == NULL)
        return;
    (void)pthread_join(peer->resolver->thread, NULL); /* fails only if we wrote a bug */
    mem_free(peer->resolver);
    peer->resolver = NULL;
}
