/* ucontext/context.c - the portable switch. */
#include "arch/context.h"

#include "arch/registers.h"
#include "base/fatal.h"

#include <ucontext.h>

static _Thread_local ucontext_t native;

/* The arguments of the first function on a called stack. */
struct call {
    struct context *from;
    context_call_fn fn;
    void *value;
};

/* makecontext passes ints: a pointer is passed as two halves. */
static void first(unsigned fn_high, unsigned fn_low, unsigned uc_high, unsigned uc_low) {
    context_fn fn = (context_fn)(((uintptr_t)fn_high << 32) | fn_low);
    ucontext_t *uc = (ucontext_t *)(((uintptr_t)uc_high << 32) | uc_low);
    /* The slot behind the ucontext_t holds the value of the first switch. */
    fn(*(void **)(uc + 1));
    cc__fatal("CTX-1: a fiber's first function returned");
}

void cc__context_native(struct context *c) {
    c->uc = &native;
}

/* Where a stack that ends at `top` keeps its ucontext_t. */
static ucontext_t *place_of(void *top) {
    return (ucontext_t *)(((uintptr_t)top - sizeof(ucontext_t) - sizeof(void *)) & ~(uintptr_t)63);
}

void cc__context_inherit(struct context *c, void *top) {
    c->uc = place_of(top);
}

/* The ucontext_t of a fresh stack that ends at `top`, without a function. */
static ucontext_t *prepare(void *top) {
    ucontext_t *uc = place_of(top);
    if (getcontext(uc) != 0) cc__fatal("getcontext failed; build without CC_UCONTEXT on this system");
    /* Only the end matters: the stack grows down from ss_sp + ss_size; the guard checks the other end. */
    uc->uc_stack.ss_sp = (void *)((uintptr_t)uc - 8192);
    uc->uc_stack.ss_size = 8192;
    uc->uc_link = NULL;
    return uc;
}

void cc__context_start(struct context *c, void *top, context_fn fn) {
    ucontext_t *uc = prepare(top);
    uintptr_t place = (uintptr_t)uc, f = (uintptr_t)fn;
    makecontext(uc, (void (*)(void))first, 4, (unsigned)(f >> 32), (unsigned)f, (unsigned)(place >> 32),
                (unsigned)place);
    c->uc = uc;
}

/* Stores the value in the target: in its context, and for a fresh stack behind its ucontext_t. */
static void leave_value(struct context *to, void *value) {
    to->value = value;
    if (to->uc != &native) *(void **)((ucontext_t *)to->uc + 1) = value;
}

void *cc__context_switch(struct context *from, struct context *to, void *value) {
    leave_value(to, value);
    if (swapcontext(from->uc, to->uc) != 0) cc__fatal("swapcontext failed; build without CC_UCONTEXT on this system");
    return from->value;
}

void cc__context_jump(struct context *to, void *value) {
    leave_value(to, value);
    setcontext(to->uc);
    cc__fatal("setcontext failed; build without CC_UCONTEXT on this system");
}

/* ---- a call ---- */

static void called(unsigned call_high, unsigned call_low) {
    const struct call *call = (const struct call *)(((uintptr_t)call_high << 32) | call_low);
    call->fn(call->value, call->from);
    cc__fatal("CTX-1: a fiber's first function returned");
}

/* `call` is in a frame that ends once `from` is resumed: the callee has read it by then. */
void *cc__context_call(struct context *from, void *top, context_call_fn fn, void *value) {
    struct call call = {from, fn, value};
    ucontext_t *uc = prepare(top);
    uintptr_t at = (uintptr_t)&call;
    makecontext(uc, (void (*)(void))called, 2, (unsigned)(at >> 32), (unsigned)at);
    if (swapcontext(from->uc, uc) != 0) cc__fatal("swapcontext failed; build without CC_UCONTEXT on this system");
    return from->value;
}

void cc__context_return(struct context *from, void *value) {
    cc__context_jump(from, value);
}

bool cc__context_place(const struct context *c, struct place *place) {
    if (c->uc == NULL) return false;
    struct registers r = cc__registers_interrupted(c->uc);
    *place = (struct place){(const void *)r.pc, r.value[CC_REGISTER_SP], r.value[CC_REGISTER_FP]};
    return r.known != 0;
}
