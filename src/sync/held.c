/* held.c - the locks that a thread holds. Empty in release builds.
 *
 * The fields are relaxed atomics, and the functions are never inlined: fibers, which a race detector sees as threads,
 * share the list of their OS thread, and a fiber may change threads.
 */
#include "sync/held.h"

#ifdef CC_DEBUG

#include "base/fatal.h"
#include "base/inspect.h"
#include "sync/atomic.h"

#include <stdio.h>

enum { NAMED = 32 }; /* a select may hold 256: further ones are only counted */

static _Thread_local struct {
    _Atomic uint32_t count, beyond;
    struct {
        struct lock *_Atomic lock;
        const void *_Atomic where;
        _Atomic uint32_t handed_over;
    } locks[NAMED];
} held __attribute__((tls_model("initial-exec")));

CC_NOINLINE void cc__held_took(struct lock *lock) {
    uint32_t n = cc__get(&held.count);
    if (n == NAMED) {
        cc__set(&held.beyond, cc__get(&held.beyond) + 1);
        return;
    }
    cc__set(&held.locks[n].lock, lock);
    cc__set(&held.locks[n].where, __builtin_return_address(0));
    cc__set(&held.locks[n].handed_over, 0);
    cc__set(&held.count, n + 1);
}

/* Its position in the list, from 1; 0: not in the list. */
static uint32_t find(struct lock *lock) {
    uint32_t n = cc__get(&held.count);
    while (n > 0 && cc__get(&held.locks[n - 1].lock) != lock) n--;
    return n;
}

CC_NOINLINE void cc__held_releases(struct lock *lock) {
    uint32_t at = find(lock), n = cc__get(&held.count), beyond = cc__get(&held.beyond);
    if (at == 0) {
        cc__assert(beyond > 0, "HELD-3: a lock is released by a thread that does not hold it");
        cc__set(&held.beyond, beyond - 1);
        return;
    }
    for (; at < n; at++) {
        cc__set(&held.locks[at - 1].lock, cc__get(&held.locks[at].lock));
        cc__set(&held.locks[at - 1].where, cc__get(&held.locks[at].where));
        cc__set(&held.locks[at - 1].handed_over, cc__get(&held.locks[at].handed_over));
    }
    cc__set(&held.count, n - 1);
}

CC_NOINLINE void cc__held_hands_over(struct lock *lock) {
    uint32_t at = find(lock);
    cc__assert(at != 0 || cc__get(&held.beyond) > 0, "HELD-3: a lock is handed over by a thread that does not hold it");
    if (at != 0) cc__set(&held.locks[at - 1].handed_over, 1);
}

static CC_COLD CC_NORETURN void die(const char *rule) {
    char text[600];
    int at = 0;
    for (uint32_t i = 0; i < cc__get(&held.count) && at < (int)sizeof text - 200; i++) {
        char place[160];
        cc__symbol_text(cc__get(&held.locks[i].where), place, sizeof place);
        at +=
            snprintf(text + at, sizeof text - (size_t)at, "%s %p%s, taken at %p %s", i > 0 ? ";" : "",
                     (void *)cc__get(&held.locks[i].lock), cc__get(&held.locks[i].handed_over) ? " (handed over)" : "",
                     (const void *)cc__get(&held.locks[i].where), place);
    }
    cc__fatal("%s:%s", rule, text);
}

CC_NOINLINE void cc__held_check_park(void) {
    for (uint32_t i = 0; i < cc__get(&held.count); i++)
        if (!cc__get(&held.locks[i].handed_over))
            die("HELD-1: PARK-UNDER-LOCK: a fiber leaves its worker while the thread holds");
}

CC_NOINLINE void cc__held_check_flush(void) {
    if (cc__get(&held.count) != 0) die("HELD-2: WAKE-FLUSH-UNDER-LOCK: fibers are woken while the thread holds");
}

#else
typedef int cc__held_is_for_debug_builds; /* a file must not be empty */
#endif
