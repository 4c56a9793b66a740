/* supervisor.c - keeps processes running: one that ends is restarted, with exponential back-off if it keeps failing.
 * SIGTERM or Ctrl-C stops them all, by SIGTERM and, after half a second, by SIGKILL; a second signal ends the program
 * at once.
 *
 * Each process has a fiber of its own, and all of them a nursery: stopping is one cancellation. */
#define _POSIX_C_SOURCE 200809L
#include <ccc/ccc.h>

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { BACKOFF_MIN_MS = 1, BACKOFF_MAX_MS = 1000, STEADY_MS = 10 * 1000, GRACE_MS = 500 };

struct service {
    const char *name;
    const char *argv[4];
    atomic_int starts, stopped; /* how often it was started; the signal that ended the last run */
};

/* Waits between two starts: twice as long as the last time; a run that lasted resets the delay. */
static int back_off(uint64_t *pause_ms, uint64_t started_ns) {
    if (cc_now_ns() - started_ns > STEADY_MS * UINT64_C(1000000)) *pause_ms = BACKOFF_MIN_MS;
    int rc = cc_sleep_ms(*pause_ms);
    *pause_ms = *pause_ms * 2 < BACKOFF_MAX_MS ? *pause_ms * 2 : BACKOFF_MAX_MS;
    return rc;
}

CC_CHILD(keep_running, { struct service *service; }) {
    struct service *s = self->service;
    uint64_t pause_ms = BACKOFF_MIN_MS;
    int rc;
    do {
        CCProcess *process;
        CCProcessStatus status = {0};
        uint64_t started = cc_now_ns();
        rc = cc_process_start(&process, &(CCProcessOptions){.argv = s->argv, .grace_ms = GRACE_MS});
        if (rc == 0) {
            atomic_fetch_add(&s->starts, 1);
            rc = cc_process_wait(process, &status);
            if (rc == ECANCELED) { /* the process is being stopped, within the grace period */
                CC_SHIELD {
                    if (cc_process_wait(process, &status) != 0) status.signal = 0;
                }
            }
            atomic_store(&s->stopped, status.signal);
            cc_process_free(process);
        } else if (rc != ECANCELED) {
            fprintf(stderr, "%s: %s\n", s->name, strerror(rc)); /* the next attempt may succeed */
            rc = 0;
        }
        if (rc == 0) rc = back_off(&pause_ms, started);
    } while (rc == 0);
    return rc;
}

CC_TASK(obey_signals, {
    CCNursery *services;
    CCChan *signals;
}) {
    CCSignal s;
    if (cc_chan_recv(self->signals, &s, sizeof s) != 0) return NULL;
    (void)cc_nursery_cancel_with(self->services, EINTR, "signal");
    if (cc_chan_recv(self->signals, &s, sizeof s) == 0) _exit(128 + s.number);
    return NULL;
}

/* Acts as the user: waits until all run and the failing one was restarted a few times; then stops the program. */
CC_CHILD(play, { struct service *services; }) {
    int rc = 0;
    while (rc == 0 && (atomic_load(&self->services[0].starts) == 0 || atomic_load(&self->services[1].starts) < 4 ||
                       atomic_load(&self->services[2].starts) == 0))
        rc = cc_sleep_ms(1);
    return rc == 0 ? kill(getpid(), SIGTERM) : rc;
}

int main(void) {
    static struct service services[] = {
        {.name = "steady", .argv = {"sleep", "1000", NULL}},
        {.name = "flaky", .argv = {"sh", "-c", "exit 1", NULL}},
        {.name = "deaf", .argv = {"sh", "-c", "trap '' TERM; while :; do sleep 0.1; done", NULL}},
    };
    enum { COUNT = sizeof services / sizeof *services };
    CCChan *signals = cc_chan_create(sizeof(CCSignal), 2);
    CCNursery *n = cc_nursery_create(NULL);
    if (signals == NULL || n == NULL || cc_signal_notify(signals, (int[]){SIGTERM, SIGINT}, 2) != 0) return 1;
    CCTask listener = CC_GO(obey_signals, .services = n, .signals = signals);
    for (int i = 0; i < COUNT; i++)
        if (CC_GO_IN(n, keep_running, .service = &services[i]) != 0) return 1;
    if (CC_GO_IN(n, play, .services = services) != 0) return 1;

    int rc = cc_nursery_wait(n);
    printf("%s\n", rc == EINTR ? "stopped by a signal" : strerror(rc));
    printf("flaky: started again: %s\n", atomic_load(&services[1].starts) >= 4 ? "yes" : "no");
    printf("steady: ended by signal %d\n", atomic_load(&services[0].stopped));

    (void)cc_signal_stop(signals);
    (void)cc_chan_close(signals);
    (void)cc_task_join(&listener, NULL);
    (void)cc_nursery_free(n);
    cc_chan_free(signals);
    return cc_runtime_shutdown(1000);
}
