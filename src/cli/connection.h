/* connection.h - what the commands that move items have in common: how they reach a container. */
#pragma once

#include "base/arena.h"
#include "base/error.h"
#include "client/client.h"

typedef struct ConnectionArguments {
    const char *endpoint;
    const char *key; /* NULL if it was not given, as the others below */
    const char *key_file;
    const char *cert;
    bool insecure;
    const char *database;
    const char *container;
} ConnectionArguments;

/* Checks the arguments and opens a client. Nothing is sent yet. */
MUST_USE Status connection_open(const ConnectionArguments *arguments, Arena *arena,
                                char *const *environment, size_t answer_bytes_max, Client **out,
                                Error *err);
