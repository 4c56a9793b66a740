/* unwind.c - complete backtraces: every frame, in order, and no invented one.
 *
 * Functions with all kinds of frames call each other. In the last one the thread spins, parks, waits in the kernel,
 * panics or handles a signal, and its backtrace is taken. unwind_plain.c compiles the same as users do, without frame
 * pointers.
 */
#include "harness.h"

#include "arch/escape.h"
#include "base/attr.h"
#include "base/san.h"
#include "inspect/linux/step.h"
#include "inspect/sample.h"
#include "inspect/symbol.h"
#include "inspect/threads.h"
#include "inspect/unwind.h"
#include "inspect/view.h"
#include "os/thread.h"
#include "panic/panic.h"

#include <ccc/ccc.h>

#include <alloca.h>
#include <errno.h>
#include <execinfo.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FRAMES = 64 };

/* No tail call, no inlining: a frame stays. */
#define STAY() __asm__ volatile("" ::: "memory")
#define RUNG static CC_NOINLINE void

enum how { SPIN, READ, PARK, YIELD, PANIC, SIGNAL, FAULT, LOOK, NOTHING };

struct visit {
    enum how how;
    const void *bottom, *top; /* of the stack */
    _Atomic int tid, go;
    int ends[2];
    CCChan *silent;
    size_t amount;
    CCPanic panic;
    const void *frames[FRAMES];
    unsigned count;
    struct doubt doubt;
    void *others[FRAMES]; /* what the C library says */
    int others_count;
};

static struct visit *visiting; /* for the signal handler */

/* ---- names ---- */

static void name_of(const void *frame, struct symbol *found) {
    struct symbol s[8];
    unsigned n = cc__symbol_find_inlined(frame, s, array_len(s));
    *found = s[n - 1];                        /* the one that is in the machine code */
    char *dot = strchr(found->function, '.'); /* a part of a function, or a variant */
    if (dot != NULL) *dot = '\0';
}

static void print_frames(const void *const *frames, unsigned n, struct doubt doubt) {
    for (unsigned i = 0; i < n; i++) {
        char text[256];
        cc__symbol_text(frames[i], text, sizeof text);
        printf("  %u %s%p %s\n", i, doubt.guessed >> i & 1 ? "? " : "", frames[i], text);
    }
    if (doubt.cut) printf("  cut\n");
}

/* The frames from number `at` on have these names. Returns the number of the next one. */
static unsigned check_names(const void *const *frames, unsigned n, unsigned at, const char *const *names) {
    for (; *names != NULL; names++, at++) {
        struct symbol s;
        CHECK(at < n);
        name_of(frames[at], &s);
        if (strcmp(s.function, *names) != 0) test_fail(__FILE__, __LINE__, "'%s', and not '%s'", s.function, *names);
    }
    return at;
}

/* The frame of a function: the first that has its name. */
static unsigned find_name(const void *const *frames, unsigned n, const char *name) {
    struct symbol s;
    unsigned i = 0;
    do CHECK(i < n), name_of(frames[i], &s);
    while (strcmp(s.function, name) != 0 && ++i);
    return i;
}

static const char *const ladder[] = {"rung_6", "rung_5", "rung_4", "rung_3", "rung_2", "rung_1", "climb", NULL};
#ifndef CC_ARCH_UCONTEXT
static const char *const below_fiber[] = {"cc__guard",
#ifdef CC_ESCAPE_BY_SETJMP
                                          "cc__escape_call",
#endif
                                          "call_apart",      "cc__run_fiber", "cc__context_first", NULL};
#endif

/* How many frames are certain. All of them; but a C library may have functions without unwind information. */
static unsigned count_certain(const void *const *frames, unsigned n, struct doubt doubt) {
    struct cfi_row row;
    unsigned certain = doubt.guessed != 0 ? (unsigned)__builtin_ctzll(doubt.guessed) : n;
    if (certain < n || doubt.cut) CHECK(!cc__cfi_row((uintptr_t)frames[certain - 1] - 1, &row));
    return certain;
}

/* From `first` on, all the way to the stack's first frame. */
static void check_ladder(const void *const *frames, unsigned n, struct doubt doubt, const char *first, bool fiber) {
    print_frames(frames, n, doubt);
    CHECK(n < FRAMES);
    unsigned certain = count_certain(frames, n, doubt), at = find_name(frames, n, first);
    at = check_names(frames, certain, at + (strcmp(first, "rung_6") != 0), ladder);
#ifndef CC_ARCH_UCONTEXT
    if (fiber) CHECK_EQ(check_names(frames, certain, at, below_fiber), n);
#endif
    (void)at, (void)fiber;
}

