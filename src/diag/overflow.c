/* overflow.c - names the fiber whose stack has run out. Runs in a signal handler, on the worker's alternate
 * stack. */
#include "base/fatal.h"
#include "diag/diag.h"
#include "panic/panic.h"
#include "sched/sched.h"

static bool in_hosted_call(const void *addr) {
    const struct stack *s = cc__hosted_stack();
    if (s == NULL || !cc__stack_in_guard(s, addr)) return false;
    cc__warn(
        "fatal: stack overflow in a hosted call: its stack of %zu KiB (%p-%p) is used up, the fault was at %p. Give all "
        "fibers more with CC_STACK_SIZE",
        cc__stack_size(s) / 1024, (void *)s->base, (void *)(s->base + cc__stack_size(s)), addr);
    return true;
}

bool cc__diag_overflow(const void *addr) {
    struct fiber *f = cc__sched_current(cc__worker());
    struct stack *s = f != NULL ? cc__get(&f->stack) : NULL;
    if (s == NULL) return in_hosted_call(addr);
    if (!cc__stack_in_guard(s, addr)) return false;
    const struct fiber_cold *cold = cc__get(&s->cold);
    const char *name = cold != NULL ? cold->name : "";
    cc__warn(
        "fatal: stack overflow in fiber %u.%u%s%s%s: its stack of %zu KiB (%p-%p) is used up, the fault was at %p. "
        "Give it more with CCSpawnOptions.stack_size, or all fibers with CC_STACK_SIZE",
        f->slot, cc__get(&f->generation), name[0] ? " '" : "", name, name[0] ? "'" : "", cc__stack_size(s) / 1024,
        (void *)s->base, (void *)(s->base + cc__stack_size(s)), addr);
    return true;
}
