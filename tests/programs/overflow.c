/* overflow.c - a stack overflow is reported with the fiber and its stack's size and range; another fault is not
 * reported as one. */
#include "child.h"
#include "where.h"

#include "sched/sched.h"

#include <ccc/ccc.h>

#include <inttypes.h>
#include <signal.h>
#include <ucontext.h>

static volatile unsigned sink, bottom = 1u << 30;

/* Each level uses about a kilobyte; the compiler cannot turn it into a loop. */
__attribute__((noinline)) static unsigned dig(unsigned depth) {
    unsigned char earth[1024];
    if (depth == bottom) return 0;
    memset(earth, (int)depth, sizeof earth);
    __asm__ volatile("" : : "r"(earth) : "memory");
    unsigned deeper = dig(depth + 1);
    return deeper + earth[sink % sizeof earth];
}

static void *dig_for_ever(void *arg) {
    (void)arg;
    sink = dig(0);
    return NULL;
}

/* One frame that is far larger than the guard. */
__attribute__((noinline)) static unsigned large_frame(unsigned n) {
    volatile unsigned char big[1024 * 1024];
    big[n] = 1;
    big[0] = 2;
    return big[n / 2];
}

static void *call_large_frame(void *arg) {
    (void)arg;
    sink = large_frame(sink + 7);
    return NULL;
}

struct victim {
    CCTaskFn fn;
    const char *name;
    size_t stack_size;
    unsigned workers;
};

static void *rename_and_dig(void *arg) {
    cc_fiber_set_name("renamed");
    for (int i = 0; i < 10; i++) cc_yield();
    return dig_for_ever(arg);
}

static void *bystander(void *arg) {
    volatile bool *stop = arg;
    while (!*stop) cc_yield();
    return NULL;
}

static void die_in_a_fiber(void *arg) {
    struct victim *v = arg;
    static volatile bool stop;
    CCRuntimeConfig config = {.workers = v->workers};
    CHECK_EQ(cc_runtime_init(&config), 0);
    for (int i = 0; i < 5; i++) CHECK_EQ(cc_spawn(NULL, bystander, (void *)&stop, NULL), 0);
    CCTask task;
    CCSpawnOptions options = {.name = v->name, .stack_size = v->stack_size};
    CHECK_EQ(cc_spawn(&task, v->fn, NULL, &options), 0);
    cc_task_join(&task, NULL);
}

#ifdef CC_FIBER_STACK_SIZE
enum { DEFAULT_STACK = CC_FIBER_STACK_SIZE };
#else
enum { DEFAULT_STACK = 256 * 1024 };
#endif

/* Checks that the report is complete. */
static void check_death(struct victim *v, const char *name, size_t stack_size) {
    struct child child;
    run_child(&child, die_in_a_fiber, v);
    show_child(&child);
    CHECK(WIFSIGNALED(child.status));
    CHECK_EQ(WTERMSIG(child.status), SIGSEGV);
    const char *text = strstr(child.output, "stack overflow in fiber ");
    CHECK(text != NULL);
    CHECK(strstr(text + 1, "stack overflow") == NULL); /* once */
    char quoted[64];
    snprintf(quoted, sizeof quoted, "'%s'", name);
    if (name[0] != '\0')
        CHECK(strstr(text, quoted) != NULL);
    else
        CHECK(strchr(text, '\'') == NULL);
    snprintf(quoted, sizeof quoted, "%zu KiB", stack_size / 1024);
    CHECK(strstr(text, quoted) != NULL);
    uintptr_t low = 0, high = 0, at = 0;
    const char *range = strstr(text, "(0x"), *fault = strstr(text, "fault was at 0x");
    CHECK(range != NULL && fault != NULL);
    CHECK_EQ(sscanf(range, "(0x%" SCNxPTR "-0x%" SCNxPTR ")", &low, &high), 2);
    CHECK_EQ(sscanf(fault, "fault was at 0x%" SCNxPTR, &at), 1);
    CHECK_EQ(high - low, stack_size);
    CHECK(at >= low && at < low + stack_size / 2); /* in the guard, which is at the low end */
    CHECK(strstr(text, "CC_STACK_SIZE") != NULL);  /* what to do about it */
}

