/* dispatch_int.h - from an authorised request to its handler. */
#pragma once

#include "api/core/request_int.h"

/* Finds the handler for what the request asks, and runs it. */
Status route_request(ApiRequest *r, Error *err);
