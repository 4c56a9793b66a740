/* missing.c - a build without inspection reports what is missing, and a build with it does not. */
#include "../capture.h"

#include "base/inspect.h"

#include <ccc/ccc.h>

#include <errno.h>

static const char sentence[] = "this build of the library has no backtraces";
static char text[65536];

/* True: the report has the sentence if, and only if, inspection is missing. */
static bool right(const char *report) {
    return contains(report, sentence) == (cc__inspect_missing() != NULL);
}

static void *waits(void *event) {
    CHECK_EQ(cc_event_wait(event), 0);
    return NULL;
}

TEST(a_dump_names_the_fibers) {
    CCEvent event = {0};
    CCTask task;
    CHECK_EQ(cc_spawn(&task, waits, &event, &(CCSpawnOptions){.name = "waiting"}), 0);
    do {
        FILE *file = fmemopen(text, sizeof text, "w");
        CHECK(file != NULL);
        CHECK_EQ(cc_dump(file), 0);
        CHECK_EQ(fclose(file), 0);
    } while (!contains(text, "'waiting' waits for event"));
    CHECK(right(text));
    CHECK_EQ(contains(text, "    #0 "), cc__inspect_missing() == NULL);
    FILE *json = fmemopen(text, sizeof text, "w");
    CHECK(json != NULL);
    CHECK_EQ(cc_dump_json(json), 0);
    CHECK_EQ(fclose(json), 0);
    CHECK(contains(text, cc__inspect_missing() == NULL ? "\"inspect\":true" : "\"inspect\":false"));
    cc_event_set(&event);
    CHECK_EQ(cc_task_join(&task, NULL), 0);
}

static void *panics(void *arg) {
    (void)arg;
    cc_panic("on purpose");
}

TEST(a_panic_reports_its_origin) {
    struct capture capture;
    CCTask task;
    capture_start(&capture);
    CHECK_EQ(cc_spawn(&task, panics, NULL, NULL), 0);
    CHECK_EQ(cc_task_join(&task, NULL), ENOTRECOVERABLE);
    const char *said = capture_end(&capture);
    CHECK(contains(said, "on purpose"));
    CHECK(right(said));
}

static void *joins(void *task) {
    CHECK_EQ(cc_task_join(task, NULL), 0);
    return NULL;
}

TEST(unreachable_fibers_are_not_looked_for) {
    if (cc__inspect_missing() == NULL) SKIP("they are");
    CCEvent event = {0};
    CCTask task, other;
    CHECK_EQ(cc_spawn(&task, waits, &event, NULL), 0);
    CHECK_EQ(cc_spawn(&other, joins, &task, NULL), 0);
    FILE *file = fmemopen(text, sizeof text, "w");
    CHECK_EQ(cc_dump(file), 0);
    CHECK_EQ(fclose(file), 0);
    CHECK(contains(text, "not searched for: this build of the library cannot"));
    cc_event_set(&event);
    CHECK_EQ(cc_task_join(&other, NULL), 0);
}
