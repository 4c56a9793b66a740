/* dump_signal.c - installs and removes the handler. */
#include "os/signals.h"

#include "base/error.h"

static struct {
    _Atomic int signal; /* 0: none */
    void (*_Atomic fn)(void);
    int buried; /* a signal whose handler was installed over ours and may call it; 0: none */
} dump_signal;

/* Without a runtime, a handler installed over ours that chains to us gets the default action, which ours replaced. */
static void handle(int sig) {
    CC_KEEP_ERRNO;
    if (dump_signal.signal == sig) {
        dump_signal.fn();
    } else {
        (void)signal(sig, SIG_DFL);
        (void)raise(sig);
    }
}

bool cc__dump_signal_install(int signal, void (*fn)(void)) {
    struct sigaction old, new = {.sa_handler = handle, .sa_flags = SA_RESTART | SA_ONSTACK};
    if (sigaction(signal, NULL, &old) != 0) return false;
    dump_signal.fn = fn;
    if ((old.sa_flags & SA_SIGINFO) || old.sa_handler != SIG_DFL) {
        if (dump_signal.buried == signal) dump_signal.signal = signal;
        return false;
    }
    sigemptyset(&new.sa_mask);
    dump_signal.signal = signal; /* it may arrive at once */
    if (sigaction(signal, &new, NULL) == 0) return true;
    dump_signal.signal = 0;
    return false;
}

void cc__dump_signal_remove(void) {
    struct sigaction now;
    int sig = dump_signal.signal;
    if (sig == 0) return;
    if (sigaction(sig, NULL, &now) == 0 && now.sa_handler == handle)
        (void)signal(sig, SIG_DFL);
    else
        dump_signal.buried = sig;
    dump_signal.signal = 0;
}

int cc__dump_signal(void) {
    return dump_signal.signal;
}
