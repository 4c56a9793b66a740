/* exit_message.c - writes the last line before an abort, a fault, or an exit with a status. */
#include "os/signals.h"

#include "base/attr.h"
#include "base/error.h"
#include "base/fatal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const int signals[] = {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL};
static const char *volatile last_line;
static bool registered;

void cc__exit_message_write(void) {
    const char *line = last_line;
    if (line == NULL) return;
    last_line = NULL;
    CC_KEEP_ERRNO;
    cc__stderr_write(line, strlen(line));
}

static void on_signal(int sig);

bool cc__exit_message_handles(const struct sigaction *action) {
    return !(action->sa_flags & SA_SIGINFO) && action->sa_handler == on_signal;
}

static void set_handler(int sig, void (*handler)(int)) {
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_ONSTACK};
    sigemptyset(&action.sa_mask);
    sigaction(sig, &action, NULL);
}

/* Also called by fault.c, which then returns to the faulting instruction. */
static void on_signal(int sig) {
    cc__exit_message_write();
    set_handler(sig, SIG_DFL);
    raise(sig);
}

static void on_exit_status(int status, void *arg) {
    (void)arg;
    if (status == 0) return;
    (void)fflush(stdout); /* so that the message comes last */
    cc__exit_message_write();
}

static void replace(int sig, void (*from)(int), void (*to)(int)) {
    struct sigaction now;
    if (sigaction(sig, NULL, &now) == 0 && !(now.sa_flags & SA_SIGINFO) && now.sa_handler == from) set_handler(sig, to);
}

void cc__exit_message_set(const char *line) {
    last_line = line;
    for (size_t i = 0; i < array_len(signals); i++)
        replace(signals[i], line != NULL ? SIG_DFL : on_signal, line != NULL ? on_signal : SIG_DFL);
    if (line == NULL || registered) return;
    registered = true;
    (void)on_exit(on_exit_status, NULL);
}
