/* rate_limiter.c - calls a service that fails and hangs: at most one call per millisecond, each with a timeout, and
 * retries with exponential back-off and jitter. */
#include <ccc/ccc.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

enum { REQUESTS = 12, TRIES = 200, PERIOD_NS = 1000000, TIMEOUT_MS = 20 };

static atomic_int calls;

/* The service: it refuses some of the first attempts, and never answers others. */
static int ask(int request, int attempt, int *answer) {
    calls++;
    if (attempt == 0 && request % 3 == 0) return EAGAIN;
    if (attempt == 1 && request % 4 == 0) return cc_sleep_until(CC_FOREVER);
    *answer = request;
    return 0;
}

/* Up to 1, 2, 4 … 32 ms, at random: calls that failed together do not retry together. */
static int back_off(int attempt, unsigned *random) {
    *random = *random * 1103515245 + 12345;
    return cc_sleep_until(cc_after_ns((*random >> 8) % (1000000u << (attempt < 5 ? attempt : 5))));
}

CC_CHILD(request, {
    int number;
    CCTicker *turns; /* each tick admits one call */
}) {
    unsigned random = (unsigned)self->number;
    int error = 0;
    for (int attempt = 0; attempt < TRIES && error == 0; attempt++) {
        if ((error = cc_ticker_wait(self->turns)) != 0) break;
        CC_WITH_DEADLINE(cc_after_ms(TIMEOUT_MS)) {
            int answer = -1;
            if (ask(self->number, attempt, &answer) == 0) return answer == self->number ? 0 : EPROTO;
        }
        error = back_off(attempt, &random);
    }
    return error != 0 ? error : ETIMEDOUT;
}

int main(void) {
    CCTicker turns;
    int error;
    uint64_t begin = cc_now_ns();
    cc_ticker_init(&turns, PERIOD_NS, CC_TICKER_SKIP);
    CC_NURSERY(n, .result = &error, .deadline = cc_after_s(120)) {
        for (int i = 0; i < REQUESTS; i++) CC_GO_IN(n, request, .number = i, .turns = &turns);
    }
    printf("%d requests: %s\n", REQUESTS, error == 0 ? "all of them were answered" : strerror(error));
    printf("with retries: %s\n", calls > REQUESTS ? "yes" : "no");
    printf("too fast: %s\n", (uint64_t)calls * PERIOD_NS > cc_now_ns() - begin ? "yes" : "no");
}
