/* once.c - done by whoever comes first; the others wait for it as for an event. */
#include "lock/event.h"
#include "lock/holder.h"
#include "sim/sim.h"

#include <errno.h>

enum { NEW, RUNNING, DONE };

struct once {
    struct hall hall;
    _Atomic uint64_t owner;
};

_Static_assert(sizeof(struct once) == sizeof(CCOnce), "the public struct");

static CC_NOINLINE int once_slow(struct once *once, void (*fn)(void *), void *arg) {
    struct hall *h = &once->hall;
    uint32_t word = NEW;
    if (!cc__cas(&h->word, &word, RUNNING)) {
        cc__holder_again(&once->owner, "cc_once: object", once);
        return cc__event_wait_slow(h, DONE, WAIT_FOREVER);
    }
    cc__holder_enter_at(&once->owner, cc__holder_entry());
    fn(arg);
    cc__holder_clear(&once->owner);
    cc__event_finish(h, DONE);
    return 0;
}

int cc_once(CCOnce *object, void (*fn)(void *arg), void *arg) {
    if (unlikely(object == NULL || fn == NULL)) return EINVAL;
    struct once *once = (struct once *)(void *)object;
    cc__sim_point();
    if (likely(cc__get_acquire(&once->hall.word) == DONE)) return 0; /* pairs with cc__event_finish */
    return once_slow(once, fn, arg);
}
