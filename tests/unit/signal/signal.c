/* signal.c - signals arrive in channels, from any sender, with and without a runtime; actions are restored. */
#include "harness.h"

#include "base/attr.h"

#include <ccc/ccc.h>
#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

static CCChan *signals_of(size_t capacity) {
    CCChan *ch = cc_chan_create(sizeof(CCSignal), capacity);
    CHECK(ch != NULL);
    return ch;
}

static CCChan *subscribed(int number, size_t capacity) {
    CCChan *ch = signals_of(capacity);
    CHECK_EQ(cc_signal_notify(ch, &number, 1), 0);
    return ch;
}

static CCSignal next_of(CCChan *ch) {
    CCSignal s = {0};
    CHECK_EQ(cc_chan_recv(ch, &s, sizeof s), 0);
    return s;
}

static void end(CCChan *ch) {
    CHECK_EQ(cc_signal_stop(ch), 0);
    cc_chan_free(ch);
}

static void *receives(void *arg) {
    CCChan *ch = signals_of(4);
    CHECK_EQ(cc_signal_notify(ch, (int[]){SIGUSR1, SIGTERM}, 2), 0);
    CHECK_EQ(kill(getpid(), SIGTERM), 0);
    CCSignal s = next_of(ch);
    CHECK(s.number == SIGTERM && s.pid == getpid() && s.uid == getuid() && s.code == SI_USER && s.value == 0);
    CHECK_EQ(sigqueue(getpid(), SIGUSR1, (union sigval){.sival_int = 42}), 0);
    s = next_of(ch);
    CHECK(s.number == SIGUSR1 && s.pid == getpid() && s.code == SI_QUEUE && (int)s.value == 42);
    end(ch);
    return arg;
}

TEST(before_a_runtime_runs_and_after_its_end) {
    (void)receives(NULL);
    CHECK_EQ(cc_worker_count(), 0);
    CHECK_EQ(cc_run(receives, NULL, NULL), 0);
    CHECK_EQ(cc_runtime_shutdown(UINT64_MAX), 0);
    (void)receives(NULL);
    CHECK_EQ(cc_worker_count(), 0);
}

static _Atomic bool restarts_end;

static void *restarts(void *arg) {
    for (int i = 0; i < 100; i++) {
        CHECK_EQ(cc_runtime_init(NULL), 0);
        CHECK_EQ(cc_runtime_shutdown(UINT64_MAX), 0);
    }
    restarts_end = true;
    return arg;
}

TEST(while_another_thread_starts_and_stops_the_runtime, .timeout = 300) { /* two threads contend for the start */
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, restarts, NULL), 0);
    while (!restarts_end) end(subscribed(SIGUSR1, 1));
    CHECK_EQ(pthread_join(thread, NULL), 0);
}

TEST_WORKERS(fibers_receive) {
    CHECK_EQ(cc_run(receives, NULL, NULL), 0);
}

/* A signal that arrives while nobody receives is buffered; those that do not fit are counted, and nobody waits. */
TEST(what_finds_no_room_is_counted) {
    CCChan *ch = subscribed(SIGUSR1, 1);
    CCChan *all = signals_of(100);
    CHECK_EQ(cc_signal_notify(all, (int[]){SIGUSR1, SIGRTMIN + 1}, 2), 0);
    CHECK_EQ(cc_signal_dropped(SIGUSR1), 0);
    for (int i = 0; i < 3; i++) { /* one after the other: pending signals are merged */
        CHECK_EQ(raise(SIGUSR1), 0);
        CHECK_EQ(next_of(all).number, SIGUSR1);
    }
    CHECK_EQ(raise(SIGRTMIN + 1), 0);
    CHECK_EQ(next_of(all).number, SIGRTMIN + 1); /* all before it have been sent */
    CHECK_EQ(cc_signal_dropped(SIGUSR1), 2);
    CHECK_EQ(cc_signal_dropped(SIGRTMIN + 1), 0);
    CHECK_EQ(cc_signal_dropped(0) + cc_signal_dropped(-1) + cc_signal_dropped(65), 0);
    CHECK_EQ(next_of(ch).number, SIGUSR1);
    CHECK_EQ(cc_chan_len(ch), 0);
    end(ch);
    end(all);
}

