/* nearest.h - the word that somebody may have meant. */
#pragma once

#include "base/defs.h"

/* The word of 'candidates' (NULL at the end) that is most like 'word', or NULL if none is similar.
 */
const char *nearest_word(const char *word, const char *const *candidates);
