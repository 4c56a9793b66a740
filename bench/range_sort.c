/* range_sort.c - how well is a sort by halves spread over the workers? By CC_START and CC_AWAIT. One operation: a
 * number.
 */
#include "bench.h"

#include "range_body.h"

CC_ASYNC(int, sort, {
    uint64_t *a, *spare;
    size_t n;
}) {
    if (self->n <= SORT_GRAIN) {
        range_sort_alone(self->a, self->n);
        return 0;
    }
    size_t half = self->n / 2;
    CC_FUTURE(sort, left); /* the merge begins with a copy of it: the last to be sorted, it is in the cache */
    bench_check(CC_START(&left, sort, .a = self->a, .spare = self->spare, .n = half), "CC_START");
    CC_CALL(sort, .a = self->a + half, .spare = self->spare + half, .n = self->n - half);
    (void)CC_AWAIT(&left);
    range_merge(self->a, self->spare, half, self->n);
    return 0;
}

struct work {
    uint64_t *a, *spare;
    uint64_t n, ns;
};

static void *run(void *arg) {
    struct work *work = arg;
    for (int turn = 0; turn < RANGE_TURNS; turn++) {
        for (uint64_t i = 0; i < work->n; i++) work->a[i] = range_hash(i + 1);
        uint64_t start = cc_now_ns();
        CC_CALL(sort, .a = work->a, .spare = work->spare, .n = work->n);
        work->ns += cc_now_ns() - start;
        for (uint64_t i = 1; i < work->n; i++)
            if (work->a[i - 1] > work->a[i]) bench_fail("the numbers are out of order");
    }
    return NULL;
}

int main(int argc, char **argv) {
    struct bench b = bench_begin(argc, argv, "range_sort");
    struct work work = {.n = bench_scaled(&b, SORT_N)};
    work.a = malloc(work.n * sizeof *work.a);
    work.spare = malloc(work.n * sizeof *work.spare);
    if (work.a == NULL || work.spare == NULL) bench_fail("no memory");
    memset(work.spare, 0, work.n * sizeof *work.spare); /* as a vector of C++ is: no page faults in the sort */
    bench_run(run, &work);
    free(work.a);
    free(work.spare);
    return bench_end(&b, RANGE_TURNS * work.n, (double)work.ns, "");
}
