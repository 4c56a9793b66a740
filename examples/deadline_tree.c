/* deadline_tree.c - one deadline for a tree of calls: it is inherited, so no function has to pass it on. */
#include <ccc/ccc.h>
#include <errno.h>
#include <stdio.h>

/* The bottom: a server that answers, or does not. */
CC_TASK(ask, {
    const char *server;
    uint64_t takes_ms;
    int *answers;
}) {
    if (cc_sleep_ms(self->takes_ms) != 0) return CC_ERROR(ECANCELED); /* the request was cancelled */
    __atomic_fetch_add(self->answers, 1, __ATOMIC_RELAXED);
    return NULL;
}

/* In between: asks two servers at once. It has no deadline in its code. */
static int look_up(uint64_t slow_ms, int *answers) {
    int rc;
    CC_NURSERY(n, .result = &rc, .name = "look_up") {
        CC_GO_IN(n, ask, .server = "near", .takes_ms = 0, .answers = answers);
        CC_GO_IN(n, ask, .server = "far", .takes_ms = slow_ms, .answers = answers);
    }
    return rc;
}

struct request {
    uint64_t slow_ms, patience_ms;
};

/* The top: the deadline applies to everything below. */
static void *request(void *arg) {
    struct request *r = arg;
    int answers = 0;
    CC_WITH_DEADLINE(cc_after_ms(r->patience_ms)) {
        int rc = look_up(r->slow_ms, &answers);
        CCError why = {0};
        if (rc != 0 && cc_cancel_reason(&why) == 0 && why.code == ETIMEDOUT)
            printf("Too late: %d answer, and %s.\n", answers, why.text);
        else
            printf("In time: %d answers.\n", answers);
    }
    printf("Cancelled afterwards: %s.\n", cc_cancelled() ? "yes" : "no");
    return NULL;
}

int main(void) {
    struct request quick = {.slow_ms = 2, .patience_ms = 60 * 1000},
                   slow = {.slow_ms = 3600 * 1000, .patience_ms = 200};
    cc_run(request, &quick, NULL);
    cc_run(request, &slow, NULL); /* takes 200 ms, not an hour */
    return cc_runtime_shutdown(1000);
}
