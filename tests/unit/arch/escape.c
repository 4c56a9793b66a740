/* escape.c - a call can be left from a deep frame, and the caller's callee-saved registers are restored. */
#include "harness.h"

#include "../depth.h"
#include "arch/escape.h"
#include "base/san.h"

#include <stdint.h>
#include <unwind.h>

static struct escape escapes[4];

/* Like any called function: aligned, and with its argument. */
static void *look(void *arg) {
    _Alignas(16) volatile char aligned[16];
    CHECK_EQ((uintptr_t)aligned % 16, 0);
#if defined(__x86_64__) && !defined(CC_ASAN)
    CHECK_EQ((uintptr_t)__builtin_frame_address(0) % 16, 0);
#endif
    return (char *)arg + 1;
}

static void leave(void *which) {
    cc__san_abandon();
    cc__escape_take(&escapes[(intptr_t)which], (void *)((intptr_t)which + 100));
}

static void *fall(void *which) {
    use_stack(4096, leave, which);
    return NULL;
}

/* Ordinary calls are here too (escape.h). */
static CC_NOINLINE void *call(int which, escape_fn fn, void *arg) {
    void *result = cc__escape_call(&escapes[which], fn, arg);
    CHECK(which >= 0 && which < 4);
    return result;
}

TEST(returns_or_is_left) {
    for (intptr_t i = 0; i < 4; i++) {
        CHECK_EQ((intptr_t)call((int)i, look, (void *)(i * 10)), i * 10 + 1);
        CHECK_EQ((intptr_t)call((int)i, fall, (void *)i), i + 100);
    }
}

static void *nest(void *arg) {
    intptr_t to = (intptr_t)arg;
    CHECK_EQ((intptr_t)call(2, fall, (void *)(intptr_t)2), 102);
    return call(2, fall, (void *)to); /* past this one, or to it */
}

TEST(the_right_one) {
    CHECK_EQ((intptr_t)call(1, nest, (void *)(intptr_t)1), 101);
    CHECK_EQ((intptr_t)call(1, nest, (void *)(intptr_t)2), 102);
}

/* A callee that uses every callee-saved register. */
static void *spoil(void *which) {
    volatile long in[12];
    for (int i = 0; i < 12; i++) in[i] = i * 1234567L;
    long a = in[0], b = in[1], c = in[2], d = in[3], e = in[4], f = in[5], g = in[6], h = in[7];
    double s = (double)in[8], t = (double)in[9], u = (double)in[10], v = (double)in[11];
    for (int i = 0; i < 50; i++) {
        in[0] = a + b, in[1] = c + d, in[2] = e + f, in[3] = g + h;
        a += in[1], b ^= in[2], c += in[3], d ^= in[0], e += in[1], f ^= in[2], g += in[3], h ^= in[0];
        s += (double)in[0], t += s, u += t, v += u;
        if (i == 25) leave(which);
    }
    in[0] = a + b + c + d + e + f + g + h + (long)(s + t + u + v);
    return NULL;
}

TEST(registers_are_kept) {
    volatile long seed = 21;
    long a = seed, b = seed * 2, c = seed * 3, d = seed * 4, e = seed * 5, f = seed * 6, g = seed * 7;
    double s = (double)seed / 2, t = (double)seed / 4, u = (double)seed / 8;
    for (int i = 0; i < 1000; i++) {
        CHECK_EQ((intptr_t)call(0, spoil, NULL), 100);
        a++, b++, c++, d++, e++, f++, g++, s++, t++, u++;
    }
    CHECK(a == 1021 && b == 1042 && c == 1063 && d == 1084 && e == 1105 && f == 1126 && g == 1147);
    CHECK(s > 1010.49 && s < 1010.51 && t > 1005.24 && t < 1005.26 && u > 1002.62 && u < 1002.63);
}

/* ---- debuggers see through it ---- */

static _Unwind_Reason_Code note_frame(struct _Unwind_Context *context, void *found) {
    void *function = _Unwind_FindEnclosingFunction((void *)(_Unwind_GetIP(context) - 1));
    if (function == (void *)(uintptr_t)call) *(bool *)found = true;
    return _URC_NO_REASON;
}

static void *walk(void *found) {
    _Unwind_Backtrace(note_frame, found);
    return found;
}

TEST(unwinds_through_the_call) {
    bool found = false;
    (void)call(0, walk, &found);
    CHECK(found);
}
