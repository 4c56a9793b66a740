/* steal.c - taking fibers from other workers.
 *
 * A worker that has fibers to spare shares them as soon as it sees that a worker searches (runq.c); the searcher only
 * waits. A worker that stays in one turn, because one fiber keeps its CPU, does not share: a thief revokes the biased
 * lock of its queue (a forced steal).
 *
 * STEAL-1  A runnable fiber becomes available to every worker within a bounded time: it is shared at its holder's next
 *          turn, or stolen by a forced steal.
 */
#include "sched/steal.h"

#include "base/rng.h"
#include "os/clock.h"
#include "sched/driver.h"
#include "sched/inbox.h"
#include "trace/trace.h"

static void say(const char *what, uint32_t n, struct worker *victim) {
    cc__event(steal, n, what, victim->core.owner - 1);
    cc__probe2(steal, n, victim->core.owner - 1);
}

/* Visits every other worker once, from a random start. */
#define for_others(w, victim)                                                                                         \
    for (unsigned n_ = cc__get(&cc__sched.count), start_ = (unsigned)(cc__rng_next(&(w)->rng) % n_), i_ = 0; i_ < n_; \
         i_++)                                                                                                        \
        for (struct worker *victim = &cc__sched.workers[(start_ + i_) % n_]; victim != NULL && victim != (w);         \
             victim = NULL)

bool cc__steal(struct worker *w) {
    struct link list;
    cc__list_init(&list);
    uint32_t n = 0, fired = 0;
    uint64_t now = 0;
    for_others(w, victim) {
        uint32_t came = cc__inbox_take(victim, &list);
        if (came != 0) say("the inbox", came, victim);
        n += came;
        unsigned index = victim->core.owner - 1;
        uint64_t due = cc__drivers_next_due(index, false);
        if (due != UINT64_MAX) {
            if (now == 0) now = cc__clock_now();
            if (due <= now) fired += cc__drivers_poll_own(index, now, &list);
        }
    }
    if (n + fired == 0) return false;
    uint32_t fresh = cc__runq_append(w, &list, n + fired);
    if (n != 0) w->received += n + fresh;
    cc__count_n(w, steals, n);
    cc__count_n(w, timers_fired, fired);
    return true;
}

static bool steal_queue(struct worker *w, struct worker *victim) {
    struct link list;
    cc__list_init(&list);
    if (!cc__bias_revoke(&victim->runq.bias)) return false;
    uint32_t n = cc__runq_take_oldest(&victim->runq, cc__policy_half(cc__get(&victim->runq.count)), true, &list);
    uint32_t left = cc__get(&victim->runq.count);
    cc__bias_release(&victim->runq.bias);
    if (n == 0) return false;
    w->victim_left = left;
    say("the queue", n, victim);
    w->received += n + cc__runq_append(w, &list, n);
    cc__count_n(w, steals, n);
    return true;
}

static bool take_inbox(struct worker *w, struct worker *victim) {
    struct link list;
    cc__list_init(&list);
    uint32_t n = cc__inbox_take(victim, &list);
    if (n == 0) return false;
    say("the inbox", n, victim);
    (void)cc__runq_append(w, &list, n);
    cc__count_n(w, steals, n);
    return true;
}

bool cc__steal_from(struct worker *w, struct worker *victim) {
    if (take_inbox(w, victim)) return true;
    uint64_t turn = cc__get(&victim->core.turns);
    if (cc__get(&victim->runq.count) == 0 || !steal_queue(w, victim)) return false;
    w->victim = victim;
    w->victim_turn = turn;
    return true;
}

bool cc__steal_from_stuck(struct worker *w) {
    for_others(w, victim) {
        if (cc__get(&victim->core.turns) == w->seen[victim->core.owner - 1] && cc__steal_from(w, victim)) return true;
    }
    return false;
}

void cc__steal_remember(struct worker *w) {
    for (unsigned i = 0; i < cc__get(&cc__sched.count); i++) w->seen[i] = cc__get(&cc__sched.workers[i].core.turns);
}
