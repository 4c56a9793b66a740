/* late_cxx.c - a C program whose workers run before the C++ runtime is loaded, by dlopen with local symbols. */
#include "harness.h"

#include <ccc/ccc.h>

#include <dlfcn.h>
#include <errno.h>
#include <string.h>

static CCTaskFn catches, throws;

static void *yields(void *arg) {
    for (int i = 0; i < 100; i++) cc_yield();
    return arg;
}

/* In a fiber: the first catch block on this worker may come before any switch. */
static void *load(void *first_rounds) {
    void *plugin = dlopen(LATE_PLUGIN, RTLD_NOW | RTLD_LOCAL);
    if (plugin == NULL) test_fail(__FILE__, __LINE__, "%s", dlerror());
    catches = (CCTaskFn)dlsym(plugin, "plugin_catches");
    throws = (CCTaskFn)dlsym(plugin, "plugin_throws");
    CHECK(catches != NULL && throws != NULL);
    return catches(first_rounds);
}

TEST_WORKERS(loads_it_later) {
    CCTask tasks[32];
    void *result;
    CCPanic why;
    for (int i = 0; i < 32; i++) CHECK_EQ(cc_spawn(&tasks[i], yields, NULL, NULL), 0);
    for (int i = 0; i < 32; i++) CHECK_EQ(cc_task_join(&tasks[i], NULL), 0);
    CHECK_EQ(cc_spawn(&tasks[1], yields, NULL, NULL), 0); /* another fiber to switch to */
    CHECK_EQ(cc_run(load, (void *)(intptr_t)5, &result), 0);
    if (result != NULL) test_fail(__FILE__, __LINE__, "%s", (const char *)result);
    CHECK_EQ(cc_task_join(&tasks[1], NULL), 0);
    for (int i = 0; i < 32; i++) CHECK_EQ(cc_spawn(&tasks[i], catches, (void *)(intptr_t)(i % 7 + 1), NULL), 0);
    for (int i = 0; i < 32; i++) {
        CHECK_EQ(cc_task_join(&tasks[i], &result), 0);
        if (result != NULL) test_fail(__FILE__, __LINE__, "%s", (const char *)result);
    }
    CHECK_EQ(cc_spawn(&tasks[0], throws, NULL, NULL), 0);
    CCFiberId id = tasks[0].id;
    CHECK_EQ(cc_task_join(&tasks[0], NULL), ENOTRECOVERABLE);
    CHECK_EQ(cc_panic_find(id, &why), 0);
    CHECK(strcmp(why.message, "uncaught exception std::runtime_error: late and never caught") == 0);
}
