/* unwind.c - a debugger's unwinder walks a fiber's stack, also after switches, and stops at the fiber's first frame. */
#include "harness.h"

#include <ccc/ccc.h>
#include <execinfo.h>
#include <stdint.h>

#if defined(CC_ARCH_UCONTEXT)
TEST(unwinder_stops_at_the_first_frame) {
    SKIP("the first frame is the C library's with ucontext");
}
#else
void cc__context_first(void);

enum { DEEP = 10 };

static int frames;
static uintptr_t last;

static __attribute__((noinline)) int descend(int depth) {
    if (depth > 0) {
        int below = descend(depth - 1);
        __asm__ volatile("" : "+r"(below)); /* not a loop in disguise: the frame stays */
        return below + 1;
    }
    cc_yield();
    cc_sleep_ms(1);
    void *found[64];
    frames = backtrace(found, 64);
    last = frames > 0 ? (uintptr_t)found[frames - 1] : 0;
    return 0;
}

static void *walker(void *arg) {
    CHECK_EQ(descend(DEEP), DEEP);
    return arg;
}

static void *yielder(void *arg) {
    for (int i = 0; i < 100; i++) cc_yield();
    return arg;
}

static void *both(void *arg) {
    /* Started before it is joined, so that it has a stack of its own and other fibers to switch to. */
    CCTask other = cc_fiber_spawn_task(yielder, NULL), walk = cc_fiber_spawn_task(walker, NULL);
    cc_yield();
    CHECK_EQ(cc_task_join(&walk, NULL), 0);
    CHECK_EQ(cc_task_join(&other, NULL), 0);
    return arg;
}

TEST_WORKERS(unwinder_stops_at_the_first_frame) {
    void *warm[4];
    (void)backtrace(warm, 4); /* loads the unwinder, which wants more stack than a fiber should spend */
    CHECK_EQ(cc_run(both, NULL, NULL), 0);
    CHECK(frames >= DEEP + 2 && frames < 64);
    uintptr_t first = (uintptr_t)cc__context_first;
    CHECK(last >= first && last < first + 64);
}
#endif