/* ---- several subscribers ---- */

enum { SUBSCRIBERS = 5 };

CC_CHILD(receive_one, { CCChan *ch; }) {
    CCSignal s;
    int rc = cc_chan_recv(self->ch, &s, sizeof s);
    if (rc == 0) CHECK_EQ(s.number, SIGHUP);
    return rc;
}

static void *several(void *arg) {
    CCChan *ch[SUBSCRIBERS];
    CC_NURSERY(n) {
        for (int i = 0; i < SUBSCRIBERS; i++) {
            ch[i] = subscribed(SIGHUP, 1);
            CHECK_EQ(CC_GO_IN(n, receive_one, .ch = ch[i]), 0);
        }
        CHECK_EQ(kill(getpid(), SIGHUP), 0);
    }
    for (int i = 0; i < SUBSCRIBERS; i++) end(ch[i]);
    return arg;
}

TEST_WORKERS(everybody_gets_it) {
    CHECK_EQ(cc_run(several, NULL, NULL), 0);
}

static void *arm(void *arg) {
    CCChan *ch = subscribed(SIGINT, 1);
    CCSignal s = {0};
    int closed;
    CC_MATCH_TRY(CC_RECV_SIGNAL(ch, &s, &closed)) {
    case CC_MATCH_NONE:
        break;
    default:
        CHECK(false);
    }
    CHECK_EQ(kill(getpid(), SIGINT), 0);
    CC_MATCH(CC_RECV_SIGNAL(ch, &s, &closed), CC_AFTER_MS(60000)) {
    case 0:
        break;
    default:
        CHECK(false);
    }
    CHECK(s.number == SIGINT && closed == 0);
    end(ch);
    return arg;
}

TEST(is_an_arm_of_select) {
    (void)arm(NULL);
    CHECK_EQ(cc_run(arm, NULL, NULL), 0);
}

/* ---- actions ---- */

static atomic_int handled;

static void on_signal(int number) {
    atomic_store(&handled, number);
}

static void *handler_of(int number) {
    struct sigaction now;
    CHECK_EQ(sigaction(number, NULL, &now), 0);
    return (void *)(uintptr_t)now.sa_handler;
}

TEST(the_programs_own_handler_comes_back) {
    CHECK(signal(SIGUSR1, on_signal) != SIG_ERR);
    CCChan *ch = subscribed(SIGUSR1, 1), *other = subscribed(SIGUSR1, 1);
    CHECK_EQ(raise(SIGUSR1), 0);
    CHECK_EQ(next_of(ch).number, SIGUSR1);
    CHECK_EQ(next_of(other).number, SIGUSR1);
    end(ch);
    CHECK(handler_of(SIGUSR1) != (void *)(uintptr_t)on_signal); /* one subscription is left */
    end(other);
    CHECK_EQ(atomic_load(&handled), 0);
    CHECK(handler_of(SIGUSR1) == (void *)(uintptr_t)on_signal);
    CHECK_EQ(raise(SIGUSR1), 0);
    CHECK_EQ(atomic_load(&handled), SIGUSR1);

    /* One that was installed meanwhile stays. */
    ch = subscribed(SIGUSR2, 1);
    CHECK(signal(SIGUSR2, on_signal) != SIG_ERR);
    end(ch);
    CHECK(handler_of(SIGUSR2) == (void *)(uintptr_t)on_signal);
    ch = subscribed(SIGHUP, 1);
    CHECK(signal(SIGHUP, SIG_IGN) != SIG_ERR);
    end(ch);
    CHECK(handler_of(SIGHUP) == (void *)(uintptr_t)SIG_IGN);

    /* It is also what the next subscription finds. */
    ch = subscribed(SIGWINCH, 1);
    CHECK(signal(SIGWINCH, on_signal) != SIG_ERR);
    other = subscribed(SIGWINCH, 1);
    CHECK(handler_of(SIGWINCH) != (void *)(uintptr_t)on_signal);
    end(ch);
    end(other);
    CHECK(handler_of(SIGWINCH) == (void *)(uintptr_t)on_signal);
    ch = subscribed(SIGWINCH, 1);
    CHECK(signal(SIGWINCH, SIG_DFL) != SIG_ERR);
    CHECK_EQ(cc_signal_ignore(&(int){SIGWINCH}, 1), 0);
    CHECK_EQ(cc_signal_reset(&(int){SIGWINCH}, 1), 0);
    CHECK(handler_of(SIGWINCH) == (void *)(uintptr_t)SIG_DFL);
    cc_chan_free(ch);
}

