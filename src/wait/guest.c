/* guest.c - the list of OS threads that block in a wait. */
#include "wait/guest.h"
#include "wait/cancel.h"

#include "os/clock.h"
#include "os/thread.h"
#include "sched/sysmon.h"
#include "sched/upcalls.h"
#include "sim/sim.h"

#define MS UINT64_C(1000000)
#define REST_FIRST (50 * MS)
#define REST_SECOND (100 * MS)
#define PAUSE_MIN (250 * MS) /* then twice as long: a thread that ends tells nobody */
#define PAUSE_MAX (4000 * MS)

/* The threads of the schedule explorer are none of the system's, and it finds deadlocks by itself. */
#ifdef CC_EXPLORED
enum { LOOKS = false };
#else
enum { LOOKS = true };
#endif

static struct {
    struct lock lock;
    struct link list; /* of struct guest; all zero: empty */
    _Atomic uint64_t epoch;
} guests;

static struct link *list_locked(void) {
    if (cc__get(&guests.list.next) == NULL) cc__list_init(&guests.list);
    return &guests.list;
}

static void count_locked(void) {
    cc__set(&guests.epoch, cc__get(&guests.epoch) + 1);
}

uint64_t cc__guest_epoch(void) {
    return cc__get(&guests.epoch);
}

/* It is on the list, so its frame is there. */
static void cancel_locked(struct guest *g) {
    uint32_t waits = 0;
    if (!cc__cancel_holds(cc__get_acquire(&g->outsider->scope))) return; /* pairs with the mark */
    if (cc__cas(&g->waiter->word, &waits, WAKE_CANCEL)) cc__futex_wake(&g->waiter->word, 1);
}

void cc__guest_enter(struct guest *guest, struct waiter *waiter, struct wait_what what) {
    guest->waiter = waiter;
    guest->what = what;
    guest->since = cc__clock_now();
    guest->tid = cc__thread_id();
    guest->looks = 0;
    guest->look_at = guest->since + REST_FIRST;
    guest->pause = PAUSE_MIN;
    guest->outsider = cc__outsider();
    cc__lock_take(&guests.lock);
    cc__list_push_back(list_locked(), &guest->link);
    count_locked();
    if (guest->outsider != NULL) {
        guest->outsider->guest = guest;
        cancel_locked(guest);
    }
    cc__lock_release(&guests.lock);
    if (waiter->deadline == WAIT_FOREVER) cc__sysmon_look_again();
}

void cc__guest_leave(struct guest *guest) {
    cc__lock_take(&guests.lock);
    cc__list_remove(&guest->link);
    count_locked();
    if (guest->outsider != NULL) guest->outsider->guest = NULL;
    cc__lock_release(&guests.lock);
}

void cc__guest_cancel(struct outsider *outsider) {
    cc__lock_take(&guests.lock);
    if (outsider->guest != NULL) cancel_locked(outsider->guest);
    cc__lock_release(&guests.lock);
}

/* GUEST-3. Returns when to look next. */
static uint64_t look_alone(struct guest *g) {
    if (!LOOKS || cc__sysmon_thread() != 0) return CC_FUTEX_FOREVER;
    uint64_t now = cc__clock_now();
    if (now < g->look_at) return g->look_at;
    if (g->looks == 0 && cc__upcall_threads_quiet(0, &g->epoch)) {
        g->looks = 1;
        return g->look_at = now + REST_SECOND;
    }
    bool said_yes = g->looks == 1 && cc__upcall_threads_quiet(1, &g->epoch);
    g->looks = 0;
    g->look_at = said_yes || g->pause > PAUSE_MAX ? CC_FUTEX_FOREVER : now + g->pause;
    g->pause *= 2;
    return g->look_at;
}

void cc__guest_wait(struct guest *guest, uint32_t seen) {
    uint64_t until = guest->waiter->deadline;
    if (seen != 0) until = CC_FUTEX_FOREVER; /* claimed: its waker is about to let it go */
    if (seen == 0 && until == WAIT_FOREVER && !cc__sim_on()) until = look_alone(guest);
    cc__sim_wait(&guest->waiter->word, seen, until);
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

bool cc__guest_waits_forever(void) {
    bool found = false;
    if (!LOOKS) return false;
    cc__lock_take(&guests.lock);
    struct link *list = list_locked();
    for (struct link *l = cc__get(&list->next); l != list && !found; l = cc__get(&l->next)) {
        const struct waiter *waiter = container_of(l, struct guest, link)->waiter;
        found = waiter->deadline == WAIT_FOREVER && cc__get(&waiter->word) == 0;
    }
    cc__lock_release(&guests.lock);
    return found;
}

void cc__guest_look_alone(void) {
    cc__lock_take(&guests.lock);
    struct link *list = list_locked();
    for (struct link *l = cc__get(&list->next); l != list; l = cc__get(&l->next))
        cc__futex_wake(&container_of(l, struct guest, link)->waiter->word, 1);
    cc__lock_release(&guests.lock);
}

void cc__guest_forget(void) {
    guests.lock = (struct lock){0};
    cc__list_init(&guests.list);
}
