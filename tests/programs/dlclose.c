/* dlclose.c - a program that loads the library while it runs, and closes it while the runtime runs, or after;
 * and a shared object that contains the static library. */
#include "child.h"

#include <ccc/ccc.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

typedef int (*shutdown_fn)(uint64_t);
typedef int (*run_fn)(void *(*)(void *), void *, void **);

static void *load(void) {
    void *library = dlopen(CCC_SHARED, RTLD_NOW);
    if (library == NULL) printf("%s\n", dlerror());
    CHECK(library != NULL);
    return library;
}

static void *same(void *arg) {
    return arg;
}

enum what { WHILE_IT_RUNS, AFTER_SHUTDOWN, TWICE };

static void load_and_close(void *arg) {
    enum what what = *(enum what *)arg;
    for (int round = 0; round < (what == TWICE ? 3 : 1); round++) {
        void *library = load(), *result = NULL;
        CHECK_EQ(((run_fn)(uintptr_t)dlsym(library, "cc_run"))(same, arg, &result), 0);
        CHECK(result == arg);
        if (what != WHILE_IT_RUNS) CHECK_EQ(((shutdown_fn)(uintptr_t)dlsym(library, "cc_runtime_shutdown"))(1000), 0);
        CHECK_EQ(dlclose(library), 0);
    }
    /* It is still loaded, for workers that search and go to sleep; a fork and an exit call the handlers that it has
     * registered. */
    CHECK(dlopen(CCC_SHARED, RTLD_NOW | RTLD_NOLOAD) != NULL);
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) _exit(0);
    int status;
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    CHECK_EQ(status, 0);
}

static void check(enum what what) {
    static struct child child;
    run_child(&child, load_and_close, &what);
    if (child.status != 0) show_child(&child);
    CHECK_EQ(child.status, 0);
}

TEST(while_it_runs) {
    check(WHILE_IT_RUNS);
}

TEST(after_a_shutdown) {
    check(AFTER_SHUTDOWN);
}

TEST(again_and_again) {
    check(TWICE);
}

/* ---- a thread that outlives the library's user ---- */

static CCLocalKey key;
static void *(*local_get)(CCLocalKey);
static int (*local_set)(CCLocalKey, void *);
static pthread_barrier_t meet;
static _Atomic int destroyed;

static void destroy(void *value) {
    atomic_fetch_add(&destroyed, value == &key);
}

static void *hold_a_value(void *arg) {
    CHECK_EQ(local_set(key, &key), 0);
    CHECK(local_get(key) == &key);
    (void)pthread_barrier_wait(&meet);
    (void)pthread_barrier_wait(&meet); /* the library is closed in between */
    return arg;
}

static void close_before_the_thread_ends(void *arg) {
    void *library = load(), *result = NULL;
    CHECK_EQ(((run_fn)(uintptr_t)dlsym(library, "cc_run"))(same, arg, &result), 0);
    local_get = (void *(*)(CCLocalKey))(uintptr_t)dlsym(library, "cc_local_get");
    local_set = (int (*)(CCLocalKey, void *))(uintptr_t)dlsym(library, "cc_local_set");
    int (*create)(CCLocalKey *, void (*)(void *)) =
        (int (*)(CCLocalKey *, void (*)(void *)))(uintptr_t)dlsym(library, "cc_local_key_create");
    CHECK_EQ(create(&key, destroy), 0);
    CHECK_EQ(pthread_barrier_init(&meet, NULL, 2), 0);
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, hold_a_value, NULL), 0);
    (void)pthread_barrier_wait(&meet);
    CHECK_EQ(((shutdown_fn)(uintptr_t)dlsym(library, "cc_runtime_shutdown"))(1000), 0);
    CHECK_EQ(dlclose(library), 0);
    (void)pthread_barrier_wait(&meet);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    CHECK_EQ(atomic_load(&destroyed), 1);
}

/* A thread's values (cc_local_set) are destroyed at its end, also after a shutdown and a dlclose. */
TEST(a_thread_ends_later) {
    static struct child child;
    run_child(&child, close_before_the_thread_ends, NULL);
    if (child.status != 0) show_child(&child);
    CHECK_EQ(child.status, 0);
}

/* ---- the static library in a shared object ---- */

static void close_plugin(void *arg) {
    static _Atomic unsigned count;
    (void)arg;
    for (int round = 0; round < 2; round++) {
        void *plugin = dlopen(PLUGIN, RTLD_NOW | RTLD_LOCAL);
        if (plugin == NULL) printf("%s\n", dlerror());
        CHECK(plugin != NULL);
        int (*begin)(_Atomic unsigned *) = (int (*)(_Atomic unsigned *))(uintptr_t)dlsym(plugin, "plugin_begin");
        CHECK(begin != NULL);
        CHECK_EQ(begin(&count), 0);
        CHECK_EQ(dlclose(plugin), 0);
        unsigned closed = atomic_load(&count);
        while (atomic_load(&count) < closed + 10) (void)usleep(1000); /* its fibers continue */
    }
}

/* It stays, because its workers run (cc__loaded_keep). */
TEST(a_plugin_that_contains_the_library) {
    static struct child child;
    run_child(&child, close_plugin, NULL);
    if (child.status != 0) show_child(&child);
    CHECK_EQ(child.status, 0);
}

/* ---- a constructor that waits for the runtime ---- */

static void load_and_ask(void *arg) {
    (void)arg;
    void *object = dlopen(CONSTRUCTOR, RTLD_NOW | RTLD_LOCAL);
    if (object == NULL) printf("%s\n", dlerror());
    CHECK(object != NULL);
    int (*ran)(void) = (int (*)(void))(uintptr_t)dlsym(object, "constructor_ran");
    CHECK(ran != NULL);
    CHECK_EQ(ran(), 0);
}

/* The start of the runtime waits for no dlopen of another thread: the shared library stays anyway. */
TEST(a_constructor_that_waits_for_the_runtime) {
    static struct child child;
    run_child(&child, load_and_ask, NULL);
    if (child.status != 0) show_child(&child);
    CHECK_EQ(child.status, 0);
}
