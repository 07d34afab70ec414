/* node_names.c - see node_names_int.h. */
#include "http/node_names_int.h"

#include "base/array.h"
#include "base/cond.h"
#include "base/thread.h"

typedef struct Name {
    char text[NODE_ADDRESS_TEXT_MAX];
    NodeNames *names;
    NodeAddresses found; /* the newest; none at first */
    bool is_doubted;
    bool has_thread;
    bool is_resolving;
    pthread_t thread;
    uint64_t attempts; /* of the resolver, that have ended */
    Error error;       /* of the newest, if it has failed */
    size_t callers;    /* that wait */
} Name;

struct NodeNames {
    NodeResolve *resolve;
    /* Guarded by 'lock'. */
    pthread_mutex_t lock;
    pthread_cond_t resolved;
    Name **items; /* in the order in which they came */
    size_t count;
    size_t capacity;
};

static Status resolve_by_system(Slice text, NodeAddresses *out, Error *err)
{
    bool is_name = false;
    return node_address_resolve(text, NODE_ADDRESS_ANY, out, &is_name, err);
}

NodeNames *node_names_new(NodeResolve *resolve)
{
    NodeNames *names = MEM_NEW(NodeNames);
    names->resolve = resolve != NULL ? resolve : resolve_by_system;
    (void)pthread_mutex_init(&names->lock, NULL); /* these cannot fail with these attributes */
    (void)pthread_cond_init(&names->resolved, NULL);
    return names;
}

static void end_thread(Name *name)
{
    if (name->has_thread)
        (void)pthread_join(name->thread, NULL); /* fails only if we wrote a bug */
    name->has_thread = false;
}

void node_names_free(NodeNames *names)
{
    if (names == NULL)
        return;
    for (size_t i = 0; i < names->count; i++) {
        end_thread(names->items[i]);
        mem_free(names->items[i]);
    }
    mem_free(names->items);
    (void)pthread_cond_destroy(&names->resolved);
    (void)pthread_mutex_destroy(&names->lock);
    mem_free(names);
}

static void *run(void *ctx)
{
    Name *name = ctx;
    NodeNames *names = name->names;
    NodeAddresses found = {0};
    Error err = {0};
    Status status = names->resolve(slice_from_cstr(name->text), &found, &err);
    (void)pthread_mutex_lock(&names->lock);
    if (status == STATUS_OK) {
        name->found = found;
        name->is_doubted = false;
    }
    name->error = err;
    name->attempts++;
    name->is_resolving = false;
    (void)pthread_cond_broadcast(&names->resolved);
    (void)pthread_mutex_unlock(&names->lock);
    return NULL;
}

/* ---- under the lock ---- */

static Name *find(const NodeNames *names, Slice text)
{
    for (size_t i = 0; i < names->count; i++) {
        if (slice_equal(slice_from_cstr(names->items[i]->text), text))
            return names->items[i];
    }
    return NULL;
}

/* The oldest that nobody needs goes. */
static Status make_room(NodeNames *names, Error *err)
{
    size_t at = 0;
    while (at < names->count && (names->items[at]->is_resolving || names->items[at]->callers > 0))
        at++;
    if (at == names->count)
        return error_set(err, STATUS_UNAVAILABLE, SUB_NONE,
                         "The names of %d nodes are being resolved already.", NODE_NAMES_MAX);
    end_thread(names->items[at]); /* it has let go of the lock, or is about to return */
    mem_free(names->items[at]);
    names->count--;
    memmove(&names->items[at], &names->items[at + 1], (names->count - at) * sizeof(Name *));
    return STATUS_OK;
}

static Status find_or_add(NodeNames *names, Slice text, Name **out, Error *err)
{
    *out = find(names, text);
    if (*out != NULL)
        return STATUS_OK;
    if (names->count == NODE_NAMES_MAX)
        TRY(make_room(names, err));
    ARRAY_GROW(names->items, names->count, names->capacity, 8);
    Name *name = MEM_NEW(Name);
    name->names = names;
    ASSERT(text.len < sizeof(name->text)); /* it was taken for an address */
    memcpy(name->text, text.ptr, text.len);
    names->items[names->count++] = name;
    *out = name;
    return STATUS_OK;
}

static Status begin(Name *name, Error *err)
{
    if (name->is_resolving)
        return STATUS_OK;
    end_thread(name);
    TRY(thread_start(&name->thread, "orrery-resolver", run, name, err));
    name->has_thread = true;
    name->is_resolving = true;
    return STATUS_OK;
}

/* Waits for one attempt to end. If there are addresses already, there must be time left to use
 * them, whatever the resolver does. */
static Status await_found(Name *name, uint64_t deadline_us, Error *err)
{
    NodeNames *names = name->names;
    uint64_t now_us = cond_now_us();
    uint64_t attempts = name->attempts;
    uint64_t left_us = deadline_us > now_us ? deadline_us - now_us : 0;
    uint64_t until_us = now_us + (name->found.count > 0 ? left_us / 2 : left_us);
    Status status = begin(name, err);
    if (status != STATUS_OK)
        return name->found.count > 0 ? STATUS_OK : status;
    name->callers++;
    while (name->attempts == attempts &&
           cond_wait_until(&names->resolved, &names->lock, until_us)) {
    }
    name->callers--;
    if (name->found.count > 0)
        return STATUS_OK;
    if (name->attempts == attempts)
        return error_set(err, STATUS_TIMEOUT, SUB_NONE,
                         "The name of the node '%s' could not be resolved in time.", name->text);
    *err = name->error;
    return err->status;
}

static Status find_name(NodeNames *names, Slice text, uint64_t deadline_us, NodeAddresses *out,
                        Error *err)
{
    Name *name = NULL;
    TRY(find_or_add(names, text, &name, err));
    if (name->found.count == 0 || name->is_doubted)
        TRY(await_found(name, deadline_us, err));
    *out = name->found;
    return STATUS_OK;
}

/* ---- the others ---- */

Status node_names_find(NodeNames *names, Slice text, uint64_t deadline_us, NodeAddresses *out,
                       Error *err)
{
    bool is_name = false;
    Status status = node_address_resolve(text, NODE_ADDRESS_NUMERIC, out, &is_name, err);
    if (status == STATUS_OK || !is_name)
        return status;
    (void)pthread_mutex_lock(&names->lock);
    status = find_name(names, text, deadline_us, out, err);
    (void)pthread_mutex_unlock(&names->lock);
    return status;
}

void node_names_doubt(NodeNames *names, Slice text)
{
    (void)pthread_mutex_lock(&names->lock);
    Name *name = find(names, text);
    if (name != NULL)
        name->is_doubted = true;
    (void)pthread_mutex_unlock(&names->lock);
}