static bool useless(void) {
    if (under_valgrind()) SKIP("valgrind grows what it takes for a stack, and crashes before the fiber does");
    return false;
}

TEST(named_again_and_again, .timeout = 120) {
    (void)useless();
    int times = test_long() ? 100 : 20;
    for (int i = 0; i < times; i++) {
        struct victim v = {.fn = dig_for_ever, .name = "digger", .workers = 1 + (unsigned)i % 4};
        check_death(&v, "digger", DEFAULT_STACK);
    }
    test_count("overflows", (uint64_t)times);
}

TEST(without_a_name) {
    (void)useless();
    struct victim v = {.fn = dig_for_ever, .workers = 2};
    check_death(&v, "", DEFAULT_STACK);
}

TEST(of_a_size_of_its_own) {
    (void)useless();
    size_t sizes[] = {16 * 1024, 64 * 1024, 1024 * 1024, 8 * 1024 * 1024};
    /* A sanitizer's frames are too large for the smallest. */
    for (unsigned i = UNDER_ASAN || UNDER_TSAN ? 1 : 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        struct victim v = {.fn = dig_for_ever, .name = "sized", .stack_size = sizes[i], .workers = 2};
        check_death(&v, "sized", sizes[i]);
    }
}

TEST(by_the_name_it_gave_itself) {
    (void)useless();
    struct victim v = {.fn = rename_and_dig, .name = "first", .workers = 2};
    check_death(&v, "renamed", DEFAULT_STACK);
}

TEST(a_frame_larger_than_the_guard) {
    (void)useless();
#ifdef __riscv
    SKIP("gcc 12 takes -fstack-clash-protection for this CPU and does nothing: a frame of any size is not probed");
#endif
    struct victim v = {.fn = call_large_frame, .name = "large frame", .workers = 2};
    check_death(&v, "large frame", DEFAULT_STACK);
}

/* What a function does that was compiled without probes, has a frame of 50 KiB, and is called when 1 KiB is left. */
__attribute__((noinline, no_sanitize("address"))) static void *leap(void *arg) {
    const struct stack *s = cc__get(&cc__sched_current(cc__worker())->stack);
    volatile char *low = s->base + cc__stack_guard_size(s) + 1024 - 50 * 1024;
    *low = 1;
    return arg;
}

TEST(a_frame_of_50_KiB_without_probes) {
    (void)useless();
    struct victim v = {.fn = leap, .name = "leaper", .workers = 1};
    struct child child;
    run_child(&child, die_in_a_fiber, &v);
    show_child(&child);
    CHECK(WIFSIGNALED(child.status));
    CHECK_EQ(WTERMSIG(child.status), SIGSEGV);
    CHECK(said(&child, "stack overflow in fiber "));
    CHECK(said(&child, "'leaper'"));
}

/* The joiner runs the task, if it can: the report still names the task. */
static void *join_a_digger(void *arg) {
    CCTask task = {0};
    cc_fiber_set_name("joiner");
    CHECK_EQ(cc_spawn(&task, rename_and_dig, arg, NULL), 0);
    cc_task_join(&task, NULL);
    return NULL;
}

TEST(a_task_that_its_joiner_runs) {
    (void)useless();
    struct victim v = {.fn = join_a_digger, .workers = 1};
    check_death(&v, "renamed", DEFAULT_STACK);
}

/* ---- faults that are no overflow ---- */

static volatile uintptr_t nowhere = 16; /* not 0: that would be undefined behaviour, and found out before it faults */

static void *touch_nowhere(void *arg) {
    (void)arg;
    cc_fiber_set_name("toucher");
    *(volatile char *)nowhere = 1;
    return NULL;
}

