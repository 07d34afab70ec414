/* remote.c - see remote.h. */
#include "transfer/remote.h"

#include "base/encoding.h"
#include "transfer/bulk_body.h"

#include <poll.h>

enum {
    THROTTLED_MAX = 100, /* how often one question may be throttled */
    WAIT_MS_MAX = 10000,
};

void remote_init(Remote *remote, Arena *arena, Client *client, int stop_fd, const char *database,
                 const char *container)
{
    Slice keep = SLICE("-_.~");
    Slice db = slice_from_cstr(database);
    Slice coll = slice_from_cstr(container);
    Slice db_path = percent_encode(arena, db, keep);
    Slice coll_path = percent_encode(arena, coll, keep);
    *remote = (Remote){
        .client = client,
        .stop_fd = stop_fd,
        .database = db,
        .container = coll,
        .database_link = arena_format(arena, "dbs/%.*s", SLICE_ARG(db)),
        .link = arena_format(arena, "dbs/%.*s/colls/%.*s", SLICE_ARG(db), SLICE_ARG(coll)),
        .database_path = arena_format(arena, "/dbs/%.*s", SLICE_ARG(db_path)),
        .path =
            arena_format(arena, "/dbs/%.*s/colls/%.*s", SLICE_ARG(db_path), SLICE_ARG(coll_path)),
    };
}

ClientCall remote_call(const Remote *remote, RemoteFeed feed, Arena *arena)
{
    ClientCall call = {.arena = arena};
    switch (feed) {
    case REMOTE_ROOT:
        call.path = SLICE("/dbs");
        call.resource_type = SLICE("dbs");
        break;
    case REMOTE_DATABASE:
        call.path = arena_format(arena, "%.*s/colls", SLICE_ARG(remote->database_path));
        call.resource_type = SLICE("colls");
        call.resource_link = remote->database_link;
        break;
    case REMOTE_CONTAINER:
        call.path = remote->path;
        call.resource_type = SLICE("colls");
        call.resource_link = remote->link;
        break;
    case REMOTE_RANGES:
        call.path = arena_format(arena, "%.*s/pkranges", SLICE_ARG(remote->path));
        call.resource_type = SLICE("pkranges");
        call.resource_link = remote->link;
        break;
    case REMOTE_ITEMS:
        call.path = arena_format(arena, "%.*s/docs", SLICE_ARG(remote->path));
        call.resource_type = SLICE("docs");
        call.resource_link = remote->link;
        break;
    }
    return call;
}

/* Waits for that long, or until the user wants to stop. */
static Status pause_ms(const Remote *remote, uint32_t ms, Error *err)
{
    struct pollfd stop = {.fd = remote->stop_fd, .events = POLLIN};
    uint32_t wait = ms < 1 ? 1 : ms > WAIT_MS_MAX ? WAIT_MS_MAX : ms;
    if (poll(&stop, 1, (int)wait) > 0)
        return error_set(err, STATUS_TIMEOUT, SUB_NONE, "stopped");
    return STATUS_OK;
}

Status remote_ask(const Remote *remote, ClientCall *call, Error *err)
{
    for (uint32_t i = 0; i < THROTTLED_MAX; i++) {
        ClientCall *ended = NULL;
        client_start(remote->client, call);
        TRY(client_wait(remote->client, remote->stop_fd, &ended, err));
        ASSERT(ended == call);
        if (call->error.status != STATUS_OK) {
            *err = call->error;
            return err->status;
        }
        if (call->http_status != 429)
            return STATUS_OK;
        TRY(pause_ms(remote, remote_retry_after_ms(call), err));
    }
    return STATUS_OK;
}

Status remote_refused(const ClientCall *call, Error *err)
{
    Slice message = answer_message(call->arena, call->body);
    char safe[301];
    size_t len = 0;
    for (; len < message.len && len < sizeof(safe) - 1; len++)
        safe[len] = (char)((uint8_t)message.ptr[len] < ' ' ? ' ' : message.ptr[len]);
    safe[len] = '\0';
    Status status = call->http_status == 401 || call->http_status == 403 ? STATUS_UNAUTHORIZED
                    : call->http_status == 404                           ? STATUS_NOT_FOUND
                    : call->http_status == 409                           ? STATUS_CONFLICT
                    : call->http_status == 410                           ? STATUS_GONE
                    : call->http_status == 400                           ? STATUS_BAD_REQUEST
                                                                         : STATUS_UNAVAILABLE;
    return error_set(err, status, SUB_NONE, "the server answered %d for %.*s%s%s",
                     call->http_status, SLICE_CUT(call->path, 200), len > 0 ? ": " : "", safe);
}

Status remote_read(const Remote *remote, RemoteFeed feed, Arena *arena, Json *out, Error *err)
{
    ClientCall call = remote_call(remote, feed, arena);
    const ClientHeader all = {"x-ms-max-item-count", SLICE("-1")}; /* a map in pieces has gaps */
    if (feed == REMOTE_RANGES) {
        call.headers = &all;
        call.header_count = 1;
    }
    TRY(remote_ask(remote, &call, err));
    if (call.http_status != 200)
        return remote_refused(&call, err);
    if (json_parse(arena, call.body, out, err) != STATUS_OK)
        return error_set(err, STATUS_UNAVAILABLE, SUB_NONE,
                         "the answer for %.*s is not JSON; is it a server of the protocol?",
                         SLICE_CUT(call.path, 200));
    return STATUS_OK;
}

double remote_charge(const ClientCall *call)
{
    double charge = 0;
    bool is_number =
        json_number_from_text(client_header(call, SLICE("x-ms-request-charge")), &charge);
    return is_number && charge >= 0 ? charge : 0;
}

static uint32_t small_number(const ClientCall *call, Slice name)
{
    uint64_t value = 0;
    if (!slice_to_u64(client_header(call, name), &value) || value > UINT32_MAX)
        return 0;
    return (uint32_t)value;
}

uint32_t remote_sub_status(const ClientCall *call)
{
    return small_number(call, SLICE("x-ms-substatus"));
}

uint32_t remote_retry_after_ms(const ClientCall *call)
{
    double ms = 0; /* some servers send a fraction */
    bool is_number = json_number_from_text(client_header(call, SLICE("x-ms-retry-after-ms")), &ms);
    return is_number && ms >= 0 && ms < 3600000 ? (uint32_t)ms : 0;
}
