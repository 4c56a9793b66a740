/* context.c - a context switch passes one value, preserves the registers that the ABI requires, and starts fresh
 * stacks aligned. */
#include "harness.h"

#include "arch/context.h"
#include "base/san.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unwind.h>

enum { STACK_BYTES = 256 * 1024 };

/* A stack and the place where it stopped. */
struct side {
    struct context context;
    struct san san;
    char *stack;
};

static struct side here; /* the thread's own stack */

static void open_native(void) {
    cc__context_native(&here.context);
    cc__san_native(&here.san);
}

/* It begins `below` bytes under the end of the stack. */
static void open_side(struct side *side, context_fn fn, size_t below) {
    side->stack = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(side->stack != MAP_FAILED);
    (void)cc__san_stack_map(side->stack, STACK_BYTES);
    cc__san_begin(&side->san, side->stack, STACK_BYTES);
    char *top = side->stack + STACK_BYTES - below;
    cc__context_start(&side->context, top, fn);
}

/* A context that was left by leave_for; nothing runs on it any more. */
static void close_side(struct side *side) {
    cc__san_end(&side->san);
    CHECK_EQ(munmap(side->stack, STACK_BYTES), 0);
}

static inline void arrive(struct side *self) {
    cc__san_arrive(&self->san);
}

/* Not inlined, so that the callers depend on callee-saved registers, as in a real program. */
static CC_NOINLINE void *go(struct side *from, struct side *to, void *value) {
    cc__san_leave(&from->san, &to->san);
    value = cc__context_switch(&from->context, &to->context, value);
    cc__san_arrive(&from->san);
    return value;
}

static CC_NORETURN void leave_for(struct side *to, void *value) {
    cc__san_leave(NULL, &to->san);
    cc__context_jump(&to->context, value);
}

static void *number(uintptr_t n) {
    return (void *)n;
}

/* ---- values ---- */

static struct side echo;

static void add_one_for_ever(void *value) {
    arrive(&echo);
    for (;;) value = go(&echo, &here, number((uintptr_t)value + 1));
}

TEST(value_passes_both_ways) {
    open_native();
    open_side(&echo, add_one_for_ever, 0);
    long rounds = test_rounds(100000, 10000000);
    for (long i = 0; i < rounds; i++) CHECK_EQ((uintptr_t)go(&here, &echo, number((uintptr_t)i * 3)), i * 3 + 1);
    CHECK((uintptr_t)go(&here, &echo, number(UINTPTR_MAX - 1)) == UINTPTR_MAX); /* every bit of it */
    close_side(&echo);
}

/* ---- a ring of many contexts ---- */

enum { RING = 64 };
static struct side ring[RING];

static void pass_on(void *value) {
    size_t at = (uintptr_t)value % RING; /* the first value that arrives is the context's number */
    arrive(&ring[at]);
    for (;;) {
        CHECK_EQ((uintptr_t)value % RING, at);
        struct side *next = at + 1 < RING ? &ring[at + 1] : &here;
        value = go(&ring[at], next, number((uintptr_t)value + 1));
    }
}

TEST(many_contexts_keep_apart) {
    if (cc__san_on_valgrind()) SKIP("Valgrind takes unregistered stacks for one deep stack");
    open_native();
    for (int i = 0; i < RING; i++) open_side(&ring[i], pass_on, 0);
    long rounds = test_rounds(1000, 100000);
    uintptr_t value = 0;
    for (long i = 0; i < rounds; i++) {
        value = (uintptr_t)go(&here, &ring[0], number(value));
        CHECK_EQ(value, (i + 1) * RING);
    }
    for (int i = 0; i < RING; i++) close_side(&ring[i]);
}

/* ---- the last switch ---- */

static struct side leaver;

static void leave_at_once(void *value) {
    arrive(&leaver);
    leave_for(&here, number((uintptr_t)value * 2));
}

