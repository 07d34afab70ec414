/* import_sample.h - the items that an import would write, without writing them: to learn from them
 * before there is a container.
 *
 * Files share IMPORT_SAMPLE_BYTES_MAX of text; a longer one is read up to its part. What is read of
 * standard input is kept for the import (ImportOptions.stdin_begun). Rows that are bad are passed
 * over, as are files that cannot be read: the import reports them.
 *
 * Threads    All of it runs on the caller's thread, and waits for a pipe.
 * Bounds     IMPORT_SAMPLE_STDIN_MAX bytes of standard input, as they come: compressed, if they
 * are. A pipe that has given something is waited for IMPORT_SAMPLE_WAIT_MS at most.
 */
#pragma once

#include "base/buf.h"
#include "transfer/import.h"

#define IMPORT_SAMPLE_BYTES_MAX ((uint64_t)256 << 20)
#define IMPORT_SAMPLE_STDIN_MAX ((size_t)16 << 20)
#define IMPORT_SAMPLE_WAIT_MS   5000

/* Gets one item, as it would be written. */
typedef Status (*ImportSampleTake)(void *context, Json item, Error *err);

/* 'begun' is the caller's, empty, for IMPORT_SAMPLE_STDIN_MAX bytes of standard input. */
MUST_USE Status import_sample(const ImportOptions *options, ImportSampleTake take, void *context,
                              Buf *begun, Error *err);
