/* chan_trace.c - the output of CC_CHAN_DEBUG, CC_CHAN_DEBUG_VERBOSE and CC_CHANNEL_TIMING; without them there is
 * none. */
#include "child.h"
#include "parks.h"

#include <ccc/ccc.h>

#include <pthread.h>
#include <stdatomic.h>

static struct child child;

/* ---- a small program ---- */

static void *produce(void *arg) {
    CCChan *ch = arg;
    cc_fiber_set_name("producer");
    for (int i = 0; i < 3; i++) CHECK_EQ(cc_chan_send(ch, &i, sizeof i), 0);
    cc_yield(); /* the receiver waits for a fourth, and for a millisecond */
    for (CCDeadline end = cc_after_ms(1); cc_now_ns() < end.ns;) {
    }
    CHECK_EQ(cc_chan_close(ch), 0);
    CHECK_EQ(cc_chan_close(ch), 0);
    return NULL;
}

/* On one worker everything happens in one order: the joiner waits, the producer fills the channel and parks. */
static void *consume(void *unused) {
    (void)unused;
    CCChan *ch = cc_chan_create_ex(&(CCChanConfig){.elem_size = sizeof(int), .capacity = 1, .name = "numbers"});
    CHECK(ch != NULL);
    CCTask producer;
    int value, other = 0, status;
    do CHECK_EQ(cc_chan_recv_until(ch, &value, sizeof value, cc_after_ms(1)), ETIMEDOUT);
    while (test_parks("channel") == 0);
    CHECK_EQ(cc_chan_recv_try(ch, &value, sizeof value), EAGAIN);
    CHECK_EQ(cc_spawn(&producer, produce, ch, NULL), 0);
    cc_yield();
    CHECK_EQ(cc_chan_recv(ch, &value, sizeof value), 0);
    CHECK_EQ(cc_chan_recv(ch, &value, sizeof value), 0);
    CHECK_EQ(cc_chan_recv(ch, &value, sizeof value), 0);
    CHECK_EQ(cc_chan_recv(ch, &value, sizeof value), EPIPE);
    CHECK_EQ(cc_task_join(&producer, NULL), 0);
    CC_MATCH(CC_SEND((CCChan *)NULL, &other, NULL), CC_RECV(ch, &value, &status)) {
    case 1:
        CHECK_EQ(status, EPIPE);
        break;
    default:
        CHECK(false);
    }
    CCChan *silent = cc_chan_create(sizeof(int), 0);
    while (test_parks("select") == 0) {
        CC_MATCH(CC_SEND(silent, &other, NULL), CC_RECV(silent, &value, NULL), CC_AFTER_MS(1)) {
        case 2:
            break;
        default:
            CHECK(false);
        }
    }
    cc_chan_free(silent);
    cc_chan_free(ch);
    return NULL;
}

static void run_program(void *variable) {
    if (variable != NULL) CHECK_EQ(setenv(variable, "1", 1), 0);
    CHECK_EQ(cc_runtime_init(&(CCRuntimeConfig){.workers = 1, .max_workers = 1}), 0);
    errno = 4711;
    cc_chan_free(cc_chan_create(1, 1));
    CHECK_EQ(errno, 4711); /* a line leaves it alone */
    CHECK_EQ(cc_run(consume, NULL, NULL), 0);
    CHECK_EQ(cc_runtime_shutdown(UINT64_MAX), 0);
}

static void check_said(const char *text) {
    if (said(&child, text)) return;
    show_child(&child);
    test_fail(__FILE__, __LINE__, "it did not say \"%s\"", text);
}

static void check_not_said(const char *text) {
    if (!said(&child, text)) return;
    show_child(&child);
    test_fail(__FILE__, __LINE__, "it said \"%s\"", text);
}

static void run_with(const char *variable) {
    run_child(&child, run_program, (void *)(uintptr_t)variable);
    if (child.status != 0) show_child(&child);
    CHECK_EQ(child.status, 0);
}

TEST(off_means_silent) {
    run_with(NULL);
    if (child.output[0] != '\0') show_child(&child);
    CHECK_EQ(child.output[0], '\0');
}

static void check_events(void) {
    check_said(": channel 'numbers': create at 0x");
    check_said("elements of 4 bytes, capacity 1\n");
    check_said("channel 'numbers': recv parks, 0 of 1 buffered\n");
    check_said("channel 'numbers': recv woken, deadline\n");
    check_said(" 'producer': channel 'numbers': send parks, 1 of 1 buffered\n");
    check_said(" 'producer': channel 'numbers': send woken, done\n");
    check_said("channel 'numbers': recv woken, closed\n");
    check_said(" 'producer': channel 'numbers': close with error 32, ");
    check_said("channel 'numbers': close with error 32, closed before, ");
    check_said("channel 'numbers': free, 0 of 1 buffered\n");
    check_said("channel 'numbers': gone, 0 of 1 buffered\n");
}

