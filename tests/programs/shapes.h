/* shapes.h - deadlocked programs, and programs that only look so. Each is the body of a child process.
 *
 * A deadlocked one blocks its main thread for ever, so that it must be ended by the deadlock report. A live one waits
 * at least as long as the report would take, is then woken by something that the detector has to consider, and returns.
 */
#ifndef CCC_TESTS_SHAPES_H
#define CCC_TESTS_SHAPES_H

#include "harness.h"

#include <ccc/ccc.h>

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct shape_case {
    const char *name;
    void (*body)(void);
    const char *says[4]; /* dead: what the report has to say */
};

/* ---- dead ---- */

static CCChan *chan_a, *chan_b;
static CCMutex mutex_a, mutex_b;
static CCTask task_a, task_b;
static CCSem sem_a, sem_b;
static CCWaitGroup group;
static CCEvent event;
static CCCond cond;
static CCRWLock rwlock;
static CCBarrier barrier = CC_BARRIER_INIT(2);

static void *receiver(void *ch) {
    uint64_t v;
    (void)cc_chan_recv(ch, &v, sizeof v);
    return NULL;
}

static void *sender(void *ch) {
    for (uint64_t v = 0;; v++)
        if (cc_chan_send(ch, &v, sizeof v) != 0) return NULL;
}

static CCTask start(const char *name, CCTaskFn fn, void *arg) {
    CCTask task;
    CHECK_EQ(cc_spawn(&task, fn, arg, &(CCSpawnOptions){.name = name}), 0);
    return task;
}

static void join(CCTask task) {
    CHECK_EQ(cc_task_join(&task, NULL), 0);
}

/* Nobody frees them: a leak checker finds them here, when the fibers that used them are gone. */
static CCChan *volatile channels[32];

static CCChan *named_channel(const char *name, size_t capacity) {
    static size_t count;
    CCChan *ch = cc_chan_create_ex(&(CCChanConfig){.elem_size = 8, .capacity = capacity, .name = name});
    CHECK(ch != NULL && count < sizeof channels / sizeof channels[0]);
    return channels[count++] = ch;
}

static void dead_recv(void) {
    join(start("reader", receiver, named_channel("empty", 4)));
}

static void dead_readers(void) {
    CCChan *ch = named_channel("jobs", 4);
    CCTask tasks[3];
    for (int i = 0; i < 3; i++) tasks[i] = start("reader", receiver, ch);
    for (int i = 0; i < 3; i++) join(tasks[i]);
}

/* Each of its own channel. */
static void dead_apart(void) {
    CCTask tasks[3];
    for (int i = 0; i < 3; i++) tasks[i] = start("reader", receiver, named_channel("jobs", 4));
    for (int i = 0; i < 3; i++) join(tasks[i]);
}

static CCIsland *lagoon;

static CCTask start_on_island(const char *name, CCTaskFn fn, void *arg) {
    CCTask task;
    CHECK_EQ(cc_island_create(&lagoon, &(CCIslandConfig){.name = "lagoon"}), 0);
    CHECK_EQ(cc_island_spawn(lagoon, &task, fn, arg, &(CCSpawnOptions){.name = name}), 0);
    return task;
}

static void dead_island(void) {
    join(start_on_island("reader", receiver, named_channel("tide", 0)));
}

static void dead_send_full(void) {
    join(start("writer", sender, named_channel("full", 2)));
}

static void dead_rendezvous(void) {
    join(start("caller", sender, named_channel("handshake", 0)));
}

/* Each has one lock before either tries to take the other. */
static void *lock_ab(void *unused) {
    (void)unused;
    MAY_FAIL(cc_mutex_lock(&mutex_a));
    cc_sem_release(&sem_a, 1);
    MAY_FAIL(cc_sem_acquire(&sem_b));
    MAY_FAIL(cc_mutex_lock(&mutex_b));
    return NULL;
}

static void *lock_ba(void *unused) {
    (void)unused;
    MAY_FAIL(cc_mutex_lock(&mutex_b));
    cc_sem_release(&sem_b, 1);
    MAY_FAIL(cc_sem_acquire(&sem_a));
    MAY_FAIL(cc_mutex_lock(&mutex_a));
    return NULL;
}

static void dead_mutexes(void) {
    CCTask one = start("left", lock_ab, NULL), two = start("right", lock_ba, NULL);
    join(one);
    join(two);
}

static void *join_other(void *other) {
    uint64_t go;
    (void)cc_chan_recv(chan_a, &go, sizeof go); /* both handles are there */
    (void)cc_task_join(other, NULL);
    return NULL;
}

