/* node_client.c - calls to other nodes from threads that may wait.
 *
 * A call has a connection of its own while it lasts; a few are kept for the calls that follow. The
 * sockets do not block: every wait is a poll(2) that ends when the call's time is over; names are
 * resolved by threads, for which nobody waits longer (node_names.c). The rest is
 * the code of the loops: the handshake, the proof, the reader of answers.
 */
#include "base/clock.h"
#include "base/mem.h"
#include "http/node_link_int.h"
#include "http/node_names_int.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>

/* Connections kept by a client, over all nodes. */
enum { KEPT_MAX = 8 };

typedef struct Kept {
    char address[NODE_ADDRESS_TEXT_MAX];
    Transport transport;
    uint64_t since_us;
} Kept;

struct NodeClient {
    /* Immutable after open. */
    NodeTls *tls;
    Error open_error; /* if there is no 'tls' */
    NodeNames *names;
    /* Guarded by 'lock'. */
    pthread_mutex_t lock;
    Kept kept[KEPT_MAX]; /* the oldest first */
    size_t kept_count;
};

/* One call while it lasts. */
typedef struct Attempt {
    NodeClient *client;
    NodeCall *call;
    Transport transport;
    bool is_open;
    bool is_kept; /* the connection has served a call before */
    bool is_sent; /* a byte of the request may have left */
    uint64_t deadline_us;
    Output output;
    AnswerReader reader;
    char record[TLS_RECORD_BYTES];
    char input[LOOP_INPUT_BYTES];
} Attempt;

static Status exchange(Attempt *attempt, Error *err);
static Status open_connection(Attempt *attempt, Error *err);
static Status prepare(Attempt *attempt, Error *err);
static void put_back(Attempt *attempt);

NodeClient *node_client_open(const NodeSecret *secret)
{
    NodeClient *client = MEM_NEW(NodeClient);
    (void)pthread_mutex_init(&client->lock, NULL); /* cannot fail with these attributes */
    client->names = node_names_new(NULL);
    Error err;
    if (node_tls_open(secret, &client->tls, &err) != STATUS_OK)
        client->open_error = err; /* every call will say so */
    return client;
}

void node_client_close(NodeClient *client)
{
    if (client == NULL)
        return;
    for (size_t i = 0; i < client->kept_count; i++)
        transport_close(&client->kept[i].transport);
    (void)pthread_mutex_destroy(&client->lock);
    node_names_free(client->names);
    node_tls_close(client->tls);
    mem_free(client);
}

void node_client_call(NodeClient *client, NodeCall *call)
{
    Error err;
    Attempt *attempt = MEM_NEW(Attempt);
    attempt->client = client;
    attempt->call = call;
    attempt->deadline_us = clock_monotonic_us(clock_real()) + (uint64_t)call->timeout_ms * 1000;
    Status status = prepare(attempt, &err);
    while (status == STATUS_OK) {
        status = exchange(attempt, &err);
        /* A kept connection may have ended meanwhile; a new one takes its place. */
        bool is_over = status == STATUS_OK || attempt->is_sent || !attempt->is_kept;
        if (attempt->is_open && status != STATUS_OK) {
            /* A goodbye must not push out what OpenSSL has kept of the request. */
            attempt->transport.tls_is_broken = true;
            transport_close(&attempt->transport);
        }
        if (is_over)
            break;
        attempt->is_open = false;
        status = status == STATUS_TIMEOUT ? status : STATUS_OK;
    }
    if (status == STATUS_OK) {
        call->outcome = NODE_CALL_ANSWERED;
        call->status = attempt->reader.status;
        call->answer_headers = attempt->reader.headers;
        call->answer_header_count = attempt->reader.header_count;
        call->answer_body = attempt->reader.body;
    } else {
        call->outcome = attempt->is_sent ? NODE_CALL_UNKNOWN : NODE_CALL_NOT_SENT;
        call->error = err;
    }
    mem_free(attempt);
}

static Status prepare(Attempt *attempt, Error *err)
{
    const NodeClient *client = attempt->client;
    if (client->tls == NULL) {
        *err = client->open_error;
        return err->status;
    }
    return node_call_check(attempt->call, err);
}

/* Waiting. */

