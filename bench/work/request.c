/* request.c - 64 clients send requests to 8 servers over one channel and wait for the answer on a channel of their own.
 * One operation: a request with its answer. */
#include "work.h"

enum { CLIENTS = 64, SERVERS = 8 };

struct request {
    uint64_t question;
    CCChan *answer;
};

static struct {
    CCChan *requests;
    uint64_t each;
} work;

CC_TASK(server, { int unused; }) {
    (void)self;
    struct request r;
    while (cc_chan_recv(work.requests, &r, sizeof r) == 0) {
        uint64_t answer = r.question * 2 + 1;
        bench_check(cc_chan_send(r.answer, &answer, sizeof answer), "cc_chan_send");
    }
    return NULL;
}

CC_TASK(client, { uint64_t place; }) {
    CCChan *answers = work_chan(sizeof(uint64_t), 1);
    for (uint64_t i = 0; i < work.each; i++) {
        struct request r = {self->place * work.each + i, answers};
        uint64_t answer;
        bench_check(cc_chan_send(work.requests, &r, sizeof r), "cc_chan_send");
        bench_check(cc_chan_recv(answers, &answer, sizeof answer), "cc_chan_recv");
        if (answer != r.question * 2 + 1) bench_fail("the answer to another question");
    }
    cc_chan_free(answers);
    return NULL;
}

static void *run(void *arg) {
    CC_NURSERY(servers) {
        for (int i = 0; i < SERVERS; i++) bench_check(CC_GO_IN(servers, server), "CC_GO_IN");
        CC_NURSERY(clients)
        for (uint64_t i = 0; i < CLIENTS; i++) bench_check(CC_GO_IN(clients, client, .place = i), "CC_GO_IN");
        cc_chan_close(work.requests);
    }
    return arg;
}

int main(int argc, char **argv) {
    struct work w = work_begin(argc, argv, "request");
    work.each = bench_scaled(&w.bench, 1000000) / CLIENTS + 1;
    work.requests = work_chan(sizeof(struct request), 16);
    work_run(&w, run, NULL);
    cc_chan_free(work.requests);
    return work_end(&w, work.each * CLIENTS);
}