static void dead_joins(void) {
    chan_a = named_channel("go", 2);
    task_a = start("chicken", join_other, &task_b);
    task_b = start("egg", join_other, &task_a);
    CCTask copy;
    CHECK_EQ(cc_task_dup(&task_a, &copy), 0);
    for (uint64_t i = 0; i < 2; i++) CHECK_EQ(cc_chan_send(chan_a, &i, sizeof i), 0);
    join(copy);
}

static void *selects(void *unused) {
    (void)unused;
    uint64_t v, w = 1;
    size_t chosen;
    CCCase cases[] = {CC_RECV(chan_a, &v, NULL), CC_SEND(chan_b, &w, NULL)};
    (void)cc_select(cases, 2, CC_FOREVER, &chosen);
    return NULL;
}

static void dead_select(void) {
    chan_a = named_channel("left", 1);
    chan_b = named_channel("right", 0);
    join(start("chooser", selects, NULL));
}

static void *selects_nothing(void *unused) {
    (void)unused;
    uint64_t v, w = 1;
    size_t chosen;
    CCCase cases[] = {CC_RECV((CCChan *)NULL, &v, NULL), CC_SEND((CCChan *)NULL, &w, NULL)};
    (void)cc_select(cases, 2, CC_FOREVER, &chosen);
    return NULL;
}

static void *selects_without_cases(void *unused) {
    (void)unused;
    size_t chosen;
    (void)cc_select(NULL, 0, CC_FOREVER, &chosen);
    return NULL;
}

static void dead_select_of_nothing(void) {
    CCTask empty = start("empty-handed", selects_without_cases, NULL);
    join(start("undecided", selects_nothing, NULL));
    join(empty);
}

static void *acquires(void *unused) {
    (void)unused;
    MAY_FAIL(cc_sem_acquire(&sem_a));
    return NULL;
}

static void dead_semaphore(void) {
    join(start("hungry", acquires, NULL));
}

static void *waits_for_group(void *unused) {
    (void)unused;
    MAY_FAIL(cc_wait_group_wait(&group));
    return NULL;
}

static void dead_wait_group(void) {
    CHECK_EQ(cc_wait_group_add(&group, 1), 0);
    join(start("patient", waits_for_group, NULL));
}

static void *waits_for_event(void *unused) {
    (void)unused;
    MAY_FAIL(cc_event_wait(&event));
    return NULL;
}

static void dead_event(void) {
    join(start("listener", waits_for_event, NULL));
}

static CCOnce once_a;
static CCEvent once_runs;

static void waits_in_once(void *unused) {
    (void)unused;
    cc_event_set(&once_runs); /* it runs */
    MAY_FAIL(cc_mutex_lock(&mutex_a));
}

static void *runs_once(void *unused) {
    MAY_FAIL(cc_once(&once_a, waits_in_once, unused));
    return NULL;
}

static void *locks_and_waits_for_once(void *unused) {
    CHECK_EQ(cc_mutex_lock(&mutex_a), 0);
    CCTask first = start("first", runs_once, NULL);
    MAY_FAIL(cc_event_wait(&once_runs));
    MAY_FAIL(cc_once(&once_a, waits_in_once, unused));
    join(first);
    cc_mutex_unlock(&mutex_a);
    return NULL;
}

static void dead_once(void) {
    join(start("second", locks_and_waits_for_once, NULL));
}

static void *waits_for_cond(void *unused) {
    (void)unused;
    CHECK_EQ(cc_mutex_lock(&mutex_a), 0);
    MAY_FAIL(cc_cond_wait(&cond, &mutex_a));
    cc_mutex_unlock(&mutex_a);
    return NULL;
}

static void dead_condition(void) {
    join(start("waiter", waits_for_cond, NULL));
}

static void *keeps_nursery(void *unused) {
    (void)unused;
    CC_NURSERY(n, .name = "family") {
        (void)cc_nursery_spawn_ex(n, NULL, receiver, chan_a, &(CCSpawnOptions){.name = "child"});
    }
    return NULL;
}

static void dead_nursery(void) {
    chan_a = named_channel("milk", 1);
    join(start("parent", keeps_nursery, NULL));
}

static void *reads_for_ever(void *unused) {
    (void)unused;
    MAY_FAIL(cc_rwlock_read_lock(&rwlock));
    cc_sem_release(&sem_a, 1);
    MAY_FAIL(cc_event_wait(&event));
    return NULL;
}

static void *wants_to_write(void *unused) {
    (void)unused;
    MAY_FAIL(cc_sem_acquire(&sem_a));
    MAY_FAIL(cc_rwlock_write_lock(&rwlock));
    return NULL;
}