/* ---- the ladder ---- */

RUNG spin_here(struct visit *v) {
    v->tid = cc__thread_id();
    while (!v->go) STAY();
}

/* Old words in a frame: the return address of a call that ended long ago, with a frame pointer that leads on. */
struct old {
    const void *fp, *back;
};
static struct old left_behind;

RUNG leave_behind(const void *fp) {
    left_behind = (struct old){fp, __builtin_return_address(0)};
    STAY();
}

RUNG was_here_once(const void *fp) {
    leave_behind(fp);
    STAY();
}

/* Frames under the address sanitizer may be elsewhere. */
__attribute__((no_sanitize("address"))) RUNG read_here(struct visit *v) {
    char c;
    volatile struct old junk[100];
    for (unsigned i = 0; i < array_len(junk); i++) {
        junk[i].fp = left_behind.fp;
        junk[i].back = left_behind.back;
    }
    v->tid = cc__thread_id();
    CHECK_EQ(read(v->ends[0], &c, 1), 1);
    STAY();
    CHECK(junk[v->amount % array_len(junk)].back == left_behind.back);
}

RUNG park_here(struct visit *v) {
    int value;
    v->tid = cc__thread_id();
    CHECK_EQ(cc_chan_recv(v->silent, &value, sizeof value), EPIPE);
    STAY();
}

RUNG yield_here(struct visit *v) {
    v->tid = cc__thread_id();
    do cc_yield(); /* until there is another one */
    while (!v->go);
    STAY();
}

/* A second time finds the same, from cached rows; so does the unwinder for stacks of others. */
static void check_again(const struct visit *v, struct picture p, const void *back) {
    const void *frames[FRAMES];
    struct doubt doubt;
    unsigned n = cc__unwind(&p, frames, FRAMES, &doubt);
    CHECK(n > 1 && v->count > 2);
    CHECK_EQ(n - 1, v->count - 2); /* without the frames of cc__unwind_here and its caller */
    CHECK_EQ(memcmp(frames + 1, v->frames + 2, (n - 1) * sizeof frames[0]), 0);
    CHECK_EQ(doubt.guessed >> 1, v->doubt.guessed >> 2);
    CHECK_EQ(cc__unwind_here(v->bottom, v->top, back, frames, FRAMES, &doubt), n - 1);
    CHECK_EQ(memcmp(frames, v->frames + 2, (n - 1) * sizeof frames[0]), 0);
}

RUNG look_here(struct visit *v) {
    struct picture p = {
        .regs = cc__registers_here(), .low = (uintptr_t)v->bottom, .top = (uintptr_t)v->top, .mapped = true};
    v->count = cc__unwind_here(v->bottom, v->top, NULL, v->frames, FRAMES, &v->doubt);
    check_again(v, p, __builtin_return_address(0));
    v->others_count = backtrace(v->others, FRAMES);
    STAY();
}

void fault_here(void);
__asm__(".text\n"
        ".p2align 4\n"
        "nop\n nop\n"
        "fault_here: .cfi_startproc\n"
#if defined(__x86_64__)
        "ud2\n"
#elif defined(__aarch64__)
        ".4byte 0\n"
#elif defined(__riscv)
        ".4byte 0xc0001073\n" /* unimp */
#endif
        "ret\n"
        ".cfi_endproc\n");

RUNG rung_6(struct visit *v) {
    switch (v->how) {
    case SPIN:
        spin_here(v);
        break;
    case READ:
        read_here(v);
        break;
    case PARK:
        park_here(v);
        break;
    case YIELD:
        yield_here(v);
        break;
    case PANIC:
        cc_panic("from the top");
        break;
    case SIGNAL:
        raise(SIGUSR1);
        break;
    case FAULT:
        fault_here();
        break;
    case NOTHING:
        break;
    default:
        look_here(v);
    }
    STAY();
}

/* Larger than a page. */
RUNG rung_5(struct visit *v) {
    volatile char large[6000];
    large[0] = large[sizeof large - 1] = (char)v->how;
    rung_6(v);
    CHECK_EQ(large[0], large[sizeof large - 1]);
}

