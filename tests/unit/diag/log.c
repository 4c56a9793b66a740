/* log.c - what the library says goes where the program wants it; and which version it is. */
#include "../contexts.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

static char said[4096];
static atomic_size_t length;

static void keep(const char *text, size_t size, void *arg) {
    CHECK(arg == said);
    size_t at = atomic_fetch_add(&length, size);
    CHECK(at + size < sizeof said);
    memcpy(said + at, text, size);
}

static void *panics(void *arg) {
    (void)arg;
    cc_panic("for the log");
}

TEST(a_panic_is_logged) {
    cc_on_log(keep, said);
    CCTask task = cc_fiber_spawn_task(panics, NULL);
    CHECK_EQ(cc_task_join(&task, NULL), ENOTRECOVERABLE);
    CHECK_EQ(cc_runtime_shutdown(10000), 0);
    cc_on_log(NULL, NULL);
    CHECK(strstr(said, "for the log") != NULL);
}

TEST(version) {
    char expected[32];
    snprintf(expected, sizeof expected, "%d.%d.%d", CC_VERSION_MAJOR, CC_VERSION_MINOR, CC_VERSION_PATCH);
    CHECK(strcmp(cc_version(), expected) == 0);
}
