/* signal.c - subscriptions to signals, and the thread that delivers them.
 *
 *   handler --pipe--> thread --cc_chan_send_try--> every channel that is subscribed
 *                            --cc_nursery_cancel--> every nursery that is
 *
 * NOTIFY-1  `lock` guards the subscriptions and the actions of signals: a signal is caught exactly while it has a
 *           subscription.
 * NOTIFY-2  The thread sends without the lock, to one channel or nursery at a time, which `sending` names meanwhile. A
 *           caller that ends a subscription takes it off the list under the lock, then waits until `sending` has
 *           another value: nothing is sent there afterwards. The wait is short, because the thread never waits for room
 *           in a channel.
 *           A caller that withdraws signals from subscriptions waits until the send of that moment is over.
 * NOTIFY-3  A caller that starts or ends the thread, which runs while there are subscriptions, holds `change`. The
 *           thread itself never takes it.
 * NOTIFY-4  A subscription is for signals that come after it. A signal carries the stamp of the moment when it came
 *           (its handler ran): it may stay in the pipe until its subscriptions have ended, and others have begun.
 */
#include "signal/signal.h"

#include "base/fatal.h"
#include "base/mem.h"
#include "os/signals.h"
#include "os/thread.h"
#include "sim/sim.h"
#include "sync/backoff.h"
#include "sync/lock.h"

#include "chan/chan.h"

#include <ccc/cc_nursery.h>
#include <ccc/cc_signal.h>
#include <errno.h>
#include <stdio.h>

enum { SIGNALS = 64 };

struct subscription {
    struct subscription *next;
    uint64_t number;             /* increasing: where the thread continues after a send */
    uint64_t wanted;             /* BIT of each signal */
    uint64_t since[SIGNALS + 1]; /* the stamp of the first that is for it, of each signal; NOTIFY-4 */
    void *target;                /* a channel, with a reference; or a nursery, whose exit ends the subscription */
    bool cancels;                /* a nursery */
};

static struct {
    pthread_mutex_t change;
    struct lock lock;
    struct subscription *first; /* by number */
    uint64_t last_number;       /* of a subscription, or of an addition to one; also the stamp */
    uint64_t ignored;
    pthread_t thread;
    bool runs;
    _Atomic int32_t tid;
    void *_Atomic sending;
    _Atomic uint64_t dropped[SIGNALS + 1];
} signals = {.change = PTHREAD_MUTEX_INITIALIZER};

#define BIT(number) (UINT64_C(1) << ((number)-1))

/* ---- subscriptions and actions; under the lock ---- */

static uint64_t wanted_locked(void) {
    uint64_t all = 0;
    for (const struct subscription *s = signals.first; s != NULL; s = s->next) all |= s->wanted;
    return all;
}

/* NOTIFY-1. Sets all actions; returns the first error. */
static int settle_locked(uint64_t which) {
    uint64_t wanted = wanted_locked();
    int error = 0;
    for (int number = 1; number <= SIGNALS; number++) {
        if (!(which & BIT(number))) continue;
        int rc = cc__signal_action_set(number, wanted & BIT(number)            ? SIGNAL_CAUGHT
                                               : signals.ignored & BIT(number) ? SIGNAL_IGNORED
                                                                               : SIGNAL_BEFORE);
        if (error == 0) error = rc;
    }
    return error;
}

/* The link that points to it; points to NULL: the end of the list. */
static struct subscription **find_locked(const void *target) {
    struct subscription **at = &signals.first;
    while (*at != NULL && (*at)->target != target) at = &(*at)->next;
    return at;
}

/* Takes the subscription off the list and updates the actions; NULL: there is none. */
static struct subscription *take_locked(const void *target) {
    struct subscription **at = find_locked(target), *s = *at;
    if (s == NULL) return NULL;
    *at = s->next;
    (void)settle_locked(s->wanted);
    return s;
}

/* Removes the signals from all subscriptions. Returns those without signals, taken off the list. */
static struct subscription *withdraw_locked(uint64_t which) {
    struct subscription *over = NULL;
    for (struct subscription **at = &signals.first, *s; (s = *at) != NULL;) {
        s->wanted &= ~which;
        if (s->wanted != 0) {
            at = &s->next;
            continue;
        }
        *at = s->next;
        s->next = over;
        over = s;
    }
    return over;
}

/* ---- the thread ---- */

static void give_up(struct subscription *s) {
    if (!s->cancels) cc_chan_free(s->target);
    cc__mem_free(s);
}

