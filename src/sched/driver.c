/* driver.c - calls all drivers. */
#include "sched/driver.h"

#include "sched/island.h"

const struct driver *cc__drivers[DRIVERS_MAX + 1];

bool cc__drivers_start(unsigned workers) {
    bool ok = true;
    for (unsigned i = 0; ok && cc__drivers[i] != NULL; i++) ok = cc__drivers[i]->start(workers);
    return ok;
}

void cc__drivers_stop(void) {
    for (unsigned i = 0; cc__drivers[i] != NULL; i++) cc__drivers[i]->stop();
}

uint64_t cc__drivers_next_due(unsigned worker, bool exact) {
    uint64_t first = UINT64_MAX;
    for (unsigned i = 0; cc__drivers[i] != NULL; i++) {
        uint64_t due = cc__drivers[i]->next_due(worker, exact);
        if (due < first) first = due;
    }
    return first;
}

/* A driver with one source for all workers also returns fibers of islands. Those already in the list were routed. */
static CC_NOINLINE uint32_t route(struct link *list, uint32_t n) {
    uint32_t before = 0;
    for (struct link *l = cc__get(&list->next); l != list; l = cc__get(&l->next)) before++;
    return n - (before - cc__island_route(cc__worker(), list, before));
}

uint32_t cc__drivers_poll_own(unsigned worker, uint64_t now, struct link *list) { /* DRIVER-2 */
    uint32_t n = 0;
    for (unsigned i = 0; cc__drivers[i] != NULL; i++)
        if (cc__drivers[i]->wait == NULL) n += cc__drivers[i]->poll(worker, now, list);
    return n;
}

uint32_t cc__drivers_poll_events(unsigned worker, uint64_t now, struct link *list) { /* DRIVER-2 */
    const struct driver *d = cc__drivers_blocking();
    uint32_t n = d != NULL ? d->poll(worker, now, list) : 0;
    return n == 0 || likely(!cc__island_any()) || cc__sched.simulated ? n : route(list, n);
}

bool cc__drivers_pending(void) {
    bool pending = false;
    for (unsigned i = 0; !pending && cc__drivers[i] != NULL; i++) pending = cc__drivers[i]->pending();
    return pending;
}

const struct driver *cc__drivers_blocking(void) {
    for (unsigned i = 0; cc__drivers[i] != NULL; i++)
        if (cc__drivers[i]->wait != NULL) return cc__drivers[i];
    return NULL;
}
