/* guest.c - the list of OS threads that block in a wait. */
#include "wait/guest.h"

#include "plat/clock.h"
#include "plat/thread.h"
#include "sched/sysmon.h"

static struct {
    struct lock lock;
    struct link list; /* of struct guest; all zero: empty */
} guests;

static struct link *list_locked(void) {
    if (cc__get(&guests.list.next) == NULL) cc__list_init(&guests.list);
    return &guests.list;
}

void cc__guest_enter(struct guest *guest, struct waiter *waiter, struct wait_what what) {
    guest->waiter = waiter;
    guest->what = what;
    guest->since = cc__clock_now();
    guest->tid = cc__thread_id();
    cc__lock_take(&guests.lock);
    cc__list_push_back(list_locked(), &guest->link);
    cc__lock_release(&guests.lock);
    if (waiter->deadline == WAIT_FOREVER) cc__sysmon_look_again();
}

void cc__guest_leave(struct guest *guest) {
    cc__lock_take(&guests.lock);
    cc__list_remove(&guest->link);
    cc__lock_release(&guests.lock);
}

unsigned cc__guest_list(struct guest_seen *seen, unsigned max) {
    unsigned n = 0;
    cc__lock_take(&guests.lock);
    struct link *list = list_locked();
    for (struct link *l = cc__get(&list->next); l != list; l = cc__get(&l->next), n++) {
        struct guest *g = container_of(l, struct guest, link);
        if (n < max)
            seen[n] = (struct guest_seen){g->what, g->since, g->waiter->deadline, g->tid,
                                          cc__get_acquire(&g->waiter->word) == 0};
    }
    cc__lock_release(&guests.lock);
    return n;
}

void cc__guest_forget(void) {
    guests.lock = (struct lock){0};
    cc__list_init(&guests.list);
}
