/* cc_base.h - what every public header needs: linkage, visibility and the id of a fiber.
 *
 * Errors: a call that can fail returns 0 or a positive errno value, and does not modify errno. Only calls that create
 * an object and return a pointer (cc_chan_create, cc_nursery_create and their _ex forms, cc_broadcast_create,
 * cc_broadcast_subscribe, cc_latest_create) set errno, when they return NULL. No call reads errno.
 *
 * Structs that the program or the library fills in end with `reserved` words. Later versions turn them into new fields,
 * so sizes and offsets do not change. The program sets them to 0, as every initialiser does, {0} included; the library
 * sets them to 0 in the structs that it fills in. A nonzero reserved word is a field that this version of the library
 * does not know: EINVAL.
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
/* Ignoring the result is a bug. gcc warns in spite of a cast to void; where an error does not matter, write
 * (void)!cc_event_wait(&e). */
#define CC_MUST_CHECK __attribute__((warn_unused_result))
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

/* For types that are copied bytewise. */
#ifdef __cplusplus
#define CC__ASSERT(condition, text) static_assert(condition, text)
#define CC__ASSERT_PLAIN(type, text) static_assert(__is_trivially_copyable(type), text)
#define CC__ALIGNOF alignof
/* Around a struct whose initialiser may omit fields, which are then 0: g++ warns about that. */
#define CC__SOME_FIELDS_BEGIN \
    _Pragma("GCC diagnostic push") _Pragma("GCC diagnostic ignored \"-Wmissing-field-initializers\"")
#define CC__SOME_FIELDS_END _Pragma("GCC diagnostic pop")
#else
#define CC__ASSERT(condition, text) _Static_assert(condition, text)
#define CC__ASSERT_PLAIN(type, text) _Static_assert(sizeof(type) > 0, text)
#define CC__ALIGNOF _Alignof
#endif

/* A field that C++ zeroes when an initialiser omits it, as C does anyway. */
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
/* The version of the linked library, "0.1.0"; the macros have the version of the headers. Any context; does not
 * switch. */
CC_API const char *cc_version(void);

/* Describes an error code returned by this library, in English: "the task has panicked". For codes without a special
 * meaning here it returns the text of the C library, "No such file or directory". It does not know which call returned
 * the code: ENOENT of cc_resolve is an unknown host. Never NULL; the string is never freed or overwritten. Any context;
 * does not switch. */
CC_API const char *cc_error_text(int code);
CC_END_DECLS

/* Identifies one fiber: a slot, its generation and the kind. 0 identifies no fiber. Ids are not reused: the id of a
 * fiber that has ended never matches another fiber. */
typedef uint64_t CCFiberId;

#endif
