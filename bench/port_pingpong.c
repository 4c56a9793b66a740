/* port_pingpong.c - what does a message between two islands cost? A fiber of one sends 64 bytes, a fiber of the other
 * moves the same block back: two switches of thread for each round. */
#include "bench.h"

struct work {
    CCPort *there, *back;
    uint64_t n, ns;
};

enum { SIZE = 64 };

static void *answer(void *arg) {
    struct work *work = arg;
    CCMessage m;
    for (uint64_t i = 0; i < work->n; i++) {
        bench_check(cc_port_recv(work->there, &m), "cc_port_recv");
        bench_check(cc_port_move(work->back, &m), "cc_port_move");
    }
    return NULL;
}

static void *ask(void *arg) {
    struct work *work = arg;
    char bytes[SIZE] = "";
    CCMessage m;
    uint64_t start = cc_now_ns();
    for (uint64_t i = 0; i < work->n; i++) {
        bench_check(cc_port_send(work->there, bytes, SIZE), "cc_port_send");
        bench_check(cc_port_recv(work->back, &m), "cc_port_recv");
        cc_message_free(&m);
    }
    work->ns = cc_now_ns() - start;
    return NULL;
}

int main(int argc, char **argv) {
    struct bench b = bench_begin(argc, argv, "port_pingpong");
    struct work work = {.n = bench_scaled(&b, 200000)};
    CCIsland *one, *two;
    CCTask tasks[2];
    bench_check(cc_port_create(&work.there, NULL), "cc_port_create");
    bench_check(cc_port_create(&work.back, NULL), "cc_port_create");
    bench_check(cc_island_create(&one, NULL), "cc_island_create");
    bench_check(cc_island_create(&two, NULL), "cc_island_create");
    bench_check(cc_island_spawn(one, &tasks[0], answer, &work, NULL), "cc_island_spawn");
    bench_check(cc_island_spawn(two, &tasks[1], ask, &work, NULL), "cc_island_spawn");
    bench_check(cc_join_all(tasks, 2, NULL, CC_FOREVER), "cc_join_all");
    bench_check(cc_island_free(one), "cc_island_free");
    bench_check(cc_island_free(two), "cc_island_free");
    cc_port_free(work.there);
    cc_port_free(work.back);
    return bench_end(&b, work.n, (double)work.ns, "");
}
