/* connection.h - what the commands that ask a server have in common: their key, and how those that
 * move items reach a container. */
#pragma once

#include "base/arena.h"
#include "base/error.h"
#include "client/client.h"
#include "json/json.h"

typedef struct ConnectionArguments {
    const char *endpoint;
    const char *key; /* NULL if it was not given, as the others below */
    const char *key_file;
    const char *cert;
    bool insecure;
    const char *database;
    const char *container;
} ConnectionArguments;

/* The key of --key or --key-file, either of which may be NULL; else of ORRERY_KEY; else the
 * well-known one. It is a copy, so that options_hide can be called next. */
MUST_USE Status connection_choose_key(const char *key, const char *key_file, Arena *arena,
                                      char *const *environment, const char **out, Error *err);

/* Checks the arguments and opens a client. Nothing is sent yet. */
MUST_USE Status connection_open(const ConnectionArguments *arguments, Arena *arena,
                                char *const *environment, size_t answer_bytes_max, Client **out,
                                Error *err);

/* A string of an answer, made harmless for a terminal; the id of the request, which follows the
 * message of an error in a line of its own, is left out. Empty if it is no string. */
Slice connection_safe_text(Arena *arena, Json value);

/* Reports an answer that is not the expected one: its status, and the server's message or reason.
 * Returns STATUS_UNAUTHORIZED for 401 and 403, STATUS_NOT_FOUND for 404, else STATUS_UNAVAILABLE.
 */
MUST_USE Status connection_refused(const ClientCall *call, Error *err);
