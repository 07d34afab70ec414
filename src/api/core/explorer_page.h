/* explorer_page.h - the explorer: files of a web page that the program was compiled with.
 *
 * The page is built from explorer/ by its own tools (`make explorer`). Without them the program has
 * no page, and says how to get it.
 *
 * Threads    Any; the files are constants.
 */
#pragma once

#include "api/core/request_int.h"

/* Answers if 'path', without its query, is below /_explorer; false if it is not a file there. Needs
 * no key: the page is public, and what it shows is asked for with the user's own. */
bool explorer_page_answer(ApiRequest *r, Slice path);