static void dead_rwlock(void) {
    CCTask reader = start("reader", reads_for_ever, NULL), writer = start("writer", wants_to_write, NULL);
    join(reader);
    join(writer);
}

static void *arrives(void *unused) {
    (void)unused;
    MAY_FAIL(cc_barrier_wait(&barrier));
    return NULL;
}

static void dead_barrier(void) {
    join(start("alone", arrives, NULL));
}

struct line_ends {
    CCChan *mouth, *ear;
};

static void *speaks_before_listening(void *ends) {
    struct line_ends *line = ends;
    uint64_t v = 1;
    (void)cc_chan_send(line->mouth, &v, sizeof v);
    (void)cc_chan_recv(line->ear, &v, sizeof v);
    return NULL;
}

static void dead_talkers(void) {
    static struct line_ends ann, bob;
    ann.mouth = bob.ear = named_channel("to bob", 0);
    bob.mouth = ann.ear = named_channel("to ann", 0);
    CCTask one = start("ann", speaks_before_listening, &ann), two = start("bob", speaks_before_listening, &bob);
    join(one);
    join(two);
}

static void *offers_before_listening(void *ends) {
    struct line_ends *line = ends;
    uint64_t v = 1;
    size_t chosen;
    CCCase cases[] = {CC_SEND(line->mouth, &v, NULL), {.kind = CC_CASE_NONE}};
    MAY_FAIL(cc_select(cases, 2, CC_FOREVER, &chosen));
    (void)cc_chan_recv(line->ear, &v, sizeof v);
    return NULL;
}

/* Each talks to the next one, every other one in a select. (Which cycle is found depends on stale words on stacks.) */
static void dead_ring(void) {
    enum { RING = 20 };
    static struct line_ends ring[RING];
    CCTask tasks[RING];
    for (int i = 0; i < RING; i++) ring[i].ear = ring[(i + RING - 1) % RING].mouth = named_channel("ear", 0);
    for (int i = 0; i < RING; i++)
        tasks[i] = start("talker", i % 2 == 0 ? speaks_before_listening : offers_before_listening, &ring[i]);
    for (int i = 0; i < RING; i++) join(tasks[i]);
}

/* The main thread waits for a fiber that waits for the main thread. */
static void dead_with_thread(void) {
    chan_a = named_channel("orders", 0);
    start("servant", receiver, chan_a);
    uint64_t v;
    chan_b = named_channel("answers", 0);
    (void)cc_chan_recv(chan_b, &v, sizeof v);
}

/* The main thread has ended. */
static void dead_without_main(void) {
    start("orphan", receiver, named_channel("legacy", 0));
    pthread_exit(NULL);
}

static void nap(long ms) {
    struct timespec ts = {ms / 1000, ms % 1000 * 1000000};
    while (nanosleep(&ts, &ts) != 0) {
    }
}

/* A report would come after 150; on a busy machine the workers take longer to become idle. */
#ifndef LONG_MS
#define LONG_MS 350
#endif

/* The detector has searched while the main thread did not wait yet. */
static void dead_late_thread(void) {
    CCTask task = start("reader", receiver, named_channel("empty", 0));
    nap(LONG_MS);
    join(task);
}

static void *naps(void *unused) {
    nap(LONG_MS);
    return unused;
}

/* The only thread that could have ended the wait ends itself, unnoticed. */
static void dead_after_a_thread(void) {
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, naps, NULL), 0);
    CHECK_EQ(pthread_detach(thread), 0);
    join(start("reader", receiver, named_channel("empty", 0)));
}

/* Fibers that block their workers have made the pool grow. */
static void dead_after_growth(void) {
    CHECK_EQ(cc_runtime_init(&(CCRuntimeConfig){.workers = 1, .max_workers = 4}), 0);
    CCTask tasks[4];
    for (int i = 0; i < 4; i++) tasks[i] = start("blocker", naps, NULL);
    for (int i = 0; i < 4; i++) join(tasks[i]);
    join(start("reader", receiver, named_channel("empty", 0)));
}

static void *receives_hosted(void *ch) {
    return receiver(ch);
}

static void dead_hosted(void) {
    chan_a = named_channel("orders", 0);
    start("servant", receiver, chan_a);
    (void)cc_hosted_call(receives_hosted, named_channel("answers", 0), NULL, NULL);
}

static void *spins(void *until) {
    while (!__atomic_load_n((bool *)until, __ATOMIC_ACQUIRE)) {
    }
    return until;
}