static void handle_with_info(int sig, siginfo_t *info, void *context) {
    char text[64];
    int n = snprintf(text, sizeof text, "own handler: signal %d at %p\n", sig, info->si_addr);
    CHECK(context != NULL && write(STDERR_FILENO, text, (size_t)n) == n);
    _exit(42);
}

static void handle_plainly(int sig) {
    char text[64];
    int n = snprintf(text, sizeof text, "own handler: signal %d\n", sig);
    CHECK(write(STDERR_FILENO, text, (size_t)n) == n);
    _exit(42);
}

static void fault_with_handler(void *arg) {
    struct sigaction action = {.sa_flags = SA_SIGINFO | SA_ONSTACK};
    if (*(bool *)arg)
        action.sa_sigaction = handle_with_info;
    else
        action = (struct sigaction){.sa_handler = handle_plainly};
    CHECK_EQ(sigaction(SIGSEGV, &action, NULL), 0);
    struct victim v = {.fn = touch_nowhere, .workers = 2};
    die_in_a_fiber(&v);
}

static void skip_reported_faults(void) {
    if (under_valgrind()) SKIP("valgrind reports the fault itself, and the exit status becomes its own");
}

static void check_own_handler(bool with_info, const char *text) {
    skip_reported_faults();
    struct child child;
    run_child(&child, fault_with_handler, &with_info);
    show_child(&child);
    CHECK(WIFEXITED(child.status));
    CHECK_EQ(WEXITSTATUS(child.status), 42);
    CHECK(said(&child, text));
    CHECK(!said(&child, "overflow"));
}

TEST(another_fault_reaches_the_programs_handler) {
    check_own_handler(true, "own handler: signal 11 at 0x10");
}

TEST(another_fault_reaches_a_plain_handler) {
    check_own_handler(false, "own handler: signal 11");
}

static bool judged_by_sanitizer(struct child *child) {
    /* The sanitizer's handler was installed before the library's: it ends the process. */
    if (UNDER_ASAN || UNDER_TSAN) CHECK(said(child, "Sanitizer"));
    return UNDER_ASAN || UNDER_TSAN;
}

TEST(another_fault_names_the_fiber_and_kills) {
    struct child child;
    struct victim v = {.fn = touch_nowhere, .workers = 2};
    run_child(&child, die_in_a_fiber, &v);
    show_child(&child);
    CHECK(!said(&child, "stack overflow in fiber"));
    if (judged_by_sanitizer(&child)) return;
    CHECK(WIFSIGNALED(child.status));
    CHECK_EQ(WTERMSIG(child.status), SIGSEGV);
    const char *text = strstr(child.output, "ccc: fatal: segmentation fault in fiber ");
    CHECK(text != NULL);
    CHECK(strstr(text, "'toucher': the fault was at 0x10") != NULL);
    if (under_qemu()) return;
    CHECK(strstr(text, "    #0 touch_nowhere") != NULL); /* where it was */
}

static void *touch_nowhere_hosted(void *arg) {
    *(volatile char *)nowhere = 1;
    return arg;
}

static void die_in_a_hosted_call(void *arg) {
    (void)cc_hosted_call(touch_nowhere_hosted, arg, NULL, NULL);
}

TEST(a_fault_in_a_hosted_call_has_a_backtrace) {
    skip_reported_faults();
    struct child child;
    run_child(&child, die_in_a_hosted_call, NULL);
    show_child(&child);
    if (judged_by_sanitizer(&child)) return;
    CHECK(WIFSIGNALED(child.status));
    CHECK_EQ(WTERMSIG(child.status), SIGSEGV);
    CHECK(said(&child, "ccc: fatal: segmentation fault in a hosted call: the fault was at 0x10"));
    if (!under_qemu()) CHECK(said(&child, "    #0 touch_nowhere_hosted"));
}

