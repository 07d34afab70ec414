/* identity_fetch.h - reads the key set of an identity provider, from a file or a URL. */
#pragma once

#include "base/arena.h"
#include "base/error.h"
#include "base/slice.h"

/* IdentitySourceOptions.load: 'ctx' is the value of --identity-keys, a path or an http:// URL. A
 * file that cannot be read is STATUS_IO, a server that does not answer STATUS_UNAVAILABLE. */
MUST_USE Status identity_fetch(void *ctx, Arena *arena, Slice *text, Error *err);