/* A fiber that runs was asked by a signal where it is: that handler is no reason to think that a signal may come. */
static void dead_after_a_dump(void) {
    static bool stop;
    FILE *nowhere = fopen("/dev/null", "we");
    CHECK(nowhere != NULL);
    CCTask task = start("spinner", spins, &stop);
    for (int i = 0; i < 3; i++) CHECK_EQ(cc_dump(nowhere), 0);
    fclose(nowhere);
    __atomic_store_n(&stop, true, __ATOMIC_RELEASE);
    join(task);
    join(start("reader", receiver, named_channel("empty", 0)));
}

/* Only OS threads wait, and no runtime has ever run. */
static void dead_alone(void) {
    receiver(named_channel("silence", 0));
}

static void *locks_and_ends(void *mutex) {
    CHECK_EQ(cc_mutex_lock(mutex), 0);
    return NULL;
}

/* The holder was an OS thread. */
static void dead_abandoned_mutex(void) {
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, locks_and_ends, &mutex_a), 0);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    MAY_FAIL(cc_mutex_lock(&mutex_a));
}

/* Two threads, each of which waits for the other. */
static void dead_threads(void) {
    static struct line_ends ann, bob;
    pthread_t thread;
    ann.mouth = bob.ear = named_channel("to bob", 0);
    bob.mouth = ann.ear = named_channel("to ann", 0);
    CHECK_EQ(pthread_create(&thread, NULL, speaks_before_listening, &ann), 0);
    speaks_before_listening(&bob);
}

/* The thread that could have ended the wait ends between two searches. */
static void dead_after_a_napper(void) {
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, naps, NULL), 0);
    CHECK_EQ(pthread_detach(thread), 0);
    receiver(named_channel("silence", 0));
}

static void *no_work(void *unused) {
    return unused;
}

/* The runtime runs, and has no fiber. */
static void dead_idle_runtime(void) {
    join(start("short", no_work, NULL));
    receiver(named_channel("silence", 0));
}

/* The holder was a fiber. */
static void dead_abandoned_by_fiber(void) {
    join(start("short", locks_and_ends, &mutex_a));
    MAY_FAIL(cc_mutex_lock(&mutex_a));
}

/* The runtime has run, and a thread blocked meanwhile. */
static void dead_after_shutdown(void) {
    static CCChan *never;
    pthread_t thread;
    never = named_channel("silence", 0);
    join(start("short", no_work, NULL));
    CHECK_EQ(pthread_create(&thread, NULL, receiver, never), 0);
    nap(LONG_MS);
    CHECK_EQ(cc_runtime_shutdown(0), 0);
    pthread_exit(NULL);
}

static void *syncs_then_receives(void *ch) {
    int fd;
    CHECK_EQ(cc_file_temp(&fd, "/tmp"), 0);
    CHECK_EQ(cc_file_write(fd, "x", 1, 0, NULL), 0);
    CHECK_EQ(cc_file_sync(fd), 0);
    CHECK_EQ(cc_fd_close(fd), 0);
    return receiver(ch);
}

/* The thread of the system's own that has made the call stays. */
static void dead_after_a_sync(void) {
    join(start("reader", syncs_then_receives, named_channel("empty", 0)));
}

