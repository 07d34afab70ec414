/* arena.c - see arena.h. Blocks are linked newest first; a block larger than the ordinary size is
 * made for one large allocation and goes back to the heap at the next reset. */
#include "base/arena.h"

#include "base/mem.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#if ARENA_HAS_GAPS
#include <sanitizer/asan_interface.h>
#endif

struct ArenaBlock {
    ArenaBlock *older;
    size_t size; /* bytes in 'data' */
    _Alignas(16) char data[];
};
static_assert(sizeof(ArenaBlock) + ARENA_SMALL_BYTES <= 14 << 10, "a block is cut from a slab");

/* ---- kept blocks ---- */

/* Writes and queries take a few blocks each time and give them back, so each thread keeps some.
 * Debug builds keep none: there the sanitizer looks for uses of freed memory. */
typedef struct KeptBlocks {
    ArenaBlock *blocks;
    uint32_t count;
} KeptBlocks;

enum { SMALL, LARGE, KIND_COUNT };

#ifdef ORRERY_DEBUG
static const uint32_t COUNT_MAX[KIND_COUNT] = {0, 0};
#else
static const uint32_t COUNT_MAX[KIND_COUNT] = {8, 2};
#endif

static _Thread_local KeptBlocks kept_blocks[KIND_COUNT];
static _Thread_local bool has_ended; /* then no block is kept any more */
static pthread_key_t at_exit_key;
static pthread_once_t at_exit_once = PTHREAD_ONCE_INIT;

/* NULL if blocks of this size are not kept. */
static KeptBlocks *kept_of(size_t size)
{
    if (size == ARENA_SMALL_BYTES)
        return &kept_blocks[SMALL];
    return size == ARENA_LARGE_BYTES ? &kept_blocks[LARGE] : NULL;
}

static ArenaBlock *pop(KeptBlocks *kind)
{
    ASSERT(kind->count > 0);
    ArenaBlock *block = kind->blocks;
    kind->blocks = block->older;
    kind->count--;
    return block;
}

static void free_kept(void *unused)
{
    (void)unused;
    for (size_t i = 0; i < KIND_COUNT; i++) {
        while (kept_blocks[i].count > 0)
            free(pop(&kept_blocks[i]));
    }
    has_ended = true;
}

static void make_key(void)
{
    int failed = pthread_key_create(&at_exit_key, free_kept);
    ASSERT(failed == 0);
}

/* Makes the end of this thread free its kept blocks. False if that is not possible. */
static bool is_freed_at_exit(void)
{
    static _Thread_local bool is_set;
    if (!is_set) {
        (void)pthread_once(&at_exit_once, make_key);
        is_set = pthread_setspecific(at_exit_key, &is_set) == 0;
    }
    return is_set;
}

static ArenaBlock *block_new(size_t size)
{
    KeptBlocks *kind = kept_of(size);
    if (kind != NULL && kind->count > 0)
        return pop(kind);
    ArenaBlock *block = malloc(sizeof(ArenaBlock) + size);
    if (block == NULL)
        block = mem_alloc(sizeof(ArenaBlock) + size); /* ends the process with a message */
    block->size = size;
    return block;
}

static void block_free(ArenaBlock *block)
{
    KeptBlocks *kind = kept_of(block->size);
    if (kind == NULL || kind->count >= COUNT_MAX[kind - kept_blocks] || has_ended ||
        !is_freed_at_exit()) {
        free(block);
        return;
    }
    block->older = kind->blocks;
    kind->blocks = block;
    kind->count++;
}

/* ---- gaps ---- */

#if ARENA_HAS_GAPS
enum { GAP_BYTES = 16 };

void arena_make_gap(Arena *arena, char *p, size_t size)
{
    size_t left = (size_t)(arena->end - arena->next);
    size_t gap = left < GAP_BYTES ? left : GAP_BYTES;
    arena->next += gap;
    arena->gaps += gap;
    __asan_poison_memory_region(p + size, (size_t)(arena->next - (p + size)));
}