/* Of a size that the compiler does not know. */
RUNG rung_4(struct visit *v) {
    volatile char *some = alloca(v->amount);
    some[0] = (char)v->how;
    rung_5(v);
    CHECK_EQ(some[0], (char)v->how);
}

/* Aligned to more than a call is. */
RUNG rung_3(struct visit *v) {
    _Alignas(64) volatile char line[64];
    line[0] = (char)v->how;
    CHECK_EQ((uintptr_t)line % 64, 0);
    rung_4(v);
    CHECK_EQ(line[0], (char)v->how);
}

/* With all registers in use that a call preserves. */
RUNG rung_2(struct visit *v) {
    size_t a = v->amount, b = a * 3, c = a ^ b, d = c + 7, e = d * a, f = e ^ b;
    __asm__ volatile("" : "+r"(a), "+r"(b), "+r"(c), "+r"(d), "+r"(e), "+r"(f));
    rung_3(v);
    __asm__ volatile("" : "+r"(a), "+r"(b), "+r"(c), "+r"(d), "+r"(e), "+r"(f));
    CHECK(a * 3 == b && (a ^ b) == c && c + 7 == d && d * a == e && (e ^ b) == f);
}

RUNG rung_1(struct visit *v) {
    rung_2(v);
    STAY();
}

static CC_NOINLINE void *climb(void *arg) {
    struct visit *v = arg;
    was_here_once(__builtin_frame_address(0));
    v->amount = 1000;
    rung_1(v);
    STAY();
    return arg;
}

/* ---- who unwinds ---- */

static void *thread_main(void *arg) {
    struct visit *v = arg;
    cc__thread_stack(&v->bottom, &v->top);
    climb(v);
    STAY();
    return NULL;
}

static CC_NOINLINE void *fiber_main(void *arg) {
    struct visit *v = arg;
    const struct stack *s = cc__get(&cc__sched_current(cc__worker())->stack);
    v->bottom = s->base + cc__stack_guard_size(s);
    v->top = s->base + cc__stack_size(s);
    return climb(v); /* in its place */
}

static CC_NOINLINE void *hosted_main(void *arg) {
    struct visit *v = arg;
    const struct stack *s = cc__hosted_stack();
    v->bottom = s->base + cc__stack_guard_size(s);
    v->top = s->base + cc__stack_size(s);
    climb(v);
    STAY();
    return NULL;
}

static void *host(void *arg) {
    CHECK_EQ(cc_hosted_call(hosted_main, arg, NULL, NULL), 0);
    return NULL;
}

/* Behind the ladder, the hosted call's own frames, to the first of its stack. */
static void check_hosted(const struct visit *v, const char *first) {
    check_ladder(v->frames, v->count, v->doubt, first, false);
#ifndef CC_ARCH_UCONTEXT
    unsigned certain = count_certain(v->frames, v->count, v->doubt), at = find_name(v->frames, v->count, "climb");
    CHECK_EQ(certain, v->count);
    at = check_names(v->frames, certain, at + 1, (const char *const[]){"hosted_main", NULL});
    CHECK_EQ(find_name(v->frames, v->count, "cc__context_first") + 1, v->count);
    for (; at + 1 < v->count; at++) { /* in between is our own */
        struct symbol s;
        name_of(v->frames[at], &s);
        CHECK(strcmp(s.file, "unwind.c") != 0);
    }
#endif
}

static void need_names(void) {
#ifndef CC_BACKTRACE
    SKIP("built without libbacktrace");
#endif
}

static void need_samples(void) {
    need_names();
#ifdef CC_TSAN
    SKIP("the thread sanitizer delivers signals late");
#endif
    if (cc__san_on_valgrind()) SKIP("under valgrind threads wait in its own code");
}

static void start_runtime(void) {
    CCRuntimeConfig config = {.workers = 2};
    CHECK_EQ(cc_runtime_init(&config), 0);
}

static CCTask start_fiber(struct visit *v) {
    CCTask task;
    CHECK_EQ(cc_spawn(&task, climb, v, NULL), 0);
    return task;
}

/* The fiber with that function, when it is in that state. */
static void view_fiber(CCTaskFn fn, enum fiber_state state, struct view *view) {
    for (;;) {
        for (uint32_t slot = 0; slot < cc__pool_size(); slot++)
            if (cc__view_take(slot, true, view) && view->fn == fn && view->state == state && !view->moves &&
                (state != FIBER_RUNNING || view->frames > 0))
                return;
        cc__thread_yield();
    }
}