static const struct shape_case dead_shapes[] = {
    {"receive", dead_recv, {"'reader' waits to receive from channel 'empty'", "receiver", "OS thread"}},
    {"several that receive", dead_readers, {"3 fibers wait", "no cycle of waits among fibers was found"}},
    {"several, each of its own channel", dead_apart, {"no other fiber's stack refers to it", "no cycle of waits"}},
    {"on an island", dead_island, {"'reader' on island 'lagoon' waits to receive from channel 'tide'", "receiver"}},
    {"send to a full one", dead_send_full, {"'writer' waits to send on channel 'full'", "2 buffered"}},
    {"rendezvous", dead_rendezvous, {"'caller' waits to send on channel 'handshake'"}},
    {"two mutexes",
     dead_mutexes,
     {"a cycle of 2 waits", "'left' waits for mutex", "held by fiber", "'right' waits for mutex"}},
    {"two joins",
     dead_joins,
     {"a cycle of 2 waits", "'chicken' waits for the end of fiber", "'egg' waits for the end of fiber"}},
    {"select",
     dead_select,
     {"'chooser' waits for the first of 2 cases", "receive from channel 'left'", "send on channel 'right'"}},
    {"select of nothing",
     dead_select_of_nothing,
     {"'undecided' waits for nothing: none of the cases of its select (2) can ever be ready",
      "'empty-handed' waits for nothing, in a select without cases"}},
    {"semaphore", dead_semaphore, {"'hungry' waits for semaphore"}},
    {"wait group", dead_wait_group, {"'patient' waits for wait group"}},
    {"event", dead_event, {"'listener' waits for event"}},
    {"once", dead_once, {"a cycle of 2 waits", "'first' waits for mutex", "'second' waits for once", ", run by fiber"}},
    {"condition", dead_condition, {"'waiter' waits for condition"}},
    {"nursery",
     dead_nursery,
     {"'parent' waits for 1 child of nursery 'family'", "'child' waits to receive from channel 'milk'",
      "nursery 'family'"}},
    {"reader-writer lock", dead_rwlock, {"'writer' waits for reader-writer lock"}},
    {"barrier", dead_barrier, {"'alone' waits for barrier"}},
    {"two talkers",
     dead_talkers,
     {"a cycle of 2 waits", "'ann' waits to send on channel 'to bob'", "'bob' waits to send on channel 'to ann'"}},
    {"a ring of talkers", dead_ring, {"20 fibers wait", "a cycle of "}},
    {"with the main thread",
     dead_with_thread,
     {"'servant' waits to receive from channel 'orders'", "channel 'answers'"}},
    {"without the main thread", dead_without_main, {"'orphan' waits to receive from channel 'legacy'"}},
    {"a thread that blocks late", dead_late_thread, {"'reader' waits to receive from channel 'empty'"}},
    {"a thread that ends", dead_after_a_thread, {"'reader' waits to receive from channel 'empty'"}},
    {"after the pool has grown", dead_after_growth, {"'reader' waits to receive from channel 'empty'"}},
    {"after a sync", dead_after_a_sync, {"'reader' waits to receive from channel 'empty'"}},
    {"after a dump", dead_after_a_dump, {"'reader' waits to receive from channel 'empty'"}},
    {"in a hosted call", dead_hosted, {"'servant' waits to receive", "channel 'answers'"}},
    {"main alone",
     dead_alone,
     {"1 OS thread waits, and nothing can wake it", "waits to receive from channel 'silence'"}},
    {"a mutex of a thread that has ended",
     dead_abandoned_mutex,
     {"1 OS thread waits", "waits for mutex", "held by OS thread ", ", which has ended"}},
    {"two threads",
     dead_threads,
     {"2 OS threads wait", "channel 'to ann'", "channel 'to bob'", "\nnothing will ever complete"}},
    {"alone after a thread ends", dead_after_a_napper, {"1 OS thread waits", "channel 'silence'"}},
    {"beside an idle runtime", dead_idle_runtime, {"1 OS thread waits", "channel 'silence'"}},
    {"a mutex of a fiber that has ended",
     dead_abandoned_by_fiber,
     {"1 OS thread waits", "waits for mutex", "held by fiber 0.1, which has ended"}},
    {"after a shutdown", dead_after_shutdown, {"1 OS thread waits", "channel 'silence'"}},
};

/* ---- alive ---- */

static void *sleeps_then_sends(void *ch) {
    uint64_t v = 7;
    (void)cc_sleep_ms(LONG_MS);
    CHECK_EQ(cc_chan_send(ch, &v, sizeof v), 0);
    return NULL;
}

static void live_timer(void) {
    CCChan *ch = named_channel("alarm", 0);
    CCTask one = start("sleeper", sleeps_then_sends, ch), two = start("reader", receiver, ch);
    join(one);
    join(two);
}

static void *receives_until(void *ch) {
    uint64_t v;
    CHECK_EQ(cc_chan_recv_until(ch, &v, sizeof v, cc_after_ms(LONG_MS)), ETIMEDOUT);
    return NULL;
}

static void live_deadline(void) {
    join(start("patient", receives_until, named_channel("never", 0)));
}

static void *thread_that_sends(void *ch) {
    uint64_t v = 1;
    nap(LONG_MS);
    CHECK_EQ(cc_chan_send(ch, &v, sizeof v), 0);
    return NULL;
}

static void live_foreign_thread(void) {
    CCChan *ch = named_channel("post", 0);
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, thread_that_sends, ch), 0);
    join(start("reader", receiver, ch));
    pthread_join(thread, NULL);
}

static void *thread_that_starts_another(void *ch) {
    static pthread_t next;
    nap(LONG_MS / 2);
    CHECK_EQ(pthread_create(&next, NULL, thread_that_sends, ch), 0);
    CHECK_EQ(pthread_detach(next), 0);
    return NULL;
}

static void live_chain_of_threads(void) {
    CCChan *ch = named_channel("post", 0);
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, thread_that_starts_another, ch), 0);
    CHECK_EQ(pthread_detach(thread), 0);
    join(start("reader", receiver, ch));
}

/* A process that writes a byte after a while. */
static int pipe_written_late(pid_t *pid) {
    int ends[2];
    CHECK_EQ(pipe(ends), 0);
    *pid = fork();
    CHECK(*pid >= 0);
    if (*pid == 0) {
        nap(LONG_MS);
        _exit(write(ends[1], "x", 1) == 1 ? 0 : 1);
    }
    close(ends[1]);
    return ends[0];
}

