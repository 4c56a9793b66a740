/* notice.c - installs the handler, and takes it back. */
#include "plat/notice.h"

#include "plat/error.h"

#include <signal.h>
#include <stddef.h>

static struct {
    int signal; /* 0: none */
    void (*fn)(void);
} notice;

static void handle(int signal) {
    (void)signal;
    int saved = cc__errno_get();
    if (notice.fn != NULL) notice.fn();
    cc__errno_set(saved);
}

bool cc__notice_install(int signal, void (*fn)(void)) {
    struct sigaction old, new = {.sa_handler = handle, .sa_flags = SA_RESTART | SA_ONSTACK};
    if (sigaction(signal, NULL, &old) != 0 || (old.sa_flags & SA_SIGINFO) || old.sa_handler != SIG_DFL) return false;
    sigemptyset(&new.sa_mask);
    notice.fn = fn;
    if (sigaction(signal, &new, NULL) != 0) return false;
    notice.signal = signal;
    return true;
}

void cc__notice_remove(void) {
    struct sigaction now;
    if (notice.signal == 0) return;
    if (sigaction(notice.signal, NULL, &now) == 0 && now.sa_handler == handle) (void)signal(notice.signal, SIG_DFL);
    notice.signal = 0;
}
