/* api.h - the REST protocol: what answers the requests that http hands over.
 *
 * Ownership  The caller closes the Api after the HTTP server.
 * Threads    Requests run on their loop's thread; changes go to the catalogue's thread and queries
 *            to workers, and come back to the loop as messages.
 */
#pragma once

#include "api/core/api_options.h"

Api *api_open(const ApiOptions *options); /* slices are copied */
void api_close(Api *api);                 /* accepts NULL */
DEFINE_AUTO(Api *, api_close)

/* While it is starting, /healthz answers 503; requests are served. Any thread. */
void api_set_starting(Api *api, bool is_starting);

/* What to give to http_server_open. */
HttpHandler api_handler(Api *api);