/* The frames of an overflow are those of the recursion. */
TEST(an_overflow_has_a_backtrace) {
    (void)useless();
    if (under_qemu()) SKIP("whose stack pointers are its own");
    struct child child;
    struct victim v = {.fn = dig_for_ever, .name = "digger", .workers = 2};
    run_child(&child, die_in_a_fiber, &v);
    show_child(&child);
    CHECK(said(&child, "stack overflow in fiber "));
    CHECK(said(&child, "    #1 dig"));
}

/* ---- signals that somebody sends are no faults ---- */

static void *raises(void *arg) {
    raise(*(int *)arg);
    return NULL;
}

static void *kills_itself(void *arg) {
    kill(getpid(), *(int *)arg);
    for (int i = 0; i < 30000; i++) cc_sleep_ms(1); /* another thread may get it */
    return NULL;
}

struct sent {
    int signal;
    bool by_kill, in_fiber, ignored;
};

static void send(void *arg) {
    struct sent *sent = arg;
    if (sent->ignored) CHECK(signal(sent->signal, SIG_IGN) != SIG_ERR);
    CHECK_EQ(cc_runtime_init(&(CCRuntimeConfig){.workers = 2}), 0);
    CCTaskFn fn = sent->by_kill ? kills_itself : raises;
    if (sent->ignored && sent->by_kill) {
        CHECK_EQ(kill(getpid(), sent->signal), 0);
        CHECK_EQ(kill(getpid(), sent->signal), 0);
    } else if (sent->in_fiber) {
        CHECK_EQ(cc_run(fn, &sent->signal, NULL), 0);
    } else {
        fn(&sent->signal);
    }
    if (!sent->ignored) _exit(17); /* it was swallowed */
    struct sigaction now;
    CHECK_EQ(cc_runtime_shutdown(UINT64_MAX), 0);
    CHECK_EQ(sigaction(sent->signal, NULL, &now), 0);
    CHECK(now.sa_handler == SIG_IGN);
}

TEST(a_signal_that_was_sent_kills) {
    skip_reported_faults();
    if (UNDER_ASAN || UNDER_TSAN) SKIP("the sanitizer handles it");
    const int signals[] = {SIGSEGV, SIGBUS};
    for (int i = 0; i < 8; i++) {
        struct sent sent = {.signal = signals[i % 2], .by_kill = i / 2 % 2 != 0, .in_fiber = i / 4 != 0};
        struct child child;
        /* These two are never blocked there: sysmon, which blocks all, may get it, and it stays with sysmon. */
        if (under_qemu() && sent.by_kill) continue;
        run_child(&child, send, &sent);
        printf("signal %d, by %s, in %s\n", sent.signal, sent.by_kill ? "kill" : "raise",
               sent.in_fiber ? "a fiber" : "a thread");
        if (!WIFSIGNALED(child.status)) show_child(&child);
        CHECK(WIFSIGNALED(child.status));
        CHECK_EQ(WTERMSIG(child.status), sent.signal);
        CHECK(!said(&child, "ccc: fatal"));
    }
}

TEST(a_signal_that_is_ignored_stays_so) {
    skip_reported_faults();
    const int signals[] = {SIGSEGV, SIGBUS};
    for (int i = 0; i < 8; i++) {
        struct sent sent = {
            .signal = signals[i % 2], .by_kill = i / 2 % 2 != 0, .in_fiber = i / 4 != 0, .ignored = true};
        struct child child;
        run_child(&child, send, &sent);
        if (child.status != 0) show_child(&child);
        CHECK_EQ(child.status, 0);
    }
}

/* ---- handlers in a chain ---- */

static struct sigaction under;
static volatile int calls;

/* As a program's handler should: it passes signals that it does not know to the previous handler. */
static void pass_on(int sig, siginfo_t *info, void *context) {
    if (++calls > 3) _exit(43); /* a ring */
    if (under.sa_flags & SA_SIGINFO)
        under.sa_sigaction(sig, info, context);
    else if (under.sa_handler == SIG_DFL)
        signal(sig, SIG_DFL);
    else
        under.sa_handler(sig);
}

