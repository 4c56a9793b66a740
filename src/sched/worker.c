/* worker.c - the OS threads that run fibers: their start, loop and end. */
#include "sched/sched.h"

#include "base/fatal.h"
#include "base/mem.h"
#include "fiber/spec.h"
#include "os/clock.h"
#include "os/signals.h"
#include "os/vm.h"
#include "sched/driver.h"
#include "sched/elastic.h"
#include "sched/idle.h"
#include "sched/inbox.h"
#include "sched/inject.h"
#include "sched/island.h"
#include "sched/next.h"
#include "sched/policy.h"
#include "sched/record.h"
#include "sched/switch.h"
#include "sched/sysmon.h"
#include "sched/upcalls.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

struct sched cc__sched;

#ifdef CC_SELF_IN_C
static _Thread_local void *self __attribute__((tls_model("initial-exec")));

CC_NOINLINE CC_NO_TSAN void *cc__self_get(void) {
    void *value = self;
    __asm__ volatile("" : "+r"(value)); /* keeps the compiler from caching the value across calls */
    return value;
}

CC_NOINLINE CC_NO_TSAN void cc__self_set(void *value) {
    self = value;
}
#endif

/* The thread has left its worker, and has thread-local destructors to run. */
static _Thread_local bool ending __attribute__((tls_model("initial-exec")));

CC_NOINLINE bool cc__worker_ending(void) {
    return ending;
}

CC_NOINLINE void cc__worker_ends(void) {
    ending = true;
}

/* The fiber frees the block, and the race detector does not see that we come first. */
static CC_NOINLINE CC_NO_TSAN size_t block_of(struct fiber *f, struct fiber_block **block) {
    struct fiber_block *volatile *at = (struct fiber_block *volatile *)(void *)f->args;
    *block = *at;
    return (*block)->stack_size;
}

/* The system has no more memory, but other workers may have stacks in their caches. They flush them when they free a
 * stack, and when they have nothing to do: sleepers are woken for that. One that computes may take longer than we wait;
 * then we do not wait again for a while. */
static CC_COLD CC_NOINLINE struct stack *wait_for_stack(struct worker *w, size_t wanted) {
    if (!cc__stack_cacheable(wanted) || cc__sched.simulated) return NULL;
    uint64_t now = cc__clock_now(), until = now + STACK_WAIT_NS;
    if (now < w->no_stack_until) return NULL;
    for (;;) {
        bool cached = false;
        uint32_t moves = cc__get_acquire(&cc__stack_moves); /* pairs with moved_locked in stack.c */
        for (unsigned i = 0, n = cc__get(&cc__sched.count); i < n; i++)
            cached = cached || cc__get(&cc__sched.workers[i].core.stacks.count) != 0;
        struct stack *stack = cc__stack_take(&w->core.stacks, wanted);
        if (stack != NULL || (!cached && cc__get(&cc__stack_moves) == moves)) return stack;
        if (cc__clock_now() >= until) break;
        cc__idle_notify_all();
        cc__thread_nap(STACK_NAP_NS);
    }
    w->no_stack_until = cc__clock_now() + STACK_NO_WAIT_NS;
    return NULL;
}

/* Switches from the worker's own stack to a fiber; returns when a fiber switches back to it. */
static void run(struct worker *w, struct fiber *f) {
    struct stack *stack = cc__get(&f->stack);
    struct context first, *to = &f->context;
    if (stack == NULL) {
        (void)cc__get_acquire(&f->word); /* pairs with the spawner's release */
        struct fiber_block *block = NULL;
        size_t wanted = 0;
        if (cc__state_args(f) == ARGS_BLOCK) wanted = block_of(f, &block);
        stack = cc__stack_take(&w->core.stacks, wanted);
        if (unlikely(stack == NULL)) stack = wait_for_stack(w, wanted);
        if (unlikely(stack == NULL)) {
            /* No stack is available: the task does not run, and its joiners get ENOMEM. */
            cc__san_acquire(&w->thread); /* pairs with the release by fibers that ended */
            if (cc__get(&f->scope) != 0) cc__upcall_scope_unstarted(f, ENOMEM); /* it reads the argument */
            cc__mem_free(block);
            f->outcome.result = NULL;
            f->outcome.status = ENOMEM;
            cc__upcall_task_ended(w, f);
            return;
        }
        cc__switch_bind(f, stack);
        cc__context_start(&first, cc__stack_top(stack), cc__run_fiber);
        to = &first;
    }
    if (cc__spec_on()) cc__spec_run(f, w->core.owner);
    cc__island_check(w, f);
    cc__state_run(f, w->core.owner);
    cc__bump(&w->core.turns);
    cc__sched_record_run(w, f, REC_NONE);
    cc__probe2(run, f, w);
    cc__set_release(&w->core.current, f); /* after the turn: sample_workers of sysmon.c */
    cc__san_leave(&w->core.san, &stack->san);
    w = cc__context_switch(&w->core.native, to, w);
    cc__san_arrive(&w->core.san);
    cc__switch_arrived(w);
}

