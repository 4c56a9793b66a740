/* signals.c - removes the temporary file, then lets the signal end the program.
 *
 * Fibers move between threads, so the mask of one thread would block nothing. Instead a hold is a flag: a handler that
 * finds it set stores the signal's number, and the release raises it again. */
#include "signals.h"

#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <unistd.h>

static const int deadly[] = {SIGHUP, SIGINT, SIGTERM, SIGPIPE, SIGXCPU, SIGXFSZ};

static const char *_Atomic remembered;
static atomic_int held, waiting;

static void die_of(int number) {
    const char *path = atomic_load(&remembered);
    if (path != NULL) unlink(path);
    signal(number, SIG_DFL);
    sigset_t only;
    sigemptyset(&only);
    sigaddset(&only, number);
    pthread_sigmask(SIG_UNBLOCK, &only, NULL);
    kill(getpid(), number);
}

static void handle(int number) { /* SIGNAL-1 */
    if (atomic_load(&held)) {
        atomic_store(&waiting, number);
        /* The release may have checked just before. */
        if (atomic_load(&held)) return;
    }
    die_of(number);
}

void signals_install(void) {
    struct sigaction action = {.sa_handler = handle, .sa_flags = SA_ONSTACK | SA_RESTART};
    sigfillset(&action.sa_mask);
    for (size_t i = 0; i < sizeof deadly / sizeof deadly[0]; i++) {
        struct sigaction before;
        sigaction(deadly[i], NULL, &before);
        if (before.sa_handler != SIG_IGN) sigaction(deadly[i], &action, NULL); /* may be ignored (nohup) */
    }
}

void signals_hold(void) { /* SIGNAL-2 */
    atomic_store(&held, 1);
}

void signals_release(void) {
    atomic_store(&held, 0);
    int number = atomic_load(&waiting);
    if (number != 0) die_of(number);
}

void signals_remember(const char *path) {
    atomic_store(&remembered, path);
}
