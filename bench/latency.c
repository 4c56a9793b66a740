/* latency.c - how long after a send does the receiver run, when other fibers compete for the CPUs? The parameter is the
 * number of busy fibers: each computes for some 2 µs, yields, and begins again.
 *
 * Eight callers sleep for half a millisecond, and send the time to a receiver that waits for it on a channel of
 * capacity 1. What is printed are percentiles, of the time from the send to the receiver's turn, and of the time by
 * which the caller's sleep was too long (late_). */
#include "samples.h"

#include <stdatomic.h>

enum { CALLERS = 8 };

static struct {
    uint64_t busy, calls;
    struct samples wake, late;
    atomic_bool over;
    _Atomic uint64_t turns;
} work;

struct line {
    CCChan *ch;
    uint64_t place;
    CCTask caller, receiver;
};

static void *busy(void *arg) {
    uint64_t x = 1, turns = 0;
    for (; !atomic_load_explicit(&work.over, memory_order_relaxed); turns++) {
        for (int i = 0; i < 1500; i++) x = x * UINT64_C(6364136223846793005) + 1;
        cc_yield();
    }
    atomic_fetch_add(&work.turns, turns + (x == 0));
    return arg;
}

static void *call(void *arg) {
    struct line *line = arg;
    for (uint64_t i = 0; i < work.calls; i++) {
        uint64_t until = cc_now_ns() + 500000 + line->place * 10000;
        bench_check(cc_sleep_until((CCDeadline){until}), "cc_sleep_until");
        uint64_t now = cc_now_ns();
        samples_put(&work.late, line->place * work.calls + i, now - until);
        bench_check(cc_chan_send(line->ch, &now, sizeof now), "cc_chan_send");
    }
    return NULL;
}

static void *receive(void *arg) {
    struct line *line = arg;
    uint64_t sent;
    for (uint64_t i = 0; i < work.calls; i++) {
        bench_check(cc_chan_recv(line->ch, &sent, sizeof sent), "cc_chan_recv");
        samples_put(&work.wake, line->place * work.calls + i, cc_now_ns() - sent);
    }
    return NULL;
}

static void *run(void *arg) {
    CCTask *tasks = arg;
    struct line lines[CALLERS];
    for (uint64_t i = 0; i < work.busy; i++) bench_check(cc_spawn(&tasks[i], busy, NULL, NULL), "cc_spawn");
    for (uint64_t i = 0; i < CALLERS; i++) {
        lines[i] = (struct line){.ch = cc_chan_create(sizeof(uint64_t), 1), .place = i};
        if (lines[i].ch == NULL) bench_fail("no channel");
        bench_check(cc_spawn(&lines[i].receiver, receive, &lines[i], NULL), "cc_spawn");
        bench_check(cc_spawn(&lines[i].caller, call, &lines[i], NULL), "cc_spawn");
    }
    bench_check(cc_sleep_ms(1), "cc_sleep_ms");
    for (uint64_t i = 0; i < CALLERS; i++) {
        bench_check(cc_task_join(&lines[i].caller, NULL), "cc_task_join");
        bench_check(cc_task_join(&lines[i].receiver, NULL), "cc_task_join");
        cc_chan_free(lines[i].ch);
    }
    atomic_store(&work.over, true);
    for (uint64_t i = 0; i < work.busy; i++) bench_check(cc_task_join(&tasks[i], NULL), "cc_task_join");
    return NULL;
}

int main(int argc, char **argv) {
    struct bench b = bench_begin(argc, argv, "latency");
    work.busy = bench_parameter(&b, 16);
    work.calls = bench_scaled(&b, 2000);
    work.wake = samples_create(CALLERS * work.calls);
    work.late = samples_create(CALLERS * work.calls);
    CCTask *tasks = bench_alloc(work.busy + 1, sizeof *tasks);
    bench_run(run, tasks);
    free(tasks);
    if (work.busy > 0 && work.turns == 0) bench_fail("the busy fibers never ran");
    char extras[512] = "";
    double sum = 0;
    for (uint64_t i = 0; i < work.wake.count; i++) sum += work.wake.ns[i];
    samples_print(&work.wake, "", extras, sizeof extras);
    samples_print(&work.late, "late_", extras, sizeof extras);
    return bench_end(&b, work.wake.count, sum, extras);
}