TEST(jump_leaves_for_good) {
    open_native();
    for (uintptr_t i = 1; i <= 1000; i++) {
        open_side(&leaver, leave_at_once, 0);
        CHECK_EQ((uintptr_t)go(&here, &leaver, number(i)), 2 * i);
        close_side(&leaver);
    }
}

/* ---- registers ---- */

/* Keeps more values alive across the switch than there are registers that survive a call; `seed` makes them
 * different on each side, so that a register which leaks from one side to the other shows. */
static CC_NOINLINE void churn(struct side *self, struct side *other, uint64_t seed, long rounds) {
    uint64_t a = seed, b = seed * 3, c = seed * 5, d = seed * 7, e = seed * 11, f = seed * 13, g = seed * 17,
             h = seed * 19;
    uint64_t i = seed * 23, j = seed * 29, k = seed * 31, l = seed * 37;
    double p = (double)seed, q = p * 2, r = p * 3, s = p * 4, t = p * 5, u = p * 6, v = p * 7, w = p * 8, x = p * 9,
           y = p * 10;
    float z = (float)seed;
    for (long round = 0; round < rounds; round++) {
        (void)go(self, other, NULL);
        CHECK(a == seed && b == seed * 3 && c == seed * 5 && d == seed * 7 && e == seed * 11 && f == seed * 13);
        CHECK(g == seed * 17 && h == seed * 19 && i == seed * 23 && j == seed * 29 && k == seed * 31 && l == seed * 37);
        double m = (double)seed;
        CHECK(p == m && q == m * 2 && r == m * 3 && s == m * 4 && t == m * 5 && u == m * 6 && v == m * 7 && w == m * 8);
        CHECK(x == m * 9 && y == m * 10 && z == (float)seed);
        /* New values, so that the compiler cannot keep them in memory alone. */
        seed++;
        a += 1, b += 3, c += 5, d += 7, e += 11, f += 13, g += 17, h += 19, i += 23, j += 29, k += 31, l += 37;
        p += 1, q += 2, r += 3, s += 4, t += 5, u += 6, v += 7, w += 8, x += 9, y += 10, z += 1;
    }
}

static struct side partner;

static void churn_for_ever(void *value) {
    (void)value;
    arrive(&partner);
    churn(&partner, &here, 1000003, LONG_MAX);
    abort();
}

TEST(live_values_survive) {
    open_native();
    open_side(&partner, churn_for_ever, 0);
    churn(&here, &partner, 17, test_rounds(100000, 1000000));
    close_side(&partner);
}

#if defined(__x86_64__) || defined(__aarch64__)
/* Fills every callee-saved register, and returns after a switch which of them differ: bit n for the n-th. */
static CC_NOINLINE unsigned hold_registers(struct side *from, struct side *to, uint64_t seed) {
    unsigned wrong = 0;
#if defined(__x86_64__)
    register uint64_t rbx __asm__("rbx") = seed + 1, r12 __asm__("r12") = seed + 2, r13 __asm__("r13") = seed + 3;
    register uint64_t r14 __asm__("r14") = seed + 4, r15 __asm__("r15") = seed + 5;
    __asm__ volatile("" : "+r"(rbx), "+r"(r12), "+r"(r13), "+r"(r14), "+r"(r15));
    (void)go(from, to, NULL);
    __asm__ volatile("" : "+r"(rbx), "+r"(r12), "+r"(r13), "+r"(r14), "+r"(r15));
    wrong |= (rbx != seed + 1) << 0 | (r12 != seed + 2) << 1 | (r13 != seed + 3) << 2 | (r14 != seed + 4) << 3 |
             (r15 != seed + 5) << 4;
#else
    register uint64_t x19 __asm__("x19") = seed + 1, x22 __asm__("x22") = seed + 2, x25 __asm__("x25") = seed + 3;
    register uint64_t x28 __asm__("x28") = seed + 4;
    register double d8 __asm__("d8") = (double)(seed + 5), d11 __asm__("d11") = (double)(seed + 6),
                       d15 __asm__("d15") = (double)(seed + 7);
    __asm__ volatile("" : "+r"(x19), "+r"(x22), "+r"(x25), "+r"(x28), "+w"(d8), "+w"(d11), "+w"(d15));
    (void)go(from, to, NULL);
    __asm__ volatile("" : "+r"(x19), "+r"(x22), "+r"(x25), "+r"(x28), "+w"(d8), "+w"(d11), "+w"(d15));
    wrong |= (x19 != seed + 1) << 0 | (x22 != seed + 2) << 1 | (x25 != seed + 3) << 2 | (x28 != seed + 4) << 3;
    wrong |= (unsigned)((d8 != (double)(seed + 5)) << 4 | (d11 != (double)(seed + 6)) << 5 |
                        (d15 != (double)(seed + 7)) << 6);
#endif
    return wrong;
}

