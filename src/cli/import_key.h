/* import_key.h - `orrery import --create --partition-key advise`: the key of a new container,
 * chosen by what its items will be.
 */
#pragma once

#include "transfer/import.h"

/* The value of --partition-key that asks for it. */
#define IMPORT_KEY_ADVISE "advise"

/* Reads a sample of what is imported, and says on standard error which key fits and why, unless
 * 'options' are quiet. '*out' is it as --partition-key has it, in the arena. A container that
 * exists keeps its key: '*out' is then NULL, and nothing is read. 'begun' as in import_sample.h.
 * STATUS_BAD_REQUEST with advice if no key fits. */
MUST_USE Status import_key_choose(const ImportOptions *options, Arena *arena, Buf *begun,
                                  const char **out, Error *err);
