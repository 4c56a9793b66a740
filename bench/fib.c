/* fib.c - what does fork-join cost when there is nothing else to do?
 *
 * fib(27): every call with n >= 2 starts fib(n - 1) as a task, computes fib(n - 2) itself, and joins. One
 * operation is one task. A result carries the number in its lower half and the count of tasks in its upper
 * half; both add up alike. The scale changes n by the nearest whole step: each step is a factor of 1.6.
 */
#include "bench.h"

#define ONE_SPAWN (UINT64_C(1) << 32)

struct work {
    unsigned n;
    uint64_t result, ns;
};

static void *fib(void *arg) {
    uintptr_t n = (uintptr_t)arg;
    if (n < 2) return arg;
    CCTask task;
    void *left;
    bench_check(cc_spawn(&task, fib, (void *)(n - 1), NULL), "cc_spawn");
    uint64_t right = (uint64_t)(uintptr_t)fib((void *)(n - 2));
    bench_check(cc_task_join(&task, &left), "cc_task_join");
    return (void *)(uintptr_t)((uint64_t)(uintptr_t)left + right + ONE_SPAWN);
}

static void *run_fib(void *arg) {
    struct work *work = arg;
    uint64_t start = cc_now_ns();
    work->result = (uint64_t)(uintptr_t)fib((void *)(uintptr_t)work->n);
    work->ns = cc_now_ns() - start;
    return NULL;
}

static uint64_t fibonacci(unsigned n) {
    uint64_t a = 0, b = 1;
    for (; n > 0; n--) {
        uint64_t next = a + b;
        a = b;
        b = next;
    }
    return a;
}

int main(int argc, char **argv) {
    struct bench b = bench_begin(argc, argv, "fib");
    struct work work = {.n = 27};
    for (double scale = b.scale; scale > 1.27 && work.n < 40; scale /= 1.618) work.n++;
    for (double scale = b.scale; scale < 0.79 && work.n > 2; scale *= 1.618) work.n--;
    bench_run(run_fib, &work);
    uint64_t spawns = work.result / ONE_SPAWN, number = work.result % ONE_SPAWN;
    if (number != fibonacci(work.n) || spawns != fibonacci(work.n + 1) - 1)
        bench_fail("fib(%u) gave %llu with %llu tasks", work.n, (unsigned long long)number, (unsigned long long)spawns);
    return bench_end(&b, spawns, (double)work.ns, "");
}