/* A channel, with a reference, or a nursery; NULL: there is none beyond *number. */
static void *next_target(const struct signal_seen *seen, uint64_t *number, bool *cancels) {
    int signal = seen->number;
    void *target = NULL;
    cc__lock_take(&signals.lock);
    const struct subscription *s = signals.first;
    while (s != NULL && (s->number <= *number || !(s->wanted & BIT(signal)) || s->since[signal] > seen->stamp))
        s = s->next;
    if (s != NULL) {
        *number = s->number;
        *cancels = s->cancels;
        target = s->cancels ? s->target : cc_chan_ref(s->target);
    }
    cc__set(&signals.sending, target); /* NOTIFY-2 */
    cc__lock_release(&signals.lock);
    return target;
}

static void is_sent(void) {
    cc__set_release(&signals.sending, NULL); /* pairs with await_sent */
}

static void end_closed(const CCChan *ch) {
    cc__lock_take(&signals.lock);
    struct subscription *s = take_locked(ch);
    cc__lock_release(&signals.lock);
    if (s != NULL) give_up(s);
}

static void send_to(CCChan *ch, const struct signal_seen *seen) {
    CCSignal signal = {
        .number = seen->number, .code = seen->code, .pid = seen->pid, .uid = seen->uid, .value = seen->value};
    int rc = cc_chan_send_try(ch, &signal, sizeof signal);
    is_sent();
    if (rc == EAGAIN) (void)cc__add(&signals.dropped[seen->number], 1);
    if (rc != 0 && rc != EAGAIN) end_closed(ch);
    cc_chan_free(ch);
}

static void cancel(CCNursery *nursery, int signal) {
    char text[32];
    snprintf(text, sizeof text, "signal %d", signal);
    (void)cc_nursery_cancel_with(nursery, EINTR, text);
    is_sent();
}

static void send_to_all(const struct signal_seen *seen) {
    uint64_t number = 0;
    bool cancels = false;
    for (void *target; (target = next_target(seen, &number, &cancels)) != NULL;)
        if (cancels)
            cancel(target, seen->number);
        else
            send_to(target, seen);
}

static void *run(void *arg) {
    cc__thread_name("ccc/signal");
    cc__set(&signals.tid, cc__thread_id());
    for (;;) {
        struct signal_seen seen;
        cc__signal_pipe_read(&seen);
        if (seen.number == 0) break;
        send_to_all(&seen);
    }
    cc__set(&signals.tid, 0);
    return arg;
}

/* NOTIFY-3: the caller of these two holds `change`. */
static int start_thread(void) {
    if (signals.runs) return 0;
    int error = cc__signal_pipe_open();
    if (error == 0) error = cc__thread_start_deaf(&signals.thread, run, NULL);
    signals.runs = error == 0;
    return error;
}

static void end_thread_if_idle(void) {
    cc__lock_take(&signals.lock);
    bool idle = signals.first == NULL;
    cc__lock_release(&signals.lock);
    if (!idle || !signals.runs) return;
    cc__signal_pipe_end();
    cc__thread_join(signals.thread);
    signals.runs = false;
}

static void await_sent(const void *target) { /* NOTIFY-2 */
    for (struct backoff backoff = {0}; cc__get_acquire(&signals.sending) == target;) cc__backoff(&backoff);
}

int cc__signal_thread(void) {
    return cc__get(&signals.tid);
}

void cc__signal_forget(void) {
    cc__signal_pipe_forget();
    signals.change = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    signals.lock = (struct lock){0};
    for (struct subscription *s = signals.first, *next; s != NULL; s = next) {
        next = s->next;
        cc__mem_free(s); /* not its channel, whose lock may be held forever here */
    }
    signals.first = NULL;
    signals.runs = false;
    signals.ignored = 0;
    cc__set(&signals.tid, 0);
    cc__set(&signals.sending, NULL);
}

/* ---- the calls ---- */

static void end_change(void) {
    end_thread_if_idle();
    pthread_mutex_unlock(&signals.change);
}

bool cc__signal_unusable(int number) {
    switch (number) {
    case SIGKILL:
    case SIGSTOP:
    case SIGSEGV:
    case SIGBUS:
    case SIGFPE:
    case SIGILL:
    case SIGTRAP:
    case SIGSYS:
    case SIGABRT:
        return true;
    default:
        return number < 1 || number > SIGNALS || (number >= 32 && number < SIGRTMIN);
    }
}

