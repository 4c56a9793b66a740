/* chan_bias.c - channels biased to a worker, off the fast path: a canceller, values of another size, a thief.
 */
#include "chan/chan.h"
#include "explore.h"
#include "sched/policy.h"

#include <ccc/ccc.h>
#include <errno.h>

struct pair {
    uint64_t one, two;
};

static CCChan *ch, *second, *large;
static CCTask task, other, sender;
static CCEvent go;
static uint64_t got;
static struct pair pair, pair_too;
static int rc[4], counts[2];

static void spawn(CCTask *t, CCTaskFn fn, void *arg) {
    EX_EQ(cc_spawn(t, fn, arg, NULL), 0);
}
static void join(CCTask *t) {
    EX_EQ(cc_task_join(t, NULL), 0);
}
/* Empty, and biased to the caller's worker. */
static void make_biased(CCChan *c, void *value, size_t size) {
    for (int i = 0; i < 80; i++) rc[1] = cc_chan_send_try(c, value, size);
    EX_EQ(cc_chan_recv(c, value, size), 0);
    EX_CHECK(cc__get(&c->bias) != 0);
}

/* ---- a store against a canceller ---- */

static void *receives_biased(void *arg) {
    uint64_t value = 100;
    make_biased(ch, &value, sizeof value);
    rc[3] = cc_chan_recv(ch, arg, sizeof(uint64_t));
    return NULL;
}
static void *sends_biased(void *arg) {
    uint64_t value = 1;
    EX_EQ(cc_event_wait(&go), 0);
    EX_EQ(cc_chan_send(ch, &value, sizeof value), 0);
    return arg;
}
static void receiver_biased(void) {
    ch = cc_chan_create(sizeof(uint64_t), 1);
    spawn(&task, receives_biased, &got);
    EX_EQ(cc_task_dup(&task, &other), 0);
    ex_settle();
    spawn(&sender, sends_biased, NULL);
    ex_settle();
    EX_CHECK(cc__get(&ch->bias) != 0);
}
static void lets_send(void) {
    EX_EQ(cc_event_set(&go), 0);
    join(&sender);
    join(&task);
}
static void cancels(void) {
    EX_EQ(cc_task_cancel(&other), 0);
    EX_EQ(cc_task_detach(&other), 0);
}
static void received_or_left(void) {
    EX_CHECK(rc[3] == 0 || rc[3] == ECANCELED);
    EX_EQ(got, rc[3] == 0 ? 1 : 0);
    EX_EQ(cc_chan_len(ch), rc[3] == 0 ? 0 : 1);
}
SCENARIO(chan_bias_hand_cancel, "CLAIM-1, biased channel: a fiber hands over while a thread cancels", .workers = 1,
         .setup = receiver_biased, .threads = {lets_send, cancels}, .check = received_or_left, .no_timer = true);

/* ---- values that do not fit into a register ---- */

static void *sends_and_takes_back(void *arg) {
    struct pair value = {100, 100};
    make_biased(large, &value, sizeof value);
    EX_EQ(cc_event_wait(&go), 0);
    value = (struct pair){1, 2};
    EX_EQ(cc_chan_send(large, &value, sizeof value), 0);
    rc[0] = cc_chan_recv_try(large, &pair, sizeof pair);
    return arg;
}
static void large_biased(void) {
    large = cc_chan_create(sizeof(struct pair), 1);
    spawn(&task, sends_and_takes_back, NULL);
    ex_settle();
    EX_CHECK(cc__get(&large->bias) != 0);
}
static void calls_worker(void) {
    EX_EQ(cc_event_set(&go), 0);
    join(&task);
}
static void revokes(void) {
    rc[2] = cc_chan_recv_try(large, &pair_too, sizeof pair_too);
}
static void one_got_both(void) {
    EX_EQ((rc[0] == 0) + (rc[2] == 0), 1);
    EX_EQ(pair.one + pair_too.one, 1);
    EX_EQ(pair.two + pair_too.two, 2);
}
SCENARIO(chan_bias_revoke_large, "CHANBIAS-1: large values, the worker with the bias and a thread that revokes it",
         .workers = 1, .setup = large_biased, .threads = {calls_worker, revokes}, .check = one_got_both,
         .no_timer = true);

/* ---- a select that begins while one of its channels loses its bias ---- */

