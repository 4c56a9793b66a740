/* sort.c - merge sort of numbers, halves in parallel down to 4096 elements. One operation: an element. What is not
 * parallel is written out, because qsort calls a function for every comparison; Go and Rust have a sort for numbers. */
#include "work.h"

enum { GRAIN = 4096, FEW = 16 };

struct range {
    uint64_t *from, *spare;
    size_t n;
};

static void merge(uint64_t *from, uint64_t *spare, size_t half, size_t n) {
    size_t i = 0, k = half, out = 0;
    memcpy(spare, from, half * sizeof *from);
    while (i < half && k < n) from[out++] = from[k] < spare[i] ? from[k++] : spare[i++];
    while (i < half) from[out++] = spare[i++];
}

static void sort_alone(uint64_t *from, uint64_t *spare, size_t n) {
    if (n <= FEW) {
        for (size_t i = 1; i < n; i++) {
            uint64_t x = from[i];
            size_t k = i;
            for (; k > 0 && x < from[k - 1]; k--) from[k] = from[k - 1];
            from[k] = x;
        }
        return;
    }
    size_t half = n / 2;
    sort_alone(from, spare, half);
    sort_alone(from + half, spare, n - half);
    merge(from, spare, half, n);
}

static void *sort(void *arg) {
    struct range *r = arg;
    if (r->n <= GRAIN) {
        sort_alone(r->from, r->spare, r->n);
        return NULL;
    }
    size_t half = r->n / 2;
    struct range left = {r->from, r->spare, half}, right = {r->from + half, r->spare + half, r->n - half};
    CCTask task;
    bench_check(cc_spawn(&task, sort, &right, NULL), "cc_spawn");
    sort(&left);
    bench_check(cc_task_join(&task, NULL), "cc_task_join");
    merge(r->from, r->spare, half, r->n);
    return NULL;
}

int main(int argc, char **argv) {
    struct work w = work_begin(argc, argv, "sort");
    uint64_t n = bench_scaled(&w.bench, 2000000), seed = 1, sum = 0, sorted_sum = 0;
    struct range all = {bench_alloc(n, sizeof(uint64_t)), bench_alloc(n, sizeof(uint64_t)), n};
    for (uint64_t i = 0; i < n; i++) sum += all.from[i] = work_random(&seed);
    work_run(&w, sort, &all);
    for (uint64_t i = 0; i < n; i++) {
        if (i > 0 && all.from[i - 1] > all.from[i]) bench_fail("element %llu is out of order", (unsigned long long)i);
        sorted_sum += all.from[i];
    }
    if (sum != sorted_sum) bench_fail("elements were lost");
    free(all.from);
    free(all.spare);
    return work_end(&w, n);
}