static void nothing(struct worker *w, void *arg) {
    (void)w, (void)arg;
}

/* The thread may be the worker's second: resets what the first has left. */
static void wake_up(struct worker *w) {
    w->rested = w->searching = w->called = w->woken_for_work = w->skip_search = w->watched = w->polled = false;
    w->victim = NULL;
    w->received = 0;
    w->busy_since = cc__clock_now();
    cc__set(&w->remote.tid, cc__thread_id());
    cc__thread_count_naps(&w->remote.naps);
    cc__thread_signals_take(); /* sysmon, which starts some of the threads, blocks all signals */
}

/* frame: the beginning of the frame of the worker's first function. A quarter of the stack is left to thread-locals:
 * the exact bounds, from cc__thread_stack, take an allocation, and the first one of a thread takes 50 us. */
static void describe_stack(struct worker *w, uintptr_t frame) {
    size_t size = cc__thread_stack_size();
    cc__set(&w->remote.stack_low, frame - size / 4 * 3);
    cc__set(&w->remote.stack_high, frame);
}

static struct fiber *next(struct worker *w) {
    if (likely(!cc__sched.simulated)) return cc__next(w);
    return cc__worker_is_island(w) ? cc__island_sim_next(w) : cc__upcall_sim_next(w);
}

void *cc__worker_main(void *arg) {
    struct worker *w = arg;
    char name[16];
    snprintf(name, sizeof name, "ccc/%u", w->core.owner - 1);
    if (!cc__worker_is_island(w)) cc__thread_name(name);
    cc__worker_set(w);
    wake_up(w);
    cc__thread_punctual();
    describe_stack(w, (uintptr_t)__builtin_frame_address(0));
    cc__fault_stack_set(w->signal_stack, cc__fault_stack_size());
    cc__san_native(&w->core.san);
    cc__context_native(&w->core.native);
    cc__set(&w->core.cxx, cc__cxx_here());
    for (struct fiber *f; (f = next(w)) != NULL;) {
        /* A fiber that starts from here has no predecessor to clean up. */
        cc__set(&w->core.after, nothing);
        run(w, f);
    }
    cc__san_acquire(&w->thread); /* pairs with the end of each fiber */
    cc__pool_flush(&w->core.fibers);
    cc__stack_flush(&w->core.stacks);
    cc__fault_stack_clear();
    cc__san_native_end();
    cc__worker_set(NULL);
    cc__set(&w->remote.tid, 0); /* the system may reuse the number */
    cc__worker_ends();
    return NULL;
}

static uint64_t starts; /* of the runtime */

bool cc__worker_init(struct worker *w, unsigned index) {
    w->core.owner = index + 1;
    w->core.tag = starts << 10 | w->core.owner;
    cc__list_init(&w->runq.fifo);
    cc__list_init(&w->runq.fresh);
    w->rng = UINT64_C(0x9e3779b97f4a7c15) * (index + 1);
    w->interval = 1;
    uint64_t now = cc__clock_now();
    cc__set(&w->polled_at, now);
    cc__set(&w->turn_ns, FIRST_TURN_NS);
    cc__set(&w->worth_ns, WORTH_NS);
    cc__set(&w->slow_ns, FIRST_SLOW_NS);
    cc__turn_log_begin(&w->turn_log, now);
    cc__set(&w->core.share_at, 1);
    w->seen = cc__mem_alloc(2 * cc__sched.max * sizeof *w->seen);
    w->deferrals = w->seen + cc__sched.max;
    w->signal_stack = cc__mem_alloc_stack(cc__fault_stack_size());
    return w->seen != NULL && w->signal_stack != NULL;
}

/* Most of them are islands' and never used: they take only address space. */
static size_t workers_size(unsigned max) {
    return (max + ISLANDS_MAX) * sizeof(struct worker);
}

static void release_all(void) {
    for (unsigned i = 0; cc__sched.workers != NULL && i < cc__sched.max + cc__get(&cc__sched.islands); i++) {
        cc__mem_free(cc__sched.workers[i].seen);
        cc__mem_free(cc__sched.workers[i].signal_stack);
        cc__mem_free(cc__sched.workers[i].memo);
    }
    if (cc__sched.workers != NULL) {
        cc__san_range_unmap(cc__sched.workers, workers_size(cc__sched.max));
        cc__vm_release(cc__sched.workers, workers_size(cc__sched.max));
    }
    for (unsigned i = 0; i < cc__sched.ring_count; i++) cc__ring_destroy(&cc__sched.rings[i]);
    cc__drivers_stop();
    memset(&cc__sched, 0, sizeof cc__sched);
}

