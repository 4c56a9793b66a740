/* kinds.c - descriptors of all kinds, adopted or not, on fibers and on OS threads: terminals, pipes with a name,
 * packets, timers, counters, processes, epoll sets, and those that cannot be waited for. */
#include "pair.h"

#include <ccc/ccc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/wait.h>

enum { NOT_YET_MS = 3 };

static int own(int fd, bool adopt) {
    CHECK(fd >= 0);
    if (adopt) CHECK_EQ(cc_fd_adopt(fd), 0);
    return fd;
}

/* Not by close(2): peers wait for the end of file, and a polling worker may keep the file open for a while. */
static void end(int fd) {
    CHECK_EQ(cc_fd_close(fd), 0);
}

/* Reads what is there: the number of bytes; -1: nothing yet. */
static void expect(int fd, size_t size, long bytes) {
    char buffer[512];
    size_t n = 0;
    int error = cc_fd_read_until(fd, buffer, size, &n, bytes < 0 ? cc_after_ms(NOT_YET_MS) : CC_FOREVER);
    CHECK_EQ(error, bytes < 0 ? ETIMEDOUT : 0);
    if (bytes >= 0) CHECK_EQ((long)n, bytes);
}

static void say(int fd, const char *text) {
    CHECK_EQ(cc_fd_write(fd, text, strlen(text), NULL), 0);
}

static void terminal(bool adopt) {
    int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (master < 0) return; /* there are none here */
    CHECK_EQ(grantpt(master) + unlockpt(master), 0);
    int slave = own(open(ptsname(master), O_RDWR | O_NOCTTY | O_CLOEXEC), adopt);
    (void)own(master, adopt);
    expect(slave, 100, -1);
    say(master, "hel");
    expect(slave, 100, -1); /* no line yet */
    say(master, "lo\nmore\n");
    expect(slave, 100, 6); /* a line at a time */
    expect(slave, 2, 2);
    expect(slave, 100, 3);
    expect(slave, 100, -1);
    say(master, "\004");
    expect(slave, 100, 0); /* an end of file that is not final */
    expect(slave, 100, -1);
    say(master, "x\n");
    int arm = -1;
    CC_MATCH(CC_READABLE_CASE(slave, &arm), CC_CANCEL()) {
    case 0:
        CHECK_EQ(arm, 0);
        break;
    default:
        CHECK(false);
    }
    expect(slave, 100, 2);
    end(slave);
    char echo[512];
    size_t n;
    int error;
    while ((error = cc_fd_read(master, echo, sizeof echo, &n)) == 0) CHECK(n > 0);
    CHECK_EQ(error, EIO); /* as the system reports a hang-up */
    end(master);
}

static void packets(int type, bool adopt) {
    int fds[2];
    CHECK_EQ(socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, fds), 0);
    (void)own(fds[0], adopt), (void)own(fds[1], adopt);
    say(fds[0], "one");
    say(fds[0], "three");
    expect(fds[1], 100, 3);
    expect(fds[1], 2, 2); /* the rest of it is lost */
    expect(fds[1], 100, -1);
    fill(fds[0]);
    CHECK_EQ(cc_fd_wait_try(fds[0], CC_WRITABLE, NULL), EAGAIN);
    drain(fds[1]);
    CHECK_EQ(cc_fd_wait(fds[0], CC_WRITABLE, NULL), 0);
    say(fds[0], "x");
    expect(fds[1], 100, 1);
    end(fds[0]);
    if (type == SOCK_SEQPACKET) expect(fds[1], 100, 0);
    end(fds[1]);
}

static void named_pipe(bool adopt) {
    char path[64];
    snprintf(path, sizeof path, "/tmp/ccc-kinds-%d", getpid());
    CHECK_EQ(mkfifo(path, 0600), 0);
    int in = own(open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC), adopt);
    expect(in, 100, 0); /* nobody writes */
    for (int i = 0; i < 3; i++) {
        int out = own(open(path, O_WRONLY | O_CLOEXEC), adopt);
        expect(in, 100, -1);
        say(out, "xy");
        expect(in, 100, 2);
        expect(in, 100, -1);
        end(out);
        expect(in, 100, 0);
    }
    end(in);
    CHECK_EQ(unlink(path), 0);
}

