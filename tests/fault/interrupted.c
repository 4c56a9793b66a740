/* interrupted.c - every futex wait of a thread is interrupted, or every second one: no wait ends early, no wake is
 * lost.
 *
 * Only waits are interrupted. A wake cannot fail, and skipping one would be a lost wake: a tool that fails all futex
 * calls would prove nothing here.
 */
#include "fail.h"
#include "harness.h"

#include "../battery/battery.h"

/* All of them that the arming allows: from the n-th on, or every second. */
static void interrupt(bool all) {
    fail_arm(1, FAIL_CALL, true);
    atomic_store(&fail.skip, all ? 0 : 1);
}

struct traffic {
    CCChan *ch;
    long values;
};

static void *produce(void *arg) {
    struct traffic *t = arg;
    for (long i = 0; i < t->values; i++) {
        uint64_t value = (uint64_t)i;
        CHECK_EQ(cc_chan_send(t->ch, &value, sizeof value), 0);
    }
    return NULL;
}

static void *consume(void *arg) {
    struct traffic *t = arg;
    for (long i = 0; i < t->values; i++) {
        uint64_t value;
        CHECK_EQ(cc_chan_recv(t->ch, &value, sizeof value), 0);
        CHECK_EQ(value, i);
    }
    return NULL;
}

/* A deadline passes, on a fiber and on a thread: not early. */
static void *wait_until_later(void *arg) {
    uint64_t value;
    for (int i = 0; i < 5; i++) {
        CCDeadline deadline = cc_after_ns(300000);
        CHECK_EQ(cc_sleep_until(deadline), 0);
        CHECK(cc_now_ns() >= deadline.ns);
        deadline = cc_after_ns(300000);
        CHECK_EQ(cc_chan_recv_until(arg, &value, sizeof value, deadline), ETIMEDOUT);
        CHECK(cc_now_ns() >= deadline.ns);
    }
    return NULL;
}

static void *give_back(void *arg) {
    return arg;
}

/* If all waits are interrupted nobody sleeps, and waiting threads compete with working ones for the CPU. */
static void traffic_of_all_kinds(bool all) {
    fail_needs_all();
    interrupt(all);
    for (int kind = FIBERS; kind < KINDS; kind++) {
        for (size_t capacity = 0; capacity < 3; capacity++) {
            struct traffic t = {new_chan(sizeof(uint64_t), capacity),
                                all ? test_rounds(20, 500) : test_rounds(300, 30000)};
            struct party parties[4];
            parties[0] = party_start(kind, 0, produce, &t);
            parties[1] = party_start(kind, 1, consume, &t);
            parties_end(parties, 2);
            for (int i = 0; i < 2; i++) parties[i] = party_start(kind, i, wait_until_later, t.ch);
            parties_end(parties, 2);
            cc_chan_free(t.ch);
        }
        /* Sleeping workers are notified of a spawn. */
        for (int i = 0; i < 20; i++) CHECK_EQ(cc_run(give_back, NULL, NULL), 0);
        CHECK_EQ(cc_runtime_shutdown(UINT64_MAX), 0);
    }
    CHECK(fail_disarm() > 0);
}

TEST(every_sleep, .timeout = 120) {
    traffic_of_all_kinds(true);
}

TEST_WORKERS(every_second_sleep, .timeout = 120) {
    traffic_of_all_kinds(false);
}
