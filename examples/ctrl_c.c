/* ctrl_c.c - Ctrl-C ends the program in order: everything below the nursery is cancelled, and cleans up.
 *
 * No call of the library may be made in a signal handler, so the signal is blocked, before the runtime starts and its
 * workers inherit that, and a thread waits for it. A simulation has no other threads: there the thread is left out.
 */
#define _POSIX_C_SOURCE 200809L
#include <ccc/ccc.h>

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

static void *wait_for_signals(void *nursery) {
    sigset_t set;
    int number;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    if (sigwait(&set, &number) == 0) (void)cc_nursery_cancel_with((CCNursery *)nursery, EINTR, "Ctrl-C");
    return NULL;
}

CC_CHILD(work) {
    int rc;
    while ((rc = cc_sleep_ms(5)) == 0) {
    }
    CC_SHIELD(void) cc_sleep_ms(1); /* cleaning up */
    return rc;                      /* ECANCELED: no failure, in a nursery that was cancelled */
}

/* Presses the keys, so that the example ends by itself. */
CC_CHILD(press, { CCNursery *nursery; }) {
    int rc = cc_sleep_ms(20);
    if (rc != 0) return rc;
    return cc_sim_seed() == 0 ? kill(getpid(), SIGINT) : cc_nursery_cancel_with(self->nursery, EINTR, "Ctrl-C");
}

int main(void) {
    sigset_t set;
    pthread_t thread;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    pthread_sigmask(SIG_BLOCK, &set, NULL); /* first of all */

    CCNursery *n = cc_nursery_create(NULL);
    bool listens = cc_sim_seed() == 0;
    if (n == NULL || (listens && pthread_create(&thread, NULL, wait_for_signals, n) != 0)) return 1;
    for (int i = 0; i < 3; i++)
        if (CC_GO_IN(n, work) != 0) return 1;
    if (CC_GO_IN(n, press, .nursery = n) != 0) return 1;
    int rc = cc_nursery_wait(n);
    printf("%s, %zu failures\n", rc == EINTR ? "interrupted" : "ended by itself", cc_nursery_failures(n));
    if (listens) pthread_join(thread, NULL); /* before the nursery goes, which it uses */
    cc_nursery_free(n);
    return cc_runtime_shutdown(1000);
}
