/* log.c - the library's messages go to the program's log function; the version; texts of errors. */
#include "../contexts.h"
#include "base/fatal.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

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

static int full[2];
static volatile sig_atomic_t interrupted;

/* It makes room the fiftieth time. */
static void interrupt(int signal) {
    (void)signal;
    char bytes[4096];
    int saved = errno;
    if (++interrupted == 50)
        while (read(full[0], bytes, sizeof bytes) > 0) {
        }
    errno = saved;
}

/* Nobody reads stderr, a pipe, for a while, and handlers interrupt the write (no SA_RESTART). */
TEST(a_message_is_not_interrupted) {
    char bytes[4096] = "";
    struct sigaction action = {.sa_handler = interrupt};
    CHECK_EQ(pipe(full), 0);
    CHECK_EQ(fcntl(full[0], F_SETFL, O_NONBLOCK), 0);
    CHECK_EQ(fcntl(full[1], F_SETFL, O_NONBLOCK), 0);
    while (write(full[1], bytes, sizeof bytes) > 0) {
    }
    CHECK_EQ(fcntl(full[1], F_SETFL, 0), 0);
    int before = dup(2);
    CHECK(before >= 0 && dup2(full[1], 2) == 2);
    CHECK_EQ(sigaction(SIGALRM, &action, NULL), 0);
    CHECK_EQ(setitimer(ITIMER_REAL, &(struct itimerval){{0, 1000}, {0, 1000}}, NULL), 0);
    cc__warn("all of it");
    CHECK_EQ(setitimer(ITIMER_REAL, &(struct itimerval){0}, NULL), 0);
    CHECK_EQ(dup2(before, 2), 2);
    CHECK(interrupted >= 50);
    CHECK(read(full[0], bytes, sizeof bytes) > 0);
    CHECK(strstr(bytes, "all of it\n") != NULL);
}

enum { LINES = 5000 };

static void *read_all(void *lines) {
    char bytes[4096];
    ssize_t n;
    CHECK_EQ(fcntl(full[0], F_SETFL, 0), 0);
    while ((n = read(full[0], bytes, sizeof bytes)) > 0)
        for (ssize_t i = 0; i < n; i++) *(int *)lines += bytes[i] == '\n';
    return NULL;
}

/* stderr is in non-blocking mode, as after cc_fd_adopt of a terminal as stdin, and its reader is slower. */
TEST(messages_wait_for_room) {
    int lines = 0;
    pthread_t reader;
    CHECK_EQ(pipe(full), 0);
    CHECK_EQ(fcntl(full[1], F_SETFL, O_NONBLOCK), 0);
    int before = dup(2);
    CHECK(before >= 0 && dup2(full[1], 2) == 2 && close(full[1]) == 0);
    CHECK_EQ(pthread_create(&reader, NULL, read_all, &lines), 0);
    for (int i = 0; i < LINES; i++) cc__warn("message %0100d", i);
    CHECK_EQ(dup2(before, 2), 2);
    CHECK_EQ(pthread_join(reader, NULL), 0);
    CHECK_EQ(lines, LINES);
}

/* Nobody reads it: the program continues after two seconds, and does not wait again. */
TEST(a_full_stderr_is_left_alone) {
    char bytes[4096] = "";
    CHECK_EQ(pipe(full), 0);
    CHECK_EQ(fcntl(full[1], F_SETFL, O_NONBLOCK), 0);
    while (write(full[1], bytes, sizeof bytes) > 0) {
    }
    int before = dup(2);
    CHECK(before >= 0 && dup2(full[1], 2) == 2);
    for (int i = 0; i < 1000; i++) cc__warn("nobody"); /* each of them would be more than the case has */
    CHECK_EQ(dup2(before, 2), 2);
}

TEST(version) {
    char expected[32];
    snprintf(expected, sizeof expected, "%d.%d.%d", CC_VERSION_MAJOR, CC_VERSION_MINOR, CC_VERSION_PATCH);
    CHECK(strcmp(cc_version(), expected) == 0);
}

TEST(error_texts) {
    CHECK(strcmp(cc_error_text(0), "no error") == 0);
    CHECK(strcmp(cc_error_text(ENOTRECOVERABLE), "the task has panicked") == 0);
    CHECK(strcmp(cc_error_text(ECANCELED), "cancelled") == 0);
    CHECK(strcmp(cc_error_text(ETIMEDOUT), "the deadline has passed") == 0);
    const char *text = cc_error_text(ENOENT);
    errno = 77;
    for (int code = -2; code <= CC_ERROR_MAX + 1; code++) CHECK(cc_error_text(code)[0] != '\0');
    CHECK_EQ(errno, 77);
    CHECK(cc_error_text(ENOENT) == text); /* nothing that the next call overwrites */
    CHECK(strcmp(cc_error_text(CC_ERROR_MAX), "an unknown error") == 0);
}
