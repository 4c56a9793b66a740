/* reasons.c - dumps and counters have a name for every reason to wait. */
#include "harness.h"

#include "../ending.h"
#include "wait/wait.h"

#include <ccc/ccc.h>
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EACH = 2 }; /* fibers of a kind: the dump groups them, and says what they wait for */

static _Alignas(64) _Atomic uint32_t object[256]; /* all 0: whatever type it is read as, nobody holds it */
static _Atomic unsigned waits;

static void *wait_for(void *arg) {
    struct fiber *self = cc__sched_current(cc__worker());
    (void)cc__park_open(self, (enum park_reason)(uintptr_t)arg);
    cc__add(&waits, 1);
    CHECK_EQ(cc__park_if(self, object, 0), WAKE_CANCEL);
    return NULL;
}

static bool parked(void) {
    CCStats stats;
    CHECK_EQ(cc_stats(&stats, sizeof stats), 0);
    for (unsigned i = PARK_NONE + 1; i < PARK_REASONS; i++)
        if (stats.parks_by[i] < EACH) return false;
    return true;
}

static char *dump(int (*print)(FILE *file)) {
    char *text = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&text, &size);
    CHECK(file != NULL);
    CHECK_EQ(print(file), 0);
    CHECK_EQ(fclose(file), 0);
    return text;
}

TEST(every_reason_is_dumped, .timeout = 60) {
    CHECK_EQ(cc_runtime_init(NULL), 0);
    for (uintptr_t i = PARK_NONE + 1; i < PARK_REASONS; i++) {
        for (int k = 0; k < EACH; k++) CHECK_EQ(cc_spawn(NULL, wait_for, (void *)i, NULL), 0);
    }
    while (cc__get(&waits) < EACH * (PARK_REASONS - 1) || !parked()) sched_yield();
    char *text = dump(cc_dump), *json = dump(cc_dump_json);
    for (unsigned i = PARK_NONE + 1; i < PARK_REASONS; i++) {
        char expected[64];
        snprintf(expected, sizeof expected, "2 fibers, PARKED, %s:", cc_stats_reason(i));
        if (strstr(text, expected) == NULL) test_fail(__FILE__, __LINE__, "'%s' is not in: %s", expected, text);
        snprintf(expected, sizeof expected, "\"%s\"", cc_stats_reason(i));
        if (strstr(json, expected) == NULL) test_fail(__FILE__, __LINE__, "'%s' is not in: %s", expected, json);
    }
    free(text);
    free(json);
    CHECK(cc_stats_reason(PARK_REASONS) == NULL);
    end_by_cancelling();
}

static CCEvent hook_runs, hook_may_end;

static void hook(void *arg) {
    (void)arg;
    CHECK_EQ(cc_event_set(&hook_runs), 0);
    CHECK_EQ(cc_event_wait(&hook_may_end), 0);
}

static void *waits_for_the_nursery(void *nursery) {
    CHECK_EQ(cc_nursery_wait(nursery), 0);
    return NULL;
}

static bool dump_says(const char *what) {
    char *text = dump(cc_dump);
    bool says = strstr(text, what) != NULL;
    free(text);
    return says;
}

/* Two wait for a nursery without children: one runs the hook, the other waits for that, and not for "0 children". */
TEST(a_nursery_whose_hook_runs, .timeout = 60) {
    CCTask first, second;
    CCNursery *n = cc_nursery_create_ex(&(CCNurseryConfig){.name = "kitchen"});
    CHECK(n != NULL);
    CHECK_EQ(cc_nursery_at_exit(n, hook, NULL), 0);
    CHECK_EQ(cc_spawn(&first, waits_for_the_nursery, n, NULL), 0);
    CHECK_EQ(cc_event_wait(&hook_runs), 0);
    CHECK_EQ(cc_spawn(&second, waits_for_the_nursery, n, NULL), 0);
    while (!dump_says(" of nursery 'kitchen'")) sched_yield();
    CHECK(dump_says("waits for the end of nursery 'kitchen'"));
    CHECK_EQ(cc_event_set(&hook_may_end), 0);
    CHECK_EQ(cc_task_join(&first, NULL), 0);
    CHECK_EQ(cc_task_join(&second, NULL), 0);
    CHECK_EQ(cc_nursery_free(n), 0);
    CHECK_EQ(cc_runtime_shutdown(1000), 0);
}
