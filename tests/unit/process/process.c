/* process.c - starting, waiting, signals, scopes; no zombie and no descriptor is left. */
#include "../ending.h"
#include "children.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>

/* ---- how it ends ---- */

static void *statuses(void *arg) {
    int before = open_fds();
    CCProcessStatus status, again;

    CCProcess *p = start_with((CCProcessOptions){.argv = SHELL("exit 7")});
    CHECK(cc_process_pid(p) > 0);
    CHECK_EQ(cc_process_wait(p, &status), 0);
    CHECK(status.code == 7 && status.signal == 0 && !status.core);
    CHECK_EQ(cc_process_wait(p, &again), 0);
    CHECK(memcmp(&status, &again, sizeof status) == 0);
    CHECK_EQ(cc_process_wait_try(p, NULL), 0);
    CHECK_EQ(cc_process_wait_until(p, &again, CC_PASSED), 0);
    CHECK_EQ(cc_process_signal(p, SIGTERM), ESRCH);
    CHECK_EQ(cc_process_signal_group(p, SIGTERM), ESRCH);
    CHECK_EQ(cc_process_stdin(p), -1);
    cc_process_free(p);

    p = start_with((CCProcessOptions){.argv = SHELL("kill -KILL $$")});
    status = end_of(p);
    CHECK(status.code == -1 && status.signal == SIGKILL);
    cc_process_free(p);

    check_no_children();
    if (arg != NULL) check_open_fds(before);
    return NULL;
}

TEST_WORKERS(statuses_can_be_read_twice) {
    needs_pidfd();
    open_poller();
    bool counted = true;
    CHECK_EQ(cc_run(statuses, &counted, NULL), 0);
}

TEST(works_from_a_thread) {
    needs_pidfd();
    open_poller();
    bool counted = true;
    (void)statuses(&counted);
    CHECK_EQ(cc_runtime_shutdown(UINT64_MAX), 0);
    (void)statuses(NULL); /* starts another */
}

/* As inetd(8) does: the child's input and output are a connection. */
static int hand_to_shell(CCConn *conn, void *arg) {
    int fd = cc_conn_fd(conn);
    CCProcessStream stream = {.kind = CC_PROCESS_FD, .fd = fd};
    CHECK_EQ(fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK), 0); /* the child shares that */
    CCProcess *p = start_with((CCProcessOptions){.argv = arg, .in = stream, .out = stream});
    CHECK_EQ(end_of(p).code, 0);
    cc_process_free(p);
    return 0;
}

static void *serves_by_processes(void *arg) {
    static const char *script[] = {"/bin/sh", "-c", "while read line; do echo \"you said $line\"; done", NULL};
    CCListener *listener;
    CCAddr addr;
    CHECK_EQ(cc_listen(&listener, "tcp://127.0.0.1:0", NULL), 0);
    CHECK_EQ(cc_listener_addr(listener, &addr), 0);
    CC_NURSERY(n) {
        CHECK_EQ(cc_serve(n, listener, hand_to_shell, script, NULL), 0);
        CCConn *conn;
        CCReader in;
        char *line;
        size_t length;
        CHECK_EQ(cc_dial_addr(&conn, &addr, NULL, CC_FOREVER), 0);
        CHECK_EQ(cc_reader_init(&in, conn, 0), 0);
        for (int i = 0; i < 3; i++) {
            CHECK_EQ(cc_write(conn, "hello\n", 6, NULL), 0);
            CHECK_EQ(cc_reader_line(&in, &line, &length), 0); /* the next one comes when the child waits for it */
            CHECK(strcmp(line, "you said hello") == 0);
        }
        CHECK_EQ(cc_shutdown(conn, CC_SHUT_WRITE), 0);
        CHECK_EQ(cc_reader_line(&in, &line, &length), ENODATA);
        cc_reader_free(&in);
        cc_close(conn);
        cc_nursery_cancel(n);
    }
    cc_listener_close(listener);
    check_no_children();
    return arg;
}

TEST_WORKERS(a_connection_for_a_process) {
    needs_pidfd();
    CHECK_EQ(cc_run(serves_by_processes, NULL, NULL), 0);
}

static void *tries(void *arg) {
    CCProcess *p = start_with((CCProcessOptions){.argv = SHELL("read line; exit 3"), .in = {.kind = CC_PROCESS_PIPE}});
    CCProcessStatus status = {0};
    CHECK_EQ(cc_process_wait_try(p, &status), EAGAIN);
    CHECK_EQ(cc_process_wait_until(p, &status, cc_after_ms(5)), ETIMEDOUT);
    CHECK_EQ(cc_process_signal(p, 0), 0);
    CHECK_EQ(cc_process_signal(p, 1000), EINVAL);
    CHECK_EQ(cc_process_close(p, 0), 0);
    CHECK_EQ(cc_process_close(p, 0), EBADF);
    CHECK_EQ(cc_process_close(p, 1), EBADF);
    CHECK_EQ(cc_process_close(p, 3), EINVAL);
    CHECK_EQ(cc_process_stdin(p), -1);
    CHECK_EQ(end_of(p).code, 3);
    cc_process_free(p);
    return arg;
}

