/* attr.h - compiler attributes and hints. */
#ifndef CC_BASE_ATTR_H
#define CC_BASE_ATTR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __linux__
#include <features.h>
#ifndef __GLIBC__
#error "libccc needs 64-bit Linux with glibc; this C library is another one"
#endif
#endif

/* Which sanitizer the code is built for. */
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define CC_ASAN 1
#endif
#if __has_feature(thread_sanitizer)
#define CC_TSAN 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define CC_ASAN 1
#endif
#if defined(__SANITIZE_THREAD__)
#define CC_TSAN 1
#endif

/* A function that the race detector does not see. */
#if defined(CC_TSAN) && defined(__clang__)
#define CC_NO_TSAN __attribute__((disable_sanitizer_instrumentation))
#elif defined(CC_TSAN)
#define CC_NO_TSAN __attribute__((no_sanitize("thread")))
#else
#define CC_NO_TSAN
#endif

#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

#define CC_NOINLINE __attribute__((noinline))
#define CC_INLINE static inline __attribute__((always_inline))
#define CC_NORETURN __attribute__((noreturn))
#define CC_COLD __attribute__((cold))
#define CC_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))

/* The size of a cache line: what two writers must not share. */
#define CC_LINE 64

#define container_of(ptr, type, member) ((type *)(void *)((char *)(ptr)-offsetof(type, member)))
/* Whether reserved words of a public struct are set, as in a program compiled for a newer library. */
#define cc__reserved_used(s) cc__words_used((s)->reserved, array_len((s)->reserved))
CC_INLINE bool cc__words_used(const uint64_t *words, size_t n) {
    uint64_t used = 0;
    for (size_t i = 0; i < n; i++) used |= words[i];
    return used != 0;
}

/* For "%s%s%s" behind a noun: " 'name'", or nothing for a name that is empty. */
#define cc__quoted(name) (name)[0] ? " '" : "", (name), (name)[0] ? "'" : ""

#define array_len(a) (sizeof(a) / sizeof((a)[0]))

#endif
