/* slice.h - text and bytes that someone else owns: a pointer and a length, passed by value.
 *
 * A Slice is not terminated, may hold zero bytes and is never modified through. An empty slice
 * may have a NULL pointer; 'ptr' is never dereferenced when 'len' is 0.
 */
#pragma once

#include "base/defs.h"

#include <string.h>

typedef struct Slice {
    const char *ptr;
    size_t len;
} Slice;

/* A slice of a string literal, usable in constant initialisers with SLICE_INIT. */
#define SLICE(literal) ((Slice){(literal), sizeof(literal) - 1})
#define SLICE_INIT(literal)            \
    {                                  \
        (literal), sizeof(literal) - 1 \
    }
#define SLICE_EMPTY ((Slice){NULL, 0})

/* printf("%.*s", SLICE_ARG(s)); SLICE_CUT is for messages: at most 'max' bytes of client text. */
#define SLICE_ARG(s)      (int)(s).len, (s).ptr
#define SLICE_CUT(s, max) (int)((s).len < (size_t)(max) ? (s).len : (size_t)(max)), (s).ptr

static inline Slice slice_make(const void *ptr, size_t len)
{
    return (Slice){(const char *)ptr, len};
}

static inline Slice slice_from_cstr(const char *text)
{
    return (Slice){text, strlen(text)};
}

static inline bool slice_equal(Slice a, Slice b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.ptr, b.ptr, a.len) == 0);
}

/* Byte order; a prefix sorts before what it is a prefix of. */
static inline int slice_compare(Slice a, Slice b)
{
    size_t len = a.len < b.len ? a.len : b.len;
    int order = len == 0 ? 0 : memcmp(a.ptr, b.ptr, len);
    return order != 0 ? order : (a.len > b.len) - (a.len < b.len);
}

static inline bool slice_starts_with(Slice s, Slice prefix)
{
    return s.len >= prefix.len && (prefix.len == 0 || memcmp(s.ptr, prefix.ptr, prefix.len) == 0);
}

static inline bool slice_ends_with(Slice s, Slice suffix)
{
    return s.len >= suffix.len &&
           (suffix.len == 0 || memcmp(s.ptr + s.len - suffix.len, suffix.ptr, suffix.len) == 0);
}

/* The rest of 's' from byte 'from' on; empty if it is shorter than that. */
static inline Slice slice_from(Slice s, size_t from)
{
    return from >= s.len ? (Slice){NULL, 0} : (Slice){s.ptr + from, s.len - from};
}

static inline Slice slice_first(Slice s, size_t len)
{
    return (Slice){s.ptr, len < s.len ? len : s.len};
}

/* ASCII only, as HTTP and SQL keywords need it. */
bool slice_equal_nocase(Slice a, Slice b);

/* Without spaces and tabs at both ends. */
Slice slice_trim(Slice s);

/* Position of the first 'c', or s.len if there is none. */
size_t slice_find(Slice s, char c);

/* Cuts 's' at the first 'separator': returns what is before it and leaves what is after it in
 * '*s'. Without a separator the whole is returned and '*s' becomes empty with a NULL pointer. */
Slice slice_cut(Slice *s, char separator);

/* Decimal digits only, no sign, no space; false on anything else and on overflow. */
bool slice_to_u64(Slice s, uint64_t *out);
/* The same with an optional leading minus. */
bool slice_to_i64(Slice s, int64_t *out);

/* "true"/"false" in any case (the SDKs send three spellings); false on anything else. */
bool slice_to_bool(Slice s, bool *out);
