/* arena.h - memory that is released all at once.
 *
 * One arena per request: what lives exactly as long as the request is taken from it and never
 * freed alone. An arena keeps its first block over resets, so a warm one allocates nothing.
 *
 * Ownership  The caller owns the Arena; what it hands out lives until arena_reset or arena_done.
 * Threads    An Arena belongs to one thread at a time. Nothing here locks.
 * Bounds     arena_alloc never returns NULL. A loop whose memory grows with client data compares
 *            arena_used() with its budget and fails before memory runs out.
 */
#pragma once

#include "base/defs.h"
#include "base/slice.h"

/* Block sizes of which a thread keeps a few for its next arenas. The small one, with the block's
 * header, is the largest size that jemalloc cuts from a slab. A larger one would have pages of its
 * own, which cost several times as much when one thread frees what another has allocated. */
enum {
    ARENA_SMALL_BYTES = (14 << 10) - 32,
    ARENA_LARGE_BYTES = 64 << 10,
};

/* With the address sanitizer there is a gap after each allocation that must not be touched, so that
 * a write beyond one is found instead of damaging the next. */
#ifdef __has_feature
#define ARENA_HAS_GAPS __has_feature(address_sanitizer)
#elif defined(__SANITIZE_ADDRESS__)
#define ARENA_HAS_GAPS 1
#else
#define ARENA_HAS_GAPS 0
#endif

typedef struct ArenaBlock ArenaBlock;

typedef struct Arena {
    char *next;        /* first free byte of the current block */
    char *end;         /* after the last byte of the current block */
    ArenaBlock *block; /* current block, which links to the older ones */
    size_t block_size; /* size of an ordinary block */
    size_t used;       /* bytes in full blocks, for arena_used() */
#if ARENA_HAS_GAPS
    size_t gaps; /* bytes in gaps, which are not used */
#endif
} Arena;

void arena_init(Arena *arena, size_t block_size); /* takes no memory yet */
void arena_reset(Arena *arena);                   /* keeps one ordinary block */
void arena_done(Arena *arena);
DEFINE_AUTO_VALUE(Arena, arena_done)

/* For arena_alloc only: opens a block with room for 'size'. A size of 0 needs no new block. */
void *arena_alloc_slow(Arena *arena, size_t size);

/* For arena_alloc only: makes the gap after the allocation at 'p', which was the last. */
#if ARENA_HAS_GAPS
void arena_make_gap(Arena *arena, char *p, size_t size);
#else
static inline void arena_make_gap(Arena *arena, char *p, size_t size)
{
    (void)arena, (void)p, (void)size;
}
#endif

/* 'size' bytes, aligned to 16, not zeroed. */
static inline void *arena_alloc(Arena *arena, size_t size)
{
    size_t rounded = (size + 15) & ~(size_t)15;
    /* Minus one, so that a size of 0 and one that overflows take the slow path too. */
    if (UNLIKELY(rounded - 1 >= (size_t)(arena->end - arena->next)))
        return arena_alloc_slow(arena, size);
    char *p = arena->next;
    arena->next += rounded;
    arena_make_gap(arena, p, size);
    return p;
}

void *arena_zalloc(Arena *arena, size_t size);

/* 'size' bytes that begin with a copy of the 'old_size' bytes at 'old'; the rest is not zeroed. The
 * old ones stay where they are. */
void *arena_realloc(Arena *arena, const void *old, size_t old_size, size_t size);
size_t arena_used(const Arena *arena);

Slice arena_copy(Arena *arena, Slice s);
char *arena_cstr(Arena *arena, Slice s); /* a terminated copy */
Slice arena_format(Arena *arena, const char *format, ...) PRINTF_LIKE(2, 3);

#define ARENA_NEW(arena, type)              ((type *)arena_zalloc((arena), sizeof(type)))
#define ARENA_NEW_ARRAY(arena, type, count) ((type *)arena_zalloc((arena), sizeof(type) * (count)))
