/* client_address_int.h - which client a connection is from, and how many each client has.
 *
 * A client is an IPv4 address, or the first 64 bits of an IPv6 address: a provider gives a
 * customer at least that much, so that single IPv6 addresses would be no limit at all.
 *
 * Counts are kept in two rows of cells, and an address has one cell in each, chosen by a secret
 * hash. Its count is the smaller one: never too low, and too high only if other addresses share
 * both cells, which nobody can bring about. So the table has a fixed size, entries need not be
 * removed, and nothing is locked.
 *
 * Ownership  AddressCounts is a member of the server.
 * Threads    Any.
 */
#pragma once

#include "base/hash.h"
#include "http/http.h"

#include <stdatomic.h>
#include <sys/socket.h>

#define ADDRESS_ROWS  2
#define ADDRESS_CELLS 32768 /* twice the usual --connections-max; 256 KB for both rows */

typedef struct AddressCounts {
    /* Immutable after open. */
    HashKey key;
    uint32_t limit; /* 0 for none */
    /* Atomic. */
    _Atomic uint32_t *cells; /* row after row; NULL without a limit */
} AddressCounts;

/* An address that is neither IPv4 nor IPv6 counts as this machine: it is a local socket. */
HttpClient client_of_address(const struct sockaddr *address);

void address_counts_open(AddressCounts *counts, uint32_t limit);
void address_counts_close(AddressCounts *counts);

/* One connection more. False if the client has as many as it may: nothing is counted then. Two
 * that come at the same moment may both be refused at the limit. */
bool address_counts_enter(AddressCounts *counts, HttpClient client);
void address_counts_leave(AddressCounts *counts, HttpClient client);
