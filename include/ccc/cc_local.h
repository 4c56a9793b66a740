/* cc_local.h - fiber-local values, as pthread_setspecific has them for threads.
 *
 * A key is created once; each fiber has its own value for it, initially NULL. A fiber keeps its
 * values when it changes workers, which thread-local variables do not. On an OS thread the values are the
 * thread's; a hosted call sees those of its thread.
 */
#ifndef CCC_CC_LOCAL_H
#define CCC_CC_LOCAL_H

#include <ccc/cc_base.h>

CC_BEGIN_DECLS

/* Names a set of values, one for each fiber. 0 names none. */
typedef uint32_t CCLocalKey;

#define CC_LOCAL_KEYS_MAX 256
#define CC_LOCAL_ROUNDS 4

/* Makes a key. When a fiber (an OS thread) ends with a value other than NULL, destructor (may be NULL) is
 * called with it: on the fiber's own stack, after everything deferred, before its joiners are woken;
 * the key that was first set last goes first. What destructors set is destroyed in turn, in at most
 * CC_LOCAL_ROUNDS rounds; the rest is dropped. On failure *key is 0. EINVAL: key is NULL; EAGAIN:
 * CC_LOCAL_KEYS_MAX keys exist. Any context; does not switch. */
CC_API int cc_local_key_create(CCLocalKey *key, void (*destructor)(void *value));

/* Deletes the key and its values; their destructor is no longer called. EINVAL: no such key, or
 * it was deleted before. Any context; does not switch. */
CC_API int cc_local_key_delete(CCLocalKey key);

/* Stores the caller's value. EINVAL: no such key; ENOMEM: the value is unchanged. Any context; does not
 * switch. */
CC_API int cc_local_set(CCLocalKey key, void *value);

/* The caller's value; NULL: not set, or no such key. Any context; does not switch. */
CC_API void *cc_local_get(CCLocalKey key);

CC_END_DECLS

#endif