/* ---- those that run ---- */

TEST(a_running_thread) {
    need_samples();
    struct visit v = {.how = SPIN};
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, thread_main, &v), 0);
    while (v.tid == 0) cc__thread_yield();
    for (long i = test_scale(100); i > 0;) {
        v.count = cc__sample_thread(v.tid, v.bottom, v.top, v.frames, FRAMES, &v.doubt);
        if (v.count == 0) continue; /* it has to get a CPU */
        check_ladder(v.frames, v.count, v.doubt, "spin_here", false);
        CHECK_EQ(find_name(v.frames, v.count, "spin_here"), 0);
        i--;
    }
    v.go = 1;
    CHECK_EQ(pthread_join(thread, NULL), 0);
}

TEST(a_running_fiber) {
    need_samples();
    start_runtime();
    struct visit v = {.how = SPIN};
    struct view view;
    CCTask task = start_fiber(&v);
    while (v.tid == 0) cc__thread_yield();
    for (long i = test_scale(20); i > 0; i--) {
        view_fiber(climb, FIBER_RUNNING, &view);
        check_ladder(view.frame, view.frames, view.doubt, "spin_here", true);
        CHECK_EQ(find_name(view.frame, view.frames, "spin_here"), 0);
    }
    v.go = 1;
    CHECK_EQ(cc_task_join(&task, NULL), 0);
    CHECK_EQ(cc_runtime_shutdown(10000), 0);
}

TEST(a_running_hosted_call) {
    need_samples();
    struct visit v = {.how = SPIN};
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, host, &v), 0);
    while (v.tid == 0) cc__thread_yield();
    for (long i = test_scale(20); i > 0;) {
        v.count = cc__sample_thread(v.tid, v.bottom, v.top, v.frames, FRAMES, &v.doubt);
        if (v.count == 0) continue; /* it has to get a CPU */
        check_hosted(&v, "spin_here");
        CHECK_EQ(find_name(v.frames, v.count, "spin_here"), 0);
        i--;
    }
    v.go = 1;
    CHECK_EQ(pthread_join(thread, NULL), 0);
    CHECK_EQ(cc_runtime_shutdown(10000), 0);
}

/* The same words as the C library's unwinder finds, all of them. */
static void compare_with_libc(const struct visit *v) {
    print_frames(v->frames, v->count, v->doubt);
    int skip = 0;
    while (skip < v->others_count && v->others[skip] != v->frames[2]) skip++; /* 0, 1: in cc__unwind_here, look_here */
    CHECK(skip < v->others_count);
    unsigned certain = count_certain(v->frames, v->count, v->doubt);
    CHECK_EQ(v->others_count - skip, certain - 2);
    for (unsigned i = 2; i < certain; i++) CHECK(v->frames[i] == v->others[skip + (int)i - 2]);
}

TEST(as_the_c_library_sees_it) {
    struct visit v = {.how = LOOK}, w = {.how = LOOK};
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, thread_main, &v), 0);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    compare_with_libc(&v);
    start_runtime();
    CCTask task;
    CHECK_EQ(cc_spawn(&task, fiber_main, &w, &(CCSpawnOptions){.stack_size = 256 * 1024}), 0);
    CHECK_EQ(cc_task_join(&task, NULL), 0);
    compare_with_libc(&w);
    CHECK_EQ(cc_runtime_shutdown(10000), 0);
}

/* ---- simple rows ---- */

#ifndef CC_ARCH_UCONTEXT
/* Of plain functions: cc__unwind_simple suffices, and does not leave the stack. */
static CC_NOINLINE void look_deep(struct visit *v, unsigned depth) {
    if (depth > 0) {
        look_deep(v, depth - 1);
    } else {
        struct walk w = {.low = (uintptr_t)v->bottom, .top = (uintptr_t)v->top};
        w.fp = (uintptr_t)__builtin_frame_address(0);
        cc__registers_read(&w.pc, &w.sp);
        v->count = cc__unwind_simple(w, v->frames, FRAMES, NULL);
        v->others_count = backtrace(v->others, FRAMES);
        const void *frames[FRAMES];
        CHECK_EQ(cc__unwind_simple(w, frames, 4, NULL), 4);
        CHECK_EQ(memcmp(frames, v->frames, 4 * sizeof frames[0]), 0);
        for (w.top = w.sp; w.top < v->amount; w.top += sizeof w.top)
            CHECK_EQ(cc__unwind_simple(w, frames, FRAMES, NULL), 0); /* it ends in the middle of the frames */
        CHECK_EQ(cc__unwind_simple((struct walk){.pc = w.pc, .sp = w.sp, .top = w.sp}, frames, FRAMES, NULL), 0);
    }
    STAY();
}

