/* hosted.c - a function on a fiber's stack, driven by the OS thread that calls it.
 *
 * README.md lists what is the same as on any OS thread. The call may continue while the runtime stops, and start it
 * again: its stack stays (cc__stack_lend).
 *
 * HOSTED-1  A hosted call is in no queue and has no state word: only its thread can run it.
 */
#include "base/error.h"
#include "os/signals.h"
#include "panic/panic.h"
#include "sched/upcalls.h"

#include <errno.h>

struct hosted { /* in the frame of the call */
    CCFiberId id;
    struct stack *stack;
    bool signal_stack; /* the thread had none */
    struct context caller;
    struct san caller_san;
    CCTaskFn fn;
    void *arg, *result;
    CCPanic *info;
    int error;
};

static _Atomic uint64_t calls; /* how many so far: ids are never reused */

static _Thread_local struct hosted *running __attribute__((tls_model("initial-exec")));

/* Never inlined: fibers call it too, and may change threads. */
static CC_NOINLINE struct hosted *hosted_here(void) {
    struct hosted *h = running;
    __asm__ volatile("" : "+r"(h));
    return h;
}

const struct stack *cc__hosted_stack(void) {
    struct hosted *h = hosted_here();
    return h != NULL ? h->stack : NULL;
}

CCFiberId cc__upcall_hosted_id(void) {
    struct hosted *h = hosted_here();
    return h != NULL ? h->id : 0;
}

/* ---- the call ---- */

/* Not inlined into the function below, whose end the race detector never sees. */
static CC_NOINLINE void run(struct hosted *h) { /* HOSTED-1 */
    h->error = cc__panic_try(h->fn, h->arg, &h->result, h->info);
}

static void first(void *value) {
    struct hosted *h = value;
    cc__san_called(&h->caller_san);
    run(h);
    cc__san_return(&h->caller_san);
    cc__context_jump(&h->caller, NULL);
}

static void call_on_stack(struct hosted *h) {
    struct context start;
    cc__context_native(&h->caller);
    cc__context_start(&start, cc__stack_top(h->stack), first);
    running = h;
    cc__san_call(&h->caller_san, &h->stack->san, h->stack->base, cc__stack_size(h->stack));
    (void)cc__context_switch(&h->caller, &start, h);
    cc__san_returned(&h->caller_san, &h->stack->san);
    running = NULL;
}

/* Enters the runtime, which also installs the handlers that report an overflow. */
static int prepare(struct hosted *h) {
    int rc = cc__upcall_enter(true);
    if (rc != 0) return rc;
    h->stack = cc__stack_lend();
    cc__upcall_leave();
    if (h->stack == NULL) return ENOMEM;
    h->signal_stack = !cc__fault_stack_have();
    if (h->signal_stack) cc__fault_stack_set(h->stack->base + cc__stack_size(h->stack), cc__fault_stack_size());
    return 0;
}

static void clean_up(struct hosted *h) {
    CC_KEEP_ERRNO;
    if (h->signal_stack) cc__fault_stack_clear();
    cc__stack_return(h->stack);
}

int cc_hosted_call(CCTaskFn fn, void *arg, void **result, CCPanic *info) {
    if (fn == NULL) return EINVAL;
    if (cc__worker() != NULL || hosted_here() != NULL) return cc__panic_try(fn, arg, result, info);
    struct hosted h = {.fn = fn, .arg = arg, .info = info};
    int saved = cc__errno_get(), rc = prepare(&h);
    cc__errno_set(saved);
    if (rc != 0) return rc;
    h.id = UINT64_C(1) << 63 | (cc__add_relaxed(&calls, 1) + 1);
    call_on_stack(&h);
    clean_up(&h);
    if (result != NULL) *result = h.result;
    return h.error;
}