TEST_DIES(the_default_action_comes_back, "", .signal = SIGTERM) {
    end(subscribed(SIGTERM, 1));
    raise(SIGTERM);
}

/* ---- nurseries ---- */

static void *waits(void *arg) {
    CHECK_EQ(cc_sleep_until(CC_FOREVER), ECANCELED);
    return arg;
}

static void *is_cancelled(void *arg) {
    int rc = -1;
    for (int i = 0; i < 3; i++) {
        CC_NURSERY(n, .result = &rc) {
            CHECK_EQ(cc_signal_cancel(n, (int[]){SIGUSR1}, 1), 0);
            CHECK_EQ(cc_signal_cancel(n, (int[]){SIGUSR1, SIGTERM}, 2), 0);
            CHECK_EQ(cc_nursery_spawn(n, waits, NULL), 0);
            CHECK_EQ(kill(getpid(), i == 0 ? SIGUSR1 : SIGTERM), 0);
            CHECK_EQ(cc_sleep_until(CC_FOREVER), ECANCELED); /* the block is below it, too */
            CCError reason;
            CHECK_EQ(cc_cancel_reason(&reason), 0);
            CHECK_EQ(reason.code, EINTR);
            CHECK(strncmp(reason.text, "signal ", 7) == 0);
        }
        CHECK_EQ(rc, EINTR);
    }
    return arg;
}

static void on_usr1(int number) {
    (void)number;
}

TEST_WORKERS(a_nursery_is_cancelled) {
    CHECK(signal(SIGUSR1, on_usr1) == SIG_DFL);
    (void)is_cancelled(NULL);
    CHECK_EQ(cc_run(is_cancelled, NULL, NULL), 0);
    CHECK(signal(SIGUSR1, SIG_DFL) == on_usr1); /* the exit has ended it */
    CCNursery *one = cc_nursery_create(NULL), *two = cc_nursery_create(NULL);
    CCChan *ch = subscribed(SIGUSR1, 1);
    CHECK_EQ(cc_signal_cancel(one, (int[]){SIGUSR1}, 1), 0);
    CHECK_EQ(cc_signal_cancel(two, (int[]){SIGUSR2}, 1), 0);
    CHECK_EQ(kill(getpid(), SIGUSR1), 0);
    CHECK_EQ(cc_nursery_spawn(one, waits, NULL), 0);
    CHECK_EQ(cc_nursery_wait(one), EINTR);
    CHECK_EQ(next_of(ch).number, SIGUSR1); /* everybody gets it */
    CHECK_EQ(cc_nursery_wait(two), 0);
    end(ch);
    CHECK_EQ(cc_nursery_free(one), 0);
    CHECK_EQ(cc_nursery_free(two), 0);
    CHECK_EQ(cc_signal_cancel(NULL, (int[]){SIGUSR1}, 1), EINVAL);
    one = cc_nursery_create(NULL);
    CHECK_EQ(cc_signal_cancel(one, (int[]){SIGKILL}, 1), EINVAL);
    CHECK_EQ(cc_signal_cancel(one, NULL, 1), EINVAL);
    CHECK_EQ(cc_signal_cancel(one, (int[]){SIGUSR1}, 1), 0);
    CHECK_EQ(cc_nursery_free(one), 0); /* without a wait */
}

