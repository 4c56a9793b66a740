/* spin.c - whether to spin, and for how long. */
#include "lock/spin.h"

#include "arch/cpu.h"
#include "lock/holder.h"
#include "lock/policy.h"
#include "os/thread.h"
#include "sched/sched.h"

/* Whether another thread could free the lock while we spin. */
static bool may_spin(struct worker *w) {
    static _Atomic uint32_t cpus; /* 0: not asked, 1: one, 2: more */
    if (w != NULL && cc__get(&cc__sched.count) == 1) return false;
    uint32_t known = cc__get(&cpus);
    if (unlikely(known == 0)) cc__set(&cpus, known = cc__affinity_single() ? 1 : 2);
    return known > 1;
}

/* A hint: a fiber that waits, or that is ready, with the lock. Only a worker may ask: the runtime, and with it the
 * records of fibers, may end while an OS thread spins. */
static bool holder_waits(struct worker *w, _Atomic uint64_t *holder) {
    uint64_t id = w != NULL && holder != NULL ? cc__get(holder) : 0;
    struct fiber *f = id != 0 && (id & HOLDER_THREAD) == 0 ? cc__pool_find(id) : NULL;
    return f != NULL && cc__word_state(cc__get(&f->word)) != FIBER_RUNNING;
}

bool cc__spin(_Atomic uint32_t *failures, unsigned pauses, _Atomic uint64_t *holder,
              bool (*try)(void *lock, uint32_t arg), void *lock, uint32_t arg) {
    struct worker *w = cc__worker();
    if (!may_spin(w)) return false;
    /* After failures, spins are tried rarely: spinning for a holder that sleeps with the lock does not pay. */
    uint32_t failed = cc__get(failures);
    if (failed >= SPIN_FAILURES_MAX) {
        cc__set(failures, failed < SPIN_FAILURES_MAX + SPIN_SKIPS ? failed + 1 : SPIN_FAILURES_MAX - 1);
        return false;
    }
    for (unsigned round = 0; round < SPIN_ROUNDS; round++, pauses *= 2) {
        if (holder_waits(w, holder)) return false;
        for (unsigned i = 0; i < pauses; i++) cc__cpu_relax();
        if (try(lock, arg)) {
            if (failed != 0) cc__set(failures, failed / 2);
            return true;
        }
    }
    cc__set(failures, failed + 1);
    return false;
}
