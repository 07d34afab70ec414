/* build_int.h - a builder for a document whose size can be guessed. */
#pragma once

#include "json/json.h"

/* As json_build, with room for 'bytes' at first. */
void json_build_sized(JsonBuilder *b, Arena *arena, size_t bytes);
