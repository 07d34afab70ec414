/* number_int.h - printing of integers that may be more exact than a double. */
#pragma once

#include "base/buf.h"

void number_print_i64(int64_t integer, Buf *out);