static CC_NOINLINE void *deep_main(void *arg) {
    struct visit *v = arg;
    const struct stack *s = cc__get(&cc__sched_current(cc__worker())->stack);
    v->bottom = s->base + cc__stack_guard_size(s);
    v->top = s->base + cc__stack_size(s);
    v->amount = (uintptr_t)__builtin_frame_address(0);
    look_deep(v, 10);
    STAY();
    return NULL;
}

TEST(through_simple_rows) {
    struct visit v = {0};
    start_runtime();
    CCTask task;
    CHECK_EQ(cc_spawn(&task, deep_main, &v, &(CCSpawnOptions){.stack_size = 256 * 1024}), 0);
    CHECK_EQ(cc_task_join(&task, NULL), 0);
    print_frames(v.frames, v.count, v.doubt);
    int skip = 0;
    while (skip < v.others_count && v.others[skip] != v.frames[1]) skip++;
    CHECK(v.count > 12 && v.others_count - skip == (int)v.count - 1);
    CHECK_EQ(memcmp(v.frames + 1, v.others + skip, (v.count - 1) * sizeof v.frames[0]), 0);
    CHECK_EQ(cc_runtime_shutdown(10000), 0);
}
#endif

/* ---- those that wait ---- */

/* Valgrind and qemu have stacks of their own in the kernel. */
static bool shows_wait(const struct visit *v) {
    struct thread_call call;
    do CHECK(cc__threads_call(v->tid, &call));
    while (call.running || call.number < 0);
    return call.sp >= (uintptr_t)v->bottom && call.sp < (uintptr_t)v->top;
}

TEST(a_thread_in_the_kernel) {
    need_names();
    struct visit v = {.how = READ};
    pthread_t thread;
    CHECK_EQ(pipe(v.ends), 0);
    CHECK_EQ(pthread_create(&thread, NULL, thread_main, &v), 0);
    while (v.tid == 0) cc__thread_yield();
    bool known = shows_wait(&v);
    if (known) {
        v.count = cc__sample_thread(v.tid, v.bottom, v.top, v.frames, FRAMES, &v.doubt);
        check_ladder(v.frames, v.count, v.doubt, "read_here", false);
        /* What is below is the C library's, and perhaps a sanitizer's. */
        for (unsigned i = 0; i < find_name(v.frames, v.count, "read_here"); i++) {
            struct symbol s;
            name_of(v.frames[i], &s);
            CHECK(strcmp(s.module, "libc.so.6") == 0 || strstr(s.function, "read") != NULL);
        }
    }
    CHECK_EQ(write(v.ends[1], "x", 1), 1);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    if (!known) SKIP("the system does not show where a thread waits");
}

TEST(a_hosted_call_in_the_kernel) {
    need_names();
    struct visit v = {.how = READ};
    pthread_t thread;
    CHECK_EQ(pipe(v.ends), 0);
    CHECK_EQ(pthread_create(&thread, NULL, host, &v), 0);
    while (v.tid == 0) cc__thread_yield();
    bool known = shows_wait(&v);
    if (known) {
        v.count = cc__sample_thread(v.tid, v.bottom, v.top, v.frames, FRAMES, &v.doubt);
        check_hosted(&v, "read_here");
    }
    CHECK_EQ(write(v.ends[1], "x", 1), 1);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    CHECK_EQ(cc_runtime_shutdown(10000), 0);
    if (!known) SKIP("the system does not show where a thread waits");
}

static void *keep_the_worker(void *arg) {
    struct visit *v = arg;
    while (!v->go) STAY();
    return NULL;
}

TEST(a_fiber_that_is_ready) {
    need_names();
    CHECK_EQ(cc_runtime_init(&(CCRuntimeConfig){.workers = 1, .max_workers = 1}), 0);
    struct visit v = {.how = YIELD};
    struct view view;
    CCTask task = start_fiber(&v), other;
    CHECK_EQ(cc_spawn(&other, keep_the_worker, &v, NULL), 0);
    view_fiber(climb, FIBER_RUNNABLE, &view);
    if (view.started) check_ladder(view.frame, view.frames, view.doubt, "yield_here", true);
    v.go = 1;
    CHECK_EQ(cc_task_join(&task, NULL), 0);
    CHECK_EQ(cc_task_join(&other, NULL), 0);
    CHECK_EQ(cc_runtime_shutdown(10000), 0);
}

