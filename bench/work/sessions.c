/* sessions.c - 100,000 sessions, each waits for a message or its heartbeat of 10 s; two messages for each, at random;
 * then all are cancelled. One operation: a session; also prints the memory of one. */
#include "work.h"

static struct {
    CCChan **inbox;
    uint64_t count;
    _Atomic uint64_t received, cancelled;
    CCWaitGroup started;
} work;

CC_TASK(session, { uint64_t place; }) {
    cc_wait_group_done(&work.started);
    for (;;) {
        uint64_t value;
        int error = cc_chan_recv_until(work.inbox[self->place], &value, sizeof value, cc_after_ms(10000));
        if (error == ECANCELED) break;
        bench_check(error, "cc_chan_recv_until");
        atomic_fetch_add_explicit(&work.received, 1, memory_order_relaxed);
    }
    atomic_fetch_add_explicit(&work.cancelled, 1, memory_order_relaxed);
    return NULL;
}

static uint64_t memory(void) {
    return bench_status("VmRSS") + bench_status("VmPTE");
}

static void *run(void *arg) {
    struct work *w = arg;
    uint64_t before = memory(), seed = 1;
    CC_NURSERY(n) {
        cc_wait_group_add(&work.started, (int32_t)work.count);
        for (uint64_t i = 0; i < work.count; i++) bench_check(CC_GO_IN(n, session, .place = i), "CC_GO_IN");
        bench_check(cc_wait_group_wait(&work.started), "cc_wait_group_wait");
        for (uint64_t i = 0; i < 2 * work.count; i++) {
            CCChan *to = work.inbox[(i + work_random(&seed)) % work.count];
            bench_check(cc_chan_send(to, &i, sizeof i), "cc_chan_send");
        }
        while (work.received < 2 * work.count) cc_yield();
        snprintf(w->extras, sizeof w->extras, "bytes=%.0f", (double)(memory() - before) / (double)work.count);
        bench_check(cc_nursery_cancel(n), "cc_nursery_cancel");
    }
    return NULL;
}

int main(int argc, char **argv) {
    struct work w = work_begin(argc, argv, "sessions");
    work.count = bench_scaled(&w.bench, 100000);
    work.inbox = bench_alloc(work.count, sizeof *work.inbox);
    for (uint64_t i = 0; i < work.count; i++) work.inbox[i] = work_chan(sizeof(uint64_t), 1);
    work_run(&w, run, &w);
    if (work.cancelled != work.count) bench_fail("%llu sessions were cancelled", (unsigned long long)work.cancelled);
    for (uint64_t i = 0; i < work.count; i++) cc_chan_free(work.inbox[i]);
    free(work.inbox);
    return work_end(&w, work.count);
}
