/* ctrl_c.c - Ctrl-C shuts the program down gracefully: everything below the nursery is cancelled and has a second to
 * clean up. A second Ctrl-C ends it at once.
 *
 * A simulation has no signals; there the nursery is cancelled directly. */
#define _POSIX_C_SOURCE 200809L
#include <ccc/ccc.h>

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

/* Waits for signals as long as there is work. No nursery waits for it. */
CC_TASK(listen_for_signals, {
    CCNursery *work;
    CCChan *signals;
}) {
    CCSignal s;
    if (cc_chan_recv(self->signals, &s, sizeof s) != 0) return NULL; /* closed: the work is done */
    (void)cc_nursery_cancel_with(self->work, EINTR, "Ctrl-C");
    if (cc_chan_recv(self->signals, &s, sizeof s) == 0) _exit(128 + s.number);
    return NULL;
}

CC_CHILD(work) {
    int rc;
    while ((rc = cc_sleep_ms(5)) == 0) {
    }
    CC_SHIELD(void) cc_sleep_ms(1); /* cleaning up */
    return rc;                      /* ECANCELED: no failure, in a nursery that was cancelled */
}

/* Sends the signal, so that the example ends by itself. */
CC_CHILD(press, { CCNursery *work; }) {
    int rc = cc_sleep_ms(20);
    if (rc != 0) return rc;
    return cc_sim_seed() == 0 ? kill(getpid(), SIGINT) : cc_nursery_cancel_with(self->work, EINTR, "Ctrl-C");
}

int main(void) {
    CCChan *signals = cc_chan_create(sizeof(CCSignal), 2);
    CCNursery *n = cc_nursery_create_ex(&(CCNurseryConfig){.grace_ms = 1000}); /* how long shields may delay the end */
    if (signals == NULL || n == NULL) return 1;
    int rc = cc_signal_notify(signals, (int[]){SIGINT, SIGTERM}, 2);
    if (rc != 0 && rc != ENOTSUP) return 1;

    CCTask listener = CC_GO(listen_for_signals, .work = n, .signals = signals);
    for (int i = 0; i < 3; i++)
        if (CC_GO_IN(n, work) != 0) return 1;
    if (CC_GO_IN(n, press, .work = n) != 0) return 1;
    rc = cc_nursery_wait(n);
    printf("%s, %zu failures\n", rc == EINTR ? "interrupted" : "ended by itself", cc_nursery_failures(n));

    (void)cc_signal_stop(signals); /* from here on Ctrl-C has its default effect */
    (void)cc_chan_close(signals);
    (void)cc_task_join(&listener, NULL); /* it uses the nursery, so it ends first */
    (void)cc_nursery_free(n);
    cc_chan_free(signals);
    return cc_runtime_shutdown(1000);
}
