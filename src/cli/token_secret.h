/* token_secret.h - the secret that signs continuation tokens and resource tokens, in the data
 * folder. */
#pragma once

#include "api/core/api_options.h"

/* Reads DATA/token.key, or makes it. It is made once and kept, so that tokens survive a restart. If
 * it is lost, clients in the middle of a query must begin again. */
MUST_USE Status token_secret_open(Arena *arena, const char *data, TokenSecret *out, Error *err);
