/* next.c - the full choice of the next fiber, on the worker's own stack.
 *
 * The order is: slot, FIFO, fresh (newest), inbox, global queue, timers, other workers. Every `interval` turns, and
 * when a timer is due, the worker polls: it moves what is in timers, inbox and its share of the global queue to the
 * FIFO, and the oldest fiber gets the turn, so that none waits for ever. The interval adapts to keep polls about
 * POLL_NS apart, whether turns take ten nanoseconds or ten milliseconds; so the hot path reads no clock. Nor does it
 * for timers: from the length of turns at the last poll the worker predicts the turn in which the first timer is due.
 * If turns become longer, sysmon notices that the poll is late, and asks for it (cc__next_poll_soon).
 *
 * A fiber whose timer has fired enters at the front of the FIFO: it waits for one turn, not for one of every fiber. So
 * does one whose descriptor has an event, unless earlier ones of that kind still wait (NEXT-2). `credit` reserves every
 * second turn for the fibers in the FIFO.
 *
 * A joiner that runs its own tasks polls too, on its own stack. It does not park: it yields, and then continues. Each
 * such poll admits all fibers that have run before. Fresh fibers are mostly the joiner's own: only every
 * JOINER_FRESH_POLLS-th poll admits the oldest, because otherwise every poll would start one more tree of tasks and
 * leave one more unfinished.
 *
 * NEXT-1  A runnable fiber gets its turn after a bounded number of turns of others on the worker that holds it,
 *         wherever it is queued. While all workers are busy, or an island is, a poll is no later than the end of the
 *         turn in which a tick of sysmon finds it POLL_LATE_NS late.
 * NEXT-2  Fibers whose descriptors have events get their turns in the order of the events, as far as one worker polls
 *         them: at turn `events_turn` all earlier ones have had theirs, and until then new ones join the FIFO's end.
 * NEXT-3  A fiber that makes calls that may switch does not keep its worker: after a turn of PREEMPT_NS that a tick of
 *         sysmon has seen, its next send, receive, select or lock yields. Not on an island, whose fibers switch only
 *         where they have to wait.
 */
#include "sched/next.h"

#include "os/clock.h"
#include "sched/contention.h"
#include "sched/driver.h"
#include "sched/idle.h"
#include "sched/inbox.h"
#include "sched/inject.h"
#include "sched/island.h"
#include "sched/steal.h"
#include "sched/wake.h"
#include "sched/watch.h"

/* The worker has taken that many fibers from the global queue: adapts how much work it shares. Returns how many of them
 * came from others. */
static uint32_t judge_sharing(struct worker *w, uint32_t taken) {
    uint32_t gave = cc__get(&w->gave), worth = cc__get(&w->worth_ns);
    bool came_back = gave != 0 && taken != 0;
    uint32_t next = cc__policy_worth_next(worth, gave != 0, came_back);
    if (next != worth) cc__set(&w->worth_ns, next);
    if (gave != 0) cc__set(&w->gave, came_back && gave > taken ? gave - taken : 0);
    return taken > gave ? taken - gave : 0;
}

/* Moves fibers whose timers are due to `due`; those of the own inbox, and a fair share of the global queue, to `list`.
 * Returns how many are in `list`; *shared of them were shared by others. */
static uint32_t collect(struct worker *w, uint64_t now, struct link *due, uint32_t *fired, struct link *list,
                        uint32_t *shared) {
    uint32_t n = 0;
    unsigned self = w->core.owner - 1;
    *fired += cc__drivers_poll_own(self, now, due);
    if (cc__worker_is_island(w)) {
        *fired += cc__island_poll_alarms(w, now, due);
        if (*fired != 0) cc__count_n(w, timers_fired, *fired);
        return cc__inbox_take(w, list);
    }
    unsigned count = cc__get(&cc__sched.count);
    for (unsigned i = 0; i < count; i++) {
        if (i == self) continue;
        struct worker *other = &cc__sched.workers[i];
        bool retired = i >= cc__get(&cc__sched.base) && !cc__worker_open(other);
        uint64_t patience = retired ? 0 : OTHERS_LATE_NS;
        if (now > patience && cc__drivers_next_due(i, false) <= now - patience)
            *fired += cc__drivers_poll_own(i, now, due);
        if (unlikely(retired)) n += cc__inbox_take(other, list);
    }
    *fired += cc__islands_poll_alarms(now, due);
    if (*fired != 0) cc__count_n(w, timers_fired, *fired);
    n += cc__inbox_take(w, list);
    uint64_t global = cc__inject_len();
    uint32_t taken = 0;
    if (global != 0) {
        uint64_t fair = global / cc__policy_awake(cc__get(&cc__sched.want)) + 1;
        taken = cc__inject_take(w, fair < GLOBAL_BATCH ? (uint32_t)fair : GLOBAL_BATCH, list);
    }
    *shared = judge_sharing(w, taken);
    return n + taken;
}