TEST(a_parked_fiber) {
    need_names();
    start_runtime();
    struct visit v = {.how = PARK};
    struct view view, bare;
    v.silent = cc_chan_create(sizeof(int), 0);
    CCTask task = start_fiber(&v);
    view_fiber(climb, FIBER_PARKED, &view);
    check_ladder(view.frame, view.frames, view.doubt, "park_here", true);
    CHECK(cc__view_take(view.slot, false, &bare)); /* frames are not looked for where none are wanted */
    CHECK_EQ(bare.frames, 0);
    CHECK_EQ(bare.sp, view.sp);
    /* What is below is our own. */
    for (unsigned i = 0; i < find_name(view.frame, view.frames, "park_here"); i++) {
        struct symbol s;
        name_of(view.frame[i], &s);
        CHECK(strcmp(s.file, "unwind.c") != 0);
    }
    cc_chan_close(v.silent);
    CHECK_EQ(cc_task_join(&task, NULL), 0);
    cc_chan_free(v.silent);
    CHECK_EQ(cc_runtime_shutdown(10000), 0);
}

/* A joiner runs it on its own stack: then the frames lead on into the joiner's. */
static CC_NOINLINE void *climb_there(void *arg) {
    climb(arg);
    STAY();
    return arg;
}

static void *join_climber(void *arg) {
    CCTask task = cc_fiber_spawn_task(climb_there, arg);
    CHECK_EQ(cc_task_join(&task, NULL), 0);
    STAY();
    return arg;
}

TEST(a_fiber_that_is_joined) {
    need_names();
    start_runtime();
    struct visit v = {.how = PARK};
    struct view view;
    v.silent = cc_chan_create(sizeof(int), 0);
    CCTask task = cc_fiber_spawn_task(join_climber, &v);
    view_fiber(climb_there, FIBER_PARKED, &view);
    check_ladder(view.frame, view.frames, view.doubt, "park_here", false);
    unsigned at = find_name(view.frame, view.frames, "climb_there");
    CHECK_EQ(find_name(view.frame, view.frames, "climb") + 1, at);
    cc__view_trim(&view);
    CHECK_EQ(check_names(view.frame, view.frames, view.frames - 1, (const char *const[]){"climb_there", NULL}),
             view.frames);
    cc_chan_close(v.silent);
    CHECK_EQ(cc_task_join(&task, NULL), 0);
    cc_chan_free(v.silent);
    CHECK_EQ(cc_runtime_shutdown(10000), 0);
}

/* ---- panics ---- */

static void check_panic(const CCPanic *info, bool fiber) {
    struct doubt doubt = {.guessed = info->frames_guessed};
    check_ladder(info->frames, info->frame_count, doubt, "rung_6", fiber);
    CHECK_EQ(find_name(info->frames, info->frame_count, "rung_6"), 0);
}

static CC_NOINLINE void climb_in_scope(void *arg) {
    climb(arg);
    STAY();
}

TEST(a_panic) {
    need_names();
    struct visit v = {.how = PANIC};
    struct symbol s;
    CHECK_EQ(cc_try(climb_in_scope, &v, &v.panic), ENOTRECOVERABLE);
    check_panic(&v.panic, false);
    memset(&v.panic, 0, sizeof v.panic);
    CHECK_EQ(cc_hosted_call(climb, &v, NULL, &v.panic), ENOTRECOVERABLE);
    check_panic(&v.panic, false);
    name_of(v.panic.frames[v.panic.frame_count - 1], &s);
#ifndef CC_ARCH_UCONTEXT
    CHECK(strcmp(s.function, "cc__context_first") == 0);
#endif
    CCTask task = start_fiber(&v); /* the hosted call has started the runtime */
    CCFiberId id = task.id;
    CHECK_EQ(cc_task_join(&task, NULL), ENOTRECOVERABLE);
    CHECK_EQ(cc_panic_find(id, &v.panic), 0);
    check_panic(&v.panic, true);
    CHECK_EQ(cc_runtime_shutdown(10000), 0);
}

