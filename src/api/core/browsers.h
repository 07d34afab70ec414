/* browsers.h - which web pages may use the server, and under which names it may be reached.
 *
 * A browser lets any page send requests to localhost, and shows the page the answer if the server
 * allows it (CORS) or if the browser takes page and server for one site. An attacker reaches the
 * latter when the name of his page resolves to 127.0.0.1 after the page is loaded (DNS rebinding).
 * The well-known key protects nothing there. So
 *
 *   - a request with the Origin of another site is refused, unless that origin was allowed;
 *   - a request for a host name that is not ours is refused. An attacker cannot change what an
 * address, localhost or the names of this machine lead to; addresses are always accepted.
 *
 * Threads    Pure functions.
 */
#pragma once

#include "base/slice.h"

typedef struct BrowserRules {
    Slice origins; /* that are allowed, separated by commas: "https://app.example", "null", "*" */
    Slice hosts;   /* likewise: "name", "*.example.com", "*" */
    bool checks_hosts;
    bool takes_short_names; /* without a dot, as containers call each other */
} BrowserRules;

/* Whether 'authority', a Host header, names this server. */
bool browsers_host_is_ours(const BrowserRules *rules, Slice authority);

/* The name or address in a Host header, without its port. */
Slice browsers_host_name(Slice authority);

typedef enum OriginKind {
    ORIGIN_NONE, /* no page, or one of our own: no CORS headers are needed */
    ORIGIN_ALLOWED,
    ORIGIN_FOREIGN,
} OriginKind;

/* 'origin' is the header, or empty; 'authority' the Host of the same request. */
OriginKind browsers_origin(const BrowserRules *rules, Slice origin, Slice authority);