/* Waits until the socket is ready for one of 'events', and says for which. */
static Status await_any(const Attempt *attempt, short events, short *ready_events, Error *err)
{
    for (;;) {
        uint64_t now_us = clock_monotonic_us(clock_real());
        if (now_us >= attempt->deadline_us)
            return error_set(err, STATUS_TIMEOUT, SUB_NONE,
                             "The node '%.*s' did not answer within %u ms.",
                             SLICE_CUT(attempt->call->address, 100), attempt->call->timeout_ms);
        uint64_t left_ms = (attempt->deadline_us - now_us) / 1000 + 1;
        struct pollfd waiting = {.fd = attempt->transport.fd, .events = events};
        int ready = poll(&waiting, 1, left_ms > INT32_MAX ? INT32_MAX : (int)left_ms);
        if (ready > 0) {
            *ready_events = waiting.revents;
            return STATUS_OK;
        }
        if (ready < 0 && errno != EINTR)
            return error_set_errno(err, errno, "cannot wait for a node");
    }
}

static Status await_ready(const Attempt *attempt, short events, Error *err)
{
    short ready = 0;
    return await_any(attempt, events, &ready, err);
}

static Status broken(const Attempt *attempt, const char *what, Error *err)
{
    return error_set(err, STATUS_UNAVAILABLE, SUB_NONE, "The node '%.*s' %s.",
                     SLICE_CUT(attempt->call->address, 100), what);
}

/* Connections. */

/* Ends those that have been kept for too long. */
static void drop_old(NodeClient *client, uint64_t now_us)
{
    size_t left = 0;
    for (size_t i = 0; i < client->kept_count; i++) {
        if (now_us - client->kept[i].since_us >= (uint64_t)NODE_KEEP_MS * 1000)
            transport_close(&client->kept[i].transport);
        else
            client->kept[left++] = client->kept[i];
    }
    client->kept_count = left;
}