static int late_pipe;

static void *reads_pipe_then_sends(void *ch) {
    char byte;
    uint64_t v = 1;
    CHECK_EQ(read(late_pipe, &byte, 1), 1);
    CHECK_EQ(cc_chan_send(ch, &v, sizeof v), 0);
    return NULL;
}

static void live_blocking_call(void) {
    pid_t pid;
    late_pipe = pipe_written_late(&pid);
    CCChan *ch = named_channel("bytes", 0);
    CCTask one = start("blocked", reads_pipe_then_sends, ch), two = start("reader", receiver, ch);
    join(one);
    join(two);
    CHECK_EQ(waitpid(pid, NULL, 0), pid);
}

static void live_descriptor_of_a_thread(void) {
    pid_t pid;
    late_pipe = pipe_written_late(&pid);
    CCChan *ch = named_channel("bytes", 0);
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, reads_pipe_then_sends, ch), 0);
    join(start("reader", receiver, ch));
    pthread_join(thread, NULL);
    CHECK_EQ(waitpid(pid, NULL, 0), pid);
}

static void live_main_is_elsewhere(void) {
    CCChan *ch = named_channel("later", 0);
    CCTask task = start("reader", receiver, ch);
    nap(LONG_MS);
    uint64_t v = 1;
    CHECK_EQ(cc_chan_send(ch, &v, sizeof v), 0);
    join(task);
}

static void leave_in_handler(int signal) {
    (void)signal;
    _exit(0);
}

static void live_signal_handler(void) {
    struct sigaction action = {.sa_handler = leave_in_handler};
    CHECK_EQ(sigaction(SIGALRM, &action, NULL), 0);
    struct itimerval once = {.it_value = {.tv_usec = LONG_MS * 1000}};
    CHECK_EQ(setitimer(ITIMER_REAL, &once, NULL), 0);
    join(start("reader", receiver, named_channel("never", 0)));
}

static void live_sigwait(void) {
    sigset_t set;
    int got;
    sigemptyset(&set);
    sigaddset(&set, SIGALRM);
    CHECK_EQ(pthread_sigmask(SIG_BLOCK, &set, NULL), 0);
    CCChan *ch = named_channel("signals", 0);
    CCTask task = start("reader", receiver, ch);
    struct itimerval once = {.it_value = {.tv_usec = LONG_MS * 1000}};
    CHECK_EQ(setitimer(ITIMER_REAL, &once, NULL), 0);
    CHECK_EQ(sigwait(&set, &got), 0);
    uint64_t v = 1;
    CHECK_EQ(cc_chan_send(ch, &v, sizeof v), 0);
    join(task);
}

static void live_nursery_deadline(void) {
    chan_a = named_channel("never", 0);
    CCNursery *n = cc_nursery_create_ex(&(CCNurseryConfig){.root = true, .deadline = cc_after_ms(LONG_MS)});
    CHECK(n != NULL);
    CHECK_EQ(cc_nursery_spawn(n, receiver, chan_a), 0);
    CHECK_EQ(cc_nursery_wait(n), ETIMEDOUT);
    CHECK_EQ(cc_nursery_free(n), 0);
}

static void live_thread_with_deadline(void) {
    CCChan *never = named_channel("never", 0), *ch = named_channel("answer", 0);
    CCTask task = start("reader", receiver, ch);
    uint64_t v = 1;
    CHECK_EQ(cc_chan_recv_until(never, &v, sizeof v, cc_after_ms(LONG_MS)), ETIMEDOUT);
    CHECK_EQ(cc_chan_send(ch, &v, sizeof v), 0);
    join(task);
}

static void *computes_then_sends(void *ch) {
    struct timespec start_at, now;
    clock_gettime(CLOCK_MONOTONIC, &start_at);
    do clock_gettime(CLOCK_MONOTONIC, &now);
    while ((now.tv_sec - start_at.tv_sec) * 1000 + (now.tv_nsec - start_at.tv_nsec) / 1000000 < LONG_MS);
    uint64_t v = 1;
    CHECK_EQ(cc_chan_send(ch, &v, sizeof v), 0);
    return NULL;
}

static void live_computation(void) {
    CCChan *ch = named_channel("result", 0);
    CCTask one = start("computer", computes_then_sends, ch), two = start("reader", receiver, ch);
    join(one);
    join(two);
}

/* Nobody waits for ever: what was parked is cancelled by a shutdown. */
static void live_shutdown(void) {
    start("reader", receiver, named_channel("never", 0));
    (void)cc_runtime_shutdown(LONG_MS);
}