static void hold_for_ever(void *value) {
    (void)value;
    arrive(&partner);
    for (uint64_t i = 0;; i++) CHECK_EQ(hold_registers(&partner, &here, 1000000 + i), 0);
}

TEST(callee_saved_registers_survive) {
    open_native();
    open_side(&partner, hold_for_ever, 0);
    for (uint64_t i = 0; i < 10000; i++) CHECK_EQ(hold_registers(&here, &partner, i), 0);
    close_side(&partner);
}
#endif

/* ---- floating-point modes ---- */

#if defined(__x86_64__)
static uint16_t x87_control(void) {
    uint16_t word;
    __asm__ volatile("fnstcw %0" : "=m"(word));
    return word;
}

static void set_x87_control(uint16_t word) {
    __asm__ volatile("fldcw %0" : : "m"(word));
}

static uint32_t sse_control(void) {
    uint32_t word;
    __asm__ volatile("stmxcsr %0" : "=m"(word));
    return word & ~0x3fu; /* the low six bits are flags, not control */
}

static void set_sse_control(uint32_t word) {
    __asm__ volatile("ldmxcsr %0" : : "m"(word));
}

/* 0 is to nearest; what 1, 2 and 3 mean differs from CPU to CPU and does not matter here. */
static unsigned rounding(void) {
    return sse_control() >> 13 & 3;
}

static void set_rounding(unsigned mode) {
    set_sse_control((sse_control() & ~(3u << 13)) | mode << 13);
}
#elif defined(__aarch64__)
static unsigned rounding(void) {
    uint64_t fpcr;
    __asm__ volatile("mrs %0, fpcr" : "=r"(fpcr));
    return (unsigned)(fpcr >> 22 & 3);
}

static void set_rounding(unsigned mode) {
    uint64_t fpcr;
    __asm__ volatile("mrs %0, fpcr" : "=r"(fpcr));
    fpcr = (fpcr & ~(UINT64_C(3) << 22)) | (uint64_t)mode << 22;
    __asm__ volatile("msr fpcr, %0" : : "r"(fpcr));
}
#endif

/* On riscv64 the modes belong to the OS thread, says its psABI. */
#if defined(__x86_64__) || defined(__aarch64__)
static struct side rounder;

static void round_otherwise(void *value) {
    (void)value;
    arrive(&rounder);
    CHECK_EQ(rounding(), 1); /* the modes at the place where the context was started */
    set_rounding(2);
    for (;;) {
        (void)go(&rounder, &here, NULL);
        CHECK_EQ(rounding(), 2);
    }
}

TEST(rounding_mode_belongs_to_the_context) {
    open_native();
    set_rounding(1);
    open_side(&rounder, round_otherwise, 0);
    set_rounding(3);
    for (int i = 0; i < 1000; i++) {
        (void)go(&here, &rounder, NULL);
        CHECK_EQ(rounding(), 3);
    }
    set_rounding(0);
    close_side(&rounder);
}

static void leave_rounding(void *value) {
    (void)value;
    arrive(&rounder);
    set_rounding(2);
    leave_for(&here, NULL);
}

TEST(jump_restores_the_modes) {
    open_native();
    open_side(&rounder, leave_rounding, 0);
    (void)go(&here, &rounder, NULL);
    CHECK_EQ(rounding(), 0);
    close_side(&rounder);
}
#endif

