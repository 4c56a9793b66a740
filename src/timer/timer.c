/* timer.c - a four-ary heap of deadlines per worker. Four children fit into a cache line and a half, with half the
 * levels of a binary heap. */
#include "timer/timer.h"

#include "base/fatal.h"
#include "base/mem.h"
#include "os/clock.h"
#include "sched/island.h"
#include "sched/next.h"
#include "trace/trace.h"

#include <string.h>

struct entry {
    uint64_t when;
    struct fiber *fiber;
    uint64_t ticket;
};

struct heap {
    _Alignas(CC_LINE) _Atomic uint64_t next; /* when the first entry is due; UINT64_MAX: never */
    struct lock lock;
    _Atomic uint32_t count;
    _Atomic uint32_t room;
    _Atomic uint32_t stale; /* disarmed entries still in the heap; may lag behind sweeps */
    struct entry *entries;
};

enum { ROOM_MIN = 64 };

static struct heap *heaps;
static unsigned heap_count;

const struct timer_map cc__timer_map = {&heaps, sizeof(struct heap), offsetof(struct heap, count), ISLANDS_MAX};

static bool start(unsigned workers) {
    heaps = cc__mem_alloc(workers * sizeof *heaps);
    if (heaps == NULL) return false;
    heap_count = workers;
    for (unsigned i = 0; i < workers; i++) cc__set(&heaps[i].next, UINT64_MAX);
    return true;
}

static void stop(void) {
    for (unsigned i = 0; heaps != NULL && i < heap_count; i++) cc__mem_free(heaps[i].entries);
    cc__mem_free(heaps);
    heaps = NULL;
}

static struct heap *heap_of(struct worker *w) {
    return &heaps[w->core.owner - 1];
}

static struct heap *alarms_of(struct worker *w) {
    return cc__worker_is_island(w) ? &heaps[cc__island_alarms(w)] : heap_of(w);
}

/* Moves e from `at` up to where it belongs. */
static void sift_up(struct heap *h, uint32_t at, struct entry e) {
    while (at > 0) {
        uint32_t parent = (at - 1) / 4;
        if (h->entries[parent].when <= e.when) break;
        h->entries[at] = h->entries[parent];
        at = parent;
    }
    h->entries[at] = e;
}

static void sift_down(struct heap *h, uint32_t at, uint32_t count, struct entry e) {
    for (;;) {
        uint32_t first = 4 * at + 1, end = first + 4 < count ? first + 4 : count, least = at;
        uint64_t when = e.when;
        for (uint32_t child = first; child < end; child++) {
            if (h->entries[child].when < when) {
                when = h->entries[child].when;
                least = child;
            }
        }
        if (least == at) break;
        h->entries[at] = h->entries[least];
        at = least;
    }
    h->entries[at] = e;
}

static void set_next_locked(struct heap *h, uint32_t count) {
    /* seq_cst: an owner that arms and then goes to sleep must see it, and so must other workers. */
    cc__set_seq(&h->next, count > 0 ? h->entries[0].when : UINT64_MAX);
}

/* The wait of this entry is over. */
static bool is_stale(const struct entry *e) {
    return (cc__get(&e->fiber->word) & WORD_TICKET) != e->ticket;
}

/* Drops the stale entries and rebuilds the heap: O(n), after n/2 disarms. */
static void sweep_locked(struct heap *h) {
    uint32_t count = cc__get(&h->count), kept = 0;
    for (uint32_t i = 0; i < count; i++)
        if (!is_stale(&h->entries[i])) h->entries[kept++] = h->entries[i];
    for (uint32_t i = kept / 4 + 1; i-- > 0;)
        if (i < kept) sift_down(h, i, kept, h->entries[i]);
    cc__set(&h->count, kept);
    cc__set(&h->stale, 0);
    set_next_locked(h, kept);
}

static bool prepare(struct heap *h) {
    /* Only the owner adds entries: what is free now stays free. */
    if (likely(cc__get(&h->count) < cc__get(&h->room))) return true;
    /* Only the owner grows it. System calls and page faults happen without the lock: threads that fire timers would
     * wait for them. */
    uint32_t room = cc__get(&h->room) == 0 ? ROOM_MIN : cc__get(&h->room) * 2;
    struct entry *bigger = cc__mem_alloc(room * sizeof *bigger);
    if (bigger == NULL) return false;
    cc__lock_take(&h->lock);
    struct entry *old = h->entries;
    if (old != NULL) memcpy(bigger, old, cc__get(&h->count) * sizeof *bigger);
    h->entries = bigger;
    cc__set(&h->room, room);
    cc__lock_release(&h->lock);
    cc__mem_free(old);
    return true;
}

bool cc__timer_prepare(struct worker *w) {
    return prepare(heap_of(w));
}

bool cc__timer_prepare_alarm(struct worker *w) {
    return prepare(alarms_of(w));
}

/* A thread that fires a timer has claimed its fiber, but the race detector sees no order between it and the thread that
 * created the record. */
