/* runq.c - the parts of the run queue that are off the hot path: sharing, and moves of many fibers. */
#include "sched/runq.h"

#include "fiber/spec.h"

#include "sched/idle.h"
#include "sched/inject.h"
#include "sched/island.h"
#include "sched/upcalls.h"

void cc__runq_level_owner(struct runq *q) {
    struct fiber *f = cc__get(&q->slot);
    if (f != NULL) {
        cc__set(&q->slot, NULL);
        cc__list_push_front(&q->fifo, &f->link);
    }
    (void)cc__runq_level_some_owner(q, UINT32_MAX);
}

uint32_t cc__runq_level_some_owner(struct runq *q, uint32_t n) {
    uint32_t moved = 0;
    for (; moved < n && !cc__list_empty(&q->fresh); moved++) cc__list_push_back(&q->fifo, cc__list_pop_back(&q->fresh));
    return moved;
}

uint32_t cc__runq_take_oldest(struct runq *q, uint32_t n, bool all, struct link *list) {
    uint32_t taken = 0;
    while (taken < n) {
        struct fiber *f;
        if (!cc__list_empty(&q->fresh))
            f = cc__fiber_of(cc__list_pop_back(&q->fresh));
        else if (!cc__list_empty(&q->fifo))
            f = cc__fiber_of(cc__list_pop_front(&q->fifo));
        else if (all && (f = cc__get(&q->slot)) != NULL)
            cc__set(&q->slot, NULL);
        else
            break;
        cc__state_move(f, 0);
        cc__list_push_back(list, &f->link);
        taken++;
    }
    cc__runq_sub_owner(q, taken);
    return taken;
}

uint32_t cc__runq_append(struct worker *w, struct link *list, uint32_t n) {
    struct runq *q = &w->runq;
    uint32_t fresh = 0;
    cc__bias_enter(&q->bias);
    /* Fresh fibers go to the old end of the fresh list, the oldest last; from now on a joiner on this worker may take
     * them out (RUNQ-2). */
    for (struct link *l = cc__get(&list->prev); l != list;) {
        struct link *older = cc__get(&l->prev);
        struct fiber *f = cc__fiber_of(l);
        if (cc__spec_on()) cc__spec_enqueue(f);
        if (cc__get(&f->word) & WORD_FRESH) {
            cc__state_move(f, w->core.owner);
            cc__list_remove(l);
            cc__list_push_back(&q->fresh, l);
            fresh++;
        }
        l = older;
    }
    cc__list_append_all(&q->fifo, list);
    cc__runq_add_owner(q, n);
    cc__bias_leave(&q->bias);
    return fresh;
}

void cc__runq_admit(struct worker *w, struct link *list, uint32_t n, uint32_t front) {
    struct runq *q = &w->runq;
    struct link *place = &q->fifo; /* the next one is inserted after it */
    cc__bias_enter(&q->bias);
    for (uint32_t i = 0; i < n; i++) {
        struct fiber *f = cc__fiber_of(cc__list_pop_front(list));
        if (cc__spec_on()) cc__spec_enqueue(f);
        if (cc__get(&f->word) & WORD_FRESH) cc__state_move(f, w->core.owner); /* timer/timed_spawn.h; RUNQ-2 */
        if (i == front) place = cc__get(&q->fifo.prev);
        cc__list_push_front(place, &f->link);
        place = &f->link;
    }
    cc__runq_add_owner(q, n);
    cc__bias_leave(&q->bias);
}

/* Moves n fibers to the global queue, where searchers find them. */
static void share(struct worker *w, uint32_t n) {
    struct link list;
    cc__list_init(&list);
    cc__bias_enter(&w->runq.bias);
    n = cc__runq_take_oldest(&w->runq, n, false, &list);
    cc__bias_leave(&w->runq.bias);
    cc__inject_put_all(&list, n);
    if (n > 0) cc__idle_notify(w); /* the searcher that was seen may be asleep by now (IDLE-1) */
    cc__idle_gave(w, n);
    cc__set(&w->gave, cc__get(&w->gave) + n);
    cc__count_n(w, shared, n);
    if (n > 0) cc__event(share, n);
}

void cc__runq_tell_slow(struct worker *w, uint64_t want, uint32_t keep) {
    if (cc__sched.simulated) {
        cc__upcall_sim_point();
        return;
    }
    uint32_t count = cc__get(&w->runq.count);
    if (count == 0 || cc__worker_is_island(w)) return; /* ISLAND-1 */
    if (want_searching(want) != 0) {
        if (!cc__policy_worth_sharing(w)) return;
        /* The first fibers are shared at once, then in growing batches: a fast searcher must not turn every spawn into
         * a transfer. */
        uint32_t share_at = cc__get(&w->core.share_at);
        if (count < share_at + keep) return;
        uint32_t n = cc__policy_share(count - keep, cc__inject_len());
        if (n == 0) return;
        cc__set(&w->core.share_at, share_at < SHARE_AT_MAX ? share_at * 2 : share_at);
        share(w, n);
    } else {
        cc__idle_offer(w, want);
    }
}

bool cc__runq_waits_elsewhere(struct worker *w) {
    for (unsigned i = 0; i < cc__get(&cc__sched.count); i++) {
        struct worker *other = &cc__sched.workers[i];
        if (other != w && cc__get(&other->runq.count) != 0) return true;
    }
    return false;
}
