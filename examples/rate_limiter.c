/* rate_limiter.c - calls of a service that fails and hangs: one in a millisecond at most, each with a time-out, and
 * retries after a random time that doubles. */
#include <ccc/ccc.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

enum { REQUESTS = 12, TRIES = 200, PERIOD_NS = 1000000, TIMEOUT_MS = 20 };

typedef struct Answer {
    int request;
    char text[32];
} Answer;

static atomic_int calls;

/* The service: it refuses some of the first tries, and never answers to others. */
CC_ASYNC(Answer, ask, { int request, attempt; }) {
    Answer answer = {.request = self->request};
    calls++;
    if (self->attempt == 0 && self->request % 3 == 0) CC_SET_ERROR(EAGAIN);
    if (self->attempt == 1 && self->request % 4 == 0) CC_SET_ERROR(cc_sleep_until(CC_FOREVER));
    snprintf(answer.text, sizeof answer.text, "answer %d", self->request);
    return answer;
}

struct limiter {
    CCMutex first_in_line;
    CCTicker ticker;
};

static int wait_for_turn(struct limiter *limiter) {
    int error = cc_mutex_lock(&limiter->first_in_line);
    if (error != 0) return error;
    error = cc_ticker_wait(&limiter->ticker);
    cc_mutex_unlock(&limiter->first_in_line);
    return error;
}

/* Up to 1, 2, 4 … 32 ms: those who failed together do not come back together. */
static int back_off(int attempt, unsigned *random) {
    *random = *random * 1103515245 + 12345;
    return cc_sleep_until(cc_after_ns((*random >> 8) % (1000000u << (attempt < 5 ? attempt : 5))));
}

CC_CHILD(request, {
    int number;
    struct limiter *limiter;
}) {
    unsigned random = (unsigned)self->number;
    int error = 0;
    for (int attempt = 0; attempt < TRIES && error == 0; attempt++) {
        if ((error = wait_for_turn(self->limiter)) != 0) break;
        CC_FUTURE(ask, answer);
        CC_START(&answer, ask, .request = self->number, .attempt = attempt);
        if (cc_await(&answer, cc_after_ms(TIMEOUT_MS)) == 0) return answer.value.request == self->number ? 0 : EPROTO;
        cc_task_cancel(&answer.future.task); /* if it hangs; the block waits for its end */
        error = back_off(attempt, &random);
    }
    return error != 0 ? error : ETIMEDOUT;
}

int main(void) {
    struct limiter limiter = {0};
    int error;
    uint64_t begin = cc_now_ns();
    cc_ticker_init(&limiter.ticker, PERIOD_NS, CC_TICKER_SKIP);
    CC_NURSERY(n, .result = &error, .deadline = cc_after_s(120)) {
        for (int i = 0; i < REQUESTS; i++) CC_GO_IN(n, request, .number = i, .limiter = &limiter);
    }
    printf("%d requests: %s\n", REQUESTS, error == 0 ? "all of them were answered" : strerror(error));
    printf("with retries: %s\n", calls > REQUESTS ? "yes" : "no");
    printf("too fast: %s\n", (uint64_t)calls * PERIOD_NS > cc_now_ns() - begin ? "yes" : "no");
}
