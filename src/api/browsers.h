/* browsers.h - which web pages may use the server, and under which names it may be reached.
 *
 * A browser lets any page send requests to localhost, and shows the page the answer if we say so
 * (CORS), or if it takes page and server for one site. The latter is what an attacker gets who lets
 * the name of his page resolve to 127.0.0.1 after it is loaded (DNS rebinding). The well-known key
 * protects nothing there. So
 *
 *   - a request with the Origin of another site is refused, unless that origin was allowed;
 *   - a request for a host name that is not ours is refused. An attacker has no say in what an
 *     address, localhost or the names of this machine lead to; addresses are always taken.
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
    ORIGIN_NONE, /* no page, or one of our own: nothing needs to be said */
    ORIGIN_ALLOWED,
    ORIGIN_FOREIGN,
} OriginKind;

/* 'origin' is the header, or empty; 'authority' the Host of the same request. */
OriginKind browsers_origin(const BrowserRules *rules, Slice origin, Slice authority);