TEST(ignore_and_reset) {
    CCChan *ch = subscribed(SIGTERM, 1);
    CHECK_EQ(cc_signal_notify(ch, &(int){SIGUSR1}, 1), 0);
    CHECK_EQ(cc_signal_ignore(&(int){SIGTERM}, 1), 0);
    CHECK(handler_of(SIGTERM) == (void *)(uintptr_t)SIG_IGN);
    CHECK_EQ(raise(SIGTERM), 0);
    CHECK_EQ(raise(SIGUSR1), 0);
    CHECK_EQ(next_of(ch).number, SIGUSR1); /* the other subscription stays */
    CHECK_EQ(cc_signal_notify(ch, &(int){SIGTERM}, 1), 0);
    CHECK_EQ(raise(SIGTERM), 0);
    CHECK_EQ(next_of(ch).number, SIGTERM);
    CHECK_EQ(cc_signal_stop(ch), 0);
    CHECK(handler_of(SIGTERM) == (void *)(uintptr_t)SIG_IGN); /* as before */
    CHECK_EQ(cc_signal_reset(&(int){SIGTERM}, 1), 0);
    CHECK(handler_of(SIGTERM) == (void *)(uintptr_t)SIG_DFL);
    CHECK_EQ(cc_signal_reset(&(int){SIGTERM}, 1), 0);

    CHECK_EQ(cc_signal_notify(ch, (int[]){SIGTERM, SIGHUP}, 2), 0);
    CHECK_EQ(cc_signal_reset((int[]){SIGTERM, SIGHUP}, 2), 0);
    CHECK_EQ(cc_signal_stop(ch), ESRCH); /* nothing was left of it */
    CHECK(handler_of(SIGHUP) == (void *)(uintptr_t)SIG_DFL);
    cc_chan_free(ch);
}

/* ---- a signal that is still in the pipe ---- */

static atomic_bool hold; /* the library's thread, when it has read a signal */
static atomic_bool held; /* it is there */
static pthread_t main_thread;

/* In the place of the C library's. */
ssize_t read(int fd, void *to, size_t size) {
    ssize_t n = syscall(SYS_read, fd, to, size);
    int error = errno;
    while (n > 0 && atomic_load(&hold) && !pthread_equal(pthread_self(), main_thread)) {
        atomic_store(&held, true);
        usleep(100);
    }
    errno = error;
    return n;
}

static void catch_and_hold(int number) {
    main_thread = pthread_self();
    atomic_store(&held, false);
    atomic_store(&hold, true);
    CHECK_EQ(raise(number), 0);
    while (!atomic_load(&held)) usleep(100);
}

/* It was caught for those that were subscribed at that moment. */
TEST(a_later_subscription_gets_nothing_old) {
    CCSignal s;
    CCChan *first = subscribed(SIGUSR1, 4), *stays = subscribed(SIGUSR1, 4), *late = signals_of(4);
    CHECK_EQ(cc_signal_notify(stays, &(int){SIGUSR2}, 1), 0);
    catch_and_hold(SIGUSR1);
    CHECK_EQ(cc_signal_stop(first), 0);
    CHECK_EQ(cc_signal_notify(late, (int[]){SIGUSR1, SIGUSR2}, 2), 0);
    CHECK_EQ(cc_signal_notify(first, (int[]){SIGUSR1, SIGUSR2}, 2), 0);
    atomic_store(&hold, false);
    CHECK_EQ(raise(SIGUSR2), 0);
    CHECK_EQ(next_of(stays).number, SIGUSR1);
    CHECK_EQ(next_of(stays).number, SIGUSR2);
    CHECK_EQ(next_of(late).number, SIGUSR2); /* and not the earlier one */
    CHECK_EQ(next_of(first).number, SIGUSR2);

    /* A signal that was added later. */
    CHECK_EQ(cc_signal_reset(&(int){SIGUSR1}, 1), 0);
    CHECK_EQ(cc_signal_notify(stays, &(int){SIGUSR1}, 1), 0);
    catch_and_hold(SIGUSR1);
    CHECK_EQ(cc_signal_notify(late, &(int){SIGUSR1}, 1), 0);
    atomic_store(&hold, false);
    CHECK_EQ(next_of(stays).number, SIGUSR1);
    CHECK_EQ(raise(SIGUSR2), 0);
    CHECK_EQ(next_of(late).number, SIGUSR2);
    CHECK_EQ(cc_chan_recv_try(late, &s, sizeof s), EAGAIN);
    end(first);
    end(stays);
    end(late);
}

