/* errno_kept.c - no call of the library changes errno for a caller that stays on its thread. */
#include "../unit/ending.h"
#include "harness.h"
#include "refusing_port.h"

#include <ccc/ccc.h>

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

/* Reads errno by a call each time: the compiler may assume that its address is constant. Atomic because fibers of
 * one thread share it, and a race detector sees fibers as threads. */
__attribute__((noinline)) static int *the_errno(void) {
    int *address = &errno;
    __asm__ volatile("" : "+r"(address));
    return address;
}

static void set_errno(int value) {
    __atomic_store_n(the_errno(), value, __ATOMIC_RELAXED);
}

static int get_errno(void) {
    return __atomic_load_n(the_errno(), __ATOMIC_RELAXED);
}

#define KEEPS_ERRNO(call)                                                                                        \
    do {                                                                                                         \
        set_errno(EXDEV);                                                                                        \
        call;                                                                                                    \
        int after_ = get_errno();                                                                                \
        if (after_ != EXDEV) test_fail(__FILE__, __LINE__, "%s left errno at %d, not %d", #call, after_, EXDEV); \
    } while (0)

static void *echo(void *arg) {
    return arg;
}

static void *yield_some(void *arg) {
    for (int i = 0; i < 300; i++) cc_yield();
    return arg;
}

static void *sleep_some(void *arg) {
    CHECK_EQ(cc_sleep_ms(3), 0);
    return arg;
}

/* Every call, with each kind of outcome: at once, after a wait, failed. Fibers and OS threads. */
static void *all_calls(void *arg) {
    CCTask task, copy;
    void *result = NULL;
    int rc = -1;
    for (int i = 0; i < 20; i++) {
        KEEPS_ERRNO(rc = cc_spawn(&task, echo, arg, NULL));
        CHECK_EQ(rc, 0);
        KEEPS_ERRNO(rc = cc_task_join(&task, &result));
        CHECK_EQ(rc, 0);
        KEEPS_ERRNO(task = cc_fiber_spawn_task(yield_some, arg));
        KEEPS_ERRNO(cc_yield());
        KEEPS_ERRNO(rc = cc_task_join_try(&task, &result));
        CHECK(rc == EAGAIN || rc == 0);
        if (rc == EAGAIN) {
            KEEPS_ERRNO(rc = cc_task_join_until(&task, &result, cc_after_ns(1000)));
            CHECK(rc == 0 || rc == ETIMEDOUT);
        }
        if (rc != 0) {
            KEEPS_ERRNO(rc = cc_task_dup(&task, &copy));
            KEEPS_ERRNO(rc = cc_task_join(&task, &result));
            KEEPS_ERRNO(rc = cc_task_join(&copy, &result));
            CHECK_EQ(rc, 0);
        }
        CCSpawnOptions options = {.name = "named", .stack_size = (size_t)32 * 1024 << (i % 8)};
        KEEPS_ERRNO(
            rc = cc_spawn(&task, sleep_some, arg, &options)); /* its stack comes from a new mapping, with a guard */
        CHECK_EQ(rc, 0);
        KEEPS_ERRNO(rc = cc_task_join_until(&task, &result, cc_after_ns(100000)));
        CHECK(rc == 0 || rc == ETIMEDOUT);
        if (rc != 0) KEEPS_ERRNO(rc = cc_task_join(&task, &result)); /* the worker sleeps meanwhile, until a timer */
        CHECK_EQ(rc, 0);
        KEEPS_ERRNO(rc = cc_spawn(&task, sleep_some, arg, NULL));
        KEEPS_ERRNO(rc = cc_task_detach(&task));
        KEEPS_ERRNO(rc = cc_sleep_ms(2));
        KEEPS_ERRNO(rc = cc_sleep_until(CC_PASSED));
        KEEPS_ERRNO(result = cc_block_on(cc_fiber_spawn_task(sleep_some, arg)));
        CHECK(result == arg);
        KEEPS_ERRNO(rc = cc_run(sleep_some, arg, &result));
        /* Failing calls. */
        task.id = UINT64_C(0x7fffffff00000001);
        KEEPS_ERRNO(rc = cc_task_join(&task, NULL));
        CHECK_EQ(rc, ESRCH);
        KEEPS_ERRNO(rc = cc_spawn(&task, NULL, NULL, NULL));
        CHECK_EQ(rc, EINVAL);
        KEEPS_ERRNO((void)cc_fiber_id());
        KEEPS_ERRNO((void)cc_in_fiber());
        KEEPS_ERRNO((void)cc_fiber_set_name("again"));
        KEEPS_ERRNO((void)cc_fiber_name());
        KEEPS_ERRNO((void)cc_worker_count());
        KEEPS_ERRNO((void)cc_now_ns());
    }
    return arg;
}

/* The network: what succeeds, what has to wait, what the system refuses. */
static void *network_calls(void *arg) {
    CCListener *l, *second;
    CCConn *c, *a;
    CCAddr addr;
    CCReader in;
    CCWriter out;
    struct sockaddr_in refuses;
    char byte, *line, text[CC_ADDR_TEXT_MAX];
    size_t n;
    int rc = -1;
    KEEPS_ERRNO(rc = cc_addr_parse(&addr, "nonsense"));
    KEEPS_ERRNO(rc = cc_addr_parse(&addr, "fe80::1%nosuchinterface"));
    KEEPS_ERRNO(rc = cc_listen(&l, "tcp://127.0.0.1:0", NULL));
    CHECK_EQ(rc, 0);
    KEEPS_ERRNO(rc = cc_listener_addr(l, &addr));
    KEEPS_ERRNO(rc = cc_addr_print(&addr, text, sizeof text));
    KEEPS_ERRNO(rc = cc_listen(&second, "unix:/nonexistent/socket?unlink", NULL));
    KEEPS_ERRNO(rc = cc_listener_from_fd(&second, -1, NULL));
    CHECK_EQ(rc, EBADF);
    KEEPS_ERRNO(rc = cc_accept_try(l, &c));
    CHECK_EQ(rc, EAGAIN);
    KEEPS_ERRNO(rc = cc_accept_until(l, &c, cc_after_ms(1)));
    KEEPS_ERRNO(rc = cc_dial_addr(&c, &addr, NULL, CC_FOREVER));
    CHECK_EQ(rc, 0);
    KEEPS_ERRNO(rc = cc_accept(l, &a));
    CHECK_EQ(rc, 0);
    KEEPS_ERRNO(rc = cc_read_try(c, &byte, 1, &n));
    KEEPS_ERRNO(rc = cc_read_until(c, &byte, 1, &n, cc_after_ms(1)));
    KEEPS_ERRNO(rc = cc_conn_alive(c));
    CHECK_EQ(rc, 0);
    KEEPS_ERRNO(rc = cc_unix_send_fds(c, NULL, 0, "x", 1));
    CHECK(cc_reader_init(&in, a, 0) == 0 && cc_writer_init(&out, c, 0) == 0);
    KEEPS_ERRNO(rc = cc_writer_print(&out, "%s\n", "line"));
    KEEPS_ERRNO(rc = cc_writer_flush(&out));
    KEEPS_ERRNO(rc = cc_reader_line(&in, &line, &n));
    CHECK(rc == 0 && n == 4);
    KEEPS_ERRNO(cc_reader_free(&in));
    KEEPS_ERRNO(rc = cc_copy(c, a, 0, NULL));
    KEEPS_ERRNO(cc_abort(a));
    KEEPS_ERRNO(rc = cc_read(c, &byte, 1, &n));
    CHECK_EQ(rc, ECONNRESET);
    KEEPS_ERRNO(rc = cc_shutdown(c, CC_SHUT_BOTH));
    KEEPS_ERRNO(cc_close(c));
    KEEPS_ERRNO(cc_listener_close(l));
    int bound = refusing_port(&refuses);
    CHECK_EQ(cc_addr_from_sockaddr(&addr, (struct sockaddr *)&refuses, sizeof refuses), 0);
    KEEPS_ERRNO(rc = cc_dial_addr(&c, &addr, NULL, CC_FOREVER));
    CHECK_EQ(rc, ECONNREFUSED);
    CHECK_EQ(close(bound), 0);
    n = 1;
    KEEPS_ERRNO(rc = cc_resolve("localhost", "1", NULL, &addr, &n));
    return arg;
}

TEST_WORKERS(the_network) {
    CHECK(network_calls(NULL) == NULL);
}

/* On several workers a fiber that has waited may find the errno of another thread. */
TEST(the_network_on_one_worker) {
    CCRuntimeConfig config = {.workers = 1};
    CHECK_EQ(cc_runtime_init(&config), 0);
    CHECK_EQ(cc_run(network_calls, NULL, NULL), 0);
}

TEST(a_fiber_on_one_worker) {
    CCRuntimeConfig config = {.workers = 1};
    KEEPS_ERRNO(CHECK_EQ(cc_runtime_init(&config), 0));
    CHECK_EQ(cc_run(all_calls, &config, NULL), 0);
    KEEPS_ERRNO(CHECK_EQ(cc_runtime_shutdown(10000), 0));
}

TEST_WORKERS(an_os_thread) {
    CHECK(all_calls(NULL) == NULL);
    CHECK_EQ(cc_runtime_shutdown(10000), 0);
}

/* The first use starts everything: mappings, threads, probes that fail on purpose. */
TEST_WORKERS(the_first_use) {
    for (int i = 0; i < 10; i++) {
        CCTask task;
        int rc;
        KEEPS_ERRNO(rc = cc_spawn(&task, echo, &task, NULL));
        CHECK_EQ(rc, 0);
        CHECK_EQ(cc_task_join(&task, NULL), 0);
        KEEPS_ERRNO(rc = cc_runtime_shutdown(10000));
        CHECK_EQ(rc, 0);
    }
}

/* A shutdown that cancels, and one that times out. */
static void *sleep_long(void *arg) {
    KEEPS_ERRNO(CHECK_EQ(cc_sleep_ms(3600 * 1000), ECANCELED));
    return arg;
}

TEST(a_wait_that_is_cancelled) {
    CCRuntimeConfig config = {.workers = 1};
    CHECK_EQ(cc_runtime_init(&config), 0);
    for (int i = 0; i < 10; i++) CHECK_EQ(cc_spawn(NULL, sleep_long, NULL, NULL), 0);
    KEEPS_ERRNO(end_after(50));
}

/* The fibers of a worker share its thread-local variables, plainly: a race detector does not complain. */
static _Thread_local int calls;

__attribute__((noinline)) static void use_thread_locals(void) {
    calls++;
    errno = 0;
    CHECK_EQ(strtol("17", NULL, 10), 17);
    CHECK_EQ(errno, 0);
}

static void *use_and_yield(void *arg) {
    for (int i = 0; i < 10; i++) {
        use_thread_locals();
        cc_yield();
    }
    return arg;
}

TEST_WORKERS(thread_locals_are_shared) {
    CCTask tasks[10];
    for (int i = 0; i < 10; i++) tasks[i] = cc_fiber_spawn_task(use_and_yield, NULL);
    for (int i = 0; i < 10; i++) CHECK_EQ(cc_task_join(&tasks[i], NULL), 0);
}
