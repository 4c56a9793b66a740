/* first_frame.c - unwinding a fiber's stack leads from any function to the fiber's first frame, and no further, also
 * after switches: by frame pointers, as perf does, and by call-frame information, as debuggers and exceptions do. */
#include "harness.h"

#include "arch/context.h"
#include "arch/machine.h"
#include "base/attr.h"
#include "base/san.h"

#include <ccc/ccc.h>
#include <execinfo.h>
#include <stdint.h>

#ifdef CC_ARCH_UCONTEXT
TEST(ends_a_fiber) {
    SKIP("the first frame is the C library's with ucontext");
}
#else

enum { DEEP = 10, MOST = 64 };

static struct {
    unsigned count;       /* frames up to the one that has none above it */
    unsigned descended;   /* of them: in descend() */
    uintptr_t last, from; /* the address that the last one returns to; the lowest in descend() */
} chain;

static struct {
    int count;
    void *frame[MOST];
} unwound;

/* Reads other functions' frames, so it is not instrumented. */
static CC_NOINLINE __attribute__((no_sanitize("address", "undefined"))) CC_NO_TSAN void walk(void) {
    const volatile uintptr_t *fp = __builtin_frame_address(0);
    chain.count = chain.descended = 0;
    while (fp != NULL && chain.count < MOST) {
        chain.last = CC_FRAME_RETURN(fp);
        chain.descended += chain.last - chain.from < 1024;
        chain.count++;
        const volatile uintptr_t *up = (const volatile uintptr_t *)CC_FRAME_UP(fp);
        CHECK(up == NULL || up > fp); /* further up, or at the end */
        fp = up;
    }
}

static CC_NOINLINE int descend(int depth) {
    if (depth > 0) {
        int below = descend(depth - 1);
        __asm__ volatile("" : "+r"(below)); /* not a tail call: the frame stays */
        return below + 1;
    }
    cc_yield();
    cc_sleep_ms(1);
    walk();
    unwound.count = backtrace(unwound.frame, MOST);
    __asm__ volatile("" ::: "memory");
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
    CCTask other = cc_fiber_spawn_task(yielder, NULL), walk_task = cc_fiber_spawn_task(walker, NULL);
    cc_yield(); /* so that it has a stack of its own */
    CHECK_EQ(cc_task_join(&walk_task, NULL), 0);
    CHECK_EQ(cc_task_join(&other, NULL), 0);
    return arg;
}

static void check_chain(void) {
    CHECK(chain.count < MOST);
    CHECK(chain.descended >= DEEP);
    uintptr_t first = (uintptr_t)cc__context_first;
    CHECK(chain.last > first && chain.last < first + 64);
}

static void check_unwound(void) {
    CHECK(unwound.count >= DEEP + 2 && unwound.count < MOST);
    uintptr_t last = (uintptr_t)unwound.frame[unwound.count - 1], first = (uintptr_t)cc__context_first;
    CHECK(last >= first && last < first + 64);
}

static void begin(void) {
    chain.from = (uintptr_t)descend;
    (void)backtrace(unwound.frame, 4); /* loads the unwinder, which needs more stack than a fiber should use */
}

TEST_WORKERS(ends_a_fiber) {
    begin();
    CHECK_EQ(cc_run(both, NULL, NULL), 0);
    check_unwound();
    if (CC_FRAME_CHAIN) check_chain();
}

TEST(ends_a_hosted_call) {
    begin();
    CHECK_EQ(cc_hosted_call(walker, NULL, NULL, NULL), 0);
    check_unwound();
    if (CC_FRAME_CHAIN) check_chain();
}
#endif
