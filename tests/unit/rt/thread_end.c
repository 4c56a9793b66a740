/* thread_end.c - what a worker's thread may do when it ends: the destructors of its thread-specific values (in C++, of
 * thread_local objects) run while the shutdown waits for the thread. They may use the library as an OS thread does, but
 * nothing is left that could end a wait. */
#include "harness.h"

#include <ccc/ccc.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>

static pthread_key_t key;
static CCChan *empty, *full, *open;
static CCMutex held;
static CCEvent never;
static atomic_int ran;

static void *nothing(void *arg) {
    return arg;
}

static void use_everything(void *unused) {
    (void)unused;
    int value = 7;
    CHECK_EQ(cc_chan_send(open, &value, sizeof value), 0); /* a call that does not have to wait succeeds */
    CHECK_EQ(cc_chan_recv(open, &value, sizeof value), 0);
    CHECK_EQ(cc_chan_recv(empty, &value, sizeof value), ECANCELED);
    CHECK_EQ(cc_chan_send(full, &value, sizeof value), ECANCELED);
    CHECK_EQ(cc_chan_recv_until(empty, &value, sizeof value, cc_after_ms(1)), ETIMEDOUT);
    CHECK_EQ(cc_sleep_ms(1), 0);
    CHECK_EQ(cc_mutex_lock(&held), ECANCELED);
    CHECK_EQ(cc_event_wait(&never), ECANCELED);
    size_t chosen;
    CCCase cases[] = {CC_RECV(empty, &value, NULL), CC_SEND(full, &value, NULL)};
    CHECK_EQ(cc_select(cases, 2, CC_FOREVER, &chosen), ECANCELED);
    CCTask task;
    CHECK_EQ(cc_spawn(&task, nothing, NULL, NULL), ECANCELED);
    CHECK_EQ(cc_runtime_shutdown(0), EDEADLK);
    CHECK_EQ(cc_runtime_init(NULL), EDEADLK);
    atomic_fetch_add(&ran, 1);
}

static void *leave_a_value(void *unused) {
    CHECK_EQ(pthread_setspecific(key, &ran), 0);
    return unused;
}

TEST_WORKERS(destructors_of_workers, .timeout = 60) {
    CHECK_EQ(pthread_key_create(&key, use_everything), 0);
    empty = cc_chan_create(sizeof(int), 1);
    open = cc_chan_create(sizeof(int), 1000);
    full = cc_chan_create(sizeof(int), 1);
    int value = 1;
    CHECK_EQ(cc_chan_send(full, &value, sizeof value), 0);
    CHECK_EQ(cc_mutex_lock(&held), 0);
    for (int round = 1; round <= 3; round++) {
        CCTask tasks[64];
        atomic_store(&ran, 0);
        for (int i = 0; i < 64; i++) tasks[i] = cc_fiber_spawn_task(leave_a_value, NULL);
        for (int i = 0; i < 64; i++) CHECK_EQ(cc_task_join(&tasks[i], NULL), 0);
        CHECK_EQ(cc_runtime_shutdown(UINT64_MAX), 0);
        CHECK(atomic_load(&ran) >= 1);
    }
    CHECK_EQ(cc_mutex_unlock(&held), 0);
    cc_chan_free(empty);
    cc_chan_free(open);
    cc_chan_free(full);
}