static bool is_quiet(const Transport *transport)
{
    char byte;
    return recv(transport->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 && errno == EAGAIN;
}

/* The newest connection to the address that is kept, if there is one. */
static bool take_kept(Attempt *attempt)
{
    NodeClient *client = attempt->client;
    bool is_found = false;
    (void)pthread_mutex_lock(&client->lock);
    drop_old(client, clock_monotonic_us(clock_real()));
    for (size_t i = client->kept_count; i > 0 && !is_found; i--) {
        Kept *kept = &client->kept[i - 1];
        if (!slice_equal(slice_from_cstr(kept->address), attempt->call->address))
            continue;
        is_found = is_quiet(&kept->transport);
        if (is_found)
            attempt->transport = kept->transport;
        else
            transport_close(&kept->transport);
        client->kept_count--;
        memmove(kept, kept + 1, (size_t)(&client->kept[client->kept_count] - kept) * sizeof(*kept));
    }
    (void)pthread_mutex_unlock(&client->lock);
    attempt->is_open = is_found;
    attempt->is_kept = is_found;
    return is_found;
}

static void put_back(Attempt *attempt)
{
    NodeClient *client = attempt->client;
    Slice address = attempt->call->address;
    (void)pthread_mutex_lock(&client->lock);
    if (client->kept_count == KEPT_MAX) {
        transport_close(&client->kept[0].transport);
        client->kept_count--;
        memmove(client->kept, client->kept + 1, client->kept_count * sizeof(Kept));
    }
    Kept *kept = &client->kept[client->kept_count++];
    *kept = (Kept){.transport = attempt->transport, .since_us = clock_monotonic_us(clock_real())};
    ASSERT(address.len < sizeof(kept->address));
    memcpy(kept->address, address.ptr, address.len);
    (void)pthread_mutex_unlock(&client->lock);
    attempt->is_open = false;
}

static Status shake_hands(Attempt *attempt, Error *err)
{
    for (;;) {
        bool wants_write = false;
        TransportStep step = transport_handshake(&attempt->transport, attempt->client->tls->client,
                                                 TRANSPORT_CLIENT, &wants_write);
        if (step == TRANSPORT_DONE)
            return STATUS_OK;
        if (step != TRANSPORT_BLOCKED)
            return broken(attempt, "did not complete the TLS handshake", err);
        TRY(await_ready(attempt, wants_write ? POLLOUT : POLLIN, err));
    }
}

static Status prove(Attempt *attempt, Error *err)
{
    NodeProof proof = {.side = TRANSPORT_CLIENT};
    for (;;) {
        TransportStep step =
            node_proof_step(&proof, attempt->client->tls, &attempt->transport, attempt->record);
        if (step == TRANSPORT_DONE)
            return STATUS_OK;
        if (step != TRANSPORT_BLOCKED)
            return broken(attempt,
                          "did not prove that it knows the cluster's secret, or did not believe "
                          "that we do",
                          err);
        TRY(await_ready(attempt, POLLIN, err));
    }
}

static Status connect_one(Attempt *attempt, const NodeAddresses *addresses, size_t index,
                          Error *err)
{
    int fd = -1;
    TRY(node_address_connect(addresses, index, &fd, err));
    attempt->transport = (Transport){.fd = fd};
    attempt->is_open = true;
    TRY(await_ready(attempt, POLLOUT, err));
    TRY(node_address_connected(fd, err));
    TRY(shake_hands(attempt, err));
    return prove(attempt, err);
}

static Status open_connection(Attempt *attempt, Error *err)
{
    NodeAddresses addresses;
    NodeNames *names = attempt->client->names;
    attempt->is_kept = false;
    TRY(node_names_find(names, attempt->call->address, attempt->deadline_us, &addresses, err));
    Status status = STATUS_OK;
    for (size_t i = 0; i < addresses.count; i++) {
        status = connect_one(attempt, &addresses, i, err);
        if (status == STATUS_OK || status == STATUS_TIMEOUT)
            break;
        if (attempt->is_open)
            transport_close(&attempt->transport);
        attempt->is_open = false;
    }
    if (status != STATUS_OK)
        node_names_doubt(names, attempt->call->address);
    return status;
}

/* The exchange. */

/* A node that refuses a large request answers before it is whole; then the rest stays here. */
static Status send_request(Attempt *attempt, bool *is_whole, Error *err)
{
    uint64_t written = transport_written(&attempt->transport);
    for (;;) {
        TransportStep step =
            transport_write(&attempt->transport, &attempt->output, attempt->record);
        attempt->is_sent = attempt->is_sent || transport_written(&attempt->transport) > written;
        short ready = 0;
        *is_whole = step == TRANSPORT_DONE;
        if (step == TRANSPORT_DONE)
            return STATUS_OK;
        if (step != TRANSPORT_BLOCKED)
            return broken(attempt, "closed the connection while it was sent a request", err);
        TRY(await_any(attempt, POLLIN | POLLOUT, &ready, err));
        if ((ready & POLLIN) != 0)
            return STATUS_OK;
    }
}

static Status receive_answer(Attempt *attempt, bool *is_clean, Error *err)
{
    AnswerReader *reader = &attempt->reader;
    while (reader->state != ANSWER_DONE) {
        size_t len = 0;
        size_t used = 0;
        bool has_more = false;
        char *bytes = attempt->input;
        size_t room = answer_room(reader, &bytes);
        room = room == 0 ? sizeof(attempt->input) : room;
        TransportStep step = transport_read(&attempt->transport, bytes, room, &len, &has_more);
        if (step == TRANSPORT_BLOCKED) {
            TRY(await_ready(attempt, POLLIN, err));
            continue;
        }
        if (step != TRANSPORT_DONE)
            return broken(attempt, "closed the connection before its answer was complete", err);
        TRY(answer_read(reader, bytes, len, &used, err));
        *is_clean = used == len && !has_more;
    }
    return STATUS_OK;
}

static Status exchange(Attempt *attempt, Error *err)
{
    NodeCall *call = attempt->call;
    bool is_clean = false;
    bool is_whole = false;
    attempt->reader = (AnswerReader){.arena = call->arena,
                                     .bytes_max = call->answer_bytes_max,
                                     .is_to_head = slice_equal(call->method, SLICE("HEAD"))};
    if (!take_kept(attempt))
        TRY(open_connection(attempt, err));
    node_call_print(call, attempt->deadline_us, clock_monotonic_us(clock_real()), &attempt->output);
    TRY(send_request(attempt, &is_whole, err));
    TRY(receive_answer(attempt, &is_clean, err));
    if (is_clean && is_whole && !attempt->reader.ends_connection)
        put_back(attempt);
    else
        transport_close(&attempt->transport);
    return STATUS_OK;
}
