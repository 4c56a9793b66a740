/* processes.c - processes that end by themselves, are signalled and cancelled at random times, while several
 * fibers wait for each: every wait gets the same status, and neither a process nor a descriptor leaks. */
#include "../unit/process/children.h"

#include <stdatomic.h>
#include <stdio.h>

static atomic_long ended, killed;

CC_CHILD(wait_at_random, {
    CCProcess *process;
    uint64_t seed;
    CCProcessStatus *first;
    atomic_int *known;
}) {
    CCProcessStatus status = {0};
    int rc;
    switch (test_random(&self->seed) % 3) {
    case 0:
        rc = cc_process_wait(self->process, &status);
        break;
    case 1:
        do rc = cc_process_wait_until(self->process, &status, cc_after_ns(test_random(&self->seed) % 3000000 + 1));
        while (rc == ETIMEDOUT);
        break;
    default: {
        size_t chosen;
        CCCase cases[] = {CC_EXITED(self->process, &status, NULL), CC_EXITED(self->process, &status, NULL)};
        rc = cc_select(cases, 2, CC_FOREVER, &chosen);
        break;
    }
    }
    if (rc != 0) return rc; /* ECANCELED, or no memory */
    int nobody = 0;
    if (atomic_compare_exchange_strong(self->known, &nobody, 1)) {
        *self->first = status;
        atomic_store(self->known, 2);
    } else {
        while (atomic_load(self->known) != 2) cc_yield();
        CHECK(self->first->code == status.code && self->first->signal == status.signal);
    }
    return 0;
}

static const char *const scripts[] = {":", "exit 3", "exec sleep 1000", "trap '' TERM; sleep 0.002; exit 5"};

CC_CHILD(one_process, { uint64_t seed; }) {
    uint64_t *seed = &self->seed;
    CCProcess *p = NULL;
    CCProcessStatus first = {0};
    atomic_int known = 0;
    int which = (int)(test_random(seed) % 4), rc = 0;
    CC_NURSERY(n, .result = &rc) {
        p = start_with((CCProcessOptions){.argv = SHELL(scripts[which]),
                                          .out = {.kind = test_random(seed) % 2 ? CC_PROCESS_PIPE : CC_PROCESS_NULL},
                                          .grace_ms = test_random(seed) % 4 + 1});
        for (int i = 0; i < 3; i++)
            CHECK_EQ(
                CC_GO_IN(n, wait_at_random, .process = p, .seed = test_random(seed), .first = &first, .known = &known),
                0);
        if (test_random(seed) % 2) MAY_FAIL(cc_sleep_until(cc_after_ns(test_random(seed) % 2000000)));
        switch (test_random(seed) % 4) {
        case 0:
            (void)cc_nursery_cancel(n);
            break;
        case 1:
            (void)cc_process_signal_group(p, SIGKILL);
            break;
        case 2:
            (void)cc_process_signal_group(p, SIGTERM);
            break;
        default:
            if (which == 2) (void)cc_process_signal(p, SIGTERM);
        }
    }
    CHECK(rc == 0 || rc == ECANCELED);
    CCProcessStatus status;
    CHECK_EQ(cc_process_wait_try(p, &status), 0);
    atomic_fetch_add(status.signal != 0 ? &killed : &ended, 1);
    cc_process_free(p);
    return 0;
}

static void *all(void *arg) {
    uint64_t seed = test_seed();
    for (long left = test_rounds(40, 4000); left > 0; left -= 8) {
        CC_NURSERY(n) {
            for (int i = 0; i < 8; i++) CHECK_EQ(CC_GO_IN(n, one_process, .seed = test_random(&seed)), 0);
        }
        check_no_children();
    }
    return arg;
}

TEST_WORKERS(end_and_are_ended_at_random, .timeout = 300) {
    needs_pidfd();
    open_poller();
    int before = open_fds();
    CHECK_EQ(cc_run(all, NULL, NULL), 0);
    check_open_fds(before);
    check_no_children();
    test_count("processes", (uint64_t)(atomic_load(&ended) + atomic_load(&killed)));
}
