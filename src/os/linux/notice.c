/* notice.c - installs the handler, and takes it back. */
#include "os/notice.h"

#include "base/error.h"

#include <signal.h>
#include <stddef.h>

static struct {
    volatile int signal; /* 0: none */
    void (*volatile fn)(void);
    int buried; /* a signal whose handler came after ours and may call it; 0: none */
} notice;

/* Without a runtime whoever came after us and calls us, as what was there before, gets what was: the default action. */
static void handle(int sig) {
    int saved = cc__errno_get();
    if (notice.signal == sig) {
        notice.fn();
    } else {
        (void)signal(sig, SIG_DFL);
        (void)raise(sig);
    }
    cc__errno_set(saved);
}

bool cc__notice_install(int signal, void (*fn)(void)) {
    struct sigaction old, new = {.sa_handler = handle, .sa_flags = SA_RESTART | SA_ONSTACK};
    if (sigaction(signal, NULL, &old) != 0) return false;
    notice.fn = fn;
    if ((old.sa_flags & SA_SIGINFO) || old.sa_handler != SIG_DFL) {
        if (notice.buried == signal) notice.signal = signal;
        return false;
    }
    sigemptyset(&new.sa_mask);
    notice.signal = signal; /* it may come at once */
    if (sigaction(signal, &new, NULL) == 0) return true;
    notice.signal = 0;
    return false;
}

void cc__notice_remove(void) {
    struct sigaction now;
    int sig = notice.signal;
    if (sig == 0) return;
    if (sigaction(sig, NULL, &now) == 0 && now.sa_handler == handle)
        (void)signal(sig, SIG_DFL);
    else
        notice.buried = sig;
    notice.signal = 0;
}
