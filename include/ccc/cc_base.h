/* cc_base.h - what every public header needs: linkage, visibility and the id of a fiber.
 *
 * Errors: a call that can fail returns 0 or a positive errno value. No call reads or sets errno.
 */
#ifndef CCC_CC_BASE_H
#define CCC_CC_BASE_H

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
#define CC_UNUSED __attribute__((unused)) /* for functions that a macro makes and nobody may call */
#define CC_MUST_CHECK __attribute__((warn_unused_result)) /* whoever ignores the result has a bug */
#else
#define CC_API
#define CC_MUST_CHECK
#define CC_UNUSED
#endif

#ifdef __cplusplus
#include <ccc/cc_cxx.h>
#endif

#define CC_VERSION_MAJOR 0
#define CC_VERSION_MINOR 1
#define CC_VERSION_PATCH 0

/* Names one fiber for ever: a slot, its generation and the kind. 0 names none.
 * An id that outlived its fiber is recognised, never confused with the slot's next tenant. */
typedef uint64_t CCFiberId;

#endif
