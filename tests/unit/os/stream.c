/* stream.c - which descriptors a short read has emptied: TCP sockets, and no others. */
#include "harness.h"

#include "os/descriptor.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

static void expect(int fd, bool stream, bool socket) {
    bool is_socket;
    CHECK(fd >= 0);
    CHECK_EQ(cc__os_is_stream(fd, &is_socket), stream);
    CHECK_EQ(is_socket, socket);
    CHECK_EQ(close(fd), 0);
}

TEST(only_tcp) {
    int ends[2];
    expect(socket(AF_INET, SOCK_STREAM, 0), true, true);
    expect(socket(AF_INET, SOCK_DGRAM, 0), false, true);
    expect(socket(AF_UNIX, SOCK_STREAM, 0), false, true);
    expect(socket(AF_UNIX, SOCK_SEQPACKET, 0), false, true);
    CHECK_EQ(pipe(ends), 0);
    expect(ends[0], false, false);
    expect(ends[1], false, false);
}

/* Other protocols of SOCK_STREAM, if the system has them: a read may end with a message, and more may follow. */
TEST(not_every_stream_is_tcp) {
    static const int protocols[] = {IPPROTO_SCTP, IPPROTO_MPTCP};
    int tried = 0;
    for (int i = 0; i < 2; i++) {
        int fd = socket(AF_INET, SOCK_STREAM, protocols[i]);
        if (fd < 0) continue;
        expect(fd, false, true);
        tried++;
    }
    if (tried == 0) SKIP("the system has neither SCTP nor MPTCP");
}
