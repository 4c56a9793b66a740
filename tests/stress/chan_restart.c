/* chan_restart.c - an OS thread that has just woken the runtime's last fiber may still be inside the call while the
 * runtime stops. */
#include "../battery/battery.h"

struct pulse {
    CCChan *to_fiber, *to_thread;
    long rounds;
};

/* Wakes a fiber in each round, without using the runtime otherwise. */
static void *beat(void *arg) {
    struct pulse *p = arg;
    for (long i = 0; i < p->rounds; i++) {
        uint64_t value = (uint64_t)i, back = 0;
        if (i % 2) {
            CHECK_EQ(cc_chan_send(p->to_fiber, &value, 8), 0);
        } else {
            CCCase cases[] = {CC_SEND(p->to_fiber, &value, NULL)};
            size_t chosen;
            CHECK_EQ(cc_select(cases, 1, CC_FOREVER, &chosen), 0);
            CHECK_EQ(cases[0].error, 0);
        }
        CHECK_EQ(cc_chan_recv(p->to_thread, &back, 8), 0);
        CHECK_EQ(back, value);
    }
    return NULL;
}

static void *answer(void *arg) {
    struct pulse *p = arg;
    uint64_t value;
    CHECK_EQ(cc_chan_recv(p->to_fiber, &value, 8), 0);
    CHECK_EQ(cc_chan_send(p->to_thread, &value, 8), 0);
    return NULL;
}

/* The fiber is the only one; as soon as it has ended, the runtime is shut down, and started again. */
TEST_WORKERS(the_last_fiber, .timeout = 120) {
    struct pulse p = {new_chan(8, 0), new_chan(8, 1), test_rounds(300, 20000)};
    struct party thread = party_start(THREADS, 0, beat, &p);
    for (long i = 0; i < p.rounds; i++) {
        CHECK_EQ(cc_spawn(NULL, answer, &p, NULL), 0);
        CHECK_EQ(cc_runtime_shutdown(60 * 1000), 0);
    }
    party_end(&thread);
    check_clean(p.to_fiber);
    check_clean(p.to_thread);
    cc_chan_free(p.to_fiber);
    cc_chan_free(p.to_thread);
}

/* Threads talk to each other over channels while runtimes come and go. */
static void *talk(void *arg) {
    struct pulse *p = arg;
    uint64_t value;
    for (long i = 0; i < p->rounds; i++) {
        CHECK_EQ(cc_chan_send_until(p->to_fiber, &i, 8, CC_FOREVER), 0);
        CHECK_EQ(cc_chan_recv(p->to_thread, &value, 8), 0);
        CHECK_EQ(value, i);
    }
    CHECK_EQ(cc_chan_close(p->to_fiber), 0);
    return NULL;
}

static void *echo(void *arg) {
    struct pulse *p = arg;
    uint64_t value;
    while (cc_chan_recv(p->to_fiber, &value, 8) == 0) CHECK_EQ(cc_chan_send(p->to_thread, &value, 8), 0);
    return NULL;
}

static void *nothing(void *arg) {
    return arg;
}

TEST_WORKERS(threads_alone) {
    struct pulse p = {new_chan(8, 0), new_chan(8, 0), test_rounds(2000, 100000)};
    struct party parties[2] = {party_start(THREADS, 0, talk, &p), party_start(THREADS, 1, echo, &p)};
    for (long i = 0; i < test_rounds(50, 1000); i++) {
        CHECK_EQ(cc_run(nothing, NULL, NULL), 0);
        CHECK_EQ(cc_runtime_shutdown(UINT64_MAX), 0);
    }
    parties_end(parties, 2);
    cc_chan_free(p.to_fiber);
    cc_chan_free(p.to_thread);
}
