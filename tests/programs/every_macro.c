/* every_macro.c - tests/macros/every_macro.h, as C. The stage `headers` checks that it compiles without a warning. */
#include "harness.h"

#include "../macros/every_macro.h"

static void must(bool holds, int line) {
    if (!holds) test_fail("tests/macros/every_macro.h", line, "not so");
}

TEST_WORKERS(every_macro) {
    void *result;
    CHECK_EQ(cc_run(all_macros, &result, &result), 0);
    CHECK(result == &result);
}