static int read_set(const int *numbers, size_t count, uint64_t *set) {
    if (numbers == NULL || count == 0 || count > SIGNALS) return EINVAL;
    *set = 0;
    for (size_t i = 0; i < count; i++) {
        if (cc__signal_unusable(numbers[i])) return EINVAL;
        *set |= BIT(numbers[i]);
    }
    if (cc__sim_seed() != 0) return ENOTSUP;
    if (*set & BIT(SIGURG)) return EBUSY;
    int dump = cc__dump_signal();
    return dump != 0 && (*set & BIT(dump)) ? EBUSY : 0;
}

static int add(const struct subscription *wish, struct subscription *fresh) {
    uint64_t set = wish->wanted;
    cc__lock_take(&signals.lock);
    struct subscription **at = find_locked(wish->target);
    bool added = *at == NULL;
    cc__signal_pipe_stamp(++signals.last_number);
    if (added) {
        *fresh = (struct subscription){.target = wish->target, .cancels = wish->cancels, .number = signals.last_number};
        *at = fresh;
        if (!wish->cancels) (void)cc_chan_ref(wish->target);
    }
    uint64_t before = (*at)->wanted;
    (*at)->wanted |= set;
    for (int number = 1; number <= SIGNALS; number++)
        if (set & ~before & BIT(number)) (*at)->since[number] = signals.last_number; /* NOTIFY-4 */
    int error = settle_locked(set & ~before);
    if (error != 0) {
        (*at)->wanted = before;
        if (added) *at = NULL;
        (void)settle_locked(set & ~before);
    }
    cc__lock_release(&signals.lock);
    if (error != 0 && added)
        give_up(fresh);
    else if (!added)
        cc__mem_free(fresh);
    return error;
}

static int subscribe(const struct subscription *wish) {
    struct subscription *fresh = cc__mem_alloc_small(sizeof *fresh);
    if (fresh == NULL) return ENOMEM;
    pthread_mutex_lock(&signals.change);
    int error = start_thread();
    if (error == 0)
        error = add(wish, fresh);
    else
        cc__mem_free(fresh);
    end_change();
    return error;
}

static int unsubscribe(void *target) {
    pthread_mutex_lock(&signals.change);
    cc__lock_take(&signals.lock);
    struct subscription *s = take_locked(target);
    cc__lock_release(&signals.lock);
    await_sent(target);
    end_change();
    if (s == NULL) return ESRCH;
    give_up(s);
    return 0;
}

int cc_signal_notify(CCChan *ch, const int *numbers, size_t count) {
    uint64_t set;
    int error = ch == NULL || ch->size != sizeof(CCSignal) || ch->pool || ch->ordered ? EINVAL : 0;
    if (error == 0) error = read_set(numbers, count, &set);
    return error != 0 ? error : subscribe(&(struct subscription){.target = ch, .wanted = set});
}

int cc_signal_stop(CCChan *ch) {
    return ch != NULL ? unsubscribe(ch) : EINVAL;
}

/* Called by the nursery at its exit. */
static void stop_cancelling(void *nursery) {
    (void)unsubscribe(nursery);
}

int cc_signal_cancel(CCNursery *nursery, const int *numbers, size_t count) {
    uint64_t set;
    int error = nursery == NULL ? EINVAL : read_set(numbers, count, &set);
    if (error == 0) error = cc_nursery_at_exit(nursery, stop_cancelling, nursery);
    return error != 0 ? error : subscribe(&(struct subscription){.target = nursery, .wanted = set, .cancels = true});
}

static int set_ignored(uint64_t set, bool ignored) {
    pthread_mutex_lock(&signals.change);
    cc__lock_take(&signals.lock);
    struct subscription *over = withdraw_locked(set);
    signals.ignored = ignored ? signals.ignored | set : signals.ignored & ~set;
    int error = settle_locked(set);
    const void *busy = cc__get(&signals.sending);
    cc__lock_release(&signals.lock);
    if (busy != NULL) await_sent(busy); /* NOTIFY-2: it may be one of these signals */
    for (struct subscription *s = over, *next; s != NULL; s = next) {
        next = s->next;
        give_up(s);
    }
    end_change();
    return error;
}

int cc_signal_ignore(const int *numbers, size_t count) {
    uint64_t set;
    int error = read_set(numbers, count, &set);
    return error != 0 ? error : set_ignored(set, true);
}

int cc_signal_reset(const int *numbers, size_t count) {
    uint64_t set;
    int error = read_set(numbers, count, &set);
    return error != 0 ? error : set_ignored(set, false);
}

uint64_t cc_signal_dropped(int number) {
    if (number < 1 || number > SIGNALS) return 0;
    return cc__get(&signals.dropped[number]) + cc__signal_pipe_lost(number);
}
