/* cc_local.h - fiber-local values, the counterpart of pthread_setspecific.
 *
 * A key is created once; each fiber has its own value for it, initially NULL. Unlike thread-local variables, the values
 * move with the fiber to other workers. An OS thread has its own values; a hosted call sees those of its thread.
 */
#ifndef CCC_CC_LOCAL_H
#define CCC_CC_LOCAL_H

#include <ccc/cc_base.h>

CC_BEGIN_DECLS

/* Identifies a set of values, one for each fiber. 0 is not a key. */
typedef uint32_t CCLocalKey;

#define CC_LOCAL_KEYS_MAX 256
#define CC_LOCAL_ROUNDS 4

/* Creates a key. When a fiber (or OS thread) ends with a value other than NULL, destructor (may be NULL) is called with
 * it, on the fiber's own stack, after all deferred calls and before its joiners are woken. Destructors run in reverse
 * order of the first set of their key. Values set by destructors are destroyed in turn, in at most CC_LOCAL_ROUNDS
 * rounds; the rest is dropped. On failure *key is 0. EINVAL: key is NULL; EAGAIN: CC_LOCAL_KEYS_MAX keys exist. Any
 * context; does not switch. */
CC_API int cc_local_key_create(CCLocalKey *key, void (*destructor)(void *value));

/* Deletes the key and its values without calling their destructor. EINVAL: no such key, or already deleted. Any
 * context; does not switch. */
CC_API int cc_local_key_delete(CCLocalKey key);

/* Stores the caller's value. EINVAL: no such key; ENOMEM: the value is unchanged. Any context; does not
 * switch. */
CC_API int cc_local_set(CCLocalKey key, void *value);

/* The caller's value; NULL: not set, or no such key. Any context; does not switch. */
CC_API void *cc_local_get(CCLocalKey key);

CC_END_DECLS

#endif
