/* when.c - what does a select with bodies cost? A fiber sends to itself and chooses between two channels, by CC_WHEN;
 * and, in turns with that, by CC_MATCH (match_ns). */
#include "bench.h"

enum { TURNS = 10 };

struct work {
    CCChan *a, *b;
    uint64_t n, ns, match_ns;
};

static uint64_t by_when(struct work *work) {
    uint64_t sum = 0, v = 0;
    for (uint64_t i = 0; i < work->n; i++) {
        bench_check(cc_chan_send(i % 2 != 0 ? work->a : work->b, &i, sizeof i), "cc_chan_send");
        CC_WHEN {
            CC_ON_RECV(work->a, &v) {
                sum += v;
            }
            CC_ON_RECV(work->b, &v) {
                sum += v + 1;
            }
        }
    }
    return sum;
}

static uint64_t by_match(struct work *work) {
    uint64_t sum = 0, v = 0;
    for (uint64_t i = 0; i < work->n; i++) {
        int error;
        bench_check(cc_chan_send(i % 2 != 0 ? work->a : work->b, &i, sizeof i), "cc_chan_send");
        CC_MATCH(CC_RECV(work->a, &v, &error), CC_RECV(work->b, &v, &error)) {
        case 0:
            sum += v;
            break;
        case 1:
            sum += v + 1;
            break;
        default:
            bench_fail("a select failed");
        }
    }
    return sum;
}

static void *in_turns(void *arg) {
    struct work *work = arg;
    for (int turn = 0; turn < TURNS; turn++) {
        uint64_t start = cc_now_ns(), sum = by_when(work), between = cc_now_ns();
        sum -= by_match(work);
        work->match_ns += cc_now_ns() - between;
        work->ns += between - start;
        if (sum != 0) bench_fail("the sums differ by %llu", (unsigned long long)sum);
    }
    return NULL;
}

int main(int argc, char **argv) {
    struct bench b = bench_begin(argc, argv, "when");
    struct work work = {.n = bench_scaled(&b, 200000)};
    work.a = cc_chan_create(sizeof(uint64_t), 1);
    work.b = cc_chan_create(sizeof(uint64_t), 1);
    if (work.a == NULL || work.b == NULL) bench_fail("no channels");
    bench_run(in_turns, &work);
    cc_chan_free(work.a);
    cc_chan_free(work.b);
    char more[64];
    snprintf(more, sizeof more, "match_ns=%.1f", (double)work.match_ns / (double)(TURNS * work.n));
    return bench_end(&b, TURNS * work.n, (double)work.ns, more);
}
