/* sample.c - interrupts a thread to get a copy of its stack.
 *
 * There is one request, in static memory, so that a late handler does not write to freed memory. Its word holds a
 * number and a state; the thread that changes the state from ASKED owns the request.
 *
 *   caller                                        handler, on the thread that is asked
 *   FREE -> ASKED, signal with the word
 *   waits                                         ASKED -> TAKEN, if the word is still the signal's
 *                                                 copies
 *   reads the copy <----------------------------- TAKEN -> DONE
 *   or, after a time: ASKED -> FREE               finds another word, does nothing
 *
 * SAMPLE-1  The copy is written in TAKEN only, and each request has a new number: a late signal matches no request.
 * SAMPLE-2  A request that is TAKEN and not answered in time stays so; until it is DONE no thread is interrupted.
 *
 * The word is a plain sequentially consistent atomic: a signal handler reads and writes it.
 */
#include "inspect/sample.h"

#include "base/error.h"
#include "base/san.h"
#include "inspect/threads.h"
#include "os/clock.h"
#include "os/futex.h"
#include "os/safe_copy.h"
#include "os/signals.h"
#include "os/thread.h"

#include <pthread.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { FREE, ASKED, TAKEN, DONE, STATES };

enum {
    WORDS = 4096,            /* of stack in the copy; the rest is read later, when it may have changed */
    PATIENCE_NS = 200000000, /* a guess: longer than a thread waits for a CPU */
    MAGIC = 0x63635361,      /* tells our signals from others */
};

#ifdef CC_TSAN
enum { SIGNALS_COME = false }; /* the sanitizer delivers them too late */
#else
enum { SIGNALS_COME = true };
#endif

static struct {
    _Atomic uint32_t word; /* number * STATES + state */
    const void *bottom, *top;
    struct registers at; /* known == 0: the thread is on another stack */
    size_t count;
    uintptr_t words[WORDS];
} request;

static pthread_mutex_t one_caller = PTHREAD_MUTEX_INITIALIZER;
static struct sigaction before;
static bool installed;

/* ---- on the interrupted thread ---- */

/* Reads other functions' frames, which sanitizers would report. */
static CC_NOINLINE __attribute__((no_sanitize("address", "undefined"))) CC_NO_TSAN void copy_stack(void) {
    const volatile uintptr_t *from = (const volatile uintptr_t *)request.at.value[CC_REGISTER_SP];
    size_t count = ((uintptr_t)request.top - (uintptr_t)from) / sizeof *from;
    if (count > WORDS) count = WORDS;
    for (size_t i = 0; i < count; i++) request.words[i] = from[i];
    request.count = count;
}

static void answer(uint32_t word, const void *context) { /* SAMPLE-1 */
    uint32_t taken = word - ASKED + TAKEN;
    if (!atomic_compare_exchange_strong(&request.word, &word, taken)) return; /* too late */
    request.at = cc__registers_interrupted(context);
    uintptr_t sp = request.at.value[CC_REGISTER_SP];
    /* The thread runs on this stack, so it is mapped. */
    if (sp >= (uintptr_t)request.bottom && sp < (uintptr_t)request.top && sp % sizeof(void *) == 0)
        copy_stack();
    else
        request.at.known = 0;
    request.word = taken - TAKEN + DONE;
    cc__futex_wake(&request.word, 1);
}

static void on_signal(int sig, siginfo_t *info, void *context) {
    CC_KEEP_ERRNO;
    uint64_t value = (uint64_t)(uintptr_t)info->si_value.sival_ptr;
    if (info->si_code == SI_QUEUE && value >> 32 == MAGIC)
        answer((uint32_t)value, context);
    else if (before.sa_flags & SA_SIGINFO)
        before.sa_sigaction(sig, info, context);
    else if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN)
        before.sa_handler(sig);
}

/* ---- the caller ---- */

static bool in_place_locked(void) {
    struct sigaction now;
    return installed && sigaction(CC_SAMPLE_SIGNAL, NULL, &now) == 0 && (now.sa_flags & SA_SIGINFO) &&
           now.sa_sigaction == on_signal;
}

static bool install_locked(void) {
    struct sigaction now, ours;
    if (installed) return in_place_locked();
    if (sigaction(CC_SAMPLE_SIGNAL, NULL, &now) != 0) return false;
    memset(&ours, 0, sizeof ours);
    ours.sa_sigaction = on_signal;
    ours.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK;
    ours.sa_mask = now.sa_mask;
    before = now; /* first: the handler may run at once */
    installed = sigaction(CC_SAMPLE_SIGNAL, &ours, NULL) == 0;
    return installed;
}

