/* utf8_int.h - where text stops being UTF-8. */
#pragma once

#include "base/slice.h"

/* The length of the well-formed UTF-8 at the front of 'text': no overlong forms, no surrogates,
 * nothing beyond U+10FFFF. */
size_t utf8_valid_len(Slice text);
