/* net.h - shared by the tests of connections. */
#ifndef CCC_TESTS_UNIT_NET_H
#define CCC_TESTS_UNIT_NET_H

#include "harness.h"

#include <ccc/ccc.h>
#include <dirent.h>
#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

__attribute__((unused)) static void await_waiters(size_t n) {
    while (cc_io_waiters() < n) cc_yield();
}

/* How many descriptors are open. */
__attribute__((unused)) static int count_fds(void) {
    int count = 0;
    DIR *dir = opendir("/proc/self/fd");
    CHECK(dir != NULL);
    while (readdir(dir) != NULL) count++;
    CHECK_EQ(closedir(dir), 0);
    return count;
}

/* The same at the start of a case that might leak some. By then the first wait has opened the poller; the runtime may
 * be reading a file at that moment, too. */
__attribute__((unused)) static int fds_before(void) {
    CCConn *one, *other;
    char byte;
    size_t n;
    CHECK_EQ(cc_socketpair(&one, &other), 0);
    CHECK_EQ(cc_read_until(one, &byte, 1, &n, cc_after_ms(1)), ETIMEDOUT);
    cc_close(one);
    cc_close(other);
    return count_fds();
}

/* None was leaked. Files that the runtime reads now and then are closed again. */
__attribute__((unused)) static void check_fds(int before) {
    for (int i = 0; i < 5000 && count_fds() > before; i++) cc_sleep_ms(1);
    CHECK(count_fds() <= before);
}

/* For a listener with ?reuseport: a socket that keeps others from listening on its port when the listener is closed. */
__attribute__((unused)) static int hold_port(CCListener *l) {
    CCAddr addr;
    struct sockaddr_in in;
    socklen_t length = sizeof in;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;
    CHECK_EQ(cc_listener_addr(l, &addr), 0);
    CHECK_EQ(cc_addr_to_sockaddr(&addr, (struct sockaddr *)&in, &length), 0);
    CHECK_EQ(setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on), 0);
    CHECK_EQ(bind(fd, (struct sockaddr *)&in, length), 0);
    return fd;
}

/* A connection to a listener of this program. */
__attribute__((unused)) static CCConn *dial(CCListener *l) {
    CCAddr addr;
    CCConn *c;
    CHECK_EQ(cc_listener_addr(l, &addr), 0);
    CHECK_EQ(cc_dial_addr(&c, &addr, NULL, cc_after_ms(60000)), 0);
    return c;
}

#endif