TEST(tries_and_deadlines) {
    needs_pidfd();
    CHECK_EQ(cc_run(tries, NULL, NULL), 0);
    (void)tries(NULL);
}

/* Many wait for one, and one of them frees it. */
static atomic_int reaped;

CC_CHILD(wait_for, { CCProcess *process; }) {
    CCProcessStatus status;
    int rc = cc_process_wait(self->process, &status);
    if (rc == 0 && status.code == 5) atomic_fetch_add(&reaped, 1);
    return rc;
}

static void *thread_waits(void *process) {
    CHECK_EQ(end_of(process).code, 5);
    return NULL;
}

static void *many_wait(void *arg) {
    CCProcess *p = start_with((CCProcessOptions){.argv = SHELL("read line; exit 5"), .in = {.kind = CC_PROCESS_PIPE}});
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, thread_waits, p), 0);
    atomic_store(&reaped, 0);
    CC_NURSERY(n) {
        for (int i = 0; i < 10; i++) CHECK_EQ(CC_GO_IN(n, wait_for, .process = p), 0);
        cc_yield();
        CHECK_EQ(cc_process_close(p, 0), 0);
    }
    CHECK_EQ(atomic_load(&reaped), 10);
    pthread_join(thread, NULL);
    cc_process_free(p);
    return arg;
}

TEST_WORKERS(many_wait_for_one) {
    needs_pidfd();
    CHECK_EQ(cc_run(many_wait, NULL, NULL), 0);
}

/* A caller that already waits when it is freed gets the status; the last one frees the memory. */
CC_TASK(waits_while_it_is_freed, { CCProcess *process; }) {
    CCProcessStatus status;
    CHECK_EQ(cc_process_wait(self->process, &status), 0);
    CHECK_EQ(status.signal, SIGTERM);
    return NULL;
}

CC_TASK(selects_while_it_is_freed, { CCProcess *process; }) {
    CCProcessStatus status;
    size_t chosen;
    CCCase cases[] = {CC_EXITED(self->process, &status, NULL), CC_EXITED(self->process, &status, NULL)};
    CHECK_EQ(cc_select(cases, 2, CC_FOREVER, &chosen), 0);
    CHECK_EQ(status.signal, SIGTERM);
    return NULL;
}

static void *freed_while_others_wait(void *arg) {
    CCProcess *p = start_with((CCProcessOptions){.argv = (const char *[]){"sleep", "1000", NULL}});
    CCTask first = CC_GO(waits_while_it_is_freed, .process = p),
           second = CC_GO(selects_while_it_is_freed, .process = p);
    cc_yield(); /* one worker: both wait */
    cc_process_free(p);
    CHECK_EQ(cc_task_join(&first, NULL) + cc_task_join(&second, NULL), 0);
    return arg;
}

TEST(may_be_freed_while_others_wait) {
    needs_pidfd();
    CHECK_EQ(cc_runtime_init(&(CCRuntimeConfig){.workers = 1, .max_workers = 1}), 0);
    CHECK_EQ(cc_run(freed_while_others_wait, NULL, NULL), 0);
}

static void *arms(void *arg) {
    CCProcessStatus status = {.code = -7};
    int where = -1;
    CCProcess *p = start_with((CCProcessOptions){.argv = SHELL("read line; exit 4"), .in = {.kind = CC_PROCESS_PIPE}});
    CC_MATCH_TRY(CC_EXITED(p, &status, &where)) {
    case CC_MATCH_NONE:
        break;
    default:
        CHECK(false);
    }
    CC_MATCH(CC_EXITED(p, &status, &where), CC_AFTER_MS(2)) {
    case 1:
        break;
    default:
        CHECK(false);
    }
    bool ended = false;
    CC_WHEN {
        CC_ON_EXITED(p, NULL) {
            ended = true;
        }
        CC_ON_AFTER_MS(2) {}
    }
    CHECK(!ended);
    CHECK_EQ(cc_process_close(p, 0), 0);
    for (int round = 0; round < 2; round++) { /* waiting, and when it is known */
        status = (CCProcessStatus){.code = -7};
        CC_MATCH(CC_EXITED(p, &status, &where), CC_AFTER_MS(60000)) {
        case 0:
            break;
        default:
            CHECK(false);
        }
        CHECK(status.code == 4 && where == 0);
    }
    status.code = -7;
    CC_WHEN {
        CC_ON_EXITED(p, &status) {
            CHECK(CC_WHEN_ERROR == 0 && status.code == 4);
        }
    }
    cc_process_free(p);
    size_t chosen;
    CCCase none = CC_EXITED(NULL, NULL, NULL);
    CHECK_EQ(cc_select_try(&none, 1, &chosen), EINVAL);
    return arg;
}

