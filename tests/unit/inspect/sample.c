/* sample.c - other threads are sampled, running and waiting, without being disturbed. */
#include "other.h"

#include "base/attr.h"
#include "base/san.h"
#include "inspect/sample.h"
#include "inspect/symbol.h"
#include "inspect/threads.h"
#include "os/clock.h"
#include "sched/sched.h"

#include <ccc/ccc.h>

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

enum { FRAMES = 32 };

static _Thread_local struct doubt doubt; /* of the last sample */

/* What they do, each by a function that calls another. */
static CC_NOINLINE void spin_inside(struct other *o) {
    while (!o->go) o->rounds++;
}

static CC_NOINLINE void spin(struct other *o) {
    spin_inside(o);
    __asm__ volatile("" ::: "memory"); /* no tail call */
}

static CC_NOINLINE void read_inside(struct other *o) {
    char c;
    o->result = (int)read(o->ends[0], &c, 1);
    o->error = errno;
}

static CC_NOINLINE void read_pipe(struct other *o) {
    read_inside(o);
    __asm__ volatile("" ::: "memory");
}

/* Ended by a signal, whatever SA_RESTART says. */
static CC_NOINLINE void poll_inside(struct other *o) {
    struct pollfd fd = {.fd = o->ends[0], .events = POLLIN};
    o->result = poll(&fd, 1, -1);
    o->error = errno;
}

static CC_NOINLINE void poll_pipe(struct other *o) {
    poll_inside(o);
    __asm__ volatile("" ::: "memory");
}

static void wait_until_in_kernel(const struct other *o) {
    struct thread_call call;
    do CHECK(cc__threads_call(o->tid, &call));
    while (call.running || call.number < 0);
}

/* Valgrind and qemu have stacks of their own in the kernel. */
static bool shows_wait(const struct other *o) {
    struct thread_call call;
    wait_until_in_kernel(o);
    CHECK(cc__threads_call(o->tid, &call));
    return call.sp >= (uintptr_t)o->bottom && call.sp < (uintptr_t)o->top;
}

static unsigned sample(const struct other *o, const void **frames, unsigned max) {
    return cc__sample_thread(o->tid, o->bottom, o->top, frames, max, &doubt);
}

/* The function `name` is frame number: -1 if it is none. */
static int find_frame(const void **frames, unsigned n, const char *name) {
    for (unsigned i = 0; i < n; i++) {
        char text[256];
        struct symbol s[4];
        cc__symbol_text(frames[i], text, sizeof text);
        printf("  %u %s\n", i, text);
        for (unsigned k = 0, count = cc__symbol_find_inlined(frames[i], s, 4); k < count; k++)
            if (strcmp(s[k].function, name) == 0) return (int)i;
    }
    return -1;
}

static void need_names(void) {
#ifndef CC_BACKTRACE
    SKIP("built without libbacktrace");
#endif
}

static void need_signals(void) {
#ifdef CC_TSAN
    SKIP("the thread sanitizer delivers signals late");
#endif
    if (cc__san_on_valgrind()) SKIP("under valgrind threads wait in its own code");
}

TEST(finds_a_running_thread, .timeout = 300) {
    need_names();
    need_signals();
    struct other o;
    const void *frames[FRAMES];
    start(&o, spin);
    for (long i = test_scale(100); i > 0; i--) {
        unsigned n;
        errno = 1234;
        do n = sample(&o, frames, FRAMES); /* it has to get a CPU */
        while (n == 0 || find_frame(frames, n, "spin_inside") < 0);
        CHECK_EQ(errno, 1234);
        int inside = find_frame(frames, n, "spin_inside"), outside = find_frame(frames, n, "spin");
        CHECK_EQ(inside, 0);
        CHECK_EQ(outside, 1);
        CHECK_EQ(find_frame(frames, n, "other_main"), 2);
    }
    end(&o);
}

