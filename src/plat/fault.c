/* fault.c - SIGSEGV and SIGBUS. */
#include "plat/fault.h"

#include "base/attr.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

static const int signals[] = {SIGSEGV, SIGBUS};
static struct sigaction before[array_len(signals)];
static fault_explain explain_fault;
static bool installed;

static struct sigaction *previous(int sig) {
    for (size_t i = 0; i < array_len(signals); i++)
        if (signals[i] == sig) return &before[i];
    return NULL;
}

static void set_default(int sig) {
    struct sigaction plain;
    memset(&plain, 0, sizeof plain);
    plain.sa_handler = SIG_DFL;
    sigaction(sig, &plain, NULL);
}

static void on_fault(int sig, siginfo_t *info, void *context) {
    int saved = errno;
    if (explain_fault(info->si_addr)) {
        set_default(sig); /* the faulting instruction runs again, and now it kills */
        return;
    }
    struct sigaction *old = previous(sig);
    if (old->sa_flags & SA_SIGINFO)
        old->sa_sigaction(sig, info, context);
    else if (old->sa_handler != SIG_DFL && old->sa_handler != SIG_IGN)
        old->sa_handler(sig);
    else
        set_default(sig);
    errno = saved;
}

void cc__fault_install(fault_explain explain) {
    explain_fault = explain;
    struct sigaction ours;
    memset(&ours, 0, sizeof ours);
    ours.sa_sigaction = on_fault;
    ours.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigemptyset(&ours.sa_mask);
    for (size_t i = 0; i < array_len(signals); i++) sigaction(signals[i], &ours, &before[i]);
    installed = true;
}

void cc__fault_remove(void) {
    if (!installed) return;
    installed = false;
    for (size_t i = 0; i < array_len(signals); i++) {
        struct sigaction now;
        /* Somebody who came after us keeps the place. */
        if (sigaction(signals[i], NULL, &now) == 0 && (now.sa_flags & SA_SIGINFO) && now.sa_sigaction == on_fault)
            sigaction(signals[i], &before[i], NULL);
    }
}

size_t cc__fault_stack_size(void) {
    /* A signal frame with AVX-512 takes 3.6 kB; the message needs about 2 kB more; sanitizers want plenty. */
    return (size_t)64 * 1024;
}

bool cc__fault_stack_have(void) {
    stack_t ss;
    return sigaltstack(NULL, &ss) == 0 && !(ss.ss_flags & SS_DISABLE);
}

void cc__fault_stack_set(void *stack, size_t size) {
    stack_t ss;
    memset(&ss, 0, sizeof ss);
    ss.ss_sp = stack;
    ss.ss_size = size;
    sigaltstack(&ss, NULL);
}

void cc__fault_stack_clear(void) {
    stack_t ss;
    memset(&ss, 0, sizeof ss);
    ss.ss_flags = SS_DISABLE;
    sigaltstack(&ss, NULL);
}