static void *selects_on_signal(void *arg) {
    uint64_t value = 100;
    size_t chosen;
    make_biased(ch, &value, sizeof value);
    make_biased(second, &value, sizeof value);
    EX_EQ(cc_event_wait(&go), 0);
    CCCase cases[] = {CC_RECV(ch, &got, NULL), CC_RECV(second, &got, NULL)};
    EX_EQ(cc_select(cases, 2, CC_FOREVER, &chosen), 0);
    EX_EQ(chosen, 0);
    return arg;
}
static void about_to_select(void) {
    ch = cc_chan_create(sizeof(uint64_t), 1);
    second = cc_chan_create(sizeof(uint64_t), 1);
    spawn(&task, selects_on_signal, NULL);
    ex_settle();
    EX_CHECK(cc__get(&ch->bias) != 0 && cc__get(&second->bias) != 0);
}
static void sends_from_outside(void) {
    uint64_t value = 1;
    EX_EQ(cc_chan_send(ch, &value, sizeof value), 0);
}
static void was_got(void) {
    EX_EQ(got, 1);
}
SCENARIO(chan_bias_select_begins, "CHANBIAS-4: a biased select begins while a thread revokes", .workers = 1,
         .setup = about_to_select, .threads = {calls_worker, sends_from_outside}, .check = was_got, .no_timer = true);

/* ---- a revocation while the runtime stops ----
 *
 * A thread's select with a join keeps the runtime up, and may wait for the lock of a channel. The thread that holds
 * that lock revokes the channel, for which it has to enter the runtime. The shutdown waits for the first of them. */

static void *makes_biased_and_ends(void *arg) {
    uint64_t value = 100;
    make_biased(ch, &value, sizeof value);
    EX_EQ(cc_event_wait(&go), 0);
    return arg;
}
static void biased_and_task(void) {
    ch = cc_chan_create(sizeof(uint64_t), 1);
    spawn(&task, makes_biased_and_ends, NULL);
    ex_settle();
    EX_CHECK(cc__get(&ch->bias) != 0);
}
static void selects_join(void) {
    size_t chosen;
    uint64_t value;
    CCCase cases[] = {CC_JOIN(&task, NULL, NULL), CC_RECV(ch, &value, NULL)};
    EX_EQ(cc_select(cases, 2, CC_FOREVER, &chosen), 0);
}
static void ends_task_and_revokes(void) {
    uint64_t value = 1;
    EX_EQ(cc_event_set(&go), 0);
    EX_EQ(cc_chan_send_try(ch, &value, sizeof value), 0);
}
static void stops_runtime(void) {
    EX_EQ(cc_runtime_shutdown(UINT64_MAX), 0);
}
SCENARIO(chan_bias_revoke_stop, "RT-5: a revocation, a select with a join, and a shutdown", .workers = 1,
         .setup = biased_and_task, .threads = {selects_join, ends_task_and_revokes, stops_runtime});

/* ---- a thief at the queue into which a hand-over puts ---- */

static void *counts_one(void *arg) {
    ++*(int *)arg;
    return arg;
}
static void *receives(void *arg) {
    rc[3] = cc_chan_recv(ch, arg, sizeof(uint64_t));
    return NULL;
}
static void *spawns_and_sends(void *arg) {
    CCTask child[2];
    uint64_t value = 100;
    make_biased(ch, &value, sizeof value);
    spawn(&task, receives, &got);
    cc_yield(); /* it parks here, biased channel */
    EX_EQ(cc_event_wait(&go), 0);
    for (int i = 0; i < 2; i++) spawn(&child[i], counts_one, &counts[i]);
    ex_nap(STUCK_NS); /* long enough to be taken for stuck */
    value = 1;
    EX_EQ(cc_chan_send(ch, &value, sizeof value), 0);
    for (int i = 0; i < 2; i++) join(&child[i]);
    return arg;
}
static void biased_and_idle_worker(void) {
    ch = cc_chan_create(sizeof(uint64_t), 1);
    spawn(&sender, spawns_and_sends, NULL);
    ex_settle();
    EX_CHECK(cc__get(&ch->bias) != 0);
}
static void lets_spawn(void) {
    EX_EQ(cc_event_set(&go), 0);
    join(&sender);
    join(&task);
    EX_EQ(got, 1);
    EX_EQ(counts[0] + counts[1], 2);
}
/* RUNQ-3: a count that two have written at once would not be. */
static void queues_are_empty(void) {
    for (unsigned i = 0; i < 2; i++) EX_EQ(cc__get(&cc__sched.workers[i].runq.count), 0);
}
SCENARIO(chan_bias_stolen, "BIAS-1, biased channel: a fiber hands over while a thief takes from its worker",
         .workers = 2, .setup = biased_and_idle_worker, .threads = {lets_spawn}, .check = queues_are_empty);
