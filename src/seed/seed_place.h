/* seed_place.h - where in a seed file something is, for messages: $.databases[0].containers[2].id
 *
 * Ownership  Places are links of a list on the stack of the caller that walks the file.
 */
#pragma once

#include "base/buf.h"
#include "base/error.h"
#include "base/slice.h"

#define SEED_PLACE_BYTES_MAX 400

typedef struct SeedPlace {
    const struct SeedPlace *up; /* NULL for the root */
    Slice name;                 /* of a member; ptr is NULL for an element of an array */
    size_t index;               /* of an element */
} SeedPlace;

static inline SeedPlace seed_place_member(const SeedPlace *up, Slice name)
{
    return (SeedPlace){.up = up, .name = name};
}

static inline SeedPlace seed_place_element(const SeedPlace *up, size_t index)
{
    return (SeedPlace){.up = up, .index = index};
}

/* At most SEED_PLACE_BYTES_MAX bytes, terminated in 'out'. */
typedef struct SeedPlaceText {
    char text[SEED_PLACE_BYTES_MAX];
} SeedPlaceText;
SeedPlaceText seed_place_text(const SeedPlace *place);

/* Puts the place in front of the message of a failure. */
MUST_USE Status seed_place_context(const SeedPlace *place, Error *err);

/* STATUS_BAD_REQUEST at that place. */
MUST_USE Status seed_refuse(const SeedPlace *place, Error *err, const char *format, ...)
    PRINTF_LIKE(3, 4);
