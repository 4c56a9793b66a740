/* symbol.c - names of code addresses, looked up for the first time when the system lacks something: with what there is,
 * or later. */
#include "fail.h"
#include "harness.h"

#include "base/attr.h"
#include "inspect/symbol.h"

static CC_NOINLINE const void *return_address(void) {
    return __builtin_return_address(0);
}

static CC_NOINLINE unsigned line_here(void) {
    struct symbol found;
    const void *here = return_address();
    __asm__ volatile("" ::: "memory");
    cc__symbol_find(here, &found);
    return found.line;
}

static void needs_lines(void) {
#ifndef CC_BACKTRACE
    SKIP("this build has no libbacktrace");
#endif
}

TEST(without_a_thread) {
    needs_lines();
    fail_arm(1, FAIL_THREAD, true);
    unsigned line = line_here();
    CHECK(fail_disarm() > 0);
    CHECK(line > 0);
}

TEST(without_descriptors) {
    needs_lines();
    fail_arm(1, FAIL_FILE | FAIL_PIPE, true);
    unsigned line = line_here();
    CHECK(fail_disarm() > 0);
    CHECK_EQ(line, 0);
    CHECK(line_here() > 0);
}

TEST(with_one_descriptor) {
    needs_lines();
    fail_arm(2, FAIL_FILE | FAIL_PIPE, true);
    CHECK_EQ(line_here(), 0);
    CHECK(fail_disarm() > 0);
    CHECK(line_here() > 0);
}