/* ---- a send in progress ---- */

static atomic_bool hold_text, released;

/* In the place of the C library's. The library's thread uses it just before it cancels a nursery. */
int snprintf(char *text, size_t size, const char *format, ...) {
    va_list args;
    va_start(args, format);
    int n = vsnprintf(text, size, format, args);
    va_end(args);
    while (strcmp(format, "signal %d") == 0 && atomic_load(&hold_text)) {
        atomic_store(&held, true);
        usleep(100);
    }
    return n;
}

static void *release_soon(void *arg) {
    usleep(20000); /* not synchronisation: a chance for the call to return too early */
    atomic_store(&released, true);
    atomic_store(&hold_text, false);
    return arg;
}

/* The nursery keeps another subscription. */
TEST(ignore_and_reset_wait_for_a_send) {
    static int (*const calls[])(const int *signals, size_t count) = {cc_signal_ignore, cc_signal_reset};
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        CCNursery *n = cc_nursery_create(NULL);
        pthread_t thread;
        CHECK_EQ(cc_signal_cancel(n, (int[]){SIGUSR1, SIGUSR2}, 2), 0);
        atomic_store(&held, false);
        atomic_store(&released, false);
        atomic_store(&hold_text, true);
        CHECK_EQ(raise(SIGUSR1), 0);
        while (!atomic_load(&held)) usleep(100);
        CHECK_EQ(pthread_create(&thread, NULL, release_soon, NULL), 0);
        CHECK_EQ(calls[i](&(int){SIGUSR1}, 1), 0);
        CHECK(atomic_load(&released));
        CHECK_EQ(pthread_join(thread, NULL), 0);
        CHECK_EQ(cc_nursery_wait(n), EINTR); /* it was sent before */
        CHECK_EQ(cc_nursery_free(n), 0);
    }
}

TEST(a_closed_channel_is_forgotten) {
    CCChan *ch = subscribed(SIGUSR1, 1), *other = subscribed(SIGUSR1, 1);
    CHECK_EQ(cc_chan_close(ch), 0);
    CHECK_EQ(raise(SIGUSR1), 0);
    CHECK_EQ(next_of(other).number, SIGUSR1);
    CHECK_EQ(raise(SIGUSR1), 0);
    CHECK_EQ(next_of(other).number, SIGUSR1);
    CHECK_EQ(cc_signal_stop(ch), ESRCH);
    cc_chan_free(ch);
    end(other);
}

