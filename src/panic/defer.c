/* defer.c - deferred functions. While a panic is in progress, panic.c takes them from the list.
 *
 * DEFER-1  Only the code that takes an entry off the list runs it: once, and after taking it off.
 * DEFER-2  An entry of CC_DEFER lies in a live frame: the end of the block takes it off, or a panic does before it
 *          abandons the frame.
 * DEFER-3  The newest MARK_TRY or MARK_PANIC of a list is known without a walk: the code that puts a mark on the list
 *          or takes it off sets it. There is none when a fiber starts (its stack is new, and zero, or comes from a
 *          fiber that has ended), and none when it ends.
 */
#include "base/fatal.h"
#include "base/mem.h"
#include "panic/panic.h"
#include "sched/sched.h"

#include <errno.h>

static _Thread_local struct { CCDefer *list, *mark; } threads_own __attribute__((tls_model("initial-exec")));

/* Never inlined: a fiber may change threads, so the compiler must not cache the address. */
static CC_NOINLINE CCDefer **list_of_thread(void) {
    CCDefer **list = &threads_own.list;
    __asm__ volatile("" : "+r"(list));
    return list;
}

static CC_NOINLINE CCDefer **mark_of_thread(void) {
    CCDefer **mark = &threads_own.mark;
    __asm__ volatile("" : "+r"(mark));
    return mark;
}

CCDefer **cc__defer_list(void) {
    struct fiber *self = cc__sched_current(cc__worker());
    return likely(self != NULL) ? &cc__get(&cc__get(&self->stack)->cold)->deferred : list_of_thread();
}

CCDefer **cc__defer_mark(void) {
    struct fiber *self = cc__sched_current(cc__worker());
    return likely(self != NULL) ? &cc__get(&cc__get(&self->stack)->cold)->mark : mark_of_thread();
}

bool cc__defer_protected(void) {
    return cc__sched_current(cc__worker()) != NULL || *mark_of_thread() != NULL;
}

/* ---- running ---- */

void cc__defer_run(CCDefer *d) {
    CCDeferFn fn = d->fn;
    void *arg = d->arg;
    if (d->list == NULL) cc__mem_free(d); /* of cc_defer */
    if (fn != NULL) fn(arg);
}

void cc__defer_run_all(CCDefer **list, CCDefer *boundary) { /* DEFER-1 */
    for (CCDefer *d; (d = *list) != boundary;) {
        cc__assert(!cc__defer_is_boundary(d) && d->fn != MARK_PANIC,
                   "DEFER-2: a protected call ended inside another one");
        *list = d->next;
        cc__defer_run(d);
    }
}

/* ---- for blocks ---- */

CCDefer *cc_defer_enter(CCDefer *defer) {
    CCDefer **list = cc__defer_list();
    defer->list = list;
    defer->next = *list;
    *list = defer;
    return defer;
}

void cc_defer_leave(CCDefer *defer) {
    CCDefer **at = defer->list;
    /* Entries that cc_defer added inside the block are newer and stay. */
    while (unlikely(*at != defer)) {
        cc__assert(*at != NULL && !cc__defer_is_boundary(*at),
                   "DEFER-2: a block was left whose CC_DEFER is not on the list; was it entered by a jump?");
        at = &(*at)->next;
    }
    *at = defer->next;
    if (defer->fn != NULL) defer->fn(defer->arg);
}

/* ---- for protected calls ---- */

int cc_defer(CCDeferFn fn, void *arg) {
    if (fn == NULL) return EINVAL;
    if (!cc__defer_protected()) return EPERM;
    CCDefer **list = cc__defer_list(), *d = cc__mem_alloc_small(sizeof *d);
    if (d == NULL) return ENOMEM;
    *d = (CCDefer){.next = *list, .fn = fn, .arg = arg};
    *list = d;
    return 0;
}
