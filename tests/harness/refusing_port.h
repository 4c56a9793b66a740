/* refusing_port.h - a port that refuses connections. One that was merely closed may be taken by another test program,
 * which then gets a connection that it does not expect. */
#ifndef CCC_TESTS_HARNESS_REFUSING_PORT_H
#define CCC_TESTS_HARNESS_REFUSING_PORT_H

#include "harness.h"

#include <netinet/in.h>
#include <sys/socket.h>

/* A socket that is bound and does not listen. Its port is nobody else's until it is closed. */
static int refusing_port(struct sockaddr_in *address) {
    socklen_t length = sizeof *address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    *address = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    CHECK_EQ(bind(fd, (struct sockaddr *)address, length), 0);
    CHECK_EQ(getsockname(fd, (struct sockaddr *)address, &length), 0);
    return fd;
}

#endif