/* Turn lengths vary, and those before the last poll may have been short: so assume the slowest recent ones. If the poll
 * is early, it plans the next one. */
void cc__next_plan(struct worker *w, uint64_t when) {
    uint64_t from = cc__get(&w->polled_at), ns = when > from + POLL_SOON_NS ? when - from : POLL_SOON_NS;
    uint64_t turns = ns / cc__get(&w->slow_ns), least = POLL_AGAIN_NS / cc__get(&w->turn_ns) + 1;
    uint64_t at = cc__get(&w->polled_turn) + (turns > least ? turns : least);
    if (at < cc__get(&w->core.poll_at)) cc__set(&w->core.poll_at, at);
}

/* Sets the next poll: about POLL_NS from now, or when a timer is due. */
static void adapt(struct worker *w, uint64_t now, uint64_t turns) {
    uint64_t took = now - cc__get(&w->polled_at);
    if (turns != 0) {
        uint64_t each = took / turns;
        if (each == 0) each = 1;
        uint32_t turn_ns = each < UINT32_MAX ? (uint32_t)each : UINT32_MAX, slow_ns = cc__get(&w->slow_ns);
        slow_ns -= slow_ns / 32;
        if (each >= LONG_TURN_NS) cc__set(&cc__sched.idle.long_turn_at, now);
        cc__set(&w->turn_ns, turn_ns);
        cc__set(&w->slow_ns, turn_ns > slow_ns ? turn_ns : slow_ns);
        took = each * w->interval;
    }
    if (took > 2 * POLL_NS && w->interval > 1)
        w->interval /= 2;
    else if (took < POLL_NS && w->interval < INTERVAL_MAX)
        w->interval *= 2;
    if (cc__trace_on(TRACE_SPEC)) w->interval = 1; /* every turn is checked here (fiber/spec.h) */
    uint64_t turn = cc__get(&w->core.turns);
    cc__set(&w->polled_at, now);
    cc__set(&w->polled_turn, turn);
    cc__turn_log_write(&w->turn_log, turn, now);
    cc__set(&w->core.poll_at, turn + w->interval);
    cc__set(&w->core.share_at, 1);
    uint64_t due = cc__drivers_next_due(w->core.owner - 1, false);
    if (due != UINT64_MAX) cc__next_plan(w, due);
}

static struct fiber *pick(struct worker *w) {
    cc__bias_enter(&w->runq.bias);
    struct fiber *f = cc__runq_pick_owner(w);
    cc__bias_leave(&w->runq.bias);
    return f;
}

/* At a poll: whether the slot goes first. Its fiber was woken just now, but two fibers that wake each other in long
 * turns must not starve the others: so not after SLOT_NS in which only slots had turns. */
static bool slot_first(struct worker *w) {
    if (cc__get(&w->core.streak) == 0) w->slots_since = cc__get(&w->polled_at);
    return cc__get(&w->runq.slot) != NULL && cc__get(&w->polled_at) - w->slots_since < SLOT_NS;
}

/* The oldest of the FIFO and the oldest fresh fiber take turns. */
static struct fiber *pick_oldest(struct worker *w) {
    struct runq *q = &w->runq;
    struct fiber *f = NULL;
    bool slot = slot_first(w);
    if (cc__list_empty(&q->fresh) && slot) return pick(w);
    w->fair_fresh = !w->fair_fresh;
    cc__bias_enter(&q->bias);
    if (!cc__list_empty(&q->fresh) && (w->fair_fresh || cc__list_empty(&q->fifo)))
        f = cc__fiber_of(cc__list_pop_back(&q->fresh));
    else if (!cc__list_empty(&q->fifo))
        f = cc__fiber_of(cc__list_pop_front(&q->fifo));
    if (f != NULL) {
        cc__runq_sub_owner(q, 1);
        cc__set(&w->core.streak, 0);
    } else {
        f = cc__runq_pick_owner(w);
    }
    cc__bias_leave(&q->bias);
    return f;
}

/* If all workers are busy and one is stuck while fibers wait in its queue, the others steal some of them now and then
 * (NEXT-1). True: stolen. */
