/* range.c - how well is a loop spread over the workers? The sum of many numbers by cc_parallel_reduce; and, in turns
 * with that, by one loop (serial_ns). Then steps of which one in a thousand takes as long as the others together
 * (uneven_ns for a step, by cc_parallel_for). */
#include "bench.h"

enum { TURNS = 10 };

struct work {
    double *numbers;
    uint64_t n, ns, serial_ns, uneven_ns;
};

static int add(size_t begin, size_t end, void *value, void *numbers) {
    const double *of = (const double *)numbers;
    double sum = 0;
    for (size_t i = begin; i < end; i++) sum += of[i];
    *(double *)value += sum;
    return 0;
}

static void add_up(void *value, const void *right, void *unused) {
    (void)unused;
    *(double *)value += *(const double *)right;
}

static int uneven(size_t begin, size_t end, void *numbers) {
    double *of = (double *)numbers;
    for (size_t i = begin; i < end; i++)
        for (int k = i % 1000 == 7 ? 1000 : 1; k > 0; k--) *(volatile double *)&of[i] += 1;
    return 0;
}

static void *in_turns(void *arg) {
    struct work *work = arg;
    double zero = 0;
    CCReduction plus = {.size = sizeof zero, .identity = &zero, .range = add, .combine = add_up};
    for (int turn = 0; turn < TURNS; turn++) {
        double sum = 0, serial = 0;
        uint64_t start = cc_now_ns();
        bench_check(cc_parallel_reduce(0, work->n, &plus, work->numbers, &sum), "cc_parallel_reduce");
        uint64_t between = cc_now_ns();
        add(0, work->n, &serial, work->numbers);
        uint64_t then = cc_now_ns();
        work->ns += between - start;
        work->serial_ns += then - between;
        if (sum != (double)work->n || serial != sum) bench_fail("the sum is %g, not %g", sum, serial);
    }
    uint64_t start = cc_now_ns();
    bench_check(cc_parallel_for(0, work->n / 10, uneven, work->numbers), "cc_parallel_for");
    work->uneven_ns = cc_now_ns() - start;
    return NULL;
}

int main(int argc, char **argv) {
    struct bench b = bench_begin(argc, argv, "range");
    struct work work = {.n = bench_scaled(&b, 10000000)};
    work.numbers = malloc(work.n * sizeof *work.numbers);
    if (work.numbers == NULL) bench_fail("no memory");
    for (uint64_t i = 0; i < work.n; i++) work.numbers[i] = 1;
    bench_run(in_turns, &work);
    free(work.numbers);
    char more[96];
    snprintf(more, sizeof more, "serial_ns=%.2f uneven_ns=%.2f", (double)work.serial_ns / (double)(TURNS * work.n),
             (double)work.uneven_ns / (double)(work.n / 10 + 1));
    return bench_end(&b, TURNS * work.n, (double)work.ns, more);
}