TEST_WORKERS(is_an_arm_of_select) {
    needs_pidfd();
    CHECK_EQ(cc_run(arms, NULL, NULL), 0);
    (void)arms(NULL);
}

/* ---- what cannot be started ---- */

static int fails(CCProcessOptions options) {
    CCProcess *p = (CCProcess *)(void *)&p;
    int before = open_fds(), rc = cc_process_start(&p, &options);
    CHECK(p == NULL);
    check_open_fds(before);
    check_no_children();
    return rc;
}

static void write_file(const char *path, const char *text, mode_t mode) {
    FILE *file = fopen(path, "w");
    CHECK(file != NULL && fputs(text, file) >= 0 && fclose(file) == 0);
    CHECK_EQ(chmod(path, mode), 0);
}

static void *refused(void *arg) {
    const char *missing[] = {"no-such-program-anywhere", NULL}, *file[] = {"/etc/passwd", NULL},
               *below[] = {"/etc/passwd/x", NULL}, *empty[] = {NULL}, *blank[] = {"", NULL},
               *path[] = {"/no/such/program", NULL};
    CHECK_EQ(fails((CCProcessOptions){.argv = missing}), ENOENT);
    CHECK_EQ(fails((CCProcessOptions){.argv = path}), ENOENT);
    CHECK_EQ(fails((CCProcessOptions){.argv = blank}), ENOENT);
    CHECK_EQ(fails((CCProcessOptions){.argv = file}), EACCES);
    CHECK_EQ(fails((CCProcessOptions){.argv = below}), ENOTDIR);
    CHECK_EQ(fails((CCProcessOptions){.argv = SHELL(":"), .dir = "/no/such/directory"}), ENOENT);
    CHECK_EQ(fails((CCProcessOptions){.argv = SHELL(":"), .out = {CC_PROCESS_FD, 999}}), EBADF);
    CHECK_EQ(fails((CCProcessOptions){.argv = empty}), EINVAL);
    CHECK_EQ(fails((CCProcessOptions){0}), EINVAL);
    CHECK_EQ(fails((CCProcessOptions){.argv = SHELL(":"), .in = {.kind = CC_PROCESS_STDOUT}}), EINVAL);
    CHECK_EQ(fails((CCProcessOptions){.argv = SHELL(":"), .in = {CC_PROCESS_FD, -1}}), EINVAL);
    CHECK_EQ(fails((CCProcessOptions){.argv = SHELL(":"), .group = (CCProcessGroup)9}), EINVAL);
    CHECK_EQ(fails((CCProcessOptions){.argv = SHELL(":"), .fds = &(CCProcessFd){0, 2}, .fd_count = 1}), EINVAL);
    CHECK_EQ(fails((CCProcessOptions){.argv = SHELL(":"), .fd_count = 1}), EINVAL);
    CHECK_EQ(fails((CCProcessOptions){.argv = SHELL(":"), .fds = (CCProcessFd[]){{0, 9}, {1, 9}}, .fd_count = 2}),
             EINVAL);
    /* The next number: a pipe of the start would have it. */
    int next = dup(0);
    CHECK_EQ(close(next), 0);
    CCProcessOptions unopened = {.argv = SHELL(":"), .in = {.kind = CC_PROCESS_PIPE}, .out = {CC_PROCESS_FD, next}};
    CHECK_EQ(fails(unopened), EBADF);
    unopened.out.kind = CC_PROCESS_NULL;
    unopened.fds = &(CCProcessFd){next, 9};
    unopened.fd_count = 1;
    CHECK_EQ(fails(unopened), EBADF);
    int out = dup(1);
    CHECK_EQ(close(1), 0);
    unopened =
        (CCProcessOptions){.argv = SHELL(":"), .in = {.kind = CC_PROCESS_PIPE}, .err = {.kind = CC_PROCESS_STDOUT}};
    int rc = fails(unopened);
    CHECK(dup2(out, 1) == 1 && close(out) == 0);
    CHECK_EQ(rc, EBADF);
    CHECK_EQ(fails((CCProcessOptions){.argv = SHELL(":"), .reserved = {1}}), EINVAL);
    CCProcessLimit absurd = {.resource = 1000};
    CHECK_EQ(fails((CCProcessOptions){.argv = SHELL(":"), .limits = &absurd, .limit_count = 1}), EINVAL);
    CHECK_EQ(cc_process_start(NULL, &(CCProcessOptions){.argv = missing}), EINVAL);
    CHECK_EQ(cc_process_wait(NULL, NULL), EINVAL);
    CHECK_EQ(cc_process_wait_try(NULL, NULL), EINVAL);
    CHECK_EQ(cc_process_signal(NULL, SIGTERM), EINVAL);
    CHECK_EQ(cc_process_close(NULL, 0), EINVAL);
    CHECK_EQ(cc_process_pid(NULL), 0);
    CHECK_EQ(cc_process_stdout(NULL), -1);
    cc_process_free(NULL);

    char name[64];
    (void)snprintf(name, sizeof name, "/tmp/ccc-process-%d", getpid());
    write_file(name, "no program\n", 0755);
    CHECK_EQ(fails((CCProcessOptions){.argv = (const char *[]){name, NULL}}), ENOEXEC);
    CHECK_EQ(unlink(name), 0);
    return arg;
}