static bool help_stuck(struct worker *w, uint64_t now) {
    if (now - w->helped_at < HELP_NS) return false;
    w->helped_at = now;
    bool helped = cc__steal_from_stuck(w);
    cc__steal_remember(w);
    return helped;
}

/* How many of n fibers may enter at the front, with `reserve` left of the credit. */
static uint32_t pay_for_front(struct worker *w, uint32_t n, uint32_t reserve) {
    uint32_t most = w->credit > reserve ? (w->credit - reserve) / FRONT_PRICE : 0, first = n < most ? n : most;
    w->credit -= FRONT_PRICE * first;
    return first;
}

/* Admits fibers whose timers have fired (due) and whose descriptors have events (ready): at the front while the credit
 * lasts, then at the end. */
static void admit(struct worker *w, struct link *due, uint32_t fired, struct link *ready, uint32_t events,
                  uint64_t turns) {
    w->credit = turns < FRONT_CREDIT_MAX - w->credit ? w->credit + (uint32_t)turns : FRONT_CREDIT_MAX;
    uint32_t first = pay_for_front(w, fired, 0);
    if (events != 0) {
        uint64_t turn = cc__get(&w->core.turns);
        uint32_t ahead = turn >= w->events_turn ? pay_for_front(w, events, FRONT_RESERVE) : 0; /* NEXT-2 */
        cc__runq_admit(w, ready, events, ahead);
        w->events_turn = turn + (ahead == events ? events : cc__get(&w->runq.count));
    }
    if (fired != 0) cc__runq_admit(w, due, fired, first);
}

/* Polls every source outside the worker's own queue. True: something was added to that queue. */
static bool poll(struct worker *w) {
    uint64_t now = cc__clock_now(), turns = cc__get(&w->core.turns) - cc__get(&w->polled_turn);
    struct link due, list, ready;
    cc__list_init(&due);
    cc__list_init(&list);
    cc__list_init(&ready);
    uint32_t fired = 0, shared = 0, n = collect(w, now, &due, &fired, &list, &shared);
    uint32_t events = cc__drivers_poll_events(w->core.owner - 1, now, &ready);
    uint32_t fresh = n != 0 ? cc__runq_append(w, &list, n) : 0;
    if (shared != 0) w->received += shared + (fresh < shared ? fresh : shared);
    admit(w, &due, fired, &ready, events, turns);
    n += fired + events;
    if (w->rested && fired != 0 && !cc__worker_is_island(w)) cc__watch_timers_fired(fired);
    if (unlikely(cc__get(&cc__sched.lingers) != 0)) cc__sched_cancel_lingers(now);
    bool helped = cc__get(&cc__sched.count) > 1 && !cc__worker_is_island(w) && help_stuck(w, now);
    adapt(w, now, turns);
    cc__count(w, polls);
    return n != 0 || helped;
}

bool cc__next_poll_for_joiner(struct worker *w) {
    struct runq *q = &w->runq;
    (void)poll(w);
    bool fresh = ++w->joiner_polls % JOINER_FRESH_POLLS == 0;
    cc__bias_enter(&q->bias);
    if (fresh && !cc__list_empty(&q->fresh)) cc__list_push_back(&q->fifo, cc__list_pop_back(&q->fresh));
    bool others = cc__get(&q->slot) != NULL || !cc__list_empty(&q->fifo);
    cc__bias_leave(&q->bias);
    cc__runq_tell(w, 1);
    return others;
}

static struct fiber *found(struct worker *w, struct fiber *f) {
    if (unlikely(w->rested)) cc__idle_left(w);
    return f;
}

struct fiber *cc__next(struct worker *w) {
    struct fiber *f = cc__get(&w->core.pending);
    if (f != NULL) {
        cc__set(&w->core.pending, NULL);
        return f;
    }
    for (;;) {
        if (cc__get(&w->core.turns) >= cc__get(&w->core.poll_at)) {
            (void)poll(w);
            if (unlikely(cc__get(&w->moves.give_back)) && cc__contention_stops(w)) {
                if (!cc__idle(w)) return NULL;
                continue;
            }
            f = pick_oldest(w);
            cc__runq_tell(w, 0);
        } else {
            f = pick(w);
        }
        if (f != NULL) return found(w, f);
        if (poll(w) || (!cc__worker_is_island(w) && cc__steal(w))) {
            if (cc__get(&w->runq.count) > 1) cc__runq_tell(w, 1); /* one of them is for this worker */
            continue;
        }
        if (cc__worker_is_island(w) ? !cc__island_idle(w) : !cc__idle(w)) return NULL;
    }
}
