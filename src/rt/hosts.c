/* hosts.c - cc_sim.h: simulated hosts and the network between them. */
#include "base/mem.h"
#include "fiber/pool.h"
#include "sim/sim.h"
#include "wait/cancel.h"

#include <ccc/cc_sim.h>
#include <errno.h>
#include <string.h>

enum { NAME_SIZE = 64, FEW = 64 };

int cc_sim_host(CCSimHost *host, const char *name) {
    if (host == NULL || name == NULL || *name == 0 || strlen(name) >= NAME_SIZE) return EINVAL;
    return cc__sim_on() ? cc__sim_host(name, host) : ENOTSUP;
}

CCSimHost cc_sim_host_self(void) {
    return cc__sim_on() ? cc__sim_host_self() : 0;
}

bool cc_sim_is_up(CCSimHost host) {
    return cc__sim_on() && cc__sim_host_is_up(host);
}

size_t cc_sim_fibers(CCSimHost host) {
    return cc__sim_on() ? cc__sim_on_host(host, NULL, 0) : 0;
}

/* ---- start ---- */

struct first {
    struct sim_place place;
    CCTaskFn fn;
    void *arg;
};

static void *begin(void *arg) {
    struct first first = *(struct first *)arg;
    if (cc__sim_move(first.place) == 0) (void)first.fn(first.arg);
    return NULL;
}

int cc_sim_start(CCSimHost host, CCTaskFn fn, void *arg) {
    struct first first = {.fn = fn, .arg = arg};
    if (fn == NULL) return EINVAL;
    if (!cc__sim_on()) return ENOTSUP;
    while (!cc__sim_host_is_up(host) && cc__sim_on_host(host, NULL, 0) > 0) { /* fibers from before the crash */
        int error = cc_sleep_ms(1);
        if (error != 0) return error;
    }
    int error = cc__sim_host_start(host, &first.place);
    if (error != 0) return error;
    CCTask task;
    error = cc__upcall_spawn_in(0, &task, begin, &first, &(CCSpawnOptions){.arg_size = sizeof first},
                                __builtin_return_address(0));
    if (error != 0) {
        (void)cc__sim_host_crash(host);
        return error;
    }
    cc__sim_place(cc__pool_find(task.id), first.place);
    return cc_task_detach(&task);
}

/* ---- crash ---- */

/* The record, locked, if it has a live fiber; else NULL. */
static struct fiber *lock_live(uint32_t slot) {
    struct fiber *f = cc__pool_at(slot);
    if (f == NULL) return NULL;
    cc__lock_take(&f->join_lock);
    enum fiber_state state = cc__word_state(cc__get(&f->word));
    if (state != FIBER_DONE && state != FIBER_IDLE) return f;
    cc__lock_release(&f->join_lock);
    return NULL;
}

/* Nothing else runs meanwhile: a record has the same fiber in both passes. */
static void cancel_all(const uint32_t *slots, uint32_t count) {
    struct wakes wakes;
    struct fiber *f;
    cc__wakes_init(&wakes);
    cc__cancel_begin();
    for (uint32_t i = 0; i < count; i++) {
        if ((f = lock_live(slots[i])) == NULL) continue;
        cc__cancel_pierce(&f->scope);
        cc__cancel_mark(f, CANCEL_TASK);
        cc__lock_release(&f->join_lock);
    }
    cc__cancel_barrier();
    for (uint32_t i = 0; i < count; i++) {
        if ((f = lock_live(slots[i])) == NULL) continue;
        cc__cancel_claim(f, &wakes);
        cc__lock_release(&f->join_lock);
    }
    cc__cancel_end(&wakes);
}

int cc_sim_crash(CCSimHost host) {
    uint32_t few[FEW], *slots = few;
    if (!cc__sim_on()) return ENOTSUP;
    if (!cc__sim_host_exists(host) || host == 0) return EINVAL;
    uint32_t count = cc__sim_on_host(host, few, FEW);
    if (count > FEW) {
        slots = cc__mem_alloc_small(count * sizeof *slots);
        if (slots == NULL) return ENOMEM;
        (void)cc__sim_on_host(host, slots, count);
    }
    int error = cc__sim_host_crash(host);
    if (error == 0) cancel_all(slots, count);
    if (slots != few) cc__mem_free(slots);
    cc__sim_point(); /* so that a fiber that does not wait sees it too */
    return error;
}

void cc__upcall_host_gone(struct fiber *f) {
    cc__cancel_begin(); /* CANCEL-4 */
    cc__cancel_mark(f, CANCEL_TASK);
}

/* ---- the network ---- */

int cc_sim_partition(CCSimHost a, CCSimHost b, CCDeadline until) {
    return cc__sim_on() ? cc__sim_cut(a, b, until.ns != 0 ? until.ns : UINT64_MAX) : ENOTSUP;
}

int cc_sim_heal(CCSimHost a, CCSimHost b) {
    return cc__sim_on() ? cc__sim_cut(a, b, 0) : ENOTSUP;
}

int cc_sim_net(CCSimNet *net) {
    if (net == NULL) return EINVAL;
    *net = (CCSimNet){0};
    if (!cc__sim_on()) return ENOTSUP;
    cc__sim_net_get(net);
    return 0;
}

int cc_sim_net_set(const CCSimNet *net) {
    if (net == NULL) return EINVAL;
    return cc__sim_on() ? cc__sim_net_set(net) : ENOTSUP;
}

int cc_sim_stats(CCSimStats *stats) {
    if (stats == NULL) return EINVAL;
    *stats = (CCSimStats){0};
    if (!cc__sim_on()) return ENOTSUP;
    cc__sim_stats(stats);
    return 0;
}