static void *nothing(void *arg) {
    CCProcess *p = start_with((CCProcessOptions){.argv = SHELL(":")});
    CHECK_EQ(end_of(p).code, 0);
    cc_process_free(p);
    return arg;
}

TEST(errors_of_the_start_are_returned_by_it) {
    needs_pidfd();
    open_poller();
    CHECK_EQ(cc_run(refused, NULL, NULL), 0);
}

TEST(too_many_arguments) {
    needs_pidfd();
    open_poller();
    enum { COUNT = 40000 };
    static const char *argv[COUNT + 1];
    static char big[1000];
    memset(big, 'x', sizeof big - 1);
    argv[0] = "/bin/true";
    for (int i = 1; i < COUNT; i++) argv[i] = big;
    CHECK_EQ(fails((CCProcessOptions){.argv = argv}), E2BIG);
}

/* Each number of descriptors that are left fails at another place. */
static void *no_descriptors(void *arg) {
    CHECK_EQ(nothing(NULL) == NULL, 1);
    struct rlimit limit, none;
    CHECK_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
    int top = open_fds() + 32, taken = dup(0), rc = EMFILE;
    CHECK(taken >= 0);
    close(taken);
    for (int left = 0; rc == EMFILE; left++) {
        CHECK(left < 32);
        none = (struct rlimit){(rlim_t)(taken + left), limit.rlim_max};
        CHECK_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
        CCProcess *p;
        rc = cc_process_start(&p, &(CCProcessOptions){.argv = SHELL("exit 1"),
                                                      .in = {.kind = CC_PROCESS_PIPE},
                                                      .out = {.kind = CC_PROCESS_PIPE},
                                                      .err = {.kind = CC_PROCESS_NULL}});
        if (rc == 0) CHECK_EQ(end_of(p).code, 1);
        CHECK_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
        CHECK(rc != 0 ? p == NULL : p != NULL);
        cc_process_free(p);
        check_no_children();
        CHECK(open_fds() < top);
    }
    CHECK_EQ(rc, 0);
    return arg;
}

TEST(runs_out_of_descriptors) {
    needs_pidfd();
    CHECK_EQ(cc_run(no_descriptors, NULL, NULL), 0);
}

/* ---- what it gets ---- */

static void *streams(void *arg) {
    size_t n;
    CCProcess *p = start_with((CCProcessOptions){.argv = (const char *[]){"cat", NULL}, /* by PATH */
                                                 .in = {.kind = CC_PROCESS_PIPE},
                                                 .out = {.kind = CC_PROCESS_PIPE}});
    CHECK_EQ(cc_fd_write(cc_process_stdin(p), "hello", 5, &n), 0);
    CHECK_EQ(cc_process_close(p, 0), 0);
    char *text = read_all(cc_process_stdout(p));
    CHECK(strcmp(text, "hello") == 0);
    free(text);
    CHECK_EQ(end_of(p).code, 0);
    cc_process_free(p);

    p = start_with((CCProcessOptions){.argv = SHELL("echo a; echo b >&2"),
                                      .in = {.kind = CC_PROCESS_NULL},
                                      .out = {.kind = CC_PROCESS_PIPE},
                                      .err = {.kind = CC_PROCESS_STDOUT}});
    text = read_all(cc_process_stdout(p));
    CHECK(strcmp(text, "a\nb\n") == 0);
    free(text);
    CHECK_EQ(cc_process_stderr(p), -1);
    cc_process_free(p);

    p = start_with((CCProcessOptions){.argv = SHELL("echo a; echo b >&2; cat"),
                                      .in = {.kind = CC_PROCESS_NULL},
                                      .out = {.kind = CC_PROCESS_NULL},
                                      .err = {.kind = CC_PROCESS_PIPE}});
    text = read_all(cc_process_stderr(p));
    CHECK(strcmp(text, "b\n") == 0);
    free(text);
    cc_process_free(p);

    int ends[2];
    CHECK_EQ(pipe2(ends, O_CLOEXEC), 0);
    p = start_with((CCProcessOptions){.argv = SHELL("echo to five >&5; echo to three >&3"),
                                      .fds = (CCProcessFd[]){{ends[1], 5}, {1, 3}},
                                      .fd_count = 2,
                                      .out = {.kind = CC_PROCESS_NULL}});
    close(ends[1]);
    text = read_all(ends[0]);
    CHECK(strcmp(text, "to five\n") == 0);
    free(text);
    close(ends[0]);
    CHECK_EQ(end_of(p).code, 0);
    cc_process_free(p);
    return arg;
}