/* A searcher's place that is not given back would keep all others from searching, and sleepers from being woken, for
 * ever; the watcher would compensate so well that it is not noticed. */
static void check_places(void) {
    uint32_t held = 0;
    for (unsigned i = 0; i < cc__sched.max; i++) held += cc__sched.workers[i].searching;
    cc__debug_assert(cc__sched.simulated || want_searching(cc__get(&cc__sched.want)) == held,
                     "IDLE-2: each place of a searcher is held by one when the workers have left");
    (void)held;
}

/* No more workers are opened. */
static void stop_workers(void) {
    cc__set_seq(&cc__sched.stop, true);
    cc__islands_stop();
    cc__idle_notify_all();
    if (cc__sched.simulated) cc__upcall_sim_stop();
    cc__elastic_join_all();
    check_places();
    release_all();
}

int cc__sched_start(struct sched_size size, size_t queue_slots, bool simulated) {
    unsigned max = size.max;
    memset(&cc__sched, 0, sizeof cc__sched);
    starts++;
    cc__thread_signals_keep();
    cc__sched.asked = size.workers;
    cc__sched.max = max;
    cc__set(&cc__sched.base, size.base);
    cc__sched.searchers_max = cc__policy_searchers_max(size.base);
    cc__sched.simulated = simulated;
    if (simulated) cc__set(&cc__sched.want, WANT_SEARCHING); /* permanently: every producer calls its sim point */
    cc__set(&cc__sched.idle.timer_sleeper_until, UINT64_MAX);
    cc__policy_paid(UINT64_MAX);
    cc__list_init(&cc__sched.idle.list);
    cc__list_init(&cc__sched.overflow.list);
    cc__sched.workers = cc__vm_reserve(workers_size(max));
    if (cc__sched.workers != NULL) cc__san_range_map(cc__sched.workers, workers_size(max));
    cc__sched.ring_count = simulated ? 1 : cc__policy_rings(size.base);
    bool ok = cc__sched.workers != NULL && cc__drivers_start(max + 2 * ISLANDS_MAX);
    for (unsigned i = 0; ok && i < cc__sched.ring_count; i++) ok = cc__ring_init(&cc__sched.rings[i], queue_slots);
    for (unsigned i = 0; ok && i < max; i++) ok = cc__worker_init(&cc__sched.workers[i], i);
    if (!ok) {
        release_all();
        return ENOMEM;
    }
    int error;
    (void)cc__elastic_open(size.base, &error);
    if (error == 0) error = cc__sysmon_start(size.adapts);
    if (error != 0) stop_workers();
    return error;
}

/* RT-4: no task is active, so nothing can be waiting for a turn. */
static void check_empty(void) {
    cc__debug_assert(cc__inject_len() == 0, "RT-4: the global queue is empty when the workers leave");
    for_all_workers(i, w) {
        (void)w;
        cc__debug_assert(cc__inbox_empty(w), "RT-4: an inbox is empty when the workers leave");
        cc__debug_assert(cc__get(&w->runq.count) == 0, "RT-4: a run queue is empty when the workers leave");
    }
}

void cc__sched_stop(void) {
    check_empty();
    cc__sysmon_stop();
    stop_workers();
}

void cc__sched_exit(void) {
    if (cc__sched.simulated) return;
    cc__sysmon_stop();
    cc__set_seq(&cc__sched.stop, true);
    cc__idle_notify_all();
    cc__elastic_join_idle();
}

uint64_t cc__sched_active(void) {
    /* Sum ended first, then spawned: both only grow and ended never exceeds spawned, so equal sums mean that at some
     * time in between nothing was active. */
    uint64_t ended = cc__get_seq(&cc__sched.foreign_ended), spawned = 0;
    unsigned count =
        cc__sched.max + cc__get_seq(&cc__sched.islands); /* all, with or without a thread: their counts stay */
    for (unsigned i = 0; i < count; i++) ended += cc__get_seq(&cc__sched.workers[i].core.counters.ended);
    for (unsigned i = 0; i < count; i++) spawned += cc__get_seq(&cc__sched.workers[i].core.counters.spawned);
    spawned += cc__get_seq(&cc__sched.foreign_spawned);
    return spawned - ended;
}

void cc__sched_ended_elsewhere(void) {
    cc__add_seq(&cc__sched.foreign_ended, 1);
    cc__idle_say_drained(); /* all workers may be asleep */
}

bool cc__sched_drain(uint64_t until) {
    cc__set_seq(&cc__sched.draining, true);
    bool done;
    for (;;) {
        uint32_t seen = cc__get_seq(&cc__sched.drained);
        done = cc__sched_active() == 0;
        if (done || cc__clock_now() >= until) break;
        cc__upcall_sim_wait(&cc__sched.drained, seen, until);
    }
    cc__set_seq(&cc__sched.draining, false);
    return done;
}
