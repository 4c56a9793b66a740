/* child.h - runs a function in a child process and returns its status and output.
 *
 * The case that calls it must not have started the runtime: fork copies one thread.
 */
#ifndef CCC_TESTS_CHILD_H
#define CCC_TESTS_CHILD_H

#include "harness.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

struct child {
    int status;         /* as waitpid gives it */
    char output[32768]; /* its stderr and stdout; cut, always ended by a NUL */
};

struct running {
    pid_t pid;
    int output; /* a file without a name */
};

/* The function's return is the child's exit(0): what a sanitizer says at exit counts. */
__attribute__((unused)) static struct running start_child(void (*body)(void *), void *arg) {
    struct running run = {.output = memfd_create("child", MFD_CLOEXEC)};
    CHECK(run.output >= 0 && fcntl(run.output, F_SETFL, O_APPEND) == 0); /* or the writes of two threads may overlap */
    fflush(NULL);
    run.pid = fork();
    CHECK(run.pid >= 0);
    if (run.pid == 0) {
        CHECK(dup2(run.output, STDOUT_FILENO) >= 0 && dup2(run.output, STDERR_FILENO) >= 0);
        setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
        body(arg);
        exit(0);
    }
    return run;
}

__attribute__((unused)) static void end_child(struct running *run, struct child *child) {
    while (waitpid(run->pid, &child->status, 0) < 0) CHECK_EQ(errno, EINTR);
    ssize_t n = pread(run->output, child->output, sizeof child->output - 1, 0);
    CHECK(n >= 0);
    child->output[n] = '\0';
    close(run->output);
}

__attribute__((unused)) static void run_child(struct child *child, void (*body)(void *), void *arg) {
    struct running run = start_child(body, arg);
    end_child(&run, child);
}

__attribute__((unused)) static bool said(const struct child *child, const char *text) {
    return strstr(child->output, text) != NULL;
}

/* For the report of a case that fails. */
__attribute__((unused)) static void show_child(const struct child *child) {
    if (WIFSIGNALED(child->status))
        printf("the child was killed by signal %d and said:\n%s\n", WTERMSIG(child->status), child->output);
    else
        printf("the child exited with %d and said:\n%s\n", WEXITSTATUS(child->status), child->output);
    fflush(stdout);
}

#endif