TEST(streams_are_what_was_asked_for) {
    needs_pidfd();
    CHECK_EQ(cc_run(streams, NULL, NULL), 0);
    (void)streams(NULL);
}

/* The highest numbers that the limit allows: none is left above them. */
static void *highest(void *arg) {
    struct rlimit before, limit;
    CHECK_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
    limit = before;
    limit.rlim_cur = 101;
    CHECK(limit.rlim_max > 110);
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
    int ends[2];
    CHECK_EQ(pipe2(ends, O_CLOEXEC), 0);
    CCProcess *p = start_with((CCProcessOptions){.argv = SHELL("ulimit -n >/dev/fd/99; echo b >/dev/fd/100"),
                                                 .fds = (CCProcessFd[]){{ends[1], 99}, {ends[1], 100}},
                                                 .fd_count = 2});
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
    close(ends[1]);
    char *text = read_all(ends[0]);
    CHECK(strcmp(text, "101\nb\n") == 0);
    free(text);
    close(ends[0]);
    CHECK_EQ(end_of(p).code, 0);
    cc_process_free(p);
    return arg;
}

TEST(descriptors_below_the_limit) {
    CHECK_EQ(cc_run(highest, NULL, NULL), 0);
}

/* Sources and targets that overlap in every way. */
static void *swapped(void *arg) {
    int a[2], b[2];
    CHECK_EQ(pipe2(a, O_CLOEXEC) + pipe2(b, O_CLOEXEC), 0);
    CHECK_EQ(dup3(a[1], 3 + 20, O_CLOEXEC), 23);
    CHECK_EQ(dup3(b[1], 3 + 21, O_CLOEXEC), 24);
    CCProcess *p = start_with((CCProcessOptions){.argv = SHELL("echo A >/dev/fd/24; echo B >/dev/fd/23"),
                                                 .fds = (CCProcessFd[]){{23, 24}, {24, 23}},
                                                 .fd_count = 2});
    close(a[1]), close(b[1]), close(23), close(24);
    char *text = read_all(a[0]);
    CHECK(strcmp(text, "A\n") == 0);
    free(text);
    text = read_all(b[0]);
    CHECK(strcmp(text, "B\n") == 0);
    free(text);
    close(a[0]), close(b[0]);
    cc_process_free(p);
    return arg;
}

TEST(descriptors_may_change_places) {
    needs_pidfd();
    CHECK_EQ(cc_run(swapped, NULL, NULL), 0);
}

static char *output_of(CCProcessOptions options) {
    options.out.kind = CC_PROCESS_PIPE;
    CCProcess *p = start_with(options);
    char *text = read_all(cc_process_stdout(p));
    CHECK_EQ(end_of(p).code, 0);
    cc_process_free(p);
    return text;
}

static void *surroundings(void *arg) {
    /* Nothing is inherited that was not named: 0, 1, 2, and what ls has opened. */
    CHECK_EQ(dup2(1, 50), 50);
    char *text = output_of((CCProcessOptions){.argv = (const char *[]){"ls", "/proc/self/fd", NULL}});
    CHECK(strcmp(text, "0\n1\n2\n3\n") == 0);
    free(text);
    close(50);

    text = output_of((CCProcessOptions){
        .argv = SHELL("pwd; echo $ccc_test"), .env = (const char *[]){"ccc_test=yes", NULL}, .dir = "/usr"});
    CHECK(strcmp(text, "/usr\nyes\n") == 0);
    free(text);

    CHECK_EQ(setenv("ccc_test", "inherited", 1), 0);
    text = output_of((CCProcessOptions){.argv = SHELL("echo $ccc_test; ulimit -n"),
                                        .limits = &(CCProcessLimit){RLIMIT_NOFILE, 17, 17},
                                        .limit_count = 1});
    CHECK(strcmp(text, "inherited\n17\n") == 0);
    free(text);

    /* argv[0] is not the program; a relative one is looked for in the directory. */
    text = output_of((CCProcessOptions){
        .argv = (const char *[]){"other", "-c", "echo $0", NULL}, .program = "bin/../../bin/sh", .dir = "/usr"});
    CHECK(strcmp(text, "other\n") == 0);
    free(text);
    return arg;
}