TEST(finds_a_waiting_thread) {
    need_names();
    struct other reads, polls;
    const void *frames[FRAMES];
    start(&reads, read_pipe);
    start(&polls, poll_pipe);
    bool known = shows_wait(&reads) && shows_wait(&polls);
    if (known) {
        unsigned n = sample(&reads, frames, FRAMES);
        int inside = find_frame(frames, n, "read_inside");
        CHECK(inside > 0); /* below it is the C library */
        CHECK_EQ(find_frame(frames, n, "read_pipe"), inside + 1);
        CHECK_EQ(find_frame(frames, n, "other_main"), inside + 2);
        n = sample(&polls, frames, FRAMES);
        inside = find_frame(frames, n, "poll_inside");
        CHECK(inside > 0);
        CHECK_EQ(find_frame(frames, n, "poll_pipe"), inside + 1);
        /* No more than there is room for. */
        frames[2] = NULL;
        CHECK_EQ(sample(&polls, frames, 2), 2);
        CHECK(frames[2] == NULL);
        CHECK_EQ(sample(&polls, frames, 0), 0);
    } else {
        CHECK_EQ(sample(&reads, frames, FRAMES), 0);
    }
    end(&reads);
    end(&polls);
    if (!known) SKIP("the system does not show where a thread waits");
}

TEST(does_not_disturb) {
    struct other o;
    const void *frames[FRAMES];
    start(&o, poll_pipe);
    wait_until_in_kernel(&o);
    for (long i = test_scale(1000); i > 0; i--) (void)sample(&o, frames, FRAMES);
    end(&o);
    CHECK_EQ(o.result, 1); /* and not -1 with EINTR */
}

TEST(is_on_another_stack) {
    struct other o;
    const void *frames[FRAMES];
    char elsewhere[4096];
    start(&o, spin);
    CHECK_EQ(cc__sample_thread(o.tid, elsewhere, elsewhere + sizeof elsewhere, frames, FRAMES, &doubt), 0);
    CHECK_EQ(cc__sample_thread(o.tid, NULL, NULL, frames, FRAMES, &doubt), 0);
    end(&o);
    CHECK_EQ(cc__sample_thread(0x7fffffff, o.bottom, o.top, frames, FRAMES, &doubt), 0);
    CHECK_EQ(cc__sample_thread(0, o.bottom, o.top, frames, FRAMES, &doubt), 0);
    CHECK_EQ(cc__sample_thread(-1, o.bottom, o.top, frames, FRAMES, &doubt), 0);
}

static CC_NOINLINE unsigned sample_myself(const void **frames) {
    const void *bottom, *top;
    cc__thread_stack(&bottom, &top);
    unsigned n = cc__sample_thread(cc__thread_id(), bottom, top, frames, FRAMES, &doubt);
    __asm__ volatile("" ::: "memory");
    return n;
}

TEST(samples_itself) {
    need_names();
    if (cc__san_on_valgrind()) SKIP("under valgrind threads are not sampled");
    const void *frames[FRAMES];
    unsigned n = sample_myself(frames);
    CHECK_EQ(find_frame(frames, n, "sample_myself"), 0);
}

/* ---- fibers ---- */

/* The stack of the fiber that runs. */
static void find_stack(struct other *o) {
    const struct stack *s = cc__get(&cc__sched_current(cc__worker())->stack);
    o->bottom = s->base + cc__stack_guard_size(s);
    o->top = s->base + cc__stack_size(s);
    o->tid = cc__thread_id();
}

static void *be_fiber(void *arg) {
    struct other *o = arg;
    find_stack(o);
    o->rest(o);
    return NULL;
}

