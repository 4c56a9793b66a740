/* timed_spawn.c - a fiber that starts at a given time. */
#include "timer/timed_spawn.h"

#include "sched/island.h"
#include "sched/upcalls.h"

#include <errno.h>
#include <string.h>

int cc__timed_spawn_arm(struct worker *w, struct timed_spawn *timed, uint64_t when, CCTaskFn fn, void *arg,
                        uintptr_t scope) {
    bool island = cc__worker_is_island(w); /* the fiber does not belong to it: ISLAND-4 */
    if (!cc__timer_prepare_alarm(w)) return ENOMEM;
    struct fiber *f = cc__pool_take(&w->core.fibers);
    if (f == NULL) return ENOMEM;
    cc__state_take(f);
    f->fn = fn;
    f->site = NULL;
    cc__fiber_note_object(f, NULL);
    cc__fiber_note_turn(f, cc__get(&w->core.turns));
    memcpy(f->args, &arg, sizeof arg);
    cc__set(&f->handles, 0);
    cc__set(&f->joiners.first, NULL);
    cc__set(&f->scope, scope);
    if (island)
        cc__add_seq(&cc__sched.foreign_spawned, 1);
    else
        cc__count(w, spawned);
    timed->fiber = f;
    timed->worker = w;
    timed->ticket = cc__state_timed_spawn(f, island ? 0 : w->core.owner);
    cc__timer_arm_alarm(w, when, f, timed->ticket);
    return 0;
}

bool cc__timed_spawn_disarm(struct timed_spawn *timed) {
    struct fiber *f = timed->fiber;
    if (cc__state_claim(f, timed->ticket, WAKE_CANCEL) != CLAIM_WON) return false;
    struct worker *w = cc__worker();
    if (w == NULL) cc__upcall_hold(); /* until now the fiber kept the runtime up */
    cc__timer_disarm_alarm(timed->worker);
    cc__lock_take(&f->join_lock); /* a caller with a guessed id may read the generation */
    cc__set(&f->generation, (cc__get(&f->generation) + 1) & CC_FIBER_GENERATION_MAX);
    cc__state_done(f);
    cc__lock_release(&f->join_lock);
    cc__state_recycle(f);
    if (w != NULL)
        cc__pool_give(&w->core.fibers, f);
    else
        cc__pool_give_slow(NULL, f);
    if (w != NULL && !cc__worker_is_island(w))
        cc__set_release(&w->core.counters.ended, cc__get(&w->core.counters.ended) + 1);
    else
        cc__sched_ended_elsewhere(); /* an island counts its own fibers only (ISLAND-3) */
    if (w == NULL) cc__upcall_leave();
    return true;
}