static void close_gaps(Arena *arena, const ArenaBlock *block)
{
    arena->gaps = 0;
    if (block != NULL)
        __asan_unpoison_memory_region(block->data, block->size);
}

static size_t gaps_of(const Arena *arena)
{
    return arena->gaps;
}
#else
static void close_gaps(Arena *arena, const ArenaBlock *block)
{
    (void)arena, (void)block;
}

static size_t gaps_of(const Arena *arena)
{
    (void)arena;
    return 0;
}
#endif

/* ---- arenas ---- */

void arena_init(Arena *arena, size_t block_size)
{
    ASSERT(block_size >= 64);
    *arena = (Arena){.block_size = block_size};
}

void arena_reset(Arena *arena)
{
    ArenaBlock *keep = NULL;
    for (ArenaBlock *block = arena->block; block != NULL;) {
        ArenaBlock *older = block->older;
        if (keep == NULL && block->size == arena->block_size)
            keep = block;
        else
            block_free(block);
        block = older;
    }
    arena->block = keep;
    arena->used = 0;
    arena->next = keep == NULL ? NULL : keep->data;
    arena->end = keep == NULL ? NULL : keep->data + keep->size;
    close_gaps(arena, keep);
    if (keep != NULL)
        keep->older = NULL;
}

void arena_done(Arena *arena)
{
    for (ArenaBlock *block = arena->block; block != NULL;) {
        ArenaBlock *older = block->older;
        block_free(block);
        block = older;
    }
    *arena = (Arena){.block_size = arena->block_size};
}

void *arena_alloc_slow(Arena *arena, size_t size)
{
    ASSERT(arena->block_size > 0); /* arena_init was called */
    if (size == 0 && arena->block != NULL)
        return arena->next;
    size_t rounded = (size + 15) & ~(size_t)15;
    ASSERT(rounded >= size);
    size_t block_size = rounded > arena->block_size ? rounded : arena->block_size;
    ArenaBlock *block = block_new(block_size);
    if (arena->block != NULL)
        arena->used += (size_t)(arena->next - arena->block->data);
    block->older = arena->block;
    arena->block = block;
    arena->next = block->data + rounded;
    arena->end = block->data + block_size;
    arena_make_gap(arena, block->data, size);
    return block->data;
}

void *arena_zalloc(Arena *arena, size_t size)
{
    void *p = arena_alloc(arena, size);
    memset(p, 0, size);
    return p;
}

void *arena_realloc(Arena *arena, const void *old, size_t old_size, size_t size)
{
    ASSERT(old_size <= size);
    void *p = arena_alloc(arena, size);
    if (old_size > 0)
        memcpy(p, old, old_size);
    return p;
}

size_t arena_used(const Arena *arena)
{
    size_t used = arena->block == NULL ? 0 : (size_t)(arena->next - arena->block->data);
    return arena->used + used - gaps_of(arena);
}

Slice arena_copy(Arena *arena, Slice s)
{
    char *copy = arena_alloc(arena, s.len);
    if (s.len > 0)
        memcpy(copy, s.ptr, s.len);
    return slice_make(copy, s.len);
}

char *arena_cstr(Arena *arena, Slice s)
{
    char *copy = arena_alloc(arena, s.len + 1);
    if (s.len > 0)
        memcpy(copy, s.ptr, s.len);
    copy[s.len] = '\0';
    return copy;
}

Slice arena_format(Arena *arena, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    char small[256];
    int len = vsnprintf(small, sizeof(small), format, args);
    va_end(args);
    ASSERT(len >= 0);
    char *text = arena_alloc(arena, (size_t)len + 1);
    if ((size_t)len < sizeof(small)) {
        memcpy(text, small, (size_t)len + 1);
    } else {
        va_start(args, format);
        (void)vsnprintf(text, (size_t)len + 1, format, args);
        va_end(args);
    }
    return slice_make(text, (size_t)len);
}
