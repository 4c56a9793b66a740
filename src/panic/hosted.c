/* hosted.c - a function on a fiber's stack, driven by the OS thread that calls it.
 *
 * The thread leaves its own stack for a pooled one and comes back when the function is over. Nothing else is
 * different: cc__sched_current() is NULL there as on every OS thread, so all waits take the way of OS threads
 * and block it. The panic is caught at a boundary on the same stack; the caller hears of it after the way
 * back.
 *
 * The stacks have their own pool: a hosted call may go on while the runtime ends, and start it again.
 *
 * HOSTED-1  A hosted call is in no queue and has no state word: nobody but its thread can run it.
 */
#include "base/error.h"
#include "base/fatal.h"
#include "base/mem.h"
#include "os/signals.h"
#include "panic/panic.h"
#include "sched/upcalls.h"

#include <errno.h>

struct hosted {
    struct hosted *next; /* in the pool */
    CCFiberId id;        /* of the call */
    struct stack stack;  /* of its own, in no pool of fiber/ */
    void *signal_stack;
    struct context home;
    struct san home_san;
    CCTaskFn fn;
    void *arg, *result;
    CCPanic *info;
    int error;
};

static struct {
    struct lock lock;
    struct hosted *first;
} pool;

static _Atomic uint64_t calls; /* so far: their ids never repeat */

static _Thread_local struct hosted *running __attribute__((tls_model("initial-exec")));

/* A fiber may pass by here, and changes threads: never inlined. */
static CC_NOINLINE struct hosted *hosted_here(void) {
    struct hosted *h = running;
    __asm__ volatile("" : "+r"(h));
    return h;
}

const struct stack *cc__hosted_stack(void) {
    struct hosted *h = hosted_here();
    return h != NULL ? &h->stack : NULL;
}

CCFiberId cc__upcall_hosted_id(void) {
    struct hosted *h = hosted_here();
    return h != NULL ? h->id : 0;
}

/* ---- the pool ---- */

static void destroy(struct hosted *h) {
    struct stack *s = &h->stack;
    if (s->base != NULL) {
        cc__san_stack_unmap(s->san_handle);
        cc__san_range_unmap(s->base, cc__stack_size(s));
        cc__vm_release(s->base - cc__stack_gap(), cc__stack_gap() + cc__stack_size(s));
    }
    cc__mem_free(h->signal_stack);
    cc__mem_free(h);
}

static struct hosted *create(size_t size) {
    struct hosted *h = cc__mem_alloc(sizeof *h);
    if (h == NULL) return NULL;
    struct stack *s = &h->stack;
    s->number = (uint32_t)cc__get(&calls); /* its colour */
    h->signal_stack = cc__mem_alloc_stack(cc__fault_stack_size());
    char *low = h->signal_stack != NULL ? cc__vm_reserve(cc__stack_gap() + size, 0) : NULL;
    if (low == NULL) {
        destroy(h);
        return NULL;
    }
    s->base = low + cc__stack_gap();
    while (((size_t)1 << s->log2) < size) s->log2++;
    cc__san_range_map(s->base, size);
    s->san_handle = cc__san_stack_map(s->base, size);
    s->guarded = cc__vm_guard(cc__stack_guard(s).at, cc__stack_guard(s).size);
    if (!s->guarded) cc__warn("no guard page can be had for a hosted call; a stack overflow in it is not caught");
    return h;
}

static struct hosted *take(size_t size) {
    for (;;) {
        cc__lock_take(&pool.lock);
        struct hosted *h = pool.first;
        if (h != NULL) pool.first = h->next;
        cc__lock_release(&pool.lock);
        if (h == NULL) return create(size);
        if (cc__stack_size(&h->stack) == size) return h;
        destroy(h); /* the runtime was started again, with another size */
    }
}

static void give(struct hosted *h) {
    cc__san_stack_clean(h->stack.base, cc__stack_size(&h->stack));
    cc__lock_take(&pool.lock);
    h->next = pool.first;
    pool.first = h;
    cc__lock_release(&pool.lock);
}

void cc__hosted_forget(void) {
    pool.lock = (struct lock){0};
}

void cc__hosted_trim(void) {
    cc__lock_take(&pool.lock);
    struct hosted *h = pool.first;
    pool.first = NULL;
    cc__lock_release(&pool.lock);
    while (h != NULL) {
        struct hosted *next = h->next;
        destroy(h);
        h = next;
    }
}

/* ---- the call ---- */

/* Not inlined into the function below, which the race detector never sees the end of. */
static CC_NOINLINE void run(struct hosted *h) { /* HOSTED-1 */
    h->error = cc__panic_try(h->fn, h->arg, &h->result, h->info);
}

static void first(void *value) {
    struct hosted *h = value;
    cc__san_visit_there(&h->home_san);
    run(h);
    cc__san_visit_over(&h->home_san);
    cc__context_jump(&h->home, NULL);
}

static void visit(struct hosted *h) {
    struct context start;
    cc__context_native(&h->home);
    cc__context_start(&start, cc__stack_top(&h->stack), first);
    running = h;
    cc__san_visit(&h->home_san, &h->stack.san, h->stack.base, cc__stack_size(&h->stack));
    (void)cc__context_switch(&h->home, &start, h);
    cc__san_visit_back(&h->home_san, &h->stack.san);
    running = NULL;
}

/* The default size, and that the runtime is there: with it come the handlers that name an overflow. */
static int prepare(struct hosted **h) {
    int rc = cc__upcall_enter(true);
    if (rc != 0) return rc;
    *h = take(cc__stack_default());
    cc__upcall_leave();
    return *h != NULL ? 0 : ENOMEM;
}

int cc_hosted_call(CCTaskFn fn, void *arg, void **result, CCPanic *info) {
    struct hosted *h;
    if (fn == NULL) return EINVAL;
    if (cc__worker() != NULL || hosted_here() != NULL) return cc__panic_try(fn, arg, result, info);
    int saved = cc__errno_get(), rc = prepare(&h);
    if (rc != 0) return rc;
    bool signal_stack = !cc__fault_stack_have();
    if (signal_stack) cc__fault_stack_set(h->signal_stack, cc__fault_stack_size());
    h->id = UINT64_C(1) << 63 | (cc__add_relaxed(&calls, 1) + 1);
    h->fn = fn;
    h->arg = arg;
    h->info = info;
    cc__errno_set(saved);
    visit(h);
    saved = cc__errno_get();
    if (signal_stack) cc__fault_stack_clear();
    cc__errno_set(saved);
    rc = h->error;
    if (result != NULL) *result = h->result;
    give(h);
    return rc;
}
