/* page_body.h - the items in the body of a page: {"_rid":"...","Documents":[...],"_count":n}.
 *
 * The list is found without parsing the items: a page may be larger than any text that is parsed
 * whole, and most exports need no more than the text of each item.
 */
#pragma once

#include "base/slice.h"

/* The text of the array "Documents" of the object 'body'. False if there is none. */
bool page_body_documents(Slice body, Slice *out);
