/* cc_base.h - what every public header needs: linkage, visibility and the id of a fiber.
 *
 * Errors: a call that can fail returns 0 or a positive errno value, and leaves errno alone. Only calls that
 * make an object and return a pointer (cc_chan_create, cc_nursery_create and their _ex forms, cc_broadcast_create,
 * cc_broadcast_subscribe, cc_latest_create) set errno when that is NULL. No call reads it.
 *
 * Structs that a program fills in, or has filled in, end with `reserved` words. Later versions take new fields from
 * them, so sizes and offsets stay. A program sets them to 0, as every initialiser does, {0} included; the
 * library sets them to 0 in what it fills in. A reserved word that is not 0 means a field that this version of the
 * library does not know: EINVAL.
 */
#ifndef CCC_CC_BASE_H
#define CCC_CC_BASE_H

#if defined(__SIZEOF_POINTER__) && __SIZEOF_POINTER__ != 8
#error "libccc needs 64-bit Linux with glibc; this compiler's pointers have another size"
#endif

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
#define CC_BEGIN_DECLS extern "C" {
#define CC_END_DECLS }
#else
#define CC_BEGIN_DECLS
#define CC_END_DECLS
#endif

#if defined(__GNUC__)
#define CC_API __attribute__((visibility("default")))
#define CC_UNUSED __attribute__((unused)) /* for functions that a macro defines and that may be unused */
#define CC_MUST_CHECK __attribute__((warn_unused_result)) /* ignoring the result is a bug */
#else
#define CC_API
#define CC_MUST_CHECK
#define CC_UNUSED
#endif

#ifdef __cplusplus
#include <ccc/cc_cxx.h>
#endif

/* ---- for macros ---- */

/* A name that is unique to each use of a macro, even on one line. */
#define CC__UNIQUE(name) CC__GLUE(name, __COUNTER__)
#define CC__GLUE(a, b) CC__GLUE_AGAIN(a, b)
#define CC__GLUE_AGAIN(a, b) a##b

/* ONE or MANY: how many arguments there are, up to 40. ISO C does not allow an empty variable part. */
#define CC__ONE_OR_MANY(...)                                                                                        \
    CC__41ST(__VA_ARGS__, MANY, MANY, MANY, MANY, MANY, MANY, MANY, MANY, MANY, MANY, MANY, MANY, MANY, MANY, MANY, \
             MANY, MANY, MANY, MANY, MANY, MANY, MANY, MANY, MANY, MANY, MANY, MANY, MANY, MANY, MANY, MANY, MANY,  \
             MANY, MANY, MANY, MANY, MANY, MANY, MANY, ONE, NONE)
#define CC__41ST(a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, a16, a17, a18, a19, a20, a21, a22, \
                 a23, a24, a25, a26, a27, a28, a29, a30, a31, a32, a33, a34, a35, a36, a37, a38, a39, a40, a41, ...)  \
    a41

/* For what is copied like memory. */
#ifdef __cplusplus
#define CC__ASSERT(condition, text) static_assert(condition, text)
#define CC__ASSERT_PLAIN(type, text) static_assert(__is_trivially_copyable(type), text)
#define CC__ALIGNOF alignof
/* Around a struct whose initialiser may leave fields out, which are 0: g++ warns of that. */
#define CC__SOME_FIELDS_BEGIN \
    _Pragma("GCC diagnostic push") _Pragma("GCC diagnostic ignored \"-Wmissing-field-initializers\"")
#define CC__SOME_FIELDS_END _Pragma("GCC diagnostic pop")
#else
#define CC__ASSERT(condition, text) _Static_assert(condition, text)
#define CC__ASSERT_PLAIN(type, text) _Static_assert(sizeof(type) > 0, text)
#define CC__ALIGNOF _Alignof
#endif

/* A field that C++ initialises when an initialiser leaves it out, as C does anyway. */
#ifdef __cplusplus
#define CC__ZERO \
    {}
#else
#define CC__ZERO
#endif

#define CC_VERSION_MAJOR 0
#define CC_VERSION_MINOR 1
#define CC_VERSION_PATCH 0

CC_BEGIN_DECLS
/* The version of the library that runs, "0.1.0"; the macros are those of the headers. Any context; does not switch. */
CC_API const char *cc_version(void);

/* What an error that a call has returned means, as a phrase in English: "the task has panicked"; of those that mean
 * nothing else here than elsewhere, what the C library says, "No such file or directory". Never NULL, never freed, and
 * not overwritten. Any context; does not switch. */
CC_API const char *cc_error_text(int code);
CC_END_DECLS

/* Identifies one fiber: a slot, its generation and the kind. 0 identifies none.
 * Ids are not reused: the id of a fiber that has ended is never taken for another fiber. */
typedef uint64_t CCFiberId;

#endif
