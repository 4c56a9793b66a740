/* pipeline_shell.c - what a shell does with `printf … | sort | uniq -c | awk …`: processes, connected by pipes, in one
 * nursery. If one cannot be started, or the deadline passes, all are stopped.
 */
#define _POSIX_C_SOURCE 200809L
#include <ccc/ccc.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { STAGES_MAX = 8 };

static void close_if_open(int fd) {
    if (fd >= 0) close(fd);
}

/* Starts all stages; the last one writes to a pipe that this program reads. The parent closes its copy of each pipe end
 * as soon as the child has it: otherwise no reader would ever see the end of file. */
static int start_all(CCProcess **stages, const char *const *const *commands, int count) {
    int input = -1, error = 0;
    for (int i = 0; i < count && error == 0; i++) {
        int ends[2] = {-1, -1};
        CCProcessOptions options = {.argv = commands[i], .in = {.kind = CC_PROCESS_NULL}};
        if (i > 0) options.in = (CCProcessStream){CC_PROCESS_FD, input};
        if (i + 1 < count) {
            if (pipe(ends) != 0) error = errno; /* other stages do not inherit it */
            options.out = (CCProcessStream){CC_PROCESS_FD, ends[1]};
        } else {
            options.out.kind = CC_PROCESS_PIPE;
        }
        if (error == 0) error = cc_process_start(&stages[i], &options);
        if (error != 0) fprintf(stderr, "%s: %s\n", commands[i][0], strerror(error));
        close_if_open(input);
        close_if_open(ends[1]);
        input = ends[0];
    }
    close_if_open(input);
    return error;
}

static int print_all(int fd) {
    char bytes[4096];
    size_t n;
    int error;
    while ((error = cc_fd_read(fd, bytes, sizeof bytes, &n)) == 0 && n > 0) (void)fwrite(bytes, 1, n, stdout);
    return error;
}

/* The exit status of each stage, as in $PIPESTATUS. */
static int run_pipeline(const char *const *const *commands, int count) {
    CCProcess *stages[STAGES_MAX] = {NULL};
    int rc = 0;
    CC_NURSERY(n, .result = &rc, .deadline = cc_after_ms(60 * 1000), .name = "pipeline") {
        int error = start_all(stages, commands, count);
        if (error == 0) error = print_all(cc_process_stdout(stages[count - 1]));
        if (error != 0) (void)cc_nursery_cancel_with(n, error, "the pipeline is broken");
    } /* all have ended here */
    printf("status:");
    for (int i = 0; i < count && stages[i] != NULL; i++) {
        CCProcessStatus status = {0};
        if (cc_process_wait(stages[i], &status) == 0)
            printf(" %d", status.signal != 0 ? 128 + status.signal : status.code);
    }
    printf("\n");
    for (int i = 0; i < count; i++) cc_process_free(stages[i]);
    return rc;
}

static void *run_both(void *arg) {
    const char *const words[] = {"printf", "%s\\n", "pear", "apple", "pear", "fig", "apple", "pear", NULL};
    const char *const sort[] = {"sort", NULL}, *const uniq[] = {"uniq", "-c", NULL};
    const char *const columns[] = {"awk", "{ print $2, $1 }", NULL}, *const fails[] = {"sh", "-c", "cat; exit 3", NULL};
    int rc = run_pipeline((const char *const *const[]){words, sort, uniq, columns}, 4);
    if (rc == 0) rc = run_pipeline((const char *const *const[]){words, fails, sort}, 3);
    if (rc != 0 && rc != ENOTSUP) fprintf(stderr, "pipeline: %s\n", strerror(rc));
    return arg;
}

int main(void) {
    if (cc_run(run_both, NULL, NULL) != 0) return 1;
    return cc_runtime_shutdown(1000);
}