TEST(finds_fibers_on_their_workers) {
    need_names();
    need_signals();
    CCRuntimeConfig config = {.workers = 2};
    CHECK_EQ(cc_runtime_init(&config), 0);
    struct other spins = {.rest = spin}, reads = {.rest = read_pipe};
    const void *frames[FRAMES];
    CHECK_EQ(pipe(reads.ends), 0);
    CCTask tasks[] = {cc_fiber_spawn_task(be_fiber, &spins), cc_fiber_spawn_task(be_fiber, &reads)};
    while (spins.tid == 0 || reads.tid == 0) cc__thread_yield();
    unsigned n;
    do n = sample(&spins, frames, FRAMES);
    while (n == 0 || find_frame(frames, n, "spin_inside") < 0);
    CHECK_EQ(find_frame(frames, n, "spin"), 1);
    CHECK_EQ(find_frame(frames, n, "be_fiber"), 2);
    bool known = shows_wait(&reads);
    if (known) {
        n = sample(&reads, frames, FRAMES);
        int inside = find_frame(frames, n, "read_inside");
        CHECK(inside > 0);
        CHECK_EQ(find_frame(frames, n, "be_fiber"), inside + 2);
    }
    /* The worker is not on the other fiber's stack. */
    CHECK_EQ(cc__sample_thread(reads.tid, spins.bottom, spins.top, frames, FRAMES, &doubt), 0);
    spins.go = 1;
    CHECK_EQ(write(reads.ends[1], "x", 1), 1);
    for (int i = 0; i < 2; i++) CHECK_EQ(cc_task_join(&tasks[i], NULL), 0);
    CHECK_EQ(reads.result, 1);
    CHECK_EQ(cc_runtime_shutdown(10000), 0);
}

/* ---- the signal ---- */

static _Atomic int theirs;
static _Atomic int their_code;

static void on_their_signal(int sig, siginfo_t *info, void *context) {
    (void)context;
    CHECK_EQ(sig, SIGURG);
    their_code = info->si_code;
    theirs++;
}

static void install_theirs(void) {
    struct sigaction action = {.sa_flags = SA_SIGINFO | SA_RESTART};
    action.sa_sigaction = on_their_signal;
    CHECK_EQ(sigaction(SIGURG, &action, NULL), 0);
}

TEST(a_handler_that_was_there_gets_its_signals) {
    need_signals();
    struct other o;
    const void *frames[FRAMES];
    install_theirs();
    start(&o, spin);
    while (sample(&o, frames, FRAMES) == 0) {
    }
    CHECK_EQ(theirs, 0); /* they do not get the library's signal */
    CHECK_EQ(pthread_kill(o.thread, SIGURG), 0);
    while (theirs == 0) cc__thread_yield();
    CHECK_EQ(their_code, SI_TKILL);
    CHECK_EQ(kill(getpid(), SIGURG), 0);
    while (theirs == 1) cc__thread_yield();
    union sigval value = {.sival_int = 42};
    CHECK_EQ(pthread_sigqueue(o.thread, SIGURG, value), 0);
    while (theirs == 2) cc__thread_yield();
    cc__sample_remove();
    struct sigaction now;
    CHECK_EQ(sigaction(SIGURG, NULL, &now), 0);
    CHECK(now.sa_sigaction == on_their_signal);
    while (sample(&o, frames, FRAMES) == 0) { /* and again */
    }
    CHECK_EQ(theirs, 3);
    end(&o);
}

TEST(a_later_handler_stays) {
    need_signals();
    struct other o;
    const void *frames[FRAMES];
    start(&o, spin);
    while (sample(&o, frames, FRAMES) == 0) {
    }
    install_theirs();
    for (int i = 0; i < 10; i++) CHECK_EQ(sample(&o, frames, FRAMES), 0);
    CHECK_EQ(theirs, 0);
    cc__sample_remove();
    CHECK_EQ(raise(SIGURG), 0);
    CHECK_EQ(theirs, 1);
    end(&o);
}

/* The signal would stay pending and arrive at an unexpected time. */
static CC_NOINLINE void spin_deaf(struct other *o) {
    sigset_t set, pending;
    sigemptyset(&set);
    sigaddset(&set, SIGURG);
    CHECK_EQ(pthread_sigmask(SIG_BLOCK, &set, NULL), 0);
    o->rounds = 1;
    spin(o);
    CHECK_EQ(sigpending(&pending), 0);
    o->result = sigismember(&pending, SIGURG);
}