TEST(debug) {
    run_with("CC_CHAN_DEBUG");
    check_events();
    check_not_said("wakes");
    check_not_said("select");
    check_not_said("timing");
}

TEST(verbose) {
    run_with("CC_CHAN_DEBUG_VERBOSE");
    check_events();
    check_said("channel 'numbers': recv wakes fiber ");
    check_said("channel: wakes fiber "); /* by the close */
    check_said("select of 2: case 1, recv, error 32\n");
    check_said("select waits on 2 arms, 1 locks\n");
    check_said("select of 3: case 2, at, error 0\n");
    check_not_said("timing");
}

/* ---- times ---- */

/* Returns how long the longest took. */
static unsigned long long check_timing(const char *kind, unsigned long long calls, bool or_more) {
    char head[64];
    snprintf(head, sizeof head, "ccc: timing: %s: ", kind);
    const char *at = strstr(child.output, head);
    if (at == NULL) show_child(&child);
    CHECK(at != NULL);
    CHECK(strstr(at + 1, head) == NULL);
    unsigned long long count = 0, least = 0, most = 0;
    double mean = 0;
    CHECK_EQ(sscanf(at + strlen(head), "%llu calls, mean %lf ns, least %llu, most %llu;", &count, &mean, &least, &most),
             4);
    CHECK(or_more ? count >= calls : count == calls);
    CHECK((double)least <= mean + 1 && mean <= (double)most + 1);
    return most;
}

TEST(timing) {
    run_with("CC_CHANNEL_TIMING");
    check_not_said("channel ");
    check_timing("send", 3, false);
    CHECK(check_timing("recv", 4, false) >= 1000000); /* the one that waited for a millisecond is among them */
    check_timing("recv_try", 1, false);
    check_timing("recv_until", 1, true); /* and those that were over before they waited */
    check_timing("close", 2, false);
    check_timing("select", 2, true);
    check_not_said("send_try");
    check_said("from so many ns on: ");
}

static void send_twice(void *at_exit) {
    CHECK_EQ(setenv("CC_CHANNEL_TIMING", "1", 1), 0);
    for (int run = 1; run <= 2; run++) {
        CHECK_EQ(cc_runtime_init(NULL), 0);
        CCChan *ch = cc_chan_create(1, 10);
        for (int i = 0; i < run; i++) CHECK_EQ(cc_chan_send(ch, "x", 1), 0);
        cc_chan_free(ch);
        if (run < 2 || at_exit == NULL) CHECK_EQ(cc_runtime_shutdown(UINT64_MAX), 0);
    }
}

/* Each run counts from 0; the last one is reported by its shutdown, or else by the exit of the process. */
TEST(times_of_each_run) {
    for (uintptr_t at_exit = 0; at_exit < 2; at_exit++) {
        run_child(&child, send_twice, (void *)at_exit);
        CHECK_EQ(child.status, 0);
        const char *first = strstr(child.output, "timing: send: 1 calls"),
                   *second = strstr(child.output, "timing: send: 2 calls");
        if (first == NULL || second == NULL) show_child(&child);
        CHECK(first != NULL && second != NULL && first < second);
        CHECK(strstr(second + 1, "timing: send") == NULL);
    }
}

static void fork_and_exit(void *unused) {
    (void)unused;
    CHECK_EQ(setenv("CC_CHANNEL_TIMING", "1", 1), 0);
    CHECK_EQ(cc_runtime_init(NULL), 0);
    CHECK_EQ(cc_runtime_shutdown(UINT64_MAX), 0);
    CCChan *ch = cc_chan_create(1, 10);
    CHECK_EQ(cc_chan_send(ch, "x", 1), 0);
    cc_chan_free(ch);
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) exit(0); /* has nothing of its own to report */
    CHECK_EQ(waitpid(pid, NULL, 0), pid);
}

TEST(a_forked_child_reports_nothing) {
    run_child(&child, fork_and_exit, NULL);
    CHECK_EQ(child.status, 0);
    check_timing("send", 1, false);
}

/* ---- OS threads ---- */

static void *send_one(void *arg) {
    return (void *)(intptr_t)cc_chan_send(arg, "x", 1);
}

static void between_threads(void *unused) {
    (void)unused;
    CHECK_EQ(setenv("CC_CHAN_DEBUG_VERBOSE", "1", 1), 0);
    CHECK_EQ(cc_runtime_init(NULL), 0);
    CCChan *ch = cc_chan_create_ex(&(CCChanConfig){.elem_size = 1, .name = "door"});
    pthread_t thread;
    char value;
    CHECK_EQ(pthread_create(&thread, NULL, send_one, ch), 0);
    CHECK_EQ(cc_chan_recv_until(ch, &value, 1, CC_FOREVER), 0);
    CHECK_EQ(cc_chan_recv_until(ch, &value, 1, cc_after_ms(1)), ETIMEDOUT);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    cc_chan_free(ch);
}

