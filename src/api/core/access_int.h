/* access_int.h - what a principal may do. */
#pragma once

#include "api/core/request_int.h"

/* Whether 'r->principal' may do what the request asks for: STATUS_UNAUTHORIZED or STATUS_FORBIDDEN
 * if not. Comes before anything is looked up, so a refusal does not tell whether it exists. */
MUST_USE Status access_check(const ApiRequest *r, Error *err);
