/* triggers_int.h - writes of one item with triggers, which run before and after it in one
 * transaction. */
#pragma once

#include "api/items/document_context_int.h"

/* Whether the request names a trigger. */
bool triggers_are_asked(const ApiRequest *r);

/* Does the write, with the triggers that the request names, and answers. 'w' is prepared as for a
 * write without triggers and lives in the request's arena; 'body' is the text that came with it. */
MUST_USE Status triggers_write(ApiRequest *r, const Target *target, const ItemWrite *w, Slice body,
                               Error *err);
