/* signals.c - a signal every millisecond, which interrupts the sleeps of workers and whose handler runs on fibers'
 * stacks, changes nothing. */
#include "../stress/storm_join.h"
#include "../stress/storm_park.h"
#include "where.h"

#include "base/san.h"

#include <signal.h>
#include <sys/time.h>

static atomic_long signals;

/* errno is the thread's, and the race detector sees the fibers on it as threads. */
static CC_NO_TSAN void on_alarm(int sig) {
    (void)sig;
    int saved = errno;
    atomic_fetch_add(&signals, 1);
    errno = EINTR;
    errno = saved;
}

static void alarm_every_ms(int flags) {
    struct sigaction action = {.sa_handler = on_alarm, .sa_flags = flags};
    CHECK_EQ(sigaction(SIGALRM, &action, NULL), 0);
    struct itimerval every = {{0, 1000}, {0, 1000}};
    CHECK_EQ(setitimer(ITIMER_REAL, &every, NULL), 0);
}

static void *nap(void *arg) {
    uint64_t rng = (uintptr_t)arg;
    long rounds = test_rounds(200, 20000);
    for (long i = 0; i < rounds; i++) {
        CCDeadline until = cc_after_ns(below(&rng, 2000000));
        CHECK_EQ(cc_sleep_until(until), 0);
        CHECK(cc_now_ns() >= until.ns);
    }
    return NULL;
}

static void *fib(void *arg) {
    uintptr_t n = (uintptr_t)arg;
    if (n < 2) return arg;
    CCTask first = spawn(fib, (void *)(n - 1)), second = spawn(fib, (void *)(n - 2));
    uintptr_t a = (uintptr_t)join(first);
    return (void *)(a + (uintptr_t)join(second));
}

/* Storms, sleepers and trees, on fibers and on OS threads, until enough signals have come. */
static void weather(int flags) {
    if (UNDER_TSAN) SKIP("the race detector deadlocks if a signal comes while it frees memory");
    enum { NAPPERS = 20 };
    CCTask naps[NAPPERS];
    uint64_t rng = test_seed();
    long wanted = test_rounds(400, 60000), rounds = 0;
    test_touch_stack();
    alarm_every_ms(flags);
    pthread_t thread = start_thread(nap, (void *)(uintptr_t)test_random(&rng));
    for (int i = 0; i < NAPPERS; i++) naps[i] = spawn(nap, (void *)(uintptr_t)test_random(&rng));
    do {
        join_storm(5, test_random(&rng));
        park_storm(200, rounds % 2 == 0, test_random(&rng));
        void *result;
        CHECK_EQ(cc_run(fib, (void *)(uintptr_t)12, &result), 0);
        CHECK_EQ((uintptr_t)result, 144);
        rounds++;
    } while (atomic_load(&signals) < wanted);
    for (int i = 0; i < NAPPERS; i++) join(naps[i]);
    join_thread(thread);
    test_count("signals", (uint64_t)atomic_load(&signals));
    finish();
    printf("%ld signals in %ld rounds\n", atomic_load(&signals), rounds);
}

TEST_WORKERS(calls_are_restarted, .timeout = 120) {
    weather(SA_RESTART);
}

TEST_WORKERS(calls_are_interrupted, .timeout = 120) {
    weather(0);
}

TEST_WORKERS(on_the_alternate_stack, .timeout = 120) {
    weather(SA_ONSTACK);
}