TEST(a_thread_that_blocks_the_signal_is_left_alone) {
    need_signals();
    struct other o;
    const void *frames[FRAMES];
    start(&o, spin_deaf);
    while (!cc__threads_blocks(o.tid, SIGURG)) {
        CHECK(!o.go);
        if (cc__clock_now() % 1000 == 0) cc__thread_yield();
    }
    CHECK(!cc__threads_blocks(o.tid, SIGUSR1));
    CHECK(!cc__threads_blocks(cc__thread_id(), SIGURG));
    CHECK(cc__threads_blocks(0x7fffffff, SIGURG));
    for (int i = 0; i < 10; i++) CHECK_EQ(sample(&o, frames, FRAMES), 0);
    end(&o);
    CHECK_EQ(o.result, 0);
}

/* ---- a fork in the middle of it ---- */

static void *sample_again_and_again(void *arg) {
    const void *frames[FRAMES];
    struct other *o = arg;
    while (!o->result) (void)sample(o, frames, FRAMES);
    return NULL;
}

/* The sampling threads do not exist in the child, which can still sample. */
TEST(in_a_forked_child, .timeout = 60) {
#ifdef CC_TSAN
    SKIP("the race detector's own locks may be taken in a child of a process with several threads");
#endif
    if (cc__san_on_valgrind()) SKIP("under valgrind threads are not sampled");
    struct other o;
    pthread_t thread;
    start(&o, spin);
    CHECK_EQ(pthread_create(&thread, NULL, sample_again_and_again, &o), 0);
    for (long i = test_scale(20); i > 0; i--) {
        const void *frames[FRAMES];
        int status;
        pid_t child = fork();
        if (child == 0) {
            alarm(20);
            _exit(sample_myself(frames) > 0 ? 7 : 1);
        }
        CHECK(child > 0);
        CHECK_EQ(waitpid(child, &status, 0), child);
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 7);
    }
    o.result = 1;
    CHECK_EQ(pthread_join(thread, NULL), 0);
    end(&o);
}

/* ---- all at once ---- */

static struct other others[4];
static pthread_mutex_t others_change = PTHREAD_MUTEX_INITIALIZER;
static _Atomic int over;

static CC_NOINLINE void read_and_spin(struct other *o) {
    char text[64];
    while (!o->go) {
        struct timespec nap = {.tv_nsec = (long)(o->rounds % 20000)};
        snprintf(text, sizeof text, "%lu %f", o->rounds, (double)o->rounds / 3);
        for (int i = 0; i < 1000; i++) o->rounds++;
        nanosleep(&nap, NULL);
    }
}

static void *sample_the_others(void *arg) {
    const void *frames[FRAMES];
    unsigned *found = arg;
    while (!over)
        for (unsigned i = 0; i < array_len(others); i++) {
            pthread_mutex_lock(&others_change);
            int tid = others[i].tid;
            const void *bottom = others[i].bottom, *top = others[i].top;
            pthread_mutex_unlock(&others_change);
            unsigned n = cc__sample_thread(tid, bottom, top, frames, FRAMES, &doubt);
            CHECK(n <= FRAMES);
            *found += n > 0;
        }
    return NULL;
}

TEST(many_ask_at_once) {
    pthread_t threads[3];
    unsigned found[3] = {0};
    for (unsigned i = 0; i < array_len(others); i++) start(&others[i], i % 2 != 0 ? spin : read_and_spin);
    for (int i = 0; i < 3; i++) CHECK_EQ(pthread_create(&threads[i], NULL, sample_the_others, &found[i]), 0);
    uint64_t until = cc__clock_now() + (uint64_t)test_scale(1000) * 1000000;
    while (cc__clock_now() < until) {
        /* Threads that end while they are sampled. */
        end(&others[0]);
        pthread_mutex_lock(&others_change);
        start(&others[0], read_and_spin);
        pthread_mutex_unlock(&others_change);
    }
    over = 1;
    for (int i = 0; i < 3; i++) CHECK_EQ(pthread_join(threads[i], NULL), 0);
    for (unsigned i = 0; i < array_len(others); i++) end(&others[i]);
    printf("%u %u %u\n", found[0], found[1], found[2]);
}