TEST(threads_block_and_are_released) {
    run_child(&child, between_threads, NULL);
    CHECK_EQ(child.status, 0);
    check_said(" thread ");
    check_said("channel 'door': recv blocks, 0 of 0 buffered\n");
    check_said("channel 'door': recv released, deadline\n");
    check_said("channel: releases an OS thread\n");
    check_not_said("worker");
}

/* ---- lines stay whole, and do not touch what is gone ---- */

enum { PAIRS = 8 };

static void *send_and_forget(void *arg) {
    (void)cc_chan_send(arg, "x", 1);
    return NULL;
}

/* The receiver frees the channel at once: the sender, woken or not, may not have returned from send yet. */
static void *receive_and_free(void *unused) {
    (void)unused;
    for (long i = 0; i < test_scale(40); i++) {
        CCChan *ch = cc_chan_create_ex(&(CCChanConfig){.elem_size = 1, .name = "brief"});
        char value;
        CHECK(ch != NULL);
        CHECK_EQ(cc_spawn(NULL, send_and_forget, ch, NULL), 0);
        CHECK_EQ(cc_chan_recv(ch, &value, 1), 0);
        cc_chan_free(ch);
    }
    return NULL;
}

static void many(void *unused) {
    (void)unused;
    CHECK_EQ(setenv("CC_CHAN_DEBUG_VERBOSE", "1", 1), 0);
    CHECK_EQ(setenv("CC_CHANNEL_TIMING", "1", 1), 0);
    CHECK_EQ(cc_runtime_init(&(CCRuntimeConfig){.workers = 4}), 0);
    CCTask tasks[PAIRS];
    for (int i = 0; i < PAIRS; i++) tasks[i] = cc_fiber_spawn_task(receive_and_free, NULL);
    for (int i = 0; i < PAIRS; i++) CHECK_EQ(cc_task_join(&tasks[i], NULL), 0);
    CHECK_EQ(cc_runtime_shutdown(10000), 0);
}

TEST(lines_stay_whole) {
    run_child(&child, many, NULL);
    if (child.status != 0) show_child(&child);
    CHECK_EQ(child.status, 0);
    int lines = 0;
    for (char *line = child.output, *end; (end = strchr(line, '\n')) != NULL; line = end + 1, lines++) {
        *end = '\0'; /* "ccc: 0.001515 worker 0 fiber 2.50: channel 'brief': recv parks, 0 of 0 buffered" */
        if (strncmp(line, "ccc: timing: ", 13) == 0) continue;
        char *colon = strstr(line, ": channel");
        CHECK(colon != NULL && strstr(colon + 1, ": channel") == NULL && strstr(line + 1, "ccc:") == NULL);
        unsigned seconds, part, worker, slot, generation;
        CHECK_EQ(sscanf(line, "ccc: %u.%u worker %u fiber %u.%u:", &seconds, &part, &worker, &slot, &generation), 5);
        CHECK(worker < 4);
    }
    CHECK(lines >= test_scale(40) * 3);
}

/* ---- before the runtime ---- */

/* The environment is read when the library is loaded; so the program is executed again, with another environment. */
TEST(without_a_runtime) {
    if (getenv("TRACE_FD") != NULL) {
        CHECK(dup2(atoi(getenv("TRACE_FD")), STDERR_FILENO) >= 0);
        CCChan *ch = cc_chan_create_ex(&(CCChanConfig){.elem_size = 1, .capacity = 1, .name = "alone"});
        CHECK_EQ(cc_chan_send(ch, "x", 1), 0);
        cc_chan_free(ch);
        CHECK_EQ(cc_worker_count(), 0); /* there is none */
        DONE();
        exit(0);
    }
    int fd = memfd_create("trace", 0), status;
    char number[16], path[4096]; /* by its path: valgrind and qemu know what that is, not what the link is */
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    CHECK(fd >= 0 && length > 0);
    CHECK_EQ(fcntl(fd, F_SETFL, O_APPEND), 0); /* or the writes of two threads may overlap */
    path[length] = '\0';
    snprintf(number, sizeof number, "%d", fd);
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        setenv("TRACE_FD", number, 1);
        setenv("CC_CHAN_DEBUG", "1", 1);
        setenv("CC_CHANNEL_TIMING", "1", 1);
        execl(path, "chan_trace", "without_a_runtime", (char *)NULL);
        _exit(126);
    }
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 126) SKIP("the program cannot be loaded again here");
    CHECK_EQ(status, 0);
    ssize_t n = pread(fd, child.output, sizeof child.output - 1, 0);
    CHECK(n >= 0);
    child.output[n] = '\0';
    check_said("channel 'alone': create at ");
    check_said("channel 'alone': gone, ");
    check_timing("send", 1, false);
}
