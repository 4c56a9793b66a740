/* inbox.c - a dump of the inboxes lists their fibers, oldest last, up to the limit. */
#include "harness.h"

#include "diag/dump.h"
#include "sched/sched.h"

#include <ccc/ccc.h>
#include <stdio.h>
#include <string.h>

static char text[4096];

static void show(unsigned max) {
    FILE *file = fmemopen(text, sizeof text, "w");
    CHECK(file != NULL);
    struct out out = {.file = file};
    cc__dump_inboxes(&out, max);
    cc__out_flush(&out);
    (void)fclose(file);
}

static int count(const char *words) {
    int n = 0;
    for (const char *at = text; (at = strstr(at, words)) != NULL; at++) n++;
    return n;
}

static _Atomic int spinning, enough;

static void *spin(void *unused) {
    (void)unused;
    spinning = 1;
    while (!enough) {
    }
    return NULL;
}

static void *nothing(void *arg) {
    return arg;
}

/* The only worker does not poll its inbox. */
TEST(shows_the_waiters) {
    CHECK_EQ(cc_runtime_init(&(CCRuntimeConfig){.workers = 1}), 0);
    CCTask tasks[6] = {cc_fiber_spawn_task(spin, NULL)};
    while (!spinning) cc_yield();
    show(10);
    CHECK(strcmp(text, "inbox of worker 0: 0 fibers\n") == 0);
    for (int i = 1; i < 6; i++) tasks[i] = cc_fiber_spawn_task(nothing, NULL);
    show(10);
    CHECK(strstr(text, "inbox of worker 0: 5 fibers, newest first:\n") != NULL);
    CHECK_EQ(count("RUNNABLE, has not run yet\n"), 5);
    CHECK(strstr(text, "  fiber 5.") < strstr(text, "  fiber 1."));
    show(2);
    CHECK_EQ(count("RUNNABLE"), 2);
    enough = 1;
    for (int i = 0; i < 6; i++) CHECK_EQ(cc_task_join(&tasks[i], NULL), 0);
}

static void *dump(void *arg) {
    CCDeadline end = cc_after_ms(1000); /* fewer on a busy machine */
    for (long i = 0; i < test_scale(20000) && cc_now_ns() < end.ns; i++) {
        show(100);
        for (const char *at = text; *at != '\0'; at += strspn(at, "\n")) {
            CHECK(strcspn(at, "\n") < 160);
            at += strcspn(at, "\n");
        }
    }
    enough = 1;
    return arg;
}

/* While inboxes fill and empty, the dump is not empty and does no damage. */
TEST_WORKERS(while_they_move) {
    CCTask dumping = cc_fiber_spawn_task(dump, NULL);
    for (long i = 1; !enough; i++) {
        CCTask task = cc_fiber_spawn_task(nothing, NULL);
        if (i % 20000 == 0)
            CHECK_EQ(cc_task_join(&task, NULL), 0); /* or they would grow without bound */
        else
            CHECK_EQ(cc_task_detach(&task), 0);
    }
    CHECK_EQ(cc_task_join(&dumping, NULL), 0);
}
