/* client_address.c - see client_address_int.h. */
#include "http/client_address_int.h"

#include "base/mem.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

/* IPv4 addresses stand in ::/16, which no host on a network has in the first half of its address.
 */
#define IPV4_TAG ((uint64_t)0xffff << 32)

static HttpClient client_of_ipv4(uint32_t address)
{
    return (HttpClient){.number = IPV4_TAG | address, .is_local = address >> 24 == 127};
}

HttpClient client_of_address(const struct sockaddr *address)
{
    if (address->sa_family == AF_INET) {
        const struct sockaddr_in *v4 = (const struct sockaddr_in *)(const void *)address;
        return client_of_ipv4(ntohl(v4->sin_addr.s_addr));
    }
    if (address->sa_family != AF_INET6)
        return (HttpClient){.is_local = true};
    const struct in6_addr *v6 = &((const struct sockaddr_in6 *)(const void *)address)->sin6_addr;
    const uint8_t *bytes = v6->s6_addr;
    uint32_t last;
    memcpy(&last, bytes + 12, sizeof(last));
    if (IN6_IS_ADDR_V4MAPPED(v6))
        return client_of_ipv4(ntohl(last));
    uint64_t number = 0;
    for (int i = 0; i < 8; i++)
        number = number << 8 | bytes[i];
    return (HttpClient){.number = number, .is_local = IN6_IS_ADDR_LOOPBACK(v6) != 0};
}

void http_client_print(HttpClient client, char out[HTTP_CLIENT_TEXT_MAX])
{
    char text[INET6_ADDRSTRLEN] = "";
    if (client.number >> 32 == IPV4_TAG >> 32) {
        struct in_addr v4 = {.s_addr = htonl((uint32_t)client.number)};
        (void)inet_ntop(AF_INET, &v4, text, sizeof(text)); /* the text has room for every address */
        (void)snprintf(out, HTTP_CLIENT_TEXT_MAX, "%s", text);
        return;
    }
    struct in6_addr v6 = {0};
    for (int i = 0; i < 8; i++)
        v6.s6_addr[i] = (uint8_t)(client.number >> (56 - 8 * i));
    (void)inet_ntop(AF_INET6, &v6, text, sizeof(text));
    (void)snprintf(out, HTTP_CLIENT_TEXT_MAX, "%s/64", text);
}

void address_counts_open(AddressCounts *counts, uint32_t limit)
{
    *counts = (AddressCounts){.limit = limit};
    if (limit == 0)
        return;
    random_secret(&counts->key, sizeof(counts->key));
    counts->cells = MEM_NEW_ARRAY(_Atomic uint32_t, (size_t)ADDRESS_ROWS *ADDRESS_CELLS);
}

void address_counts_close(AddressCounts *counts)
{
    mem_free((void *)counts->cells);
    *counts = (AddressCounts){0};
}

static void find_cells(AddressCounts *counts, HttpClient client,
                       _Atomic uint32_t *cells[ADDRESS_ROWS])
{
    uint64_t hash =
        hash_keyed(counts->key, slice_make((const char *)&client.number, sizeof(client.number)));
    for (size_t row = 0; row < ADDRESS_ROWS; row++, hash >>= 32)
        cells[row] = &counts->cells[row * ADDRESS_CELLS + (uint32_t)hash % ADDRESS_CELLS];
}

bool address_counts_enter(AddressCounts *counts, HttpClient client)
{
    if (counts->cells == NULL)
        return true;
    _Atomic uint32_t *cells[ADDRESS_ROWS];
    find_cells(counts, client, cells);
    uint32_t least = UINT32_MAX;
    for (size_t row = 0; row < ADDRESS_ROWS; row++) {
        uint32_t before = atomic_fetch_add_explicit(cells[row], 1, memory_order_relaxed);
        least = before < least ? before : least;
    }
    if (least < counts->limit)
        return true;
    address_counts_leave(counts, client);
    return false;
}

void address_counts_leave(AddressCounts *counts, HttpClient client)
{
    if (counts->cells == NULL)
        return;
    _Atomic uint32_t *cells[ADDRESS_ROWS];
    find_cells(counts, client, cells);
    for (size_t row = 0; row < ADDRESS_ROWS; row++) {
        uint32_t before = atomic_fetch_sub_explicit(cells[row], 1, memory_order_relaxed);
        ASSERT(before > 0);
    }
}