#if defined(__x86_64__)
/* Only one of the two words differs: the switch must compare both. */
static void single_precision(void *value) {
    (void)value;
    arrive(&rounder);
    uint16_t usual = x87_control();
    uint32_t usual_sse = sse_control();
    for (;;) {
        set_x87_control(usual & ~0x300u); /* 24 bits of precision */
        (void)go(&rounder, &here, NULL);
        CHECK_EQ(x87_control(), usual & ~0x300u);
        CHECK_EQ(sse_control(), usual_sse);
        set_x87_control(usual);
        set_sse_control(usual_sse | 0x8040u); /* flush to zero, denormals are zero */
        (void)go(&rounder, &here, NULL);
        CHECK_EQ(x87_control(), usual);
        CHECK_EQ(sse_control(), usual_sse | 0x8040u);
        set_sse_control(usual_sse);
    }
}

TEST(each_control_word_is_kept) {
    if (cc__san_on_valgrind()) SKIP("Valgrind does not emulate the x87 control word in full");
    open_native();
    uint16_t usual = x87_control();
    uint32_t usual_sse = sse_control();
    open_side(&rounder, single_precision, 0);
    for (int i = 0; i < 1000; i++) {
        (void)go(&here, &rounder, NULL);
        CHECK_EQ(x87_control(), usual);
        CHECK_EQ(sse_control(), usual_sse);
    }
    close_side(&rounder);
}
#endif

/* ---- the first frame ---- */

static struct side fresh;

/* The compiler assumes the alignment and would remove the check. */
static uintptr_t plain(const void *p) {
    __asm__ volatile("" : "+r"(p));
    return (uintptr_t)p;
}

static void look_at_alignment(void *value) {
    arrive(&fresh);
    _Alignas(16) char local[16];
    uintptr_t wrong = plain(local) % 16 + plain(__builtin_frame_address(0)) % 16;
    memset(local, 1, sizeof local);
    leave_for(&here, number((uintptr_t)value + wrong));
}

TEST(fresh_stack_is_aligned) {
    open_native();
    for (size_t below = 0; below < 128; below += 8) {
        open_side(&fresh, look_at_alignment, below);
        CHECK_EQ((uintptr_t)go(&here, &fresh, number(77)), 77);
        close_side(&fresh);
    }
}

/* It starts at `top`: nothing above is touched, and not much below is lost. */
static void write_and_leave(void *value) {
    arrive(&fresh);
    volatile char mark = 1;
    leave_for(&here, number((uintptr_t)value - plain((const void *)&mark)));
}

TEST(fresh_stack_starts_at_its_top) {
    open_native();
    open_side(&fresh, write_and_leave, 4096);
    char *top = fresh.stack + STACK_BYTES - 4096;
    uintptr_t depth = (uintptr_t)go(&here, &fresh, top);
    CHECK(depth > 0 && depth < 4096);
    for (int i = 0; i < 4096; i++) CHECK_EQ(top[i], 0);
    close_side(&fresh);
}

#if !defined(CC_ARCH_UCONTEXT) && !defined(CC_ASAN) && !defined(CC_TSAN)
static _Unwind_Reason_Code count_frame(struct _Unwind_Context *context, void *count) {
    (void)context;
    return ++*(int *)count < 100 ? _URC_NO_REASON : _URC_NORMAL_STOP;
}

static void unwind(void *value) {
    arrive(&fresh);
    int frames = 0;
    _Unwind_Reason_Code end = _Unwind_Backtrace(count_frame, &frames);
    (void)value;
    leave_for(&here, number(end == _URC_END_OF_STACK ? (uintptr_t)frames : 100));
}

TEST(backtrace_ends_at_the_first_frame) {
    open_native();
    open_side(&fresh, unwind, 0);
    uintptr_t frames = (uintptr_t)go(&here, &fresh, NULL);
    CHECK(frames >= 1 && frames <= 3);
    close_side(&fresh);
}
#endif
