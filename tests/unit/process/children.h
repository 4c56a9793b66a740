/* children.h - shared by the tests of processes: shells, zombies and open descriptors. */
#ifndef CCC_TESTS_CHILDREN_H
#define CCC_TESTS_CHILDREN_H

#include "harness.h"

#include <ccc/ccc.h>
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define SHELL(script) ((const char *[]){"/bin/sh", "-c", (script), NULL})

/* Call it first in a case. Emulators may lack pidfd_open; then a start returns ENOSYS. */
static inline void needs_pidfd(void) {
    long fd = syscall(SYS_pidfd_open, getpid(), 0);
    if (fd >= 0) {
        close((int)fd);
        return;
    }
    CCProcess *p;
    CHECK_EQ(errno, ENOSYS);
    CHECK_EQ(cc_process_start(&p, &(CCProcessOptions){.argv = SHELL(":")}), ENOSYS);
    CHECK(p == NULL);
    SKIP("there is no pidfd here");
}

static inline CCProcess *start_with(CCProcessOptions options) {
    CCProcess *p;
    CHECK_EQ(cc_process_start(&p, &options), 0);
    CHECK(p != NULL);
    return p;
}

static inline int count_fds(void) {
    int n = 0;
    DIR *dir = opendir("/proc/self/fd");
    CHECK(dir != NULL);
    while (readdir(dir) != NULL) n++;
    closedir(dir);
    return n;
}

/* Descriptors that are open. The runtime's own threads may have one for a moment: the minimum of several readings. */
static inline int open_fds(void) {
    int least = count_fds();
    for (int i = 0; i < 2; i++) {
        usleep(500);
        int n = count_fds();
        if (n < least) least = n;
    }
    return least;
}

/* No more than that, now or soon. */
static inline void check_open_fds(int most) {
    for (int i = 0; count_fds() > most; i++) {
        CHECK(i < 10000);
        usleep(1000);
    }
}

/* The first wait for a descriptor opens two, which stay. */
static inline void *wait_once(void *arg) {
    int ends[2];
    char byte;
    size_t n;
    CHECK_EQ(pipe(ends), 0);
    CHECK_EQ(cc_fd_read_until(ends[0], &byte, 1, &n, cc_after_ms(1)), ETIMEDOUT);
    close(ends[0]), close(ends[1]);
    return arg;
}

static inline void open_poller(void) {
    CHECK_EQ(cc_run(wait_once, NULL, NULL), 0);
}

/* The process has no children, dead or alive. */
static inline void check_no_children(void) {
    siginfo_t info = {0};
    CHECK_EQ(waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT), -1);
    CHECK_EQ(errno, ECHILD);
}

static inline CCProcessStatus end_of(CCProcess *p) {
    CCProcessStatus status;
    CHECK_EQ(cc_process_wait(p, &status), 0);
    return status;
}

/* Reads to the end; the text is to be freed. */
static inline char *read_all(int fd) {
    char *text = calloc(1, 65536);
    size_t size = 0, n;
    do {
        CHECK_EQ(cc_fd_read(fd, text + size, 65535 - size, &n), 0);
        size += n;
    } while (n > 0);
    return text;
}

/* Waits for a line of the child, which shows how far it is. */
static inline void await_byte(CCProcess *p) {
    char byte;
    size_t n = 0;
    CHECK_EQ(cc_fd_read(cc_process_stdout(p), &byte, 1, &n), 0);
    CHECK_EQ(n, 1);
}

#endif
