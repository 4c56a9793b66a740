/* once.c - the first caller runs the function; the others wait for its end as for an event.
 *
 * ONCE-1  A caller decides under the lock to wait, and only while the function runs: after a panic the word is NEW,
 *         without waiters, and the next caller claims it.
 */
#include "lock/event.h"
#include "lock/holder.h"
#include "sim/sim.h"

#include <ccc/cc_panic.h>
#include <errno.h>

enum { NEW, RUNNING, DONE };

struct once {
    struct wait_word ww;
    _Atomic uint64_t owner;
};

_Static_assert(sizeof(struct once) == sizeof(CCOnce), "the public struct");

struct run {
    struct once *once;
    uint32_t word; /* NEW until fn has returned */
};

/* If a panic or a C++ exception has left fn, it is not done: a waiter, or the next caller, runs it again. */
static void end_run(void *arg) {
    struct run *r = arg;
    cc__holder_clear(&r->once->owner);
    cc__event_finish(&r->once->ww, r->word);
}

static int run(struct once *once, void (*fn)(void *), void *arg) {
    struct run r = {once, NEW};
    cc__holder_enter(&once->owner);
    CC_DEFER(end_run, &r);
    fn(arg);
    r.word = DONE;
    return 0;
}

static CC_NOINLINE int once_slow(struct once *once, void (*fn)(void *), void *arg) {
    struct wait_word *ww = &once->ww;
    int rc = 0;
    while (rc == 0 && cc__get_acquire(&ww->word) != DONE) { /* pairs with cc__event_finish */
        uint32_t word = NEW;
        if (cc__cas(&ww->word, &word, RUNNING)) return run(once, fn, arg);
        cc__holder_again(&once->owner, "cc_once: object", once);
        rc = cc__event_wait_slow(ww, RUNNING, WAIT_FOREVER, PARK_ONCE); /* ONCE-1 */
    }
    return rc;
}

int cc_once(CCOnce *object, void (*fn)(void *arg), void *arg) {
    if (unlikely(object == NULL || fn == NULL)) return EINVAL;
    struct once *once = (struct once *)(void *)object;
    cc__sim_point();
    if (likely(cc__get_acquire(&once->ww.word) == DONE)) return 0; /* pairs with cc__event_finish */
    return once_slow(once, fn, arg);
}
