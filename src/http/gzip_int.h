/* gzip_int.h - compresses a whole body at once.
 *
 * Ownership  A Gzip keeps its tables (150 KB) from the first use until gzip_done.
 * Threads    One per loop.
 */
#pragma once

#include "base/arena.h"

#define ZLIB_CONST /* input is const */
#include <zlib.h>

typedef struct Gzip {
    z_stream stream;
    bool is_open;
} Gzip;

/* The compressed form, in 'arena'. False if it would not be smaller. */
bool gzip_compress(Gzip *gzip, Slice body, Arena *arena, Slice *out);
void gzip_done(Gzip *gzip);
