/* nursery.c - what does a child cost? One fiber starts n children that do nothing in one nursery and waits for them. */
#include "bench.h"

struct work {
    uint64_t n, ns;
    uint64_t tiny, tiny_ns;
    uint64_t *got;
};

struct child {
    uint64_t *got, i;
};

static void *note(void *arg) {
    struct child *self = arg;
    *self->got = self->i;
    return NULL;
}

static void *all_in_one(void *arg) {
    struct work *work = arg;
    uint64_t sum = 0, start = cc_now_ns();
    CCNursery *n = cc_nursery_create(NULL);
    if (n == NULL) bench_fail("cc_nursery_create failed");
    for (uint64_t i = 0; i < work->n; i++) {
        struct child child = {&work->got[i], i};
        bench_check(cc_nursery_go(n, note, &child, sizeof child), "cc_nursery_go");
    }
    bench_check(cc_nursery_wait(n), "cc_nursery_wait");
    for (uint64_t i = 0; i < work->n; i++) sum += work->got[i];
    work->ns = cc_now_ns() - start;
    bench_check(cc_nursery_free(n), "cc_nursery_free");
    if (sum != work->n * (work->n - 1) / 2) bench_fail("the sum of the results is %llu", (unsigned long long)sum);

    /* A nursery with one child, again and again. */
    start = cc_now_ns();
    for (uint64_t i = 0; i < work->tiny; i++) {
        struct child child = {work->got, i};
        n = cc_nursery_create(NULL);
        if (n == NULL) bench_fail("cc_nursery_create failed");
        bench_check(cc_nursery_go(n, note, &child, sizeof child), "cc_nursery_go");
        bench_check(cc_nursery_wait(n), "cc_nursery_wait");
        bench_check(cc_nursery_free(n), "cc_nursery_free");
        if (*work->got != i) bench_fail("a child has not run");
    }
    work->tiny_ns = cc_now_ns() - start;
    return NULL;
}

int main(int argc, char **argv) {
    struct bench b = bench_begin(argc, argv, "nursery");
    struct work work = {.n = bench_scaled(&b, 1000000), .tiny = bench_scaled(&b, 200000)};
    work.got = bench_alloc(work.n, sizeof *work.got);
    bench_run(all_in_one, &work);
    free(work.got);
    char extras[64];
    snprintf(extras, sizeof extras, "tiny_ns=%.1f", (double)work.tiny_ns / (double)work.tiny);
    return bench_end(&b, work.n, (double)work.ns, extras);
}
