/* rate_limiter.c - ../rate_limiter.c by functions alone. */
#include <ccc/ccc.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

enum { REQUESTS = 12, TRIES = 200, PERIOD_NS = 1000000, TIMEOUT_MS = 20 };

struct question {
    int request, attempt;
    int answer;
};

static atomic_int calls;

/* The service: it refuses some of the first attempts, and never answers others. */
static int ask(void *arg) {
    struct question *q = arg;
    calls++;
    if (q->attempt == 0 && q->request % 3 == 0) return EAGAIN;
    if (q->attempt == 1 && q->request % 4 == 0) return cc_sleep_until(CC_FOREVER);
    q->answer = q->request;
    return 0;
}

struct limiter {
    CCMutex first_in_line;
    uint64_t next;
};

static int wait_for_turn(struct limiter *limiter) {
    int error = cc_mutex_lock(&limiter->first_in_line);
    if (error != 0) return error;
    error = cc_sleep_until((CCDeadline){limiter->next});
    if (error == 0) {
        uint64_t missed = (cc_now_ns() - limiter->next) / PERIOD_NS;
        limiter->next += (missed + 1) * PERIOD_NS;
    }
    cc_mutex_unlock(&limiter->first_in_line);
    return error;
}

/* Up to 1, 2, 4 … 32 ms, at random: calls that failed together do not retry together. */
static int back_off(int attempt, unsigned *random) {
    *random = *random * 1103515245 + 12345;
    return cc_sleep_until(cc_after_ns((*random >> 8) % (1000000u << (attempt < 5 ? attempt : 5))));
}

struct request {
    int number;
    struct limiter *limiter;
};

/* The request is in the caller's frame, so its task must end before the function returns. */
static int ask_in_time(struct question *q) {
    CCNursery *n = cc_nursery_create_ex(&(CCNurseryConfig){.deadline = cc_after_ms(TIMEOUT_MS)});
    if (n == NULL) return ENOMEM;
    int error = cc_nursery_spawn_status(n, ask, q);
    if (error == 0) error = cc_nursery_wait(n);
    cc_nursery_free(n);
    return error;
}

static int request(void *arg) {
    struct request *r = arg;
    unsigned random = (unsigned)r->number;
    int error = 0;
    for (int attempt = 0; attempt < TRIES && error == 0; attempt++) {
        if ((error = wait_for_turn(r->limiter)) != 0) break;
        struct question q = {.request = r->number, .attempt = attempt};
        if (ask_in_time(&q) == 0) return q.answer == r->number ? 0 : EPROTO;
        error = back_off(attempt, &random);
    }
    return error != 0 ? error : ETIMEDOUT;
}

int main(void) {
    uint64_t begin = cc_now_ns();
    struct limiter limiter = {.next = begin + PERIOD_NS};
    struct request requests[REQUESTS];
    int error = 0;
    CCNursery *n = cc_nursery_create_ex(&(CCNurseryConfig){.deadline = cc_after_ms(120000)});
    if (n == NULL) return 1;
    for (int i = 0; i < REQUESTS && error == 0; i++) {
        requests[i] = (struct request){.number = i, .limiter = &limiter};
        error = cc_nursery_spawn_status(n, request, &requests[i]);
    }
    if (error != 0) (void)cc_nursery_cancel_with(n, error, NULL);
    error = cc_nursery_wait(n);
    cc_nursery_free(n);
    printf("%d requests: %s\n", REQUESTS, error == 0 ? "all of them were answered" : strerror(error));
    printf("with retries: %s\n", calls > REQUESTS ? "yes" : "no");
    printf("too fast: %s\n", (uint64_t)calls * PERIOD_NS > cc_now_ns() - begin ? "yes" : "no");
}