static void counters(bool adopt) {
    uint64_t value = 2;
    size_t n;
    int fd = own(eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE), adopt);
    expect(fd, 8, -1);
    CHECK_EQ(cc_fd_write(fd, &value, 8, NULL), 0);
    expect(fd, 8, 8);
    expect(fd, 8, 8);
    expect(fd, 8, -1);
    value = UINT64_MAX - 1;
    CHECK_EQ(cc_fd_write(fd, &value, 8, NULL), 0);
    CHECK_EQ(cc_fd_write_until(fd, &value, 8, &n, cc_after_ms(NOT_YET_MS)), ETIMEDOUT);
    CHECK_EQ(n, 0);
    end(fd);
    fd = own(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC), adopt);
    struct itimerspec often = {{0, 1000000}, {0, 1000000}};
    CHECK_EQ(timerfd_settime(fd, 0, &often, NULL), 0);
    for (int i = 0; i < 5; i++) expect(fd, 8, 8);
    end(fd);
}

static void a_process(bool adopt) {
    int ends[2];
    CHECK_EQ(pipe2(ends, O_CLOEXEC), 0);
    pid_t child = test_fork();
    if (child == 0) {
        char byte;
        close(ends[1]);
        _exit(read(ends[0], &byte, 1) == 0 ? 0 : 1);
    }
    int fd = own((int)syscall(SYS_pidfd_open, child, 0), adopt);
    CHECK_EQ(cc_fd_wait_until(fd, CC_READABLE, NULL, cc_after_ms(NOT_YET_MS)), ETIMEDOUT);
    CHECK_EQ(close(ends[0]) + close(ends[1]), 0);
    CHECK_EQ(cc_fd_wait(fd, CC_READABLE, NULL), 0);
    int status;
    CHECK_EQ(waitpid(child, &status, 0), child);
    end(fd);
}

static void a_set(bool adopt) {
    int set = epoll_create1(EPOLL_CLOEXEC), member = eventfd(0, EFD_CLOEXEC);
    struct epoll_event event = {.events = EPOLLIN};
    uint64_t one = 1;
    CHECK_EQ(epoll_ctl(set, EPOLL_CTL_ADD, member, &event), 0);
    (void)own(set, adopt);
    CHECK_EQ(cc_fd_wait_until(set, CC_READABLE, NULL, cc_after_ms(NOT_YET_MS)), ETIMEDOUT);
    CHECK_EQ(write(member, &one, 8), 8);
    CHECK_EQ(cc_fd_wait(set, CC_READABLE, NULL), 0);
    CHECK_EQ(close(member), 0);
    end(set);
}

/* Always ready, as poll(2) has it. */
static void not_pollable(bool adopt) {
    int ready = 0, arm = -1, fd = own(open("/proc/self/exe", O_RDONLY | O_CLOEXEC), adopt);
    expect(fd, 100, 100);
    CHECK_EQ(cc_fd_wait(fd, CC_READABLE | CC_WRITABLE, &ready), 0);
    CHECK_EQ(ready, CC_READABLE | CC_WRITABLE);
    CC_MATCH(CC_READABLE_CASE(fd, &arm), CC_CANCEL()) {
    case 0:
        CHECK_EQ(arm, 0);
        break;
    default:
        CHECK(false);
    }
    CHECK_EQ(cc_fd_write(fd, "x", 1, NULL), EBADF);
    end(fd);
    fd = own(open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC), adopt);
    char byte;
    size_t n;
    CHECK_EQ(cc_fd_read(fd, &byte, 1, &n), EISDIR);
    end(fd);
    fd = own(open("/dev/null", O_RDWR | O_CLOEXEC), adopt);
    expect(fd, 100, 0);
    say(fd, "nothing");
    end(fd);
    fd = own(open("/dev/zero", O_RDONLY | O_CLOEXEC), adopt);
    expect(fd, 100, 100);
    end(fd);
    fd = own(memfd_create("kinds", MFD_CLOEXEC), adopt);
    say(fd, "abc");
    CHECK_EQ(lseek(fd, 0, SEEK_SET), 0);
    expect(fd, 100, 3);
    expect(fd, 100, 0);
    end(fd);
    fd = open("/", O_PATH | O_CLOEXEC);
    CHECK_EQ(cc_fd_read(fd, &byte, 1, &n), EBADF);
    CHECK_EQ(cc_fd_adopt(fd), EBADF);
    CHECK_EQ(close(fd), 0);
}

static void *all_kinds(void *arg) {
    for (int adopt = 0; adopt < 2; adopt++) {
        terminal(adopt);
        packets(SOCK_SEQPACKET, adopt);
        packets(SOCK_DGRAM, adopt);
        named_pipe(adopt);
        counters(adopt);
        a_process(adopt);
        a_set(adopt);
        not_pollable(adopt);
    }
    return arg;
}

TEST_WORKERS(on_fibers) {
    CHECK_EQ(cc_run(all_kinds, NULL, NULL), 0);
}

TEST(on_an_os_thread) {
    all_kinds(NULL);
}
