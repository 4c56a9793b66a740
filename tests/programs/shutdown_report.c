/* shutdown_report.c - a shutdown that cannot complete reports the remaining fibers, what each does, and its function.
 */
#include "../unit/ending.h"
#include "child.h"

#include <ccc/ccc.h>

static struct child child;

static _Atomic int ready, enough;

void *stubborn_function(void *arg); /* not static: its name is in the report where the linker exports it */
void *stubborn_function(void *arg) {
    cc_fiber_set_name("stubborn");
    ready++;
    while (!enough) {
    }
    return arg;
}

static void *waits_again_and_again(void *arg) {
    cc_fiber_set_name("insistent");
    ready++;
    while (!enough) (void)cc_sleep_ms(100000);
    return arg;
}

static void body(void *unused) {
    (void)unused;
    CHECK_EQ(cc_runtime_init(&(CCRuntimeConfig){.workers = 2}), 0);
    CCTask tasks[2] = {cc_fiber_spawn_task(waits_again_and_again, NULL), cc_fiber_spawn_task(stubborn_function, NULL)};
    while (ready < 2) cc_yield();
    CHECK_EQ(cc_runtime_shutdown(1), ETIMEDOUT);
    fprintf(stderr, "it goes on\n");
    enough = 1;
    for (int i = 0; i < 2; i++) (void)cc_task_detach(&tasks[i]);
    end_after(1000); /* the sleep is cancelled once more */
}

static void check_said(const char *text) {
    if (said(&child, text)) return;
    show_child(&child);
    test_fail(__FILE__, __LINE__, "it did not say \"%s\"", text);
}

TEST(names_the_running_fiber_and_its_place) {
    run_child(&child, body, NULL);
    if (child.status != 0) show_child(&child);
    CHECK_EQ(child.status, 0);
    check_said(
        "ccc: shutdown: 2 tasks still run after 1 ms, and another 100 ms with waits cancelled; the runtime keeps running:\n");
    check_said(" 'stubborn' runs on worker ");
    check_said("stubborn_function");
    check_said(" 'insistent' ");
    const char *runs = strstr(child.output, "'stubborn'"), *waits = strstr(child.output, "'insistent'");
    CHECK(runs < waits || !said(&child, "'insistent' waits")); /* those that run come first */
    check_said("it goes on\n");
}
