/* remote.h - a container on a server, and requests about it.
 *
 * Ownership  Names and links live in the arena passed to remote_init; the client is borrowed.
 * Threads    Belongs to one thread.
 */
#pragma once

#include "base/arena.h"
#include "base/error.h"
#include "client/client.h"
#include "json/json.h"

typedef struct Remote {
    Client *client;
    int stop_fd; /* readable when the user wants to stop; -1 if there is none */
    Slice database;
    Slice container;
    Slice database_link; /* "dbs/shop" */
    Slice link;          /* "dbs/shop/colls/orders" */
    Slice database_path; /* percent-encoded: "/dbs/shop" */
    Slice path;          /* "/dbs/shop/colls/orders" */
} Remote;

void remote_init(Remote *remote, Arena *arena, Client *client, int stop_fd, const char *database,
                 const char *container);

/* What a request is about. */
typedef enum RemoteFeed {
    REMOTE_ROOT,      /* the databases of the account */
    REMOTE_DATABASE,  /* the containers of the database */
    REMOTE_CONTAINER, /* the container itself */
    REMOTE_RANGES,
    REMOTE_ITEMS,
} RemoteFeed;

/* A GET of that, to which the caller adds what it needs. */
ClientCall remote_call(const Remote *remote, RemoteFeed feed, Arena *arena);

/* Sends a call and waits for its answer; is patient with a server that throttles. Any answer is
 * STATUS_OK; STATUS_TIMEOUT if the user wants to stop. */
MUST_USE Status remote_ask(const Remote *remote, ClientCall *call, Error *err);

/* The refusal that an answer is, in one line with the server's message. */
MUST_USE Status remote_refused(const ClientCall *call, Error *err);

/* Asks, expects 200, and parses the body. */
MUST_USE Status remote_read(const Remote *remote, RemoteFeed feed, Arena *arena, Json *out,
                            Error *err);

/* Numbers in the headers of an answer; 0 if there is none. */
double remote_charge(const ClientCall *call);
uint32_t remote_sub_status(const ClientCall *call);
uint32_t remote_retry_after_ms(const ClientCall *call);
