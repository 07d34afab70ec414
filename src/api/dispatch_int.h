/* dispatch_int.h - from an authorised request to its handler. */
#pragma once

#include "api/core/request_int.h"

/* Finds the handler for what the request asks, and runs it. */
Status route_request(ApiRequest *r, Error *err);

/* For the test that every route has rights: whether there is a handler, and the names of the
 * operations on containers; an empty slice after the last one. */
bool route_exists(ResourceType type, Operation operation);
Slice route_operation_name(size_t index);