/* ---- at every instruction ---- */

#if defined(__x86_64__) && !defined(CC_ASAN) && !defined(CC_TSAN)
/* The CPU traps after each instruction: prologues, epilogues, entries of the procedure linkage table, the dynamic
 * linker that looks up a function at its first call. At every instruction the frames above are the same. */
enum { TRAPS = 0x100 }; /* the flag that makes the CPU do so */

static struct {
    const void *low, *top;
    const void *base; /* where the walk is known to come by */
    volatile bool over;
    unsigned long instructions, wrong;
    uintptr_t wrong_at;
} steps;

static void on_trap(int sig, siginfo_t *info, void *context) {
    const void *frames[FRAMES];
    struct doubt doubt;
    struct picture p = {.regs = cc__registers_interrupted(context), .mapped = true};
    greg_t *flags = &((ucontext_t *)context)->uc_mcontext.gregs[REG_EFL];
    *flags = steps.over ? *flags & ~(greg_t)TRAPS : *flags | TRAPS;
    (void)sig, (void)info;
    p.low = (uintptr_t)steps.low;
    p.top = (uintptr_t)steps.top;
    unsigned n = cc__unwind(&p, frames, FRAMES, &doubt), at = 0;
    while (at < n && frames[at] != steps.base) at++;
    steps.instructions++;
    if (at < n && doubt.guessed == 0 && !doubt.cut) return;
    if (steps.wrong++ == 0) steps.wrong_at = p.regs.pc;
}

static CC_NOINLINE void step_through(struct visit *v) {
    steps.base = __builtin_return_address(0);
    raise(SIGTRAP);
    rung_1(v);
    (void)l64a(7); /* not called before */
    steps.over = true;
    STAY();
}

TEST(at_every_instruction) {
    if (cc__san_on_valgrind()) SKIP("valgrind does not trap");
    struct sigaction action = {.sa_flags = SA_SIGINFO | SA_ONSTACK}, before;
    static char stack[65536];
    stack_t other = {.ss_sp = stack, .ss_size = sizeof stack};
    struct visit v = {.how = NOTHING, .amount = 1000};
    action.sa_sigaction = on_trap;
    CHECK_EQ(sigaltstack(&other, NULL), 0);
    CHECK_EQ(sigaction(SIGTRAP, &action, &before), 0);
    cc__thread_stack(&steps.low, &steps.top);
    step_through(&v);
    CHECK_EQ(sigaction(SIGTRAP, &before, NULL), 0);
    char text[256];
    cc__symbol_text((const void *)(steps.wrong_at + 1), text, sizeof text);
    printf("%lu instructions, %lu wrong, the first at %s\n", steps.instructions, steps.wrong, text);
    CHECK(steps.instructions > 100);
    CHECK_EQ(steps.wrong, 0);
}
#endif

/* ---- signals ---- */

RUNG look_around(struct visit *v) {
    v->count = cc__unwind_here(v->bottom, v->top, NULL, v->frames, FRAMES, &v->doubt);
    STAY();
}

static void on_signal(int sig, siginfo_t *info, void *context) {
    (void)info;
    look_around(visiting);
    if (sig != SIGILL) return;
    mcontext_t *m = &((ucontext_t *)context)->uc_mcontext; /* continues after the instruction */
#if defined(__x86_64__)
    m->gregs[REG_RIP] += 2;
#elif defined(__aarch64__)
    m->pc += 4;
#elif defined(__riscv)
    m->__gregs[REG_PC] += 4;
#endif
}

static void check_signal(enum how how, int sig) {
    struct visit v = {.how = how};
    struct sigaction action = {.sa_flags = SA_SIGINFO};
    pthread_t thread;
    visiting = &v;
    action.sa_sigaction = on_signal;
    CHECK_EQ(sigaction(sig, &action, NULL), 0);
    CHECK_EQ(pthread_create(&thread, NULL, thread_main, &v), 0);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    check_ladder(v.frames, v.count, v.doubt, "rung_6", false);
    CHECK_EQ(find_name(v.frames, v.count, "on_signal"), 2);
}

TEST(through_a_signal_handler) {
    need_names();
    check_signal(SIGNAL, SIGUSR1);
}

/* What was interrupted is the first instruction of a function: the one before it belongs to nobody. */
TEST(through_a_fault) {
    need_names();
    check_signal(FAULT, SIGILL);
}