static void *condition_then_sends(void *ch) {
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    static pthread_cond_t never = PTHREAD_COND_INITIALIZER;
    struct timespec until;
    uint64_t v = 1;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += LONG_MS * 1000000L;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_mutex_lock(&mutex);
    while (pthread_cond_timedwait(&never, &mutex, &until) == 0) {
    }
    pthread_mutex_unlock(&mutex);
    CHECK_EQ(cc_chan_send(ch, &v, sizeof v), 0);
    return NULL;
}

static void help_by_thread(void *(*fn)(void *)) {
    CCChan *ch = named_channel("post", 0);
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, fn, ch), 0);
    join(start("reader", receiver, ch));
    pthread_join(thread, NULL);
}

static void live_condition(void) {
    help_by_thread(condition_then_sends);
}

static void *timerfd_then_sends(void *ch) {
    uint64_t v;
    int fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
    struct itimerspec once = {.it_value = {.tv_nsec = LONG_MS * 1000000L}};
    CHECK(fd >= 0 && timerfd_settime(fd, 0, &once, NULL) == 0);
    CHECK_EQ(read(fd, &v, sizeof v), sizeof v);
    CHECK_EQ(cc_chan_send(ch, &v, sizeof v), 0);
    close(fd);
    return NULL;
}

static void live_timerfd(void) {
    help_by_thread(timerfd_then_sends);
}

static void *eventfd_then_sends(void *ch) {
    uint64_t v;
    CHECK_EQ(read(late_pipe, &v, sizeof v), sizeof v);
    CHECK_EQ(cc_chan_send(ch, &v, sizeof v), 0);
    return NULL;
}

/* Another process sends the wake. */
static void live_eventfd(void) {
    late_pipe = eventfd(0, EFD_CLOEXEC);
    CHECK(late_pipe >= 0);
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        uint64_t one = 1;
        nap(LONG_MS);
        _exit(write(late_pipe, &one, sizeof one) == sizeof one ? 0 : 1);
    }
    help_by_thread(eventfd_then_sends);
    CHECK_EQ(waitpid(pid, NULL, 0), pid);
}

static void *sends_hosted(void *ch) {
    return receiver(ch);
}

static void live_hosted(void) {
    CCChan *ch = named_channel("alarm", 0);
    CCTask task = start("sleeper", sleeps_then_sends, ch);
    CHECK_EQ(cc_hosted_call(sends_hosted, ch, NULL, NULL), 0);
    join(task);
}

static void *shuts_down(void *unused) {
    (void)cc_runtime_shutdown(LONG_MS);
    return unused;
}

/* Another thread's shutdown ends the wait in the end. */
static void live_shutdown_elsewhere(void) {
    pthread_t thread;
    CCTask task = start("reader", receiver, named_channel("never", 0));
    CHECK_EQ(pthread_create(&thread, NULL, shuts_down, NULL), 0);
    join(task);
    pthread_join(thread, NULL);
}

static void *holds_out(void *ch) {
    CC_SHIELD {
        receiver(ch);
    }
    return NULL;
}

static void live_grace(void) {
    CCNursery *n = cc_nursery_create_ex(&(CCNurseryConfig){.root = true, .grace_ms = LONG_MS});
    CHECK(n != NULL);
    CHECK_EQ(cc_nursery_spawn(n, holds_out, named_channel("never", 0)), 0);
    CHECK_EQ(cc_nursery_cancel(n), 0);
    (void)cc_nursery_wait(n);
    CHECK_EQ(cc_nursery_free(n), 0);
}

/* Deadlines that have passed when the wait begins: the workers sleep often, but never for long. */
static void *waits_in_vain(void *ch) {
    uint64_t v, until = cc_now_ns() + LONG_MS * UINT64_C(1000000);
    while (cc_now_ns() < until) {
        (void)cc_chan_recv_until(ch, &v, sizeof v, cc_after_ms(0));
        (void)cc_chan_recv_until(ch, &v, sizeof v, cc_after_ms(1));
    }
    return NULL;
}

static void live_due_deadlines(void) {
    join(start("hasty", waits_in_vain, named_channel("never", 0)));
}

/* Only OS threads wait; with a runtime that has no fiber, and without one. */
static void live_by_thread_alone(void) {
    CCChan *ch = named_channel("post", 0);
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, thread_that_sends, ch), 0);
    receiver(ch);
    pthread_join(thread, NULL);
}

static void live_by_thread_idle(void) {
    CHECK_EQ(cc_runtime_init(NULL), 0);
    live_by_thread_alone();
}

