/* tail.c - how long does a woken fiber wait when its waker continues to compute? The parameter N: after one send in N
 * the sender computes for 3 ms before it waits; after the others it waits at once.
 *
 * The sender sends the time, then receives an answer; the receiver notes how long ago the value was sent, and answers.
 * Two CPUs are enough for both, so whatever a long send's receiver waits is what the scheduler adds: its worker is
 * busy, another one sleeps. What is printed are percentiles of all sends, and of the long ones alone (long_). */
#include "samples.h"

enum { LONG_NS = 3000000, LONG_SENDS = 400 };

static struct {
    uint64_t one_in, calls;
    struct samples all, slow;
    CCChan *there, *back;
} work;

static void compute(uint64_t until) {
    while (cc_now_ns() < until) {
    }
}

static void *receive(void *arg) {
    uint64_t sent, slow = 0;
    for (uint64_t i = 0; i < work.calls; i++) {
        bench_check(cc_chan_recv(work.there, &sent, sizeof sent), "cc_chan_recv");
        uint64_t ns = cc_now_ns() - sent;
        samples_put(&work.all, i, ns);
        if ((i + 1) % work.one_in == 0) samples_put(&work.slow, slow++, ns);
        bench_check(cc_chan_send(work.back, &sent, sizeof sent), "cc_chan_send");
    }
    if (slow != work.slow.count) bench_fail("%llu long sends were counted", (unsigned long long)slow);
    return arg;
}

static void *run(void *arg) {
    CCTask receiver;
    uint64_t sent, answer;
    bench_check(cc_spawn(&receiver, receive, NULL, NULL), "cc_spawn");
    for (uint64_t i = 0; i < work.calls; i++) {
        sent = cc_now_ns();
        bench_check(cc_chan_send(work.there, &sent, sizeof sent), "cc_chan_send");
        if ((i + 1) % work.one_in == 0) compute(sent + LONG_NS);
        bench_check(cc_chan_recv(work.back, &answer, sizeof answer), "cc_chan_recv");
        if (answer != sent) bench_fail("an answer to another send");
    }
    bench_check(cc_task_join(&receiver, NULL), "cc_task_join");
    return arg;
}

int main(int argc, char **argv) {
    struct bench b = bench_begin(argc, argv, "tail");
    work.one_in = bench_parameter(&b, 100);
    if (work.one_in == 0) bench_fail("one send in 0 cannot be long");
    uint64_t slow = bench_scaled(&b, LONG_SENDS);
    work.calls = slow * work.one_in;
    work.all = samples_create(work.calls);
    work.slow = samples_create(slow);
    work.there = cc_chan_create(sizeof(uint64_t), 1);
    work.back = cc_chan_create(sizeof(uint64_t), 1);
    if (work.there == NULL || work.back == NULL) bench_fail("no channel");
    bench_run(run, NULL);
    cc_chan_free(work.there);
    cc_chan_free(work.back);
    char extras[512] = "";
    double sum = 0;
    for (uint64_t i = 0; i < work.all.count; i++) sum += work.all.ns[i];
    samples_print(&work.all, "", extras, sizeof extras);
    samples_print(&work.slow, "long_", extras, sizeof extras);
    return bench_end(&b, work.all.count, sum, extras);
}
