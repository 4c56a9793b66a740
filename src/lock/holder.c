/* holder.c - who holds a lock, and the sentences for those who should not. */
#include "lock/holder.h"

#include "base/fatal.h"
#include "sched/sched.h"

#include <stdio.h>

#define THREAD (UINT64_C(1) << 63)
enum { NAME_MAX_HERE = CC_FIBER_NAME_MAX + 64 };

static uint64_t self(void) {
    struct fiber *f = cc__sched_current(cc__worker());
    return f != NULL ? cc__pool_id(f) : THREAD | (uint64_t)(uintptr_t)pthread_self();
}

static void describe(uint64_t holder, char *text) {
    if (holder & THREAD) {
        snprintf(text, NAME_MAX_HERE, "OS thread 0x%llx", (unsigned long long)(holder & ~THREAD));
    } else {
        const char *name = holder == self() ? cc_fiber_name() : ""; /* another's may be gone by now */
        snprintf(text, NAME_MAX_HERE, "fiber %u.%u%s%s%s", (uint32_t)holder - 1, (uint32_t)(holder >> 32),
                 name[0] ? " '" : "", name, name[0] ? "'" : "");
    }
}

void cc__holder_free(const char *what) {
    char me[NAME_MAX_HERE];
    describe(self(), me);
    cc__fatal("%s is free; %s does not hold it", what, me);
}

#ifdef CC_DEBUG
void cc__holder_enter(_Atomic uint64_t *owner) {
    cc__set(owner, self());
}

void cc__holder_leave(_Atomic uint64_t *owner, const char *what) {
    uint64_t holder = cc__get(owner);
    if (unlikely(holder == 0)) cc__holder_free(what);
    if (unlikely(holder != self())) {
        char me[NAME_MAX_HERE], other[NAME_MAX_HERE];
        describe(self(), me);
        describe(holder, other);
        cc__fatal("%s is held by %s, and %s wants to give it back", what, other, me);
    }
    cc__set(owner, 0);
}

void cc__holder_again(_Atomic uint64_t *owner, const char *what) {
    if (likely(cc__get(owner) != self())) return;
    char me[NAME_MAX_HERE];
    describe(self(), me);
    cc__fatal("%s is held by %s itself, which wants it again and would wait for ever", what, me);
}
#endif
