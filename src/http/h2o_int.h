/* h2o_int.h - what http uses of libh2o: its event loop with sockets and timeouts, and the request
 * parser it carries (picohttpparser).
 *
 * The parser's functions are exported by the library but declared in none of its installed
 * headers, so they are declared here. A HttpHeader has the layout of the parser's own header
 * struct, so that parsing fills our array directly; the assertions below keep that true.
 */
#pragma once

#define H2O_USE_LIBUV 0
#define H2O_USE_EPOLL 1
#include <h2o/linklist.h>
#include <h2o/socket.h>
#include <h2o/timeout.h>

#include "http/http.h"

static_assert(offsetof(HttpHeader, name.ptr) == 0, "layout of the parser's header");
static_assert(offsetof(HttpHeader, name.len) == 8, "layout of the parser's header");
static_assert(offsetof(HttpHeader, value.ptr) == 16, "layout of the parser's header");
static_assert(offsetof(HttpHeader, value.len) == 24, "layout of the parser's header");
static_assert(sizeof(HttpHeader) == 32, "layout of the parser's header");

/* Bytes of the head, or -1 if it is malformed, or -2 if it is incomplete. A header whose name is
 * NULL continues the one before (obsolete folding). 'last_len' is how much of the input an earlier
 * call has already found incomplete. */
int phr_parse_request(const char *bytes, size_t len, const char **method, size_t *method_len,
                      const char **path, size_t *path_len, int *minor_version, HttpHeader *headers,
                      size_t *header_count, size_t last_len);

/* The same for the head of an answer. */
int phr_parse_response(const char *bytes, size_t len, int *minor_version, int *status,
                       const char **reason, size_t *reason_len, HttpHeader *headers,
                       size_t *header_count, size_t last_len);