TEST(environment_directory_and_limits) {
    needs_pidfd();
    CHECK_EQ(cc_run(surroundings, NULL, NULL), 0);
}

/* The child does not inherit which signals the parent ignores, blocks or handles. */
static void on_signal(int number) {
    (void)number;
}

static void *signals(void *arg) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    CHECK_EQ(pthread_sigmask(SIG_BLOCK, &set, NULL), 0);
    CHECK(signal(SIGPIPE, SIG_IGN) != SIG_ERR && signal(SIGUSR1, on_signal) != SIG_ERR);
    char *text = output_of((CCProcessOptions){.argv = SHELL("grep -E 'Sig(Blk|Ign)' /proc/self/status")});
    for (const char *line = text; line != NULL && *line != '\0'; line = strchr(line, '\n') + 1)
        CHECK(strncmp(strchr(line, ':') + 2, "0000000000000000", 16) == 0);
    free(text);
    CHECK_EQ(pthread_sigmask(SIG_UNBLOCK, &set, NULL), 0);
    return arg;
}

TEST(signals_are_reset) {
    needs_pidfd();
    CHECK_EQ(cc_run(signals, NULL, NULL), 0);
}

/* ---- its scope ---- */

static void *scope_is_cancelled(void *arg) {
    CCProcess *p = NULL;
    int rc = -1;
    CC_NURSERY(n, .result = &rc) {
        p = start_with(
            (CCProcessOptions){.argv = SHELL("trap 'echo term; exit 9' TERM; echo go; while :; do sleep 0.01; done"),
                               .out = {.kind = CC_PROCESS_PIPE}});
        await_byte(p);
        CHECK_EQ(cc_nursery_cancel(n), 0);
    }
    CHECK_EQ(rc, ECANCELED);
    CCProcessStatus status;
    CHECK_EQ(cc_process_wait_try(p, &status), 0); /* the block has waited for it */
    CHECK_EQ(status.code, 9);
    char *text = read_all(cc_process_stdout(p));
    CHECK(strcmp(text, "o\nterm\n") == 0);
    free(text);
    cc_process_free(p);
    check_no_children();
    return arg;
}

TEST_WORKERS(a_cancelled_scope_ends_it) {
    needs_pidfd();
    CHECK_EQ(cc_run(scope_is_cancelled, NULL, NULL), 0);
    (void)scope_is_cancelled(NULL);
}

/* It ignores SIGTERM, and so does its child, which would keep the pipe open. */
static void *ignores_term(void *arg) {
    CCProcess *p = NULL;
    int rc;
    CC_NURSERY(n, .result = &rc) {
        p = start_with((CCProcessOptions){.argv = SHELL("trap '' TERM; sleep 1000 & echo go; wait"),
                                          .out = {.kind = CC_PROCESS_PIPE},
                                          .grace_ms = 20});
        await_byte(p);
        CHECK_EQ(cc_nursery_cancel(n), 0);
    }
    CHECK_EQ(end_of(p).signal, SIGKILL);
    free(read_all(cc_process_stdout(p)));
    cc_process_free(p);
    check_no_children();
    return arg;
}

TEST(one_that_ignores_sigterm_is_killed_with_its_group) {
    needs_pidfd();
    CHECK_EQ(cc_run(ignores_term, NULL, NULL), 0);
}

/* It ends, and leaves a process behind that does not. */
static void *leaves_one_behind(void *arg) {
    CCProcess *p =
        start_with((CCProcessOptions){.argv = SHELL("trap 'exit 0' TERM; (trap '' TERM; echo go; sleep 1000) & wait"),
                                      .out = {.kind = CC_PROCESS_PIPE}});
    await_byte(p);
    int out = dup(cc_process_stdout(p));
    cc_process_free(p);
    free(read_all(out)); /* at its end */
    close(out);
    check_no_children();
    return arg;
}

TEST(the_rest_of_the_group_is_killed) {
    needs_pidfd();
    CHECK_EQ(cc_run(leaves_one_behind, NULL, NULL), 0);
}

/* A process that is stopped does not act upon SIGTERM. */
static void *stopped(void *arg) {
    CCProcess *p = start_with(
        (CCProcessOptions){.argv = SHELL("trap 'exit 6' TERM; echo go; kill -STOP $$; while :; do sleep 0.01; done"),
                           .out = {.kind = CC_PROCESS_PIPE}});
    await_byte(p);
    siginfo_t info;
    CHECK_EQ(waitid(P_PID, (id_t)cc_process_pid(p), &info, WSTOPPED | WNOWAIT), 0);
    cc_process_free(p);
    return arg;
}