static CC_COLD CC_NOINLINE CC_NO_TSAN CCFiberId id_of(struct fiber *f) {
    return cc__pool_id(f);
}

static CC_COLD uint64_t from_now(uint64_t when) {
    uint64_t now = cc__clock_now();
    return when > now ? when - now : 0;
}

CC_INLINE void arm(struct worker *w, struct heap *h, uint64_t when, struct fiber *f, uint64_t ticket) { /* TIMER-2 */
    cc__event(timer_arm, id_of(f), from_now(when)); /* before arming: after it the fiber may be gone */
    cc__lock_take(&h->lock);
    uint32_t count = cc__get(&h->count);
    if (unlikely(cc__get(&h->stale) > count / 2 && count > ROOM_MIN)) {
        sweep_locked(h);
        count = cc__get(&h->count);
    }
    cc__assert(count < cc__get(&h->room), "TIMER-3: a timer is armed without room for it");
    cc__set(&h->count, count + 1);
    sift_up(h, count, (struct entry){when, f, ticket});
    bool first = h->entries[0].when == when;
    if (first) set_next_locked(h, count + 1);
    cc__lock_release(&h->lock);
    if (first) cc__next_plan(w, when);
    cc__count(w, timers_armed);
}

void cc__timer_arm(struct worker *w, uint64_t when, struct fiber *f, uint64_t ticket) {
    arm(w, heap_of(w), when, f, ticket);
}

void cc__timer_arm_alarm(struct worker *w, uint64_t when, struct fiber *f, uint64_t ticket) {
    arm(w, alarms_of(w), when, f, ticket);
}

void cc__timer_disarm(struct worker *w) {
    cc__add_relaxed(&heap_of(w)->stale, 1);
}

void cc__timer_disarm_alarm(struct worker *w) {
    cc__add_relaxed(&alarms_of(w)->stale, 1);
}

uint32_t cc__timer_count(struct worker *w) {
    uint32_t count = cc__get(&heap_of(w)->count);
    return alarms_of(w) != heap_of(w) ? count + cc__get(&alarms_of(w)->count) : count;
}

/* Drops stale entries that would fire first. */
static void settle(struct heap *h) {
    cc__lock_take(&h->lock);
    uint32_t count = cc__get(&h->count);
    while (count > 0 && is_stale(&h->entries[0])) {
        count--;
        if (count > 0) sift_down(h, 0, count, h->entries[count]);
    }
    cc__set(&h->count, count);
    set_next_locked(h, count);
    cc__lock_release(&h->lock);
}

static uint64_t next_due(unsigned worker, bool exact) {
    if (exact) settle(&heaps[worker]);
    return cc__get_seq(&heaps[worker].next);
}

static uint32_t poll(unsigned worker, uint64_t now, struct link *list) { /* DRIVER-1 */
    struct heap *h = &heaps[worker];
    if (cc__get_seq(&h->next) > now) return 0;
    uint32_t fired = 0;
    cc__lock_take(&h->lock);
    uint32_t count = cc__get(&h->count);
    while (count > 0 && h->entries[0].when <= now) {
        struct entry due = h->entries[0];
        count--;
        if (count > 0) sift_down(h, 0, count, h->entries[count]);
        /* WON: this thread enqueues the fiber. LATCHED: the thread that commits its park does. LOST: it was already
         * woken. */
        if (cc__state_claim(due.fiber, due.ticket, WAKE_TIMER) == CLAIM_WON) {
            cc__list_push_back(list, &due.fiber->link);
            fired++;
            cc__event(timer_fire, id_of(due.fiber), now - due.when);
            cc__probe2(timer_fire, due.fiber, now - due.when);
        } else {
            uint32_t stale = cc__get(&h->stale);
            if (stale > 0) cc__set(&h->stale, stale - 1); /* a hint: a lost update only moves the next sweep */
        }
    }
    cc__set(&h->count, count);
    set_next_locked(h, count);
    cc__lock_release(&h->lock);
    return fired;
}

void cc__timer_each(void (*fn)(void *arg, struct fiber *f, uint64_t ticket), void *arg) {
    for (unsigned i = 0; i < heap_count; i++) {
        struct heap *h = &heaps[i];
        cc__lock_take(&h->lock);
        uint32_t count = cc__get(&h->count);
        for (uint32_t k = 0; k < count; k++) {
            uint64_t word = cc__get(&h->entries[k].fiber->word);
            if ((word & WORD_TICKET) == h->entries[k].ticket && cc__word_state(word) == FIBER_PARKED)
                fn(arg, h->entries[k].fiber, h->entries[k].ticket);
        }
        cc__lock_release(&h->lock);
    }
}

static void note_one(void *arg, struct fiber *f, uint64_t ticket) {
    (void)f, (void)ticket;
    *(bool *)arg = true;
}

static bool pending(void) {
    bool found = false;
    cc__timer_each(note_one, &found);
    return found;
}

const struct driver cc__timer_driver = {start, stop, next_due, poll, pending, NULL, NULL};
