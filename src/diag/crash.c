/* crash.c - reports a memory fault: the fiber and its backtrace; and a fiber that has ended its OS thread.
 *
 * The handler runs on the worker's alternate stack. It writes one line, without locks or allocation. The backtrace
 * needs both, and the fault may have happened inside the allocator: so the sysmon thread prints it, and the handler
 * waits for that, for a limited time.
 */
#include "base/fatal.h"
#include "blocking/pool.h"
#include "diag/diag.h"
#include "diag/dump.h"
#include "os/clock.h"
#include "panic/panic.h"
#include "record/record.h"
#include "sched/sysmon.h"
#include "sched/upcalls.h"

#include <signal.h>
#include <stdio.h>

enum { PATIENCE_MS = 5000 }; /* a guess: the first symbol lookup of a process takes tenths of a second */

enum { CRASH_NONE, CRASH_TAKEN, CRASH_ASKED, CRASH_SHOWN };

static struct {
    _Atomic uint32_t state; /* futex */
    struct registers at;
    uintptr_t low, high; /* of the stack */
    struct fiber *fiber; /* NULL: a hosted call */
    unsigned worker;     /* that runs the fiber */
    struct view view;
} crash;

/* ---- on the sysmon thread ---- */

static void walk(void) {
    struct picture p = {.regs = crash.at, .low = crash.low, .top = crash.high, .mapped = true};
    crash.view.state = FIBER_RUNNING;
    crash.view.fiber = crash.fiber;
    crash.view.frames = cc__unwind(&p, crash.view.frame, VIEW_FRAMES, &crash.view.doubt);
    cc__view_trim(&crash.view);
}

bool cc__diag_crash_asked(void) {
    if (cc__get_acquire(&crash.state) != CRASH_ASKED) return false; /* pairs with show_frames */
    struct out out = {0};
    walk();
    cc__dump_frames(&out, &crash.view, "    ");
    cc__dump_missing(&out);
    if (crash.fiber != NULL) cc__dump_events(&out, crash.worker, "    ");
    cc__out_flush(&out);
    cc__record_save(true);
    cc__set_seq(&crash.state, CRASH_SHOWN);
    cc__futex_wake(&crash.state, INT32_MAX);
    return true;
}

/* ---- in the handler ---- */

/* Of simultaneous faults one is shown. The other handlers wait too, or they would end the process before that. */
static void show_frames(const struct fault *fault, struct fiber *f, const struct stack *s) {
    uint64_t until = cc__clock_real() + PATIENCE_MS * UINT64_C(1000000);
    struct registers at = cc__registers_interrupted(fault->context);
    uintptr_t sp = at.value[CC_REGISTER_SP];
    uintptr_t low = (uintptr_t)s->base + cc__stack_guard_size(s), high = (uintptr_t)s->base + cc__stack_size(s);
    if (sp < (uintptr_t)cc__stack_guard(s).at || sp >= high) return;
    uint32_t state = CRASH_NONE;
    if (cc__cas_seq(&crash.state, &state, CRASH_TAKEN)) {
        crash.at = at;
        crash.low = low;
        crash.high = high;
        crash.fiber = f;
        crash.worker = f != NULL ? cc__worker()->core.owner - 1 : 0;
        cc__set_seq(&crash.state, CRASH_ASKED);
        (void)cc__sysmon_ask();
    }
    while ((state = cc__get_seq(&crash.state)) != CRASH_SHOWN && cc__clock_real() < until)
        cc__futex_wait(&crash.state, state, until);
}

static void say_overflow(const char *who, const char *advice, const struct stack *s, const void *addr) {
    cc__warn("fatal: stack overflow in %s: its stack of %zu KiB (%p-%p) is used up, the fault was at %p. %s", who,
             cc__stack_size(s) / 1024, (void *)s->base, (void *)(s->base + cc__stack_size(s)), addr, advice);
}

static void say_fault(const char *who, const struct fault *fault) {
    cc__warn("fatal: %s in %s: the fault was at %p", fault->signal == SIGBUS ? "bus error" : "segmentation fault", who,
             fault->addr);
}

static void name_fiber(char *who, size_t size, const struct fiber *f, const struct stack *s) {
    const struct fiber_cold *cold = cc__get(&s->cold);
    const char *name = cold != NULL ? cold->name : "";
    snprintf(who, size, "fiber %u.%u%s%s%s", f->slot, cc__get(&f->generation), cc__quoted(name));
}

bool cc__diag_fault(const struct fault *fault) {
    struct fiber *f = cc__sched_current(cc__worker());
    const struct stack *s = f != NULL ? cc__get(&f->stack) : cc__hosted_stack();
    if (s == NULL) return false;
    bool overflow = cc__stack_in_guard(s, fault->addr);
    if (!overflow && !fault->last) return false; /* the program's handler may handle it */
    char who[96] = "a hosted call";
    if (f != NULL) name_fiber(who, sizeof who, f, s);
    if (overflow)
        say_overflow(who,
                     f != NULL ? "Give it more with CCSpawnOptions.stack_size, or all fibers with CC_STACK_SIZE"
                               : "Give all fibers more with CC_STACK_SIZE",
                     s, fault->addr);
    else
        say_fault(who, fault);
    show_frames(fault, f, s);
    return true;
}

/* ---- on a thread that was ended ---- */

static CC_NOINLINE CC_NORETURN void say_ended(const struct fiber *f) {
    char who[96];
    snprintf(who, sizeof who, "a function%s", cc__pool_is_own() ? " called by cc_blocking" : "");
    if (f != NULL) name_fiber(who, sizeof who, f, cc__get(&f->stack));
    cc__fatal("%s has ended its OS thread, which belongs to the runtime, by pthread_exit, thrd_exit or pthread_cancel: "
              "return from the function instead",
              who);
}

/* The sanitizers do not know that the fiber's stack has been left, nor that the frames which the worker had on its own
 * stack are gone. No variable of this function may be in memory that they take away with the fiber's stack. */
void cc__upcall_thread_ended(void) {
    struct worker *w = cc__worker();
    struct fiber *f = cc__sched_current(w);
    if (f != NULL) {
        cc__san_leave(NULL, &w->core.san);
        cc__san_arrive(&w->core.san);
    }
    if (w != NULL) {
        cc__san_native_clean(&w->core.san);
        cc__san_abandon();
    }
    say_ended(f);
}