TEST(a_stopped_process_is_resumed_to_end) {
    needs_pidfd();
    CHECK_EQ(cc_run(stopped, NULL, NULL), 0);
}

static void *deadline_passes(void *arg) {
    CCProcess *p = NULL;
    int rc;
    CC_NURSERY(n, .result = &rc, .deadline = cc_after_ms(20)) {
        p = start_with((CCProcessOptions){.argv = SHELL("exec sleep 1000")});
        MAY_FAIL(cc_process_wait(p, NULL));
    }
    CHECK_EQ(rc, ETIMEDOUT);
    CHECK_EQ(end_of(p).signal, SIGTERM);
    cc_process_free(p);

    /* Shields hold no longer than the nursery's grace period: then it is killed, long before its own is over. */
    CC_NURSERY(n, .result = &rc, .grace_ms = 20) {
        p = start_with((CCProcessOptions){.argv = SHELL("trap '' TERM; echo go; while :; do sleep 0.01; done"),
                                          .out = {.kind = CC_PROCESS_PIPE},
                                          .grace_ms = 1000 * 1000});
        await_byte(p);
        CHECK_EQ(cc_nursery_cancel(n), 0);
    }
    CHECK_EQ(end_of(p).signal, SIGKILL);
    cc_process_free(p);
    return arg;
}

TEST(deadlines_and_grace_periods_of_nurseries) {
    needs_pidfd();
    CHECK_EQ(cc_run(deadline_passes, NULL, NULL), 0);
}

static void *in_cancelled_scope(void *arg) {
    int rc;
    CC_NURSERY(n, .result = &rc) {
        CHECK_EQ(cc_nursery_cancel(n), 0);
        CHECK_EQ(fails((CCProcessOptions){.argv = SHELL(":")}), ECANCELED);
        CC_SHIELD {
            CHECK_EQ(fails((CCProcessOptions){.argv = SHELL(":")}), ECANCELED);
            CCProcess *p = start_with((CCProcessOptions){.argv = SHELL("exit 2"), .root = true});
            CHECK_EQ(end_of(p).code, 2);
            cc_process_free(p);
        }
    }
    CCNursery *other = cc_nursery_create(NULL);
    CCProcess *p = start_with((CCProcessOptions){.argv = SHELL("exec sleep 1000"), .nursery = other});
    CHECK_EQ(cc_nursery_children(other), 1);
    CHECK_EQ(cc_nursery_cancel(other), 0);
    CHECK_EQ(cc_nursery_wait(other), ECANCELED);
    CHECK_EQ(end_of(p).signal, SIGTERM);
    cc_process_free(p);
    CHECK_EQ(cc_nursery_free(other), 0);
    return arg;
}

TEST(belongs_to_the_nursery_that_was_named) {
    needs_pidfd();
    open_poller();
    CHECK_EQ(cc_run(in_cancelled_scope, NULL, NULL), 0);
}

/* The caller's group: only the process itself. */
static void *groups(void *arg) {
    char *text =
        output_of((CCProcessOptions){.argv = SHELL("ps -o pgid= -p $$ | tr -d ' '"), .group = CC_PROCESS_GROUP_SAME});
    CHECK_EQ(atoi(text), getpgrp());
    free(text);
    CCProcess *p = start_with((CCProcessOptions){.argv = SHELL("exec sleep 1000"), .group = CC_PROCESS_GROUP_SAME});
    CHECK_EQ(getpgid(cc_process_pid(p)), getpgrp());
    CHECK_EQ(cc_process_signal_group(p, SIGINT), 0);
    CHECK_EQ(end_of(p).signal, SIGINT);
    cc_process_free(p);
    p = start_with((CCProcessOptions){.argv = SHELL("exec sleep 1000"), .group = CC_PROCESS_GROUP_SESSION});
    CHECK_EQ(getsid(cc_process_pid(p)), cc_process_pid(p));
    cc_process_free(p);
    p = start_with((CCProcessOptions){.argv = SHELL("exec sleep 1000")});
    CHECK_EQ(getpgid(cc_process_pid(p)), cc_process_pid(p));
    CHECK_EQ(getsid(cc_process_pid(p)), getsid(0));
    CHECK_EQ(cc_process_signal_group(p, SIGHUP), 0);
    CHECK_EQ(end_of(p).signal, SIGHUP);
    cc_process_free(p);
    return arg;
}

TEST(groups_and_sessions) {
    needs_pidfd();
    CHECK_EQ(cc_run(groups, NULL, NULL), 0);
}

