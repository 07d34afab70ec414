/* auth_failures.h - client addresses that fail authorisation again and again.
 *
 * A client that has failed 'max' times within AUTH_FAILURES_WINDOW_S is refused, without a look at
 * its signature, until that time has passed since its first failure. So an address that guesses
 * keys gets as many tries a minute, costs next to nothing between them, and is not locked out for
 * longer: another client may have the same address.
 *
 * The counts are in two rows of cells, of which an address has one each, chosen by a secret hash;
 * the smaller count is its own. Others can raise it only by sharing both cells. The table has a
 * fixed size, and what is old in it is overwritten.
 *
 * Ownership  The caller closes it.
 * Threads    Any; nothing is locked. While no address is refused, a request costs one look at a
 *            number that does not change.
 */
#pragma once

#include "base/defs.h"
#include "http/http.h"

#define AUTH_FAILURES_WINDOW_S 60

typedef struct AuthFailures AuthFailures;

AuthFailures *auth_failures_open(uint32_t max);
void auth_failures_close(AuthFailures *failures); /* accepts NULL */
DEFINE_AUTO(AuthFailures *, auth_failures_close)

/* A request of the client was not authorised, by a monotonic clock. True if this was one too many:
 * the client is refused from now on. */
bool auth_failures_note(AuthFailures *failures, HttpClient client, uint64_t now_us);

/* Whether the client is refused now; then '*wait_ms' is how long it will be. */
bool auth_failures_refuses(AuthFailures *failures, HttpClient client, uint64_t now_us,
                           uint32_t *wait_ms);