/* A thread that waits with a deadline, and then helps. */
static void *deadline_then_sends(void *ch) {
    receives_until(named_channel("never", 0));
    uint64_t v = 1;
    CHECK_EQ(cc_chan_send(ch, &v, sizeof v), 0);
    return NULL;
}

static void live_by_deadline_alone(void) {
    CCChan *ch = named_channel("post", 0);
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, deadline_then_sends, ch), 0);
    receiver(ch);
    pthread_join(thread, NULL);
}

static void live_signal_alone(void) {
    struct sigaction action = {.sa_handler = leave_in_handler};
    CHECK_EQ(sigaction(SIGALRM, &action, NULL), 0);
    struct itimerval once = {.it_value = {.tv_usec = LONG_MS * 1000}};
    CHECK_EQ(setitimer(ITIMER_REAL, &once, NULL), 0);
    receiver(named_channel("never", 0));
}

static void *starts_runtime_then_sends(void *ch) {
    nap(LONG_MS / 2);
    join(start("sleeper", sleeps_then_sends, ch));
    return NULL;
}

/* The runtime starts while the main thread waits, and a timer of it helps. */
static void live_runtime_starts(void) {
    CCChan *ch = named_channel("post", 0);
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, starts_runtime_then_sends, ch), 0);
    receiver(ch);
    pthread_join(thread, NULL);
}

/* Threads that block and continue all the time: one of them is always running. */
static void *passes_on(void *ends) {
    struct line_ends *line = ends;
    uint64_t v, until = cc_now_ns() + LONG_MS * UINT64_C(1000000);
    while (cc_now_ns() < until)
        if (cc_chan_recv(line->ear, &v, sizeof v) != 0 || cc_chan_send(line->mouth, &v, sizeof v) != 0) break;
    cc_chan_close(line->mouth);
    return NULL;
}

static void live_ping_pong_alone(void) {
    static struct line_ends ann, bob;
    pthread_t thread;
    uint64_t v = 1;
    ann.mouth = bob.ear = named_channel("to bob", 1);
    bob.mouth = ann.ear = named_channel("to ann", 1);
    CHECK_EQ(cc_chan_send(ann.ear, &v, sizeof v), 0);
    CHECK_EQ(pthread_create(&thread, NULL, passes_on, &ann), 0);
    passes_on(&bob);
    CHECK_EQ(pthread_join(thread, NULL), 0);
}

/* Only an island can make progress: it blocks, and then it sleeps. */
static void *naps_then_sends(void *ch) {
    nap(LONG_MS);
    return sleeps_then_sends(ch);
}

static void live_island(void) {
    CCChan *ch = named_channel("tide", 0);
    CCTask reader = start("reader", receiver, ch);
    join(start_on_island("sender", naps_then_sends, ch));
    join(reader);
    CHECK_EQ(cc_island_free(lagoon), 0);
}

static const struct shape_case live_shapes[] = {
    {"timer", live_timer, {0}},
    {"deadline", live_deadline, {0}},
    {"foreign thread", live_foreign_thread, {0}},
    {"chain of threads", live_chain_of_threads, {0}},
    {"blocking call", live_blocking_call, {0}},
    {"descriptor of a thread", live_descriptor_of_a_thread, {0}},
    {"main is elsewhere", live_main_is_elsewhere, {0}},
    {"signal handler", live_signal_handler, {0}},
    {"sigwait", live_sigwait, {0}},
    {"nursery deadline", live_nursery_deadline, {0}},
    {"thread with a deadline", live_thread_with_deadline, {0}},
    {"computation", live_computation, {0}},
    {"shutdown", live_shutdown, {0}},
    {"condition of a thread", live_condition, {0}},
    {"timerfd", live_timerfd, {0}},
    {"eventfd", live_eventfd, {0}},
    {"hosted call", live_hosted, {0}},
    {"shutdown elsewhere", live_shutdown_elsewhere, {0}},
    {"grace period", live_grace, {0}},
    {"deadlines that are due", live_due_deadlines, {0}},
    {"foreign thread, no runtime", live_by_thread_alone, {0}},
    {"foreign thread, no fiber", live_by_thread_idle, {0}},
    {"thread with a deadline, no runtime", live_by_deadline_alone, {0}},
    {"signal handler, no runtime", live_signal_alone, {0}},
    {"a runtime that starts later", live_runtime_starts, {0}},
    {"threads that pass on", live_ping_pong_alone, {0}},
    {"an island", live_island, {0}},
};

enum {
    DEAD_SHAPES = sizeof dead_shapes / sizeof dead_shapes[0],
    LIVE_SHAPES = sizeof live_shapes / sizeof live_shapes[0],
};

#endif
