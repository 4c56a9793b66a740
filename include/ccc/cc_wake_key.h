/* cc_wake_key.h - wake keys: 16-byte values with which any code can end one wait, safely even if it is too late.
 *
 * A fiber opens a key, hands copies of it out (to a library with callbacks, another process, a network packet), and
 * waits for it. cc_wake with the key ends the wait. A stale key, whose wait is over, gets ESRCH and has no effect: it
 * is not a pointer, and its ticket is never reused.
 *
 *   static void done(int result, void *context) {         called by the library, on any thread
 *       CCWakeKey *key = context;
 *       (void)cc_wake(*key, (uint64_t)result);            ESRCH: the wait is over
 *       free(key);
 *   }
 *   CCWakeKey key;
 *   uint64_t result;
 *   if (cc_wake_key_open(&key) == 0) {
 *       library_start(done, copy_of(key));                a copy: the callback may come after the wait has ended
 *       rc = cc_wake_key_wait_until(key, &result, cc_after_ms(100));
 *   }
 *
 * All calls: any context, also before the runtime starts and after it has stopped, and in a simulation. None may be
 * called from a signal handler: let the handler write to a descriptor, or see cc_signal.h.
 */
#ifndef CCC_CC_WAKE_KEY_H
#define CCC_CC_WAKE_KEY_H

#include <ccc/cc_base.h>
#include <ccc/cc_time.h>

CC_BEGIN_DECLS

/* May be copied, sent and compared as bytes. {0} is no key: ESRCH. */
typedef struct CCWakeKey {
    uint64_t id;
    uint64_t ticket;
} CCWakeKey;

/* Creates a key for one wake. The key expires when a wait for it has returned anything but EAGAIN or ENOMEM, or when it
 * is closed. EINVAL: NULL. ENOMEM. Does not switch. */
CC_API int cc_wake_key_open(CCWakeKey *key);

/* Ends the wait for that key, which gets the value; without a waiter the next wait returns at once. 0: exactly one wait
 * returns 0 with this value, unless the key is closed or never waited for. ESRCH: the key has expired, was already
 * woken, or is invalid: no effect. Does not switch. */
CC_API int cc_wake(CCWakeKey key, uint64_t value);

/* Waits for the wake and stores its value (value may be NULL). The key then expires, whatever the call returns, except
 * as noted. ESRCH: it had expired, or another caller took the wake or closed the key during the wait. ECANCELED: the
 * caller was cancelled; _until: ETIMEDOUT. _try: EAGAIN, no wake yet; the key stays open. ENOMEM, with a deadline: the
 * key stays open. Switches; _try does not. */
CC_API int cc_wake_key_wait(CCWakeKey key, uint64_t *value);
CC_API int cc_wake_key_wait_try(CCWakeKey key, uint64_t *value);
CC_API int cc_wake_key_wait_until(CCWakeKey key, uint64_t *value, CCDeadline deadline);

/* Closes a key that is no longer needed. A wait in progress returns ESRCH. ESRCH: it had expired. Does not switch. */
CC_API int cc_wake_key_close(CCWakeKey key);

CC_END_DECLS

#endif
