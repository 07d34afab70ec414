/* listen_int.h - the listening sockets: every address of the host, once for every loop.
 *
 * Ownership  The caller closes the descriptors with listen_close.
 */
#pragma once

#include "base/error.h"
#include "base/log.h"

#define LISTEN_ADDRESSES_MAX 8

typedef struct Listeners {
    uint16_t port;
    size_t address_count;
    uint32_t loop_count;
    int *fds; /* loop_count times address_count, a loop's own side by side */
} Listeners;

/* Binds 'host' and 'port' 'loop_count' times; port 0 means any free one, the same for all
 * addresses. Fails if another process listens there, even with a socket that would share the port.
 */
MUST_USE Status listen_open(const char *host, uint16_t port, uint32_t loop_count, const Log *log,
                            Listeners *out, Error *err);
void listen_close(Listeners *listeners);