TEST(errors) {
    CCChan *ch = signals_of(1), *ints = cc_chan_create(sizeof(int), 1);
    CHECK_EQ(cc_signal_notify(NULL, &(int){SIGUSR1}, 1), EINVAL);
    CHECK_EQ(cc_signal_notify(ch, NULL, 1), EINVAL);
    CHECK_EQ(cc_signal_notify(ch, &(int){SIGUSR1}, 0), EINVAL);
    CHECK_EQ(cc_signal_notify(ch, &(int){SIGUSR1}, 65), EINVAL);
    CHECK_EQ(cc_signal_notify(ints, &(int){SIGUSR1}, 1), EINVAL);
    const int bad[] = {0, -1, 65, 32, 33, SIGKILL, SIGSTOP, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        CHECK_EQ(cc_signal_notify(ch, (int[]){SIGUSR1, bad[i]}, 2), EINVAL);
        CHECK_EQ(cc_signal_ignore(&bad[i], 1), EINVAL);
        CHECK_EQ(cc_signal_reset(&bad[i], 1), EINVAL);
    }
    CHECK(handler_of(SIGUSR1) == (void *)(uintptr_t)SIG_DFL); /* all or nothing */
    CHECK_EQ(cc_signal_notify(ch, &(int){SIGURG}, 1), EBUSY);
    CHECK_EQ(cc_signal_stop(ch), ESRCH);
    CHECK_EQ(cc_signal_stop(NULL), EINVAL);

    /* The runtime's while it runs. */
    CHECK_EQ(cc_runtime_init(NULL), 0);
    CHECK_EQ(cc_signal_notify(ch, &(int){SIGQUIT}, 1), EBUSY);
    CHECK_EQ(cc_runtime_shutdown(0), 0);
    CHECK_EQ(cc_signal_notify(ch, &(int){SIGQUIT}, 1), 0);
    CHECK_EQ(cc_runtime_init(NULL), 0); /* which finds it taken */
    CHECK_EQ(raise(SIGQUIT), 0);
    CHECK_EQ(next_of(ch).number, SIGQUIT);
    end(ch);
    cc_chan_free(ints);
}

/* ---- forks, programs, deadlocks ---- */

TEST(a_forked_child_has_none) {
    CCChan *ch = subscribed(SIGTERM, 4);
    CHECK_EQ(cc_signal_ignore(&(int){SIGHUP}, 1), 0);
    int ends[2];
    CHECK_EQ(pipe(ends), 0);
    pid_t pid = test_fork();
    if (pid == 0) {
        if (handler_of(SIGHUP) != (void *)(uintptr_t)SIG_DFL) _exit(1);
        if (cc_signal_stop(ch) != ESRCH) _exit(2);
#ifndef CC_TSAN                               /* which has no threads after a fork */
        CCChan *own = subscribed(SIGUSR1, 1); /* it may have its own */
        if (raise(SIGUSR1) != 0 || next_of(own).number != SIGUSR1) _exit(3);
        end(own);
#endif
        (void)!write(ends[1], "x", 1);
        for (;;) pause();
    }
    char byte;
    CHECK_EQ(read(ends[0], &byte, 1), 1);
    CHECK_EQ(kill(pid, SIGTERM), 0);
    int status;
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
    CHECK_EQ(raise(SIGTERM), 0); /* here all is as before, and nothing of the child's came */
    CHECK_EQ(next_of(ch).pid, getpid());
    CHECK_EQ(cc_chan_len(ch), 0);
    end(ch);
}

/* A signal that comes before the child knows that it is one: it is not taken for the parent's. */
TEST(a_signal_to_a_child_is_not_the_parents) {
    CCChan *ch = subscribed(SIGTERM, 100);
    long rounds = test_scale(50);
    for (long i = 0; i < rounds; i++) {
        pid_t pid = fork();
        if (pid == 0)
            for (;;) pause();
        CHECK_EQ(kill(pid, SIGTERM), 0);
        int status;
        CHECK_EQ(waitpid(pid, &status, 0), pid);
        CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
    }
    CHECK_EQ(cc_chan_len(ch), 0);
    end(ch);
}

static void *waits_for_a_child(void *arg) {
    CCChan *ch = subscribed(SIGUSR1, 1);
    char script[64];
    (void)snprintf(script, sizeof script, "kill -USR1 %d; trap", getpid());
    CCProcessRun run = {0};
    const char *argv[] = {"/bin/sh", "-c", script, NULL};
    int rc = cc_process_run(&(CCProcessOptions){.argv = argv}, &run);
    if (rc == ENOSYS) SKIP("there is no pidfd here");
    CHECK_EQ(rc, 0);
    CHECK_EQ(run.status.code, 0);
    CHECK(next_of(ch).pid > 0);
    cc_process_run_free(&run);
    end(ch);
    return arg;
}

TEST(from_another_process) {
    CHECK_EQ(cc_run(waits_for_a_child, NULL, NULL), 0);
}

/* Nothing in this process could end the wait: but it is no deadlock. */
static void *waits_long(void *arg) {
    CCChan *ch = arg;
    CHECK_EQ(next_of(ch).number, SIGALRM);
    return NULL;
}

