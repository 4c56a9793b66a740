/* blocked.c - the list of OS threads that are blocked in a wait. */
#include "wait/blocked.h"
#include "wait/cancel.h"

#include "os/clock.h"
#include "sched/policy.h"
#include "sched/sysmon.h"
#include "sim/sim.h"

/* The schedule explorer has its own threads and its own deadlock detection. */
#ifdef CC_EXPLORED
enum { CHECKS = false };
#else
enum { CHECKS = true };
#endif

struct blocked_thread {
    struct link link;
    struct waiter *waiter;
    struct wait_what what;
    uint64_t since;
    int tid;
    struct outsider *outsider; /* NULL: the thread is in no scope */
    unsigned checks;           /* its own checks for a deadlock: BLOCKED-3 */
    uint64_t check_at, pause, epoch;
};

static struct {
    struct lock lock;
    struct link list; /* of struct blocked_thread; all zero: empty */
    _Atomic uint64_t epoch;
} blocked;

_Static_assert(offsetof(struct blocked_thread, link) == 0, "offsets in the map are from the link");
const struct blocked_map cc__blocked_map = {
    .list = &blocked.list,
    .reason = offsetof(struct blocked_thread, what.reason),
    .object = offsetof(struct blocked_thread, what.object),
    .since = offsetof(struct blocked_thread, since),
    .tid = offsetof(struct blocked_thread, tid),
};

static struct link *list_locked(void) {
    if (cc__get(&blocked.list.next) == NULL) cc__list_init(&blocked.list);
    return &blocked.list;
}

static void count_locked(void) {
    cc__set(&blocked.epoch, cc__get(&blocked.epoch) + 1);
}

uint64_t cc__blocked_epoch(void) {
    return cc__get(&blocked.epoch);
}

/* The thread is on the list, so its frame is valid. */
static void cancel_locked(struct blocked_thread *thread) {
    uint32_t waits = 0;
    if (!cc__cancel_holds(cc__get_acquire(&thread->outsider->scope))) return; /* pairs with the mark */
    if (cc__cas(&thread->waiter->word, &waits, WAKE_CANCEL)) cc__futex_wake(&thread->waiter->word, 1);
}

static void enter(struct blocked_thread *thread, struct waiter *waiter, struct wait_what what) {
    thread->waiter = waiter;
    thread->what = what;
    thread->since = cc__clock_now();
    thread->tid = cc__thread_id();
    thread->checks = 0;
    thread->check_at = thread->since + QUIET_FIRST;
    thread->pause = PAUSE_MIN;
    thread->outsider = cc__outsider();
    cc__lock_take(&blocked.lock);
    cc__list_push_back(list_locked(), &thread->link);
    count_locked();
    if (thread->outsider != NULL) {
        thread->outsider->blocked = thread;
        cancel_locked(thread);
    }
    cc__lock_release(&blocked.lock);
    if (waiter->deadline == WAIT_FOREVER) cc__sysmon_recheck();
}

static void leave(struct blocked_thread *thread) {
    cc__lock_take(&blocked.lock);
    cc__list_remove(&thread->link);
    count_locked();
    if (thread->outsider != NULL) thread->outsider->blocked = NULL;
    cc__lock_release(&blocked.lock);
}

void cc__blocked_cancel(struct outsider *outsider) {
    cc__lock_take(&blocked.lock);
    if (outsider->blocked != NULL) cancel_locked(outsider->blocked);
    cc__lock_release(&blocked.lock);
}

/* BLOCKED-3. Returns the time of the next check. */
static uint64_t check_alone(struct blocked_thread *thread) {
    if (!CHECKS || cc__sysmon_thread() != 0) return CC_FUTEX_FOREVER;
    uint64_t now = cc__clock_now();
    if (now < thread->check_at) return thread->check_at;
    if (thread->checks == 0 && cc__upcall_threads_quiet(0, &thread->epoch)) {
        thread->checks = 1;
        return thread->check_at = now + QUIET_SECOND;
    }
    bool said_yes = thread->checks == 1 && cc__upcall_threads_quiet(1, &thread->epoch);
    thread->checks = 0;
    thread->check_at = said_yes || thread->pause > PAUSE_MAX ? CC_FUTEX_FOREVER : now + thread->pause;
    thread->pause *= 2;
    return thread->check_at;
}

static void wait_on(struct blocked_thread *thread, uint32_t seen) {
    uint64_t until = thread->waiter->deadline;
    if (seen != 0) until = CC_FUTEX_FOREVER; /* claimed: its waker is about to release it */
    if (seen == 0 && until == WAIT_FOREVER && !cc__sim_on()) until = check_alone(thread);
    cc__upcall_sim_wait(&thread->waiter->word, seen, until);
}

CC_NOINLINE enum wake_reason cc__blocked_block(struct waiter *waiter, struct wait_what what) {
    struct blocked_thread thread;
    uint32_t word = 0;
    if (waiter->deadline == WAIT_FOREVER && cc__worker_ending()) (void)cc__cas(&waiter->word, &word, WAKE_CANCEL);
    __builtin_unwind_init(); /* BLOCKED-2 */
    enter(&thread, waiter, what);
    while ((word = cc__get_acquire(&waiter->word)) <= 1) { /* pairs with cc__wakes_flush, cc__waiter_wake */
        bool late = word == 0 && waiter->deadline != WAIT_FOREVER && cc__clock_now() >= waiter->deadline;
        if (!late)
            wait_on(&thread, word);
        else
            (void)cc__cas(&waiter->word, &word, WAKE_TIMER);
    }
    leave(&thread);
    return (enum wake_reason)word;
}

unsigned cc__blocked_list(struct blocked_seen *seen, unsigned max) {
    unsigned n = 0;
    cc__lock_take(&blocked.lock);
    struct link *list = list_locked();
    for (struct link *l = cc__get(&list->next); l != list; l = cc__get(&l->next), n++) {
        struct blocked_thread *thread = container_of(l, struct blocked_thread, link);
        if (n < max)
            seen[n] = (struct blocked_seen){thread->what, thread->since, thread->waiter->deadline, thread->tid,
                                            cc__get_acquire(&thread->waiter->word) == 0};
    }
    cc__lock_release(&blocked.lock);
    return n;
}

bool cc__blocked_waits_forever(void) {
    bool found = false;
    if (!CHECKS) return false;
    cc__lock_take(&blocked.lock);
    struct link *list = list_locked();
    for (struct link *l = cc__get(&list->next); l != list && !found; l = cc__get(&l->next)) {
        const struct waiter *waiter = container_of(l, struct blocked_thread, link)->waiter;
        found = waiter->deadline == WAIT_FOREVER && cc__get(&waiter->word) == 0;
    }
    cc__lock_release(&blocked.lock);
    return found;
}

void cc__blocked_check_alone(void) {
    cc__lock_take(&blocked.lock);
    struct link *list = list_locked();
    for (struct link *l = cc__get(&list->next); l != list; l = cc__get(&l->next))
        cc__futex_wake(&container_of(l, struct blocked_thread, link)->waiter->word, 1);
    cc__lock_release(&blocked.lock);
}

void cc__blocked_forget(void) {
    blocked.lock = (struct lock){0};
    cc__list_init(&blocked.list);
}
