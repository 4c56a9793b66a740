/* defer.c - deferred functions. While a panic is in progress, panic.c takes them from the list.
 *
 * DEFER-1  Only the code that takes an entry off the list runs it: once, and after taking it off.
 * DEFER-2  An entry of CC_DEFER lies in a live frame: the end of the block takes it off, or a panic does before it
 *          abandons the frame.
 */
#include "base/fatal.h"
#include "base/mem.h"
#include "panic/panic.h"
#include "sched/sched.h"

#include <errno.h>

static _Thread_local CCDefer *threads_own __attribute__((tls_model("initial-exec")));

/* Never inlined: a fiber may change threads, so the compiler must not cache the address. */
static CC_NOINLINE CCDefer **list_of_thread(void) {
    CCDefer **list = &threads_own;
    __asm__ volatile("" : "+r"(list));
    return list;
}

CCDefer **cc__defer_list(void) {
    struct fiber *self = cc__sched_current(cc__worker());
    return likely(self != NULL) ? &cc__get(&cc__get(&self->stack)->cold)->deferred : list_of_thread();
}

/* ---- entries of cc_defer ---- */

/* Each entry records the panic below it, so that N entries do not cost N walks of the list. */
struct added {
    CCDefer defer;  /* its `list` is NULL, unlike that of a block's entry */
    CCDefer *panic; /* the newest MARK_PANIC between it and the boundary; NULL: none */
};

/* The first entry from which the panic of the protected call is known: its boundary, its panic, or an entry of
 * cc_defer. NULL: there is no such call. */
static CCDefer *find_marker(CCDefer *d) {
    while (d != NULL && !cc__defer_is_boundary(d) && d->fn != MARK_PANIC && d->list != NULL) d = d->next;
    return d;
}

static CCDefer *panic_from(CCDefer *marker) {
    if (marker == NULL || cc__defer_is_boundary(marker)) return NULL;
    return marker->fn == MARK_PANIC ? marker : container_of(marker, struct added, defer)->panic;
}

CCDefer *cc__defer_panic(void) {
    return panic_from(find_marker(*cc__defer_list()));
}

/* ---- running ---- */

void cc__defer_run(CCDefer *d) {
    CCDeferFn fn = d->fn;
    void *arg = d->arg;
    if (d->list == NULL) cc__mem_free(container_of(d, struct added, defer));
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
    CCDefer **list = cc__defer_list(), *marker = find_marker(*list);
    if (marker == NULL) return EPERM;
    struct added *d = cc__mem_alloc_small(sizeof *d);
    if (d == NULL) return ENOMEM;
    d->panic = panic_from(marker);
    d->defer.fn = fn;
    d->defer.arg = arg;
    d->defer.next = *list;
    *list = &d->defer;
    return 0;
}