TEST(waiting_for_a_signal_is_no_deadlock) {
    CCChan *ch = subscribed(SIGALRM, 1);
    struct itimerval soon = {.it_value = {.tv_usec = 500 * 1000}}; /* deadlocks have been searched for by then */
    CHECK_EQ(setitimer(ITIMER_REAL, &soon, NULL), 0);
    CHECK_EQ(cc_run(waits_long, ch, NULL), 0);
    end(ch);
}

/* ---- races ---- */

static atomic_bool over;

static void *sends_signals(void *arg) {
    while (!atomic_load(&over)) CHECK_EQ(kill(getpid(), SIGUSR1), 0);
    return arg;
}

CC_CHILD(come_and_go, { uint64_t seed; }) {
    for (long i = test_scale(50); i > 0; i--) {
        CCChan *ch = subscribed(SIGUSR1, test_random(&self->seed) % 3);
        if (test_random(&self->seed) % 2) cc_yield();
        if (test_random(&self->seed) % 4 == 0) cc_chan_close(ch);
        CCSignal s;
        if (test_random(&self->seed) % 2) MAY_FAIL(cc_chan_recv_try(ch, &s, sizeof s));
        int rc = cc_signal_stop(ch);
        CHECK(rc == 0 || rc == ESRCH);
        size_t len = cc_chan_len(ch);
        cc_yield();
        CHECK_EQ(cc_chan_len(ch), len); /* nothing comes after the end */
        cc_chan_free(ch);
    }
    return 0;
}

static void *race(void *arg) {
    CC_NURSERY(n) {
        for (int i = 0; i < 4; i++) CHECK_EQ(CC_GO_IN(n, come_and_go, .seed = test_seed() + (uint64_t)i), 0);
    }
    return arg;
}

TEST_WORKERS(subscriptions_come_and_go) {
    CHECK_EQ(cc_signal_ignore(&(int){SIGUSR1}, 1), 0);
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, sends_signals, NULL), 0);
    CHECK_EQ(cc_run(race, NULL, NULL), 0);
    atomic_store(&over, true);
    CHECK_EQ(pthread_join(thread, NULL), 0);
}

/* Nurseries that end while a signal is about to cancel them. */
static void *cancelled_or_not(void *arg) {
    for (long i = 0; i < test_scale(300); i++) {
        int rc = -1;
        CC_NURSERY(n, .result = &rc) {
            CHECK_EQ(cc_signal_cancel(n, &(int){SIGUSR1}, 1), 0);
            for (long k = 0; k < i % 8; k++) cc_yield();
        }
        CHECK(rc == 0 || rc == EINTR);
    }
    return arg;
}

TEST_WORKERS(nurseries_come_and_go) {
    CHECK_EQ(cc_signal_ignore(&(int){SIGUSR1}, 1), 0);
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, sends_signals, NULL), 0);
    CCTask task = cc_fiber_spawn_task(cancelled_or_not, NULL);
    (void)cancelled_or_not(NULL);
    CHECK_EQ(cc_task_join(&task, NULL), 0);
    atomic_store(&over, true);
    CHECK_EQ(pthread_join(thread, NULL), 0);
}

static void *in_a_simulation(void *arg) {
    CCChan *ch = signals_of(1);
    CHECK_EQ(cc_signal_notify(ch, &(int){SIGUSR1}, 1), ENOTSUP);
    CHECK_EQ(cc_signal_ignore(&(int){SIGUSR1}, 1), ENOTSUP);
    CCNursery *n = cc_nursery_create(NULL);
    CHECK_EQ(cc_signal_cancel(n, &(int){SIGUSR1}, 1), ENOTSUP);
    CHECK_EQ(cc_nursery_free(n), 0);
    cc_chan_free(ch);
    return arg;
}

TEST(not_in_a_simulation) {
    CHECK_EQ(cc_sim_run(7, in_a_simulation, NULL, NULL), 0);
}