/* Installed over the runtime's, which then stops and starts again, on top. */
static void restart_under_a_handler(void *arg) {
    struct sigaction action = {.sa_sigaction = pass_on, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    for (int i = 0; i < *(int *)arg; i++) {
        CHECK_EQ(cc_runtime_init(NULL), 0);
        if (i == 0) CHECK_EQ(sigaction(SIGSEGV, &action, &under), 0);
        CHECK_EQ(cc_runtime_shutdown(UINT64_MAX), 0);
    }
    struct victim v = {.fn = touch_nowhere, .workers = 2};
    die_in_a_fiber(&v);
}

TEST(a_chain_of_handlers_has_an_end) {
    skip_reported_faults();
    for (int restarts = 1; restarts <= 6; restarts++) {
        struct child child;
        run_child(&child, restart_under_a_handler, &restarts);
        if (!WIFSIGNALED(child.status)) show_child(&child);
        CHECK(!WIFEXITED(child.status) || WEXITSTATUS(child.status) != 43);
        if (judged_by_sanitizer(&child)) continue;
        CHECK(WIFSIGNALED(child.status));
        CHECK_EQ(WTERMSIG(child.status), SIGSEGV);
        CHECK(said(&child, "segmentation fault in fiber"));
    }
}

/* A handler that wants one signal only gets one. */
static void count_once(int sig) {
    (void)sig;
    if (++calls > 1) _exit(43);
}

static void fault_with_handler_for_once(void *arg) {
    (void)arg;
    struct sigaction action = {.sa_handler = count_once, .sa_flags = (int)SA_RESETHAND};
    CHECK_EQ(sigaction(SIGSEGV, &action, NULL), 0);
    struct victim v = {.fn = touch_nowhere, .workers = 2};
    die_in_a_fiber(&v);
}

TEST(a_handler_for_once_is_called_once) {
    skip_reported_faults();
    struct child child;
    run_child(&child, fault_with_handler_for_once, NULL);
    if (!WIFSIGNALED(child.status)) show_child(&child);
    CHECK(WIFSIGNALED(child.status));
}

/* A fault on an OS thread is not reported by the runtime, even when the address is in a stack's guard. */
static void fault_on_a_thread(void *arg) {
    struct sigaction action = {.sa_sigaction = handle_with_info, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    (void)arg;
    CHECK_EQ(sigaction(SIGSEGV, &action, NULL), 0);
    CHECK_EQ(cc_runtime_init(NULL), 0);
    *(volatile char *)nowhere = 1;
}

TEST(a_fault_on_a_thread_reaches_the_programs_handler) {
    skip_reported_faults();
    struct child child;
    run_child(&child, fault_on_a_thread, NULL);
    show_child(&child);
    CHECK(WIFEXITED(child.status));
    CHECK_EQ(WEXITSTATUS(child.status), 42);
    CHECK(!said(&child, "overflow"));
}

/* After the end the program's handler is back. */
static void fault_after_shutdown(void *arg) {
    struct sigaction action = {.sa_sigaction = handle_with_info, .sa_flags = SA_SIGINFO}, now;
    (void)arg;
    CHECK_EQ(sigaction(SIGSEGV, &action, NULL), 0);
    CHECK_EQ(cc_runtime_init(NULL), 0);
    CHECK_EQ(cc_runtime_shutdown(UINT64_MAX), 0);
    CHECK_EQ(sigaction(SIGSEGV, NULL, &now), 0);
    CHECK(now.sa_sigaction == handle_with_info);
    *(volatile char *)nowhere = 1;
}

TEST(the_programs_handler_is_back_after_shutdown) {
    skip_reported_faults();
    struct child child;
    run_child(&child, fault_after_shutdown, NULL);
    show_child(&child);
    CHECK(WIFEXITED(child.status));
    CHECK_EQ(WEXITSTATUS(child.status), 42);
}
