/* holder.c - is the caller the holder? If not, the program aborts with a message that names both. */
#include "lock/holder.h"

#include "base/fatal.h"
#include "os/safe_copy.h"
#include "os/thread.h"

#include <stdio.h>

enum { NAME_MAX_HERE = CC_FIBER_NAME_MAX + 64 };

/* The name of a fiber that may end meanwhile; "" if it cannot be read. */
static void read_name(struct fiber *f, char *name) {
    const struct stack *s = cc__get(&f->stack);
    if (s == NULL || !cc__safe_copy(name, cc__get(&s->cold)->name, CC_FIBER_NAME_MAX)) name[0] = '\0';
    name[CC_FIBER_NAME_MAX - 1] = '\0';
}

static void describe_fiber(struct fiber *f, char *text) {
    char name[CC_FIBER_NAME_MAX];
    read_name(f, name);
    snprintf(text, NAME_MAX_HERE, "fiber %u.%u%s%s%s", f->slot, cc__get(&f->generation) & 0x7fffffffu,
             cc__quoted(name));
}

static void describe_self(char *text) {
    struct fiber *f = cc__sched_current(cc__worker());
    if (f != NULL)
        describe_fiber(f, text);
    else
        snprintf(text, NAME_MAX_HERE, "OS thread %d", cc__thread_id());
}

CC_NORETURN static CC_COLD void wrong_holder(const char *what, const void *object, const char *holder) {
    char me[NAME_MAX_HERE];
    describe_self(me);
    cc__fatal(
        "%s %p is held by %s, and %s unlocks it. A lock call that has returned an error (ECANCELED, ETIMEDOUT, EAGAIN) has "
        "not taken the lock",
        what, object, holder, me);
}

void cc__holder_free(const char *what, const void *object) {
    char me[NAME_MAX_HERE];
    describe_self(me);
    cc__fatal("%s %p is free; %s does not hold it", what, object, me);
}

void cc__holder_otherwise(const char *what, const void *object, const char *how) {
    char me[NAME_MAX_HERE];
    describe_self(me);
    cc__fatal("%s %p is held %s; %s does not hold it that way", what, object, how, me);
}

#ifdef CC_DEBUG
/* Cached, because it takes a system call. */
static int thread_id(void) {
    static _Thread_local int id __attribute__((tls_model("initial-exec")));
    if (unlikely(id == 0)) id = cc__thread_id();
    return id;
}

uint64_t cc__holder_self(void) {
    struct fiber *f = cc__sched_current(cc__worker());
    return f != NULL ? cc__pool_id(f) : HOLDER_THREAD | (uint64_t)thread_id();
}

static bool is_self(uint64_t holder, uint32_t thread) {
    (void)thread;
    return holder == cc__holder_self();
}

static void describe(uint64_t holder, char *text) {
    struct fiber *f = holder & HOLDER_THREAD ? NULL : cc__pool_find(holder);
    if (holder & HOLDER_THREAD)
        snprintf(text, NAME_MAX_HERE, "OS thread %d", (int)(holder & ~HOLDER_THREAD));
    else if (f != NULL && cc__pool_id(f) == holder)
        describe_fiber(f, text);
    else
        snprintf(text, NAME_MAX_HERE, "fiber %u.%u, which has ended", (uint32_t)holder - 1, (uint32_t)(holder >> 32));
}

void cc__holder_again(_Atomic uint64_t *owner, const char *what, const void *object) {
    if (likely(!is_self(cc__get(owner), 0))) return;
    char me[NAME_MAX_HERE];
    describe_self(me);
    cc__fatal("%s %p is held by %s itself, which wants it again and would wait for ever", what, object, me);
}
#else
/* Whether the holder is the caller, or may be (HOLDER-2). */
static bool is_self(uint64_t holder, uint32_t thread) {
    uintptr_t at = (uintptr_t)holder, here = cc__machine_sp();
    struct fiber *f = cc__sched_current(cc__worker());
    if (holder & HOLDER_THREAD) return f == NULL && (uint32_t)holder == cc__machine_thread();
    if (f == NULL) {
        /* No two stacks in use are that close: a guard, or the top of the other stack, lies in between. */
        if (at - here + 1024 < 2048) return true;
        return !cc__stack_is_fibers(at) && (thread == 0 || thread == cc__machine_thread());
    }
    const struct stack *s = cc__get(&f->stack);
    uintptr_t low = (uintptr_t)s->base, cold = (uintptr_t)cc__get(&s->cold);
    if (at >= low && at < cold) return true;
    return here < low || here >= cold; /* it runs on a stack of the program's own */
}

static void describe(uint64_t holder, char *text) {
    struct fiber *f = holder & HOLDER_THREAD ? NULL : cc__stack_tenant((uintptr_t)holder);
    if (f != NULL)
        describe_fiber(f, text);
    else
        snprintf(text, NAME_MAX_HERE,
                 cc__stack_is_fibers((uintptr_t)holder) ? "a fiber that has ended" : "an OS thread");
}
#endif

/* ---- readers ---- */

_Thread_local uint64_t cc__holder_thread_reads;

void cc__holder_not_reader(bool of_another, const char *what, const void *object) {
    if (!of_another) cc__holder_otherwise(what, object, "by other readers");
    char me[NAME_MAX_HERE];
    describe_self(me);
    cc__fatal(
        "%s %p is held by readers; %s, which holds one read lock, holds another, or has unlocked one that it did not hold",
        what, object, me);
}

CC_NOINLINE void cc__holder_check(_Atomic uint64_t *owner, uint32_t thread, bool held, const char *what,
                                  const void *object) {
    uint64_t holder = cc__get(owner);
    if (unlikely(holder == 0 && !held)) cc__holder_free(what, object);
    if (unlikely(holder == 0)) wrong_holder(what, object, "another, who was handed it");
    if (likely(is_self(holder, thread))) return;
    char other[NAME_MAX_HERE];
    describe(holder, other);
    wrong_holder(what, object, other);
}
