/* inject.c - the global queue. */
#include "sched/inject.h"

#include "fiber/spec.h"

static void overflow(struct fiber *f) { /* INJECT-1 */
    cc__lock_take(&cc__sched.overflow.lock);
    cc__list_push_back(&cc__sched.overflow.list, &f->link);
    /* seq_cst: a put is followed by a check for sleeping workers. */
    cc__add_seq(&cc__sched.overflow.count, 1);
    cc__lock_release(&cc__sched.overflow.lock);
    struct worker *w = cc__worker();
    if (w != NULL)
        cc__count(w, overflows);
    else
        cc__add_relaxed(&cc__sched.foreign_overflowed, 1);
}

void cc__inject_put(struct fiber *f) {
    if (cc__spec_on()) cc__spec_enqueue(f);
    if (unlikely(cc__get(&cc__sched.overflow.count) != 0 || !cc__ring_put(&cc__sched.ring, f))) overflow(f);
}

void cc__inject_put_all(struct link *list, uint32_t n) {
    for (; n > 0; n--) cc__inject_put(cc__fiber_of(cc__list_pop_front(list)));
}

uint32_t cc__inject_take(uint32_t n, struct link *list) {
    uint32_t taken = 0;
    for (; taken < n; taken++) {
        struct fiber *f = cc__ring_take(&cc__sched.ring);
        if (f == NULL) break;
        cc__list_push_back(list, &f->link);
    }
    if (taken < n && cc__get(&cc__sched.overflow.count) != 0) {
        cc__lock_take(&cc__sched.overflow.lock);
        uint32_t moved = 0;
        for (; taken < n && !cc__list_empty(&cc__sched.overflow.list); taken++, moved++)
            cc__list_push_back(list, cc__list_pop_front(&cc__sched.overflow.list));
        cc__sub(&cc__sched.overflow.count, moved);
        cc__lock_release(&cc__sched.overflow.lock);
    }
    return taken;
}