static bool send_signal(int tid, uint32_t word) {
    siginfo_t info;
    memset(&info, 0, sizeof info);
    info.si_signo = CC_SAMPLE_SIGNAL;
    info.si_code = SI_QUEUE;
    info.si_pid = getpid();
    info.si_uid = getuid();
    info.si_value.sival_ptr = (void *)(uintptr_t)((uint64_t)MAGIC << 32 | word);
    return syscall(SYS_rt_tgsigqueueinfo, (long)getpid(), (long)tid, (long)CC_SAMPLE_SIGNAL, &info) == 0;
}

/* True: the request is DONE. False: it was withdrawn, or the handler that has taken it makes no progress. */
static bool wait_for_answer(uint32_t asked) {
    uint64_t until = cc__clock_real() + PATIENCE_NS;
    uint32_t done = asked - ASKED + DONE;
    for (bool last = false;;) {
        uint32_t word = request.word;
        if (word == done) return true;
        if (cc__clock_real() < until) {
            cc__futex_wait(&request.word, word, until);
            continue;
        }
        if (atomic_compare_exchange_strong(&request.word, &word, asked - ASKED + FREE) || last) return word == done;
        last = true; /* it is being answered */
        until += PATIENCE_NS;
    }
}

static bool ask_running(int tid, const void *bottom, const void *top, struct picture *p) {
    if (!SIGNALS_COME || !install_locked() || cc__threads_blocks(tid, CC_SAMPLE_SIGNAL)) return false;
    uint32_t word = request.word;
    if (word % STATES == TAKEN) return false;
    word = word - word % STATES + STATES + ASKED;
    request.bottom = bottom;
    request.top = top;
    request.word = word;
    if (!send_signal(tid, word)) {
        request.word = word - ASKED + FREE;
        return false;
    }
    if (!wait_for_answer(word) || request.at.known == 0) return false;
    p->regs = request.at;
    p->count = request.count;
    return true;
}

/* For a thread in the kernel. If it leaves the call meanwhile the copy is useless, so the call is checked again. */
static bool look_at_waiting(int tid, const struct thread_call *call, const void *bottom, const void *top,
                            struct picture *p) {
    struct thread_call still;
    uintptr_t sp = call->sp;
    if (sp < (uintptr_t)bottom || sp >= (uintptr_t)top || sp % sizeof(void *) != 0) return false;
    if (request.word % STATES == TAKEN) return false; /* SAMPLE-2: the handler may write the words */
    size_t count = ((uintptr_t)top - sp) / sizeof(void *);
    if (count > WORDS) count = WORDS;
    if (!cc__safe_copy(request.words, (const void *)sp, count * sizeof(void *))) return false;
    if (!cc__threads_call(tid, &still) || still.running || still.sp != sp || still.pc != call->pc) return false;
    p->regs = cc__registers_at(call->pc, sp);
    p->count = count;
    return true;
}

/* Retries, because the thread may change between running and waiting. */
static bool take_picture(int tid, const void *bottom, const void *top, struct picture *p) {
    struct thread_call call;
    for (int tries = 0; tries < 3 && cc__threads_call(tid, &call); tries++) {
        if (call.running) return ask_running(tid, bottom, top, p);
        if (look_at_waiting(tid, &call, bottom, top, p)) return true;
    }
    return false;
}

unsigned cc__sample_thread(int tid, const void *bottom, const void *top, const void **frames, unsigned max,
                           struct doubt *doubt) {
    struct picture p = {.low = (uintptr_t)bottom, .top = (uintptr_t)top, .words = request.words};
    unsigned n = 0;
    *doubt = (struct doubt){0};
    if (cc__san_on_valgrind() || bottom >= top || max == 0) return 0;
    CC_KEEP_ERRNO;
    pthread_mutex_lock(&one_caller);
    if (tid == cc__thread_id()) {
        n = cc__unwind_here(bottom, top, __builtin_return_address(0), frames, max, doubt);
    } else if (take_picture(tid, bottom, top, &p)) {
        p.copied_at = p.regs.value[CC_REGISTER_SP];
        n = cc__unwind(&p, frames, max, doubt);
    }
    pthread_mutex_unlock(&one_caller);
    return n;
}

bool cc__sample_is_alone(void) {
    if (pthread_mutex_trylock(&one_caller) != 0) return false;
    CC_KEEP_ERRNO;
    bool alone = in_place_locked() && !cc__signal_is_handled(&before);
    pthread_mutex_unlock(&one_caller);
    return alone;
}

void cc__sample_remove(void) {
    pthread_mutex_lock(&one_caller);
    if (in_place_locked()) {
        sigaction(CC_SAMPLE_SIGNAL, &before, NULL);
        installed = false;
    }
    pthread_mutex_unlock(&one_caller);
}

void cc__sample_forget(void) {
    uint32_t word = request.word;
    one_caller = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    request.word = word - word % STATES + STATES; /* FREE, and of another number */
}