TEST(a_shutdown_ends_detached_work) {
    needs_pidfd();
    CCProcess *p = start_with((CCProcessOptions){.argv = SHELL("exec sleep 1000")});
    CCProcess *deaf = start_with((CCProcessOptions){
        .argv = SHELL("trap '' TERM; echo go; while :; do sleep 0.01; done"), .out = {.kind = CC_PROCESS_PIPE}});
    await_byte(deaf);
    CHECK_EQ(cc_process_wait_until(p, NULL, cc_after_ms(1)), ETIMEDOUT);
    end_after(1000);
    check_no_children();
    CHECK(end_of(p).signal != 0);
    CHECK_EQ(end_of(deaf).signal, SIGKILL);
    cc_process_free(p);
    cc_process_free(deaf);
}

/* ---- no zombies ---- */

static void *two_hundred(void *arg) {
    enum { MANY = 200 };
    static CCProcess *all[MANY];
    int count = (int)test_scale(MANY);
    for (int i = 0; i < count; i++) {
        char script[32];
        (void)snprintf(script, sizeof script, "exit %d", i % 256);
        all[i] = start_with((CCProcessOptions){.argv = SHELL(script), .out = {.kind = CC_PROCESS_PIPE}});
    }
    for (int i = 0; i < count; i++) {
        CHECK_EQ(end_of(all[i]).code, i % 256);
        cc_process_free(all[i]);
    }
    check_no_children();
    return arg;
}

TEST(two_hundred_at_once) {
    needs_pidfd();
    open_poller();
    int before = open_fds();
    CHECK_EQ(cc_run(two_hundred, NULL, NULL), 0);
    check_open_fds(before);
}

static void *nobody_waits(void *arg) {
    CCProcess *p = start_with((CCProcessOptions){.argv = SHELL(":")});
    siginfo_t info;
    do { /* it is reaped nevertheless */
        CHECK_EQ(cc_sleep_ms(1), 0);
        info.si_pid = 0;
    } while (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0);
    CHECK_EQ(errno, ECHILD);
    cc_process_free(p);
    return arg;
}

TEST(reaped_without_a_wait) {
    needs_pidfd();
    CHECK_EQ(cc_run(nobody_waits, NULL, NULL), 0);
}

/* The program reaps the process itself. */
static void *ignored_children(void *arg) {
    CHECK(signal(SIGCHLD, SIG_IGN) != SIG_ERR);
    CCProcess *p = start_with((CCProcessOptions){.argv = SHELL("exit 7")});
    CCProcessStatus status = {.code = 77};
    CHECK_EQ(cc_process_wait(p, &status), ECHILD);
    CHECK_EQ(status.code, -1);
    CHECK_EQ(cc_process_wait_try(p, &status), ECHILD);
    cc_process_free(p);
    return arg;
}

TEST(a_status_that_is_lost) {
    needs_pidfd();
    CHECK_EQ(cc_run(ignored_children, NULL, NULL), 0);
}

/* ---- other threads ---- */

static atomic_bool over;

static void *allocates(void *arg) {
    while (!atomic_load(&over)) {
        char *text = NULL;
        size_t size;
        FILE *file = open_memstream(&text, &size);
        (void)fprintf(file, "%d", 42);
        (void)fclose(file);
        free(text);
        (void)setenv("ccc_noise", "1", 0);
    }
    return arg;
}

static void *start_some(void *arg) {
    long count = test_scale(20);
    for (long i = 0; i < count; i++) CHECK_EQ(nothing(NULL) == NULL, 1);
    return arg;
}

TEST(while_threads_hold_locks) {
    needs_pidfd();
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) CHECK_EQ(pthread_create(&threads[i], NULL, allocates, NULL), 0);
    CHECK_EQ(cc_run(start_some, NULL, NULL), 0);
    atomic_store(&over, true);
    for (int i = 0; i < 2; i++) CHECK_EQ(pthread_join(threads[i], NULL), 0);
}

static void *in_a_simulation(void *arg) {
    CHECK_EQ(fails((CCProcessOptions){.argv = SHELL(":")}), ENOTSUP);
    return arg;
}

TEST(not_in_a_simulation) {
    CHECK_EQ(cc_sim_run(7, in_a_simulation, NULL, NULL), 0);
}

TEST(not_if_that_starts_a_simulation) {
    CCProcess *p = (CCProcess *)(void *)&p;
    setenv("CC_SIM_SEED", "7", 1);
    CHECK_EQ(cc_process_start(&p, &(CCProcessOptions){.argv = SHELL(":")}), ENOTSUP);
    CHECK(p == NULL);
    CHECK_EQ(cc_sim_seed(), 7);
    CHECK_EQ(cc_runtime_shutdown(UINT64_MAX), 0);
    unsetenv("CC_SIM_SEED");
}
