/* seed_shape.h - which members the objects of a seed file may have, and of which types.
 *
 * The members have the names that bodies of the REST protocol use. A name that is not in the table
 * is refused with a hint, at every depth: the service ignores such names, so a mistyped policy
 * would silently have no effect. A name that begins with _ is one that a server adds; it is ignored
 * where a body may have been pasted from an answer.
 *
 * Threads    The tables are constant.
 */
#pragma once

#include "base/error.h"
#include "seed/seed_place.h"
#include "json/json.h"

#define SEED_LIST_MAX 10000 /* elements of a list of resources */

/* Checks a whole seed file: names, types, and that what is needed is there. */
MUST_USE Status seed_shape_check(Json root, Error *err);
