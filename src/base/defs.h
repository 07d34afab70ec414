/* defs.h - the few macros that every file of the project may use.
 *
 * Clean-up is by attribute: AUTO(thing_close) Thing *thing = NULL; releases on every way out of
 * the scope, and TAKE(thing) hands ownership on and leaves NULL in its place.
 */
#pragma once

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MUST_USE               __attribute__((warn_unused_result))
#define PRINTF_LIKE(at, first) __attribute__((format(printf, at, first)))
#define NORETURN               __attribute__((noreturn))
#define UNUSED                 __attribute__((unused))

#define LIKELY(x)       __builtin_expect(!!(x), 1)
#define UNLIKELY(x)     __builtin_expect(!!(x), 0)
#define ARRAY_COUNT(a)  (sizeof(a) / sizeof((a)[0]))
#define CACHE_LINE_SIZE 64

/* The struct of type 'type' whose member 'member' is at 'ptr'. */
#define CONTAINER_OF(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))

/* 'ptr', which must be a const type *, without its const. For memory that is known not to be
 * constant, and for functions that take a plain pointer and only read. */
#define UNCONST(type, ptr) ((type *)(0 ? (const type *)NULL : (ptr)))

/* DEFINE_AUTO(void *, mem_free) makes AUTO(mem_free) usable; the function must accept NULL. For a
 * type that is cleaned up in place, DEFINE_AUTO_VALUE(Arena, arena_done) makes AUTO(arena_done)
 * call arena_done(&variable). */
#define AUTO(release) __attribute__((cleanup(auto_##release)))
#define DEFINE_AUTO(type, release)                    \
    static inline void UNUSED auto_##release(type *p) \
    {                                                 \
        release(*p);                                  \
    }
#define DEFINE_AUTO_VALUE(type, release)              \
    static inline void UNUSED auto_##release(type *p) \
    {                                                 \
        release(p);                                   \
    }
#define TAKE(p)                     \
    __extension__({                 \
        __typeof__(p) taken_ = (p); \
        (p) = NULL;                 \
        taken_;                     \
    })

/* Stays on in release. It means "we wrote a bug": never use it on what a client or a disk sent. */
#define ASSERT(condition)                                  \
    do {                                                   \
        if (UNLIKELY(!(condition)))                        \
            assert_failed(#condition, __FILE__, __LINE__); \
    } while (0)

#ifdef ORRERY_DEBUG
#define DEBUG_ASSERT(condition) ASSERT(condition)
#else
#define DEBUG_ASSERT(condition) ((void)sizeof(condition))
#endif

NORETURN void assert_failed(const char *condition, const char *file, int line);
