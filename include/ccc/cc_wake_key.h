/* cc_wake_key.h - wake keys: sixteen bytes that end one wait, whoever has them, however late they come.
 *
 * A fiber opens a key, gives copies of it to whoever will call back (a library with callbacks, another process, a
 * packet on its way), and waits for it. cc_wake with the key ends the wait. A key that comes when that wait is over
 * gets ESRCH, and nothing happens: it points to no memory of the program, and its ticket is never used again.
 *
 *   static void done(int result, void *context) {         called by the library, on any thread
 *       struct CCWakeKey *key = context;
 *       (void)cc_wake(*key, (uint64_t)result);            ESRCH: nobody waits any more
 *   }
 *   CCWakeKey key;
 *   uint64_t result;
 *   if (cc_wake_key_open(&key) == 0) {
 *       library_start(done, &key);
 *       rc = cc_wake_key_wait_until(key, &result, cc_after_ms(100));
 *   }
 *
 * All calls: any context, also before the runtime starts and after it has stopped, and in a simulation. None of them
 * may be made by a signal handler: let that write to a descriptor, or see cc_signal.h.
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

/* A new key, for one wake. It is over when a wait for it has returned anything but EAGAIN or ENOMEM, or when it was
 * closed. EINVAL: NULL. ENOMEM. Does not switch. */
CC_API int cc_wake_key_open(CCWakeKey *key);

/* Ends the wait for that key, which gets the value; if nobody waits yet, the wait that comes returns at once. 0:
 * exactly one wait returns 0 with this value, unless the key is closed or never waited for. ESRCH: the key is over, was
 * woken before, or never was: nothing happens. Does not switch. */
CC_API int cc_wake(CCWakeKey key, uint64_t value);

/* Waits for the wake and takes its value (NULL: nobody wants it). The key is over then, whatever the call returns:
 * ESRCH: it was over before, or became so while the call waited, because another one has taken the wake, or has closed
 * it. ECANCELED: the caller was cancelled; _until: ETIMEDOUT. _try: EAGAIN, there was no wake yet; the key stays open.
 * ENOMEM, with a deadline: the key stays open. Switches; _try does not. */
CC_API int cc_wake_key_wait(CCWakeKey key, uint64_t *value);
CC_API int cc_wake_key_wait_try(CCWakeKey key, uint64_t *value);
CC_API int cc_wake_key_wait_until(CCWakeKey key, uint64_t *value, CCDeadline deadline);

/* The key is over: for one that is not waited for after all. A wait that is under way returns ESRCH. ESRCH: it was
 * over. Does not switch. */
CC_API int cc_wake_key_close(CCWakeKey key);

CC_END_DECLS

#endif
