/* fault.c - SIGSEGV and SIGBUS; SIGABRT, if there is a callback for it.
 *
 * FAULT-1  A handler that a program installs over ours may call ours. If it is still there when the runtime stops, ours
 *          stays reachable, and the action before it stays recorded. The next start installs another of our handlers:
 *          so the chain ends, and no handler is in it twice.
 * FAULT-2  A signal that was sent (kill, raise) is not a fault: it has the effect that it would have without us.
 * FAULT-3  The same holds for SIGABRT, which abort sends: it ends the process, calls the earlier handler, or is
 *          ignored. Unless it is ignored, the callback runs first.
 */
#include "os/signals.h"

#include "base/attr.h"
#include "base/error.h"

enum { HANDLERS = 4 };

static struct place {
    int signal;
    unsigned next; /* index of the handler that is installed, or will be */
    bool installed;
    struct sigaction before[HANDLERS];
} places[] = {{.signal = SIGSEGV}, {.signal = SIGBUS}, {.signal = SIGABRT}};
static fault_explain explain_fault;
static void (*tell_abort)(void);

static struct place *place_of(int sig) {
    for (size_t i = 0; i < array_len(places); i++)
        if (places[i].signal == sig) return &places[i];
    return NULL;
}

static void set_default(int sig) {
    (void)signal(sig, SIG_DFL);
}

/* As the system would: with SA_RESETHAND it is called once. */
static void call_handler(struct sigaction *old, int sig, siginfo_t *info, void *context) {
    struct sigaction action = *old;
    if (action.sa_flags & (int)SA_RESETHAND) {
        old->sa_flags &= ~SA_SIGINFO;
        old->sa_handler = SIG_DFL;
    }
    if (action.sa_flags & SA_SIGINFO)
        action.sa_sigaction(sig, info, context);
    else
        action.sa_handler(sig);
}

static void on_abort(struct sigaction *old, siginfo_t *info, void *context) { /* FAULT-3 */
    if (!cc__signal_is_handled(old) && old->sa_handler == SIG_IGN) return; /* then abort ends the process by itself */
    tell_abort();
    if (cc__signal_is_handled(old)) {
        call_handler(old, SIGABRT, info, context);
    } else {
        cc__exit_message_write();
        set_default(SIGABRT);
        raise(SIGABRT); /* delivered when this handler has returned */
    }
}

static void on_signal(unsigned which, int sig, siginfo_t *info, void *context) {
    CC_KEEP_ERRNO;
    struct sigaction *old = &place_of(sig)->before[which];
    if (sig == SIGABRT) {
        on_abort(old, info, context);
        return;
    }
    bool sent = info->si_code <= 0; /* FAULT-2 */
    struct fault fault = {sig, info->si_addr, context, !cc__signal_is_handled(old) || cc__exit_message_handles(old)};
    if (sent && !cc__signal_is_handled(old) && old->sa_handler == SIG_IGN) {
        /* nothing */
    } else if (!sent && explain_fault(&fault)) {
        cc__exit_message_write();
        set_default(sig); /* the faulting instruction runs again, and now ends the process */
    } else if (cc__signal_is_handled(old)) {
        call_handler(old, sig, info, context);
    } else {
        set_default(sig); /* as above; a fault cannot be ignored */
        if (sent) raise(sig);
    }
}

#define HANDLER(n)                                                       \
    static void on_signal_##n(int sig, siginfo_t *info, void *context) { \
        on_signal(n, sig, info, context);                                \
    }
HANDLER(0)
HANDLER(1)
HANDLER(2)
HANDLER(3)
static void (*const handlers[])(int, siginfo_t *, void *) = {on_signal_0, on_signal_1, on_signal_2, on_signal_3};
_Static_assert(array_len(handlers) == HANDLERS, "one for each place of `before`");

void cc__fault_install(fault_explain explain, void (*aborts)(void)) {
    explain_fault = explain;
    if (aborts != NULL) tell_abort = aborts; /* otherwise keep it for a handler that is left of an earlier runtime */
    struct sigaction ours = {.sa_flags = SA_SIGINFO | SA_ONSTACK};
    sigemptyset(&ours.sa_mask);
    for (size_t i = 0; i < array_len(places); i++) {
        struct place *p = &places[i];
        if (p->signal == SIGABRT && aborts == NULL) continue;
        if (p->next == HANDLERS) continue; /* FAULT-1: the program's handler over four of ours stays */
        ours.sa_sigaction = handlers[p->next];
        (void)sigaction(p->signal, NULL, &p->before[p->next]); /* ours may run at once */
        p->installed = sigaction(p->signal, &ours, NULL) == 0;
    }
}

void cc__fault_remove(void) {
    for (size_t i = 0; i < array_len(places); i++) {
        struct place *p = &places[i];
        struct sigaction now;
        if (!p->installed) continue;
        p->installed = false;
        if (sigaction(p->signal, NULL, &now) != 0) continue;
        if ((now.sa_flags & SA_SIGINFO) && now.sa_sigaction == handlers[p->next])
            sigaction(p->signal, &p->before[p->next], NULL);
        else
            p->next++; /* FAULT-1: a handler that was installed over ours stays, and may call ours */
    }
}

size_t cc__fault_stack_size(void) {
    /* A signal frame with AVX-512 takes 3.6 kB; the message about 2 kB more; sanitizers need plenty. */
    return (size_t)64 * 1024;
}

bool cc__fault_stack_have(void) {
    stack_t ss;
    return sigaltstack(NULL, &ss) == 0 && !(ss.ss_flags & SS_DISABLE);
}

void cc__fault_stack_set(void *stack, size_t size) {
    stack_t ss = {.ss_sp = stack, .ss_size = size};
    sigaltstack(&ss, NULL);
}

void cc__fault_stack_clear(void) {
    stack_t ss = {.ss_flags = SS_DISABLE};
    sigaltstack(&ss, NULL);
}
