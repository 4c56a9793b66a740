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

void cc__holder_otherwise(const char *what, const void *object, const char *how, const char *wanted) {
    char me[NAME_MAX_HERE];
    describe_self(me);
    cc__fatal("%s %p is held %s; %s holds no %s lock", what, object, how, me, wanted);
}

_Thread_local uint64_t cc__holder_thread;

uint64_t cc__holder_new_thread(void) { /* HOLDER-2 */
    static _Atomic uint64_t count;
    uint64_t before = cc__add(&count, 1);
    cc__holder_thread = HOLDER_THREAD | before << HOLDER_TID_BITS | (uint64_t)cc__thread_id();
    return cc__holder_thread;
}

static struct {
    uint64_t holder; /* 0: this process was not forked, or the thread had never held a lock */
    int tid;
} forked;

void cc__holder_forked(void) {
    if (cc__holder_thread == 0) return;
    forked.holder = cc__holder_thread;
    forked.tid = cc__thread_id();
}

int cc__holder_tid(uint64_t holder) {
    return holder == forked.holder ? forked.tid : HOLDER_TID(holder);
}

#ifdef CC_DEBUG
void cc__holder_again(_Atomic uint64_t *owner, const char *what, const void *object) {
    if (likely(!cc__holder_is_self(owner))) return;
    char me[NAME_MAX_HERE];
    describe_self(me);
    cc__fatal("%s %p is held by %s itself, which wants it again and would wait for ever", what, object, me);
}
#endif

bool cc__holder_has_ended(uint64_t holder) {
    if (holder & HOLDER_THREAD)
        return cc__thread_state(cc__holder_tid(holder)) == 0 && cc__thread_state(cc__thread_id()) != 0;
    struct fiber *f = cc__pool_find(holder);
    if (f == NULL || cc__pool_id(f) != holder) return true;
    enum fiber_state state = cc__word_state(cc__get(&f->word));
    return state == FIBER_DONE || state == FIBER_IDLE;
}

static void describe(uint64_t holder, char *text) {
    bool ended = cc__holder_has_ended(holder);
    if (holder & HOLDER_THREAD)
        snprintf(text, NAME_MAX_HERE, "OS thread %d%s", cc__holder_tid(holder), ended ? ", which has ended" : "");
    else if (ended)
        snprintf(text, NAME_MAX_HERE, "fiber %u.%u, which has ended", (uint32_t)holder - 1, (uint32_t)(holder >> 32));
    else
        describe_fiber(cc__pool_find(holder), text);
}

/* ---- readers ---- */

_Thread_local uint64_t cc__holder_thread_reads;

void cc__holder_not_reader(bool of_another, const char *what, const void *object) {
    if (!of_another) cc__holder_otherwise(what, object, "by other readers", "read");
    char me[NAME_MAX_HERE];
    describe_self(me);
    cc__fatal(
        "%s %p is held by readers; %s, which holds one read lock, holds another, or has unlocked one that it did not hold",
        what, object, me);
}

CC_NOINLINE void cc__holder_check(_Atomic uint64_t *owner, bool held, const char *what, const void *object) {
    uint64_t holder = cc__get(owner);
    if (likely(holder == cc__holder_self())) return;
    if (unlikely(holder == 0 && !held)) cc__holder_free(what, object);
    if (unlikely(holder == 0)) wrong_holder(what, object, "a waiter that it was handed to");
    char other[NAME_MAX_HERE];
    describe(holder, other);
    wrong_holder(what, object, other);
}
