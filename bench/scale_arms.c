/* scale_arms.c - what does each further arm of a select cost? The parameter is the number of arms, each with a
 * rendezvous channel and a producer of its own; one consumer selects.
 */
#include "bench.h"

static struct {
    uint64_t arms, each, ns;
    CCChan *ch[CC_SELECT_MAX];
} work;

static void *produce(void *arg) {
    uint64_t arm = (uint64_t)(uintptr_t)arg;
    for (uint64_t v = arm * work.each; v < (arm + 1) * work.each; v++)
        bench_check(cc_chan_send(work.ch[arm], &v, sizeof v), "cc_chan_send");
    return NULL;
}

static void *consume(void *arg) {
    CCCase cases[CC_SELECT_MAX];
    CCTask tasks[CC_SELECT_MAX];
    uint64_t value = 0, sum = 0, n = work.arms * work.each, start = cc_now_ns();
    for (uint64_t i = 0; i < work.arms; i++) {
        cases[i] = (CCCase)CC_RECV(work.ch[i], &value, NULL);
        tasks[i] = cc_fiber_spawn_task(produce, (void *)(uintptr_t)i);
    }
    for (uint64_t i = 0; i < n; i++) {
        size_t chosen;
        bench_check(cc_select(cases, work.arms, CC_FOREVER, &chosen), "cc_select");
        sum += value;
    }
    work.ns = cc_now_ns() - start;
    for (uint64_t i = 0; i < work.arms; i++) bench_check(cc_task_join(&tasks[i], NULL), "cc_task_join");
    if (sum != n * (n - 1) / 2) bench_fail("the sum of the values is %llu", (unsigned long long)sum);
    return arg;
}

int main(int argc, char **argv) {
    struct bench b = bench_begin(argc, argv, "scale_arms");
    work.arms = bench_parameter(&b, 2);
    if (work.arms < 1 || work.arms > CC_SELECT_MAX) bench_fail("1 to %d arms", CC_SELECT_MAX);
    work.each = (bench_scaled(&b, 1000000) + work.arms - 1) / work.arms;
    for (uint64_t i = 0; i < work.arms; i++)
        if ((work.ch[i] = cc_chan_create(sizeof(uint64_t), 0)) == NULL) bench_fail("no channel");
    bench_run(consume, NULL);
    for (uint64_t i = 0; i < work.arms; i++) cc_chan_free(work.ch[i]);
    return bench_end(&b, work.arms * work.each, (double)work.ns, "");
}
