/* scale_size.c - what does a large value cost? One producer, one consumer, capacity 16; the parameter is the size of a
 * value in bytes, 8 at least. Its first and its last 8 bytes are written by the producer and checked by the consumer.
 */
#include "bench.h"

static struct {
    CCChan *ch;
    size_t size;
    uint64_t n, ns;
} work;

static void *produce(void *arg) {
    unsigned char *value = bench_alloc(1, work.size);
    for (uint64_t i = 0; i < work.n; i++) {
        memcpy(value, &i, sizeof i);
        memcpy(value + work.size - sizeof i, &i, sizeof i);
        bench_check(cc_chan_send(work.ch, value, work.size), "cc_chan_send");
    }
    free(value);
    bench_check(cc_chan_close(work.ch), "cc_chan_close");
    return arg;
}

static void *consume(void *arg) {
    unsigned char *value = bench_alloc(1, work.size);
    uint64_t start = cc_now_ns(), received = 0, first, last;
    CCTask producer = cc_fiber_spawn_task(produce, NULL);
    for (; cc_chan_recv(work.ch, value, work.size) == 0; received++) {
        memcpy(&first, value, sizeof first);
        memcpy(&last, value + work.size - sizeof last, sizeof last);
        if (first != received || last != received) bench_fail("value %llu is damaged", (unsigned long long)received);
    }
    work.ns = cc_now_ns() - start;
    bench_check(cc_task_join(&producer, NULL), "cc_task_join");
    if (received != work.n) bench_fail("%llu values were received", (unsigned long long)received);
    free(value);
    return arg;
}

int main(int argc, char **argv) {
    struct bench b = bench_begin(argc, argv, "scale_size");
    work.size = bench_parameter(&b, 64);
    if (work.size < sizeof(uint64_t)) bench_fail("a value has 8 bytes at least");
    work.n = bench_scaled(&b, work.size <= 256 ? 1000000 : UINT64_C(268435456) / work.size);
    work.ch = cc_chan_create(work.size, 16);
    if (work.ch == NULL) bench_fail("no channel");
    bench_run(consume, NULL);
    cc_chan_free(work.ch);
    return bench_end(&b, work.n, (double)work.ns, "");
}
